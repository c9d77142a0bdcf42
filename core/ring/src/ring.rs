//! The machine: what each state does with what comes in.

mod membership;
mod merging;
mod rosters;
mod slow;
mod timers;
mod versions;

use alloc::boxed::Box;
use alloc::vec;

use bytes::Bytes;
use wire::histogram::{Histogram, Times};
use wire::ring::{Beacon, Datagram, Join, Level, Message};
use wire::{Malformed, Member, NodeId, Payload, Random, RingId, Time};

use crate::commit::{Complete, Forming};
use crate::config::{Config, ConfigError};
use crate::ended::Ended;
use crate::gather::{Gather, Sets};
use crate::neighbours::Neighbours;
use crate::operational::Operational;
use crate::order::Order;
use crate::out::Out;
use crate::output::{Buffers, Event, Fill, Output, Refused};
use crate::packing::{Assembly, SendQueue};
use crate::recovery::{Recovering, Recovery};
use crate::roll::Roll;
use crate::turn::Turn;

enum State {
    Gather(Gather),
    Commit(Forming),
    Recovery(Box<Recovery>),
    Operational(Turn),
    Left,
}

/// One node's part in a Totem ring.
pub struct Ring {
    config: Config,
    out: Out,
    random: Random,
    queue: SendQueue,
    assembly: Assembly,
    /// The ring that was installed last. Before the first, one that nobody else can have been in.
    order: Order,
    /// The knowledge of the ring before it when that ended.
    ended: Ended,
    /// A ring has been installed.
    installed: bool,
    /// Rings that this node was in before, latest first: what still arrives from them is late.
    past: [RingId; 4],
    /// The largest sequence of any ring that this node knows.
    known: u64,
    /// The complete commit of the ring that is being recovered or was installed, for members
    /// that missed it.
    committed: Option<Complete>,
    neighbours: Neighbours,
    roll: Roll,
    /// When the last ring was left.
    left_at: Time,
    /// The most datagrams that were kept of an earlier ring.
    kept_most: usize,
    /// When the last message was handed in, while those since the last outputs have not been looked
    /// at.
    handed_in: Option<Time>,
    state: State,
}

impl Ring {
    /// A node that starts. It gathers, and has its first join to send.
    ///
    /// # Errors
    /// [`ConfigError`] names a knob that is out of range.
    pub fn new(config: Config, now: Time) -> Result<Ring, ConfigError> {
        config.check()?;
        let me = config.me;
        // A sequence that no other node's rings have in this life, and no other life of this one.
        let known = me.incarnation.0;
        let nowhere = RingId { sequence: known, representative: me.node };
        let out = Out::new(&config);
        let mut ring = Ring {
            neighbours: Neighbours::new(&out.nodes, me.node),
            out,
            random: Random::new(config.seed),
            queue: SendQueue::default(),
            assembly: Assembly::default(),
            order: Order::new(nowhere, vec![me], me, now),
            ended: Ended::default(),
            installed: false,
            past: [nowhere; 4],
            known,
            committed: None,
            roll: Roll::default(),
            left_at: now,
            kept_most: 0,
            handed_in: None,
            state: State::Left,
            config,
        };
        ring.neighbours.planted = ring.config.planted;
        let mut gather = Gather::new(me, Sets::of(&[me]));
        gather.alone_at = now + ring.config.timing.consensus_timeout;
        ring.gather(now, gather, None);
        Ok(ring)
    }

    /// Bytes arrived that may be a datagram of this cluster.
    ///
    /// # Errors
    /// [`Malformed`] says why they are none; nothing else has happened.
    pub fn handle_datagram(&mut self, now: Time, bytes: &Bytes) -> Result<(), Malformed> {
        let Config { cluster, speaks, .. } = self.config;
        let datagram = Datagram::decode(cluster, speaks.ring, bytes)?;
        self.handle_message(now, datagram);
        Ok(())
    }

