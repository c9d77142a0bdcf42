//! The links of a node: whose they are, whether they live, and how long a message takes.

use alloc::collections::BTreeMap;

use wire::path::Path;
use wire::{Duration, NodeId, Time};

use crate::bug::{Bug, Planted};
use crate::message::Message;
use crate::output::{LinkId, Outputs};

/// Between two pings of a link by which calls go.
pub(super) const BUSY: Duration = Duration::from_millis(20);

/// Between two pings of another one.
pub(super) const IDLE: Duration = Duration::from_millis(700);

/// So long after a ping was due on an idle link it is silent.
const LATE: Duration = Duration::from_millis(100);

/// A link by which no call went for so long is idle.
const BUSY_FOR: Duration = Duration::from_secs(1);

/// A new link's first words come within this time, and a round trip.
const HELLO_WITHIN: Duration = Duration::from_millis(100);

/// A round trip of which nothing is known.
const UNKNOWN: Duration = Duration::from_millis(50);

/// The first words of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) path: Path,
    pub(crate) node: NodeId,
    /// The version that it speaks.
    pub(crate) version: u8,
}

/// A round trip as RFC 6298 estimates it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip(Option<(Duration, Duration)>);

impl RoundTrip {
    fn add(&mut self, sample: Duration) {
        self.0 = Some(match self.0 {
            None => (sample, sample / 2),
            Some((smooth, spread)) => {
                let off = smooth.abs_diff(sample);
                ((smooth * 7 + sample) / 8, (spread * 3 + off) / 4)
            }
        });
    }

    /// The usual one; zero before the first.
    pub(crate) fn usual(self) -> Duration {
        self.0.map_or(Duration::ZERO, |(smooth, _)| smooth)
    }

    /// Hardly any takes longer.
    fn bound(self) -> Duration {
        self.0.map_or(UNKNOWN, |(smooth, spread)| smooth + spread * 4)
    }
}

/// A link that is up.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The certificate says so, if there is one.
    pub(super) proven: Option<(Path, NodeId)>,
    /// It has said so.
    pub(crate) peer: Option<Peer>,
    pub(crate) round_trip: RoundTrip,
    heard: Time,
    /// The other side pings so often, or this one.
    every: Duration,
    /// When this side pings next, and has pinged last. One that did not dial does so at first, and
    /// when a first call goes.
    ping_at: Option<Time>,
    pinged: Option<Time>,
    called: Option<Time>,
}

impl Link {
    fn silent_at(&self) -> Time {
        let patience = match (&self.peer, self.every) {
            (None, _) => HELLO_WITHIN,
            (Some(_), every) if every <= BUSY => BUSY * 6,
            (Some(_), every) => every + LATE,
        };
        self.heard + patience + self.round_trip.bound()
    }

    fn is_busy(&self, now: Time) -> bool {
        self.called.is_some_and(|at| now < at + BUSY_FOR)
    }
}

/// All links of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    up: BTreeMap<LinkId, Link>,
    /// Nothing is due before: most of what comes by a link puts off what is due.
    soonest: Option<Time>,
    planted: Planted,
}

impl Links {
    pub(crate) fn with_bug(planted: Planted) -> Links {
        Links { planted, ..Links::default() }
    }

    pub(crate) fn add(&mut self, now: Time, link: LinkId, proven: Option<(Path, NodeId)>) {
        self.up.insert(
            link,
            Link {
                proven,
                peer: None,
                round_trip: RoundTrip::default(),
                heard: now,
                every: IDLE,
                ping_at: Some(now),
                pinged: None,
                called: None,
            },
        );
        self.look_at(link);
    }

    pub(crate) fn remove(&mut self, link: LinkId) -> Option<Link> {
        self.up.remove(&link)
    }

    pub(crate) fn get(&self, link: LinkId) -> Option<&Link> {
        self.up.get(&link)
    }

    pub(crate) fn get_mut(&mut self, link: LinkId) -> Option<&mut Link> {
        self.up.get_mut(&link)
    }

    pub(crate) fn len(&self) -> usize {
        self.up.len()
    }

    /// Those whose other side has said who it is.
    pub(crate) fn known(&self) -> impl Iterator<Item = (LinkId, &Peer, &Link)> {
        self.up.iter().filter_map(|(id, link)| Some((*id, link.peer.as_ref()?, link)))
    }

