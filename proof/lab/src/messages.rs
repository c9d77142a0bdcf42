//! Messages between two ranks: round trips, and many in a row. Beside them, in turn, the floor, which
//! is memory that two threads share, and a stream of TCP.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use harness::cluster::Plan;
use harness::figures::{Times, median_and_worst};
use harness::jobs::Scene;
use harness::machine;
use harness::process::Role;
use harness::{Experiment, Outcome, Run, bail};
use job::{Command, Spec};
use rank::Job;
use rustix::thread::futex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Round trips after a pause: longer than anybody looks for a message before it sleeps.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a message may take.
const WITHIN: Duration = Duration::from_secs(60);
/// Messages between two safe points of a rank, as a turn has them.
const TURN: u64 = 4_096;

/// Messages between two ranks: round trips, and many in a row.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Bytes of a message.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Round trips in each run.
    #[arg(long, default_value_t = 20_000)]
    rounds: u64,
    /// Round trips after a pause, in each run.
    #[arg(long, default_value_t = 300)]
    asleep: u64,
    /// Messages in a row, in each run.
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Runs of each kind, in turn.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Nodes: with two, the ranks are on one each, and their agents carry the messages.
    #[arg(long, default_value_t = 1)]
    nodes: u32,
}

/// The orders of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Orders {
    size: usize,
    rounds: u64,
    asleep: u64,
    messages: u64,
    /// Rank 0 writes its figures there.
    file: PathBuf,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Figures {
    /// Microseconds of a round trip, the median: one after the other, and after a pause.
    round_us: f64,
    asleep_us: f64,
    /// Messages in a second.
    rate: f64,
}

impl Experiment for Options {
    const NAME: &'static str = "messages";
    const SMOKE: &'static str = "--rounds 200 --asleep 5 --messages 5000 --runs 1";

    fn impossible(&self) -> Option<String> {
        let cores = machine::two_cores().ok().flatten();
        cores.is_none().then(|| "this needs two processors".into())
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let mut scene = Scene::start(Plan::of(self.nodes, self.nodes, &[]), &std::env::temp_dir())?;
        run.begin(&format!(
            "2 ranks on {} nodes, {} bytes; medians of {} runs in turn: {} round trips one after the \
             other, {} each {PAUSE:?} after the last one, and {} messages in a row with one answer",
            self.nodes, self.size, self.runs, self.rounds, self.asleep, self.messages
        ));
        let folder = tempfile::tempdir()?;
        let orders = Orders {
            size: self.size,
            rounds: self.rounds,
            asleep: self.asleep,
            messages: self.messages,
            file: folder.path().join("figures"),
        };
        let mut all: [(&str, Vec<Figures>); 3] =
            [("ranks", Vec::new()), ("floor: shared memory", Vec::new()), ("TCP", Vec::new())];
        for _ in 0..self.runs {
            all[0].1.push(ranks(&mut scene, &orders)?);
            all[1].1.push(shared(&orders)?);
            all[2].1.push(tcp(&orders)?);
        }
        let table = run.table(
            "kind:<22, round us=round_us:9.2, worst=round_worst_us:9.2, floors=round_floors:7.1, \
             asleep us=asleep_us:10.1, worst=asleep_worst_us:9.1, floors=asleep_floors:7.1, \
             per s=rate:11.0, least=rate_least:11.0",
        );
        let of = |figures: &[Figures], figure: fn(&Figures) -> f64| {
            median_and_worst(figures.iter().map(figure).collect()).unwrap_or_default()
        };
        let both =
            |figures: &[Figures]| (of(figures, |it| it.round_us), of(figures, |it| it.asleep_us));
        let floor = both(&all[1].1);
        for (kind, figures) in &all {
            let (round, asleep) = both(figures);
            let rate = of(figures, |it| -it.rate);
            table.row(&json!({
                "peer": "steadfast", "measure": "messages", "kind": kind, "nodes": self.nodes,
                "size": self.size, "round_us": round.0, "round_worst_us": round.1,
                "round_floors": round.0 / floor.0.0, "asleep_us": asleep.0,
                "asleep_worst_us": asleep.1, "asleep_floors": asleep.0 / floor.1.0,
                "rate": -rate.0, "rate_least": -rate.1,
            }));
        }
        Ok(())
    }

