//! A cluster whose group is served by programs, its clients, and what is said of it in the end.

use std::process;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast::{Durability, GroupOptions, NodeId, Style};
use wire::Random;

use super::gaps::Gaps;
use super::{Mode, Options};
use harness::cluster::{Cluster, Plan};
use harness::figures::Summary;
use harness::objects::clients::{Book, Clients, Habit};
use harness::objects::common_state;
use harness::objects::evidence::{Finding, Tally, judge, leave, verdict};
use harness::{Outcome, Run};

/// The group.
pub const GROUP: &str = "objects";

/// Nodes, and replicas.
pub const NODES: u32 = 3;

/// Calls that must be answered after a fault before the next.
const AFTERWARDS: u64 = 20;

/// Within this they are.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Longer than any of this may keep a call: one that ends by it has failed.
const DEADLINES_MS: &[u64] = &[20_000];

/// Nodes that are to run the programs of this group.
pub fn plan(options: &Options, group: GroupOptions) -> Plan {
    let on_disk = group.durability == Durability::Disk;
    Plan {
        nodes: NODES,
        replicas: NODES,
        groups: &[GROUP],
        programs: Some(group),
        storage: on_disk.then(|| options.storage.clone()),
        keep_logs: true,
        ..Plan::default()
    }
}

/// The state that all replicas have.
pub fn state(cluster: &Cluster, style: Style) -> Outcome<Vec<u8>> {
    common_state(cluster, GROUP, NODES, style == Style::ColdPassive)
}

/// What happened.
#[derive(Default)]
pub struct Counts {
    /// Poisonous calls that ended as they should.
    pub poisoned: usize,
    /// Other calls that ended without a reply.
    pub failed: Vec<String>,
    /// Programs that were killed by hand.
    pub killed: usize,
    /// Times at which all ended, and at which a state was saved.
    pub ends: usize,
    pub saves: usize,
}

/// A run in its course.
pub struct Stage<'a> {
    pub options: &'a Options,
    pub mode: Mode,
    pub group: GroupOptions,
    pub seed: u64,
    pub random: Random,
    pub cluster: Cluster,
    pub clients: Option<Clients>,
    pub counts: Counts,
    pub gaps: Gaps,
    /// What was done, by the clients' clock.
    deeds: Vec<String>,
    tally: Tally,
    began: Instant,
}

