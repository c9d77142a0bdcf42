//! The floors of this machine: nothing that is built on it can be quicker.
//!
//! All take turns in small blocks, so that other load of the machine strikes all of them. Every
//! other figure of this program is best read as a multiple of one of these.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use seal::{ClusterKey, Config, Envelope, Keys, OVERHEAD, Seal};
use serde_json::json;
use wire::{ClusterId, Incarnation, Member, NodeId, Secret, Time};

use harness::background::Background;
use harness::echo::{Transport, Waits};
use harness::figures::Times;
use harness::floor::EchoProcess;
use harness::{Experiment, Outcome, Run, machine};

/// Rounds of one kind before it is the next one's turn.
const BLOCK: usize = 100;
/// After this long without work a processor sleeps as deeply as it will.
const PAUSE: Duration = Duration::from_millis(5);
/// Wake-ups after a pause in one turn.
const PAUSES: usize = 5;
/// System calls, and pieces that are sealed, in a row: one alone is shorter than a look at the
/// clock.
const ROW: u32 = 100;
const KIB: usize = 1024;
/// Which of the rows all others are told as multiples of: TCP between two processors.
const UNIT: usize = 1;

/// The floors of this machine: round trips, wake-ups, a system call, AES-GCM.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Round trips of each kind that are measured.
    #[arg(long, default_value_t = 5_000)]
    rounds: usize,
    /// Bytes each way.
    #[arg(long, default_value_t = 1024)]
    size: usize,
}

/// Measures a block, and adds its times.
type Turn = Box<dyn FnMut(&mut Times) -> Outcome<()>>;

/// One floor, with its times so far.
struct Floor {
    title: &'static str,
    turn: Turn,
    times: Times,
}

impl Floor {
    fn new(title: &'static str, turn: impl FnMut(&mut Times) -> Outcome<()> + 'static) -> Floor {
        Floor { title, turn: Box::new(turn), times: Times::default() }
    }
}

impl Experiment for Options {
    const NAME: &'static str = "machine";
    const SMOKE: &'static str = "--rounds 100";

    fn impossible(&self) -> Option<String> {
        let cores = machine::two_cores().ok().flatten();
        cores.is_none().then(|| "this needs two processors".into())
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let (own, other) = machine::two_cores()?.ok_or("this needs two processors")?;
        let echo = |transport, core, waits| -> Outcome<_> {
            let size = self.size;
            let mut echo = EchoProcess::start(transport, size, Some(core), waits)?;
            Ok(move |times: &mut Times| {
                let mut round = echo.rounds(size);
                machine::while_on(own, || times.measure(BLOCK, &mut round))?
            })
        };
        let sleeper = Arc::new(Sleeper::start(other));
        let awake = sleeper.clone();
        let mut floors = vec![
            Floor::new("UDP, two cores", echo(Transport::Udp, other, Waits::Asleep)?),
            Floor::new("TCP, two cores", echo(Transport::Tcp, other, Waits::Asleep)?),
            Floor::new("UDP, one core", echo(Transport::Udp, own, Waits::Asleep)?),
            Floor::new("TCP, one core", echo(Transport::Tcp, own, Waits::Asleep)?),
            Floor::new("UDP, spinning", echo(Transport::Udp, other, Waits::Awake)?),
            Floor::new("TCP, spinning", echo(Transport::Tcp, other, Waits::Awake)?),
            Floor::new("wake-up of a core", move |times| {
                machine::while_on(own, || awake.wake(BLOCK, Duration::ZERO, times))?
            }),
            Floor::new("the same after 5 ms", move |times| {
                machine::while_on(own, || sleeper.wake(PAUSES, PAUSE, times))?
            }),
            Floor::new("system call", |times| {
                row(times, || {
                    black_box(rustix::process::getppid());
                });
                Ok(())
            }),
        ];
        let [seal, open] = sealing();
        floors.push(seal);
        floors.push(open);
        for turn in 0..=self.rounds.div_ceil(BLOCK) {
            for floor in &mut floors {
                // The first turn finds cold caches and connections that are not made yet.
                let mut warm = Times::default();
                let times = if turn == 0 { &mut warm } else { &mut floor.times };
                (floor.turn)(times)?;
            }
        }
        self.report(run, &floors)
    }
}

/// The time of one of many in a row.
fn row(times: &mut Times, mut once: impl FnMut()) {
    let start = Instant::now();
    (0..ROW).for_each(|_| once());
    times.push(start.elapsed() / ROW);
}

/// A thread on a processor of its own that sleeps until it is woken, and notes how long that took.
struct Sleeper {
    shared: Arc<Shared>,
    thread: Background,
}

