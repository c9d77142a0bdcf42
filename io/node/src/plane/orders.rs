//! What other threads want of the data plane, done: what executors have finished, what the
//! program and administrators ask.

use admin::status::{Counters, ManagerStatus, Status, TlsStatus};
use admin::{KeyAsk, PoisonedCall};
use manager::Wish;
use os::clock::{monotonic, wall_clock};
use wire::{Duration, GroupId, Time};

use super::hosts::hosts;
use super::{Keeping, Plane, Stop};
use crate::error::HostError;
use crate::executor::{Asked, Done, Report};
use crate::keeper;
use crate::order::Order;
use crate::sockets::tcp::Callers;

/// A clean stop that is not over after this long is cut short: the others will find out.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Names of clients in a status.
const NAMES_TOLD: usize = 64;

impl Plane {
    pub(super) fn handle_report(&mut self, now: Time, report: Report) {
        match report {
            Report::Done(done) => self.handle_done(now, done),
            Report::Call(Asked { group, serial, call, reply }) => {
                // Of an earlier replica of this group nobody takes the answer: its handler is told by the end of the way back.
                let executor = self.executors.get_mut(&group);
                if let Some(executor) = executor.filter(|executor| executor.serial == serial) {
                    executor.calls(call.ticket, reply);
                    self.counters.nested_calls += 1;
                    self.stack.handle_nested(now, Time(wall_clock()), group, call);
                }
            }
        }
    }

    pub(super) fn handle_done(&mut self, now: Time, done: Done) {
        if let Some(executor) = self.executors.get_mut(&done.group) {
            if executor.serial != done.serial {
                // Of an earlier replica of this group, whose tickets mean nothing any more.
                return;
            }
            executor.done(&done);
        }
        self.counters.handlers_panicked += u64::from(done.panicked);
        self.stack.handle_executed(now, done.group, done.ticket, done.executed);
    }

    pub(super) fn handle_order(&mut self, now: Time, order: Order) {
        // Whoever asked may have given up: then nobody takes the answer.
        match order {
            Order::Host { name, options, executor, reply } => {
                let result = self.stack.host(now, &name, options).map(|group| {
                    self.executors.insert(group, executor);
                    self.stack.set_checkpoints(now, group, self.checkpoints);
                });
                let _ = reply.try_send(result.map_err(HostError::from));
            }
            Order::Attach { name, options, executor } => self.attach(now, name, options, executor),
            Order::Part { group, run, lost } => self.part(now, group, run, lost),
            Order::Tell(event) => self.handle_event(event),
            Order::Unhost { name, reply } => {
                let group = GroupId::of(&name);
                let result = match self.executors.get(&group) {
                    Some(executor) if !executor.leaving => {
                        self.begin_parting(now, group);
                        Ok(())
                    }
                    _ => Err(HostError::NotHosted(name)),
                };
                let _ = reply.try_send(result);
            }
            Order::State { name, reply } => match self.executors.get_mut(&GroupId::of(&name)) {
                Some(executor) if !executor.leaving => {
                    executor.state(reply);
                    self.is_unwritten(GroupId::of(&name));
                }
                _ => {
                    let _ = reply.try_send(Err(HostError::NotHosted(name)));
                }
            },
            Order::Poisoned { name, reply } => {
                let poisons = self.stack.poisoned(GroupId::of(&name));
                let calls = poisons.map(|poisons| poisons.iter().map(PoisonedCall::from).collect());
                let _ = reply.try_send(calls.ok_or(HostError::NotHosted(name)));
            }
            Order::Status { reply } => {
                let _ = reply.try_send(self.status());
            }
            Order::Bench { request, reply } => match self.stack.bench(now, request) {
                Ok(()) => self.bench = Some(reply),
                Err(error) => {
                    let _ = reply.try_send(Err(error));
                }
            },
            Order::BenchProgress { reply } => {
                let _ = reply.try_send(self.stack.bench_progress());
            }
            Order::StopBench => self.stack.stop_bench(now),
            Order::Subscribe { interest, reply } => {
                let past = self.events.history();
                let _ = reply.try_send((past, self.events.subscribe(interest)));
            }
            Order::Move { name, to, reply } => {
                let group = GroupId::of(&name);
                match self.stack.move_primary(now, group, to) {
                    Ok(()) => {
                        self.moves.insert(group, reply);
                    }
                    Err(error) => {
                        let _ = reply.try_send(Err(error.into()));
                    }
                }
            }
            Order::Restyle { name, style, reply } => {
                let group = GroupId::of(&name);
                match self.stack.restyle(now, group, style) {
                    Ok(()) => {
                        self.restyles.insert(group, reply);
                    }
                    Err(error) => {
                        let _ = reply.try_send(Err(error.into()));
                    }
                }
            }
            Order::Backup(order) => self.handle_backup(now, order),
            Order::Usage { usage, reply } => {
                let _ = reply.try_send(self.stack.tell_usage(now, usage));
            }
            Order::View { reply } => {
                let _ = reply.try_send(self.view());
            }
            Order::Command { command, reply } => self.say(now, &command, reply),
            Order::Sight { reply } => {
                let _ = reply.try_send(self.sight());
            }
            Order::Register { command, reply } => self.register(now, &command, reply),
            Order::Wish(wish) => self.grant(now, wish),
            Order::Criticalities(of) => self.stack.set_criticalities(of),
            Order::Key { ask, reply } => {
                let _ = reply.try_send(self.change_key(now, ask));
            }
            Order::KeyKept(kept) => {
                let kept = self.sockets.transport.seal().and_then(|seal| kept.apply(seal));
                if let Some((key, sealing)) = kept {
                    self.stack.handle_key_kept(now, key, sealing);
                }
            }
            Order::Stop => {
                if self.stop == Stop::No {
                    self.begin_to_stop(now);
                }
            }
        }
    }

