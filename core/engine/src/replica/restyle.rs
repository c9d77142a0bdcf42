//! The replica's part when its group gets another style (`docs/protocol/group.md`, "Change of
//! style").
//!
//! Its service goes on with its running and waiting requests as if nothing had happened. From this
//! place of the order on, only the replicas that execute and answer differ, and the times of that.
//! All replicas are alike there: each has all earlier requests, and a warm passive group's primary
//! orders the change only after its executed calls. To and from cold passive, where services end
//! and begin: `replica/cold/change.rs`.

use alloc::vec::Vec;

use wire::limits::MAX_JOIN_BACKLOG;
use wire::ordered::{Digest, Style};
use wire::{ClientId, Time};

use super::answering::answer;
use super::{Cold, Effect, Mode, Pieces, Replica, Task, Waiting};
use crate::api::Command;
use crate::bug::Bug;
use crate::session::Sessions;
use crate::style::StyleRules;
use crate::tally::Verdict;

impl Replica {
    /// The service runs from here on, from its initial state, or does not run.
    pub(super) fn renew_service(&mut self, runs: bool, effects: &mut Vec<Effect>) {
        let ran = core::mem::replace(&mut self.service.runs, runs);
        if self.service.holds_former && ran == runs {
            return; // what it reads will replace what it has
        }
        self.service.holds_former = false;
        let used = core::mem::take(&mut self.service.used);
        self.service.starts = runs && (self.service.starts || !ran);
        let command = match (ran, runs) {
            (false, true) => Command::Start(self.service.told),
            (true, false) => Command::Stop,
            (true, true) if used => Command::Reset,
            (true, true) | (false, false) => return,
        };
        self.run(command, effects);
    }

    /// The group's style, as last reported to this replica.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// The group has this style from this place of the order on. `alone`: no other replica has the
    /// state.
    pub(crate) fn restyle(&mut self, style: Style, alone: bool, effects: &mut Vec<Effect>) {
        match self.mode {
            Mode::Idle => {
                self.ballots.cast = style.votes();
                self.cold = style.logs().then(Cold::default);
                self.tell_style(style, effects);
                self.renew_service(!style.logs(), effects);
            }
            Mode::Live | Mode::Draining => self.take_style(style, alone, effects),
            Mode::Fallen => {} // the next program is told when it has come so far
            Mode::Snapshotting
            | Mode::Joining { .. }
            | Mode::Restoring { .. }
            | Mode::Recalling { .. }
            | Mode::Launching { .. } => {
                if self.inbox.queue.len() >= self.inbox.recalled + MAX_JOIN_BACKLOG {
                    self.overflow(effects);
                    return self.restyle(style, alone, effects);
                }
                // It may wait for the end of a call that waits for votes.
                if !self.await_no_votes(alone, effects) {
                    return self.restyle(style, alone, effects);
                }
                self.inbox.queue.push_back(Waiting::Style { style, alone });
            }
        }
        self.style = style;
    }

    /// This replica's state counts no more in this style. It begins with the service's initial
    /// state, or waits for the group's.
    pub(crate) fn begin_in_style(&mut self, style: Style, begins: bool, effects: &mut Vec<Effect>) {
        self.style = style;
        if begins { self.begin(effects) } else { self.idle(effects) }
    }

    /// The style of the group where this replica's state is.
    pub(crate) fn style_so_far(&self) -> Style {
        self.service.told
    }

