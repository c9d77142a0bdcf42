//! Links between nodes of cells: ordered, as fast as the way between two cells, and held up where it
//! is cut, one way or both.

use std::collections::{BTreeSet, VecDeque};

use cells::{LinkId, Message};
use wire::{Duration, Time};

use crate::celled::At;
use crate::draw::Draw;

/// One way within a cell.
const WITHIN: Duration = Duration::from_micros(50);

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
    since: Time,
}

/// Something is to be taken at this end of a wire, at this time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) at: Time,
    pub(crate) wire: usize,
    pub(crate) end: usize,
}

/// The next thing of a link, as it arrives at one end.
pub(crate) struct Taken {
    pub(crate) at: At,
    pub(crate) life: u64,
    pub(crate) link: LinkId,
    /// `None`: the other end was closed, and so is this one.
    pub(crate) message: Option<Message>,
}

/// A node's link, with its wire and the end that it is.
type Ending = ((At, LinkId), (usize, usize));

/// All links.
pub(crate) struct Wires {
    wires: Vec<Wire>,
    free: Vec<usize>,
    /// Each cell's: its nodes' links in their order.
    of_cells: Vec<Vec<Ending>>,
    /// From which cells to which nothing travels.
    cuts: BTreeSet<(usize, usize)>,
    latency: (Duration, Duration),
    draw: Draw,
    accepted: u64,
    pub(crate) messages: u64,
}

impl Wires {
    pub(crate) fn new(latency: (Duration, Duration), draw: Draw) -> Wires {
        Wires {
            wires: Vec::new(),
            free: Vec::new(),
            of_cells: Vec::new(),
            cuts: BTreeSet::new(),
            latency,
            draw,
            accepted: LinkId::ACCEPTED.0,
            messages: 0,
        }
    }

