//! The way from one ring to the next: what makes a node gather, and each step after it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use wire::ring::{Commit, CommitMember, CommitStep, Join, Message};
use wire::{Member, NodeId, Random, RingId, Time};

use super::versions::common;
use super::{Ring, State};
use crate::bug::Bug;
use crate::commit::{self, Complete, Forming};
use crate::config::MAX_RING_SEQUENCE;
use crate::ended::Ended;
use crate::gather::{Gather, Heard, Sets};
use crate::recovery::{self, Plan, Recovery};
use crate::turn::Turn;
use crate::{Event, Route};

/// The steps of two lives are the same once in so many. Small beside the numbers that there are for
/// rings.
const LIFE_STEPS: u64 = 1 << 24;

impl Ring {
    /// Enters Gather with what is known, and tells all; or, when it was a proposal of this member
    /// that made it gather and there is nothing to add, only those who wait for an answer.
    pub(crate) fn gather(&mut self, now: Time, mut gather: Gather, answers: Option<Member>) {
        if matches!(self.state, State::Operational(_)) {
            self.left_at = now;
            // In a ring of all there was nobody to show oneself to: that is not late now.
            self.neighbours.show_at = self.neighbours.show_at.max(now);
        }
        // Others may be quicker to find that the token is lost: this node knows best where.
        let order = match &self.state {
            State::Recovery(recovery) => &recovery.new,
            _ => &self.order,
        };
        let unanswered = order.passed.as_ref().filter(|passed| passed.retries > 1);
        let suspect = unanswered.and_then(|passed| gather.sets.life_of(passed.to));
        let answers = answers.filter(|_| suspect.is_none());
        let wait = self.waits().suspect;
        if let Some(suspect) = suspect.filter(|suspect| !gather.is_heard_by(*suspect)) {
            gather.suspect(suspect, now, now + wait);
        }
        // A token must not outlive the ring: a member that comes back to the ring needs a new one.
        self.order.token = None;
        self.order.passed = None;
        self.committed = None;
        self.state = State::Gather(gather);
        self.propose(now, answers);
    }

    /// Sends the proposal, restarts its timers, and sees whether it is agreed already.
    pub(crate) fn propose(&mut self, now: Time, answers: Option<Member>) {
        let consensus = self.waits().consensus;
        let State::Gather(gather) = &mut self.state else { return };
        gather.consensus_at = now + consensus;
        gather.yielded = false;
        let Sets { proposed, failed, .. } = gather.sets.clone();
        self.out.event(Event::Gathering { proposed, failed });
        self.send_join(now, answers);
        self.agree(now);
    }

    /// Repeats the proposal to all configured nodes. For now, a node with nothing to add to the
    /// proposal of `answers` sends only to it and to the ring's future representative. So `n`
    /// members agree with some `n` datagrams, not with `n * n`.
    pub(crate) fn send_join(&mut self, now: Time, answers: Option<Member>) {
        let extension = self.extension();
        let State::Gather(gather) = &mut self.state else { return };
        let interval = self.config.timing.join_interval;
        let answers = answers.filter(|member| gather.agrees(*member));
        if answers.is_none() && !gather.may_tell_all(now, interval / 4) {
            return;
        }
        // The jitter keeps nodes that started together from talking at once for ever.
        let jitter = self.random.below(u64::try_from(interval.as_nanos() / 4).unwrap_or(1).max(1));
        gather.join_at = now + interval + core::time::Duration::from_nanos(jitter);
        let datagram =
            self.out.encode(Message::Join(gather.join(self.known, self.config.speaks, extension)));
        match answers {
            None => self.out.send_to_configured(datagram, &[]),
            Some(member) => {
                let mut to = vec![member];
                to.extend(gather.sets.live().next().filter(|first| *first != member));
                self.out.fan(&to, datagram, Route::Every);
            }
        }
    }

    /// "I am gone": a join that names its sender as failed.
    pub(crate) fn say_farewell(&mut self) {
        let me = self.config.me;
        let mut gather = Gather::new(me, Sets::of(&self.order.members));
        gather.fail(me);
        let extension = self.extension();
        let datagram =
            self.out.encode(Message::Join(gather.join(self.known, self.config.speaks, extension)));
        self.out.send_to_configured(datagram, &[]);
    }

