//! A cluster of node processes on this machine, and what its nodes tell.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use node::{EventKind, EventRecord, free_ring_addresses};
use rustix::process::{Pid, Signal, kill_process};
use steadfast::{Client, NodeConfig, NodeId, ViewNumber};
use tempfile::TempDir;

use crate::Outcome;
use crate::child::{self, Line};
use crate::protect::{Keys, Protect};

/// How long the cluster may take for anything. Far beyond what is healthy.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a cluster consists of.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Node processes.
    pub nodes: u32,
    /// Replicas of each group, on the first nodes.
    pub replicas: u32,
    /// The groups: `thread`, `inline`, or both.
    pub groups: &'static [&'static str],
    /// What of it is protected.
    pub protect: Protect,
}

/// A group's membership, as its nodes last told it.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Its number.
    pub number: ViewNumber,
    /// The primary's node.
    pub primary: Option<NodeId>,
    /// Replicas that have the state.
    pub synced: usize,
}

/// The processes.
pub struct Cluster {
    plan: Plan,
    folder: TempDir,
    keys: Keys,
    rings: Vec<SocketAddr>,
    processes: BTreeMap<NodeId, Child>,
    clients: BTreeMap<NodeId, SocketAddr>,
    lines: Receiver<(NodeId, Line)>,
    sender: Sender<(NodeId, Line)>,
    views: BTreeMap<String, View>,
    events: Vec<EventRecord>,
}

/// The wall clock as events have it: nanoseconds since the Unix epoch.
pub fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Cluster {
    /// Starts the nodes and waits until every group has all its replicas.
    pub fn start(plan: Plan) -> Outcome<Cluster> {
        let (sender, lines) = channel();
        let folder = TempDir::new()?;
        let mut cluster = Cluster {
            plan,
            keys: Keys::new(folder.path())?,
            folder,
            rings: free_ring_addresses(plan.nodes as usize),
            processes: BTreeMap::new(),
            clients: BTreeMap::new(),
            lines,
            sender,
            views: BTreeMap::new(),
            events: Vec::new(),
        };
        for id in 1..=plan.nodes {
            cluster.start_node(NodeId(id))?;
        }
        cluster.wait_until_whole()?;
        Ok(cluster)
    }

    /// Starts a node, for the first time or once more.
    pub fn start_node(&mut self, id: NodeId) -> Outcome<()> {
        let mut config =
            NodeConfig { admin: Some(self.admin(id)), ..NodeConfig::member(id, &self.rings) };
        config.security = self.keys.node(&config, self.plan.protect)?;
        let path = self.folder.path().join(format!("node-{}.toml", id.0));
        fs::write(&path, config.to_toml())?;
        let path = path.to_str().ok_or("the folder for temporary files is not UTF-8")?;
        let mut arguments = vec!["--config", path];
        if id.0 <= self.plan.replicas {
            arguments.extend(self.plan.groups.iter().flat_map(|group| ["--host", group]));
        }
        let (process, stdin, stdout) = child::spawn("node", &arguments)?;
        // The child ends by a signal, not by the end of its input.
        drop(stdin);
        let sender = self.sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Ok(line) = serde_json::from_str(&line) else { continue };
                if sender.send((id, line)).is_err() {
                    break;
                }
            }
        });
        self.clients.remove(&id);
        self.processes.insert(id, process);
        self.wait("a node to be ready", |cluster| cluster.clients.contains_key(&id))
    }

    /// A client of this cluster.
    pub fn connect(&self) -> Outcome<Client> {
        let builder = match self.plan.protect {
            Protect::None => Client::builder(),
            Protect::Tls | Protect::All => Client::builder().tls(self.keys.client()?),
        };
        Ok(builder.connect(self.clients())?)
    }

    /// Where clients connect.
    pub fn clients(&self) -> Vec<SocketAddr> {
        self.clients.values().copied().collect()
    }

    /// Where a node's clients connect.
    pub fn client(&self, id: NodeId) -> Option<SocketAddr> {
        self.clients.get(&id).copied()
    }

    /// A node's UDP address on the ring.
    pub fn ring(&self, id: NodeId) -> SocketAddr {
        self.rings[id.0 as usize - 1]
    }

    /// The path of a node's admin socket.
    pub fn admin(&self, id: NodeId) -> PathBuf {
        self.folder.path().join(format!("node-{}.sock", id.0))
    }

    /// The process of a node.
    pub fn process(&self, id: NodeId) -> Option<u32> {
        self.processes.get(&id).map(Child::id)
    }

    /// A group's last view.
    pub fn view(&self, group: &str) -> View {
        self.views.get(group).cloned().unwrap_or_default()
    }

    /// What the nodes told since the last call.
    pub fn take_events(&mut self) -> Vec<EventRecord> {
        while let Ok((id, line)) = self.lines.try_recv() {
            self.note(id, line);
        }
        std::mem::take(&mut self.events)
    }

    /// Sends a signal to a node's process. Returns when: just before.
    pub fn signal(&mut self, id: NodeId, signal: Signal) -> Outcome<u64> {
        let process = self.processes.get_mut(&id).ok_or("this node does not run")?;
        let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
        let time = wall();
        kill_process(pid.ok_or("no process id")?, signal)?;
        if signal == Signal::KILL {
            process.wait()?;
            self.processes.remove(&id);
        }
        Ok(time)
    }

    /// Waits until every group has all its replicas, with the state.
    pub fn wait_until_whole(&mut self) -> Outcome<()> {
        let Plan { replicas, groups, .. } = self.plan;
        self.wait("every group to have all its replicas", |cluster| {
            groups.iter().all(|group| cluster.view(group).synced == replicas as usize)
        })
    }

    /// Waits until what the nodes tell makes `done` true.
    pub fn wait(&mut self, what: &str, done: impl Fn(&Cluster) -> bool) -> Outcome<()> {
        let deadline = Instant::now() + PATIENCE;
        while !done(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok((id, line)) => self.note(id, line),
                Err(_) => return Err(format!("waited {PATIENCE:?} for {what}").into()),
            }
        }
        Ok(())
    }

    fn note(&mut self, id: NodeId, line: Line) {
        match line {
            Line::Ready { ready } => {
                self.clients.insert(id, ready);
            }
            Line::Event(event) => {
                if let EventKind::View { group, view, replicas, primary } = &event.kind {
                    let known = self.views.entry(group.clone()).or_default();
                    if *view >= known.number {
                        *known = View {
                            number: *view,
                            primary: primary.map(|member| member.node),
                            synced: replicas.iter().filter(|replica| replica.synced).count(),
                        };
                    }
                }
                self.events.push(event);
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.processes.values_mut() {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
