//! The seam below the stack: what it needs of whoever orders messages and knows who is there.
//!
//! The [`Ring`] is one such engine. Another (the closed process groups of corosync, say) can be put
//! below the same rooms by keeping the promises of [`Ordering`]; [`InProcess`] is the smallest that
//! does. Rooms above see nothing of datagrams, tokens or time-outs: only an order with its
//! configurations, and who holds what.

mod in_process;

use bytes::Bytes;
use wire::histogram::Times;
use wire::{Malformed, Member, NodeId, Payload, RingId, Time};

pub use in_process::{InProcess, Sequencer};
pub use ring::{
    Buffers, Configuration, ConfigurationKind, Delivery, Level, Output, Refused, Ring, Route,
};

/// One node's end of a total order with extended virtual synchrony.
///
/// A machine like all others here: time is an argument, nothing blocks, and what there is to do or
/// to know comes out of one ordered queue, which is emptied after each call. Nobody but the
/// [`Stack`] calls these methods, which is generic: there is no dynamic dispatch on a message's
/// way.
///
/// # What an engine promises
///
/// *Members* are lives of nodes: a node that comes back has a larger incarnation. "All" below are
/// the members of a configuration that do not fail.
///
/// 1. **Configurations.** The first output that is neither a send nor an event is a regular
///    [`Configuration`]. Each has another [`RingId`], larger than all that its members were in
///    before, and lists its members, in order of id, this one included. A [`Delivery`] names the
///    regular configuration that ordered it. Between two regular configurations there may be one
///    transitional: the members that go on together from the old one, to whom the old one's last
///    messages are delivered.
/// 2. **One order.** Within a configuration, `sequence` does not decrease; messages with one number
///    are delivered one right after the other. Whoever delivers two messages delivers them in the
///    same order and with the same (ring, sequence) as everybody else.
/// 3. **No gap unsaid.** A member that delivers a message has delivered all before it in the same
///    configuration. Only after a loss of messages together with all their holders may some be
///    missing; what follows then has `contiguous: false`, and comes in the transitional
///    configuration.
/// 4. **Own messages.** A message that [`multicast`](Ordering::multicast) took, and that was not
///    [withdrawn](Ordering::withdraw), is delivered here too, once, in this configuration or a
///    later one, unless this node fails or leaves. Those of one sender keep their order.
/// 5. **Virtual synchrony.** Members that go together from one regular configuration to the next
///    have delivered the same messages in the former.
/// 6. **Held.** [`Output::Held`] tells for the present regular configuration up to which number a
///    majority, or all, of its members have everything, and that [`reached`](Ordering::reached)
///    says more of a single one. It never says too much, never shrinks within a configuration, and
///    while a configuration lasts it comes to cover every message delivered in it, without further
///    messages. What a member has, it delivers, unless it fails: so what a majority holds is
///    delivered in any later configuration that has one of the holders that go on.
///    [`Output::Stored`] tells in the same way that [`stored`](Ordering::stored) says more; what it says is what the member
///    told. That may be lost, and comes again when it is [asked for](Ordering::ask_stored).
/// 7. **Levels.** A message of level safe is delivered only when `all` would cover it, or in the
///    transitional configuration. The order is one, whatever the levels: what follows a safe
///    message waits for it. A message of level held is delivered like an agreed one, and
///    [`Output::Held`] follows as soon as can be; of an agreed one it may come later, so that
///    nobody is asked for what nobody waits for.
/// 8. **Bounds.** What waits to be ordered is bounded; at the bound `multicast` refuses, and
///    nothing has happened. Messages taken while no configuration is installed wait for the next
///    one.
/// 9. **Confirmed.** [`Output::Confirmed`] of a round says that at some moment after
///    [`confirm`](Ordering::confirm) gave that round, or a larger one, a majority of the members
///    had been told of no later configuration; and that all that was held by a majority, or all, by
///    the time of that call is in the order up to the number that it names. It comes unless the
///    configuration ends.
/// 10. **Alone.** Whether a configuration has a quorum is not the engine's business: every
///     component of
///     a partition gets configurations.
///
/// [`Stack`]: crate::Stack
pub trait Ordering {
    /// A datagram came from another node's engine. One without datagrams of its own is never given
    /// any.
    ///
    /// # Errors
    /// It was none of this cluster's engine; it is counted, and has had no effect.
    fn handle_datagram(&mut self, now: Time, bytes: &Bytes) -> Result<(), Malformed>;

