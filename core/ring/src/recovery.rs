//! Recovery: members from the same old ring make sure that they have the same messages of it,
//! then deliver them as extended virtual synchrony asks, and go on to the new ring.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::ring::{Data, Origin, Token};
use wire::{Member, NodeId, RingId, Time};

use crate::bug::Bug;
use crate::commit::Complete;
use crate::gather::Sets;
use crate::order::{Order, Verdict, deliver_one};
use crate::out::Out;
use crate::packing::Assembly;
use crate::window::Kept;
use crate::{Config, Configuration, ConfigurationKind, Output, Route};

/// The old ring of each member, by the commit.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Members of the new ring that come from the same old ring as this node.
    pub transitional: Vec<Member>,
    /// The same, as bits of the old ring.
    transitional_bits: u64,
    /// Those whose messages some of them have promised to deliver, as bits of the old ring.
    obliged: u64,
    /// All of them have everything up to here.
    low: u64,
    /// All members of the old ring have everything up to here, knows somebody among them.
    pub stable: u64,
    /// Nobody lacks anything.
    pub settled: bool,
}

impl Plan {
    pub fn new(commit: &Complete, old: &Order) -> Self {
        let mut plan = Plan {
            transitional: Vec::new(),
            transitional_bits: 0,
            obliged: old.obliged,
            low: u64::MAX,
            stable: 0,
            settled: commit.is_settled(),
        };
        for entry in commit.entries.iter().filter(|entry| entry.old_ring == old.id) {
            // An entry from a node that was not in that ring is a lie; it brings nothing.
            let Some(index) = old.index_of(entry.member) else { continue };
            plan.transitional.push(entry.member);
            plan.transitional_bits |= 1 << index;
            plan.obliged |= entry.obliged & old.everybody();
            plan.low = plan.low.min(entry.aru);
            plan.stable = plan.stable.max(entry.stable);
        }
        plan
    }

    /// Messages of these members are delivered even after a gap. All messages that they had seen
    /// when they sent them are in the exchange too, so no cause can be missing.
    fn delivers(&self, config: &Config, old: &Order, sender: Member) -> bool {
        let promised = if config.planted.is(Bug::ForgetObligations) { 0 } else { self.obliged };
        let bits = self.transitional_bits | promised;
        config.planted.is(Bug::DeliverWithoutCause)
            || old.index_of(sender).is_some_and(|index| bits >> index & 1 == 1)
    }
}

#[derive(Debug)]
pub(crate) struct Recovery {
    pub sets: Sets,
    pub plan: Plan,
    /// The ring that is being formed.
    pub new: Order,
    /// Old messages that somebody has sent again in this recovery.
    seen: BTreeSet<u64>,
    /// Everything that anybody has of the old ring is here.
    received: bool,
    /// This node is the first to know that all have received everything.
    pub closed: bool,
}

/// The parts that the handlers of a ring in recovery may touch.
pub(crate) struct Recovering<'a> {
    pub now: Time,
    pub config: &'a Config,
    pub old: &'a mut Order,
    pub recovery: &'a mut Recovery,
    pub assembly: &'a mut Assembly,
    pub out: &'a mut Out,
}

impl Recovery {
    pub fn new(sets: Sets, plan: Plan, new: Order) -> Self {
        Recovery { sets, plan, new, seen: BTreeSet::new(), received: false, closed: false }
    }

    pub fn recovered(&self) -> u64 {
        self.seen.len() as u64
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.new.passed.as_ref().map(|passed| passed.retry_at)
    }
}

/// The first token of a ring. When nothing is to be exchanged it says so at once.
pub(crate) fn first_token(order: &Order, settled: bool) -> Token {
    let bits = if settled { order.everybody() } else { 0 };
    Token {
        ring: order.id,
        hop: 1,
        sequence: 0,
        arus: order.held.known().to_vec(),
        done: bits,
        received: bits,
        wants: 0,
        home: order.mine as u8,
        missing: Vec::new(),
        following: 0,
    }
}

