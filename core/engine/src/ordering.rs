//! The seam below the stack: an engine that orders messages and knows the members.
//!
//! The [`Ring`] is one such engine. Another (the closed process groups of corosync, say) can take
//! its place below the same rooms if it keeps the promises of [`Ordering`]; [`InProcess`] is the
//! smallest that does. Rooms above see no datagrams, tokens or time-outs: only an order with its
//! configurations, and which members have what.

mod in_process;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::histogram::Times;
use wire::limits::MAX_TOLD;
use wire::roster::Roster;
use wire::versions::Unfit;
use wire::{Malformed, Member, NodeId, Payload, RingId, Speaks, Time};

pub use in_process::{InProcess, Sequencer};
pub use ring::{
    Buffers, Configuration, ConfigurationKind, Delivery, Level, Output, Refused, Ring, Route,
};

/// One node's end of a total order with extended virtual synchrony.
///
/// A machine like all others here: time is an argument, nothing blocks, and all outputs come out of
/// one ordered queue, which is emptied after each call. The [`Stack`] alone calls these methods. It
/// is generic: there is no dynamic dispatch on a message's way.
///
/// # What an engine promises
///
/// *Members* are lives of nodes: a node that comes back has a larger incarnation. "All" below are
/// the members of a configuration that do not fail.
///
/// 1. **Configurations.** The first output that is neither a send nor an event is a regular
///    [`Configuration`]. Each has another [`RingId`], larger than all earlier ones of its members.
///    It lists its members in order of id, this one included. A [`Delivery`] names the regular
///    configuration that ordered it. Between two regular configurations there may be one
///    transitional: the members that go on together from the old one, which get the old one's last
///    messages.
/// 2. **One order.** Within a configuration, `sequence` does not decrease; messages with one number
///    are delivered one right after the other. Two members that deliver the same two messages
///    deliver them in the same order and with the same (ring, sequence).
/// 3. **No gap unmarked.** A member that delivers a message has delivered all before it in the same
///    configuration. Messages may be missing only if they were lost together with all members that
///    had them. The deliveries after such a gap have `contiguous: false`, and come in the
///    transitional configuration.
/// 4. **Own messages.** A message that [`multicast`](Ordering::multicast) took, and that was not
///    [withdrawn](Ordering::withdraw), is delivered here too, once, in this configuration or a
///    later one, unless this node fails or leaves. Those of one sender keep their order.
/// 5. **Virtual synchrony.** Members that go together from one regular configuration to the next
///    have delivered the same messages in the former.
/// 6. **Held.** [`Output::Held`] reports up to which number of the present regular configuration a
///    majority, or all, of its members have everything. It also reports that
///    [`reached`](Ordering::reached) has grown for a single member. It never reports too much, and
///    never shrinks within a configuration. While a configuration lasts, it comes to cover every
///    message delivered in it, without further messages. A member delivers all that it has, unless
///    it fails. So a message that a majority has is delivered in any later configuration that
///    includes one of these members. [`Output::Stored`] reports likewise that
///    [`stored`](Ordering::stored) has grown, which is as true as the members' own reports. A
///    report may be lost, and comes again when it is [asked for](Ordering::ask_stored).
/// 7. **Levels.** A message of level safe is delivered only when `all` would cover it, or in the
///    transitional configuration. The order is one, whatever the levels: messages after a safe one
///    wait for it. A message of level held is delivered like an agreed one, and [`Output::Held`]
///    follows as soon as possible. After an agreed one it may come later, so that no member is
///    asked for knowledge that nobody waits for.
/// 8. **Bounds.** The number of messages that wait to be ordered is bounded; at the bound
///    `multicast` refuses, and nothing has happened. Messages taken while no configuration is
///    installed wait for the next one.
/// 9. **Confirmed.** [`Output::Confirmed`] of a round belongs to the call of
///    [`confirm`](Ordering::confirm) that returned that round, or a larger one. At some moment
///    after that call, a majority of the members knew of no later configuration. All messages held
///    by a majority, or all, at the time of the call are in the order up to the number that it
///    names. It comes unless the configuration ends. [`Output::Current`] says the same of a time
///    at which nobody asked, where an engine knows it anyway.
/// 10. **Alone.** Whether a configuration has a quorum is not the engine's business: every
///     component of a partition gets configurations.
///
/// [`Stack`]: crate::Stack
pub trait Ordering {
    /// Takes a datagram of another node's engine. An engine that sends none gets none.
    ///
    /// # Errors
    /// The datagram was not of this cluster's engine. It is counted, and has had no effect.
    fn handle_datagram(&mut self, now: Time, bytes: &Bytes) -> Result<(), Malformed>;

