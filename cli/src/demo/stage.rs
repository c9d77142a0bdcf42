//! The processes of a run and the folder that they work in. Nothing of it outlasts the run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use node::admin::AdminError;
use tempfile::TempDir;

use super::message::{Order, Progress, Tale};
use super::plan::{CLUSTER, Plan};
use super::process::{Process, Who};
use super::timeline::NodeEvent;
use super::watch;
use crate::commands::init;

/// How often the conductor looks after its processes and draws its progress.
const BEAT: Duration = Duration::from_millis(20);

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user, or the system, wants it to end.
    #[error("interrupted")]
    Interrupted(usize),
    /// Files, pipes, processes.
    #[error("{what}: {error}")]
    Io {
        /// The operation that failed.
        what: String,
        /// Its error.
        error: io::Error,
    },
    /// A process ended that should not have.
    #[error("{who} ended unexpectedly: {why}\n{log}")]
    Ended {
        /// Which.
        who: String,
        /// Its last words.
        why: String,
        /// The end of its log.
        log: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {within:?}; {known}")]
    Late {
        /// The awaited event.
        what: String,
        /// How long.
        within: Duration,
        /// The state so far.
        known: String,
    },
    /// A node's admin socket.
    #[error("{what}: {error}")]
    Admin {
        /// The operation that failed.
        what: String,
        /// Its error.
        error: AdminError,
    },
    /// A replica's state, or an answer, is no use.
    #[error("{0}")]
    Answer(String),
}

impl Failure {
    /// For `map_err`.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        let what = what.into();
        move |error| Failure::Io { what, error }
    }

    /// For `map_err`.
    pub fn admin(what: impl Into<String>) -> impl FnOnce(AdminError) -> Failure {
        let what = what.into();
        move |error| Failure::Admin { what, error }
    }
}

/// A running process and its state.
struct Actor {
    process: Process,
    ready: bool,
    client: Option<SocketAddr>,
    done: bool,
    progress: Progress,
}

/// Both ends of a channel: one to give away, one to listen at.
type Both<T> = (Sender<T>, Receiver<T>);

/// Everything that runs.
pub struct Stage {
    // Fields are dropped in order: the processes go before the folder that they write into.
    actors: BTreeMap<Who, Actor>,
    tales: Both<(Who, Tale)>,
    events: Both<NodeEvent>,
    lives: BTreeMap<u32, u32>,
    interrupt: Arc<AtomicUsize>,
    rings: Vec<SocketAddr>,
    /// The folder that `steadfast init` made, if the run is a secure one.
    keys: Option<PathBuf>,
    /// Events that nodes have reported so far.
    pub seen: Vec<NodeEvent>,
    folder: TempDir,
}

impl Stage {
    /// An empty stage for a plan's nodes. All ends when `interrupt` is not 0 any more.
    pub fn new(plan: &Plan, interrupt: Arc<AtomicUsize>) -> Result<Stage, Failure> {
        let Plan { nodes, secure, .. } = *plan;
        let folder = tempfile::Builder::new().prefix("steadfast-demo-").tempdir();
        let folder = folder.map_err(Failure::io("no temporary folder can be made"))?;
        let rings = node::free_ring_addresses(nodes as usize);
        let keys = secure.then(|| folder.path().join("keys"));
        if let Some(keys) = &keys {
            let count = u8::try_from(nodes).expect("a demo has few nodes");
            init::trial(keys, CLUSTER, count)
                .map_err(|error| Failure::Answer(format!("no keys can be made: {error:?}")))?;
        }
        Ok(Stage {
            actors: BTreeMap::new(),
            tales: channel(),
            events: channel(),
            lives: BTreeMap::new(),
            interrupt,
            rings,
            keys,
            seen: Vec::new(),
            folder,
        })
    }

    /// Lets the folder outlast the run.
    pub fn keep(&mut self) -> &Path {
        self.folder.disable_cleanup(true);
        self.folder.path()
    }

    /// Where node `node` takes questions.
    pub fn admin(&self, node: u32) -> PathBuf {
        self.folder.path().join(format!("node-{node}.sock"))
    }

    /// The folder with the keys that a client needs, in a secure run.
    pub fn client_keys(&self) -> Option<PathBuf> {
        self.keys.as_ref().map(|keys| keys.join("client-app"))
    }

