//! Carries out the stack's outputs.

use admin::status::{ChargeStatus, ExclusionStatus};
use engine::{Command, Event, Output, RosterNews};
use os::clock::{monotonic, wall_clock};
use wire::{GroupId, Time};

use super::waiting::answer;
use super::{Keeping, Plane, Sockets};
use crate::error::Stopped;
use crate::incarnation::Founding;

/// The commands that ran in one turn.
#[derive(Default)]
struct Ran {
    commands: u32,
    /// One alone, whose reply goes before the turn's datagrams.
    reply_first: bool,
}

impl Plane {
    /// Carries out all that the stack asks for, and what comes of it.
    pub(super) fn do_what_the_stack_asks(&mut self) {
        loop {
            let (now, mut ran) = (monotonic(), Ran::default());
            while let Some(output) = self.stack.poll_output() {
                self.do_output(now, output, &mut ran);
            }
            // Sending and writing may show that somebody is gone, and the stack then asks for more.
            let Sockets { transport, callers, poller, .. } = &mut self.sockets;
            let counters = &mut self.counters;
            let mut gone = None;
            if let (true, Some(callers)) = (ran.reply_first, &mut *callers) {
                gone = callers.flush(poller, counters);
            }
            transport.flush(now, counters);
            let Sockets { transport, callers, liveness, poller } = &mut self.sockets;
            self.replicas.flush(poller);
            let counters = &mut self.counters;
            if let Some(gone) = gone {
                self.stack.handle_disconnect(now, gone);
            } else if let Some(event) = transport.take_event() {
                self.handle_event(Event::Ring(event));
            } else if let Some(node) = transport.take_unreachable(now, counters, liveness) {
                self.stack.handle_unreachable(now, node);
            } else if let Some(gone) =
                callers.as_mut().and_then(|callers| callers.flush(poller, counters))
            {
                self.stack.handle_disconnect(now, gone);
            } else {
                let mut hosting = self.hosting();
                let ended = hosting.let_go(now);
                if !hosting.take_arrivals(now) && !ended {
                    break;
                }
            }
        }
        self.counters.events_dropped += self.events.deliver();
    }

    fn do_output(&mut self, now: Time, output: Output, ran: &mut Ran) {
        let Sockets { transport, callers, .. } = &mut self.sockets;
        match output {
            Output::Send { to, datagram, route } => {
                transport.send(to, &datagram, route, now, &mut self.counters);
            }
            Output::Frame { caller, frame } => {
                if let Some(callers) = callers {
                    callers.push(caller, &frame);
                }
            }
            Output::Away(call) => self.changes.away.change(|calls| calls.make(now, *call)),
            Output::Place { caller, name } => self.tell_place(caller, &name),
            Output::Close { caller } => {
                if let Some(callers) = callers {
                    callers.close(caller);
                }
            }
            Output::Run { group, command } => self.run_command(now, group, command, ran),
            Output::Resume { group, ticket, outcome } => {
                self.replicas.resume(group, ticket, outcome);
            }
            Output::Replace(group) => self.hosting().replace(now, group),
            Output::Revive(group) => self.replicas.revive(group),
            Output::Probe(node) => transport.probe(node, now, &mut self.counters),
            Output::Persist(kept) => self.persist(|keeping| keeping.keep(kept)),
            Output::Snapshot { strand, covers, place, state } => {
                self.persist(|keeping| keeping.keep_snapshot(strand, covers, place, state));
            }
            Output::Fetch { transfer, from, bytes } => self.streams.fetch(transfer, from, bytes),
            Output::Forget(group) => self.persist(|keeping| keeping.forget(group)),
            Output::Key(command) => {
                if let Some(writer) = &self.key_file {
                    writer.carry_out(command);
                }
            }
            Output::Keep(roster) => self.keep_roster(now, roster),
            Output::Known(roster) => self.know_roster(now, &roster),
            Output::Nodes(list) => self.reach(now, list),
            Output::Own { number, outcome } => self.waiting.own_ended(number, outcome),
            Output::Bench(outcome) => {
                if let Some(reply) = self.waiting.bench.take() {
                    answer(&reply, *outcome);
                }
            }
            Output::Moved { group, outcome, .. } => self.waiting.moves.ended(group, outcome),
            Output::Restyled { group, outcome, .. } => self.waiting.restyles.ended(group, outcome),
            Output::Saved { group, outcome } => self.waiting.saves.ended(group, outcome),
            Output::Restored { group, outcome } => self.waiting.restores.ended(group, outcome),
            Output::Event(event) => self.handle_event(event),
        }
    }

    fn persist(&mut self, request: impl FnOnce(&mut Keeping)) {
        if let Some(mut persisting) = self.persisting() {
            persisting.give(request);
        }
    }

    fn run_command(&mut self, now: Time, group: GroupId, command: Command, ran: &mut Ran) {
        self.counters.commands += 1;
        ran.commands += 1;
        // Each datagram wakes a node, and where processors are fewer than nodes these then stand
        // before the client: the reply to a lone call that waits for none of them goes first. Else
        // they go first: others wait for what is to be sent while a handler takes its time.
        ran.reply_first = ran.commands == 1 && self.replicas.replies_first(group);
        if !ran.reply_first {
            self.sockets.transport.flush(now, &mut self.counters);
        }
        self.hosting().run(now, group, command);
    }

    pub(super) fn handle_event(&mut self, event: Event) {
        match &event {
            Event::Malformed(reason) => self.counters.malformed.count(reason),
            Event::Ring(ring::Event::TooSlow { member, by, charge })
                if *member == self.profile.me =>
            {
                self.counters.excluded_slow += 1;
                let (time, charge) = (wall_clock(), charge.map(ChargeStatus::from));
                let own_time = self.pacing.own_time();
                if let Some(own_time) = own_time {
                    tracing::error!("this node was too slow for the ring: {}", own_time.words());
                }
                self.excluded = Some(ExclusionStatus { time, by: by.node, charge, own_time });
            }
            Event::Ring(ring::Event::TooSlow { .. }) => self.counters.others_slow += 1,
            Event::Copy { .. } => self.counters.copies += 1,
            Event::NestedEnded { .. } => self.counters.nested_ends += 1,
            Event::NestedCopy { .. } => self.counters.nested_copies += 1,
            Event::Left => self.ending.left(),
            Event::Roster { news: RosterNews::Dismissed, .. } => {
                self.ending.fail(monotonic(), &mut self.stack, Stopped::Retired);
            }
            // Once in the node's life, it waits for the disk here: before it answers anything.
            Event::Quorum { quorate: true, .. } => {
                self.founding.take().into_iter().for_each(Founding::over);
            }
            Event::JoinRefused { name, options } => {
                self.hosting().refuse_join(monotonic(), GroupId::of(name), *options);
            }
            Event::View { group, replicas, .. }
                if replicas.iter().any(|(member, _)| *member == self.profile.me) =>
            {
                self.replicas.joined(*group);
            }
            _ => {}
        }
        self.events.push(wall_clock(), event);
    }
}