    /// With consensus, the member with the smallest id forms the ring.
    pub(crate) fn agree(&mut self, now: Time) {
        let step = self.step();
        let State::Gather(gather) = &mut self.state else { return };
        if !gather.consensus(now) || gather.sets.live().next() != Some(self.config.me) {
            return;
        }
        let (version, unfit) = common(&self.config, &self.neighbours, gather.sets.live());
        if !unfit.is_empty() {
            let sets = gather.sets.clone();
            return self.failed(now, sets, &unfit);
        }
        if self.known >= MAX_RING_SEQUENCE {
            return; // No number is left for a ring. Only a forged one can have brought us here.
        }
        self.known += step;
        let id = RingId { sequence: self.known, representative: self.config.me.node };
        let sets = mem::take(&mut gather.sets);
        self.out.version = match self.config.planted.is(Bug::SpeakNewerEarly) {
            true => self.config.speaks.ring.greatest,
            false => version,
        };
        let give_up_at = now + self.waits().consensus;
        let mut forming = Forming::new(sets, id, now, give_up_at);
        forming.fill(commit::entry(&self.order));
        self.state = State::Commit(forming);
        self.advance_commit(now);
    }

    /// The representative asks for the entries that it lacks, or goes on when it has all.
    pub(crate) fn advance_commit(&mut self, now: Time) {
        let State::Commit(forming) = &mut self.state else { return };
        if let Some(complete) = forming.complete() {
            let sets = mem::take(&mut forming.sets);
            self.send_entries(&complete, None);
            return self.recover(now, sets, complete);
        }
        if forming.retry_at > now {
            return;
        }
        forming.retry_at = now + self.config.timing.token_retransmit;
        let lacking: Vec<Member> = forming.lacking().collect();
        let call = Commit { ring: forming.ring, step: CommitStep::Call(forming.members.clone()) };
        let datagram = self.out.encode(Message::Commit(call));
        self.out.fan(&lacking, datagram, Route::Every);
    }

    /// Tells what all bring along: to all, or to one who has not heard it.
    fn send_entries(&mut self, complete: &Complete, to: Option<NodeId>) {
        for step in complete.steps() {
            let commit = Message::Commit(Commit { ring: complete.ring, step });
            let datagram = self.out.encode(commit);
            match to {
                Some(node) => self.out.send_bytes(node, datagram, Route::Every),
                None => self.out.fan(&complete.members(), datagram, Route::Every),
            }
        }
    }

    /// A member says again what it brings along.
    pub(crate) fn repeat_entry(&mut self, now: Time) {
        let State::Commit(forming) = &mut self.state else { return };
        if forming.retry_at <= now {
            forming.retry_at = now + self.config.timing.token_retransmit;
            let (ring, step) = (forming.ring, CommitStep::Entry(commit::entry(&self.order)));
            let commit = Message::Commit(Commit { ring, step });
            self.out.send(ring.representative, commit, Route::Every);
        }
    }

    pub(crate) fn on_commit(&mut self, now: Time, sender: Member, version: u8, commit: Commit) {
        let Commit { ring, step } = commit;
        let by_representative = sender.node == ring.representative;
        match step {
            CommitStep::Call(members) if by_representative => {
                self.on_call(now, (sender, version), ring, &members);
            }
            CommitStep::Entry(entry) if ring.representative == self.config.me.node => {
                if entry.member == sender {
                    self.on_entry(now, ring, entry);
                }
            }
            CommitStep::Entries(entries) if by_representative => {
                self.on_entries(now, sender, ring, entries);
            }
            CommitStep::Call(_) | CommitStep::Entry(_) | CommitStep::Entries(_) => {}
        }
    }

    /// The representative gets a member's entry.
    fn on_entry(&mut self, now: Time, ring: RingId, entry: CommitMember) {
        if let State::Commit(forming) = &mut self.state {
            if forming.ring == ring && forming.fill(entry) {
                self.advance_commit(now);
            }
        } else if let Some(complete) = self.committed.take() {
            if complete.ring == ring && complete.entries.iter().any(|e| e.member == entry.member) {
                // It has not heard that the commit is complete.
                self.send_entries(&complete, Some(entry.member.node));
            }
            self.committed = Some(complete);
        }
    }

    /// The distance of the next ring's sequence from the largest that is known. One, if this life's
    /// own ring had the largest. A number from others may have come to an earlier life of this node
    /// too. That life gave the next number to a ring of lives that are all gone: so each life goes
    /// on in a step of its own.
    fn step(&self) -> u64 {
        let own = self.known <= self.order.id.sequence;
        if own { 1 } else { 1 + Random::new(self.config.me.incarnation.0).below(LIFE_STEPS) }
    }

