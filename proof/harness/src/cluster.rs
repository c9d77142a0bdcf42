//! A cluster of node processes on this machine, and what its nodes tell.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use node::sched::{Class, Reserve};
use node::{EventKind, EventRecord, free_ring_addresses};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadfast::admin::Client as Admin;
use steadfast::{Client, NodeConfig, NodeId, ViewNumber};
use tempfile::TempDir;

use crate::allocator::Allocated;
use crate::hosts::Hosts;
use crate::process::{Line, Process, Question, Role};
use crate::protect::{Keys, Protect};
use crate::quota::ControlGroup;
use crate::{Experiment, Outcome, bail, hog};

mod growth;
mod health;
mod plan;
mod programs;

pub use plan::{Books, Placement, Plan, Programs, Where};

/// How long the cluster may take for anything. Far longer than a healthy one needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The priority of a node's other threads where its data plane has reserved time: above the hogs'.
const ABOVE: u8 = hog::PRIORITY + 1;

/// The ring's port on hosts of its own.
const RING_PORT: u16 = 7_201;

/// A group's membership, as its nodes last told it.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Its number.
    pub number: ViewNumber,
    /// The primary's node.
    pub primary: Option<NodeId>,
    /// Replicas that have the state.
    pub synced: usize,
    /// The nodes with a replica, in order of rank.
    pub hosts: Vec<NodeId>,
}

/// The processes.
pub struct Cluster {
    processes: BTreeMap<NodeId, Process>,
    plan: Plan,
    folder: TempDir,
    /// The folders in which nodes store their disks' files.
    disks: Option<TempDir>,
    keys: Keys,
    /// Nodes that were retired.
    gone: BTreeSet<NodeId>,
    /// Builds of this program that nodes run, where it is not this one.
    builds: BTreeMap<NodeId, PathBuf>,
    /// Each node's address on each link.
    rings: Vec<Vec<SocketAddr>>,
    /// Each node's addresses for all nodes, where something stands between them.
    seen: Option<Vec<Vec<Vec<SocketAddr>>>>,
    /// The last answer of each node.
    answers: BTreeMap<NodeId, Value>,
    clients: BTreeMap<NodeId, SocketAddr>,
    lines: Receiver<(NodeId, Line)>,
    sender: Sender<(NodeId, Line)>,
    views: BTreeMap<String, View>,
    /// How many members the last configuration of each node has.
    members: BTreeMap<NodeId, usize>,
    events: Vec<EventRecord>,
    /// Those that nodes have of their own. Dropped after the processes have ended.
    processors: BTreeMap<NodeId, ControlGroup>,
    /// Dropped last: the processes are on them.
    hosts: Option<Hosts>,
}

/// The wall clock as events have it: nanoseconds since the Unix epoch.
pub fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A configuration without its defaults: another build of this program may not know them all.
fn lean(config: &NodeConfig) -> Outcome<String> {
    fn differing(table: toml::Table, default: &toml::Table) -> toml::Table {
        let kept = table.into_iter().filter_map(|(key, value)| match (value, default.get(&key)) {
            (toml::Value::Table(table), Some(toml::Value::Table(default))) => {
                let table = differing(table, default);
                (!table.is_empty()).then_some((key, toml::Value::Table(table)))
            }
            (value, default) => (Some(&value) != default).then_some((key, value)),
        });
        kept.collect()
    }
    let default: toml::Table = NodeConfig::default().to_toml().parse()?;
    let mut lean = differing(config.to_toml().parse()?, &default);
    // These have to be said.
    lean.insert("node".into(), toml::Value::Integer(config.node.0.into()));
    Ok(lean.to_string())
}

impl Cluster {
    /// Starts the nodes and waits until every group has all its replicas.
    pub fn start(plan: Plan) -> Outcome<Cluster> {
        let mut cluster = Cluster::prepare(plan)?;
        cluster.start_all()?;
        Ok(cluster)
    }

    /// As [`Cluster::start`], with another build of this program as nodes, if one is given.
    pub fn start_build(plan: Plan, build: Option<&Path>) -> Outcome<Cluster> {
        let mut cluster = Cluster::prepare(plan)?;
        for id in (1..=cluster.plan.nodes).map(NodeId) {
            cluster.run_build(id, build);
        }
        cluster.start_all()?;
        Ok(cluster)
    }

