//! The run from the first process to the last: cluster, clients, faults, audit.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use node::Status;
use steadfast::{Client, Tls};

use super::message::Progress as Count;
use super::network::{Network, StationId};
use super::outcome::{Findings, Outcome, Replica, evaluate};
use super::paint::{counted, grouped};
use super::plan::{GROUP, Plan};
use super::process::Who;
use super::progress::Progress;
use super::service::{Board, PassengersClient};
use super::stage::{Failure, Stage};
use super::{clients, clock, watch};

/// Processes are started, connected and asked within this time, or something is wrong.
pub const TIMEOUT: Duration = Duration::from_secs(15);

/// How often statuses are asked for while something is waited for.
pub const POLL: Duration = Duration::from_millis(20);

/// From the order to begin until the first call is due.
const RUN_UP: u64 = 200_000_000;

/// From then on until what nodes tell of their use has events in it.
const SETTLED: u64 = 800_000_000;

/// Times that the cluster is begun anew when another program takes a port in between.
const TRIES: u32 = 3;

/// Queries of all displays in a second.
const QUERIES: f64 = 70.0;

/// A run that is under way.
pub struct Run<'a> {
    /// The run's plan.
    pub plan: &'a Plan,
    /// The processes.
    pub stage: Stage,
    /// When the traffic began, or 0.
    pub started: u64,
    progress: Progress,
    doing: String,
    interrupt: Arc<AtomicUsize>,
}

/// Runs the whole demo.
pub fn conduct(plan: &Plan, interrupt: Arc<AtomicUsize>) -> Result<Outcome, Failure> {
    let network = Network::porto();
    let stage = Stage::new(plan, interrupt.clone())?;
    let (progress, doing) = (Progress::new(), String::new());
    let mut run = Run { plan, stage, started: 0, progress, doing, interrupt };
    run.start_cluster()?;
    if plan.keep {
        let folder = run.stage.keep().display().to_string();
        run.now(format!("records and logs are kept in {folder}"));
    }
    let mut choice = run.choose()?;
    let clients = run.start_clients(&network)?;
    run.started = clock::now() + RUN_UP;
    run.stage.go(run.started)?;
    run.now("events flow");
    if let Some(choice) = &mut choice {
        // No fault is as early, and what a node tells of itself is of a window that is over.
        run.wait_until(run.started + SETTLED)?;
        choice.used_percent = run.used(choice.busy);
    }
    let faults = run.play_faults()?;
    run.finish_clients()?;
    run.now("comparing what the sensors wrote down with every replica's state");
    let replicas = run.replicas()?;
    let boards = run.boards(&network)?;
    run.stage.stop_nodes()?;
    let records = clients.iter().map(|&who| (who, run.stage.records(who))).collect();
    let (start, seen) = (run.started, std::mem::take(&mut run.stage.seen));
    let findings = Findings { start, choice, faults, seen, records, replicas, boards };
    evaluate(plan, network, findings).map_err(Failure::io("the clients' records cannot be read"))
}

