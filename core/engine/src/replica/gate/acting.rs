//! Commands that wait at the gate, and their release.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wire::client::Refusal;
use wire::limits::{MAX_POISON_BYTES, MAX_POISONED};
use wire::ordered::{Died, Poison, Poisoned, Progress};
use wire::{ClientId, Member};

use super::{Gated, Withheld, reason};
use crate::api::{Begun, Command, Event, Executed, ServiceOutcome, Ticket};
use crate::bug::Bug;
use crate::replica::lead::{Blame, Verdict};
use crate::replica::voting::Voting;
use crate::replica::{Effect, Mode, Replica, Task};
use crate::session::Asked;

impl Replica {
    /// Gives the service a command, behind the waiting ones.
    pub(in crate::replica) fn run(&mut self, command: Command, effects: &mut Vec<Effect>) {
        self.pass(Gated { command, call: None }, effects);
    }

    /// Gives the service a call of the group's history as soon as it may be executed. `arrived`:
    /// the request's arrival number.
    pub(in crate::replica) fn run_call(
        &mut self,
        arrived: u64,
        command: Command,
        effects: &mut Vec<Effect>,
    ) {
        let number = self.lead.give(arrived);
        self.pass(Gated { command, call: Some((number, arrived)) }, effects);
    }

    fn pass(&mut self, gated: Gated, effects: &mut Vec<Effect>) {
        let goes = gated.call.is_none() && !self.waits_for_word(&gated.command);
        if self.gate.queue.is_empty() && goes {
            return effects.push(Effect::Run(gated.command));
        }
        self.gate.queue.push_back(gated);
        if self.gate.queue.len() == 1 {
            self.open_gate(effects);
        }
    }

    /// Gives the service the commands that it may have.
    pub(crate) fn open_gate(&mut self, effects: &mut Vec<Effect>) {
        while let Some(Gated { command, call }) = self.gate.queue.front() {
            let Some((number, arrived)) = *call else {
                if self.waits_for_word(command) {
                    return;
                }
                self.release(effects);
                continue;
            };
            if self.lead.poisoned.contains_key(&number) {
                let turn = self.service.tasks.front().map(|(ticket, _)| *ticket);
                if turn.is_none() || turn != command.ticket() {
                    return; // what comes before it is answered first
                }
                self.answer_poisoned(number, effects);
                continue;
            }
            match self.lead.verdict(number, arrived, self.history.executed, self.planted) {
                Verdict::Go => self.release(effects),
                Verdict::Wait => return,
                Verdict::Suspect(blame) => return self.suspect_next(number, blame, effects),
            }
        }
    }

    /// The command reveals the state. That may contain a call that was tried here, and that nobody
    /// executes if this node dies now.
    fn waits_for_word(&self, command: &Command) -> bool {
        let tells = matches!(
            command,
            Command::Execute { .. } | Command::Snapshot { .. } | Command::Digest { .. }
        );
        tells && self.lead.is_trying() && !self.planted.is(Bug::TellOfTrial)
    }

    fn release(&mut self, effects: &mut Vec<Effect>) {
        let Some(Gated { command, call }) = self.gate.queue.pop_front() else { return };
        if let Some((number, _)) = call {
            self.gate.released = number;
        }
        effects.push(Effect::Run(command));
    }

    /// The next call may kill. The order must first say that it is tried here, or executed by
    /// nobody.
    fn suspect_next(&mut self, number: u64, blame: Blame, effects: &mut Vec<Effect>) {
        // An answer to a later call rests on this one: a leader that is gone may have given it. In
        // other styles more services would die where calls follow each other.
        let call = self.call_at_gate().filter(|_| !self.has_later_calls());
        self.lead.speaks();
        effects.push(Effect::Suspect { number, call, blame });
    }

    /// Calls of a cold passive group's log wait behind the one at the gate.
    fn has_later_calls(&self) -> bool {
        let waits = self.gate.queue.len() > 1 || !self.inbox.queue.is_empty();
        self.cold.as_ref().is_some_and(|cold| waits || cold.has_more_to_run())
    }

    /// Whether this replica asks that nobody executes this call. Then it does not execute it either,
    /// if an earlier order tells it to try the call.
    pub(crate) fn gives_up(&mut self, number: u64, gives_up: bool) {
        if gives_up {
            self.lead.try_no_more(number);
        } else {
            self.lead.try_again(number);
        }
    }

