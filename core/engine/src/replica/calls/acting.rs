//! Calls that handlers here make of other groups.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::limits::MAX_NESTED_BYTES;
use wire::ordered::NestedEnd;
use wire::{ClientId, Time};

use super::{Child, Finished, READ, Taken, open, outcome};
use crate::api::{NestedCall, NestedError, Ticket};
use crate::replica::{Effect, Mode, Pieces, Replica, Task, Waiting};
use crate::session::Asked;
use crate::stopwatch::Work;

impl Replica {
    /// The handler that runs now calls another group.
    pub(crate) fn call(&mut self, now: Time, call: NestedCall, effects: &mut Vec<Effect>) {
        let ticket = call.ticket;
        let runs = self.service.may_run(ticket);
        let at = self.calls.position(ticket).filter(|_| runs);
        let outcome = match at.map(|at| &mut self.calls.handlers[at].1) {
            Some(handler) if handler.open.is_none() => {
                match open(self.group, self.planted, &mut self.calls.made, handler, now, call) {
                    Ok(mut ask) => {
                        ask.call_quorum = self.vote_on_ask(&ask, effects);
                        ask.ordered = self.calls.ordered.remove(&ask.child);
                        let logged = self.end_in_log(ask.child);
                        let kept = logged.or_else(|| self.calls.take_kept(&ask.child));
                        let kept = kept.or_else(|| self.end_that_waits(ask.child));
                        let Some((end, sequence)) = kept else {
                            effects.push(Effect::Ask(Box::new(ask)));
                            return;
                        };
                        self.calls.take_up(ticket, sequence);
                        outcome(end, ask.asked)
                    }
                    Err(error) => Err(error),
                }
            }
            _ if matches!(self.service.tasks.front(), Some((front, Task::Read { .. })) if *front == ticket) => {
                Err(NestedError::Unable(READ))
            }
            // It was given before the replica was told to forget.
            _ => Err(NestedError::Void),
        };
        effects.push(Effect::Resume { ticket, outcome });
    }

    /// A call that a handler of the group makes has ended, at this place of the order.
    pub(crate) fn nested_end(&mut self, end: NestedEnd, sequence: u64, effects: &mut Vec<Effect>) {
        if matches!(self.mode, Mode::Fallen) {
            return; // it is in the journal
        }
        let launching = matches!(self.mode, Mode::Launching { .. });
        if self.cold.is_some() && (launching || matches!(self.mode, Mode::Live)) {
            let logged = self.log_end(&end, sequence, effects);
            // Handlers from before the log began get ends as in any other group.
            let logs_all = !self.begins_log() && (logged || !launching);
            if logs_all && !self.calls.awaits(&end) {
                return;
            }
        }
        // Waiting messages came before it, and may have an end of the same call. A handler that
        // waits now has looked there.
        if !matches!(self.mode, Mode::Live | Mode::Idle) && !self.calls.awaits(&end) {
            return self.wait_for(Waiting::NestedEnd(end, sequence), effects);
        }
        match self.calls.end(end, sequence) {
            Taken::Resume(ticket, end, asked) => {
                let outcome = outcome(end, asked);
                effects.push(Effect::Resume { ticket, outcome });
            }
            Taken::Kept if self.calls.bytes > MAX_NESTED_BYTES => {
                effects.push(Effect::Overflow);
                self.idle(effects);
            }
            Taken::Kept | Taken::Spare | Taken::Unknown => {}
        }
    }

    /// The end of this call, if it waits with the requests: for a snapshot, for a state transfer,
    /// or behind the log. Handlers may run ahead of waiting messages, and a calling handler must
    /// not wait for later ones.
    fn end_that_waits(&self, child: Child) -> Option<(NestedEnd, u64)> {
        self.inbox.queue.iter().find_map(|waiting| match waiting {
            Waiting::NestedEnd(end, sequence) if (end.client, end.number, end.call) == child => {
                Some((end.clone(), *sequence))
            }
            _ => None,
        })
    }

    /// A handler has answered. Returns what its call asked.
    pub(in crate::replica) fn finish_handler(
        &mut self,
        ticket: Ticket,
        (client, number): (ClientId, u64),
        effects: &mut Vec<Effect>,
    ) -> Asked {
        let Some(Finished { settled, asked }) = self.calls.finish(ticket) else {
            return Asked::Unsaid;
        };
        if settled > 0 {
            effects.push(Effect::Settled { client, number, sequence: settled });
        }
        asked
    }

    /// Running handlers have no effect any more.
    pub(in crate::replica) fn forget_handlers(&mut self, effects: &mut Vec<Effect>) {
        for ticket in self.calls.forget() {
            effects.push(Effect::Resume { ticket, outcome: Err(NestedError::Void) });
        }
    }

    /// Ends that wait for their handlers take so much room that the log is not read further.
    pub(in crate::replica) fn has_many_ends(&self) -> bool {
        self.calls.bytes > MAX_NESTED_BYTES / 2
    }

    /// A read has seen the effects of earlier calls, which may depend on messages ordered after the
    /// read arrived.
    pub(in crate::replica) fn settle_read(
        &self,
        client: ClientId,
        number: u64,
        effects: &mut Vec<Effect>,
    ) {
        if self.calls.settled > 0 {
            effects.push(Effect::Settled { client, number, sequence: self.calls.settled });
        }
    }

    /// The service's current work. Commands that take or restore a whole state are not timed: their
    /// time depends on its size.
    pub(crate) fn work(&self) -> Work {
        if !self.service.runs {
            return Work::Off;
        }
        // Its program may have to start first.
        if self.service.starts {
            return Work::Nothing;
        }
        match self.service.tasks.front() {
            // It waits for another replica.
            Some((ticket, _)) if self.is_gated(*ticket) => Work::Nothing,
            Some((ticket, Task::Read { .. })) => Work::Runs(*ticket, Time::ZERO),
            // Calls of other lanes run beside it, and are timed when they are the oldest: at the
            // latest when its caller's deadline is over.
            Some((ticket, _)) => self.calls.work(*ticket),
            None => Work::Nothing,
        }
    }

    /// The service has been given calls that it has not answered.
    pub(crate) fn runs_handlers(&self) -> bool {
        !self.calls.handlers.is_empty()
    }

    /// The handler that runs has called another group.
    pub(crate) fn has_asked(&self) -> bool {
        self.calls.handlers.front().is_some_and(|(_, handler)| handler.made > 0)
    }

    /// Another replica of the group has had this call ordered; the handler here may not have come
    /// so far.
    pub(crate) fn call_ordered(&mut self, child: Child) {
        let (client, number, call) = child;
        let mut handlers = self.calls.handlers.iter();
        let ahead = handlers.any(|(_, handler)| {
            handler.client == client && handler.number == number && handler.made < call
        });
        if ahead {
            self.calls.ordered.insert(child);
        }
    }

    /// A component is installed that holds all that was ordered before.
    pub(crate) fn in_new_component(&mut self) {
        self.calls.renumber();
        self.comparing = None;
        // The service of a cold passive group's former primary ends with the component.
        let retells = self.keeps && self.style.has_state();
        self.lead.in_new_component(self.cold.is_some(), retells);
        // Primaries order their updates and checkpoints anew.
        (self.updates.pieces, self.checkpoint_pieces) = (Pieces::default(), Pieces::default());
        self.renumber_log();
        for waiting in &mut self.inbox.queue {
            if let Waiting::NestedEnd(_, sequence) = waiting {
                *sequence = 0;
            }
        }
    }
}