    /// Where a client process writes down its calls.
    pub fn records(&self, who: Who) -> PathBuf {
        self.folder.path().join(format!("{}.records", file_name(who)))
    }

    /// Starts a node, in its next life.
    pub fn start_node(&mut self, node: u32) -> Result<Who, Failure> {
        let life = self.lives.entry(node).or_insert(0);
        *life += 1;
        let who = Who::Node(node, *life);
        let text = |path: &Path| path.display().to_string();
        let rings: Vec<String> = self.rings.iter().map(SocketAddr::to_string).collect();
        let mut arguments = vec![
            "node".to_owned(),
            format!("--node={node}"),
            format!("--rings={}", rings.join(",")),
            format!("--admin={}", text(&self.admin(node))),
            format!("--data={}", text(&self.folder.path().join(format!("node-{node}")))),
        ];
        if let Some(keys) = &self.keys {
            arguments.push(format!("--keys={}", text(&keys.join(format!("node-{node}")))));
        }
        self.start(who, arguments)
    }

    /// Starts a process of the demo.
    pub fn start(&mut self, who: Who, mut arguments: Vec<String>) -> Result<Who, Failure> {
        arguments.insert(0, "demo".to_owned());
        let log = File::create(self.log(who)).map_err(Failure::io("no log can be made"))?;
        let process = Process::start(who, &arguments, log, self.tales.0.clone())
            .map_err(Failure::io(format!("{} cannot be started", name(who))))?;
        let progress = Progress::default();
        self.actors
            .insert(who, Actor { process, ready: false, client: None, done: false, progress });
        Ok(who)
    }

    fn log(&self, who: Who) -> PathBuf {
        self.folder.path().join(format!("{}.log", file_name(who)))
    }