    /// As [`Cluster::start`], with something between the nodes: `seen` tells what a node (counted
    /// from 0) takes for all nodes' addresses.
    pub fn start_behind<T>(
        plan: Plan,
        between: impl FnOnce(&[SocketAddr]) -> Outcome<T>,
        seen: impl Fn(&T, usize) -> Outcome<Vec<SocketAddr>>,
    ) -> Outcome<(Cluster, T)> {
        let mut cluster = Cluster::prepare(plan)?;
        let rings: Vec<SocketAddr> = cluster.rings.iter().map(|links| links[0]).collect();
        let between = between(&rings)?;
        let on_one_link =
            |rings: Vec<SocketAddr>| rings.into_iter().map(|ring| vec![ring]).collect();
        let all = (0..rings.len()).map(|node| Ok(on_one_link(seen(&between, node)?)));
        cluster.seen = Some(all.collect::<Outcome<_>>()?);
        cluster.start_all()?;
        Ok((cluster, between))
    }

    fn start_all(&mut self) -> Outcome<()> {
        for id in 1..=self.plan.nodes {
            self.start_node(NodeId(id))?;
        }
        if !self.plan.placed.is_empty() {
            self.place()?;
        }
        if matches!(self.plan.programs, Some(Programs::WhenTold(_))) {
            return self.wait_for_ring_without(None);
        }
        self.wait_until_whole()
    }

    /// One node after the other gets its replicas: their rank is the order in which they come.
    fn place(&mut self) -> Outcome<()> {
        self.wait_for_ring_without(None)?;
        for id in (1..=self.plan.nodes).map(NodeId) {
            let there = |on: &[u32]| on.iter().filter(|node| **node <= id.0).count();
            let placed = self.plan.placed.iter();
            let wanted: Vec<_> = placed.map(|(group, on)| (*group, there(on))).collect();
            self.running(id)?.ask(&Question::Host)?;
            self.wait("a node's replicas", |cluster| {
                wanted.iter().all(|(group, count)| cluster.view(group).synced == *count)
            })?;
        }
        Ok(())
    }

    fn prepare(plan: Plan) -> Outcome<Cluster> {
        let (sender, lines) = channel();
        let count = plan.nodes as usize;
        let (hosts, rings) = match plan.placement {
            Placement::Loopback => {
                (None, free_ring_addresses(count).into_iter().map(|ring| vec![ring]).collect())
            }
            Placement::Hosts { links } => {
                let hosts = Hosts::new(count, links)?;
                let on = |place, link| SocketAddr::new(hosts.address(place, link), RING_PORT);
                let ring = |place| (0..links).map(|link| on(place, link)).collect();
                let rings = (1..=count).map(ring).collect();
                (Some(hosts), rings)
            }
        };
        let folder = TempDir::new()?;
        let on_disk = |folder| tempfile::Builder::new().prefix("steadfast-lab-").tempdir_in(folder);
        let disks = plan.storage.as_ref().map(on_disk).transpose()?;
        Ok(Cluster {
            builds: BTreeMap::new(),
            gone: BTreeSet::new(),
            plan,
            keys: Keys::new(folder.path())?,
            folder,
            disks,
            rings,
            seen: None,
            processes: BTreeMap::new(),
            answers: BTreeMap::new(),
            clients: BTreeMap::new(),
            lines,
            sender,
            views: BTreeMap::new(),
            members: BTreeMap::new(),
            events: Vec::new(),
            processors: BTreeMap::new(),
            hosts,
        })
    }