    /// A datagram arrived that [`Datagram::decode`] took for one of this cluster.
    pub fn handle_message(&mut self, now: Time, datagram: Datagram) {
        let Datagram { cluster, version, sender, message } = datagram;
        if cluster != self.config.cluster || sender.node == self.config.me.node {
            return;
        }
        if let Message::Join(Join { extension, .. }) | Message::Beacon(Beacon { extension, .. }) =
            &message
        {
            self.compare_rosters(sender, extension);
        }
        if self.out.nodes.place(sender.node).is_none() {
            return;
        }
        match message {
            Message::Join(join) => {
                if self.understands(now, sender, join.speaks) {
                    self.on_join(now, sender, join);
                }
                return;
            }
            Message::Beacon(beacon) => {
                if self.understands(now, sender, beacon.speaks) {
                    self.on_beacon(now, sender, &beacon);
                }
                return;
            }
            Message::Commit(commit) => return self.on_commit(now, sender, version, commit),
            Message::RosterPart(part) => return self.on_roster(sender, part),
            _ => {}
        }
        let ring = ring_of(&message);
        let order = match &self.state {
            State::Recovery(recovery) if ring == recovery.new.id => &recovery.new,
            _ => &self.order,
        };
        match order.index_of(sender) {
            Some(from) if ring == order.id => self.on_own_ring(now, sender, from, message),
            _ => self.on_stranger(now, sender, ring),
        }
    }

    /// Handles a message of a member of the ring about it.
    fn on_own_ring(&mut self, now: Time, sender: Member, from: usize, message: Message) {
        match &mut self.state {
            State::Operational(_) => {
                let mut operational = self.operational(now);
                match message {
                    Message::Data(data) => operational.data(from, data),
                    Message::Token(token) => operational.token(sender, token),
                    Message::Ack(ack) => operational.ack(from, ack),
                    Message::Want(_) => operational.want(from),
                    Message::Stable(stable) => operational.stable(from, stable),
                    Message::Pulse(pulse) => operational.pulse(from, pulse),
                    Message::Stored(stored) => operational.stored(from, stored),
                    Message::Confirm(question) => operational.confirm_to(from, question),
                    Message::Confirmed(answer) => operational.confirmed(from, answer),
                    Message::Join(_)
                    | Message::Commit(_)
                    | Message::Beacon(_)
                    | Message::RosterPart(_) => {}
                }
                self.weigh_stalls(now);
            }
            State::Recovery(recovery) if ring_of(&message) == recovery.new.id => {
                self.on_recovery(now, sender, from, message);
            }
            State::Gather(_) => {
                // The old ring's datagrams may still come. Once this node has reported what it has
                // of it, only the recovery may add something.
                if let Message::Data(data) = message {
                    let places = (&mut self.assembly, &mut self.out);
                    self.order.receive(now, &self.config, places, sender, data);
                    self.order.deliver(&self.config, &mut self.assembly, &mut self.out);
                }
            }
            State::Commit(_) | State::Recovery(_) | State::Left => {}
        }
    }

    fn on_recovery(&mut self, now: Time, sender: Member, from: usize, message: Message) {
        let mut recovering = self.recovering(now);
        let install = match &message {
            Message::Data(data) => recovering.data(sender, data.clone()),
            Message::Token(token) => recovering.token(sender.node, token.clone()),
            Message::Ack(ack) => {
                recovering.ack(from, ack.clone());
                false
            }
            _ => false,
        };
        if install {
            self.install_recovered(now);
            // The token is held by now; a datagram has still to be taken.
            if matches!(message, Message::Data(_)) {
                self.on_own_ring(now, sender, from, message);
            }
        }
    }

    /// The host of `node` refused a datagram: no process listens there.
    pub fn handle_unreachable(&mut self, now: Time, node: NodeId) {
        if node == self.config.me.node {
            return;
        }
        self.on_unreachable(now, node);
    }

    /// Queues a message for the total order. It is delivered to this node too, when `level` allows
    /// it. Levels do not change the order: an agreed message waits for a safe one before it.
    ///
    /// It leaves with the next outputs, in one datagram with as many others as have been handed in
    /// until then and find room.
    ///
    /// # Errors
    /// [`Refused`]: too long, or too much waits already.
    pub fn multicast(
        &mut self,
        now: Time,
        payload: impl Into<Payload>,
        level: Level,
    ) -> Result<(), Refused> {
        let payload = payload.into();
        if matches!(self.state, State::Left) {
            return Err(Refused::Left);
        }
        if self.handed_in.is_some() && !self.queue.has_room(payload.len()) {
            self.send_handed_in();
        }
        self.queue.push(payload, level)?;
        self.handed_in = Some(now);
        Ok(())
    }