    /// Takes the report of `node`'s host that no process of the cluster listens there.
    fn handle_unreachable(&mut self, now: Time, node: NodeId);

    /// Acts at the time that [`next_timeout`](Ordering::next_timeout) has returned.
    fn handle_timeout(&mut self, now: Time);

    /// Returns when the engine next acts by itself.
    fn next_timeout(&self) -> Option<Time>;

    /// Queues a message for the total order, to be delivered at `level`.
    ///
    /// # Errors
    /// [`Refused`]: it is too long, too many messages wait already, or this node has left.
    fn multicast(&mut self, now: Time, payload: Payload, level: Level) -> Result<(), Refused>;

    /// Asks whether this node is in the present configuration together with a majority. Returns the
    /// round whose [`Output::Confirmed`] will answer. `None` if nothing is ordered now and the
    /// caller is to wait for the next configuration.
    fn confirm(&mut self, now: Time) -> Option<u64>;

    /// Takes back a message that was handed in, if no part of it has been sent. True if it will not
    /// be delivered because of that. An engine need not support this.
    fn withdraw(&mut self, _payload: &Payload) -> bool {
        false
    }

    /// Reports this member's progress to another member, which waits to know who has a message that
    /// it has not ordered itself. Its [`Output::Held`] comes without this, too, but later.
    fn acknowledge(&mut self, _to: Member) {}

    /// Whether the right to order stays with its last user while nobody wants it, instead of
    /// passing to all in turn.
    fn is_parking(&self) -> bool {
        true
    }

    /// Leaves on purpose, so that the others need not detect it. Nothing is delivered any more.
    fn leave(&mut self, now: Time);

    /// Returns the next output, in order.
    fn poll_output(&mut self) -> Option<Output>;

    /// Returns the id of the regular configuration that was delivered last.
    fn id(&self) -> RingId;

    /// Returns its members; before the first configuration, this node alone.
    fn members(&self) -> &[Member];

    /// Returns up to which number this member of `ring` is known to have everything: 0 for any
    /// other configuration than the last, and for non-members. It is as true as [`Output::Held`],
    /// which comes whenever this grows for another member.
    fn reached(&self, ring: RingId, member: Member) -> u64;

    /// Returns up to which number this member of `ring` is known to have all its records on its
    /// disk: 0 for any other configuration than the last, and for members without a report.
    fn stored(&self, ring: RingId, member: Member) -> u64;

    /// Returns what [`reached`](Ordering::reached) and [`stored`](Ordering::stored) would have
    /// returned when `ring` ended, if it was the configuration before the last; else 0.
    fn reached_before(&self, ring: RingId, member: Member) -> u64;

    /// The same of its disk.
    fn stored_before(&self, ring: RingId, member: Member) -> u64;

    /// Reports to the other members that this node has on its disk all its records of deliveries up
    /// to this number of `ring`.
    fn tell_stored(&mut self, now: Time, ring: RingId, upto: u64);

    /// Asks the other members to repeat their reports of their disks, because this node waits for
    /// them and reports may be lost.
    fn ask_stored(&mut self, now: Time);

    /// Returns the engine's state, for people: `operational` while it orders messages.
    fn state_name(&self) -> &'static str;

    /// Returns the number of messages taken that have no place in the order yet. Those of this node
    /// leave in their order.
    fn queued(&self) -> usize;

    /// Returns how full its buffers are, and were; `None` if the engine does not count that.
    fn buffers(&self) -> Option<Buffers> {
        None
    }

    /// Returns how long the right to order was away from this node each time, if the engine passes
    /// it to all in turn.
    fn rotations(&self) -> Option<Times> {
        None
    }