    /// The service has received all earlier requests.
    pub(super) fn take_style(&mut self, style: Style, alone: bool, effects: &mut Vec<Effect>) {
        if self.cold.is_some() {
            return self.launch(style, alone, effects);
        }
        if self.planted.is(Bug::ForgetSessionsOfStyle) {
            self.history.sessions = Sessions::default();
        }
        let passive = (self.service.told.executes_on_arrival(), style.executes_on_arrival());
        match passive {
            (false, true) => self.updates.clock = self.history.clock,
            // Requests that the primary received since, and did not execute, moved its own clock.
            (true, false) if !self.planted.is(Bug::KeepOwnTime) => {
                self.history.clock = self.updates.clock
            }
            _ => {}
        }
        self.updates.pieces = Pieces::default();
        self.tell_style(style, effects);
        let voted = core::mem::replace(&mut self.ballots.cast, style.votes());
        match (voted, self.ballots.cast) {
            (false, true) => {
                self.history.asks = 0;
                self.begin_to_vote(effects);
            }
            (true, false) => self.cease_to_vote(alone, effects),
            _ => {}
        }
        if style.logs() && !matches!(self.mode, Mode::Idle) {
            self.begin_log(effects);
        }
    }

    /// A change of style has its place, and this replica is not there yet. Its votes until then do
    /// not belong to the others' present count.
    pub(super) fn style_will_change(&self) -> bool {
        matches!(self.mode, Mode::Launching { .. })
            || self.inbox.queue.iter().any(|waiting| matches!(waiting, Waiting::Style { .. }))
    }

    /// Ordered time, alike at all replicas.
    pub(super) fn common_clock(&self) -> Time {
        if self.service.told.executes_on_arrival() {
            self.updates.clock
        } else {
            self.history.clock
        }
    }

    /// Reports the group's style to the service, behind its earlier commands.
    pub(super) fn tell_style(&mut self, style: Style, effects: &mut Vec<Effect>) {
        let differs = core::mem::replace(&mut self.service.told, style) != style;
        // A service that does not run gets it when it begins.
        if differs && self.service.runs && !self.planted.is(Bug::ServiceKeepsStyle) {
            self.run(Command::Style(style), effects);
        }
    }

    /// The position of this replica's last vote: the executed calls and their handlers' nested
    /// calls.
    pub(super) fn reached(&self) -> u64 {
        self.history.executed + self.history.asks
    }

    /// The same with all commands of the service. Where a group begins to vote every replica counts
    /// alike, however far its service is: nested calls of earlier handlers do not count.
    pub(super) fn position(&self) -> u64 {
        let calls = self.service.tasks.iter().map(|(_, task)| match task {
            Task::Execute { .. } => 1,
            Task::Apply { calls } => calls.len() as u64,
            _ => 0,
        });
        self.reached() + calls.sum::<u64>()
    }

    /// Invariants.
    pub(super) fn check_style(&self) {
        let may_be_ahead = self.style.executes_on_arrival() || !self.is_ahead();
        assert!(may_be_ahead, "a primary orders what it has executed before another style begins");
    }

    /// Answers calls that wait for votes: this replica's outcome is as good as any other. Verdicts
    /// from before still count: a replica with another outcome leaves, unless no other has the
    /// state.
    fn cease_to_vote(&mut self, alone: bool, effects: &mut Vec<Effect>) {
        if !self.await_no_votes(alone, effects) {
            return;
        }
        let Some(voting) = self.ballots.voting.take() else { return };
        self.ballots.verdicts = voting.ahead;
        for (client, number) in voting.open.into_keys() {
            if let Some(Some(outcome)) = self.history.sessions.known(client, number) {
                let asked = self.history.sessions.asked(client, number);
                answer(client, number, asked, outcome, effects);
            }
        }
        voting.unsettled.into_iter().for_each(|state| self.use_settled(state, effects));
    }

    /// A call was executed that the others had settled when the group ceased to vote. True if it
    /// may be answered.
    pub(super) fn judged_before(
        &mut self,
        (position, client, number): (u64, ClientId, u64),
        told: Digest,
        effects: &mut Vec<Effect>,
    ) -> bool {
        match self.ballots.verdicts.remove(&position) {
            None => true,
            Some(Verdict::Agreed(agreed)) if agreed == told => true,
            Some(Verdict::Agreed(_)) => {
                effects.push(Effect::Unfit);
                false
            }
            Some(Verdict::Split(_)) => {
                self.answer_split(client, number, effects);
                false
            }
        }
    }
}
