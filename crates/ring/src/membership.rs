//! The way from one ring to the next: what makes a node gather, and each step after it.

use alloc::boxed::Box;
use core::mem;

use wire::ring::{Commit, Join, Message};
use wire::{Member, NodeId, RingId, Time};

use crate::bug::planted;
use crate::commit::{self, Forming};
use crate::config::MAX_RING_SEQUENCE;
use crate::gather::{Gather, Heard, Sets};
use crate::operational::Turn;
use crate::recovery::{self, Plan, Recovery};
use crate::{Event, Ring, Route, State};

impl Ring {
    /// Enters Gather with what is known, and tells all.
    pub(crate) fn gather(&mut self, now: Time, gather: Gather) {
        if matches!(self.state, State::Operational(_)) {
            self.left_at = now;
        }
        // A token must not outlive the ring: whoever comes back to it does so by a new one.
        self.order.token = None;
        self.order.passed = None;
        self.committed = None;
        self.state = State::Gather(gather);
        self.propose(now);
    }

    /// Sends the proposal to all, restarts its timers, and sees whether it is agreed already.
    fn propose(&mut self, now: Time) {
        let State::Gather(gather) = &mut self.state else { return };
        gather.consensus_at = now + self.config.timing.consensus_timeout;
        let Sets { proposed, failed } = gather.sets.clone();
        self.out.event(Event::Gathering { proposed, failed });
        self.send_join(now);
        self.agree(now);
    }

    pub(crate) fn send_join(&mut self, now: Time) {
        let State::Gather(gather) = &mut self.state else { return };
        // The jitter keeps nodes that started together from talking at once for ever.
        let interval = self.config.timing.join_interval;
        let jitter = self.random.below(u64::try_from(interval.as_nanos() / 4).unwrap_or(1).max(1));
        gather.join_at = now + interval + core::time::Duration::from_nanos(jitter);
        let Sets { proposed, failed } = gather.sets.clone();
        self.send_to_all(Message::Join(Join { proposed, failed, ring_sequence: self.known }));
    }

    fn send_to_all(&mut self, message: Message) {
        let datagram = self.out.encode(message);
        self.out.send_to_configured(datagram, &[]);
    }

    /// "I am gone": a join that names its sender as failed.
    pub(crate) fn say_farewell(&mut self) {
        let me = self.config.me;
        let mut sets = Sets::of(&self.order.members);
        sets.fail(me);
        let Sets { proposed, failed } = sets;
        self.send_to_all(Message::Join(Join { proposed, failed, ring_sequence: self.known }));
    }

    /// With consensus, the member with the smallest id forms the ring.
    pub(crate) fn agree(&mut self, now: Time) {
        let State::Gather(gather) = &mut self.state else { return };
        if !gather.consensus(now) || gather.sets.live().next() != Some(self.config.me) {
            return;
        }
        if self.known >= MAX_RING_SEQUENCE {
            return; // No number is left for a ring. Only a forged one can have brought us here.
        }
        self.known += 1;
        let id = RingId { sequence: self.known, representative: self.config.me.node };
        let sets = mem::take(&mut gather.sets);
        let mut commit = commit::blank(id, sets.live());
        commit.members[0] = commit::entry(&self.order);
        self.state = State::Commit(Forming {
            sets,
            commit,
            retry_at: now,
            give_up_at: now + self.config.timing.consensus_timeout,
        });
        self.advance_commit(now);
    }

    /// The representative asks for the entries that it lacks, or goes on when it has all.
    pub(crate) fn advance_commit(&mut self, now: Time) {
        let State::Commit(forming) = &mut self.state else { return };
        if commit::is_complete(&forming.commit) {
            let mut commit = forming.commit.clone();
            let sets = mem::take(&mut forming.sets);
            commit.round = 2;
            let datagram = self.out.encode(Message::Commit(commit.clone()));
            self.out.fan(&commit::members_of(&commit), datagram, Route::Every);
            return self.recover(now, sets, commit);
        }
        if forming.retry_at > now {
            return;
        }
        forming.retry_at = now + self.config.timing.token_retransmit;
        let datagram = self.out.encode(Message::Commit(forming.commit.clone()));
        for entry in forming.commit.members.iter().filter(|entry| !entry.filled) {
            self.out.send_bytes(entry.member.node, datagram.clone(), Route::Every);
        }
    }

    /// A member says again what it brings along.
    pub(crate) fn repeat_entry(&mut self, now: Time) {
        let State::Commit(forming) = &mut self.state else { return };
        if forming.retry_at <= now {
            forming.retry_at = now + self.config.timing.token_retransmit;
            let commit = forming.commit.clone();
            let to = commit.ring.representative;
            self.out.send(to, Message::Commit(commit), Route::Every);
        }
    }

    pub(crate) fn on_commit(&mut self, now: Time, sender: Member, commit: Commit) {
        let mine = commit.members.iter().find(|entry| entry.member == self.config.me);
        let from = commit.members.iter().position(|entry| entry.member == sender);
        let (Some(mine), Some(from)) = (mine, from) else { return };
        let representative = commit.members[0].member;
        if commit.ring.representative != representative.node {
            return;
        }
        if representative == self.config.me {
            self.on_entry(now, from, commit);
        } else if from == 0 && commit.round == 1 {
            self.on_call(now, commit);
        } else if from == 0 && mine.filled {
            self.on_all_entries(now, commit);
        }
    }

