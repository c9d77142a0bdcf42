//! An outsider without the cluster key, who owns the network: he records, plays back, forges, cuts,
//! changes and reorders datagrams while a client calls. Nothing may come of it.

mod relay;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast::NodeId;
use steadfast::events::EventKind;
use steadfast::status::{SealCounters, Status};
use wire::Random;

use harness::caller::Caller;
use harness::cluster::{Cluster, Plan, wall};
use harness::protect::Protect;
use harness::{Experiment, Outcome, Run, bail, ensure};

use relay::{Recorded, Relay};

const GROUP: &str = "thread";
const NODES: u32 = 3;

/// Sent in a row before the clock is looked at.
const BURST: usize = 50;

/// The outsider's attacks, in turns.
const KINDS: [&str; 8] = [
    "played back",
    "played back to another node",
    "one bit changed",
    "cut short",
    "forged behind a genuine header",
    "of an invented life",
    "without an envelope",
    "noise",
];

/// A million datagrams of somebody without the cluster key, who owns the network.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Datagrams of the outsider.
    #[arg(long, default_value_t = 1_000_000)]
    count: usize,
    /// How many of them a second: as many as leave the nodes' sockets room for their own.
    #[arg(long, default_value_t = 20_000)]
    rate: u64,
    /// From which they follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Send nothing, for as long: shows the effect of the machine's load alone on the ring.
    #[arg(long)]
    control: bool,
}

impl Experiment for Options {
    const NAME: &'static str = "outsider";
    const SMOKE: &'static str = "--count 2000";

    fn run(&self, run: &Run) -> Outcome<()> {
        let plan = Plan { protect: Protect::All, ..Plan::of(NODES, NODES, &[GROUP]) };
        let (mut cluster, relay) = Cluster::start_behind(plan, Relay::start, Relay::seen_by)?;
        let caller = Caller::start(cluster.connect()?, GROUP);
        caller.wait_steady(0)?;
        let before = statuses(&cluster)?;
        cluster.take_events();
        let (good, started) = (caller.good(), Instant::now());
        let sent = attack(self, &relay, run.sized(1_000, 1))?;
        let seconds = started.elapsed().as_secs_f64();
        caller.wait_steady(wall())?;
        let found = Found {
            sent,
            seconds,
            refused: refused(&before, &statuses(&cluster)?),
            calls: caller.good() - good,
            failed: caller.failed(),
            disturbed: cluster.take_events().into_iter().map(|it| it.kind).collect(),
        };
        run.begin("");
        run.tell(&found.json(), || found.text());
        // In the smallest size a busy machine may disturb the ring, and lose datagrams.
        if self.control { Ok(()) } else { found.verdict(!run.smoke) }
    }
}

/// The results of the outsider's datagrams.
struct Found {
    sent: [u64; KINDS.len()],
    seconds: f64,
    refused: Vec<(&'static str, u64)>,
    calls: usize,
    failed: Vec<String>,
    disturbed: Vec<EventKind>,
}

impl Found {
    fn disturbances(&self) -> impl Iterator<Item = &EventKind> {
        self.disturbed.iter().filter(|kind| is_disturbance(kind))
    }

    fn total(&self) -> u64 {
        self.refused.iter().map(|(_, count)| count).sum()
    }

    fn json(&self) -> Value {
        json!({
            "peer": "steadfast", "measure": "outsider", "n": self.sent.iter().sum::<u64>(),
            "seconds": self.seconds, "refused": self.total(), "by_reason": self.refused,
            "calls": self.calls, "failed_calls": self.failed.len(),
            "view_changes": self.disturbances().count(),
        })
    }

    fn text(&self) -> String {
        let sent = KINDS.iter().zip(self.sent);
        let sent = sent.map(|(kind, count)| format!("sent      {count:9}  {kind}\n"));
        let refused = self.refused.iter();
        let refused = refused.map(|(reason, count)| format!("refused   {count:9}  {reason}\n"));
        let lines: String = sent.chain(refused).collect();
        format!(
            "{lines}{:.1} s; meanwhile {} calls answered, {} failed\n{} view changes, suspicions \
             or lost tokens",
            self.seconds,
            self.calls,
            self.failed.len(),
            self.disturbances().count()
        )
    }