    /// The host of `node` says that no process of the cluster listens there.
    fn handle_unreachable(&mut self, now: Time, node: NodeId);

    /// The time that [`next_timeout`](Ordering::next_timeout) named has come.
    fn handle_timeout(&mut self, now: Time);

    /// When something happens here by itself.
    fn next_timeout(&self) -> Option<Time>;

    /// Queues a message for the total order, to be delivered as `level` says.
    ///
    /// # Errors
    /// [`Refused`]: too long, too much waits already, or this node has left.
    fn multicast(&mut self, now: Time, payload: Payload, level: Level) -> Result<(), Refused>;

    /// Makes sure that this node is in the present configuration together with a majority. The
    /// round that will tell it ([`Output::Confirmed`]); `None` if nothing is ordered now and the
    /// next configuration is to be waited for.
    fn confirm(&mut self, now: Time) -> Option<u64>;

    /// Takes back a message that was handed in, if nothing of it has been sent. True if it will not
    /// be delivered because of that. An engine need not be able to.
    fn withdraw(&mut self, _payload: &Payload) -> bool {
        false
    }

    /// Says to another member how far this one is: it waits to know who holds a message that it has
    /// not ordered itself. [`Output::Held`] comes there without it, too, but later.
    fn acknowledge(&mut self, _to: Member) {}

    /// Whether the right to order rests with who used it last while nobody wants it, instead of
    /// coming to all in turn.
    fn is_parking(&self) -> bool {
        true
    }

    /// Leaves on purpose: the others need not find out. Nothing is delivered any more.
    fn leave(&mut self, now: Time);

    /// The next thing to do or to know, in order.
    fn poll_output(&mut self) -> Option<Output>;

    /// The regular configuration that was delivered last.
    fn id(&self) -> RingId;

    /// Its members; before the first, this node alone.
    fn members(&self) -> &[Member];

    /// Up to which number this member of `ring` is known to have everything: 0 of any configuration
    /// but the last, and of whoever is not in it. As true as [`Output::Held`], which comes whenever
    /// this grows for another member.
    fn reached(&self, ring: RingId, member: Member) -> u64;

    /// Up to which number this member of `ring` is known to have on its disk all that it has to
    /// keep: 0 of any configuration but the last, and of whoever never told.
    fn stored(&self, ring: RingId, member: Member) -> u64;

    /// This node has on its disk all that it has to keep of what was delivered to it up to this
    /// number of `ring`: the other members are told.
    fn tell_stored(&mut self, now: Time, ring: RingId, upto: u64);

    /// This node waits for what others have on their disks: they are to tell again, for what they
    /// told may be lost.
    fn ask_stored(&mut self, now: Time);

    /// The engine's state for status output: `operational` while it orders messages.
    fn state_name(&self) -> &'static str;

    /// Messages taken that have no place in the order yet. Those of this node leave in their order.
    fn queued(&self) -> usize;

    /// How full its buffers are, and were; `None` of an engine that keeps no account of that.
    fn buffers(&self) -> Option<Buffers> {
        None
    }

    /// How long the right to order was away from this node each time, of an engine where it comes
    /// to all in turn.
    fn rotations(&self) -> Option<Times> {
        None
    }

    /// Asserts what must hold between any two calls.
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

    fn check_invariants(&self) {
        Ring::check_invariants(self);
    }
}