impl Stage<'_> {
    pub fn start(
        options: &Options,
        mode: Mode,
        group: GroupOptions,
        seed: u64,
    ) -> Outcome<Stage<'_>> {
        let mut cluster = Cluster::start(plan(options, group))?;
        cluster.run_programs()?;
        cluster.wait_until_well()?;
        Ok(Stage {
            options,
            mode,
            group,
            seed,
            random: Random::new(seed),
            cluster,
            clients: None,
            counts: Counts::default(),
            gaps: Gaps::new(u32::try_from(options.clients)?),
            deeds: Vec::new(),
            tally: Tally::default(),
            began: Instant::now(),
        })
    }

    /// The clients begin.
    pub fn call(&mut self, habit: Habit) -> Outcome<()> {
        let habit =
            Habit { pause_us: self.options.pause.max(1), deadlines_ms: DEADLINES_MS, ..habit };
        let made: Outcome<Vec<_>> =
            (0..self.options.clients).map(|_| self.cluster.connect()).collect();
        self.clients = Some(Clients::start(made?, GROUP, habit, self.seed));
        self.began = Instant::now();
        Ok(())
    }

    pub fn clients(&mut self) -> Outcome<&mut Clients> {
        Ok(self.clients.as_mut().ok_or("the clients have ended")?)
    }

    /// Notes what is done.
    pub fn note(&mut self, deed: &str) {
        let at = self.clients.as_ref().map_or(0, |clients| clients.now().0);
        self.deeds.push(format!("{at} {deed}"));
    }

    /// Kills the programs of these nodes at once.
    pub fn kill_programs(&mut self, nodes: &[NodeId]) -> Outcome<()> {
        self.note(&format!("the programs of {nodes:?} are killed"));
        self.counts.killed += self.cluster.kill_programs(nodes)?;
        Ok(())
    }

    /// Waits until all is well, and clients are answered.
    pub fn wait_until_well(&mut self) -> Result<(), Finding> {
        self.cluster.wait_until_well()?;
        self.wait_for_answers(AFTERWARDS)
    }

    /// Waits until clients are answered so often.
    pub fn wait_for_answers(&mut self, count: u64) -> Result<(), Finding> {
        let clients = self.clients()?;
        let (wanted, deadline) = (clients.good() + count, Instant::now() + PATIENCE);
        while clients.good() < wanted {
            if Instant::now() > deadline {
                return Err(format!("no {count} calls were answered in {PATIENCE:?}").into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// A verdict on what was seen so far; clients go on to other keys.
    pub fn close_round(&mut self) -> Result<(), Finding> {
        let reader = self.cluster.connect()?;
        let book = self.clients()?.close_round(reader)?;
        self.cluster.take_events();
        self.judge(book)
    }

    pub fn judge(&mut self, mut book: Book) -> Result<(), Finding> {
        self.gaps.add(&book);
        let wrong: Vec<_> = book.poisonous.iter().filter_map(|one| one.wrong.clone()).collect();
        self.counts.poisoned += book.poisonous.len() - wrong.len();
        self.counts.failed.append(&mut book.errors);
        let text = judge(&book, &mut self.tally).or_else(|| {
            wrong.first().map(|first| {
                format!("{} poisonous calls did not end as such, the first: {first}\n", wrong.len())
            })
        });
        text.map_or(Ok(()), |text| Err(Finding { text, book: Some(Box::new(book)) }))
    }

    /// The last round, and whether all replicas are alike.
    pub fn finish(&mut self) -> Result<(), Finding> {
        let clients = self.clients.take().ok_or("the clients have ended")?;
        let book = clients.finish(self.cluster.connect()?)?;
        self.judge(book)?;
        self.cluster.wait_until_well()?;
        state(&self.cluster, self.group.style)?;
        let failed = &self.counts.failed;
        match failed.first() {
            None => Ok(()),
            Some(first) => Err(format!("{} calls failed, the first: {first}", failed.len()).into()),
        }
    }

    /// One line. If a promise is broken, what is known of it is left in a folder; the words name it.
    pub fn close(self, run: &Run, outcome: Result<(), Finding>) -> Outcome<Option<String>> {
        let finding = outcome.err().or_else(|| {
            let first = self.tally.undecided.first()?;
            let count = self.tally.undecided.len();
            Some(
                format!("UNDECIDED: {count} histories cannot be judged, the first: {first}").into(),
            )
        });
        let around = self.gaps.around_poison();
        let broken = finding.is_some();
        run.tell(&self.json(broken, around), || self.line(broken, around));
        let Some(finding) = finding else { return Ok(None) };
        let name = self.name();
        let place = format!("steadfast-poison-{name}-{}-{}", self.seed, process::id());
        let folder = self.options.out.join(place);
        leave(&folder, &finding, &self.deeds, &self.cluster)?;
        let (seed, text, folder) = (self.seed, &finding.text, folder.display());
        Ok(Some(format!(
            "{name}, seed {seed}: {text}what was seen, done and told is in {folder}; docs/linearizability.md says how to read it\n"
        )))
    }

    fn name(&self) -> String {
        let kept = if self.group.durability == Durability::Disk { "disk" } else { "memory" };
        format!("{}-{kept}-{}", self.group.style, self.mode.name())
    }

    fn line(&self, broken: bool, around: Option<Summary>) -> String {
        let Counts { poisoned, failed, killed, ends, saves } = &self.counts;
        let (answered, keys) = (self.tally.ends.0, self.tally.keys);
        let ms = |gap: Option<Summary>| {
            gap.map_or("none".into(), |it| {
                let [half, most, worst] = [it.p50, it.p99, it.max].map(|us| us / 1e3);
                format!("{half:.1}/{most:.1}/{worst:.1}")
            })
        };
        let verdict = verdict(broken);
        format!(
            "{:<32} {answered} answered, {poisoned} poisoned, {} failed, {killed} programs killed, {ends} ends of all, {saves} saves, {:.0?}; \
             gap p50/p99/max ms around poison {}, of all calls {}; {keys} objects: {verdict}",
            self.name(),
            failed.len(),
            self.began.elapsed(),
            ms(around),
            ms(self.gaps.all()),
        )
    }

    fn json(&self, broken: bool, around: Option<Summary>) -> Value {
        let Counts { poisoned, failed, killed, ends, saves } = &self.counts;
        let ms = |gap: Option<Summary>| {
            gap.map(|it| json!({ "n": it.n, "p50_ms": it.p50 / 1e3, "p99_ms": it.p99 / 1e3, "max_ms": it.max / 1e3 }))
        };
        json!({
            "peer": "steadfast", "measure": "poison", "mode": self.mode.name(), "style": self.group.style,
            "durability": self.group.durability, "seed": self.seed, "answered": self.tally.ends.0, "poisoned": poisoned,
            "failed": failed.len(), "programs_killed": killed, "ends": ends, "saves": saves, "seconds": self.began.elapsed().as_secs_f64(),
            "gap_around_poison": ms(around), "gap": ms(self.gaps.all()), "objects": self.tally.keys, "violation": broken,
        })
    }
}
