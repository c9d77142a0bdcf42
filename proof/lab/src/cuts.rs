//! Links between cells are cut, one after the other, while clients of a leaf call the root's
//! objects over two of them.
//!
//! No call may be lost or executed twice: all are answered, and the records are linearizable.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use harness::cluster::wall;
use harness::figures::quantile;
use harness::objects::clients::Habit;
use harness::objects::evidence::{self, Finding, Tally};
use harness::sites::Site;
use harness::system::{Place, Plan, System, Trial};
use harness::{Experiment, Outcome, Run, machine};

/// The tree: calls go from the last cell to the first.
const CELLS: [(&str, usize); 3] = [("porto", 4), ("a.porto", 3), ("a.a.porto", 3)];

/// The called group.
const GROUP: &str = "porto:objects";

/// So many cuts before the histories are checked and others begun.
const ROUND: usize = 5;

/// The busiest link of a pair of cells is that which has most packets within this.
const WATCH: Duration = Duration::from_millis(100);

/// Calls that are answered after a cut before the link is whole, and after that.
const AFTERWARDS: u64 = 200;

/// No link is cut for less than this: its end is to be noticed.
const CUT: Duration = Duration::from_millis(400);

/// Links are cut under load: is a call lost or executed twice?
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many links are cut, one after the other.
    #[arg(long, default_value_t = 300)]
    cuts: usize,
    /// No further link is cut after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// One way between two cells, in milliseconds.
    #[arg(long, default_value_t = 10.0)]
    delay_ms: f64,
    /// Clients that call all the time, each about 20 times a second with the usual delay.
    #[arg(long, default_value_t = 56)]
    clients: usize,
    /// Decides calls and pauses.
    #[arg(long)]
    seed: Option<u64>,
    /// Where histories and logs are left if something is wrong.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// A run in its course.
struct Course<'a> {
    run: &'a Run,
    trial: Trial,
    gaps: Vec<f64>,
    /// Both ends of each link on the way of the calls.
    ways: [(Site, Site); 2],
}

impl Experiment for Options {
    const NAME: &'static str = "cuts";
    const SMOKE: &'static str = "--cuts 2 --clients 8 --delay-ms 2";

    fn impossible(&self) -> Option<String> {
        self.place.impossible()
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let seed = self.seed.unwrap_or_else(wall);
        eprintln!("on {}; seed {seed}; {}", machine::description(), self.place.build());
        let delay = Duration::from_secs_f64(self.delay_ms / 1e3);
        let plan = Plan { objects: vec![CELLS[0].0], ..self.place.plan(&CELLS, delay) };
        let system = System::start(&plan)?;
        let habit = Habit::patient();
        let leaf = CELLS.len() - 1;
        let trial = Trial::start(system, (leaf, GROUP), self.clients, habit, seed)?;
        let mut course = Course { run, trial, gaps: Vec::new(), ways: [(0, 1), (1, leaf)] };
        let found = course.cuts(self).err();
        course.summarize(self, seed, found.is_some());
        let Some(finding) = found else {
            return evidence::undecided(&course.trial.tally.undecided)
                .map_or(Ok(()), |why| Err(why.into()));
        };
        let place = format!("steadfast-cuts-{seed}-{}", process::id());
        let folder = self.out.clone().unwrap_or_else(|| std::env::temp_dir().join(place));
        course.trial.leave(&folder, &finding)?;
        let text = &finding.text;
        Err(format!("seed {seed}: {text}the evidence is in {}", folder.display()).into())
    }
}

impl Course<'_> {
    fn cuts(&mut self, options: &Options) -> Result<(), Finding> {
        self.trial.wait_for_answers(AFTERWARDS)?;
        for number in 1..=options.cuts {
            if options.seconds.is_some_and(|most| self.trial.took().as_secs() >= most) {
                break;
            }
            self.cut(number)?;
            if number % ROUND == 0 {
                self.trial.judge_round()?;
            }
        }
        self.trial.finish()?;
        let (answered, failed, unknown) = self.trial.tally.ends;
        if failed + unknown > 0 {
            return Err(Finding::from(format!(
                "{answered} calls were answered, {failed} were not executed, of {unknown} nobody \
                 knows"
            )));
        }
        Ok(())
    }

    /// One cut, until the link is whole and calls go on.
    fn cut(&mut self, number: usize) -> Result<(), Finding> {
        let way = self.ways[number % self.ways.len()];
        let (a, b) = busiest(&self.trial.system, way)?;
        self.trial.clients()?.forget_gap();
        self.trial.note(&format!("cut {a} {b}"));
        let began = Instant::now();
        self.trial.system.sites().cut_link(a, b, true);
        thread::sleep(CUT);
        self.trial.wait_for_answers(AFTERWARDS)?;
        let gap = self.trial.clients()?.gap();
        self.trial.system.sites().heal();
        self.trial.note("heal");
        self.trial.system.wait_for([way.0, way.1])?;
        self.trial.wait_for_answers(AFTERWARDS)?;
        let well = began.elapsed().as_secs_f64() * 1e3;
        self.gaps.push(gap);
        let line = json!({
            "measure": "cuts-cut", "number": number, "between": [a, b], "gap_ms": gap,
            "well_ms": well,
        });
        self.run.tell(&line, || format!("{number:5} {a} - {b} gap {gap:.1} ms, {well:.0} ms"));
        Ok(())
    }

    fn summarize(&self, options: &Options, seed: u64, broken: bool) {
        let at = |share| quantile(self.gaps.clone(), share).unwrap_or_default();
        let (p50, p99, worst) = (at(0.5), at(0.99), at(1.0));
        let (took, cuts, delay) = (self.trial.took(), self.gaps.len(), options.delay_ms);
        let Tally { ends: (answered, failed, unknown), keys, ref undecided, .. } = self.trial.tally;
        let rate = answered as f64 / took.as_secs_f64();
        let line = json!({
            "peer": "steadfast", "measure": "cuts", "seed": seed, "cuts": cuts, "delay_ms": delay,
            "p50_gap_ms": p50, "p99_gap_ms": p99, "worst_gap_ms": worst, "calls_s": rate,
            "answered": answered, "failed": failed, "unknown": unknown, "objects": keys,
            "undecided": undecided.len(), "violation": broken,
        });
        self.run.tell(&line, || {
            format!(
                "{cuts} links cut in {took:.0?}, {delay} ms one way, {rate:.0} calls/s over two \
                 links: gap p50 {p50:.1}, p99 {p99:.1}, worst {worst:.1} ms; {answered} calls \
                 answered, {failed} not executed, {unknown} of unknown end; {keys} objects: {}",
                evidence::verdict(broken)
            )
        });
    }
}

/// The hosts of two cells between which most packets pass.
fn busiest(system: &System, way: (Site, Site)) -> Outcome<(Ipv4Addr, Ipv4Addr)> {
    let before = passed(system, way);
    thread::sleep(WATCH);
    let now = passed(system, way);
    let grown = now.iter().map(|(pair, count)| (count - before.get(pair).unwrap_or(&0), *pair));
    let (_, pair) = grown.max().ok_or("no link is between these cells")?;
    Ok(pair)
}

fn passed(system: &System, (a, b): (Site, Site)) -> BTreeMap<(Ipv4Addr, Ipv4Addr), u64> {
    let mut all = BTreeMap::new();
    for (from, to, count) in system.sites().passed() {
        let sites = [harness::sites::site(from), harness::sites::site(to)];
        if sites == [a, b] || sites == [b, a] {
            *all.entry((from.min(to), from.max(to))).or_default() += count;
        }
    }
    all
}
