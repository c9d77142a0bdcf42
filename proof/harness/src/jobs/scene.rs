//! The processes, and the way to the book.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use agent::images::log_of;
use job::{Command, Host, JobState, Jobs, RankState, Spec};
use rustix::process::{Pid, Signal, kill_process};
use steadfast::admin::{AdminError, Client as Admin};
use steadfast::{Member, NodeId};
use tempfile::TempDir;

use super::memory::Said;
use crate::cluster::{Books, Cluster, Plan, wall};
use crate::orders::Place;
use crate::process::{Process, Role};
use crate::usage::processor_time_ever;
use crate::wait::until_so;
use crate::{Outcome, bail};

/// How long anything may take: more than the longest job of an experiment.
const WITHIN: Duration = Duration::from_secs(2 * 3_600);

/// How long a rank may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// How long a node waits for something new.
const WAIT: Duration = Duration::from_millis(500);

/// Before another node is asked.
const PAUSE: Duration = Duration::from_millis(2);

impl Place {
    /// The agent's life: until its node is gone.
    pub(crate) fn live(self) -> Outcome<()> {
        let processors = thread::available_parallelism()?.get() as u32;
        // Whether there is room is the experiment's own affair.
        let host =
            Host { labels: vec![self.label], memory: u64::MAX, processors, ..Host::default() };
        let options =
            agent::Options { folder: self.folder, runtime: self.runtime, host, port: None };
        Ok(agent::run(options, || agent::Node::new(&self.admin), drop)?)
    }
}

/// A cluster whose nodes have agents.
pub struct Scene {
    /// Dropped first: their ranks end with them.
    agents: BTreeMap<NodeId, Process>,
    /// The nodes.
    pub cluster: Cluster,
    folder: TempDir,
    nodes: u32,
    /// The node that is asked, and the connection to it.
    asked: NodeId,
    admin: Option<Admin>,
}

impl Scene {
    /// Starts the nodes, each with an agent that keeps its images in a folder of its own here, and
    /// waits until all agents are in the book.
    pub fn start(plan: Plan, storage: &Path) -> Outcome<Scene> {
        let nodes = plan.nodes;
        let books = Books { jobs: true, ..plan.books.clone() };
        let cluster = Cluster::start(Plan { books, ..plan })?;
        let folder = tempfile::Builder::new().prefix("steadfast-jobs-").tempdir_in(storage)?;
        let (agents, asked, admin) = (BTreeMap::new(), NodeId(1), None);
        let mut scene = Scene { agents, cluster, folder, nodes, asked, admin };
        for id in (1..=nodes).map(NodeId) {
            scene.start_agent(id)?;
        }
        scene.wait("all agents", |jobs| (jobs.hosts().count() == nodes as usize).then_some(()))?;
        Ok(scene)
    }

    /// The label of a node's host, for jobs that are to run there.
    pub fn label(id: NodeId) -> String {
        format!("node={}", id.0)
    }

    /// The folder of a node's images.
    pub fn images(&self, id: NodeId) -> PathBuf {
        self.folder.path().join(format!("images-{}", id.0))
    }

    fn records(&self, id: NodeId) -> PathBuf {
        self.folder.path().join(format!("run-{}", id.0))
    }

    fn start_agent(&mut self, id: NodeId) -> Outcome<()> {
        let place = Place {
            admin: self.cluster.admin(id),
            folder: self.images(id),
            runtime: self.records(id),
            label: Scene::label(id),
        };
        self.agents.insert(id, Process::start(&Role::Agent(place))?);
        Ok(())
    }

    /// Kills a node with its agent and all ranks there, as if its host had lost its power. Returns
    /// when: just before.
    pub fn kill_node(&mut self, id: NodeId) -> Outcome<u64> {
        let mut agent = self.agents.remove(&id).ok_or("this node has no agent")?;
        let (ranks, time) = (self.ranks(id), wall());
        // Each before any of the others is seen to have ended.
        agent.kill()?;
        ranks.into_iter().for_each(|(_, pid)| kill(pid));
        self.cluster.signal(id, Signal::KILL)?;
        agent.wait()?;
        if self.asked == id {
            self.admin = None;
        }
        Ok(time)
    }

    /// Starts a node that was killed once more, with its agent.
    pub fn return_node(&mut self, id: NodeId) -> Outcome<()> {
        let of = |jobs: &Jobs| jobs.hosts().find(|(it, _)| it.node == id).map(|(it, _)| it);
        let before: Option<Member> = self.wait("the book", |jobs| Some(of(jobs)))?;
        self.cluster.start_node(id)?;
        self.start_agent(id)?;
        self.wait("the agent that came back", |jobs| {
            of(jobs).filter(|it| Some(*it) != before).map(drop)
        })
    }

    fn ask<T>(
        &mut self,
        question: impl Fn(&mut Admin) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let asked = match &mut self.admin {
            Some(admin) => question(admin),
            None => Admin::connect(self.cluster.admin(self.asked)).and_then(|admin| {
                admin.set_timeout(Some(WAIT * 20))?;
                question(self.admin.insert(admin))
            }),
        };
        if asked.is_err() {
            self.admin = None;
            self.asked = NodeId(self.asked.0 % self.nodes + 1);
        }
        asked
    }

