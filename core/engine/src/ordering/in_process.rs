//! The smallest engine: the nodes of one process, and a sequencer that they share.
//!
//! It serves tests of the layers above the order, and a node that is alone. Nothing is lost, all
//! nodes get all messages after the same delay, and the caller decides when memberships change.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use bytes::Bytes;
use wire::limits::{MAX_MESSAGE, MAX_SEND_QUEUE};
use wire::{Duration, Malformed, Member, NodeId, Payload, RingId, Time};

use super::{Configuration, ConfigurationKind, Delivery, Level, Ordering, Output, Refused};

/// The sequencer that the nodes of one process share. Copies are the same sequencer.
#[derive(Clone, Debug)]
pub struct Sequencer {
    shared: Rc<RefCell<Shared>>,
}

/// One node's end of a [`Sequencer`].
#[derive(Debug)]
pub struct InProcess {
    shared: Rc<RefCell<Shared>>,
    me: Member,
    /// The last regular configuration that was delivered here.
    ring: RingId,
    members: Vec<Member>,
    /// Up to where all members have the order, by the outputs delivered here.
    held: u64,
    /// The configuration before that, and what was held and stored of it.
    before: (RingId, u64, BTreeMap<Member, u64>),
    /// Rounds of questions. An answer follows everything that was in the inbox when the question
    /// was asked.
    rounds: u64,
    ready: VecDeque<Output>,
}

#[derive(Debug)]
struct Shared {
    delay: Duration,
    /// The largest sequence of any configuration so far.
    rings: u64,
    seats: BTreeMap<NodeId, Seat>,
    /// Reported positions on the disks of members of the present configurations.
    stored: BTreeMap<(RingId, Member), u64>,
}

/// One node's pending deliveries.
#[derive(Debug)]
struct Seat {
    member: Member,
    /// The configuration that this node's messages are ordered in now.
    ring: RingId,
    members: Vec<Member>,
    /// Messages ordered in it.
    sequence: u64,
    inbox: VecDeque<(Time, Output)>,
}

impl Sequencer {
    /// Returns a sequencer without nodes. Messages are delivered everywhere `delay` after their
    /// multicast.
    pub fn new(delay: Duration) -> Sequencer {
        let shared = Shared { delay, rings: 0, seats: BTreeMap::new(), stored: BTreeMap::new() };
        Sequencer { shared: Rc::new(RefCell::new(shared)) }
    }

    /// Adds a node, alone at first; [`arrange`](Sequencer::arrange) joins it with others. It
    /// replaces an earlier life of the node.
    pub fn join(&self, now: Time, me: Member) -> InProcess {
        let mut shared = self.shared.borrow_mut();
        shared.remove(now, me.node);
        let nowhere = RingId { sequence: shared.rings, representative: me.node };
        let seat = Seat {
            member: me,
            ring: nowhere,
            members: Vec::new(),
            sequence: 0,
            inbox: VecDeque::new(),
        };
        shared.seats.insert(me.node, seat);
        shared.configure(now, &[me.node]);
        let members = Vec::from([me]);
        let shared = self.shared.clone();
        let (before, ready) = ((nowhere, 0, BTreeMap::new()), VecDeque::new());
        InProcess { shared, me, ring: nowhere, members, held: 0, before, rounds: 0, ready }
    }

    /// Makes these nodes one component, without anybody else. Their former companions stay
    /// together. Nodes that have not joined are left out. A component that exists already stays as
    /// it is.
    pub fn arrange(&self, now: Time, component: &[NodeId]) {
        let mut shared = self.shared.borrow_mut();
        if shared.is_arranged(component) {
            return;
        }
        let mut others: BTreeMap<RingId, Vec<NodeId>> = BTreeMap::new();
        let touched: Vec<RingId> =
            component.iter().filter_map(|node| Some(shared.seats.get(node)?.ring)).collect();
        for (node, seat) in &shared.seats {
            if touched.contains(&seat.ring) && !component.contains(node) {
                others.entry(seat.ring).or_default().push(*node);
            }
        }
        shared.configure(now, component);
        for nodes in others.values() {
            shared.configure(now, nodes);
        }
    }

    /// Removes a node; its companions go on without it.
    pub fn remove(&self, now: Time, node: NodeId) {
        self.shared.borrow_mut().remove(now, node);
    }
}

impl Shared {
    /// Whether these nodes are a component already.
    fn is_arranged(&self, component: &[NodeId]) -> bool {
        let here = component.iter().filter_map(|node| self.seats.get(node));
        let members: Vec<Member> = here.clone().map(|seat| seat.member).collect();
        here.clone().all(|seat| {
            seat.members.len() == members.len()
                && seat.members.iter().all(|member| members.contains(member))
        })
    }

    fn remove(&mut self, now: Time, node: NodeId) {
        let Some(seat) = self.seats.remove(&node) else { return };
        let rest: Vec<NodeId> = seat.members.iter().map(|member| member.node).collect();
        self.configure(now, &rest);
    }