    /// The links to a cell, the quickest first.
    pub(crate) fn to(&self, path: &Path) -> impl Iterator<Item = LinkId> {
        let mut all: alloc::vec::Vec<(Duration, LinkId)> = self
            .known()
            .filter(|(_, peer, _)| peer.path == *path)
            .map(|(id, _, link)| (link.round_trip.usual(), id))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, id)| id)
    }

    pub(crate) fn path_of(&self, link: LinkId) -> Option<&Path> {
        Some(&self.up.get(&link)?.peer.as_ref()?.path)
    }

    /// The version of the other side.
    pub(crate) fn version(&self, link: LinkId) -> u8 {
        let peer = self.up.get(&link).and_then(|link| link.peer.as_ref());
        peer.map_or(0, |peer| peer.version)
    }

    /// A round trip by this link hardly takes longer; `None`: nothing is known of it.
    pub(crate) fn bound(&self, link: LinkId) -> Option<Duration> {
        let round_trip = self.up.get(&link)?.round_trip;
        round_trip.0.map(|_| round_trip.bound())
    }

    pub(crate) fn heard(&mut self, now: Time, link: LinkId) {
        if let Some(link) = self.up.get_mut(&link) {
            link.heard = now;
        }
    }

    /// The other side pings so often.
    pub(crate) fn pinged(&mut self, link: LinkId, every_ms: u16) {
        if let Some(link) = self.up.get_mut(&link) {
            link.every = Duration::from_millis(every_ms.into()).clamp(BUSY, IDLE * 5);
        }
        self.look_at(link);
    }

    pub(crate) fn ponged(&mut self, now: Time, link: LinkId, at: u64) {
        if let Some(link) = self.up.get_mut(&link)
            && at <= now.0
        {
            link.round_trip.add(now.since(Time(at)));
        }
        self.look_at(link);
    }

    /// A call goes by it: from now on the side that dialled pings it often. The other one pings once,
    /// so that a silent link is found as soon, whichever way the first call goes.
    pub(crate) fn called(&mut self, now: Time, id: LinkId) {
        if let Some(link) = self.up.get_mut(&id) {
            if !link.is_busy(now) {
                link.ping_at = Some(now);
                if !id.is_dialled() && link.round_trip.0.is_some() {
                    (link.every, link.heard) = (BUSY, now);
                }
            }
            link.called = Some(now);
        }
        self.look_at(id);
    }

    /// The links that nothing came by for too long.
    pub(crate) fn silent(&self, now: Time) -> alloc::vec::Vec<LinkId> {
        if self.soonest.is_none_or(|soonest| soonest > now) {
            return alloc::vec::Vec::new();
        }
        let is_silent = |link: &Link| self.silent_at(link).is_some_and(|at| at <= now);
        self.up.iter().filter(|(_, link)| is_silent(link)).map(|(id, _)| *id).collect()
    }

    fn silent_at(&self, link: &Link) -> Option<Time> {
        (!self.planted.is(Bug::KeepSilent)).then(|| link.silent_at())
    }

    /// Pings what is due.
    pub(crate) fn ping(&mut self, now: Time, out: &mut Outputs) {
        if self.soonest.is_none_or(|soonest| soonest > now) {
            return;
        }
        for (id, link) in &mut self.up {
            if link.ping_at.is_none_or(|at| at > now) {
                continue;
            }
            link.pinged = Some(now);
            let mut every = IDLE;
            if id.is_dialled() {
                every = if link.is_busy(now) { BUSY } else { IDLE };
                if every < link.every {
                    // Nobody could hear more often until now.
                    link.heard = now;
                }
                (link.every, link.ping_at) = (every, Some(now + every));
            } else {
                link.ping_at = None;
            }
            let every_ms = u16::try_from(every.as_millis()).unwrap_or(u16::MAX);
            out.control(*id, Message::Ping { at: now.0, every_ms });
        }
        self.soonest = self.up.values().filter_map(|link| self.due(link)).min();
    }

    /// A ping goes by it at this moment: more costs no datagram.
    pub(crate) fn is_pinged(&self, now: Time, link: LinkId) -> bool {
        self.up.get(&link).is_some_and(|link| link.pinged == Some(now))
    }

    /// When there may be something to do: now and then there is nothing yet.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.soonest
    }

    fn due(&self, link: &Link) -> Option<Time> {
        link.ping_at.into_iter().chain(self.silent_at(link)).min()
    }

    /// Something of a link may be due sooner than before.
    fn look_at(&mut self, link: LinkId) {
        let due = self.up.get(&link).and_then(|link| self.due(link));
        self.soonest = self.soonest.into_iter().chain(due).min();
    }
}
