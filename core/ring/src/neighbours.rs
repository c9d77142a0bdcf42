//! Nodes outside the ring: whom this one hears, who hears it, and with whom it would be in one.
//!
//! Rings merge only where every member of one hears every member of the other, both ways, and
//! nobody holds a member of the other off because it was lost again and again. So a network whose
//! shape is constant settles, whatever its shape. See docs/protocol/ring.md, "Merging".

use alloc::vec::Vec;

use wire::ring::Beacon;
use wire::versions::Unfit;
use wire::{Duration, Extension, Member, NodeId, NodeList, NodeSet, RingId, Speaks, Time};

use crate::Timing;
use crate::bug::{Bug, Planted};

/// The last statement of a node about itself.
#[derive(Clone, Debug)]
struct Statement {
    at: Time,
    ring: RingId,
    members: NodeSet,
    heard_me: bool,
    welcome: NodeSet,
}

#[derive(Clone, Debug, Default)]
struct Neighbour {
    /// The newest of its lives from which something has come.
    life: Option<Member>,
    heard_at: Time,
    stated: Option<Statement>,
    /// The life that was lost from a ring, how often, and when last.
    struck: Option<Member>,
    strikes: u32,
    struck_at: Time,
    /// Until when that life is held off.
    hold_until: Time,
    /// The versions that a life of it said it speaks, and why it cannot be in one ring with this
    /// node, if it cannot.
    spoke: Option<(Member, Speaks, Option<Unfit>)>,
}

#[derive(Debug)]
pub(crate) struct Neighbours {
    nodes: NodeList,
    mine: usize,
    all: Vec<Neighbour>,
    /// When this node showed itself last, and when it does so next.
    shown_at: Time,
    pub show_at: Time,
    pub planted: Planted,
}

/// A sign or a statement is believed for so many beacon intervals: two may be lost.
const FRESH: u32 = 3;

impl Neighbour {
    fn heard(&self, now: Time, timing: &Timing) -> bool {
        self.life.is_some() && now < self.heard_at + timing.beacon_interval * FRESH
    }

    fn statement(&self, now: Time, timing: &Timing) -> Option<&Statement> {
        let fresh = |said: &&Statement| now < said.at + timing.beacon_interval * FRESH;
        self.stated.as_ref().filter(fresh)
    }

    fn held_off(&self, now: Time) -> bool {
        self.struck == self.life && now < self.hold_until
    }

    fn is_welcome(&self, now: Time, timing: &Timing) -> bool {
        self.heard(now, timing)
            && !self.held_off(now)
            && self.statement(now, timing).is_some_and(|said| said.heard_me)
    }
}

impl Neighbours {
    pub fn new(nodes: &NodeList, me: NodeId) -> Self {
        Neighbours {
            nodes: nodes.clone(),
            mine: nodes.place(me).expect("a node is in its own list"),
            all: nodes.iter().map(|_| Neighbour::default()).collect(),
            shown_at: Time::ZERO,
            show_at: Time::FAR,
            planted: Planted::default(),
        }
    }

    /// A node has come to the list, or gone from it: nothing is known of it.
    pub fn changed(&mut self, nodes: &NodeList, place: usize) {
        self.nodes = nodes.clone();
        self.all.resize(self.all.len().max(place + 1), Neighbour::default());
        self.all[place] = Neighbour::default();
    }

