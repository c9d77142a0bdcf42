//! Benchmarks of what orders this node's messages.

use alloc::vec::Vec;

use wire::bench::{Plan, Word};
use wire::ordered::Ordered;
use wire::{Member, Time};

use super::Stack;
use crate::api::{BenchError, BenchProgress, BenchRequest, Output};
use crate::bench::{Effect, Here};
use crate::ordering::Ordering;

impl<O: Ordering> Stack<O> {
    /// Measures what orders the messages, on the configuration as it stands. It loads the cluster while it
    /// lasts. What came of it follows as [`Output::Bench`].
    ///
    /// # Errors
    /// Why it cannot be, and the remedy; nothing has happened then.
    pub fn bench(&mut self, now: Time, request: BenchRequest) -> Result<(), BenchError> {
        if !self.membership.is_active() {
            return Err(BenchError::NoQuorum);
        }
        if let Some(by) = self.observed.bench.asker() {
            return Err(BenchError::Running { by: by.node });
        }
        if self.observed.bench.is_asked() {
            return Err(BenchError::Running { by: self.me.node });
        }
        let BenchRequest { senders, size, count, warm, span, level, pacing, until } = request;
        let (id, ring) = (self.random.next_u64() as u32, self.membership.ring());
        let plan = Plan { id, ring, senders, size, count, warm, span, level, pacing, until };
        plan.check()?;
        let is_there =
            |node| self.outbox.ordering.members().iter().any(|member| member.node == node);
        if let Some(missing) = plan.senders.iter().find(|node| !is_there(**node)) {
            return Err(BenchError::NotAMember(*missing));
        }
        let mut effects = Vec::new();
        self.observed.bench.ask(plan, &mut effects);
        self.bench_effects(now, effects);
        self.settle(now);
        Ok(())
    }

    /// Whoever asked for a benchmark here wants it no more.
    pub fn stop_bench(&mut self, now: Time) {
        let mut effects = Vec::new();
        self.observed.bench.stop(&mut effects);
        self.bench_effects(now, effects);
        self.settle(now);
    }

    /// How far the benchmark that is under way is.
    pub fn bench_progress(&self) -> Option<BenchProgress> {
        self.observed.bench.progress()
    }

    pub(super) fn bench_word(&mut self, now: Time, sender: Member, word: Word) {
        let members = self.membership.is_active().then(|| self.outbox.ordering.members());
        let here = Here { ring: self.membership.ring(), members };
        let mut effects = Vec::new();
        self.observed.bench.word(now, here, sender, word, &mut effects);
        self.bench_effects(now, effects);
    }

    pub(super) fn bench_interrupted(&mut self, now: Time) {
        let mut effects = Vec::new();
        self.observed.bench.interrupted(&mut effects);
        self.bench_effects(now, effects);
    }

    /// Hands in what a benchmark wants sent. True if anything was.
    pub(super) fn pump_bench(&mut self, now: Time) -> bool {
        self.observed.bench.left(now, self.outbox.handed() - self.outbox.ordering.queued() as u64);
        let mut any = false;
        // What the node has to order for its own sake goes first.
        while self.outbox.is_clear()
            && let Some((payload, level)) = self.observed.bench.next(now)
            && self.multicast(now, payload, level)
        {
            self.observed.bench.handed(now, self.outbox.handed());
            any = true;
        }
        let mut effects = Vec::new();
        self.observed.bench.speak(now, &mut effects);
        any |= !effects.is_empty();
        self.bench_effects(now, effects);
        any
    }

    fn bench_effects(&mut self, now: Time, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Order(word) => self.order(now, Ordered::Bench(word)),
                Effect::Outcome(outcome) => self.outputs.push(Output::Bench(outcome)),
                Effect::Event(event) => self.event(event),
            }
        }
    }
}
