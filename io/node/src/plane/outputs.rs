//! What the stack asks for, carried out.

use admin::status::{ChargeStatus, ExclusionStatus};
use engine::{Command, Event, Output};
use os::clock::{monotonic, wall_clock};
use wire::{GroupId, Time};

use super::{Plane, Sockets, Stop};
use crate::error::{MoveError, RestyleError};
use crate::executor::Overloaded;

/// What was run in one turn.
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
            self.flush_programs();
            let Sockets { transport, callers, liveness, poller } = &mut self.sockets;
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
                let ended = self.let_go(now);
                if !self.take_arrivals(now) && !ended {
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
            Output::Close { caller } => {
                if let Some(callers) = callers {
                    callers.close(caller);
                }
            }
            Output::Run { group, command } => self.run_command(now, group, command, ran),
            Output::Resume { group, ticket, outcome } => {
                if let Some(executor) = self.executors.get_mut(&group) {
                    executor.resume(ticket, outcome);
                    self.is_unwritten(group);
                }
            }
            Output::Replace(group) => self.replace(now, group),
            Output::Revive(group) => self.revive(group),
            Output::Probe(node) => transport.probe(node, now, &mut self.counters),
            Output::Persist(kept) => self.keep(kept),
            Output::Snapshot { strand, covers, place, state } => {
                self.keep_snapshot(strand, covers, place, state);
            }
            Output::Forget(group) => self.forget_kept(group),
            Output::Key(command) => {
                if let Some(keeper) = &self.keeper {
                    keeper.carry_out(command);
                }
            }
            Output::Own { number, outcome } => {
                if let Some(outcome) = self.registrations.answered(number, outcome) {
                    self.commands.answered(number, outcome);
                }
            }
            Output::Bench(outcome) => {
                if let Some(reply) = self.bench.take() {
                    let _ = reply.try_send(outcome);
                }
            }
            Output::Moved { group, outcome, .. } => {
                if let Some(reply) = self.moves.remove(&group) {
                    let _ = reply.try_send(outcome.map_err(MoveError::from));
                }
            }
            Output::Restyled { group, outcome, .. } => {
                if let Some(reply) = self.restyles.remove(&group) {
                    let _ = reply.try_send(outcome.map_err(RestyleError::from));
                }
            }
            Output::Saved { group, outcome } => self.backups.saved(group, outcome),
            Output::Restored { group, outcome } => self.backups.restored(group, outcome),
            Output::Event(event) => self.handle_event(event),
        }
    }

    fn run_command(&mut self, now: Time, group: GroupId, command: Command, ran: &mut Ran) {
        self.counters.commands += 1;
        ran.commands += 1;
        let executor = self.executors.get_mut(&group);
        // Each datagram wakes a node, and where processors are fewer than nodes these then stand
        // before the client: the reply to a lone call that waits for none of them goes first. Else
        // they go first: others wait for what is to be sent while a handler takes its time.
        ran.reply_first =
            ran.commands == 1 && executor.as_ref().is_some_and(|executor| executor.replies_first());
        if !ran.reply_first {
            self.sockets.transport.flush(now, &mut self.counters);
        }
        let Some(executor) = executor else { return };
        match executor.run(command) {
            Ok(None) => self.is_unwritten(group),
            Ok(Some(done)) => {
                self.counters.handlers_panicked += u64::from(done.panicked);
                self.stack.handle_executed(now, group, done.ticket, done.executed);
            }
            Err(Overloaded) => self.take_out_overloaded(now, group),
        }
    }

    /// A replica that cannot keep up must not stay: it would answer too late as primary, and
    /// leaving commands out would make it differ.
    pub(super) fn take_out_overloaded(&mut self, now: Time, group: GroupId) {
        self.counters.replicas_overloaded += 1;
        tracing::error!(%group, "this node's replica has fallen too far behind: it is taken out");
        if let Some(mut executor) = self.remove_executor(group)
            && let Some(process) = executor.process()
        {
            process.dismiss("it has fallen too far behind its group".into());
        }
        self.stack.abandon(now, group);
    }

    pub(super) fn handle_event(&mut self, event: Event) {
        match &event {
            Event::Malformed(reason) => self.counters.malformed.count(reason),
            Event::Ring(ring::Event::TooSlow { member, by, charge }) if *member == self.me => {
                self.counters.excluded_slow += 1;
                let (time, charge) = (wall_clock(), charge.map(ChargeStatus::from));
                let own_time = self.own_time.tell(monotonic());
                if let Some(own_time) = own_time {
                    tracing::error!("this node was too slow for the ring: {}", own_time.words());
                }
                self.excluded = Some(ExclusionStatus { time, by: by.node, charge, own_time });
            }
            Event::Ring(ring::Event::TooSlow { .. }) => self.counters.others_slow += 1,
            Event::Copy { .. } => self.counters.copies += 1,
            Event::NestedEnded { .. } => self.counters.nested_ends += 1,
            Event::NestedCopy { .. } => self.counters.nested_copies += 1,
            Event::Left if self.stop != Stop::No => self.stop = Stop::Done,
            Event::JoinRefused { name, options } => {
                self.refuse_join(monotonic(), GroupId::of(name), *options);
            }
            Event::View { group, replicas, .. } => {
                let gone = !replicas.iter().any(|(member, _)| *member == self.me);
                if !gone {
                    self.joined(*group);
                }
            }
            _ => {}
        }
        self.events.push(wall_clock(), event);
    }
}