    /// Listens to what happens for so long.
    pub fn listen(&mut self, pause: Duration) -> Result<(), Failure> {
        let end = Instant::now() + pause.min(BEAT);
        loop {
            let interrupt = self.interrupt.load(Ordering::Relaxed);
            if interrupt != 0 {
                return Err(Failure::Interrupted(interrupt));
            }
            match self.tales.1.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((who, tale)) => self.hear(who, tale)?,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the stage holds a sender"),
            }
        }
        self.seen.extend(self.events.1.try_iter());
        self.look_after()
    }

    fn hear(&mut self, who: Who, tale: Tale) -> Result<(), Failure> {
        // The process was killed meanwhile: ignore its message.
        let Some(actor) = self.actors.get_mut(&who) else { return Ok(()) };
        match tale {
            Tale::Ready(client) => {
                actor.ready = true;
                actor.client = client;
                if let Who::Node(node, _) = who {
                    watch::follow(node, &self.admin(node), self.events.0.clone())
                        .map_err(Failure::admin(format!("{} is not heard", name(who))))?;
                }
            }
            Tale::Progress(progress) => actor.progress = progress,
            Tale::Done => actor.done = true,
            Tale::Failed(why) => return Err(self.ended(who, why)),
        }
        Ok(())
    }

    /// A process that ended before it was done takes the run with it.
    fn look_after(&mut self) -> Result<(), Failure> {
        let mut lost = None;
        for (&who, actor) in &mut self.actors {
            let ended = actor.process.ended();
            let ended = ended.map_err(Failure::io(format!("{} is not known", name(who))))?;
            lost =
                lost.or(ended.filter(|end| !(actor.done && end.success())).map(|end| (who, end)));
        }
        let Some((who, status)) = lost else { return Ok(()) };
        // Its last words may still be on the way.
        while let Ok((formatter, tale)) = self.tales.1.recv_timeout(Duration::from_millis(100)) {
            self.hear(formatter, tale)?;
            if status.success() && self.actors.get(&who).is_some_and(|actor| actor.done) {
                return Ok(());
            }
        }
        Err(self.ended(who, status.to_string()))
    }

    fn ended(&self, who: Who, why: String) -> Failure {
        let log = std::fs::read_to_string(self.log(who)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let log = lines[lines.len().saturating_sub(20)..].join("\n");
        Failure::Ended { who: name(who), why, log }
    }

    /// Whether this process has said that it is ready.
    pub fn ready(&self, who: Who) -> bool {
        self.actors.get(&who).is_some_and(|actor| actor.ready)
    }

    /// Whether this node has said that it is ready, in its present life.
    pub fn node_ready(&self, node: u32) -> bool {
        self.lives.get(&node).is_some_and(|&life| self.ready(Who::Node(node, life)))
    }

    /// Whether all client processes have said that they are done.
    pub fn clients_done(&self) -> bool {
        self.clients().all(|(_, actor)| actor.done)
    }

    fn clients(&self) -> impl Iterator<Item = (Who, &Actor)> {
        let clients = self.actors.iter().filter(|(who, _)| !matches!(who, Who::Node(..)));
        clients.map(|(&who, actor)| (who, actor))
    }

    /// Where the nodes take clients.
    pub fn client_addresses(&self) -> Vec<SocketAddr> {
        self.actors.values().filter_map(|actor| actor.client).collect()
    }

    /// Events of all sensors so far.
    pub fn progress(&self) -> Progress {
        let mut sum = Progress::default();
        for (who, actor) in self.clients() {
            if matches!(who, Who::Sensors(_)) {
                sum.sent += actor.progress.sent;
                sum.acknowledged += actor.progress.acknowledged;
                sum.failed += actor.progress.failed;
            }
        }
        sum
    }

    /// Tells a process what to do.
    pub fn order(&mut self, who: Who, order: Order) -> Result<(), Failure> {
        let actor = self.actors.get_mut(&who).expect("it was started");
        let told = actor.process.order(order);
        told.map_err(Failure::io(format!("{} cannot be told anything", name(who))))
    }

    /// Tells a node that runs what to do.
    pub fn order_node(&mut self, node: u32, order: Order) -> Result<(), Failure> {
        self.order(Who::Node(node, self.lives[&node]), order)
    }

    /// Tells all clients to begin at this moment.
    pub fn go(&mut self, moment: u64) -> Result<(), Failure> {
        let clients: Vec<Who> = self.clients().map(|(who, _)| who).collect();
        clients.into_iter().try_for_each(|who| self.order(who, Order::Go(moment)))
    }

    /// The nodes that run now.
    pub fn nodes(&self) -> Vec<u32> {
        let node = |who: &Who| match who {
            Who::Node(node, _) => Some(*node),
            _ => None,
        };
        self.actors.keys().filter_map(node).collect()
    }

    /// The process of a node that runs.
    pub fn process(&self, node: u32) -> Option<&Process> {
        let who = Who::Node(node, *self.lives.get(&node)?);
        self.actors.get(&who).map(|actor| &actor.process)
    }

    /// Forgets the process of a node that was killed.
    pub fn bury(&mut self, node: u32) {
        if let Some(life) = self.lives.get(&node) {
            self.actors.remove(&Who::Node(node, *life));
        }
    }

    /// Ends the nodes in order, so that a failing clean stop is seen too.
    pub fn stop_nodes(&mut self) -> Result<(), Failure> {
        for node in self.nodes() {
            let who = Who::Node(node, self.lives[&node]);
            self.order(who, Order::Stop)?;
            // From here on it may end.
            self.actors.get_mut(&who).expect("it was just told").done = true;
        }
        let limit = Instant::now() + Duration::from_secs(5);
        loop {
            let mut running = Vec::new();
            for (&who, actor) in &mut self.actors {
                let ended = actor.process.ended();
                if ended.map_err(Failure::io(format!("{} is not known", name(who))))?.is_none() {
                    running.push(name(who));
                }
            }
            if running.is_empty() {
                return Ok(());
            }
            if Instant::now() > limit {
                let (what, within) = ("a clean stop".to_owned(), Duration::from_secs(5));
                let known = format!("{} still runs", running.join(", "));
                return Err(Failure::Late { what, within, known });
            }
            self.listen(BEAT)?;
        }
    }
}

/// The words for people.
pub fn name(who: Who) -> String {
    match who {
        Who::Node(node, _) => format!("node {node}"),
        Who::Sensors(line) => format!("the sensors of line {}", (b'A' + line) as char),
        Who::Displays => "the displays".to_owned(),
    }
}

fn file_name(who: Who) -> String {
    match who {
        Who::Node(node, life) => format!("node-{node}-{life}"),
        Who::Sensors(line) => format!("sensors-{line}"),
        Who::Displays => "displays".to_owned(),
    }
}