impl Recovering<'_> {
    /// A datagram of the new ring. True when it shows that others have installed it, which they
    /// could only do because this node has everything: then it has to install the ring before it
    /// takes the datagram, or it would answer for a message that it may drop with the ring.
    pub fn data(&mut self, sender: Member, data: Data) -> bool {
        let (sequence, ack_wanted, origin) = (data.sequence, data.ack_wanted, data.origin);
        let Some(origin) = origin else { return self.recovery.received };
        let body = data.body.clone();
        let places = (&mut *self.assembly, &mut *self.out);
        if self.recovery.new.receive(self.now, self.config, places, sender, data) {
            self.restore(origin, body);
        }
        if ack_wanted && self.recovery.new.window.admits(sequence) {
            let ack = self.recovery.new.ack(self.config);
            self.out.send(sender.node, ack, Route::Best);
        }
        false
    }

    /// Keeps a message of the old ring that another member has sent again.
    fn restore(&mut self, origin: Origin, body: Bytes) {
        let old = &mut *self.old;
        if origin.ring != old.id
            || old.index_of(origin.sender).is_none()
            || !old.window.admits(origin.sequence)
        {
            return;
        }
        self.recovery.seen.insert(origin.sequence);
        let data = Data {
            ring: old.id,
            ack_wanted: false,
            complete: false,
            hop: 0,
            sequence: origin.sequence,
            stable: 0,
            origin: None,
            body,
        };
        old.window.insert(Kept { sender: origin.sender, data });
        old.held.set(old.mine, old.window.aru());
    }

    /// The token of the new ring. True when the ring is to be installed.
    pub fn token(&mut self, sender: NodeId, token: Token) -> bool {
        let new = &mut self.recovery.new;
        match new.judge(&token, self.config) {
            Verdict::Impossible => false,
            Verdict::Copy => {
                let ack = new.ack(self.config);
                self.out.send(sender, ack, Route::Every);
                false
            }
            Verdict::Take => {
                new.take(self.now, self.config, (&mut *self.assembly, &mut *self.out), token);
                self.go_on()
            }
        }
    }

    /// The holder's turn. True when the ring is to be installed.
    pub fn go_on(&mut self) -> bool {
        let finished = self.send_again();
        let recovery = &mut *self.recovery;
        let new = &mut recovery.new;
        let (bit, everybody) = (new.my_bit(), new.everybody());
        let complete = new.held.of(new.mine);
        let token = new.token.as_mut().expect("only the holder goes on");
        if finished {
            token.done |= bit;
        }
        if token.done & everybody == everybody && complete == token.sequence {
            recovery.closed = token.received & everybody != everybody;
            token.received |= bit;
            if !recovery.received {
                recovery.received = true;
                // From here on any member may install the ring and deliver what we know to have:
                // should we fail to install it, we still have to deliver the same.
                self.old.obliged |= recovery.plan.transitional_bits;
            }
        }
        if recovery.received && token.received & everybody == everybody {
            return true;
        }
        let next = new.next_of(everybody & !bit).expect("a lone node has nothing to recover");
        // Nothing of a ring in recovery is delivered: all of it is the old ring's.
        new.advance(self.config, self.assembly, self.out);
        new.pass(self.now, self.config, self.out, next, 0);
        false
    }

    /// Sends on the new ring what others may lack of the old one. True when nothing is left.
    fn send_again(&mut self) -> bool {
        let Recovery { new, plan, seen, .. } = &mut *self.recovery;
        let window = &self.old.window;
        let high = window.high();
        let low = if plan.transitional.len() > 1 { plan.low.max(window.base()) } else { high };
        let sequence = new.token.as_ref().expect("only the holder sends").sequence;
        let room = (self.config.window as u64).saturating_sub(sequence - new.all());
        let mut budget = room.min(self.config.turn as u64);
        for old in low + 1..=high {
            let Some(kept) = window.get(old) else { continue };
            if seen.contains(&old) || kept.data.origin.is_some() {
                continue;
            }
            if budget == 0 {
                return false;
            }
            budget -= 1;
            seen.insert(old);
            let origin = Origin { ring: self.old.id, sender: kept.sender, sequence: old };
            let draft = self.out.draft(&kept.data.body);
            new.transmit(self.config, self.out, draft, Some(origin), false);
        }
        true
    }

    pub fn ack(&mut self, from: usize, ack: wire::ring::Ack) {
        self.recovery.new.acknowledged(self.now, self.config, self.out, from, ack);
    }

    pub fn timeout(&mut self) {
        self.recovery.new.pass_again(self.now, self.config, self.out);
    }
}

/// Delivers what is left of the old ring and announces the new one, in the order that extended
/// virtual synchrony asks for. A node that has been in no ring yet has no `old` one.
pub(crate) fn finish(
    config: &Config,
    plan: &Plan,
    old: Option<&mut Order>,
    new: &Order,
    assembly: &mut Assembly,
    out: &mut Out,
) {
    if let Some(old) = old {
        // Use only what the commit knows to be stable: all who go on together have read it. This
        // node may know more by now, because its own gaps were filled in the recovery.
        let aru = old.window.aru();
        let stable = match () {
            () if config.planted.is(Bug::SafeUnknown) => aru,
            () if config.planted.is(Bug::ForgetStability) => old.all(),
            () => plan.stable,
        };
        old.deliver_to(aru, stable, config, assembly, out);
        let members = plan.transitional.clone();
        configuration(out, ConfigurationKind::Transitional, old.id, members);
        deliver_rest(config, old, plan, assembly, out);
    }
    assembly.clear();
    configuration(out, ConfigurationKind::Regular, new.id, new.members.clone());
}

/// The messages after a gap, and those from the first safe one on that the old ring's members are
/// not known to have: the transitional configuration's all have it. The gap is a message that
/// nobody here has, so its sender is neither here nor among those promised for: no message that is
/// delivered now can miss a part.
fn deliver_rest(
    config: &Config,
    old: &mut Order,
    plan: &Plan,
    assembly: &mut Assembly,
    out: &mut Out,
) {
    let mut gap = false;
    while old.delivered < old.window.high() {
        old.delivered += 1;
        match old.window.get(old.delivered) {
            None => gap = true,
            Some(kept) if !gap || plan.delivers(config, old, kept.sender) => {
                deliver_one(old.id, kept, !gap, assembly, out);
            }
            Some(_) => {}
        }
    }
}

fn configuration(out: &mut Out, kind: ConfigurationKind, ring: RingId, members: Vec<Member>) {
    out.push(Output::Configuration(Configuration { kind, ring, members }));
}

/// The order of a ring whose commit is complete.
pub(crate) fn new_order(commit: &Complete, me: Member, now: Time) -> Order {
    Order::new(commit.ring, commit.members(), me, now)
}