    fn live(orders: Value) -> Outcome<()> {
        let orders: Orders = serde_json::from_value(orders)?;
        let mut rank = Rank { job: Job::connect()?, bytes: vec![0; orders.size] };
        // As the other ways are: two that look for messages on one processor only disturb each other.
        if let Some((first, second)) = machine::two_cores()? {
            machine::run_on(if rank.job.rank() == 0 { first } else { second })?;
        }
        if rank.job.rank() == 0 {
            let figures = measure(&orders, &mut rank)?;
            std::fs::write(&orders.file, serde_json::to_vec(&figures)?)?;
        } else {
            answer(&orders, &mut rank)?;
        }
        rank.job.finish()?;
        Ok(())
    }
}

/// One end of a way for messages.
trait End {
    fn send(&mut self) -> Outcome<()>;
    fn receive(&mut self) -> Outcome<()>;

    /// So many messages were sent or received before.
    fn turn(&mut self, _messages: u64) -> Outcome<()> {
        Ok(())
    }
}

/// The end that asks, and looks at the clock.
fn measure(orders: &Orders, end: &mut impl End) -> Outcome<Figures> {
    let mut turns = 0..;
    let mut round = |times: &mut Times, pause: Duration| -> Outcome<()> {
        end.turn(turns.next().unwrap_or_default())?;
        thread::sleep(pause);
        let begun = Instant::now();
        end.send()?;
        end.receive()?;
        times.push(begun.elapsed());
        Ok(())
    };
    let (mut warm, mut rounds, mut asleep) = (Times::default(), Times::default(), Times::default());
    for _ in 0..orders.rounds / 10 {
        round(&mut warm, Duration::ZERO)?;
    }
    for _ in 0..orders.rounds {
        round(&mut rounds, Duration::ZERO)?;
    }
    for _ in 0..orders.asleep {
        round(&mut asleep, PAUSE)?;
    }
    let begun = Instant::now();
    for number in 0..orders.messages {
        end.turn(number)?;
        end.send()?;
    }
    if orders.messages > 0 {
        end.receive()?;
    }
    let rate = orders.messages as f64 / begun.elapsed().as_secs_f64();
    let median = |times: Times| times.summary().map_or(0.0, |all| all.p50);
    Ok(Figures { round_us: median(rounds), asleep_us: median(asleep), rate })
}

/// The other end.
fn answer(orders: &Orders, end: &mut impl End) -> Outcome<()> {
    for number in 0..orders.rounds / 10 + orders.rounds + orders.asleep {
        end.turn(number)?;
        end.receive()?;
        end.send()?;
    }
    for number in 0..orders.messages {
        end.turn(number)?;
        end.receive()?;
    }
    if orders.messages > 0 {
        end.send()?;
    }
    Ok(())
}

/// A rank of a job of two.
struct Rank {
    job: Job,
    bytes: Vec<u8>,
}

impl End for Rank {
    fn send(&mut self) -> Outcome<()> {
        let to = 1 - self.job.rank();
        Ok(self.job.send(to, 0, [&self.bytes, &[]])?)
    }

    fn receive(&mut self) -> Outcome<()> {
        let from = 1 - self.job.rank();
        let message = self.job.receive(Some(from), Some(0), WITHIN)?;
        Ok(message.ok_or("no message has come")?.read(0, &mut self.bytes)?)
    }

    fn turn(&mut self, messages: u64) -> Outcome<()> {
        if messages.is_multiple_of(TURN) && self.job.safe_point()? {
            self.job.save()?;
        }
        Ok(())
    }
}

fn ranks(scene: &mut Scene, orders: &Orders) -> Outcome<Figures> {
    let command = Role::own(Options::NAME, orders)?.command()?;
    let job = scene.submit(Spec { command, ranks: 2, copies: 1, ..Spec::default() })?;
    scene.finished(job)?;
    scene.take(&Command::Forget { job })?;
    let figures = serde_json::from_slice(&std::fs::read(&orders.file)?)?;
    std::fs::remove_file(&orders.file)?;
    Ok(figures)
}