    /// The representative gets a member's entry.
    fn on_entry(&mut self, now: Time, from: usize, mut theirs: Commit) {
        let entry = theirs.members.swap_remove(from);
        if let State::Commit(forming) = &mut self.state {
            let ours = &mut forming.commit;
            if ours.ring == theirs.ring
                && entry.filled
                && let Some(slot) = ours.members.iter_mut().find(|e| e.member == entry.member)
                && !slot.filled
                && entry.aru <= entry.high
            {
                *slot = entry;
                self.advance_commit(now);
            }
        } else if let Some(ours) = &self.committed
            && ours.ring == theirs.ring
            && ours.members.iter().any(|e| e.member == entry.member)
        {
            // It has not heard that the commit is complete.
            self.out.send(entry.member.node, Message::Commit(ours.clone()), Route::Every);
        }
    }

    /// A member is asked for its entry.
    fn on_call(&mut self, now: Time, mut commit: Commit) {
        let ours = match &mut self.state {
            State::Gather(gather) => &mut gather.sets,
            State::Commit(forming) => &mut forming.sets,
            _ => return,
        };
        let fresh = commit.ring.sequence > self.known && commit.ring.sequence <= MAX_RING_SEQUENCE;
        if !fresh || !ours.live().eq(commit.members.iter().map(|entry| entry.member)) {
            return;
        }
        let sets = mem::take(ours);
        self.known = commit.ring.sequence;
        for entry in &mut commit.members {
            if entry.member == self.config.me {
                *entry = commit::entry(&self.order);
            }
        }
        let give_up_at = now + self.config.timing.consensus_timeout;
        self.state = State::Commit(Forming { sets, commit, retry_at: now, give_up_at });
        self.repeat_entry(now);
    }

    /// A member learns what all bring along.
    fn on_all_entries(&mut self, now: Time, commit: Commit) {
        let State::Commit(forming) = &mut self.state else { return };
        let ours = &forming.commit;
        let same = ours.ring == commit.ring
            && commit.members.len() == ours.members.len()
            && commit.members.iter().zip(&ours.members).all(|(a, b)| a.member == b.member)
            && commit.members.contains(&commit::entry(&self.order))
            && commit::is_complete(&commit);
        if same {
            let sets = mem::take(&mut forming.sets);
            self.recover(now, sets, commit);
        }
    }

    /// The commit is complete: exchange what is to be exchanged, or install the ring at once.
    fn recover(&mut self, now: Time, sets: Sets, commit: Commit) {
        let plan = Plan::new(&commit, &self.order);
        let mut new = recovery::new_order(&commit, self.config.me, now);
        let settled = plan.settled || planted!(self.config, SkipRecovery);
        let first = commit.ring.representative == self.config.me.node;
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
        let State::Recovery(recovery) =
            mem::replace(&mut self.state, State::Operational(Turn::new(now, &self.config)))
        else {
            unreachable!("only a ring in recovery is installed")
        };
        let recovered = recovery.recovered();
        let opens = recovery.closed || recovery.plan.settled;
        let Recovery { plan, new, .. } = *recovery;
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
        self.order = new;
        self.installed = true;
        if !planted!(self.config, ResumeMessage) {
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
                join.ring_sequence >= self.known
                    || gather.is_news(&self.config.nodes, sender, &join)
            }
            // A stranger that holds one of us to have failed would tear the ring apart: it goes
            // its own way, and meets us by a beacon. One that comes while a ring is being formed
            // comes again when it stands.
            _ => {
                let ours = |member: &Member| self.order.index_of(*member).is_some();
                matches!(self.state, State::Operational(_))
                    && !join.failed.iter().any(|member| ours(member) || *member == sender)
            }
        };
        if follows && gather.hear(&self.config.nodes, sender, &join) != Heard::Ignored {
            self.known = self.known.max(join.ring_sequence);
            self.gather(now, gather);
        }
    }

    fn on_join_in_gather(&mut self, now: Time, sender: Member, join: Join) {
        let State::Gather(gather) = &mut self.state else { return };
        // In the ring that was left, this sender knew a larger number than it names here.
        if self.order.index_of(sender).is_some() && join.ring_sequence < self.order.id.sequence {
            return;
        }
        match gather.hear(&self.config.nodes, sender, &join) {
            Heard::Ignored | Heard::Excluded => {}
            Heard::Same => {
                self.known = self.known.max(join.ring_sequence);
                self.agree(now);
            }
            Heard::Changed => {
                self.known = self.known.max(join.ring_sequence);
                self.propose(now);
            }
        }
    }

    /// A message of a ring that this node is not in.
    pub(crate) fn on_stranger(&mut self, now: Time, sender: Member, ring: RingId) {
        // A ring that this node was in itself: the message is late, or its sender will gather
        // as this node did.
        if ring == self.order.id || self.past.contains(&ring) {
            return;
        }
        match &mut self.state {
            State::Gather(gather) => {
                if !gather.sets.has_failed(sender) && gather.sets.propose(sender) {
                    gather.forget_agreement();
                    self.propose(now);
                }
            }
            State::Operational(_) => {
                let member = self.order.index_of(sender).is_some();
                if member && ring.sequence < self.order.id.sequence {
                    return; // Late, from before it came to this ring.
                }
                let mut sets = Sets::of(&self.order.members);
                if sets.propose(sender) || member {
                    self.gather(now, Gather::new(self.config.me, sets));
                }
            }
            State::Commit(_) | State::Recovery(_) | State::Left => {}
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
            self.propose(now);
        } else {
            let mut gather = Gather::new(self.config.me, sets);
            for life in lives {
                gather.fail(*life);
            }
            self.gather(now, gather);
        }
    }
}