    /// Begins a new regular configuration of those of `nodes` that are present.
    fn configure(&mut self, now: Time, nodes: &[NodeId]) {
        let mut members: Vec<Member> =
            nodes.iter().filter_map(|node| Some(self.seats.get(node)?.member)).collect();
        members.sort_unstable();
        let Some(first) = members.first() else { return };
        self.rings += 1;
        let new = RingId { sequence: self.rings, representative: first.node };
        let due = now + self.delay;
        let rings: Vec<RingId> = self.seats.values().map(|seat| seat.ring).collect();
        self.stored.retain(|(ring, _), _| rings.contains(ring));
        let before: BTreeMap<Member, RingId> =
            members.iter().map(|member| (*member, self.seats[&member.node].ring)).collect();
        for member in &members {
            let seat = self.seats.get_mut(&member.node).expect("a member has a seat");
            if !seat.members.is_empty() {
                let old = seat.ring;
                let together = before.iter().filter(|(_, ring)| **ring == old);
                let transitional = Configuration {
                    kind: ConfigurationKind::Transitional,
                    ring: old,
                    members: together.map(|(member, _)| *member).collect(),
                };
                seat.inbox.push_back((due, Output::Configuration(transitional)));
            }
            let kind = ConfigurationKind::Regular;
            let regular = Configuration { kind, ring: new, members: members.clone() };
            seat.inbox.push_back((due, Output::Configuration(regular)));
            (seat.ring, seat.sequence) = (new, 0);
            seat.members.clone_from(&members);
        }
    }

    /// Gives a message its place. It is on its way to all members, so all hold it: agreed messages
    /// are as safe as safe ones.
    fn order(&mut self, now: Time, sender: Member, payload: &Bytes, level: Level) {
        let due = now + self.delay;
        let Some(members) = self.seats.get(&sender.node).map(|seat| seat.members.clone()) else {
            return;
        };
        for member in members {
            let seat = self.seats.get_mut(&member.node).expect("a member has a seat");
            seat.sequence += 1;
            let (ring, sequence) = (seat.ring, seat.sequence);
            let payload = payload.clone();
            let delivery = Delivery { ring, sequence, contiguous: true, sender, level, payload };
            seat.inbox.push_back((due, Output::Deliver(delivery)));
            let held = Output::Held { ring, majority: sequence, all: sequence };
            seat.inbox.push_back((due, held));
        }
    }

    /// Reports to all members that a member's disk has this.
    fn store(&mut self, now: Time, member: Member, ring: RingId, upto: u64) {
        let stored = self.stored.entry((ring, member)).or_default();
        *stored = (*stored).max(upto);
        let due = now + self.delay;
        for seat in self.seats.values_mut().filter(|seat| seat.ring == ring) {
            seat.inbox.push_back((due, Output::Stored { ring }));
        }
    }

    /// Returns the seat of this life of a node.
    fn seat(&self, me: Member) -> Option<&Seat> {
        self.seats.get(&me.node).filter(|seat| seat.member == me)
    }
}

impl InProcess {
    /// Takes the outputs that are due by now.
    fn arrive(&mut self, now: Time) {
        let mut shared = self.shared.borrow_mut();
        let shared = &mut *shared;
        let Some(seat) = shared.seats.get_mut(&self.me.node) else { return };
        if seat.member != self.me {
            return;
        }
        while seat.inbox.front().is_some_and(|(due, _)| *due <= now) {
            let (_, output) = seat.inbox.pop_front().expect("there is a first");
            match &output {
                Output::Configuration(Configuration { kind, ring, members })
                    if *kind == ConfigurationKind::Regular =>
                {
                    let stored = shared.stored.iter().filter(|((of, _), _)| *of == self.ring);
                    let stored = stored.map(|((_, member), upto)| (*member, *upto)).collect();
                    self.before = (self.ring, self.held, stored);
                    (self.ring, self.held) = (*ring, 0);
                    self.members.clone_from(members);
                }
                Output::Held { all, .. } => self.held = *all,
                _ => {}
            }
            self.ready.push_back(output);
        }
    }
}

impl Ordering for InProcess {
    fn handle_datagram(&mut self, _: Time, _: &Bytes) -> Result<(), Malformed> {
        // It sends none, so this is not its own.
        Err(Malformed::Magic)
    }

    fn handle_unreachable(&mut self, _: Time, _: NodeId) {}

