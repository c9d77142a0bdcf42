//! A task for exactly one of several instances: `cargo run -p steadfast --example leader_task`
//!
//! A report is due at every tick, and any of three instances can write it. An instance claims the
//! oldest tick that is due from a replicated group, and gets a lease. If it dies, the lease ends
//! and another instance claims the tick. The group accepts one report for each tick, so an instance
//! that outlives its lease cannot publish a second one. No instance asks which node is the primary.
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use steadfast::{Client, Context, HostOptions, Node, NodeConfig, NodeId, Time};

const PERIOD: Duration = Duration::from_millis(200);
const LEASE: Duration = Duration::from_secs(1);
const TICKS: u64 = 10;
/// The instance that claims this tick dies before it does the work.
const DEADLY: u64 = 4;
const PAUSE: Duration = Duration::from_millis(20);
/// The example fails if anything takes longer.
const TIMEOUT: Duration = Duration::from_secs(20);

#[steadfast::service]
trait Schedule {
    /// Gives the oldest tick that is due and that nobody works on, if there is one.
    fn claim(&mut self, context: &Context, instance: u32) -> Option<u64>;
    /// Publishes the report of a tick; `false` if the instance does not hold the tick any more.
    fn publish(&mut self, tick: u64, instance: u32, report: String) -> bool;
    /// The instance and the report of each tick.
    fn reports(&self) -> BTreeMap<u64, (u32, String)>;
}

#[derive(Default, Serialize, Deserialize)]
struct Ticks {
    /// The time of tick 0, which is that of the first claim.
    began: Option<u64>,
    /// The instance that works on a tick, and the end of its lease.
    claims: BTreeMap<u64, (u32, u64)>,
    reports: BTreeMap<u64, (u32, String)>,
}

impl Schedule for Ticks {
    /// All replicas must do the same: the clock is the context's, not the host's.
    fn claim(&mut self, context: &Context, instance: u32) -> Option<u64> {
        let now = context.now();
        let began = *self.began.get_or_insert(now.0);
        let due = now.since(Time(began)).as_nanos() / PERIOD.as_nanos();
        let free = |tick: &u64| {
            let leased = self.claims.get(tick).is_some_and(|&(_, end)| now.0 < end);
            !leased && !self.reports.contains_key(tick)
        };
        let tick = (0..TICKS).take_while(|&tick| u128::from(tick) <= due).find(free)?;
        self.claims.insert(tick, (instance, (now + LEASE).0));
        Some(tick)
    }

    fn publish(&mut self, tick: u64, instance: u32, report: String) -> bool {
        let holds = self.claims.get(&tick).is_some_and(|&(holder, _)| holder == instance);
        if holds {
            self.claims.remove(&tick);
            self.reports.insert(tick, (instance, report));
        }
        holds
    }

    fn reports(&self) -> BTreeMap<u64, (u32, String)> {
        self.reports.clone()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rings = steadfast::free_ring_addresses(3);
    let mut nodes = Vec::new();
    for id in 1..=3 {
        let node = Node::start(NodeConfig::member(NodeId(id), &rings))?;
        node.host("schedule", HostOptions::default(), || ScheduleService::new(Ticks::default()))?;
        nodes.push(node);
    }
    nodes[0].wait_for_replicas("schedule", 3, TIMEOUT)?;

    let addresses: Vec<_> = nodes.iter().filter_map(Node::client_address).collect();
    let client = Client::connect(&addresses)?;
    let schedule = ScheduleClient::new(&client, "schedule").within(TIMEOUT);

    // Each instance has a node and a client, as in a process of its own.
    let mut instances = Vec::new();
    for node in nodes {
        let client = Client::connect(&addresses)?;
        let schedule = ScheduleClient::new(&client, "schedule").within(TIMEOUT);
        instances.push(thread::spawn(move || work(node, &schedule)));
    }
    let (mut alive, mut published) = (Vec::new(), Vec::new());
    for instance in instances {
        let (node, ticks) = instance.join().expect("no instance panics");
        alive.extend(node);
        published.extend(ticks);
    }

    published.sort_unstable();
    assert_eq!(alive.len(), 2, "one instance has died");
    assert_eq!(published, (0..TICKS).collect::<Vec<_>>(), "each tick once, and none is missing");
    let reports = schedule.reports()?;
    assert!(reports.keys().eq(&published), "the group has them all");
    println!("{TICKS} ticks, {} reports, 1 dead instance", reports.len());
    Ok(())
}

/// Works until all reports are there. Returns the node, unless the instance has died, and the ticks
/// of the reports that the group has accepted.
fn work(node: Node, schedule: &ScheduleClient) -> (Option<Node>, Vec<u64>) {
    static DIED: AtomicBool = AtomicBool::new(false);
    let instance = node.id().0;
    let deadline = Instant::now() + TIMEOUT;
    let mut published = Vec::new();
    while schedule.reports().expect("two nodes are up").len() < TICKS as usize {
        assert!(Instant::now() < deadline, "reports are missing");
        let Some(tick) = schedule.claim(instance).expect("two nodes are up") else {
            thread::sleep(PAUSE);
            continue;
        };
        if tick == DEADLY && !DIED.swap(true, Ordering::Relaxed) {
            println!("tick {tick}: instance {instance} dies at work, with its node");
            return (None, published);
        }
        // The work itself may happen twice, if a lease ends; what the group accepts does not.
        let report = format!("instance {instance} wrote this");
        if schedule.publish(tick, instance, report).expect("two nodes are up") {
            println!("tick {tick}: instance {instance}");
            published.push(tick);
        }
    }
    (Some(node), published)
}
