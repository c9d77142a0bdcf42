//! An alarm call's time beside normal calls of more work than the replica can do: with one thread
//! for all calls, and in lanes (`stheno.txt`, section 3.1: execution models).

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use node::Node;
use node::sched::{Class, MAX_PRIORITY};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast::{
    AsyncClient, Call, Client, Context, Execution, HostOptions, Invocation, MethodId, Policy,
    ServiceOutcome, Style,
};
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use harness::cluster::{Cluster, Plan};
use harness::echo::{Counted, Handler};
use harness::figures::{Summary, Times};
use harness::hog::on_a_thread;
use harness::process::{Process, Role};
use harness::work::compute;
use harness::{Experiment, Outcome, Run, hog};

/// The groups, by how they execute.
const GROUPS: [(&str, &str); 2] = [("one thread", "lanes/thread"), ("lanes", "lanes/lanes")];

/// The one method: compute for the microseconds that the arguments say.
const WORK: MethodId = MethodId::of("work");

const ALARM: u8 = 200;

/// Normal calls begin in ticks of this length.
const TICK: Duration = Duration::from_millis(5);
/// The longest wait of a normal call.
const DEADLINE: Duration = Duration::from_secs(1);
/// Clients that make normal calls. Each has at most 64 under way.
const CLIENTS: usize = 64;

/// The data plane's priority where all has one. Handlers have one less.
const PRIORITY: u8 = 50;

/// An alarm call's time beside normal calls of more work than the replica can do.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seconds of each run.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Alarm calls a second.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Processor time of each call, alarm or normal.
    #[arg(long, value_name = "MICROS", default_value_t = 1_000)]
    work_us: u64,
    /// Work of the normal calls, in multiples of what one thread can do.
    #[arg(long, default_value_t = 3)]
    times_capacity: u32,
    /// The node's threads and the alarm's client are under SCHED_FIFO. Needs CAP_SYS_NICE.
    #[arg(long)]
    fifo: bool,
}

/// The orders of the process that makes normal calls.
#[derive(Serialize, Deserialize)]
struct Orders {
    node: SocketAddr,
    group: String,
    work_us: u64,
    /// Calls of each tick.
    calls: u32,
}

#[derive(Default)]
struct Worker;

impl Handler for Worker {
    fn handle(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        let Some(work) = call.body.first_chunk() else {
            return ServiceOutcome::Error(Bytes::from_static(b"eight bytes are wanted"));
        };
        compute(Duration::from_micros(u64::from_le_bytes(*work)));
        ServiceOutcome::Ok(Bytes::new())
    }
}

impl Experiment for Options {
    const NAME: &'static str = "lanes";
    const SMOKE: &'static str = "--seconds 1";

    fn impossible(&self) -> Option<String> {
        hog::impossible(u32::from(self.fifo))
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let class = if self.fifo { Class::Fifo(PRIORITY) } else { Class::Ordinary };
        let names = GROUPS.map(|(_, group)| group);
        let cluster = Cluster::start(Plan { class, ..Plan::of(1, 1, &names) })?;
        let node = cluster.clients()[0];
        run.begin(&format!(
            "a stateless group of one replica; {} alarm calls a second, each computes for {} µs; \
             normal calls of {} times what a thread can do; {class:?}; ms",
            self.rate, self.work_us, self.times_capacity
        ));
        let table = run.table(
            "=title:<12, normal calls=beside:<14, alarms=n:6, p50:8.2, p99:8.2, p99.9=p999:8.2, max:8.2, \
             times unloaded=times:15.2",
        );
        for (title, group) in GROUPS {
            let policy = Policy::default().priority(ALARM);
            let client = Client::builder().policy_for(group, policy).connect([node])?;
            let mut unloaded = None;
            for beside in ["none", "flood"] {
                let _flood = match beside {
                    "none" => None,
                    _ => Some(self.flood(node, group)?),
                };
                let Summary { n, p50, p99, p999, max, .. } = self.alarms(&client, group)?;
                let alone = *unloaded.get_or_insert(p99);
                table.row(&json!({
                    "peer": "steadfast", "measure": "lanes", "title": title, "group": group,
                    "beside": beside, "fifo": self.fifo, "n": n,
                    "work_us": self.work_us, "p50": p50 / 1e3, "p99": p99 / 1e3,
                    "p999": p999 / 1e3, "max": max / 1e3, "times": p99 / alone,
                }));
            }
        }
        Ok(())
    }

    fn host(node: &Node, group: &str) -> Outcome<bool> {
        let execution = match group {
            "lanes/thread" => Execution::Thread,
            "lanes/lanes" => Execution::Lanes,
            _ => return Ok(false),
        };
        let options = HostOptions { execution, ..HostOptions::default().style(Style::Stateless) };
        node.host(group, options, Counted::<Worker>::default)?;
        Ok(true)
    }

    fn live(orders: Value) -> Outcome<()> {
        let Orders { node, group, work_us, calls } = serde_json::from_value(orders)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, async move {
            let mut clients = Vec::new();
            for _ in 0..CLIENTS {
                clients.push(AsyncClient::connect([node]).await?);
            }
            println!("{{}}");
            let mut turns = clients.iter().cycle();
            let mut ticks = interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                for client in turns.by_ref().take(calls as usize) {
                    let (client, group) = (client.clone(), group.clone());
                    tokio::task::spawn_local(async move {
                        // Most come to nothing: there are more than can be executed.
                        let call = Invocation::new(group, WORK).body(body(work_us));
                        let _ = client.call(call.within(DEADLINE)).await;
                    });
                }
            }
        })
    }
}

impl Options {
    /// Starts the normal calls, and waits until they fill the replica.
    fn flood(&self, node: SocketAddr, group: &str) -> Outcome<Process> {
        let each_tick = TICK.as_micros() as u64 * u64::from(self.times_capacity);
        let calls = u32::try_from(each_tick.div_ceil(self.work_us))?;
        let orders = Orders { node, group: group.into(), work_us: self.work_us, calls };
        let mut process = Process::start(&Role::own(Self::NAME, orders)?)?;
        process.line()?;
        thread::sleep(DEADLINE);
        Ok(process)
    }

    /// Alarms at their rate, each as soon as it is due and the one before is answered.
    fn alarms(&self, client: &Client, group: &str) -> Outcome<Summary> {
        let (fifo, body) = (self.fifo, body(self.work_us));
        let call = || Invocation::new(group, WORK).body(body.clone()).within(10 * DEADLINE);
        client.call(call())?;
        let class = if fifo { Class::Fifo(MAX_PRIORITY) } else { Class::Ordinary };
        let times = on_a_thread(class, || {
            let (mut times, begun) = (Times::default(), Instant::now());
            let mut due = begun;
            while begun.elapsed() < Duration::from_secs(self.seconds) {
                due += Duration::from_secs(1) / self.rate;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let asked = Instant::now();
                client.call(call())?;
                times.push(asked.elapsed());
            }
            Ok(times)
        })?;
        times.summary().ok_or_else(|| "no calls".into())
    }
}

fn body(work_us: u64) -> Bytes {
    Bytes::copy_from_slice(&work_us.to_le_bytes())
}