    fn handle_timeout(&mut self, now: Time) {
        self.arrive(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        let shared = self.shared.borrow();
        shared.seat(self.me)?.inbox.front().map(|(due, _)| *due)
    }

    fn multicast(&mut self, now: Time, payload: Payload, level: Level) -> Result<(), Refused> {
        if payload.len() > MAX_MESSAGE {
            return Err(Refused::TooLarge(payload.len()));
        }
        let mut shared = self.shared.borrow_mut();
        let waiting = shared.seat(self.me).ok_or(Refused::Left)?.inbox.len();
        if waiting >= MAX_SEND_QUEUE {
            return Err(Refused::QueueFull);
        }
        shared.order(now, self.me, &payload.whole(), level);
        drop(shared);
        self.arrive(now);
        Ok(())
    }

    fn confirm(&mut self, now: Time) -> Option<u64> {
        let mut shared = self.shared.borrow_mut();
        let due = now + shared.delay;
        let seat = shared.seats.get_mut(&self.me.node).filter(|seat| seat.member == self.me)?;
        if seat.ring != self.ring {
            return None;
        }
        self.rounds += 1;
        // The sequencer knows all memberships at once: the answer follows all pending deliveries.
        let confirmed =
            Output::Confirmed { ring: seat.ring, round: self.rounds, upto: seat.sequence };
        seat.inbox.push_back((due, confirmed));
        Some(self.rounds)
    }

    fn leave(&mut self, now: Time) {
        let mut shared = self.shared.borrow_mut();
        if shared.seat(self.me).is_some() {
            shared.remove(now, self.me.node);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    fn id(&self) -> RingId {
        self.ring
    }

    fn members(&self) -> &[Member] {
        &self.members
    }

    fn reached(&self, ring: RingId, member: Member) -> u64 {
        if ring == self.ring && self.members.contains(&member) { self.held } else { 0 }
    }

    fn stored(&self, ring: RingId, member: Member) -> u64 {
        let shared = self.shared.borrow();
        let known = ring == self.ring && self.members.contains(&member);
        shared.stored.get(&(ring, member)).copied().filter(|_| known).unwrap_or(0)
    }

    fn reached_before(&self, ring: RingId, _: Member) -> u64 {
        if ring == self.before.0 { self.before.1 } else { 0 }
    }

    fn stored_before(&self, ring: RingId, member: Member) -> u64 {
        let known = self.before.2.get(&member).copied();
        known.filter(|_| ring == self.before.0).unwrap_or(0)
    }

    fn tell_stored(&mut self, now: Time, ring: RingId, upto: u64) {
        self.shared.borrow_mut().store(now, self.me, ring, upto);
    }

    fn ask_stored(&mut self, _: Time) {
        // Nothing is lost here.
    }

    fn state_name(&self) -> &'static str {
        match self.shared.borrow().seat(self.me) {
            Some(_) => "operational",
            None => "left",
        }
    }

    fn queued(&self) -> usize {
        0
    }

    fn check_invariants(&self) {
        let shared = self.shared.borrow();
        let Some(seat) = shared.seat(self.me) else { return };
        assert!(self.members.contains(&self.me) && seat.members.contains(&self.me));
        for member in &seat.members {
            let other = &shared.seats[&member.node];
            assert_eq!((other.ring, other.sequence), (seat.ring, seat.sequence), "one order");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Incarnation;

    const DELAY: Duration = Duration::from_micros(30);
    const NOW: Time = Time(1_000_000);

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn drain(node: &mut InProcess) -> Vec<Output> {
        core::iter::from_fn(|| node.poll_output()).collect()
    }

    fn words(outputs: &[Output]) -> Vec<Bytes> {
        let word = |output: &Output| match output {
            Output::Deliver(delivery) => Some(delivery.payload.clone()),
            _ => None,
        };
        outputs.iter().filter_map(word).collect()
    }

    #[test]
    fn all_of_a_component_are_told_the_same_and_nobody_else_is() {
        let sequencer = Sequencer::new(DELAY);
        let mut nodes = [1, 2, 3].map(|node| sequencer.join(NOW, member(node)));
        sequencer.arrange(NOW, &[NodeId(1), NodeId(2)]);
        nodes[1].multicast(NOW, "b".into(), Level::Agreed).unwrap();
        nodes[0].multicast(NOW, "a".into(), Level::Safe).unwrap();
        assert_eq!(nodes[0].next_timeout(), Some(NOW + DELAY));
        for node in &mut nodes {
            node.handle_timeout(NOW + DELAY);
            node.check_invariants();
        }
        let told = nodes.each_mut().map(drain);
        assert_eq!(words(&told[0]), ["b", "a"]);
        assert_eq!(words(&told[1]), ["b", "a"]);
        assert!(words(&told[2]).is_empty());
        assert_eq!(nodes[0].members(), [member(1), member(2)]);
        assert_eq!(nodes[0].id(), nodes[1].id());
        assert_ne!(nodes[0].id(), nodes[2].id());
    }

    #[test]
    fn what_was_on_its_way_comes_before_the_configuration_that_follows() {
        let sequencer = Sequencer::new(DELAY);
        let mut nodes = [1, 2].map(|node| sequencer.join(NOW, member(node)));
        sequencer.arrange(NOW, &[NodeId(1), NodeId(2)]);
        nodes[1].multicast(NOW, "last words".into(), Level::Agreed).unwrap();
        sequencer.remove(NOW, NodeId(2));
        assert_eq!(nodes[1].multicast(NOW, "too late".into(), Level::Agreed), Err(Refused::Left));
        nodes[0].handle_timeout(NOW + DELAY);
        let told = drain(&mut nodes[0]);
        assert_eq!(words(&told), ["last words"]);
        let [.., Output::Configuration(transitional), Output::Configuration(regular)] = &told[..]
        else {
            panic!("two configurations at the end of {told:?}");
        };
        assert_eq!(transitional.kind, ConfigurationKind::Transitional);
        assert_eq!(regular.members, [member(1)]);
        assert!(regular.ring > transitional.ring);
    }
}