struct Shared {
    begun: Instant,
    /// When it was called, in nanoseconds since the beginning; 0: it was not.
    called: AtomicU64,
    /// How long the last wake-up took, in nanoseconds; 0: it is not over.
    took: AtomicU64,
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Sleeper {
    fn start(core: usize) -> Sleeper {
        let (called, took) = Default::default();
        let shared = Arc::new(Shared { begun: Instant::now(), called, took });
        let its = shared.clone();
        let sleep = move |end: &AtomicBool| {
            // It was among the processors that this process may use.
            let _ = machine::run_on(core);
            while !end.load(Ordering::Acquire) {
                match its.called.swap(0, Ordering::AcqRel) {
                    0 => thread::park(),
                    called => its.took.store((its.now() - called).max(1), Ordering::Release),
                }
            }
        };
        Sleeper { shared, thread: Background::start(sleep) }
    }

    /// Wakes it so many times, each after a pause.
    fn wake(&self, times: usize, pause: Duration, into: &mut Times) -> Outcome<()> {
        let thread = self.thread.thread().ok_or("it has ended")?;
        for _ in 0..times {
            thread::sleep(pause);
            self.shared.called.store(self.shared.now(), Ordering::Release);
            thread.unpark();
            let took = loop {
                match self.shared.took.swap(0, Ordering::AcqRel) {
                    0 => std::hint::spin_loop(),
                    took => break took,
                }
            };
            into.push(Duration::from_nanos(took));
            // Until it sleeps again: else nobody is woken.
            let until = Instant::now() + Duration::from_micros(50);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }
}

/// Sealing and opening a datagram of one KiB as the ring does (AES-256-GCM).
fn sealing() -> [Floor; 2] {
    let text = [0x5a; KIB];
    let size = KIB + OVERHEAD;
    let (mut a, _) = acquainted();
    let seal = move |times: &mut Times| {
        let mut out = Vec::with_capacity(size);
        row(times, || {
            out.clear();
            a.seal(Envelope::ALL, &text, &mut out).expect("its counter lasts for ever");
        });
        Ok(())
    };
    let (mut a, mut b) = acquainted();
    let open = move |times: &mut Times| {
        let mut out = Vec::with_capacity(size * ROW as usize);
        (0..ROW).for_each(|_| {
            a.seal(Envelope::ALL, &text, &mut out).expect("its counter lasts for ever");
        });
        let mut datagrams = out.chunks_mut(size);
        row(times, || {
            let datagram = datagrams.next().expect("as many as in a row");
            black_box(b.open(Time(1), datagram).expect("it was sealed for this node"));
        });
        Ok(())
    };
    [Floor::new("AES-GCM, seal 1 KiB", seal), Floor::new("AES-GCM, open 1 KiB", open)]
}

/// Two nodes' seals that have proved to each other that they live.
fn acquainted() -> (Seal, Seal) {
    let of = |node| {
        Seal::new(Config {
            cluster: ClusterId::of("lab"),
            me: Member { node: NodeId(node), incarnation: Incarnation(1) },
            nodes: vec![NodeId(1), NodeId(2)],
            keys: Keys::single(ClusterKey::new(1, Secret::new([7; 32]))),
            seed: Secret::new([node as u8; 32]),
        })
    };
    let (mut a, mut b) = (of(1), of(2));
    a.greet(Time(1), NodeId(2));
    while !(a.is_in_touch(NodeId(2)) && b.is_in_touch(NodeId(1))) {
        for (from, to) in [(1, 2), (2, 1)] {
            let (from, to) = if from < to { (&mut a, &mut b) } else { (&mut b, &mut a) };
            while let Some(mut contact) = from.poll_contact() {
                to.open(Time(1), &mut contact.bytes).expect("contacts of friends are opened");
            }
        }
    }
    (a, b)
}

impl Options {
    fn report(&self, run: &Run, floors: &[Floor]) -> Outcome<()> {
        run.begin(&format!("{} bytes each way; times in µs", self.size));
        let table = run.table(
            "=floor:<22, n:8, min=min_us:9.2, p50=p50_us:9.3, p99=p99_us:9.2, \
             p50 / TCP's=ratio_to_tcp:13.4",
        );
        let summaries: Option<Vec<_>> = floors.iter().map(|floor| floor.times.summary()).collect();
        let summaries = summaries.ok_or("nothing was measured")?;
        for (floor, summary) in floors.iter().zip(&summaries) {
            let ratio = summary.p50 / summaries[UNIT].p50;
            let mut line = summary.json(&json!({
                "peer": "floor", "measure": "machine", "floor": floor.title, "size": self.size,
            }));
            // Some are shorter than the tenth of a microsecond that such a line is told in.
            for (name, figure) in
                [("min_us", summary.min), ("p50_us", summary.p50), ("p99_us", summary.p99)]
            {
                line[name] = json!((figure * 1_000.0).round() / 1_000.0);
            }
            line["ratio_to_tcp"] = json!((ratio * 10_000.0).round() / 10_000.0);
            table.row(&line);
        }
        Ok(())
    }
}
