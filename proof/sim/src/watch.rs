//! All checkers of a cluster, told of everything that its nodes say and do.

use bytes::Bytes;
use client::CallError;
use engine::{Command, Event, MoveError, NestedCall, NestedError};
use wire::client::{Outcome, Refusal, Reply, Request};
use wire::ordered::{About, nested_client, nested_number};
use wire::system::{CELL_ID, MANAGER_ID};
use wire::{ClientId, GroupId, Member, NodeId, RingId, Time, ViewNumber};

use crate::check::acknowledged::Acknowledged;
use crate::check::apart::Apart;
use crate::check::cold::Cold;
use crate::check::discarded::Discarded;
use crate::check::hedging::Numbers;
use crate::check::histories::Histories;
use crate::check::hung::Hung;
use crate::check::keys::{End, Identity, Keys};
use crate::check::linearizable::{Begun, Linearizable};
use crate::check::merged::Merged;
use crate::check::moves::{Moves, Told};
use crate::check::multicast::Multicasts;
use crate::check::poisons::Poisons;
use crate::check::primary::Primaries;
use crate::check::replies::{CallKey, Replies, of_the_service};
use crate::check::restyles::{self, Restyles};
use crate::check::served::Served;
use crate::check::stale::Stale;
use crate::check::viewed::Viewed;
use crate::check::views::Views;
use crate::check::votes::Votes;
use crate::check::wait::Wait;
use crate::check::{Verdict, demand};
use crate::executor::CLUMSY;
use crate::options::Options;
use crate::promise::Promise;
use crate::service::{Entry, REPLY};

mod components;
mod executions;

use components::Components;
use executions::Executions;
pub use executions::Step;

/// The checkers, and the knowledge that several of them need.
#[derive(Clone)]
pub struct Watch {
    /// Which deaths the promise covers.
    pub promise: Promise,
    /// Groups of which an answered request may be lost.
    loose: Vec<GroupId>,
    components: Components,
    views: Views,
    primaries: Primaries,
    moves: Moves,
    /// The groups' styles, and the proposals of other styles.
    pub restyles: Restyles,
    acknowledged: Acknowledged,
    /// Calls that kill every service that executes them.
    pub poisons: Poisons,
    executions: Executions,
    replies: Replies,
    /// The executions of stateless groups' replicas.
    pub served: Served,
    /// The replicas that lie, and those that are accused.
    pub votes: Votes,
    /// Where the services of cold passive groups run.
    pub cold: Cold,
    /// The services that hang, and the states that drift.
    pub spoilt: Spoilt,
    /// The numbers of calls.
    pub numbers: Numbering,
    /// The members that wait for the token.
    pub wait: Wait,
    /// The clients' histories.
    pub linearizable: Linearizable,
    /// The age of stale reads.
    pub stale: Stale,
    /// The calls to all replicas.
    pub multicasts: Multicasts,
}

/// Services that are not as they should be.
#[derive(Clone, Default)]
pub struct Spoilt {
    /// Those that hang.
    pub hung: Hung,
    /// Those whose states drift.
    pub apart: Apart,
}

/// The numbers of calls.
#[derive(Clone, Default)]
pub struct Numbering {
    used: Numbers,
    /// The calls whose numbers are their callers'.
    pub keys: Keys,
}

impl Watch {
    /// Nothing has happened yet in a cluster of these options.
    pub fn new(options: &Options) -> Self {
        let promise = Promise::new(options.nodes, options.by_all(), options.keeps_all());
        let anew = options.keeps_all() && options.deploy.is_some();
        let mut promise = promise.voting(options.voting()).beginning_anew(anew);
        // A call that a caller has ordered waits for a group whose only replica dies before any
        // other node knows.
        let called = options.groups.iter().filter_map(|group| Some(&group.callee.as_ref()?.0));
        called.for_each(|callee| promise.called(GroupId::of(callee)));
        Watch {
            loose: options.loose(),
            served: Served::new(options.stateless()),
            votes: Votes::new(options.disks.is_some()),
            cold: Cold::new(options.cold(), options.disks.is_some() && options.restyles.is_some()),
            spoilt: Spoilt {
                hung: Hung::default(),
                apart: Apart::new(options.lying().into_iter()),
            },
            numbers: Numbering::default(),
            wait: Wait::new(options.turn, options.parking),
            linearizable: Linearizable::default(),
            stale: Stale::default(),
            multicasts: Multicasts::default(),
            promise,
            components: Components::new(options.disks.is_some()),
            views: Views::default(),
            primaries: Primaries::default(),
            moves: Moves::default(),
            restyles: Restyles::default(),
            acknowledged: Acknowledged::default(),
            poisons: Poisons::default(),
            executions: Executions::new(
                Discarded::new(options.discarding()),
                Merged::new(options.merging()),
                Viewed::new(options.viewing()),
            ),
            replies: Replies::new(options.ordering_reads()),
        }
    }

