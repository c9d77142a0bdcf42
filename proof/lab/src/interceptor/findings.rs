//! What was found, for people beside the paper's figures, and for programs.

use serde_json::{Value, json};

use super::instructions::Counted;
use super::memory::Memory;
use super::pair::{Calls, Difference};
use super::steps::Taken;
use super::{Kind, PAIRS, SIZE};

/// The paper's figures: microseconds a call, and megabytes of a client's process.
const PAPER_CALL: f64 = 8.0;
const PAPER_MEMORY: f64 = 10.2;

/// Everything.
pub struct Findings {
    pub machine: String,
    /// Of each pair.
    pub calls: Vec<Calls>,
    /// In the order of [`Kind::ALL`].
    pub memory: [Memory; 3],
    pub steps: Taken,
    pub instructions: Option<Counted>,
}

impl Findings {
    /// The text for people.
    pub fn print(&self) {
        let turns = self.calls.first().map_or(0, |calls| calls.pairs.len());
        println!(
            "on {}; {turns} calls of {SIZE} bytes of each of two clients in turns, to one stateless replica",
            self.machine
        );
        println!(
            "{:>10} {:>10}{:>14}{:>14}{:>16}{:>24}{:>9}  what it is of",
            "client", "than", "its p50, us", "than's, us", "longer by, ns", "95 % of that", "mean"
        );
        for (calls, (.., what)) in self.calls.iter().zip(PAIRS) {
            let [kind, than] = calls.medians().map(|nanos| nanos / 1e3);
            let Difference { median, low, high, mean } = calls.difference();
            println!(
                "{:>10} {:>10}{kind:14.2}{than:14.2}{median:+16.0}{:>24}{mean:+9.0}  {what}",
                calls.kind.name(),
                calls.than.name(),
                format!("{low:+.0} to {high:+.0}"),
            );
        }
        for (kind, memory) in Kind::ALL.iter().zip(&self.memory) {
            let Memory { resident, private } = memory;
            println!(
                "a process with a {} client: {resident} KiB resident, {private} of them its own",
                kind.name()
            );
        }
        println!(
            "its own memory: proactive has {:+} KiB than static, {:+} than bare",
            self.more(Kind::Proactive, Kind::Static),
            self.more(Kind::Proactive, Kind::Bare)
        );
        self.print_steps();
        println!(
            "the paper (figures 6b, 6c): {PAPER_CALL} us a call, {PAPER_MEMORY} MB a process; ours is to be at most 1 us and 1 MiB"
        );
    }

    fn print_steps(&self) {
        let Taken { fixed, proactive } = self.steps;
        println!(
            "the client's machine alone, ns a call: static {fixed:.0}, proactive {proactive:.0} ({:+.0})",
            proactive - fixed
        );
        match &self.instructions {
            Some(Counted { by, fixed, proactive }) => println!(
                "its instructions a call: static {fixed:.0}, proactive {proactive:.0} ({:+.0}), by {by}",
                proactive - fixed
            ),
            None => println!(
                "its instructions a call: not to be counted here: perf has no counters, or is missing, and valgrind is"
            ),
        }
    }

    /// KiB of its own that a process has more.
    fn more(&self, kind: Kind, than: Kind) -> i64 {
        let of = |kind: Kind| self.memory[kind as usize].private as i64;
        of(kind) - of(than)
    }

    /// All of it for programs.
    pub fn json(&self) -> Value {
        let memory = Kind::ALL.iter().zip(&self.memory).map(|(kind, memory)| {
            json!({ "kind": kind.name(), "resident_kib": memory.resident, "private_kib": memory.private })
        });
        let pairs = self.calls.iter().map(|calls| {
            let (it, [kind, than]) = (calls.difference(), calls.medians());
            json!({
                "kind": calls.kind.name(), "than": calls.than.name(), "n": calls.pairs.len(), "kind_p50_ns": kind, "than_p50_ns": than,
                "median_ns": it.median, "low_ns": it.low, "high_ns": it.high, "mean_ns": it.mean,
                "private_kib": self.more(calls.kind, calls.than),
            })
        });
        let instructions = self
            .instructions
            .as_ref()
            .map(|it| json!({ "by": it.by, "static": it.fixed, "proactive": it.proactive }));
        json!({
            "peer": "steadfast", "measure": "interceptor", "machine": self.machine, "size": SIZE,
            "pairs": pairs.collect::<Vec<_>>(), "memory": memory.collect::<Vec<_>>(),
            "steps_ns": { "static": self.steps.fixed, "proactive": self.steps.proactive },
            "instructions": instructions,
            "paper": { "call_us": PAPER_CALL, "memory_mb": PAPER_MEMORY },
        })
    }
}
