//! Worlds of the daemon, its kernel and its clients, each from a seed: reserves are made, changed,
//! refused by the host and by the kernel, taken over and lost; threads and the daemon die.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use steadfast_qos::daemon::{Connection, Daemon, Kernel, Unenforced};
use steadfast_qos::host::{Ask, Capacity, Host, Mechanism, Platform, Reserve};
use steadfast_qos::{Planted, Task};
use wire::{Random, Share};

/// Paths, for which clients of two users contend.
const PATHS: [&str; 4] = ["a/n1/plane", "a/n2/plane", "a/n1/orders", "b/n1/plane"];

/// The kernel's own admission: 95 % of two processors.
const KERNEL: Share = Share::percent(190);

/// The threads of the host, and their classes.
#[derive(Default)]
struct FakeKernel {
    classes: BTreeMap<u32, Mechanism>,
    dead: BTreeSet<u32>,
    /// Reserved by programs that the daemon does not know.
    foreign: Share,
}

impl Kernel<u32> for FakeKernel {
    fn enforce(&mut self, thread: &u32, mechanism: Mechanism) -> Result<(), Unenforced> {
        if !mechanism.is_enforced() {
            return Ok(());
        }
        if self.dead.contains(thread) {
            return Err(Unenforced::Refused("there is no such thread".into()));
        }
        if let Mechanism::Deadline(task) = mechanism {
            let others = self.classes.iter().filter(|(other, _)| *other != thread);
            let used: Share = others.filter_map(|(_, it)| deadline(it)).map(|it| it.share()).sum();
            if used + self.foreign + task.share() > KERNEL {
                return Err(Unenforced::Busy);
            }
        }
        self.classes.insert(*thread, mechanism);
        Ok(())
    }

    fn release(&mut self, thread: &u32) {
        self.classes.remove(thread);
    }

    fn limit(&mut self, _: &str, _: &u32, _: &Ask) -> Vec<String> {
        Vec::new()
    }

    fn unlimit(&mut self, _: &str) {}
}

fn deadline(mechanism: &Mechanism) -> Option<Task> {
    if let Mechanism::Deadline(task) = mechanism { Some(*task) } else { None }
}

/// A process that keeps a reserve.
#[derive(Clone)]
struct Client {
    path: &'static str,
    user: u32,
    thread: u32,
    /// Its connection, until the daemon dies.
    by: Option<Connection>,
    /// The reserve that the daemon granted last, on this connection or an earlier one.
    granted: Option<Ask>,
}

struct World {
    random: Random,
    kernel: FakeKernel,
    platform: Platform,
    planted: Planted,
    daemon: Daemon<u32>,
    clients: Vec<Client>,
    /// Connections of which the daemon has not seen the end.
    ended: VecDeque<Connection>,
    connections: u64,
    threads: u32,
    refused: u64,
    busy: u64,
}

fn daemon(platform: Platform, planted: Planted) -> Daemon<u32> {
    let capacity = Capacity {
        processors: 2,
        taken: Share::percent(5),
        most: Share::percent(90),
        memory: 0,
        devices: BTreeMap::new(),
        networks: BTreeMap::new(),
    };
    Daemon::new(Host::new(capacity, platform), planted)
}

impl World {
    fn new(seed: u64, planted: Planted) -> World {
        let mut random = Random::new(seed);
        let platform = Platform {
            deadline: random.below(4) > 0,
            fifo: if random.below(2) == 0 { 40 } else { 0 },
            ..Platform::default()
        };
        World {
            random,
            kernel: FakeKernel::default(),
            platform,
            planted,
            daemon: daemon(platform, planted),
            clients: Vec::new(),
            ended: VecDeque::new(),
            connections: 0,
            threads: 0,
            refused: 0,
            busy: 0,
        }
    }