    /// Sends what was handed in, or asks for the token. In another state it waits for the next
    /// ring.
    fn send_handed_in(&mut self) {
        let Some(now) = self.handed_in.take() else { return };
        if matches!(self.state, State::Operational(_)) && !self.queue.is_empty() {
            self.operational(now).queued();
            self.weigh_stalls(now);
        }
    }

    /// Asks a majority of the members whether they are still in this ring, without ordering
    /// anything. The number of the round of questions that tells: [`Output::Confirmed`] of this
    /// ring with it, or a larger one, comes unless the ring ends before. `None` while no ring
    /// orders messages: what is asked for then has to be asked for in the next one.
    pub fn confirm(&mut self, now: Time) -> Option<u64> {
        matches!(self.state, State::Operational(_)).then(|| self.operational(now).confirm())
    }

    /// Takes back a message that was handed in, if nothing of it has been sent: the very same
    /// bytes. True if that was so; then it is delivered nowhere.
    pub fn withdraw(&mut self, payload: &Payload) -> bool {
        self.queue.withdraw(payload)
    }

    /// Says to another member how far this one is, with the next outputs: who holds a message is
    /// told to its sender as soon as can be, and somebody else may wait to know it. Where the token
    /// comes to all in turn, it says so.
    pub fn acknowledge(&mut self, to: Member) {
        if let Some(index) = self.order.index_of(to)
            && self.config.parking
        {
            self.order.owed |= (1 << index) & !self.order.my_bit();
        }
    }

    /// Whether the token rests with its last user while nothing waits to be ordered.
    pub fn is_parking(&self) -> bool {
        self.config.parking
    }

    /// Leaves the ring on purpose: the others are told, so they need not find out.
    pub fn leave(&mut self, now: Time) {
        if matches!(self.state, State::Left) {
            return;
        }
        self.left_at = now;
        self.state = State::Left;
        self.say_farewell();
        self.out.event(Event::Left);
    }

