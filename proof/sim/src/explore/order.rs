//! The ideal order itself: configurations, each a list of messages, and how far each node is.
//!
//! A message that is handed in waits at its node. The node sends it when it has received all that
//! was sent before; so a sender has its message, and all before it. Messages that no survivor has
//! received are lost with their senders, those that were not sent are sent in the next
//! configuration. That one follows by extended virtual synchrony (`docs/protocol/ring.md`,
//! "Installation"): those that go together get the same messages, up to the first safe one of which
//! none of them knows that all have it in the former configuration, the rest in the transitional
//! one.

use std::collections::VecDeque;
use std::hash::Hasher;

use bytes::Bytes;
use engine::ordering::{Configuration, ConfigurationKind, Delivery, Level};
use wire::{Member, NodeId, RingId};

use super::ideal::Input;
use crate::check::hashed::Mixed;

/// Nodes of the world.
pub const NODES: usize = 3;

/// The order of all nodes.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The largest ring so far.
    last: u64,
    configurations: Vec<Ordered>,
    seats: [Option<Seat>; NODES],
}

/// One configuration's order.
#[derive(Clone, Debug)]
struct Ordered {
    ring: RingId,
    members: Vec<Member>,
    messages: Vec<Message>,
    at: [At; NODES],
}

/// How far a node is in its configuration.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    received: u64,
    delivered: u64,
    stored: u64,
    /// Its knowledge of the others: received and stored.
    known: [(u64, u64); NODES],
}

#[derive(Clone, Debug)]
struct Message {
    sender: Member,
    level: Level,
    payload: Bytes,
    digest: u64,
}

/// A node's place.
#[derive(Clone, Debug)]
struct Seat {
    me: Member,
    /// The regular configuration that it is in.
    ring: RingId,
    /// Messages that it has not sent.
    queue: VecDeque<Message>,
    /// It is to enter this one, after these last messages of its own.
    entering: Option<Entering>,
}

#[derive(Clone, Debug)]
struct Entering {
    ring: RingId,
    /// Those that come with it from the same configuration.
    together: Vec<Member>,
    /// In the former regular configuration, and in the transitional one.
    regular: Vec<Delivery>,
    transitional: Vec<Delivery>,
}

fn place(member: Member) -> usize {
    member.node.0 as usize - 1
}

impl Order {
    /// A node begins a life, in no configuration yet.
    pub fn join(&mut self, me: Member) {
        let ring = RingId { sequence: 0, representative: me.node };
        self.seats[place(me)] = Some(Seat { me, ring, queue: VecDeque::new(), entering: None });
    }

    /// A life ends.
    pub fn end(&mut self, node: usize) {
        self.seats[node] = None;
    }

    /// The nodes that live.
    pub fn living(&self) -> Vec<usize> {
        (0..NODES).filter(|node| self.seats[*node].is_some()).collect()
    }

    fn find(&self, ring: RingId) -> Option<usize> {
        self.configurations.iter().position(|it| it.ring == ring)
    }

    fn of(&self, node: usize) -> Option<usize> {
        self.find(self.seats[node].as_ref()?.ring)
    }

    /// These nodes are, or are about to be, one configuration.
    pub fn is_formed(&self, nodes: &[usize]) -> bool {
        let next = |node: &usize| {
            let seat = self.seats[*node].as_ref()?;
            Some(seat.entering.as_ref().map_or(seat.ring, |entering| entering.ring))
        };
        let Some(first) = nodes.first().and_then(next) else { return true };
        let same = nodes.iter().all(|node| next(node) == Some(first));
        same && self.find(first).is_some_and(|at| {
            let members = &self.configurations[at].members;
            members.len() == nodes.len()
                && members.iter().all(|member| {
                    self.seats[place(*member)].as_ref().is_some_and(|seat| seat.me == *member)
                })
        })
    }

    /// All that live have entered one configuration.
    pub fn is_one(&self) -> bool {
        let living = self.living();
        self.is_formed(&living)
            && living
                .iter()
                .all(|node| self.seats[*node].as_ref().is_some_and(|seat| seat.entering.is_none()))
    }

    /// A node hands in a message.
    pub fn hand_in(&mut self, node: usize, level: Level, payload: Bytes) {
        let Some(seat) = &mut self.seats[node] else { return };
        let mut mixed = Mixed::default();
        mixed.write(&payload);
        mixed.write_u64(payload.len() as u64);
        let digest = mixed.finish();
        seat.queue.push_back(Message { sender: seat.me, level, payload, digest });
    }