    fn verdict(&self, calm: bool) -> Outcome<()> {
        if let Some(event) = self.disturbances().next().filter(|_| calm) {
            bail!("the ring was disturbed: {event:?}");
        }
        if let Some(error) = self.failed.first() {
            bail!("a call failed: {error}");
        }
        let (sent, total) = (self.sent.iter().sum::<u64>(), self.total());
        // The kernel may have had no room for some; all that arrived were refused.
        if total < sent / 100 * if calm { 95 } else { 10 } {
            bail!("of {sent} datagrams only {total} were counted as refused");
        }
        Ok(())
    }
}

fn attack(options: &Options, relay: &Relay, least: usize) -> Outcome<[u64; KINDS.len()]> {
    let recorded = relay.recorded();
    ensure!(recorded.len() >= least, "only {} datagrams were recorded", recorded.len());
    let mut random = Random::new(options.seed);
    let mut sent = [0; KINDS.len()];
    let start = Instant::now();
    for number in 0..options.count {
        let kind = number % KINDS.len();
        let model = &recorded[random.below(recorded.len() as u64) as usize];
        let Recorded { from, to, bytes } = worsen(kind, model, &mut random);
        sent[kind] += u64::from(!options.control && relay.inject(from, to, &bytes));
        if number % BURST == 0 {
            let due = Duration::from_nanos(number as u64 * 1_000_000_000 / options.rate.max(1));
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    Ok(sent)
}

/// A datagram that the outsider makes of a recorded one.
fn worsen(kind: usize, model: &Recorded, random: &mut Random) -> Recorded {
    let Recorded { from, mut to, mut bytes } = model.clone();
    let length = bytes.len() as u64;
    match kind {
        0 => {}
        // In a cluster of three there is one that neither sent nor got it.
        1 => to = 3 - from - to,
        2 => bytes[random.below(length) as usize] ^= 1 << random.below(8),
        3 => bytes.truncate(random.below(length) as usize + 1),
        4 => {
            // A counter that is still to come, and contents of his own.
            bytes[28..36].copy_from_slice(&(1 << 40 | random.below(1 << 32)).to_le_bytes());
            bytes[36..].fill_with(|| random.next_u64() as u8);
        }
        5 => bytes[12..28].fill_with(|| random.next_u64() as u8),
        6 => bytes[..4].copy_from_slice(b"SF\x01\x02"),
        _ => bytes.fill_with(|| random.next_u64() as u8),
    }
    Recorded { from, to, bytes }
}

fn statuses(cluster: &Cluster) -> Outcome<Vec<Status>> {
    let status = |id| Ok(cluster.node(NodeId(id))?.status()?);
    (1..=NODES).map(status).collect()
}

fn is_disturbance(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::TokenLost { .. }
            | EventKind::Gathering { .. }
            | EventKind::Unreachable { .. }
            | EventKind::Silent { .. }
            | EventKind::Configuration { .. }
            | EventKind::View { .. }
    )
}

/// One of the counts.
type Count = fn(&SealCounters) -> u64;

/// Datagrams that all nodes refused meanwhile, by reason.
fn refused(before: &[Status], after: &[Status]) -> Vec<(&'static str, u64)> {
    let reasons: [(&str, Count); 8] = [
        ("came before (duplicates)", |it| it.duplicates),
        ("older than the window, or of before the contact (replayed)", |it| it.replayed),
        ("for another node, or of none (misaddressed)", |it| it.misaddressed),
        ("not made with the key (forged)", |it| it.forged),
        ("made with a key of another number (unknown key)", |it| it.unknown_key),
        ("without an envelope (plain)", |it| it.plain),
        ("no datagram of this protocol (malformed)", |it| it.malformed),
        ("of a life that was not met (unmet)", |it| it.unmet),
    ];
    let sum = |statuses: &[Status], of: Count| -> u64 {
        statuses.iter().filter_map(|it| Some(of(&it.seal.as_ref()?.counters))).sum()
    };
    reasons.map(|(reason, of)| (reason, sum(after, of) - sum(before, of))).to_vec()
}