/// A word in memory that two threads share, and the bytes of a message: one copies them in, the other
/// out. Who sleeps is woken, and nobody else.
struct Word {
    turn: Arc<AtomicU32>,
    /// Whether each end sleeps.
    asleep: Arc<[AtomicU32; 2]>,
    /// This end goes on when the word is even, or odd.
    odd: bool,
    bytes: Vec<u8>,
    there: Arc<Vec<AtomicU64>>,
}

/// How often the word is looked at before its reader sleeps: as long as ranks look, more or less.
const LOOKS: u32 = 20_000;

impl End for Word {
    fn send(&mut self) -> Outcome<()> {
        for (word, chunk) in self.there.iter().zip(self.bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        self.turn.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.asleep[usize::from(!self.odd)].load(Ordering::Relaxed) != 0 {
            futex::wake(&self.turn, futex::Flags::PRIVATE, 1)?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Outcome<()> {
        let asleep = &self.asleep[usize::from(self.odd)];
        for look in 0.. {
            let turn = self.turn.load(Ordering::Acquire);
            if (turn % 2 == 1) == self.odd {
                break;
            }
            std::hint::spin_loop();
            if look > LOOKS {
                asleep.store(1, Ordering::SeqCst);
                // It has changed meanwhile, or will: both are as good.
                let _ = futex::wait(&self.turn, futex::Flags::PRIVATE, turn, None);
                asleep.store(0, Ordering::Relaxed);
            }
        }
        for (word, chunk) in self.there.iter().zip(self.bytes.as_chunks_mut().0) {
            *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Ok(())
    }
}

/// Without messages in a row: the word has room for one.
fn shared(orders: &Orders) -> Outcome<Figures> {
    let orders = Orders { messages: 0, ..orders.clone() };
    let (turn, asleep) = (Arc::new(AtomicU32::new(0)), Arc::new([0, 0].map(AtomicU32::new)));
    let there: Arc<Vec<AtomicU64>> = Arc::new((0..orders.size / 8).map(|_| 0.into()).collect());
    let end = |odd| {
        let (turn, asleep, there) = (turn.clone(), asleep.clone(), there.clone());
        Word { turn, asleep, odd, bytes: vec![0; orders.size], there }
    };
    let (mut near, mut far) = (end(false), end(true));
    beside(&orders, move |orders| answer(orders, &mut far), |orders| measure(orders, &mut near))
}

/// A stream, with one call of `write` for each message.
struct Stream(TcpStream, Vec<u8>);

impl End for Stream {
    fn send(&mut self) -> Outcome<()> {
        Ok(self.0.write_all(&self.1)?)
    }

    fn receive(&mut self) -> Outcome<()> {
        Ok(self.0.read_exact(&mut self.1)?)
    }
}

fn tcp(orders: &Orders) -> Outcome<Figures> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    let end = |stream: TcpStream| -> Outcome<Stream> {
        stream.set_nodelay(true)?;
        Ok(Stream(stream, vec![0; orders.size]))
    };
    let (mut near, mut far) = (end(near)?, end(far)?);
    beside(orders, move |orders| answer(orders, &mut far), |orders| measure(orders, &mut near))
}

/// The far end in a thread of its own, each on one processor.
fn beside(
    orders: &Orders,
    far: impl FnOnce(&Orders) -> Outcome<()> + Send,
    near: impl FnOnce(&Orders) -> Outcome<Figures>,
) -> Outcome<Figures> {
    let (own, other) = machine::two_cores()?.ok_or("this needs two processors")?;
    thread::scope(|scope| {
        let far = scope.spawn(move || {
            machine::run_on(other).map_err(|error| error.to_string())?;
            far(orders).map_err(|error| error.to_string())
        });
        let figures = machine::while_on(own, || near(orders))?;
        match far.join() {
            Ok(Ok(())) => figures,
            Ok(Err(why)) => bail!("the far end: {why}"),
            Err(_) => bail!("the far end has ended"),
        }
    })
}
