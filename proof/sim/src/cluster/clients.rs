//! Connections, and the outputs of clients.

use bytes::Bytes;
use client::{CallError, Output};
use wire::client::{Frame, Outcome, Refusal};
use wire::{Caller, Duration, GroupId, Member};

use super::{Brief, Cluster, Extra, Gateways, decode};
use crate::check::{Verdict, bounded, liveness, multicast};
use crate::customers::Customer;
use crate::identity::node_at;
use crate::options::GroupPlan;
use crate::streams::{Piece, Stream, Way};

/// A frame or a dial that could not get through is tried again after this long, as TCP does.
const RETRY: Duration = Duration::from_millis(40);

/// A dial that gets no answer is given up after this long.
const DIAL_TIMEOUT: Duration = Duration::from_secs(1);

impl Cluster {
    /// When clients begin to call, or the callers to which they are gateways.
    pub(super) fn plan_calls(&mut self) {
        let gateways = self.gateways.as_ref().map(Gateways::callers);
        for client in 0..self.customers.len() {
            if gateways.is_some() {
                self.renew_gateway(client);
            }
        }
        for caller in 0..gateways.unwrap_or(self.customers.len()) {
            let span = self.load.span(Duration::ZERO, Duration::from_millis(200));
            self.fabric.later(span, Extra::Call(caller));
        }
    }

    /// Calls that have not ended.
    pub(super) fn under_way(&self) -> usize {
        let open = self.gateways.as_ref().map_or(0, Gateways::open);
        self.customers.iter().map(Customer::under_way).sum::<usize>() + open
    }

    /// A client thinks of its next call.
    pub(super) fn call(&mut self, client: usize) -> Verdict {
        let load = &self.options.load;
        let customer = &mut self.customers[client];
        if self.course.is_calm() || customer.begun >= load.calls {
            return Ok(());
        }
        let think = self.load.scale(Duration::from_micros(50), load.think);
        if customer.under_way() < load.parallel {
            let now = self.fabric.now();
            let begun = customer.call(now, &self.options.groups, load, &mut self.load);
            self.watch.begun(now, client, &begun);
        }
        self.fabric.later(think, Extra::Call(client));
        self.customer_ran(client)
    }

    /// A session's timer may be due.
    pub(super) fn wake(&mut self, client: usize) -> Verdict {
        let now = self.fabric.now();
        let customer = &mut self.customers[client];
        if customer.wake != Some(now) {
            return Ok(());
        }
        if self.is_stopped(client) {
            let later = now + RETRY;
            (self.customers[client].wake, self.customers[client].stopped) = (Some(later), later);
            self.fabric.later(RETRY, Extra::Wake(client));
            return Ok(());
        }
        let customer = &mut self.customers[client];
        customer.wake = None;
        let local = customer.clock.local(now);
        if customer.session.next_timeout().is_some_and(|due| due <= local) {
            customer.session.handle_timeout(local);
        }
        self.customer_ran(client)
    }

    /// Takes all that a session puts out, and sets its timer.
    pub(super) fn customer_ran(&mut self, client: usize) -> Verdict {
        while let Some(output) = self.customers[client].poll() {
            self.customer_output(client, output)?;
        }
        let now = self.fabric.now();
        let customer = &mut self.customers[client];
        if self.fabric.looks() {
            customer.session.check_invariants();
        }
        if let Some(due) = customer.session.next_timeout() {
            let at = customer.clock.truth(due).max(now + Duration::from_micros(1));
            if customer.wake.is_none_or(|wake| at < wake) {
                customer.wake = Some(at);
                self.fabric.later(at.since(now), Extra::Wake(client));
            }
        }
        Ok(())
    }