    /// Starts a node, for the first time or once more.
    pub fn start_node(&mut self, id: NodeId) -> Outcome<()> {
        let role = self.role(id)?;
        let build = self.builds.get(&id).cloned().map_or_else(env::current_exe, Ok)?;
        let start = || Process::start_of(&role, &build);
        let mut process = match &self.hosts {
            Some(hosts) => hosts.within(id.0 as usize, start)?,
            None => start()?,
        };
        let output = process.take_output().ok_or("no pipe to the node")?;
        let sender = self.sender.clone();
        let mut log = self.log(id)?;
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(log) = &mut log {
                    // A line that cannot be written is missing from the log, and nothing else
                    // fails.
                    let _ = writeln!(log, "{line}");
                }
                let Ok(line) = serde_json::from_str(&line) else { continue };
                if sender.send((id, line)).is_err() {
                    break;
                }
            }
        });
        self.processes.insert(id, process);
        self.wait("a node to be ready", |cluster| cluster.clients.contains_key(&id))?;
        // It may have joined the ring before anybody listened to its events.
        let members = self.node(id)?.status()?.ring.members.len();
        self.members.entry(id).or_insert(members);
        Ok(())
    }

    /// From its next start on a node runs this build of this program; `None`: this one.
    pub fn run_build(&mut self, id: NodeId, build: Option<&Path>) {
        match build {
            Some(build) => _ = self.builds.insert(id, build.into()),
            None => _ = self.builds.remove(&id),
        }
    }

    /// The role of a node's process.
    fn role(&mut self, id: NodeId) -> Outcome<Role> {
        let configuration = self.configuration(id)?;
        let config = self.folder.path().join(format!("node-{}.toml", id.0));
        fs::write(&config, lean(&configuration)?)?;
        let plan = &self.plan;
        let mut host: Vec<&str> = Vec::new();
        if id.0 <= plan.replicas && plan.programs.is_none() {
            host.extend(&plan.groups);
        }
        if id.0 == 1 {
            host.extend(plan.alone);
        }
        if id.0 + plan.replicas > plan.nodes {
            host.extend(plan.on_last);
        }
        host.extend(plan.placed.iter().filter(|(_, on)| on.contains(&id.0)).map(|(it, _)| *it));
        let host = host.into_iter().map(String::from).collect();
        let when_told = !plan.placed.is_empty();
        Ok(Role::Node { config, host, when_told, doors: self.doors(id)? })
    }

    fn configuration(&mut self, id: NodeId) -> Outcome<NodeConfig> {
        let seen = self.seen.as_ref().map(|seen| &seen[id.0 as usize - 1]);
        let rings = seen.unwrap_or(&self.rings);
        let mut config =
            NodeConfig { admin: Some(self.admin(id)), ..NodeConfig::linked(id, rings) };
        let place = id.0 as usize;
        if let Some(hosts) = &self.hosts {
            // Nobody but this cluster is on these networks.
            config.insecure = true;
            config.client = Some((hosts.address(place, hosts.clients_link()), 0).into());
        } else {
            // An address from which nobody connects: its port is free as long as the cluster lives.
            config.client = Some(([127, 0, 1, u8::try_from(place)?], 0).into());
        }
        // A node that starts again is where its clients knew it.
        config.client = self.clients.remove(&id).or(config.client);
        if let Some(disks) = &self.disks {
            let of_node = |what| Some(disks.path().join(format!("node-{place}-{what}")));
            (config.data_dir, config.storage) = (of_node("data"), of_node("store"));
            if let (1, Some(data)) = (self.plan.nodes, &config.data_dir)
                && !data.exists()
            {
                node::founder::mark(data)?;
            }
        }
        let plan = &self.plan;
        config.ring.parking = !plan.classic;
        config.ring.accelerated = plan.accelerated.unwrap_or(config.ring.accelerated);
        config.ring.slow_share = plan.slow_share.unwrap_or(config.ring.slow_share);
        let timing = &mut config.ring.timing;
        timing.token_timeout = plan.token_timeout.unwrap_or(timing.token_timeout);
        if plan.token_timeout.is_some() {
            // Silence is noticed after both.
            timing.heartbeat = timing.heartbeat.min(timing.token_timeout / 2);
        }
        let realtime = &mut config.realtime;
        match plan.class {
            Class::Ordinary => {}
            Class::Fifo(priority) => {
                (realtime.priority, realtime.executor_priority) = (priority, priority - 1);
            }
            Class::Deadline(Reserve { runtime, period, .. }) => {
                (realtime.runtime, realtime.period) = (runtime, period);
                (realtime.executor_priority, realtime.helper_priority) = (ABOVE, ABOVE);
            }
        }
        config.realtime.wake_within = plan.awake.then_some(Duration::ZERO);
        config.manager = plan.manager.unwrap_or(config.manager);
        config.registry = plan.books.registry.unwrap_or(config.registry);
        // Agents are told where images are; the node has to know that there are some.
        config.jobs.folder = plan.books.jobs.then(|| self.folder.path().join("jobs"));
        config.programs = self.programs_at_start(id);
        config.security = self.keys.node(&config, plan.protect)?;
        Ok(config)
    }

    /// The process of a node.
    fn running(&mut self, id: NodeId) -> Outcome<&mut Process> {
        Ok(self.processes.get_mut(&id).ok_or("this node does not run")?)
    }

    /// Starts a node once more, where no client knew it.
    pub fn start_node_elsewhere(&mut self, id: NodeId) -> Outcome<()> {
        self.clients.remove(&id);
        self.start_node(id)
    }

    /// The way into the control group that is a node's processor, if it is to have one.
    fn doors(&mut self, id: NodeId) -> Outcome<Vec<PathBuf>> {
        let Some((percent, slice)) = self.plan.processor else { return Ok(Vec::new()) };
        let group = match self.processors.entry(id) {
            Entry::Occupied(group) => group.into_mut(),
            Entry::Vacant(none) => none.insert(ControlGroup::new(&format!("node-{}", id.0))?),
        };
        group.limit(percent, slice)?;
        Ok(group.doors())
    }

    /// Processor time that each node has used, where each has a processor of its own.
    pub fn used(&self) -> Outcome<BTreeMap<NodeId, Duration>> {
        let running = self.processors.iter().filter(|(id, _)| self.processes.contains_key(id));
        running.map(|(id, group)| Ok((*id, group.used()?))).collect()
    }

    /// A client of this cluster.
    pub fn connect(&self) -> Outcome<Client> {
        self.connect_as("lab")
    }

    /// The same, with a certificate of this name if clients have some.
    pub fn connect_as(&self, name: &str) -> Outcome<Client> {
        let builder = match self.plan.protect {
            Protect::None => Client::builder(),
            Protect::Tls | Protect::All => Client::builder().tls(self.keys.client(name)?),
        };
        Ok(builder.connect(self.clients())?)
    }

    /// A node has a new certificate, when it reads its files again.
    pub fn renew(&mut self, id: NodeId) -> Outcome<()> {
        let config = NodeConfig { node: id, ..NodeConfig::default() };
        self.keys.node(&config, self.plan.protect).map(drop)
    }

    /// The owner of this label is denied, when nodes read that.
    pub fn deny(&self, label: &str) -> Outcome<()> {
        self.keys.deny(label)
    }

    /// Where clients connect.
    pub fn clients(&self) -> Vec<SocketAddr> {
        self.clients.values().copied().collect()
    }

    /// Where a node's clients connect.
    pub fn client(&self, id: NodeId) -> Option<SocketAddr> {
        self.clients.get(&id).copied()
    }

    /// A node's UDP address on the ring's first link.
    pub fn ring(&self, id: NodeId) -> SocketAddr {
        self.rings[id.0 as usize - 1][0]
    }

    /// The ports of the first node: the ring's, and the one at which clients come.
    pub fn ports_of_first(&self) -> Vec<u16> {
        let ring = self.rings.first().and_then(|links| links.first());
        ring.into_iter().chain(self.clients.values().next()).map(SocketAddr::port).collect()
    }

    /// The hosts that the nodes are on.
    ///
    /// # Errors
    /// They are on loopback.
    pub fn hosts(&mut self) -> Outcome<&mut Hosts> {
        Ok(self.hosts.as_mut().ok_or("these nodes have no hosts of their own (--hosts)")?)
    }

    /// A folder that lives as long as the cluster.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a node's admin socket.
    pub fn admin(&self, id: NodeId) -> PathBuf {
        self.folder.path().join(format!("node-{}.sock", id.0))
    }

    /// A connection to a node's admin socket.
    pub fn node(&self, id: NodeId) -> Outcome<Admin> {
        Ok(Admin::connect(self.admin(id))?)
    }

    /// The process of a node.
    pub fn process(&self, id: NodeId) -> Option<u32> {
        self.processes.get(&id).map(Process::id)
    }

    /// Asks a node's process.
    fn ask(&mut self, id: NodeId, question: &Question) -> Outcome<Value> {
        self.answers.remove(&id);
        self.running(id)?.ask(question)?;
        self.wait("an answer of a node's process", |cluster| cluster.answers.contains_key(&id))?;
        Ok(self.answers.remove(&id).ok_or("it was there")?)
    }

    /// The memory that each node's process has requested so far.
    pub fn allocated(&mut self) -> Outcome<Vec<Allocated>> {
        let ids: Vec<NodeId> = self.processes.keys().copied().collect();
        let one = |id| Ok(serde_json::from_value(self.ask(id, &Question::Allocated)?)?);
        ids.into_iter().map(one).collect()
    }

    /// Returns the data that an experiment's services on a node have kept since the last call.
    pub fn kept<E: Experiment>(&mut self, id: NodeId) -> Outcome<Value> {
        self.ask(id, &Question::Kept(E::NAME.into()))
    }

    /// A group's last view.
    pub fn view(&self, group: &str) -> View {
        self.views.get(group).cloned().unwrap_or_default()
    }

    /// Events of the nodes since the last call.
    pub fn take_events(&mut self) -> Vec<EventRecord> {
        while let Ok((id, line)) = self.lines.try_recv() {
            self.note(id, line);
        }
        std::mem::take(&mut self.events)
    }

    /// Sends a signal to a node's process. Returns when: just before.
    pub fn signal(&mut self, id: NodeId, signal: Signal) -> Outcome<u64> {
        let process = self.running(id)?;
        let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
        let time = wall();
        kill_process(pid.ok_or("no process id")?, signal)?;
        if signal == Signal::KILL {
            process.wait()?;
            self.processes.remove(&id);
            self.members.remove(&id);
        }
        Ok(time)
    }

    /// Waits until every group has all its replicas, with the state.
    pub fn wait_until_whole(&mut self) -> Outcome<()> {
        let Plan { replicas, groups, on_last, alone, .. } = &self.plan;
        let usual = groups.iter().chain(*on_last).map(|group| (*group, *replicas as usize));
        let usual = usual.chain(alone.iter().map(|group| (*group, 1)));
        let placed = self.plan.placed.iter().map(|(group, on)| (*group, on.len()));
        let wanted: Vec<(&str, usize)> = usual.chain(placed).collect();
        self.wait("every group to have all its replicas", |cluster| {
            wanted.iter().all(|(group, replicas)| cluster.view(group).synced == *replicas)
        })
    }

    /// Waits until all nodes but `away` are in a ring of themselves alone.
    pub fn wait_for_ring_without(&mut self, away: Option<NodeId>) -> Outcome<()> {
        let here = (1..=self.plan.nodes).map(NodeId).filter(|id| Some(*id) != away);
        let here: Vec<NodeId> = here.collect();
        self.wait("the ring of all that are there", |cluster| {
            here.iter().all(|id| cluster.members.get(id) == Some(&here.len()))
        })
    }

    /// All nodes but this one are in rings of at most so many members.
    pub fn members_at_most(&self, away: NodeId, most: usize) -> bool {
        self.members.iter().all(|(id, members)| *id == away || *members <= most)
    }

    /// Pairs of reporting node and subject of such an event, since the events were last taken.
    pub fn told_of(
        &self,
        wanted: impl Fn(&EventKind) -> Option<NodeId>,
    ) -> BTreeSet<(NodeId, NodeId)> {
        let events = self.events.iter();
        events.filter_map(|event| Some((event.node, wanted(&event.kind)?))).collect()
    }

    /// The nodes that reported such an event since the events were last taken.
    pub fn told(&self, wanted: impl Fn(&EventKind) -> bool) -> BTreeSet<NodeId> {
        let events = self.events.iter().filter(|event| wanted(&event.kind));
        events.map(|event| event.node).collect()
    }

    /// Waits until the nodes' reports make `done` true.
    pub fn wait(&mut self, what: &str, done: impl Fn(&Cluster) -> bool) -> Outcome<()> {
        let deadline = Instant::now() + TIMEOUT;
        while !done(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok((id, line)) => self.note(id, line),
                Err(_) => bail!("waited {TIMEOUT:?} for {what}"),
            }
        }
        Ok(())
    }

    fn note(&mut self, id: NodeId, line: Line) {
        match line {
            Line::Ready { ready } => {
                self.clients.insert(id, ready);
            }
            Line::Answer { answer } => {
                self.answers.insert(id, answer);
            }
            Line::Event(event) => {
                if let EventKind::Configuration { members, .. } = &event.kind
                    && self.processes.contains_key(&event.node)
                {
                    self.members.insert(event.node, members.len());
                }
                if let EventKind::View { group, view, replicas, primary } = &event.kind {
                    let known = self.views.entry(group.clone()).or_default();
                    if *view >= known.number {
                        *known = View {
                            number: *view,
                            primary: primary.map(|member| member.node),
                            synced: replicas.iter().filter(|replica| replica.synced).count(),
                            hosts: replicas.iter().map(|it| it.member.node).collect(),
                        };
                    }
                }
                self.events.push(event);
            }
        }
    }
}