    /// The next call to pass.
    fn call_at_gate(&self) -> Option<(ClientId, u64)> {
        match &self.gate.queue.front()?.command {
            Command::Execute { client, number, .. } => Some((*client, *number)),
            _ => None,
        }
    }

    /// Drops all commands of the service, but for the group's style.
    pub(in crate::replica) fn close_gate(&mut self, effects: &mut Vec<Effect>) {
        let style = |gated: &Gated| matches!(gated.command, Command::Style(_));
        let style = self.gate.queue.drain(..).rev().find(style).filter(|_| self.service.runs);
        effects.extend(style.map(|gated| Effect::Run(gated.command)));
        self.gate.withheld = None;
        self.lead.go_on_from(self.history.executed);
        self.gate.released = self.history.executed;
    }

    /// The first command that the service has not answered waits here.
    pub(in crate::replica) fn is_gated(&self, ticket: Ticket) -> bool {
        self.gate.queue.front().is_some_and(|gated| gated.command.ticket() == Some(ticket))
    }

    /// The service here has executed one more call of the history. Announces it in the order if
    /// others wait for that.
    pub(in crate::replica) fn note_executed(&mut self, effects: &mut Vec<Effect>) {
        if self.owes_word_of(self.history.executed) {
            self.lead.speaks();
            effects.push(Effect::Tell(self.history.executed));
        } else {
            self.tell_successor(effects);
        }
    }

    /// This call was to be tried here, and the order does not say that it was executed.
    fn owes_word_of(&self, number: u64) -> bool {
        match self.planted.is(Bug::AnswerTrialOnTheWayOut) {
            true => self.lead.tries(number),
            false => self.lead.owes_word_of(number),
        }
    }

    /// The present leader waits for this replica's progress: it is announced at once.
    pub(in crate::replica) fn tell_successor(&self, effects: &mut Vec<Effect>) {
        if self.lead.is_awaited() {
            self.tell_all(effects);
        }
    }

    /// Announces this replica's progress, if the order does not have it.
    pub(in crate::replica) fn tell_all(&self, effects: &mut Vec<Effect>) {
        if self.history.executed > self.lead.told() {
            effects.push(Effect::Tell(self.history.executed));
        }
    }

    /// Answers a call that is in the history now. If another replica has died of the call, the
    /// answer waits until all will know that it was executed.
    pub(in crate::replica) fn answer_executed(
        &mut self,
        number: u64,
        (client, call, asked): (ClientId, u64, Asked),
        outcome: ServiceOutcome,
        effects: &mut Vec<Effect>,
    ) {
        if self.owes_word_of(number) && !self.planted.is(Bug::AnswerTrialEarly) {
            self.gate.withheld = Some(Withheld { number, client, call, asked, outcome });
        } else {
            crate::replica::answer(client, call, asked, outcome, effects);
        }
    }

    /// The call was executed, and its answer waits.
    pub(in crate::replica) fn is_withheld(&self, client: ClientId, call: u64) -> bool {
        self.gate.withheld.as_ref().is_some_and(|it| (it.client, it.call) == (client, call))
    }

    /// A request says that a replica of the group has executed so many calls.
    pub(crate) fn prove(&mut self, executed: u64, sequence: u64, effects: &mut Vec<Effect>) {
        let executed = self.possible(executed);
        if executed > self.lead.recorded() {
            self.lead.prove(executed, Some(sequence));
            self.answer_withheld(sequence, effects);
            self.open_gate(effects);
        }
    }

    /// A vote says so.
    pub(crate) fn prove_by_vote(
        &mut self,
        executed: u64,
        sequence: u64,
        effects: &mut Vec<Effect>,
    ) {
        let executed = self.possible(executed);
        if executed > self.lead.told() {
            self.lead.prove_by_vote(executed, Some(sequence));
            self.open_gate(effects);
        }
    }

    /// No replica can have executed more than was delivered: a larger number was ordered in a
    /// history that is lost.
    fn possible(&self, executed: u64) -> u64 {
        let knows_all = matches!(self.mode, Mode::Live) && self.cold.is_none();
        if knows_all { executed.min(self.lead.last()) } else { executed }
    }

    /// The group's leader executes this call, and the others are to do so, too.
    pub(crate) fn allow(&mut self, number: u64, effects: &mut Vec<Effect>) {
        if number > self.lead.proven() {
            self.lead.allow(number);
            self.open_gate(effects);
        }
    }

