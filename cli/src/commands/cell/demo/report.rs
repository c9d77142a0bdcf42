//! The end of a demonstration, for people and for programs.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

/// The ends of calls to one group.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Count {
    pub group: String,
    pub answered: u64,
    /// Calls that may have been executed.
    pub unknown: u64,
    /// Calls that were certainly not executed.
    pub refused: u64,
}

/// Milliseconds.
pub(super) fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The waits of callers in a while, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Waits {
    /// The group that they call.
    pub group: String,
    pub median_ms: f64,
    pub longest_ms: f64,
}

/// A fault, and what came of it.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub what: String,
    pub then: String,
    pub after_ms: f64,
    pub waits: Vec<Waits>,
}

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub nodes: usize,
    pub stood_ms: f64,
    /// Before any fault.
    pub calm: Vec<Waits>,
    pub faults: Vec<Fault>,
    pub counts: Vec<Count>,
    /// Each acknowledged call was executed once.
    pub passed: bool,
}

impl Report {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "undisturbed")?;
        waits(text, &self.calm)?;
        for fault in &self.faults {
            let Fault { what, then, after_ms, .. } = fault;
            writeln!(text, "{what}: {then} after {after_ms:.0} ms")?;
            waits(text, &fault.waits)?;
        }
        for Count { group, answered, unknown, refused } in &self.counts {
            write!(text, "{group}: {answered} calls answered")?;
            writeln!(text, ", {refused} not executed, of {unknown} nobody knows")?;
        }
        text.push_str(match self.passed {
            true => "every acknowledged call was executed once\n",
            false => "CALLS WERE LOST OR EXECUTED TWICE\n",
        });
        Ok(())
    }
}

fn waits(text: &mut String, waits: &[Waits]) -> std::fmt::Result {
    for Waits { group, median_ms, longest_ms } in waits {
        let longest = "the longest wait for an answer";
        writeln!(text, "  {group:<20} median {median_ms:.2} ms, {longest} {longest_ms:.0} ms")?;
    }
    Ok(())
}