    /// Its disk is so far in this configuration.
    pub fn stored(&mut self, node: usize, ring: RingId, upto: u64) {
        if let Some(at) = self.of(node).filter(|at| self.configurations[*at].ring == ring) {
            let own = &mut self.configurations[at].at[node];
            own.stored = own.stored.max(upto);
        }
    }

    /// The node has a message to receive or to send, or a configuration to enter.
    pub fn may_receive(&self, node: usize) -> bool {
        let Some(seat) = &self.seats[node] else { return false };
        seat.entering.is_some()
            || self.of(node).is_some_and(|at| {
                let it = &self.configurations[at];
                it.at[node].received < it.messages.len() as u64 || !seat.queue.is_empty()
            })
    }

    /// It enters its next configuration, or receives the next message. If it has all, it sends its
    /// own next one.
    pub fn receive(&mut self, node: usize) -> Vec<Input> {
        let at = self.of(node);
        let Some(seat) = &mut self.seats[node] else { return Vec::new() };
        if seat.entering.is_some() {
            return self.enter(node);
        }
        let Some(at) = at else { return Vec::new() };
        let it = &mut self.configurations[at];
        if it.at[node].received == it.messages.len() as u64 {
            it.messages.extend(seat.queue.pop_front());
        }
        it.at[node].received += 1;
        self.deliver(at, node)
    }

    /// A node can learn how far another is.
    pub fn may_hear(&self, node: usize, of: usize) -> bool {
        let (Some(at), Some(seat)) = (self.of(node), &self.seats[node]) else { return false };
        let there = self.of(of) == Some(at);
        let own = &self.configurations[at].at;
        let other = (own[of].received, own[of].stored);
        node != of && there && seat.entering.is_none() && own[node].known[of] != other
    }

    /// It learns that.
    pub fn hear(&mut self, node: usize, of: usize) -> Vec<Input> {
        let Some(at) = self.of(node) else { return Vec::new() };
        let it = &mut self.configurations[at];
        let (reached, stored) = (it.at[of].received, it.at[of].stored);
        it.at[node].known[of] = (reached, stored);
        let member = it.members.iter().find(|member| place(**member) == of).copied();
        let knows = member.map(|member| Input::Knows { member, reached, stored });
        let mut inputs = self.deliver(at, node);
        inputs.extend(knows);
        inputs
    }

    /// All that it has received and may deliver, and its own place.
    fn deliver(&mut self, at: usize, node: usize) -> Vec<Input> {
        let it = &mut self.configurations[at];
        let mut inputs = Vec::new();
        while it.at[node].delivered < it.at[node].received {
            let next = it.at[node].delivered + 1;
            let message = &it.messages[next as usize - 1];
            if message.level == Level::Safe && it.stable(node) < next {
                break;
            }
            inputs.push(Input::Deliver(it.delivery(next)));
            it.at[node].delivered = next;
        }
        let own = it.at[node];
        let me = it.members.iter().find(|member| place(**member) == node).copied();
        let knows = |member| Input::Knows { member, reached: own.received, stored: own.stored };
        inputs.extend(me.map(knows));
        inputs
    }

    /// These nodes can form a configuration: who comes from one goes on together.
    pub fn may_form(&self, nodes: &[usize]) -> bool {
        let former = |node: usize| {
            let seat = self.seats[node].as_ref()?;
            Some((seat.ring, seat.entering.as_ref().map(|next| next.ring)))
        };
        let agree = |a: usize, b: usize| match (former(a), former(b)) {
            (Some(one), Some(other)) => one.0 != other.0 || one.1 == other.1,
            _ => false,
        };
        let new = !self.is_formed(nodes);
        new && nodes.iter().all(|a| nodes.iter().all(|b| agree(*a, *b)))
    }

    /// These nodes form a configuration. Each enters it when it next receives.
    pub fn form(&mut self, nodes: &[usize]) {
        self.last += 1;
        let representative = NodeId(nodes[0] as u32 + 1);
        let ring = RingId { sequence: self.last, representative };
        let members: Vec<Member> =
            nodes.iter().filter_map(|node| Some(self.seats[*node].as_ref()?.me)).collect();
        let entering: Vec<(usize, Entering)> =
            nodes.iter().map(|node| (*node, self.last_messages(*node, nodes, ring))).collect();
        for (node, next) in entering {
            self.seats[node].as_mut().expect("it lives").entering = Some(next);
        }
        let at = [At::default(); NODES];
        self.configurations.push(Ordered { ring, members, messages: Vec::new(), at });
        self.forget();
    }