    /// Says something to the book. The number of a new job, if it is one.
    pub fn take(&mut self, command: &Command) -> Outcome<Option<u64>> {
        let until = Instant::now() + WITHIN;
        loop {
            match self.ask(|admin| admin.tell_jobs(command)) {
                Ok(taken) => return Ok(taken?.job),
                Err(error) if Instant::now() > until => return Err(error.into()),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Waits until this is so of the book. It is shown each version that a node has when it is
    /// asked.
    pub fn wait<T>(&mut self, what: &str, mut so: impl FnMut(&Jobs) -> Option<T>) -> Outcome<T> {
        let until = Instant::now() + WITHIN;
        let mut since = None;
        while Instant::now() < until {
            match self.ask(|admin| admin.jobs(since, WAIT)) {
                Ok(status) if status.current => {
                    since = Some(status.version);
                    if let Some(found) = status.jobs.as_ref().and_then(&mut so) {
                        return Ok(found);
                    }
                }
                Ok(_) | Err(_) => thread::sleep(PAUSE),
            }
        }
        bail!("waited {WITHIN:?} for {what}")
    }

    /// Runs this as a job. Its name is given here.
    pub fn submit(&mut self, spec: Spec) -> Outcome<u64> {
        let spec = Spec { name: format!("run-{:x}", wall()), ..spec };
        self.take(&Command::Submit(spec))?.ok_or_else(|| "the book has made no job".into())
    }

    /// Waits until no rank of the job is to run. An error if a rank has failed.
    pub fn finished(&mut self, job: u64) -> Outcome<()> {
        let state = self.wait("the end of a job", |jobs| {
            let state = jobs.job(job)?.state.clone();
            (state != JobState::Running).then_some(state)
        })?;
        match state {
            JobState::Finished => Ok(()),
            state => bail!("the job stands so: {state:?}; rank 0 said: {}", self.log(job, 0)),
        }
    }

    /// Stops a job, whose ranks have ended then, and forgets it.
    pub fn end(&mut self, job: u64) -> Outcome<()> {
        self.take(&Command::Kill { job })?;
        self.wait("the end of all ranks", |jobs| {
            let ranks = &jobs.job(job)?.ranks;
            ranks.iter().all(|it| !matches!(it.state, RankState::At(_))).then_some(())
        })?;
        self.take(&Command::Forget { job }).map(drop)
    }

    /// Where a rank runs, and which start of it.
    pub fn place(&mut self, job: u64) -> Outcome<(NodeId, u64)> {
        self.wait("the rank to run", |jobs| {
            let rank = &jobs.job(job)?.ranks[0];
            match rank.state {
                RankState::At(member) => Some((member.node, rank.start)),
                _ => None,
            }
        })
    }

    /// Waits until the job's first rank computes: whoever asks it to save before is not heard.
    pub fn computes(&self, job: u64) -> Outcome<()> {
        let begun = || self.said(job, 0).iter().any(|said| matches!(said, Said::Begun));
        until_so(BEGINS_WITHIN, PAUSE, "the rank does not begin", || Ok(begun()))
    }

    /// All that a rank has printed, on whichever node.
    pub fn log(&self, job: u64, rank: u32) -> String {
        let logs = (1..=self.nodes).map(|id| log_of(&self.images(NodeId(id)), job, rank));
        logs.filter_map(|log| fs::read_to_string(log).ok()).collect()
    }

    /// The lines of a rank of an experiment.
    pub fn said(&self, job: u64, rank: u32) -> Vec<Said> {
        self.log(job, rank).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The processes of ranks on a node, each with the number of its start, by the agent's records.
    fn ranks(&self, id: NodeId) -> Vec<(u64, Pid)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.records(id)).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let name = entry.file_name().into_string().unwrap_or_default();
            let start = name.rsplit('-').next().and_then(|it| u64::from_str_radix(it, 16).ok());
            let words: Vec<&str> = text.split_whitespace().collect();
            if let (Some(start), [_, pid, _, _]) = (start, &words[..])
                && let Some(pid) = pid.parse().ok().and_then(Pid::from_raw)
            {
                found.push((start, pid));
            }
        }
        found
    }

    /// Kills the present start of the job's only rank. Returns when: just before.
    pub fn kill_rank(&mut self, job: u64) -> Outcome<u64> {
        let (node, start) = self.place(job)?;
        let ranks = self.ranks(node);
        let (_, pid) = ranks.iter().find(|(it, _)| *it == start).ok_or("no record of the rank")?;
        let time = wall();
        kill(*pid);
        Ok(time)
    }

    /// Processor time that all agents have used so far, with the threads that write and fetch.
    pub fn agents_time(&self) -> Outcome<Duration> {
        self.agents.values().map(|agent| processor_time_ever(agent.id())).sum()
    }
}

fn kill(pid: Pid) {
    // It may have ended by itself.
    let _ = kill_process(pid, Signal::KILL);
}