    /// A member is asked for its entry, by the representative and in the version of the new ring.
    fn on_call(
        &mut self,
        now: Time,
        (sender, version): (Member, u8),
        ring: RingId,
        members: &[Member],
    ) {
        let ours = match &mut self.state {
            // A node that suspects a member does not form a ring with it before that one has
            // answered: else the two would part again as soon as the ring stands.
            State::Gather(gather) if gather.suspected().is_none() => &mut gather.sets,
            State::Commit(forming) => &mut forming.sets,
            _ => return,
        };
        let fresh = ring.sequence > self.known && ring.sequence <= MAX_RING_SEQUENCE;
        // The representative is the first of them.
        if !fresh || members.first() != Some(&sender) || !ours.live().eq(members.iter().copied()) {
            return;
        }
        let sets = mem::take(ours);
        self.known = ring.sequence;
        self.out.version = version;
        let give_up_at = now + self.waits().consensus;
        self.state = State::Commit(Forming::new(sets, ring, now, give_up_at));
        self.repeat_entry(now);
    }

    /// A member learns what all bring along, in one datagram or in several.
    fn on_entries(&mut self, now: Time, sender: Member, ring: RingId, entries: Vec<CommitMember>) {
        let State::Commit(forming) = &mut self.state else { return };
        let mine = commit::entry(&self.order);
        let about_me = entries.iter().find(|entry| entry.member == mine.member);
        if forming.ring != ring
            || forming.members[0] != sender
            || about_me.is_some_and(|entry| *entry != mine)
        {
            return;
        }
        for entry in entries {
            forming.fill(entry);
        }
        if let Some(complete) = forming.complete() {
            let sets = mem::take(&mut forming.sets);
            self.recover(now, sets, complete);
        }
    }

    /// The commit is complete: exchange what is to be exchanged, or install the ring at once.
    fn recover(&mut self, now: Time, sets: Sets, commit: Complete) {
        let plan = Plan::new(&commit, &self.order);
        let mut new = recovery::new_order(&commit, self.config.me, now);
        let settled = plan.settled || self.config.planted.is(Bug::SkipRecovery);
        let first = commit.ring.representative == self.config.me.node;
        new.watch.timeout = self.order.watch.timeout.clone();
        if first {
            let token = recovery::first_token(&new, settled);
            new.hop = token.hop;
            new.token = Some(token);
        }
        self.committed = Some(commit);
        self.state = State::Recovery(Box::new(Recovery::new(sets, plan, new)));
        if settled || (first && self.recovering(now).go_on()) {
            self.install_recovered(now);
        }
    }

    /// The new ring takes the old one's place.
    pub(crate) fn install_recovered(&mut self, now: Time) {
        let State::Recovery(recovery) = mem::replace(&mut self.state, State::Left) else {
            unreachable!("only a ring in recovery is installed")
        };
        let recovered = recovery.recovered();
        let opens = recovery.closed || recovery.plan.settled;
        let Recovery { plan, new, sets, .. } = *recovery;
        recovery::finish(
            &self.config,
            &plan,
            self.installed.then_some(&mut self.order),
            &new,
            &mut self.assembly,
            &mut self.out,
        );
        self.past.rotate_right(1);
        self.past[0] = self.order.id;
        let Sets { proposed: mut before, slow, .. } = sets;
        if self.installed {
            before
                .extend(self.order.members.iter().filter(|member| !new.members.contains(*member)));
            before.sort_unstable();
            before.dedup();
        }
        self.kept_most = self.buffers().datagrams.most;
        self.ended = Ended::of(&self.order, &plan.transitional);
        self.order = new;
        self.installed = true;
        self.state = State::Operational(Turn::new(self.order.members.len(), now));
        let slow: Vec<Member> = slow.iter().map(|blame| blame.member).collect();
        self.strike_the_lost(now, &before, &slow);
        if !self.config.planted.is(Bug::ResumeMessage) {
            self.queue.rewind();
        }
        let took = now.since(self.left_at);
        self.out.event(Event::Installed { ring: self.order.id, took, recovered });
        self.order.deliver(&self.config, &mut self.assembly, &mut self.out);
        self.operational(now).settle_in(opens);
    }