    /// The last messages that this one of those who form a configuration delivers. If it was to
    /// enter another one, it skips that, and has the same last messages.
    fn last_messages(&self, node: usize, nodes: &[usize], ring: RingId) -> Entering {
        let seat = self.seats[node].as_ref().expect("it lives");
        let with = |other: &&usize| {
            self.seats[**other].as_ref().is_some_and(|other| other.ring == seat.ring)
        };
        let with: Vec<usize> = nodes.iter().filter(with).copied().collect();
        let members = with.iter().filter_map(|other| Some(self.seats[*other].as_ref()?.me));
        let together: Vec<Member> = members.collect();
        if let Some(former) = &seat.entering {
            return Entering { ring, together, ..former.clone() };
        }
        let none = Entering { ring, together, regular: Vec::new(), transitional: Vec::new() };
        let Some(at) = self.of(node) else { return none };
        let it = &self.configurations[at];
        let upto = with.iter().map(|other| it.at[*other].received).max().unwrap_or(0);
        let stable = with.iter().map(|other| it.stable(*other)).max().unwrap_or(0);
        let first = it.at[node].delivered + 1;
        let unknown = |number: &u64| {
            *number > stable && it.messages[*number as usize - 1].level == Level::Safe
        };
        let cut = (first..=upto).find(unknown).unwrap_or(upto + 1);
        let regular = (first..cut).map(|number| it.delivery(number)).collect();
        let transitional = (cut..=upto).map(|number| it.delivery(number)).collect();
        Entering { regular, transitional, ..none }
    }

    fn enter(&mut self, node: usize) -> Vec<Input> {
        let seat = self.seats[node].as_mut().expect("it lives");
        let Entering { ring, together, regular, transitional } =
            seat.entering.take().expect("it enters");
        let former = std::mem::replace(&mut seat.ring, ring);
        let mut inputs: Vec<Input> = regular.into_iter().map(Input::Deliver).collect();
        if former.sequence > 0 {
            let kind = ConfigurationKind::Transitional;
            let last = Configuration { kind, ring: former, members: together };
            inputs.push(Input::Configuration(last));
        }
        inputs.extend(transitional.into_iter().map(Input::Deliver));
        let at = self.find(ring).expect("it is formed");
        let (kind, members) = (ConfigurationKind::Regular, self.configurations[at].members.clone());
        inputs.push(Input::Configuration(Configuration { kind, ring, members }));
        self.forget();
        inputs
    }

    /// Configurations in which nobody is are of no use.
    fn forget(&mut self) {
        let used: Vec<RingId> = self
            .seats
            .iter()
            .flatten()
            .flat_map(|seat| [Some(seat.ring), seat.entering.as_ref().map(|next| next.ring)])
            .flatten()
            .collect();
        self.configurations.retain(|it| used.contains(&it.ring));
    }

    /// A hash of all that matters from here on.
    pub fn hash(&self) -> u64 {
        let mut mixed = Mixed::default();
        for it in &self.configurations {
            mixed.write_u64(it.ring.sequence);
            it.members.iter().for_each(|member| mixed.write_u64(member.incarnation.0));
            it.messages.iter().for_each(|message| mixed.write_u64(message.digest));
            for at in &it.at {
                for word in [at.received, at.delivered, at.stored] {
                    mixed.write_u64(word);
                }
                at.known.iter().for_each(|(a, b)| mixed.write_u64(a << 32 | b));
            }
        }
        for seat in &self.seats {
            let Some(seat) = seat else {
                mixed.write_u64(u64::MAX);
                continue;
            };
            mixed.write_u64(seat.ring.sequence);
            seat.queue.iter().for_each(|message| mixed.write_u64(message.digest));
            let next = seat.entering.as_ref();
            mixed.write_u64(next.map_or(0, |next| next.ring.sequence));
            let counts = next.map_or((0, 0), |it| (it.regular.len(), it.transitional.len()));
            mixed.write_u64((counts.0 << 32 | counts.1) as u64);
        }
        mixed.finish()
    }
}

impl Ordered {
    /// Returns up to where a node knows that all members have the messages.
    fn stable(&self, node: usize) -> u64 {
        let at = &self.at[node];
        let of = |member: &Member| match place(*member) {
            own if own == node => at.received,
            other => at.known[other].0,
        };
        self.members.iter().map(of).min().unwrap_or(0)
    }

    fn delivery(&self, number: u64) -> Delivery {
        let Message { sender, level, payload, .. } = self.messages[number as usize - 1].clone();
        Delivery { ring: self.ring, sequence: number, contiguous: true, sender, level, payload }
    }
}