impl Run<'_> {
    /// Says what goes on, and keeps saying it.
    pub fn now(&mut self, doing: impl Into<String>) {
        self.doing = doing.into();
        if self.started != 0 {
            let paint = self.progress.paint();
            let at = paint.dim(&format!("{:6.2} s ", self.seconds()));
            self.progress.note(&format!("{at} {}", self.doing));
        } else {
            self.progress.note(&format!("{:9} {}", "", self.doing));
        }
        self.draw();
    }

    /// Seconds since the traffic began.
    pub fn seconds(&self) -> f64 {
        clock::now().saturating_sub(self.started) as f64 / 1e9
    }

    fn draw(&mut self) {
        if self.started == 0 {
            return;
        }
        let Count { sent, acknowledged, failed } = self.stage.progress();
        let paint = self.progress.paint();
        let seconds = self.seconds().min(self.plan.seconds);
        let width = 24;
        let done = (seconds / self.plan.seconds * f64::from(width)) as usize;
        let bar = paint.good(&"━".repeat(done)) + &paint.dim(&"─".repeat(width as usize - done));
        let failed =
            if failed > 0 { paint.bad(&format!("  {failed} failed")) } else { String::new() };
        self.progress.show(&format!(
            "{seconds:6.2} s  {bar}  {} events sent, {} acknowledged{failed}",
            grouped(sent),
            grouped(acknowledged),
        ));
    }

    /// Listens until something is so, or until it is too late for it.
    pub fn wait(
        &mut self,
        what: &str,
        within: Duration,
        mut known: impl FnMut(&mut Self) -> Result<Option<String>, Failure>,
    ) -> Result<(), Failure> {
        let limit = Instant::now() + within;
        loop {
            self.stage.listen(POLL)?;
            self.draw();
            let Some(known) = known(self)? else { return Ok(()) };
            if Instant::now() > limit {
                return Err(Failure::Late { what: what.to_owned(), within, known });
            }
        }
    }

    /// Listens until a moment of the run.
    pub fn wait_until(&mut self, moment: u64) -> Result<(), Failure> {
        loop {
            let left = clock::until(moment);
            if left.is_zero() {
                return Ok(());
            }
            self.stage.listen(left)?;
            self.draw();
        }
    }

    /// The status of any node that answers, other than this one.
    pub fn status(&self, other_than: Option<u32>) -> Option<Status> {
        let nodes = self.stage.nodes().into_iter().filter(|&node| Some(node) != other_than);
        nodes.into_iter().find_map(|node| watch::status(&self.stage.admin(node)).ok())
    }

    fn start_cluster(&mut self) -> Result<(), Failure> {
        let Plan { nodes, replicas, .. } = *self.plan;
        self.now(format!(
            "starting {}, deploying {}",
            counted(nodes, "node"),
            counted(replicas, "replica")
        ));
        let mut tries = 1;
        loop {
            match self.start_nodes() {
                // Most likely another program took one of the ports.
                Err(Failure::Ended { who, why, .. }) if tries < TRIES => {
                    self.now(format!("{who} did not start ({why}): all anew on other ports"));
                    self.stage = Stage::new(self.plan, self.interrupt.clone())?;
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    fn start_nodes(&mut self) -> Result<(), Failure> {
        for node in 1..=self.plan.nodes {
            self.stage.start_node(node)?;
        }
        let nodes = self.stage.nodes();
        self.wait("the start of the nodes", TIMEOUT, |run| {
            let ready = nodes.iter().filter(|&&node| run.stage.node_ready(node)).count();
            Ok((ready < nodes.len()).then(|| format!("{ready} are ready")))
        })?;
        self.deploy()
    }

    fn start_clients(&mut self, network: &Network) -> Result<Vec<Who>, Failure> {
        let stations = network.stations.len();
        self.now(format!("connecting {} sensors and {stations} displays", network.sensors.len()));
        let addresses: Vec<String> =
            self.stage.client_addresses().iter().map(ToString::to_string).collect();
        let nanos = (self.plan.seconds * 1e9) as u64;
        let seed = self.plan.seed;
        let assignment = |who, rate: f64, stage: &Stage| {
            let keys = stage.client_keys();
            let keys = keys.map(|folder| format!("--keys={}", folder.display()));
            let mut arguments = vec![
                format!("--nodes={}", addresses.join(",")),
                format!("--nanos={nanos}"),
                format!("--rate={rate}"),
                format!("--seed={seed}"),
                format!("--records={}", stage.records(who).display()),
            ];
            arguments.extend(keys);
            arguments
        };
        let mut clients = Vec::new();
        for line in 0..network.lines.len() as u8 {
            let who = Who::Sensors(line);
            let own = network.sensors.iter().filter(|sensor| sensor.line.0 == line).count();
            let rate = self.plan.rate * own as f64 / network.sensors.len() as f64;
            let mut arguments = vec!["sensors".to_owned(), format!("--line={line}")];
            arguments.extend(assignment(who, rate, &self.stage));
            clients.push(self.stage.start(who, arguments)?);
        }
        let mut arguments = vec!["displays".to_owned()];
        arguments.extend(assignment(Who::Displays, QUERIES, &self.stage));
        clients.push(self.stage.start(Who::Displays, arguments)?);
        self.wait("the start of the clients", TIMEOUT, |run| {
            let ready = clients.iter().filter(|&&who| run.stage.ready(who)).count();
            Ok((ready < clients.len()).then(|| format!("{ready} are ready")))
        })?;
        Ok(clients)
    }

    /// The clients stop by themselves when their time is over and every call is settled.
    fn finish_clients(&mut self) -> Result<(), Failure> {
        self.wait_until(self.started + (self.plan.seconds * 1e9) as u64)?;
        self.now("the sensors fall silent, outstanding calls settle");
        self.wait("the settling of all calls", clients::DEADLINE + TIMEOUT, |run| {
            let Count { sent, acknowledged, failed } = run.stage.progress();
            let open = sent - acknowledged - failed;
            Ok((!run.stage.clients_done()).then(|| format!("{open} events are open")))
        })
    }

    /// Every replica's state, once all have executed the same requests.
    fn replicas(&mut self) -> Result<Vec<Replica>, Failure> {
        let mut statuses = Vec::new();
        let settled = self.wait("an equal number of executed requests", TIMEOUT, |run| {
            let before = std::mem::take(&mut statuses);
            statuses = run.replica_statuses();
            let equal = statuses.windows(2).all(|pair| pair[0].2 == pair[1].2);
            Ok((!equal || before != statuses).then(|| format!("executed: {statuses:?}")))
        });
        match settled {
            // The audit reports their differences.
            Ok(()) | Err(Failure::Late { .. }) => {}
            Err(failure) => return Err(failure),
        }
        let mut replicas = Vec::new();
        for (node, primary, executed) in statuses {
            let state = watch::state(&self.stage.admin(node), GROUP);
            let state = state.map_err(Failure::admin(format!("node {node} gives no state")))?;
            let replica = Replica::new(node, primary, executed, &state);
            replicas.push(replica.map_err(|why| {
                Failure::Answer(format!("the state of node {node} cannot be read: {why}"))
            })?);
        }
        Ok(replicas)
    }

    /// Node, whether it is the primary, and executed requests, of each replica with the state.
    fn replica_statuses(&self) -> Vec<(u32, bool, u64)> {
        let mut found = Vec::new();
        for node in self.stage.nodes() {
            let Ok(status) = watch::status(&self.stage.admin(node)) else { continue };
            let Some(group) = status.groups.iter().find(|group| group.name == GROUP) else {
                continue;
            };
            let synced = |r: &node::ReplicaStatus| r.node.0 == node && r.synced;
            if let (true, Some(executed)) = (group.replicas.iter().any(synced), group.executed) {
                let primary = group.primary.is_some_and(|primary| primary.node.0 == node);
                found.push((node, primary, executed));
            }
        }
        found
    }

    /// The boards to show: the main interchange, and the station with most to tell.
    fn boards(&mut self, network: &Network) -> Result<Vec<Board>, Failure> {
        let answer = |why: String| Failure::Answer(format!("no board is shown: {why}"));
        let mut builder = Client::builder();
        if let Some(folder) = self.stage.client_keys() {
            let tls = Tls::from_dir(folder).map_err(|error| answer(error.to_string()))?;
            builder = builder.tls(tls);
        }
        let client = builder.connect(self.stage.client_addresses());
        let client = client.map_err(|error| answer(error.to_string()))?;
        let passengers = PassengersClient::new(&client, GROUP);
        let mut boards = Vec::new();
        for station in 0..network.stations.len() {
            let board = passengers.display(StationId(station as u16));
            boards.push(board.map_err(|error| answer(error.to_string()))?);
        }
        let main = network.station_named("Trindade").expect("it is in the data file");
        let tells = |board: &Board| (board.alarms.len(), board.malfunctions.len());
        boards.sort_by_key(|board| (board.station != main, std::cmp::Reverse(tells(board))));
        boards.truncate(2);
        Ok(boards)
    }
}