    /// What has changed since the manager looked makes a wish void: its next look shows that.
    fn grant(&mut self, now: Time, wish: Wish) {
        match wish {
            Wish::Rank { group, view, order } => {
                self.stack.rank(now, group, view, order);
            }
            Wish::Shed(shedding) => {
                self.stack.shed(now, shedding);
            }
            Wish::Move { group, to, .. } => {
                if let Err(error) = self.stack.move_primary(now, group, to) {
                    tracing::debug!(%group, %to, %error, "the primary stays for now");
                }
            }
        }
    }

    /// Primaries are handed over, and the ring is left.
    pub(super) fn begin_to_stop(&mut self, now: Time) {
        self.stop = Stop::LeavingUntil(now + LEAVE_WITHIN);
        self.stack.leave(now);
    }

    fn change_key(&mut self, now: Time, ask: KeyAsk) -> Result<u8, String> {
        let sealing = self.stack.status().keys.ok_or(engine::KeyError::NotSealed);
        let sealing = sealing.map_err(|error| error.to_string())?;
        let under_way = sealing.change.map(|change| change.key.number);
        let (number, done) = match ask {
            KeyAsk::Rotate => {
                let key = keeper::next_key(sealing.sealing);
                let key = key.map_err(|error| format!("no random bytes: {error}"))?;
                (Some(key.name.number), self.stack.change_key(now, key))
            }
            KeyAsk::Force => (under_way, self.stack.force_key_change(now)),
            KeyAsk::Abort => (under_way, self.stack.abort_key_change(now)),
        };
        done.map(|()| number.unwrap_or_default()).map_err(|error| error.to_string())
    }

    fn status(&self) -> Status {
        let clients = self.sockets.callers.as_ref().map_or(0, Callers::count) as u64;
        let callers = self.sockets.callers.as_ref();
        let handshakes = callers.and_then(Callers::handshakes).unwrap_or_default();
        let counters = Counters { clients, handshakes, ..self.counters.clone() };
        let names = callers.map(Callers::names).unwrap_or_default();
        let clients = names.into_iter().take(NAMES_TOLD).collect();
        let tls = TlsStatus { clients, ..self.tls.clone() };
        let configured = self.configured.clone();
        let (cluster, client) = (&self.cluster, self.client_address);
        let transport = &self.sockets.transport;
        let status = self.stack.status();
        let seal = transport.seal_status().map(|seal| seal.with_change(status.keys.as_ref()));
        let mut status = Status {
            realtime: self.realtime.clone(),
            tls,
            sockets: transport.sockets(),
            seal,
            storage: self.keeping.as_ref().map(Keeping::status),
            ..Status::new(status, cluster, configured, client, counters)
        };
        status.ring.links = transport.status(monotonic());
        status.ring.excluded = self.excluded;
        status.hosts = hosts(&self.stack, &status.groups, monotonic());
        status.manager = self.policy.map(|policy| {
            let (members, quorate) = (&status.ring.members, status.ring.quorate == Some(true));
            let leads = members.iter().map(|member| member.node).min().filter(|_| quorate);
            ManagerStatus { leads, policy: policy.into() }
        });
        status
    }
}