    /// Whether this group's service merges histories that were given up.
    pub fn merges(&self, group: GroupId) -> bool {
        self.executions.merged.concerns(group)
    }

    /// A life begins.
    pub fn born(&mut self, member: Member) {
        self.promise.born(member);
        self.executions.merged.begins(member.node);
    }

    /// How many histories were merged in this group.
    pub fn merged(&self, group: GroupId) -> usize {
        self.executions.merged.merges(group)
    }

    /// A replica is gone with its state, which maybe nobody else had.
    pub fn lost_a_state(&mut self) {
        self.executions.merged.lost();
    }

    /// The component that this life acts in.
    pub fn component(&self, member: Member) -> RingId {
        self.components.of(member)
    }

    /// The component in which this life's replica of a group has a history that counts.
    pub fn history_of(&self, member: Member, group: GroupId) -> RingId {
        self.components.of_history(member, group)
    }

    /// A node says what happened inside it.
    pub fn event(&mut self, now: Time, by: Member, event: &Event) -> Verdict {
        match event {
            Event::Configuration { ring, members } => {
                self.promise.configuration(*ring, members);
                self.wait.ring(*ring, members);
            }
            Event::Quorum { ring, quorate: true, .. } => {
                self.components.enter(by, *ring);
                self.promise.component(*ring, by);
            }
            Event::Ended { group, .. } => self.served.ended(by, *group),
            Event::View { group, view, replicas, primary, style, .. } => {
                let component = self.component(by);
                self.views.installed(by, component, (*group, *view), replicas)?;
                self.moves.installed(by, component, (*group, *view), (*style, replicas))?;
                self.restyles.installed(by, component, (*group, *view), *style)?;
                self.spoilt.hung.installed(by, (*group, *view), (*style, replicas));
                self.served.view(by, *group, replicas);
                self.votes.view(*group, replicas);
                self.cold.view(by, *group, (*style, *primary));
                let said = (replicas, *primary);
                self.primaries.installed(by, component, (*group, *view), said)?;
                let synced = replicas.iter().filter(|replica| replica.1).map(|replica| replica.0);
                let synced: Vec<Member> = synced.collect();
                if synced.contains(&by) {
                    self.components.synced(by, *group);
                }
                self.promise.view(by, *group, (component, view.0), synced);
            }
            Event::Moved { group, from, to, asked, .. } => {
                let component = self.component(by);
                self.moves.moved(
                    by,
                    component,
                    *group,
                    Told { from: *from, to: *to, asked: *asked },
                )?;
            }
            Event::Ranked { group, order, asked, .. } => {
                self.moves.ranked(by, self.component(by), *group, (*asked, order))?;
            }
            // An excluded member was cut off, and is taken for dead.
            Event::Excluded { member, .. } => self.poisons.excluded(*member, now),
            Event::Poisoned { group, poison } => {
                let ring = self.history_of(by, *group);
                self.poisons.told(by, (*group, ring), poison)?;
            }
            Event::Demoted { group, member, asked, .. } => {
                self.poisons.died(*member, now);
                self.spoilt.hung.demoted(by, (*group, *asked), *member)?;
            }
            Event::Restyled { group, from, to, asked, .. } => {
                let told = restyles::Told { from: *from, to: *to, asked: *asked };
                self.restyles.restyled(by, self.component(by), *group, told)?;
            }
            // The cluster state keeps no history of its calls: all cluster states are compared at
            // the end. So are books.
            Event::Executed { group, .. } if [MANAGER_ID, CELL_ID].contains(group) => {}
            Event::Executed { group, client, number, position } => {
                let call = (by, *group, *client, *number);
                let place = self.executions.place(call);
                let place = self.poisons.counted(by, *group, *position, place);
                Histories::counted(by, *group, *position, place)?;
                self.executions.ordered(call, self.component(by))?;
            }
            Event::Deviated { group, member, position, cause, .. } => {
                self.votes.deviated(*group, *member, *position, cause)?;
            }
            Event::Split { group, position, .. } => self.votes.split(*group, *position)?,
            Event::Replied { group, .. } => self.primaries.replied(by, *group)?,
            Event::Discarded { group, calls, .. } => {
                self.executions.told_discarded(by, *group, *calls)?;
            }
            Event::StateNote { group, member, about: About::Apart, text: Some(text), .. } => {
                self.spoilt.apart.told(by, *group, *member, text)?;
            }
            // That is a fault, and the replica asks again.
            Event::TransferFailed { reason, .. } if reason == CLUMSY => {}
            Event::TransferFailed { group, reason } => {
                let text = || format!("{by} cannot transfer {group}: {reason}");
                demand(false, "state transfer", text)?;
            }
            Event::PromotionFailed { group, reason }
            | Event::CheckpointFailed { group, reason } => {
                let text = || format!("{by} cannot serve {group}: {reason}");
                demand(false, "checkpoints", text)?;
            }
            Event::UpdateFailed { group, reason } => {
                let text = || format!("{by} cannot keep up with {group}: {reason}");
                demand(false, "updates", text)?;
            }
            Event::Malformed(malformed) => {
                demand(false, "wire", || format!("{by} reads malformed bytes: {malformed}"))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A move that a node was asked for has ended.
    pub fn move_ended(
        &self,
        by: Member,
        group: GroupId,
        to: NodeId,
        outcome: &Result<ViewNumber, MoveError>,
    ) -> Verdict {
        match outcome {
            Ok(view) => self.moves.ended(by, self.component(by), (group, *view), to),
            Err(_) => Ok(()),
        }
    }

    /// A replica gives its service a command.
    pub fn given(&mut self, by: Member, group: GroupId, command: &Command) -> Verdict {
        match command {
            Command::Start(_) => self.cold.started(by, group)?,
            Command::Stop => self.cold.stopped(by, group),
            Command::Execute { .. } => {
                self.served.given(by, group)?;
                self.cold.given(by, group)?;
            }
            _ => self.cold.given(by, group)?,
        }
        // The replica speaks of the next history from here on. Its service may get there much
        // later.
        if let Command::Start(_) | Command::Stop | Command::Reset | Command::Restore { .. } =
            command
        {
            self.poisons.gave_up(by, group);
        }
        Ok(())
    }

    /// A replica executed a call, as the `place`th of its history, from the hash `before` to
    /// `after`. `alone`: nobody else knows of it yet.
    pub fn executed(
        &mut self,
        by: Member,
        group: GroupId,
        entry: &Entry,
        step: &Step,
        alone: bool,
    ) -> Verdict {
        let Step { place, before, after, .. } = *step;
        self.executions.counted(by, group, entry, place);
        if self.served.concerns(group) {
            return Ok(()); // each replica has a history of its own
        }
        if self.votes.is_wrong(by, group) || self.votes.is_spoilt(group) {
            return Ok(()); // it has to be found out, and is not to be believed until then
        }
        self.executions.executed(by, group, entry)?;
        self.executions.discarded.reached(by, group, place, after)?;
        self.executions.merged.executed(group, entry, before, after);
        self.acknowledged.executed(group, before, after);
        if step.component == RingId::default() {
            return Ok(()); // it has it from its disk
        }
        self.poisons.executed(by, (group, entry.client, entry.number))?;
        if alone {
            self.executions.went_ahead(by, group, entry, step);
            return Ok(());
        }
        self.executions.went_on(by, group, entry.time, step)
    }

    /// A replica executed the call with this hash, behind this view.
    pub fn viewed(&mut self, by: Member, group: GroupId, hash: u64, view: u64) -> Verdict {
        if self.votes.is_wrong(by, group) || self.votes.is_spoilt(group) {
            return Ok(());
        }
        self.executions.viewed.executed(by, group, hash, view)
    }

    /// The history of a replica's service was replaced by this one.
    pub fn replaced(&mut self, by: Member, group: GroupId, history: &[Entry]) -> Verdict {
        self.votes.replaced(by, group);
        self.executions.gave_up(by, group);
        if self.served.concerns(group) || self.votes.is_spoilt(group) {
            return Ok(());
        }
        self.executions.replaced(by, group, history)
    }

    /// A client begins a call.
    pub fn begun(&mut self, now: Time, client: usize, begun: &Begun) {
        self.linearizable.begun(now, client, begun);
        self.stale.begun(now, client, begun);
    }

    /// A gateway ends a call that its caller has counted.
    pub fn key_ended(&mut self, call: CallKey, end: End<'_>) -> Verdict {
        let binding = !self.loose.contains(&call.0) && !self.votes.is_spoilt(call.0);
        self.numbers.keys.ended(call, end, binding)
    }

    /// A gateway ends a call that used this key once more: another one, or the same again.
    pub fn stray_ended(
        &mut self,
        call: CallKey,
        other: Option<Identity>,
        result: &Result<Bytes, CallError>,
    ) -> Verdict {
        let binding = !self.loose.contains(&call.0) && !self.votes.is_spoilt(call.0);
        self.numbers.keys.stray_ended(call, other, result, binding)
    }

    /// A handler of `group` asks this, in the course of a call of its own.
    pub fn nested_asked(
        &mut self,
        now: Time,
        group: GroupId,
        (client, number): (ClientId, u64),
        call: &NestedCall,
    ) -> Verdict {
        let callee = GroupId::of(&call.callee);
        let client = nested_client(group, client);
        let number = nested_number(number, 1).unwrap_or_default();
        if !self.served.concerns(callee) {
            self.promise.called(callee);
            self.linearizable.nested_begun(now, callee, (client, number));
        }
        self.replies.asked((callee, client, number), call.method, &call.body, (false, false))
    }

    /// The nested call has ended at one of the replicas.
    pub fn nested_ended(
        &mut self,
        now: Time,
        group: GroupId,
        (client, number): (ClientId, u64),
        outcome: &Result<Bytes, NestedError>,
    ) {
        let client = nested_client(group, client);
        let number = nested_number(number, 1).unwrap_or_default();
        if let Ok(bytes) = outcome {
            self.linearizable.nested_ended(now, (client, number), bytes);
        }
    }

    /// A request of a client that has begun so many calls leaves.
    pub fn asked(&mut self, request: &Request, calls: u64) -> Verdict {
        let call = (request.group, request.client, request.number);
        self.numbers.used.asked(request.client, (request.group, request.number), calls)?;
        if !self.served.concerns(request.group) {
            self.promise.called(request.group);
        }
        let strays = request.has_key && self.numbers.keys.has_strays(call);
        let reads = request.access.reads();
        self.replies.asked(call, request.method, &request.body, (reads, strays))
    }

    /// A node's reply to a client leaves.
    pub fn answered(&mut self, now: Time, by: Member, client: ClientId, reply: &Reply) -> Verdict {
        self.multicasts.replied(by.node, client, reply);
        if self.served.concerns(reply.group) {
            return self.served.answered(by, (reply.group, client, reply.number), &reply.outcome);
        }
        if !of_the_service(&reply.outcome) {
            return Ok(());
        }
        // The two sides of a partition may both answer, and one of the answers is lost.
        if let Outcome::Ok(bytes) | Outcome::Service(bytes) = &reply.outcome
            && let Some(word) = bytes.get(8..16).and_then(|word| word.first_chunk())
        {
            self.executions.discarded.answered(reply.group, u64::from_le_bytes(*word));
            self.executions.merged.answered(reply.group, u64::from_le_bytes(*word));
        }
        if self.loose.contains(&reply.group) || self.votes.is_spoilt(reply.group) {
            return Ok(());
        }
        let call = (reply.group, client, reply.number);
        if matches!(reply.outcome, Outcome::Refused(Refusal::Poisoned, _)) {
            self.poisons.refused(call)?;
        }
        self.replies.answered(call, &reply.outcome)?;
        match &reply.outcome {
            Outcome::Ok(bytes) | Outcome::Service(bytes) if bytes.len() >= REPLY => {
                let word = |at: usize| {
                    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
                };
                self.stale.answered(now, reply.group, word(0));
                self.acknowledged.replied(reply.group, word(0), word(8))
            }
            _ => Ok(()),
        }
    }

    /// At the end: these replicas have the group's state.
    pub fn finish(&mut self, group: GroupId, ends: &[(Member, &[Entry], u64)]) -> Verdict {
        if self.served.concerns(group) || self.votes.is_spoilt(group) {
            return Ok(());
        }
        let digests: Vec<_> = ends.iter().map(|(by, log, hash)| (*by, log.len(), *hash)).collect();
        Histories::finish(group, &digests)?;
        let last = ends.first().map_or(0, |(.., hash)| *hash);
        self.executions.merged.finish(group, last)?;
        let promised = usize::from(!self.loose.contains(&group));
        for (_, history, _) in ends.iter().take(promised) {
            self.acknowledged.finish(group, history)?;
            self.replies.finish(group, history)?;
            self.numbers.keys.finish(group, history)?;
        }
        if promised > 0 { self.linearizable.finish(group) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
