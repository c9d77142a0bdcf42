//! Links between nodes: ordered, as fast as the way between two cells, and held up where it is cut.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cells::{LinkId, Message};
use wire::{Duration, Time};

use super::place::At;
use crate::draw::Draw;

mod carrying;

/// A dial of a host that does not answer ends after this time.
const NO_ANSWER: Duration = Duration::from_secs(1);

/// One end of a wire.
struct End {
    at: At,
    life: u64,
    link: LinkId,
    is_open: bool,
    /// Messages that are to arrive here, and when; `None`: the other end was closed.
    arriving: VecDeque<(Time, Option<Message>)>,
}

/// A link as both sides have it.
struct Wire {
    ends: [End; 2],
    latency: Duration,
}

/// All links.
pub(super) struct Net {
    wires: Vec<Wire>,
    free: Vec<usize>,
    by_link: BTreeMap<(At, LinkId), (usize, usize)>,
    /// Pairs of cells between which nothing travels.
    cuts: BTreeSet<(usize, usize)>,
    latency: (Duration, Duration),
    draw: Draw,
    accepted: u64,
    pub(super) messages: u64,
}

impl Net {
    pub(super) fn new(latency: (Duration, Duration), draw: Draw) -> Net {
        Net {
            wires: Vec::new(),
            free: Vec::new(),
            by_link: BTreeMap::new(),
            cuts: BTreeSet::new(),
            latency,
            draw,
            accepted: LinkId::ACCEPTED.0,
            messages: 0,
        }
    }

    fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cuts.contains(&(one.min(other), one.max(other)))
    }

    pub(super) fn cut(&mut self, one: usize, other: usize) {
        self.cuts.insert((one.min(other), one.max(other)));
    }

    pub(super) fn heal(&mut self, one: usize, other: usize) {
        self.cuts.remove(&(one.min(other), one.max(other)));
    }

    /// A link of this node to a node of that cell.
    pub(super) fn link_to(&self, at: At, cell: usize) -> Option<LinkId> {
        let range = (at, LinkId(0))..=(at, LinkId(u64::MAX));
        let mut links = self.by_link.range(range);
        let to = |(wire, end): &(usize, usize)| self.wires[*wire].ends[1 - *end].at.cell == cell;
        links.find(|(_, wire)| to(wire)).map(|((_, link), _)| *link)
    }

    /// One way between two cells; within one it is short.
    fn latency(&mut self, one: usize, other: usize) -> Duration {
        if one == other {
            return Duration::from_micros(50);
        }
        let (least, most) = self.latency;
        let [least, most] = [least, most].map(|it| it.as_micros() as u64);
        Duration::from_micros(self.draw.between(least.max(20), most.max(20)))
    }

    fn join(&mut self, ends: [(At, u64, LinkId); 2], latency: Duration) -> usize {
        let ends = ends.map(|(at, life, link)| End {
            at,
            life,
            link,
            is_open: true,
            arriving: VecDeque::new(),
        });
        let keys = [0, 1].map(|end| (ends[end].at, ends[end].link));
        let wire = Wire { ends, latency };
        let place = match self.free.pop() {
            Some(place) => {
                self.wires[place] = wire;
                place
            }
            None => {
                self.wires.push(wire);
                self.wires.len() - 1
            }
        };
        for (end, key) in keys.into_iter().enumerate() {
            self.by_link.insert(key, (place, end));
        }
        place
    }
}