    /// The next thing to do or to know, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.order.owed != 0 && matches!(self.state, State::Operational(_)) {
            self.order.pay_acks(&self.config, &mut self.out);
        }
        if self.out.queue.is_empty() {
            self.send_handed_in();
        }
        self.out.queue.pop_front()
    }

    /// The state's name, for people.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            State::Gather(_) => "gather",
            State::Commit(_) => "commit",
            State::Recovery(_) => "recovery",
            State::Operational(_) => "operational",
            State::Left => "left",
        }
    }

    /// The ring that was installed last.
    pub fn id(&self) -> RingId {
        self.order.id
    }

    /// The members of the ring that was installed last; before the first, this node alone.
    pub fn members(&self) -> &[Member] {
        &self.order.members
    }

    /// This member of `ring` is known to have everything up to this sequence number. Nothing is
    /// known of any but the ring that was installed last.
    pub fn reached(&self, ring: RingId, member: Member) -> u64 {
        let known = self.order.index_of(member).filter(|_| ring == self.order.id);
        known.map_or(0, |index| self.order.held.of(index))
    }

    /// This member of `ring` is known to have on its disk all that it has to keep up to this
    /// sequence number. Nothing is known of any but the ring that was installed last, and of
    /// members that never told.
    pub fn stored(&self, ring: RingId, member: Member) -> u64 {
        let known = self.order.index_of(member).filter(|_| ring == self.order.id);
        known.map_or(0, |index| self.order.stored.of(index))
    }

    /// This member of `ring` was known to have everything up to this sequence number when `ring`
    /// ended. Nothing is known of any but the ring before the last.
    pub fn reached_before(&self, ring: RingId, member: Member) -> u64 {
        self.ended.held(ring, member)
    }

    /// The same of its records on its disk.
    pub fn stored_before(&self, ring: RingId, member: Member) -> u64 {
        self.ended.stored(ring, member)
    }

    /// This node's disk has all messages that it has to keep, of those delivered up to this number
    /// of `ring`: the others are told. Reports of rings before the last are dropped.
    pub fn tell_stored(&mut self, now: Time, ring: RingId, upto: u64) {
        let mine = self.order.mine;
        let upto = upto.min(self.order.delivered);
        if ring != self.order.id || upto <= self.order.stored.of(mine) {
            return;
        }
        self.order.stored.set(mine, upto);
        if matches!(self.state, State::Operational(_)) {
            self.operational(now).tell_stored(false);
        }
    }

    /// Somebody waits for what others have on their disks: they are to say it again, for what they
    /// said may be lost.
    pub fn ask_stored(&mut self, now: Time) {
        if matches!(self.state, State::Operational(_)) {
            self.operational(now).tell_stored(true);
        }
    }

    /// Everything up to this sequence number of the ring has been delivered.
    pub fn delivered(&self) -> u64 {
        self.order.delivered
    }

    /// Messages that wait to be ordered.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How full the buffers are, and were.
    pub fn buffers(&self) -> Buffers {
        let (messages, bytes) = self.queue.fill();
        let (now, most) = self.order.window.fill();
        let datagrams = Fill { now, most: most.max(self.kept_most), limit: self.config.window };
        Buffers { messages, bytes, datagrams }
    }

    /// How long the token was away from this node each time, on the present ring: its rotations,
    /// less what this node does with it. `None` where it parks.
    pub fn rotations(&self) -> Option<Times> {
        let State::Operational(turn) = &self.state else { return None };
        turn.rotations.as_ref().map(Histogram::times)
    }

    /// True while the token is here: what is multicast now is ordered at once.
    pub fn holds_token(&self) -> bool {
        matches!(self.state, State::Operational(_)) && self.order.token.is_some()
    }

    /// Asserts what must hold between any two calls. Cheap enough to be called after each.
    pub fn check_invariants(&self) {
        self.queue.check();
        self.order.check(&self.config);
        assert!(self.order.members.contains(&self.config.me));
        assert!(self.known >= self.order.id.sequence);
        match &self.state {
            State::Gather(gather) => {
                gather.sets.check();
                assert!(!gather.sets.has_failed(self.config.me), "a node knows that it lives");
                assert!(gather.sets.life_of(self.config.me.node) == Some(self.config.me));
            }
            State::Commit(forming) => forming.sets.check(),
            State::Recovery(recovery) => {
                recovery.new.check(&self.config);
                assert!(recovery.new.id.sequence > self.order.id.sequence);
                assert!(self.known >= recovery.new.id.sequence);
            }
            State::Operational(turn) => {
                assert!(self.installed);
                turn.stalls.check(self.order.members.len());
                let waits = self.order.blocking().map(|kept| kept.data.level());
                let ready = self.order.delivered >= self.order.window.aru();
                assert!(ready || waits == Some(Level::Safe), "nothing ready waits");
            }
            State::Left => {}
        }
    }

    /// The fields that the handlers of an installed ring may touch.
    fn operational(&mut self, now: Time) -> Operational<'_> {
        let State::Operational(turn) = &mut self.state else {
            unreachable!("called in this state only")
        };
        Operational {
            now,
            config: &self.config,
            order: &mut self.order,
            turn,
            queue: &mut self.queue,
            assembly: &mut self.assembly,
            out: &mut self.out,
        }
    }

    /// The fields that the handlers of a ring in recovery may touch.
    fn recovering(&mut self, now: Time) -> Recovering<'_> {
        let State::Recovery(recovery) = &mut self.state else {
            unreachable!("called in this state only")
        };
        Recovering {
            now,
            config: &self.config,
            old: &mut self.order,
            recovery,
            assembly: &mut self.assembly,
            out: &mut self.out,
        }
    }
}

impl core::fmt::Debug for Ring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ring")
            .field("me", &self.config.me)
            .field("state", &self.state_name())
            .field("id", &self.order.id)
            .field("members", &self.order.members)
            .field("delivered", &self.order.delivered)
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}

/// The ring that a message speaks of; for a join, or a roster, none.
fn ring_of(message: &Message) -> RingId {
    match message {
        Message::Data(data) => data.ring,
        Message::Token(token) => token.ring,
        Message::Ack(ack) => ack.ring,
        Message::Want(want) => want.ring,
        Message::Commit(commit) => commit.ring,
        Message::Beacon(beacon) => beacon.ring,
        Message::Stable(stable) => stable.ring,
        Message::Pulse(pulse) => pulse.ring,
        Message::Stored(stored) => stored.ring,
        Message::Confirm(question) => question.ring,
        Message::Confirmed(answer) => answer.ring,
        Message::Join(_) | Message::RosterPart(_) => RingId::default(),
    }
}
