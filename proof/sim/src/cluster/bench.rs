//! The ring is measured while it serves, and while faults happen.

use engine::{BenchError, BenchRequest, BenchResult};
use wire::bench::{LOAD_HEADER, Pacing, Until};
use wire::ring::Level;
use wire::{Duration, NodeId};

use super::{Cluster, Extra};
use crate::check::{Verdict, benchmarks};
use crate::fabric::node_id;

/// Messages of a sender: a benchmark of a real cluster has a million, which finds no more.
const COUNT: u64 = 40;

impl Cluster {
    pub(super) fn plan_bench(&mut self) {
        if self.options.benches {
            let wait = self.load.span(Duration::from_millis(20), self.options.faults.phase / 2);
            self.fabric.later(wait, Extra::Bench);
        }
    }

    /// Some node is asked for a benchmark. It may refuse.
    pub(super) fn bench(&mut self) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        self.plan_bench();
        let nodes = self.options.nodes;
        let draw = &mut self.load;
        let node = draw.count(0, nodes - 1);
        let senders = draw.count(1, nodes);
        let mut senders: Vec<NodeId> =
            draw.distinct(senders, nodes).into_iter().map(node_id).collect();
        senders.sort_unstable();
        let request = BenchRequest {
            senders,
            size: (LOAD_HEADER as u64 + draw.pick(&[0, 64, 1_000, 8_000])) as u32,
            count: COUNT,
            warm: 5,
            span: draw.span(Duration::from_millis(5), Duration::from_millis(200)),
            level: draw.pick(&[Level::Agreed, Level::Safe]),
            pacing: draw.pick(&[
                Pacing::Window(1),
                Pacing::Window(8),
                Pacing::Every(Duration::from_millis(2)),
            ]),
            until: draw.pick(&[Until::Own, Until::All, Until::Echo]),
        };
        let now = self.fabric.local(node);
        let Some(process) = self.fabric.running(node) else { return Ok(()) };
        let asked = process.bench(now, request);
        self.fabric.say(|| format!("node {} is asked for a benchmark: {asked:?}", node + 1));
        if asked.is_ok() {
            self.course.measures = Some(self.fabric.member(node));
        }
        self.drain(node)
    }

    /// A benchmark is under way: it fills the ring, and calls wait for their share of it.
    pub(super) fn missing_bench(&self) -> Option<String> {
        let by = self.course.measures?;
        let lives = |node: usize| self.fabric.hosts[node].runs() && self.fabric.member(node) == by;
        (0..self.options.nodes).any(lives).then(|| format!("the benchmark of {by} is under way"))
    }

    /// A benchmark has ended with this result.
    pub(super) fn benched(&mut self, result: Result<BenchResult, BenchError>) -> Verdict {
        self.fabric.say(|| match &result {
            Ok(result) => format!("a benchmark ends: {:?}", result.sent),
            Err(error) => format!("a benchmark ends: {error}"),
        });
        self.course.measures = None;
        match result {
            Ok(BenchResult { sent, reports, .. }) => benchmarks::ended(&sent, &reports),
            Err(_) => Ok(()),
        }
    }
}