    pub fn places(&self, nodes: impl Iterator<Item = NodeId>) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        for place in nodes.filter_map(|node| self.nodes.place(node)) {
            set.insert(place);
        }
        set
    }

    fn at(&mut self, sender: Member) -> Option<&mut Neighbour> {
        let place = self.nodes.place(sender.node)?;
        Some(&mut self.all[place])
    }

    /// Something came from a node outside. True when that is news.
    pub fn heard(&mut self, now: Time, timing: &Timing, sender: Member) -> bool {
        let Some(neighbour) = self.at(sender) else { return false };
        if neighbour.life.is_some_and(|life| life > sender) {
            return false;
        }
        let news = neighbour.life != Some(sender) || !neighbour.heard(now, timing);
        if neighbour.life != Some(sender) {
            neighbour.stated = None;
            neighbour.life = Some(sender);
        }
        neighbour.heard_at = now;
        news
    }

    /// It says whom it hears and welcomes. True when that is news.
    pub fn said(&mut self, now: Time, timing: &Timing, sender: Member, beacon: &Beacon) -> bool {
        let heard = self.heard(now, timing, sender);
        let me = self.nodes.node(self.mine);
        let bits = beacon.heard.iter().enumerate();
        let welcome = bits.filter(|(i, _)| beacon.welcome >> i & 1 == 1).map(|(_, node)| *node);
        let statement = Statement {
            at: now,
            ring: beacon.ring,
            members: self.places(beacon.members.iter().copied()),
            heard_me: beacon.heard.contains(&me) || self.planted.is(Bug::WelcomeOneWay),
            welcome: self.places(welcome),
        };
        let Some(neighbour) = self.at(sender).filter(|n| n.life == Some(sender)) else {
            return false;
        };
        let before = neighbour.statement(now, timing).map(|said| said.heard_me);
        let news = before != Some(statement.heard_me);
        neighbour.stated = Some(statement);
        heard || news
    }

    /// Whether this life sent this before its last statement. Within a life the numbers of rings
    /// only grow, and it has shown a ring with a larger one than this names. An old statement does
    /// not count: a confused node may name a number that was never given out, and must not be
    /// ignored for ever.
    pub fn is_late(&self, now: Time, timing: &Timing, sender: Member, sequence: u64) -> bool {
        let place = self.nodes.place(sender.node);
        place.is_some_and(|place| {
            let neighbour = &self.all[place];
            let shown = neighbour.statement(now, timing).map(|said| said.ring.sequence);
            neighbour.life == Some(sender) && shown.is_some_and(|shown| sequence < shown)
        })
    }

    /// A node says which versions it speaks, and this is what keeps it out. True when that keeps it
    /// out and is news.
    pub fn spoke(&mut self, sender: Member, speaks: Speaks, unfit: Option<Unfit>) -> bool {
        let Some(neighbour) = self.at(sender) else { return false };
        if neighbour.spoke.is_some_and(|(life, ..)| life > sender) {
            return false;
        }
        let said = Some((sender, speaks, unfit));
        let news = neighbour.spoke != said;
        neighbour.spoke = said;
        news && unfit.is_some()
    }

    /// The versions that this life speaks, as far as it has said.
    pub fn speaks(&self, member: Member) -> Option<Speaks> {
        let place = self.nodes.place(member.node)?;
        let (life, speaks, _) = self.all[place].spoke?;
        (life == member).then_some(speaks)
    }

    /// The nodes that cannot be in one ring with this one, and why.
    pub fn unfit(&self) -> impl Iterator<Item = (Member, Speaks, Unfit)> + '_ {
        let said = self.all.iter().filter_map(|neighbour| neighbour.spoke);
        said.filter_map(|(life, speaks, unfit)| Some((life, speaks, unfit?)))
    }

    /// The beacon of this node to those outside its ring of `members`.
    pub fn beacon(
        &self,
        now: Time,
        timing: &Timing,
        (speaks, extension): (Speaks, Extension),
        (ring, members): (RingId, Vec<NodeId>),
    ) -> Beacon {
        let inside = self.places(members.iter().copied());
        let (heard, welcome) = (Vec::new(), 0);
        let mut beacon = Beacon { ring, members, heard, welcome, speaks, extension };
        for (place, node) in self.nodes.iter() {
            let neighbour = &self.all[place];
            if place == self.mine || inside.contains(place) || !neighbour.heard(now, timing) {
                continue;
            }
            let welcome = neighbour.is_welcome(now, timing);
            beacon.welcome |= u64::from(welcome) << beacon.heard.len();
            beacon.heard.push(node);
        }
        beacon
    }

    /// Those who are to hear that: nodes that are heard, and the members of the rings that show
    /// themselves.
    pub fn audience(
        &self,
        now: Time,
        timing: &Timing,
        inside: NodeSet,
        heard: bool,
    ) -> Vec<NodeId> {
        let mut to = NodeSet::EMPTY;
        for (place, neighbour) in self.all.iter().enumerate() {
            if heard && neighbour.heard(now, timing) {
                to.insert(place);
            }
            if let Some(said) = neighbour.statement(now, timing) {
                to.insert(place);
                said.members.iter().for_each(|member| to.insert(member));
            }
        }
        let outside = |place: &usize| *place != self.mine && !inside.contains(*place);
        to.iter().filter(outside).map(|place| self.nodes.node(place)).collect()
    }

    pub fn shown(&mut self, now: Time, next: Time) {
        (self.shown_at, self.show_at) = (now, next);
    }

    /// There is news for those outside: they are told soon, but not at every datagram.
    pub fn show_soon(&mut self, now: Time, timing: &Timing) {
        let soon = now.max(self.shown_at + timing.join_interval / 4);
        self.show_at = self.show_at.min(soon);
    }

    /// Whether this life would be taken into a ring with this node.
    pub fn welcomes(&self, now: Time, timing: &Timing, member: Member) -> bool {
        let place = self.nodes.place(member.node);
        place.is_some_and(|place| {
            let neighbour = &self.all[place];
            neighbour.life == Some(member) && neighbour.is_welcome(now, timing)
        })
    }

    pub fn holds_off(&self, now: Time, member: Member) -> bool {
        let place = self.nodes.place(member.node);
        place.is_some_and(|place| {
            let neighbour = &self.all[place];
            neighbour.struck == Some(member) && now < neighbour.hold_until
        })
    }

    /// The members of the ring of `sender`, if they and `ours` may be in one: this node welcomes
    /// each of them, and each of them all of `ours`.
    pub fn mergeable(
        &self,
        now: Time,
        timing: &Timing,
        ours: NodeSet,
        sender: Member,
    ) -> Option<Vec<Member>> {
        let place = self.nodes.place(sender.node)?;
        let theirs = self.all[place].statement(now, timing)?;
        let willing = |place: usize| {
            let neighbour = &self.all[place];
            let said = neighbour.statement(now, timing)?;
            let all = said.ring == theirs.ring
                && ours.iter().all(|place| said.welcome.contains(place))
                && !ours.contains(place)
                && neighbour.is_welcome(now, timing);
            neighbour.life.filter(|_| all)
        };
        if !theirs.members.contains(place) {
            return None;
        }
        theirs.members.iter().map(willing).collect()
    }

    /// This life was lost from a ring, or was not to be had for one. The first time it may come
    /// back at once, as after a partition; then it is held off for twice as long each time. Returns
    /// for how long. One that did not keep up does not do so at once: it is held off from the first
    /// time on, and for longer.
    pub fn strike(&mut self, now: Time, timing: &Timing, member: Member, slow: bool) -> Duration {
        let forgives = self.planted.is(Bug::NeverHoldOff);
        let Some(neighbour) = self.at(member) else { return Duration::ZERO };
        let forgotten = now >= neighbour.struck_at + timing.hold_off_max * 4;
        if neighbour.struck != Some(member) || forgotten {
            neighbour.strikes = 0;
        }
        neighbour.struck = Some(member);
        neighbour.struck_at = now;
        neighbour.strikes += 1;
        let doubled = 1 << (neighbour.strikes - 1).min(16);
        let span = match neighbour.strikes {
            _ if forgives => Duration::ZERO,
            _ if slow => timing.longest_stall() * 2 * doubled,
            1 => Duration::ZERO,
            _ => timing.beacon_interval * doubled,
        };
        let span = span.min(timing.hold_off_max);
        neighbour.hold_until = now + span;
        span
    }
}