    fn ask(&mut self) -> Ask {
        if self.random.below(8) == 0 {
            return Ask::default();
        }
        let period = Duration::from_millis(10);
        let percent = 5 + self.random.below(60) as u32;
        Ask { cpu: Some(Task::new(period * percent / 100, period)), ..Ask::default() }
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0..=2 => self.come(),
            3..=5 => self.with_client(World::change),
            6 => self.with_client(World::start_again),
            7 => self.with_client(World::go),
            8 => self.see_an_end(),
            9 => self.kernel.foreign = Share::percent(self.random.below(120)),
            10 => self.die(),
            _ => self.with_client(|world, client| {
                world.kernel.dead.insert(client.thread);
                world.kernel.classes.remove(&client.thread);
                world.go(client);
            }),
        }
    }

    /// A client comes, perhaps of a user that has no right to the path.
    fn come(&mut self) {
        let path = PATHS[self.random.below(PATHS.len() as u64) as usize];
        let user = self.random.below(2) as u32;
        if self.clients.iter().any(|it| it.path == path && it.user == user) {
            return;
        }
        let client = Client { path, user, thread: self.thread(), by: None, granted: None };
        self.change(client);
    }

    fn thread(&mut self) -> u32 {
        self.threads += 1;
        self.threads
    }

    fn with_client(&mut self, act: impl FnOnce(&mut World, Client)) {
        if self.clients.is_empty() {
            return;
        }
        let place = self.random.below(self.clients.len() as u64) as usize;
        let client = self.clients.swap_remove(place);
        act(self, client);
    }

    /// A client asks for something else, by a new connection if it has none.
    fn change(&mut self, mut client: Client) {
        let ask = self.ask();
        let by = client.by.unwrap_or_else(|| {
            self.connections += 1;
            Connection(self.connections)
        });
        client.by = Some(by);
        let before: Vec<_> =
            self.daemon.held().map(|(path, it)| (path.to_owned(), it.clone())).collect();
        let request = (client.thread, ask.clone());
        match self.daemon.reserve(&mut self.kernel, (by, client.user), client.path, request) {
            Ok(_) => client.granted = Some(ask),
            Err(denied) => {
                let after: Vec<_> =
                    self.daemon.held().map(|(path, it)| (path.to_owned(), it.clone())).collect();
                assert_eq!(before, after, "a refusal changes nothing");
                self.refused += 1;
                self.busy += u64::from(denied.why.contains("EBUSY"));
                let holds = self.daemon.held().any(|(_, it)| it.by == by);
                // A reserve that the daemon before this one gave is not held by this one. Without a
                // reserve the client goes.
                if !holds {
                    self.kernel.classes.remove(&client.thread);
                    return self.ended.push_back(by);
                }
            }
        }
        self.clients.push(client);
    }

    /// Its program starts again, by another thread: the end of its connection is seen later.
    fn start_again(&mut self, client: Client) {
        if client.by.is_none() {
            // The thread takes its class along; nobody holds it.
            self.kernel.classes.remove(&client.thread);
        }
        self.ended.extend(client.by);
        let thread = self.thread();
        self.change(Client { thread, by: None, granted: None, ..client });
    }

    fn go(&mut self, client: Client) {
        if client.by.is_none() {
            self.kernel.classes.remove(&client.thread);
        }
        self.ended.extend(client.by);
    }

    fn see_an_end(&mut self) {
        if let Some(by) = self.ended.pop_front() {
            self.daemon.leave(&mut self.kernel, by);
        }
    }

    /// The daemon is killed, and starts again. The kernel keeps what is in force; what nobody asks
    /// for again ends with its thread.
    fn die(&mut self) {
        let gone: Vec<u32> = self
            .daemon
            .held()
            .filter(|(_, held)| self.ended.contains(&held.by))
            .map(|(_, held)| held.target)
            .collect();
        self.kernel.classes.retain(|thread, _| !gone.contains(thread));
        self.ended.clear();
        self.daemon = daemon(self.platform, self.planted);
        self.clients.iter_mut().for_each(|client| client.by = None);
    }

    fn check(&self) {
        let held: BTreeMap<&str, _> = self.daemon.held().collect();
        for (path, it) in &held {
            let class = self.kernel.classes.get(&it.target);
            if it.mechanism.is_enforced() && !self.kernel.dead.contains(&it.target) {
                assert_eq!(class, Some(&it.mechanism), "{path} is in force");
            }
            let degraded = it.mechanism == Mechanism::Degraded;
            assert_eq!(degraded, !it.degraded.is_empty(), "{path}: what is degraded is told");
        }
        let host: Vec<(&str, &Ask)> =
            self.daemon.host().reserves().map(|(path, Reserve { ask, .. })| (path, ask)).collect();
        let asks: Vec<(&str, &Ask)> = held.iter().map(|(path, it)| (*path, &it.ask)).collect();
        assert_eq!(host, asks, "the host counts what is held");
        for client in &self.clients {
            let (Some(by), Some(ask)) = (client.by, &client.granted) else { continue };
            let its = held.get(client.path).filter(|it| it.by == by);
            assert!(its.is_some_and(|it| it.ask == *ask), "{} is held as granted", client.path);
        }
        for thread in self.kernel.classes.keys() {
            let is_held = held.values().any(|it| it.target == *thread);
            let waits = self.clients.iter().any(|it| it.thread == *thread && it.by.is_none());
            assert!(is_held || waits, "thread {thread} has a class that nobody holds");
        }
    }
}

/// Runs one world. Gives the refusals, and those by the kernel.
fn run(seed: u64, planted: Planted) -> (u64, u64) {
    let mut world = World::new(seed, planted);
    for _ in 0..120 {
        world.step();
        world.check();
    }
    (world.refused, world.busy)
}

#[test]
fn every_reserve_is_as_it_was_told() {
    let (mut refused, mut busy) = (0, 0);
    for seed in 0..3_000 {
        let told = run(seed, Planted::default());
        (refused, busy) = (refused + told.0, busy + told.1);
    }
    assert!(refused > 10_000 && busy > 1_000, "{refused} refused, {busy} by the kernel");
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_mistakes_are_found() {
    for bug in steadfast_qos::Bug::all() {
        let wrong = |seed: &u64| {
            let run = || run(*seed, Some(bug).into());
            std::panic::catch_unwind(run).is_err()
        };
        assert!((0..500).any(|seed| wrong(&seed)), "{bug:?} goes unnoticed");
    }
}