    fn customer_output(&mut self, client: usize, output: Output) -> Verdict {
        let now = self.fabric.now();
        let name = self.customers[client].session.client();
        self.fabric.note(11, client, [0, 0]);
        match output {
            Output::Connect { link, address } => {
                let id = self.customers[client].connection(client, link);
                let stream = Stream::dial(client, link, node_at(address), now);
                self.fabric.say(|| format!("{name} dials {address} as {id}"));
                self.streams.insert(id, stream);
                let span = self.fabric.network.passage();
                self.fabric.later(span, Extra::Dial(id));
            }
            Output::Send { link, frame } => {
                let id = self.customers[client].connection(client, link);
                if let Frame::Request(request) = &frame {
                    let own = || self.customers[client].session.stats().calls;
                    let calls = self.gateways.as_ref().map_or_else(own, |it| it.begun(client));
                    self.watch.asked(request, calls)?;
                }
                let bytes = frame.encode();
                bounded::frame(bytes.len())?;
                self.put(id, Way::Up, Piece::Frame(bytes));
            }
            Output::Disconnect { link } => {
                let id = self.customers[client].connection(client, link);
                self.fabric.say(|| format!("{name} closes {id}"));
                self.put(id, Way::Up, Piece::End);
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.client_open = false;
                }
            }
            Output::Done { call, result, .. } if self.gateways.is_some() => {
                self.fabric.note(12, client, [call.0, u64::from(result.is_ok())]);
                let short = result.as_ref().map(Bytes::len);
                self.fabric.say(|| format!("gateway {client} of {name} ends {call:?}: {short:?}"));
                self.gateway_ended(client, call, result)?;
            }
            Output::Done { call, result, answers } => {
                self.fabric.note(12, client, [call.0, u64::from(result.is_ok())]);
                let short = result.as_ref().map(Bytes::len);
                self.fabric.say(|| format!("{name} ends {call:?}: {short:?}"));
                self.watch.linearizable.ended(now, client, call, &result);
                self.watch.stale.ended(client, call, &result)?;
                let customer = &mut self.customers[client];
                if let Some((group, reads)) = customer.of_call(call) {
                    let balancing = customer.policy.balancing;
                    let keeps = |plan: &GroupPlan| {
                        GroupId::of(&plan.name) == group && plan.styles.is_empty()
                    };
                    let targets = customer.session.targets(group);
                    let targets = targets.filter(|_| self.options.groups.iter().any(keeps));
                    let (result, answers) = (&result, &answers[..]);
                    let ended = multicast::Ended { group, reads, targets, result, answers };
                    let client = customer.session.client();
                    self.watch.multicasts.ended(client, balancing, &ended)?;
                }
                // A client that asked for a group before it existed gets this error, perhaps after
                // all has healed.
                let is_late = self.course.calm().is_some_and(|calm| now < calm + liveness::PASSING);
                if is_late && matches!(result, Err(CallError::NoSuchGroup(_))) {
                    customer.excuse(call);
                }
                let answered = customer.done(now, call, &result)?;
                self.missed(client, now, call, &result)?;
                self.summary.answered += u64::from(answered);
                self.summary.failed += u64::from(!answered);
            }
            Output::Event(event) => {
                self.fabric.say(|| format!("{name} says {event:?}"));
                self.noticed(client, now, &event)?;
            }
        }
        Ok(())
    }

    /// A piece enters a connection.
    pub(super) fn put(&mut self, id: Caller, way: Way, piece: Piece) {
        let now = self.fabric.now();
        let at = now + self.fabric.network.passage();
        if let Some(stream) = self.streams.get_mut(&id) {
            let arrival = stream.put(way, piece, at);
            self.fabric.later(arrival.since(now), Extra::Carry(id, way));
        }
    }

    /// A dial reaches the host, or does not.
    pub(super) fn dial(&mut self, id: Caller) {
        let Some(stream) = self.streams.get(&id) else { return };
        let (node, place) = (stream.node, self.place(stream.client));
        let waited = self.fabric.now().since(stream.dialled);
        let host = &self.fabric.hosts[node];
        let answers = host.powered && self.fabric.network.joined(place, node);
        let back = self.fabric.network.passage();
        if !answers {
            let (span, next) = match waited < DIAL_TIMEOUT {
                true => (RETRY, Extra::Dial(id)),
                false => (Duration::ZERO, Extra::Lost(id)),
            };
            return self.fabric.later(span, next);
        }
        if host.process.is_none() {
            return self.fabric.later(back, Extra::Lost(id));
        }
        let life = host.incarnation;
        let stream = self.streams.get_mut(&id).expect("it was there");
        (stream.life, stream.node_open) = (Some(life), true);
        self.fabric.later(back, Extra::Connected(id));
    }

    /// The client learns that its dial succeeded.
    pub(super) fn connected(&mut self, id: Caller) -> Verdict {
        let Some(stream) = self.streams.get(&id).filter(|stream| stream.client_open) else {
            return Ok(());
        };
        let (client, link) = (stream.client, stream.link);
        if self.is_stopped(client) {
            self.fabric.later(RETRY, Extra::Connected(id));
            return Ok(());
        }
        let now = self.customers[client].clock.local(self.fabric.now());
        self.customers[client].session.handle_connected(now, link);
        self.customer_ran(client)
    }

    /// The client learns that a connection is lost, or could not be made.
    pub(super) fn lost(&mut self, id: Caller) -> Verdict {
        let open = self.streams.get(&id).filter(|stream| stream.client_open);
        let Some((client, link)) = open.map(|stream| (stream.client, stream.link)) else {
            return Ok(());
        };
        if self.is_stopped(client) {
            self.fabric.later(RETRY, Extra::Lost(id));
            return Ok(());
        }
        self.streams.get_mut(&id).expect("it is open").client_open = false;
        self.fabric.say(|| format!("{id} is lost"));
        let now = self.customers[client].clock.local(self.fabric.now());
        self.customers[client].session.handle_disconnected(now, link);
        self.customer_ran(client)
    }

    /// The next piece of a connection arrives, unless the way is cut: then it is sent again.
    pub(super) fn carry(&mut self, id: Caller, way: Way) -> Verdict {
        let Some(stream) = self.streams.get(&id) else { return Ok(()) };
        let (client, node) = (stream.client, stream.node);
        let host = &self.fabric.hosts[node];
        let silent = way == Way::Up && !host.powered || way == Way::Down && self.is_stopped(client);
        if silent || !self.fabric.network.joined(self.place(client), node) {
            self.fabric.later(RETRY, Extra::Carry(id, way));
            return Ok(());
        }
        let same_life = host.process.is_some() && stream.life == Some(host.incarnation);
        let stream = self.streams.get_mut(&id).expect("it was there");
        let Some(piece) = stream.take(way) else { return Ok(()) };
        match way {
            Way::Up if same_life && stream.node_open => {
                let now = self.fabric.now();
                let arrives = match piece {
                    Piece::Frame(bytes) => Extra::Frame(id, bytes),
                    Piece::End => {
                        stream.node_open = false;
                        Extra::Gone(id)
                    }
                };
                self.fabric.deliver(now, node, arrives);
                Ok(())
            }
            // Nobody has this connection any more: the host resets it.
            Way::Up => {
                let span = self.fabric.network.passage();
                self.fabric.later(span, Extra::Lost(id));
                Ok(())
            }
            Way::Down => match piece {
                Piece::End => self.lost(id),
                Piece::Frame(bytes) => self.frame_to_client(id, &bytes),
            },
        }
    }

    fn frame_to_client(&mut self, id: Caller, bytes: &Bytes) -> Verdict {
        let Some(stream) = self.streams.get(&id).filter(|stream| stream.client_open) else {
            return Ok(());
        };
        let (client, link) = (stream.client, stream.link);
        let frame = decode(bytes);
        let name = self.customers[client].session.client();
        self.fabric.note(13, client, [id.0, bytes.len() as u64]);
        self.fabric.say(|| format!("{name} <- {id} {}", Brief(&frame)));
        let now = self.customers[client].clock.local(self.fabric.now());
        self.customers[client].session.handle_frame(now, link, frame);
        self.customer_ran(client)
    }

    /// A node writes to a client.
    pub(super) fn frame_from_node(
        &mut self,
        node: usize,
        me: Member,
        caller: Caller,
        frame: &Frame,
    ) -> Verdict {
        let Some(stream) = self.streams.get(&caller) else {
            self.answered_alone(caller, frame);
            return Ok(());
        };
        assert_eq!(stream.node, node, "{me} writes to {caller}, which is another node's");
        if let Frame::Reply(reply) = frame {
            let asker = stream.client;
            let customer = &self.customers[asker];
            let (client, priority) = (customer.session.client(), customer.policy.priority);
            self.watch.answered(self.fabric.now(), me, client, reply)?;
            if matches!(reply.outcome, Outcome::Shed { .. }) {
                self.refused(me, priority)?;
            }
            if matches!(reply.outcome, Outcome::Refused(Refusal::Poisoned, _)) {
                self.summary.refusals += 1;
                self.lose_answer(asker)?;
            }
        }
        let bytes = frame.encode();
        bounded::frame(bytes.len())?;
        if self.streams.get(&caller).is_some_and(|stream| stream.node_open) {
            self.put(caller, Way::Down, Piece::Frame(bytes));
        }
        Ok(())
    }

    /// A node closes a client's connection.
    pub(super) fn close_from_node(&mut self, node: usize, caller: Caller) {
        self.put(caller, Way::Down, Piece::End);
        if let Some(stream) = self.streams.get_mut(&caller) {
            stream.node_open = false;
        }
        let now = self.fabric.now();
        self.fabric.deliver(now, node, Extra::Gone(caller));
    }

    /// All connections of a node's life end, as its host's kernel closes them.
    pub(super) fn hang_up(&mut self, node: usize) {
        let of_node = |stream: &Stream| stream.node == node && stream.node_open;
        let ids: Vec<Caller> =
            self.streams.iter().filter(|(_, stream)| of_node(stream)).map(|(&id, _)| id).collect();
        for id in ids {
            self.put(id, Way::Down, Piece::End);
            self.streams.get_mut(&id).expect("listed").node_open = false;
        }
    }

    /// The network resets a client's connections.
    pub(super) fn reset(&mut self, client: usize) -> Verdict {
        let open = |stream: &Stream| stream.client == client && stream.node_open;
        let ids: Vec<Caller> =
            self.streams.iter().filter(|(_, stream)| open(stream)).map(|(&id, _)| id).collect();
        for id in ids {
            let stream = self.streams.get_mut(&id).expect("listed");
            stream.node_open = false;
            let (node, now) = (stream.node, self.fabric.now());
            if stream.life == Some(self.fabric.hosts[node].incarnation) {
                self.fabric.deliver(now, node, Extra::Gone(id));
            }
            self.lost(id)?;
        }
        Ok(())
    }
}
