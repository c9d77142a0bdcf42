//! A cluster whose group is served by programs, its clients, and the final report.

use std::process;

use serde_json::{Value, json};
use steadfast::{Durability, GroupOptions, NodeId, Style};
use wire::Random;

use super::gaps::Gaps;
use super::options::{Mode, Options};
use harness::cluster::{Cluster, Plan, Programs};
use harness::figures::Summary;
use harness::objects::clients::{Book, Habit};
use harness::objects::evidence::{Finding, undecided, verdict};
use harness::objects::{Subject, Trial};
use harness::{Outcome, Run};

/// The group.
pub const GROUP: &str = "objects";

/// Nodes, and replicas.
pub const NODES: u32 = 3;

/// Calls that must be answered after a fault before the next.
const AFTERWARDS: u64 = 20;

/// Longer than any of this may keep a call: one that ends by it has failed.
const DEADLINES_MS: &[u64] = &[20_000];

/// Nodes that are to run the programs of this group.
pub fn plan(options: &Options, group: GroupOptions) -> Plan {
    let on_disk = group.durability == Durability::Disk;
    Plan {
        programs: Some(Programs::WhenTold(group)),
        storage: on_disk.then(|| options.storage.clone()),
        keep_logs: true,
        ..Plan::of(NODES, NODES, &[GROUP])
    }
}

/// Counts of events.
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
    pub trial: Trial,
    pub counts: Counts,
    pub gaps: Gaps,
}

impl Stage<'_> {
    pub fn start(
        options: &Options,
        mode: Mode,
        group: GroupOptions,
        seed: u64,
    ) -> Outcome<Stage<'_>> {
        let cluster = Cluster::start(plan(options, group))?;
        cluster.run_programs()?;
        let alone = group.style == Style::ColdPassive;
        let subject = Subject { group: GROUP, replicas: NODES, alone };
        Ok(Stage {
            options,
            mode,
            group,
            seed,
            random: Random::new(seed),
            trial: Trial::new(cluster, subject)?,
            counts: Counts::default(),
            gaps: Gaps::new(u32::try_from(options.clients)?),
        })
    }

    /// The clients begin.
    pub fn call(&mut self, habit: Habit) -> Outcome<()> {
        let pause_us = self.options.pause.max(1);
        let habit = Habit { pause_us, deadlines_ms: DEADLINES_MS, ..habit };
        self.trial.call(self.options.clients, habit, self.seed)
    }

    /// Kills the programs of these nodes at once.
    pub fn kill_programs(&mut self, nodes: &[NodeId]) -> Outcome<()> {
        self.trial.note(&format!("the programs of {nodes:?} are killed"));
        self.counts.killed += self.trial.cluster.kill_programs(nodes)?;
        Ok(())
    }

    /// Waits until all is well, and clients are answered.
    pub fn wait_until_well(&mut self) -> Result<(), Finding> {
        self.trial.cluster.wait_until_well()?;
        Ok(self.trial.wait_for_answers(AFTERWARDS)?)
    }

    /// A verdict on the records so far; clients go on to other keys.
    pub fn close_round(&mut self) -> Result<(), Finding> {
        let book = self.trial.close_round()?;
        self.judge(book)
    }

    pub fn judge(&mut self, mut book: Book) -> Result<(), Finding> {
        self.gaps.add(&book);
        let wrong: Vec<_> = book.poisonous.iter().filter_map(|one| one.wrong.clone()).collect();
        self.counts.poisoned += book.poisonous.len() - wrong.len();
        self.counts.failed.append(&mut book.errors);
        let wrong = wrong.first().map(|first| {
            format!("{} poisonous calls did not end as such, the first: {first}\n", wrong.len())
        });
        self.trial.judge(book, wrong)
    }

    /// The last round, and whether all replicas are alike.
    pub fn finish(&mut self) -> Result<(), Finding> {
        let book = self.trial.finish()?;
        self.judge(book)?;
        self.trial.cluster.wait_until_well()?;
        self.trial.subject.state(&self.trial.cluster)?;
        let failed = &self.counts.failed;
        match failed.first() {
            None => Ok(()),
            Some(first) => Err(format!("{} calls failed, the first: {first}", failed.len()).into()),
        }
    }

    /// Prints one line. If a promise is broken, the evidence is left in a folder that the line
    /// names.
    pub fn close(self, run: &Run, outcome: Result<(), Finding>) -> Outcome<Option<String>> {
        let undecided = || Some(undecided(&self.trial.tally.undecided)?.into());
        let finding = outcome.err().or_else(undecided);
        let around = self.gaps.around_poison();
        let broken = finding.is_some();
        run.tell(&self.json(broken, around), || self.line(broken, around));
        let Some(finding) = finding else { return Ok(None) };
        let name = self.name();
        let place = format!("steadfast-poison-{name}-{}-{}", self.seed, process::id());
        let folder = self.options.out.join(place);
        self.trial.leave(&folder, &finding)?;
        let (seed, text, folder) = (self.seed, &finding.text, folder.display());
        Ok(Some(format!(
            "{name}, seed {seed}: {text}what was seen, done and told is in {folder}; \
             docs/linearizability.md says how to read it\n"
        )))
    }

    fn name(&self) -> String {
        let kept = if self.group.durability == Durability::Disk { "disk" } else { "memory" };
        format!("{}-{kept}-{}", self.group.style, self.mode.name())
    }

    fn line(&self, broken: bool, around: Option<Summary>) -> String {
        let Counts { poisoned, failed, killed, ends, saves } = &self.counts;
        let (answered, keys) = (self.trial.tally.ends.0, self.trial.tally.keys);
        let ms = |gap: Option<Summary>| {
            gap.map_or("none".into(), |it| {
                let [half, most, worst] = [it.p50, it.p99, it.max].map(|us| us / 1e3);
                format!("{half:.1}/{most:.1}/{worst:.1}")
            })
        };
        let verdict = verdict(broken);
        format!(
            "{:<32} {answered} answered, {poisoned} poisoned, {} failed, {killed} programs \
             killed, {ends} ends of all, {saves} saves, {:.0?}; gap p50/p99/max ms around poison \
             {}, of all calls {}; {keys} objects: {verdict}",
            self.name(),
            failed.len(),
            self.trial.took(),
            ms(around),
            ms(self.gaps.all()),
        )
    }

    fn json(&self, broken: bool, around: Option<Summary>) -> Value {
        let Counts { poisoned, failed, killed, ends, saves } = &self.counts;
        let ms = |gap: Option<Summary>| {
            gap.map(|it| {
                json!({
                    "n": it.n, "p50_ms": it.p50 / 1e3, "p99_ms": it.p99 / 1e3,
                    "max_ms": it.max / 1e3,
                })
            })
        };
        json!({
            "peer": "steadfast", "measure": "poison", "mode": self.mode.name(),
            "style": self.group.style, "durability": self.group.durability, "seed": self.seed,
            "answered": self.trial.tally.ends.0, "poisoned": poisoned, "failed": failed.len(),
            "programs_killed": killed, "ends": ends, "saves": saves,
            "seconds": self.trial.took().as_secs_f64(), "gap_around_poison": ms(around),
            "gap": ms(self.gaps.all()), "objects": self.trial.tally.keys, "violation": broken,
        })
    }
}
