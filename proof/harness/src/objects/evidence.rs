//! The evidence that a failed run leaves behind, and the summary of a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use history::models::{Log, Register};
use history::{Limits, Model, Report, check};
use serde_json::json;

use super::clients::Book;
use super::line;
use crate::Outcome;
use crate::figures::quantile;

/// The results of a run so far.
#[derive(Default)]
pub struct Tally {
    /// Calls answered, certainly not executed, and neither.
    pub ends: (usize, usize, usize),
    /// Objects that were judged.
    pub keys: usize,
    /// Objects whose history nobody could judge, in words.
    pub undecided: Vec<String>,
    /// The gap of each fault in milliseconds.
    gaps: BTreeMap<String, Vec<f64>>,
}

/// The fault of a round, if there is one.
pub(crate) fn judge(book: &Book, tally: &mut Tally) -> Option<String> {
    if let Some(nonsense) = &book.nonsense {
        return Some(format!("{nonsense}\n"));
    }
    let (a, b) = (book.registers.ends(), book.logs.ends());
    let ends = &mut tally.ends;
    *ends = (ends.0 + a.0 + b.0, ends.1 + a.1 + b.1, ends.2 + a.2 + b.2);
    let registers = check(&Register, book.registers.operations(), Limits::default());
    let logs = check(&Log, book.logs.operations(), Limits::default());
    tally.note("register", &registers);
    tally.note("log", &logs);
    let broken = registers.broken.map(|broken| format!("register: {broken}"));
    broken.or(logs.broken.map(|broken| format!("log: {broken}")))
}

impl Tally {
    fn note<M: Model>(&mut self, kind: &str, report: &Report<M>) {
        self.keys += report.keys;
        self.undecided.extend(report.undecided.iter().map(|undecided| {
            let history::Undecided { key, operations, limit } = undecided;
            format!("{kind} {key:?}: {operations} operations need more than the limit of {limit}")
        }));
    }

    /// A fault cost the clients this much.
    pub fn gap(&mut self, kind: &str, gap: f64) {
        self.gaps.entry(kind.into()).or_default().push(gap);
    }

    /// By kind of fault: how many, and the gap that clients saw.
    pub fn table(&self) -> String {
        let mut text =
            format!("{:<10}{:>7}{:>12}{:>12}\n", "fault", "times", "p50 gap ms", "worst");
        for (kind, gaps) in &self.gaps {
            let at = |share| quantile(gaps.clone(), share).unwrap_or_default();
            let (times, half, worst) = (gaps.len(), at(0.5), at(1.0));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{kind:<10}{times:>7}{half:>12.1}{worst:>12.1}");
        }
        text
    }

    /// The same for tools.
    pub fn json(&self) -> serde_json::Value {
        let kind = |(kind, gaps): (&String, &Vec<f64>)| {
            let at = |share| quantile(gaps.clone(), share);
            let figures =
                json!({ "times": gaps.len(), "gap_ms": at(0.5), "worst_gap_ms": at(1.0) });
            (kind.clone(), figures)
        };
        let kinds: serde_json::Map<_, _> = self.gaps.iter().map(kind).collect();
        serde_json::Value::Object(kinds)
    }
}

/// Says that these histories cannot be judged, if there are any.
pub fn undecided(histories: &[String]) -> Option<String> {
    let (first, count) = (histories.first()?, histories.len());
    Some(format!("UNDECIDED: {count} histories cannot be judged, the first: {first}"))
}

/// A fault, and the evidence of it.
pub struct Finding {
    /// In words.
    pub text: String,
    /// The round in which it was seen.
    pub book: Option<Box<Book>>,
}

impl<T: std::fmt::Display> From<T> for Finding {
    fn from(text: T) -> Finding {
        Finding { text: format!("{text}\n"), book: None }
    }
}

/// Leaves the histories of a round, the faults so far and what the nodes told in a folder.
pub(crate) fn leave(
    folder: &Path,
    finding: &Finding,
    faults: &[String],
    copy_logs: impl FnOnce(&Path) -> Outcome<()>,
) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("finding.txt"), &finding.text)?;
    if let Some(book) = &finding.book {
        let registers = book.registers.operations().iter().map(|one| line(&Register, one));
        let mut lines: Vec<_> =
            registers.chain(book.logs.operations().iter().map(|one| line(&Log, one))).collect();
        lines.sort();
        let mut text =
            String::from("# nanoseconds of the call, of the answer, client, object: what\n");
        lines.iter().for_each(|(_, line)| text.extend([line, "\n"]));
        fs::write(folder.join("history.txt"), text)?;
    }
    let told: Vec<String> = faults.iter().map(|fault| format!("{fault}\n")).collect();
    fs::write(folder.join("faults.txt"), told.concat())?;
    copy_logs(folder)
}

/// The verdict in words.
pub fn verdict(broken: bool) -> &'static str {
    if broken { "A PROMISE IS BROKEN" } else { "linearizable, replicas alike" }
}