    /// A replica reports its progress and its trial, at this place of the order.
    pub(crate) fn progress(
        &mut self,
        progress: Progress,
        by: Member,
        sequence: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Progress { executed, trial, .. } = progress;
        let executed = self.possible(executed);
        self.lead.progress(executed, trial, Some(by), sequence);
        self.answer_withheld(sequence, effects);
        self.open_gate(effects);
    }

    /// Answers a tried call if the order says, at this place at the latest, that it was executed.
    fn answer_withheld(&mut self, sequence: u64, effects: &mut Vec<Effect>) {
        let recorded = self.lead.recorded();
        if let Some(Withheld { client, call, asked, outcome, .. }) =
            self.gate.withheld.take_if(|it| it.number <= recorded)
        {
            effects.push(Effect::Settled { client, number: call, sequence });
            crate::replica::answer(client, call, asked, outcome, effects);
        }
    }

    /// This replica's announcement as a leader is held.
    pub(crate) fn held(&mut self, effects: &mut Vec<Effect>) {
        self.lead.held();
        self.open_gate(effects);
    }

    /// This replica goes on as a leader when this place of the order is held.
    pub(crate) fn waits_for_hold(&self) -> Option<u64> {
        self.lead.waits_for_hold()
    }

    /// The order says that nobody executes this call, at this place of it.
    pub(crate) fn condemn(
        &mut self,
        poisoned: Poisoned,
        own: bool,
        sequence: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Poisoned { number, nodes, .. } = poisoned;
        if !own && self.planted.is(Bug::CondemnAlone) {
            return;
        }
        self.lead.condemn(number, nodes, own, sequence);
        self.open_gate(effects);
    }

    /// A view is installed: these members have the state, and the first of them leads.
    pub(crate) fn led_by(&mut self, me: Member, synced: &[Member], effects: &mut Vec<Effect>) {
        self.lead.view(me, synced, self.first_unproven());
        self.answer_withheld(0, effects);
        if self.lead.owes_word_of(self.history.executed) {
            // The one that was handed in may be lost with its ring.
            effects.push(Effect::Tell(self.history.executed));
        }
        self.tell_successor(effects);
        self.open_gate(effects);
    }

    /// This member's replica leaves, and its service has not died.
    pub(crate) fn member_parts(&mut self, member: Member) {
        self.lead.part(member);
    }

    /// The service of this member's replica has died, or is hung.
    pub(crate) fn member_died(&mut self, member: Member, died: Died, effects: &mut Vec<Effect>) {
        self.lead.die(member, died);
        self.open_gate(effects);
    }

    /// The progress of the service.
    pub(crate) fn reach(&self, begun: Begun) -> Died {
        let (executed, given) =
            (self.history.executed, self.gate.released.max(self.history.executed));
        let died = Died { executed, given, ahead: self.unanswered_ahead() };
        let before = match begun {
            Begun::Any => return died,
            Begun::Before(ticket) => ticket,
            Begun::Nothing => Ticket(0),
        };
        let begun = self.service.tasks.iter().take_while(|(ticket, _)| *ticket < before);
        let (mut ordered, mut ahead) = (0, 0);
        for (_, task) in begun {
            ordered += u64::from(matches!(task, Task::Execute { .. } | Task::Logged { .. }));
            ahead += usize::from(matches!(task, Task::Call));
        }
        let ahead = died.ahead.into_iter().take(ahead).collect();
        Died { executed, given: given.min(executed + ordered), ahead }
    }

    /// A client waits here for a call that the group's leader has not executed for long. This
    /// replica tries the first waiting call. `late`: the replica that tries it meanwhile is silent,
    /// too.
    pub(crate) fn take_over(&mut self, late: bool, effects: &mut Vec<Effect>) {
        let Some(Gated { call: Some((number, arrived)), .. }) = self.gate.queue.front() else {
            return;
        };
        let (number, arrived) = (*number, *arrived);
        if self.history.executed + 1 == number && self.lead.may_take_over(number, arrived, late) {
            let blame = self.lead.blame_of_silence(number, arrived, late);
            self.suspect_next(number, blame, effects);
        }
    }

    /// The call that waits until another replica has executed it, in a group in which a silent
    /// replica must not hold up the others.
    pub(crate) fn awaited(&self) -> Option<u64> {
        let (number, arrived) = self.gate.queue.front().filter(|_| self.ballots.cast)?.call?;
        let waits = !self.lead.leads_call(arrived) || self.lead.is_tried_elsewhere(number);
        waits.then_some(number)
    }