    /// Nothing gets from one cell to the other: a link cannot be made then.
    pub(crate) fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cuts.contains(&(one, other)) || self.cuts.contains(&(other, one))
    }

    /// Nothing travels this way any more.
    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.cuts.insert((from, to));
    }

    /// It does again. Tells what has waited.
    pub(crate) fn mend(&mut self, from: usize, to: usize) -> Vec<Due> {
        self.cuts.remove(&(from, to));
        self.waiting(|source, target| (source.cell, target.cell) == (from, to))
    }

    /// Nodes of a cell with links to another one, from which nothing has come since then: each has
    /// such a link for longer, and has not closed it.
    pub(crate) fn deaf(&self, from: usize, to: usize, since: Time) -> Vec<At> {
        if !self.cuts.contains(&(from, to)) {
            return Vec::new();
        }
        let older = self.wires.iter().filter(|wire| wire.since < since);
        let ends = older.flat_map(|wire| [0, 1].map(|end| (&wire.ends[end], &wire.ends[1 - end])));
        let deaf =
            ends.filter(|(end, other)| end.is_open && (other.at.cell, end.at.cell) == (from, to));
        deaf.map(|(end, _)| end.at).collect()
    }

    /// A link of this node to a node of that cell.
    pub(crate) fn link_to(&self, at: At, cell: usize) -> Option<LinkId> {
        let mut links = self.of_node(at);
        let to = |(wire, end): &(usize, usize)| self.wires[*wire].ends[1 - *end].at.cell == cell;
        links.find(|(_, wire)| to(wire)).map(|((_, link), _)| *link)
    }

    /// The other end of a link.
    pub(crate) fn other_end(&self, at: At, link: LinkId) -> Option<At> {
        let (wire, end) = self.find((at, link))?;
        Some(self.wires[wire].ends[1 - end].at)
    }

    /// One way between two cells.
    pub(crate) fn latency(&mut self, one: usize, other: usize) -> Duration {
        if one == other {
            return WITHIN;
        }
        let (least, most) = self.latency;
        let [least, most] = [least, most].map(|it| it.as_micros() as u64);
        Duration::from_micros(self.draw.between(least.max(20), most.max(20)))
    }

    /// A link is made. Returns its number at the side that was dialled.
    pub(crate) fn join(
        &mut self,
        now: Time,
        (at, life, link): (At, u64, LinkId),
        (to, theirs): (At, u64),
    ) -> LinkId {
        self.accepted += 1;
        let accepted = LinkId(self.accepted);
        let latency = self.latency(at.cell, to.cell);
        let ends = [(at, life, link), (to, theirs, accepted)].map(|(at, life, link)| End {
            at,
            life,
            link,
            is_open: true,
            arriving: VecDeque::new(),
        });
        let wire = Wire { ends, latency, since: now };
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
        self.remember((at, link), (place, 0));
        self.remember((to, accepted), (place, 1));
        accepted
    }

    /// A message leaves. Tells when it arrives, and where.
    pub(crate) fn send(
        &mut self,
        now: Time,
        at: At,
        link: LinkId,
        message: Message,
    ) -> Option<Due> {
        self.put(now, (at, link), Some(message))
    }

    /// An end is closed. The other one is told behind all messages.
    pub(crate) fn close(&mut self, now: Time, at: At, link: LinkId) -> Option<Due> {
        let due = self.put(now, (at, link), None);
        self.forget_end(at, link);
        due
    }

    /// An end is gone without a word: its host has lost power.
    pub(crate) fn abandon(&mut self, at: At, link: LinkId) {
        self.forget_end(at, link);
    }

    fn of_node(&self, at: At) -> impl Iterator<Item = &((At, LinkId), (usize, usize))> {
        let links = self.of_cells.get(at.cell).into_iter().flatten();
        links.filter(move |((of, _), _)| *of == at)
    }

    fn find(&self, key: (At, LinkId)) -> Option<(usize, usize)> {
        let links = self.of_cells.get(key.0.cell)?;
        let place = links.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(links[place].1)
    }

    fn remember(&mut self, key: (At, LinkId), end: (usize, usize)) {
        if self.of_cells.len() <= key.0.cell {
            self.of_cells.resize_with(key.0.cell + 1, Vec::new);
        }
        let links = &mut self.of_cells[key.0.cell];
        let place = links.partition_point(|(known, _)| *known < key);
        links.insert(place, (key, end));
    }

    fn put(&mut self, now: Time, key: (At, LinkId), message: Option<Message>) -> Option<Due> {
        let (wire, end) = self.find(key)?;
        let at = now + self.wires[wire].latency;
        let other = &mut self.wires[wire].ends[1 - end];
        if !other.is_open {
            return None;
        }
        other.arriving.push_back((at, message));
        self.messages += 1;
        Some(Due { at, wire, end: 1 - end })
    }

    fn forget_end(&mut self, at: At, link: LinkId) {
        let links = self.of_cells.get_mut(at.cell);
        let found = links.and_then(|links| {
            let place = links.binary_search_by_key(&(at, link), |(key, _)| *key).ok()?;
            Some(links.remove(place).1)
        });
        if let Some((wire, end)) = found {
            let of_both = &mut self.wires[wire].ends;
            of_both[end].is_open = false;
            of_both[end].arriving.clear();
            if of_both.iter().all(|end| !end.is_open) {
                self.free.push(wire);
            }
        }
    }

    /// The node at which this arrives.
    pub(crate) fn target(&self, wire: usize, end: usize) -> At {
        self.wires[wire].ends[end].at
    }

    /// Takes the first thing that has arrived at this end, unless the way is cut: then it waits.
    pub(crate) fn take(&mut self, now: Time, wire: usize, end: usize) -> Option<Taken> {
        let source = self.wires[wire].ends[1 - end].at;
        let target = &mut self.wires[wire].ends[end];
        let is_due = target.arriving.front().is_some_and(|(due, _)| *due <= now);
        if !target.is_open || !is_due || self.cuts.contains(&(source.cell, target.at.cell)) {
            return None;
        }
        let (_, message) = target.arriving.pop_front()?;
        let (at, life, link) = (target.at, target.life, target.link);
        if message.is_none() {
            self.forget_end(at, link);
        }
        Some(Taken { at, life, link, message })
    }

    /// The links of a node.
    pub(crate) fn links_of(&self, at: At) -> Vec<LinkId> {
        self.of_node(at).map(|((_, link), _)| *link).collect()
    }

    /// Messages that have waited go on: those from such a node to such a node.
    pub(crate) fn waiting(&self, waited: impl Fn(At, At) -> bool) -> Vec<Due> {
        let mut all = Vec::new();
        for (wire, it) in self.wires.iter().enumerate() {
            for end in 0..2 {
                let (target, source) = (&it.ends[end], it.ends[1 - end].at);
                if waited(source, target.at) {
                    let due = target.arriving.iter().map(|(at, _)| Due { at: *at, wire, end });
                    all.extend(due);
                }
            }
        }
        all
    }
}