    /// A proposal came.
    pub(crate) fn on_join(&mut self, now: Time, sender: Member, join: Join) {
        if join.ring_sequence > MAX_RING_SEQUENCE {
            return;
        }
        let me = self.config.me;
        let (mut gather, ring) = match &mut self.state {
            State::Left => {
                return if self.order.index_of(sender).is_some() {
                    self.say_farewell()
                };
            }
            State::Gather(_) => return self.on_join_in_gather(now, sender, join),
            State::Operational(_) => {
                (Gather::new(me, Sets::of(&self.order.members)), Some(&self.order))
            }
            State::Recovery(recovery) => {
                (Gather::new(me, recovery.sets.clone()), Some(&recovery.new))
            }
            State::Commit(forming) => (Gather::new(me, forming.sets.clone()), None),
        };
        let follows = match ring {
            // A member of the ring knows the ring: what it said before is late.
            Some(ring) if ring.index_of(sender).is_some() => join.ring_sequence >= ring.id.sequence,
            None if gather.sets.live().any(|member| member == sender) => {
                join.ring_sequence >= self.known || gather.is_news(&self.out.nodes, sender, &join)
            }
            // One that comes while a ring is being formed comes again when it stands.
            _ => matches!(self.state, State::Operational(_)) && self.admits(now, sender, &join),
        };
        if follows && gather.hear(&self.out.nodes, sender, &join) != Heard::Ignored {
            self.known = self.known.max(join.ring_sequence);
            Self::tell_of_the_slow(&mut self.out, self.config.me, &mut gather, sender, &join);
            self.gather(now, gather, Some(sender));
        }
    }

    fn on_join_in_gather(&mut self, now: Time, sender: Member, join: Join) {
        let extension = self.extension();
        let State::Gather(gather) = &mut self.state else { return };
        // In the ring that was left, this sender knew a larger number than it names here.
        if self.order.index_of(sender).is_some() && join.ring_sequence < self.order.id.sequence {
            return;
        }
        let stranger = gather.sets.life_of(sender.node) != Some(sender);
        let timing = &self.config.timing;
        let late = self.neighbours.is_late(now, timing, sender, join.ring_sequence);
        if late || stranger && self.neighbours.holds_off(now, sender) {
            return;
        }
        let heard = gather.hear(&self.out.nodes, sender, &join);
        if heard != Heard::Ignored {
            Self::tell_of_the_slow(&mut self.out, self.config.me, gather, sender, &join);
        }
        match heard {
            Heard::Ignored => {}
            Heard::Excluded => self.go_alone(now),
            Heard::Same => {
                self.known = self.known.max(join.ring_sequence);
                if !join.says(join.heard, self.config.me) {
                    // It has heard nothing of this node yet, and may suspect it.
                    let datagram = self.out.encode(Message::Join(gather.join(
                        self.known,
                        self.config.speaks,
                        extension,
                    )));
                    self.out.send_bytes(sender.node, datagram, Route::Every);
                }
                self.agree(now);
            }
            Heard::Changed => {
                self.known = self.known.max(join.ring_sequence);
                self.propose(now, Some(sender));
            }
        }
    }

    pub(crate) fn on_unreachable(&mut self, now: Time, node: NodeId) {
        let sets = match &self.state {
            State::Gather(gather) => &gather.sets,
            State::Commit(forming) => &forming.sets,
            State::Recovery(recovery) => &recovery.sets,
            State::Operational(_) => &Sets::of(&self.order.members),
            State::Left => return,
        };
        let Some(life) = sets.life_of(node).filter(|life| !sets.has_failed(*life)) else { return };
        let sets = sets.clone();
        self.out.event(Event::Unreachable(life));
        self.failed(now, sets, &[life]);
    }

    /// These members have failed: all are told, and have to agree.
    pub(crate) fn failed(&mut self, now: Time, sets: Sets, lives: &[Member]) {
        if let State::Gather(gather) = &mut self.state {
            for life in lives {
                gather.fail(*life);
            }
            self.propose(now, None);
        } else {
            let mut gather = Gather::new(self.config.me, sets);
            for life in lives {
                gather.fail(*life);
            }
            self.gather(now, gather, None);
        }
    }

    /// Everybody else goes on without this node: it need not wait to find that out. Nobody is
    /// left who works with both it and them, so that its word against them can do no harm.
    pub(crate) fn go_alone(&mut self, now: Time) {
        let State::Gather(gather) = &mut self.state else { return };
        if gather.is_excluded() {
            let others: Vec<_> =
                gather.sets.live().filter(|member| *member != self.config.me).collect();
            let sets = gather.sets.clone();
            self.failed(now, sets, &others);
        }
    }
}
