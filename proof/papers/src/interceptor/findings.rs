//! The results, for people beside the paper's figures, and for programs.

use harness::report::row;
use harness::{Findings, Run};
use serde_json::{Value, json};

use super::instructions::Counted;
use super::kind::{Kind, PAIRS, SIZE};
use super::memory::Memory;
use super::pair::Calls;
use super::steps::Taken;

/// The paper's figures: microseconds a call, and megabytes of a client's process.
const PAPER_CALL: f64 = 8.0;
const PAPER_MEMORY: f64 = 10.2;

/// Everything.
pub struct Found {
    pub machine: String,
    /// The calls of each pair.
    pub calls: Vec<Calls>,
    /// In the order of [`Kind::ALL`].
    pub memory: [Memory; 3],
    pub steps: Taken,
    pub instructions: Option<Counted>,
}

impl Found {
    fn pairs(&self) -> Vec<Value> {
        let pairs = self.calls.iter().zip(PAIRS).map(|(calls, (.., what))| {
            let (it, [kind, than]) = (calls.difference(), calls.medians());
            json!({
                "kind": calls.kind, "than": calls.than, "n": calls.pairs.len(),
                "kind_p50_ns": kind, "than_p50_ns": than, "median_ns": it.median,
                "low_ns": it.low, "high_ns": it.high, "mean_ns": it.mean,
                "private_kib": self.more(calls.kind, calls.than), "what": what,
            })
        });
        pairs.collect()
    }

    fn print_steps(&self) {
        let Taken { fixed, proactive } = self.steps;
        println!(
            "the client's machine alone, ns a call: static {fixed:.0}, proactive {proactive:.0} \
             ({:+.0})",
            proactive - fixed
        );
        match &self.instructions {
            Some(Counted { by, fixed, proactive }) => println!(
                "its instructions a call: static {fixed:.0}, proactive {proactive:.0} ({:+.0}), \
                 by {by}",
                proactive - fixed
            ),
            None => println!(
                "its instructions a call: not to be counted here: perf has no counters, or is \
                 missing, and valgrind is"
            ),
        }
    }

    /// KiB of its own that a process has more.
    fn more(&self, kind: Kind, than: Kind) -> i64 {
        let of = |kind: Kind| self.memory[kind as usize].private as i64;
        of(kind) - of(than)
    }
}

impl Findings for Found {
    fn print(&self, run: &Run) {
        let turns = self.calls.first().map_or(0, |calls| calls.pairs.len());
        println!(
            "on {}; {turns} calls of {SIZE} bytes of each of two clients in turns, to one \
             stateless replica",
            self.machine
        );
        let table = run.table(
            "client=kind:10, than:11, its p50 ns=kind_p50_ns:14.0, than's=than_p50_ns:9.0, \
             longer by=median_ns:11.0, 95 %: from=low_ns:12.0, to=high_ns:8.0, mean=mean_ns:8.0, \
             what it is of=what:<0",
        );
        self.pairs().iter().for_each(|pair| table.row(pair));
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
            "the paper (figures 6b, 6c): {PAPER_CALL} us a call, {PAPER_MEMORY} MB a process; \
             ours is to be at most 1 us and 1 MiB"
        );
    }

    fn json(&self) -> Value {
        let memory = Kind::ALL
            .iter()
            .zip(&self.memory)
            .map(|(kind, memory)| row(memory, json!({ "kind": kind.name() })));
        json!({
            "peer": "steadfast", "measure": "interceptor", "machine": self.machine, "size": SIZE,
            "pairs": self.pairs(), "memory": memory.collect::<Vec<_>>(),
            "steps_ns": self.steps,
            "instructions": self.instructions,
            "paper": { "call_us": PAPER_CALL, "memory_mb": PAPER_MEMORY },
        })
    }
}