    /// The number of executed calls, if this replica leads, or did, and others do not know that
    /// number yet.
    pub(crate) fn untold(&self) -> Option<u64> {
        let tells = self.lead.leads() || self.lead.is_awaited();
        (tells && self.history.executed > self.lead.told()).then_some(self.history.executed)
    }

    /// The service executes a call that no other replica is known to have executed.
    pub(crate) fn runs_ahead(&self) -> bool {
        self.gate.released > self.history.executed && self.history.executed >= self.lead.proven()
    }

    /// Calls that the order says were executed.
    pub(crate) fn told(&self) -> u64 {
        self.lead.told()
    }

    /// The calls that killed the services that executed them, the oldest first.
    pub(crate) fn poisons(&self) -> &[Poison] {
        &self.history.poisons
    }

    /// The call at the gate is answered without being executed, as everywhere.
    fn answer_poisoned(&mut self, number: u64, effects: &mut Vec<Effect>) {
        let nodes = self.lead.poisoned.get(&number).cloned().unwrap_or_default();
        let Some(Gated { command, .. }) = self.gate.queue.pop_front() else { return };
        let Command::Execute { ticket, method, json, now, body, client, number: call, .. } =
            command
        else {
            return;
        };
        self.gate.released = number;
        let outcome = ServiceOutcome::Refused(Refusal::Poisoned, reason(&nodes));
        let size = body.len() as u64;
        let body = body[..body.len().min(MAX_POISON_BYTES)].to_vec();
        let poison = Poison { number, client, call, method, json, time: now, nodes, size, body };
        self.keep_poison(poison, effects);
        self.take_answer(ticket, Executed::Reply(outcome), effects);
    }

    /// A call is executed by nobody: this is reported and listed.
    pub(in crate::replica) fn keep_poison(&mut self, poison: Poison, effects: &mut Vec<Effect>) {
        let (group, told) = (self.group, Box::new(poison.clone()));
        effects.push(Effect::Event(Event::Poisoned { group, poison: told }));
        if self.history.poisons.len() >= MAX_POISONED {
            self.history.poisons.remove(0);
        }
        if !self.planted.is(Bug::ForgetPoison) {
            self.history.poisons.push(poison);
        }
    }

    /// A command waits, and no release will come: the replica has left its group.
    pub(crate) fn waits_for_others(&self) -> bool {
        !self.gate.queue.is_empty() && !self.lead.leads()
    }

    /// No command waits, and all that it has executed is ordered.
    pub(crate) fn has_followed(&self) -> bool {
        self.gate.queue.is_empty() && self.primary.is_empty()
    }

    /// No command waits that may change the state.
    pub(in crate::replica) fn has_only_reads_gated(&self) -> bool {
        let reads = |gated: &Gated| matches!(gated.command, Command::Execute { read: true, .. });
        self.gate.queue.iter().all(reads)
    }

    /// The replica's knowledge of leaders, for diagnosis.
    pub(crate) fn lead_for_people(&self) -> String {
        let first = self.gate.queue.front().map(|gated| gated.call);
        let votes = self.ballots.voting.as_ref().map(Voting::for_people).unwrap_or_default();
        format!(
            "{} ({}), {}, {votes}executed {} of {}, gate {} from {first:?}, released {}, tasks {}, {} wait, {:?}",
            self.style,
            self.service.told,
            self.mode.name(),
            self.history.executed,
            self.lead.last(),
            self.gate.queue.len(),
            self.gate.released,
            self.service.tasks.len(),
            self.inbox.queue.len(),
            self.lead
        )
    }

    /// The arrival number of the first call that no replica is known to have executed.
    fn first_unproven(&self) -> Option<u64> {
        let waiting = self.inbox.queue.iter().find_map(crate::replica::Waiting::arrived);
        self.lead.first_unproven().or(waiting)
    }

    /// The tasks that count as calls of the history.
    pub(in crate::replica) fn calls_given(&self) -> u64 {
        let calls = self.service.tasks.iter().map(|(_, task)| match task {
            Task::Execute { .. } | Task::Logged { .. } => 1,
            Task::Apply { calls } => calls.len() as u64,
            _ => 0,
        });
        calls.sum()
    }
}

#[cfg(test)]
mod tests;
