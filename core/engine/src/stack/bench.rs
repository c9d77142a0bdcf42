//! Benchmarks of the engine that orders this node's messages.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::bench::{Plan, Word};
use wire::ordered::Ordered;
use wire::{Member, Time};

use crate::api::{BenchError, BenchRequest, Output};
use crate::base::Base;
use crate::bench::{Bench, Effect, Here};
use crate::ordering::Ordering;

/// Lets the benchmark act, and carries out its requests.
pub(super) struct BenchHandler<'a, O> {
    pub(super) base: &'a mut Base<O>,
    pub(super) bench: &'a mut Bench,
}

impl<O: Ordering> BenchHandler<'_, O> {
    /// See [`Stack::bench`](super::Stack::bench).
    pub(crate) fn ask(&mut self, now: Time, request: BenchRequest) -> Result<(), BenchError> {
        if !self.base.membership.is_active() {
            return Err(BenchError::NoQuorum);
        }
        if let Some(by) = self.bench.asker() {
            return Err(BenchError::Running { by: by.node });
        }
        if self.bench.is_asked() {
            return Err(BenchError::Running { by: self.base.me.node });
        }
        let BenchRequest { senders, size, count, warm, span, level, pacing, until } = request;
        let (id, ring) = (self.base.random.next_u64() as u32, self.base.membership.ring());
        let plan = Plan { id, ring, senders, size, count, warm, span, level, pacing, until };
        plan.check()?;
        let is_there =
            |node| self.base.outbox.ordering.members().iter().any(|member| member.node == node);
        if let Some(missing) = plan.senders.iter().find(|node| !is_there(**node)) {
            return Err(BenchError::NotAMember(*missing));
        }
        let mut effects = Vec::new();
        self.bench.ask(plan, &mut effects);
        self.act(now, effects);
        Ok(())
    }

    pub(crate) fn stop(&mut self, now: Time) {
        let mut effects = Vec::new();
        self.bench.stop(&mut effects);
        self.act(now, effects);
    }

    pub(crate) fn word(&mut self, now: Time, sender: Member, word: Word) {
        let members = self.base.membership.is_active().then(|| self.base.outbox.ordering.members());
        let here = Here { ring: self.base.membership.ring(), members };
        let mut effects = Vec::new();
        self.bench.word(now, here, sender, word, &mut effects);
        self.act(now, effects);
    }

    pub(crate) fn interrupted(&mut self, now: Time) {
        let mut effects = Vec::new();
        self.bench.interrupted(&mut effects);
        self.act(now, effects);
    }

    /// Hands in a benchmark's messages. True if there were any.
    pub(crate) fn pump(&mut self, now: Time) -> bool {
        self.bench.left(now, self.base.outbox.handed() - self.base.outbox.ordering.queued() as u64);
        let mut any = false;
        // The node's own messages go first.
        while self.base.outbox.is_clear()
            && let Some((payload, level)) = self.bench.next(now)
            && self.base.outbox.multicast(now, payload.into(), level)
        {
            self.bench.handed(now, self.base.outbox.handed());
            any = true;
        }
        let mut effects = Vec::new();
        self.bench.speak(now, &mut effects);
        any |= !effects.is_empty();
        self.act(now, effects);
        any
    }

    fn act(&mut self, now: Time, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Order(word) => self.base.order(now, Ordered::Bench(Box::new(word))),
                Effect::Outcome(outcome) => {
                    self.base.outputs.push(Output::Bench(Box::new(outcome)))
                }
                Effect::Event(event) => self.base.event(event),
            }
        }
    }
}