    /// The level of the rules in force: no node is a member that does not know them.
    fn set_level(&mut self, _now: Time, _level: u8) {}

    /// The nodes that may be members from now on. Another engine gets the roster that has an older
    /// one, and reports it by [`Output::Roster`]. An older one than the last changes nothing.
    fn set_nodes(&mut self, _now: Time, _roster: &Roster) {}

    /// Another configuration is to follow, if only of the same members.
    fn form_anew(&mut self, _now: Time) {}

    /// Returns the version in which the engines of the configuration speak; 0 if they have none.
    fn version(&self) -> u8 {
        0
    }

    /// Returns the nodes that were heard and cannot be members with this one, what they speak, and
    /// why.
    fn unfit(&self) -> Vec<(Member, Speaks, Unfit)> {
        Vec::new()
    }

    /// Asserts the invariants between any two calls.
    fn check_invariants(&self);
}

impl Ordering for Ring {
    fn handle_datagram(&mut self, now: Time, bytes: &Bytes) -> Result<(), Malformed> {
        Ring::handle_datagram(self, now, bytes)
    }

    fn handle_unreachable(&mut self, now: Time, node: NodeId) {
        Ring::handle_unreachable(self, now, node);
    }

    fn handle_timeout(&mut self, now: Time) {
        Ring::handle_timeout(self, now);
    }

    fn next_timeout(&self) -> Option<Time> {
        Ring::next_timeout(self)
    }

    fn multicast(&mut self, now: Time, payload: Payload, level: Level) -> Result<(), Refused> {
        Ring::multicast(self, now, payload, level)
    }

    fn confirm(&mut self, now: Time) -> Option<u64> {
        Ring::confirm(self, now)
    }

    fn withdraw(&mut self, payload: &Payload) -> bool {
        Ring::withdraw(self, payload)
    }

    fn acknowledge(&mut self, to: Member) {
        Ring::acknowledge(self, to);
    }

    fn is_parking(&self) -> bool {
        Ring::is_parking(self)
    }

    fn leave(&mut self, now: Time) {
        Ring::leave(self, now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        Ring::poll_output(self)
    }

    fn id(&self) -> RingId {
        Ring::id(self)
    }

    fn members(&self) -> &[Member] {
        Ring::members(self)
    }

    fn reached(&self, ring: RingId, member: Member) -> u64 {
        Ring::reached(self, ring, member)
    }

    fn stored(&self, ring: RingId, member: Member) -> u64 {
        Ring::stored(self, ring, member)
    }

    fn reached_before(&self, ring: RingId, member: Member) -> u64 {
        Ring::reached_before(self, ring, member)
    }

    fn stored_before(&self, ring: RingId, member: Member) -> u64 {
        Ring::stored_before(self, ring, member)
    }

    fn tell_stored(&mut self, now: Time, ring: RingId, upto: u64) {
        Ring::tell_stored(self, now, ring, upto);
    }

    fn ask_stored(&mut self, now: Time) {
        Ring::ask_stored(self, now);
    }

    fn state_name(&self) -> &'static str {
        Ring::state_name(self)
    }

    fn queued(&self) -> usize {
        Ring::queued(self)
    }

    fn buffers(&self) -> Option<Buffers> {
        Some(Ring::buffers(self))
    }

    fn rotations(&self) -> Option<Times> {
        Ring::rotations(self)
    }

    fn set_level(&mut self, now: Time, level: u8) {
        Ring::set_level(self, now, level);
    }

    fn form_anew(&mut self, now: Time) {
        Ring::form_anew(self, now);
    }

    fn set_nodes(&mut self, now: Time, roster: &Roster) {
        let heard = roster.heard();
        // Those that are remembered longest have no address any more.
        let gone = roster.retired.iter().rev().take(MAX_TOLD).map(|seat| seat.node);
        let gone: Vec<NodeId> = gone.collect();
        Ring::set_nodes(self, now, roster.stamp, (&heard, &gone), roster.encode());
    }

    fn version(&self) -> u8 {
        Ring::version(self)
    }

    fn unfit(&self) -> Vec<(Member, Speaks, Unfit)> {
        Ring::unfit(self).collect()
    }

    fn check_invariants(&self) {
        Ring::check_invariants(self);
    }
}
