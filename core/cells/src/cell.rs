//! The book of a cell: the state of its group `steadfast.cell`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::client::{Target, Targets};
use wire::limits::{MAX_NAME, MAX_REPLICAS};
use wire::ordered::Style;
use wire::path::{MAX_DEPTH, Name, Path};
use wire::{Duration, Member, NodeId, Time, ViewNumber};

use crate::bug::{Bug, Planted};
use crate::command::{
    Attached, Attachment, Carrier, ChildPicture, Command, Epoch, Picture, Place, Record, Refusal,
    Verdict,
};
use crate::exports::{Exports, Report};
use crate::limits::{
    LEASE, MAX_CARRIERS, MAX_CHILDREN, MAX_KNOWN, MAX_PLACES, MAX_REPORT, NOWHERE_FOR, WANTED_FOR,
};

/// A cell below that is attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Child {
    epoch: Epoch,
    founded: u64,
    until: Time,
    at: Vec<core::net::SocketAddr>,
    nodes: u16,
    /// Its changes of exports that are known here.
    seen: u64,
}

/// A name of another cell, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    /// Where it is, and since when by this cell's order; `None`: nobody has found out.
    found: Option<(Option<Record>, Time)>,
    /// Somebody asked for it last, and bears an answer of this age.
    asked: Time,
    bears: Duration,
    /// It is being found out until then.
    wanted: Option<Time>,
}

/// The cell above, as it has said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Above {
    epoch: Epoch,
    seen: u64,
    places: Vec<Place>,
}

/// A cell's book. All replicas apply the same commands in one order, at ordered times, and have the
/// same state. Its content is bounded ([`crate::limits`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    path: Path,
    /// The ordered time of the last command, and that of the first in microseconds.
    time: Time,
    founded: u64,
    /// The last attachment that was granted.
    granted: Epoch,
    children: BTreeMap<Path, Child>,
    above: Above,
    /// A person has made it a root.
    promoted: bool,
    carriers: BTreeMap<NodeId, Carrier>,
    exports: Exports,
    known: BTreeMap<Name, Known>,
    #[serde(skip)]
    planted: Planted,
}

impl Cell {
    /// The book of a cell that begins.
    pub fn new(path: Path) -> Cell {
        Cell {
            path,
            time: Time::ZERO,
            founded: 0,
            granted: Epoch(0),
            children: BTreeMap::new(),
            above: Above::default(),
            promoted: false,
            carriers: BTreeMap::new(),
            exports: Exports::default(),
            known: BTreeMap::new(),
            planted: Planted::default(),
        }
    }

    /// The same with a mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn with_bug(path: Path, bug: Bug) -> Cell {
        Cell { planted: Some(bug).into(), ..Cell::new(path) }
    }

    /// From now on it makes this mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn plant(&mut self, bug: Bug) {
        self.planted = Some(bug).into();
    }

    /// Applies a command at an ordered time. First, leases end that were not renewed by then. A
    /// refusal changes nothing else.
    ///
    /// # Errors
    /// The reason why the command is impossible, and the remedy.
    pub fn apply(&mut self, now: Time, command: Command) -> Result<Verdict, Refusal> {
        if self.founded == 0 {
            self.founded = (now.0 / 1_000).max(1);
            // Numbers of a book that was lost are smaller than those of the one that follows.
            self.granted = Epoch(self.founded);
        }
        self.time = self.time.max(now);
        if !matches!(command, Command::Renew(_)) || !self.planted.is(Bug::RenewEnded) {
            self.expire();
        }
        match command {
            Command::Carry(carrier) => self.carry(carrier)?,
            Command::Gone(members) => self.carriers.retain(|_, it| !members.contains(&it.member)),
            Command::Attach(attachment) => return self.attach(attachment).map(Verdict::Attached),
            Command::Renew(children) => return self.renew(children),
            Command::Report { path, epoch, upto, counts } => {
                at_most(counts.len(), MAX_REPORT)?;
                let believes = self.planted.is(Bug::TakeStaleReport);
                let child = self.children.get_mut(&path);
                let Some(child) = child.filter(|it| it.epoch == epoch || believes) else {
                    return Ok(Verdict::Shunned);
                };
                let epoch = child.epoch;
                if upto > child.seen {
                    child.seen = upto;
                    self.exports.report(epoch, counts);
                    self.top_knows();
                }
                return Ok(Verdict::Reported(self.children[&path].seen));
            }
            Command::Rise { epoch, seen, above } => self.rise(epoch, seen, above)?,
            Command::Export(group) => {
                check_group(&group)?;
                self.exports.export(group)?;
            }
            Command::Unexport(group) => {
                self.exports.unexport(&group);
                self.top_knows();
            }
            Command::Want { name, bears } => return Ok(self.want(name, bears)),
            Command::Learn { name, found, as_of } => self.learn(&name, found, as_of),
            Command::Promote => {
                if self.path.depth() == 0 {
                    return Err(Refusal::Root(self.path.clone()));
                }
                (self.above, self.promoted) = (Above::default(), true);
                self.top_knows();
            }
            Command::Tick => {}
        }
        Ok(Verdict::Done)
    }

    /// The cell's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When the book began, in microseconds since the Unix epoch; 0 before the first command.
    pub fn founded(&self) -> u64 {
        self.founded
    }

    /// Nothing is above it: it is the root of a system, or of the part that a person has promoted.
    pub fn is_root(&self) -> bool {
        self.path.depth() == 0 || self.promoted
    }

    /// Its attachment above, 0 if there is none.
    pub fn epoch(&self) -> Epoch {
        self.above.epoch
    }

    /// The cells above, the attaching one first.
    pub fn above(&self) -> &[Place] {
        &self.above.places
    }

    /// Its nodes that carry, in the order of their ids.
    pub fn carriers(&self) -> impl Iterator<Item = &Carrier> {
        self.carriers.values()
    }

    /// The node that carries, if it does.
    pub fn carrier(&self, node: NodeId) -> Option<&Carrier> {
        self.carriers.get(&node)
    }

    /// The attached cells below, and their attachments.
    pub fn children(&self) -> impl Iterator<Item = (&Path, Epoch)> {
        self.children.iter().map(|(path, child)| (path, child.epoch))
    }

    /// The attachment of a cell below, if it is.
    pub fn child(&self, path: &Path) -> Option<Epoch> {
        self.children.get(path).map(|child| child.epoch)
    }

    /// When a lease ends next, by the order's time.
    pub fn next_end(&self) -> Option<Time> {
        self.children.values().map(|child| child.until).min()
    }

    /// Changes of exports that the cell above has to be told.
    pub fn report(&self) -> Option<Report> {
        if self.is_root() { None } else { self.exports.unknown(self.above.seen) }
    }

    /// Cells beyond this one may find the group here.
    pub fn exports(&self, group: &str) -> bool {
        self.exports.is_own(group)
    }

    /// The attached cells at or below which a group is exported, or may be.
    pub fn exporters(&self, group: &str) -> Vec<&Path> {
        let below = self.exports.below(group);
        let is = |(_, child): &(&Path, &Child)| below.contains(&child.epoch);
        self.children.iter().filter(is).map(|(path, _)| path).collect()
    }

    /// Names that are to be found out.
    pub fn wanted(&self) -> impl Iterator<Item = &Name> {
        let wanted = |known: &Known| known.wanted.is_some_and(|until| until > self.time);
        self.known.iter().filter(move |(_, it)| wanted(it)).map(|(name, _)| name)
    }

    /// Where a name is, and how old that is at this time by the order's clock.
    pub fn known_well(
        &self,
        now: Time,
        name: &Name,
        bears: Duration,
    ) -> Option<(Option<Record>, Duration)> {
        let (found, since) = self.known.get(name)?.found.as_ref()?;
        let age = now.since(*since);
        let bears = if found.is_none() { bears.min(NOWHERE_FOR) } else { bears };
        (age <= bears).then(|| (found.clone(), age))
    }

    fn carry(&mut self, carrier: Carrier) -> Result<(), Refusal> {
        let Carrier { member, .. } = carrier;
        let known = self.carriers.get(&member.node);
        if known.is_none() {
            at_most(self.carriers.len() + 1, MAX_CARRIERS)?;
        }
        if known.is_none_or(|it| it.member.incarnation <= member.incarnation) {
            self.carriers.insert(member.node, carrier);
        }
        Ok(())
    }

    fn attach(&mut self, wanted: Attachment) -> Result<Attached, Refusal> {
        let Attachment { place: Place { path, at }, epoch, founded, nodes } = wanted;
        at_most(at.len(), MAX_PLACES)?;
        if !path.is_below(&self.path) {
            return Err(Refusal::NotBelow(path, self.path.clone()));
        }
        let until = self.time + LEASE;
        let count = self.children.len();
        let present = self.children.get_mut(&path);
        if let Some(child) = &present {
            if child.founded > founded && !self.planted.is(Bug::AttachTheFormer) {
                return Err(Refusal::Later(path));
            }
        } else if count >= MAX_CHILDREN {
            return Err(Refusal::Full);
        }
        if let Some(child) = present.filter(|it| it.epoch == epoch && it.founded == founded) {
            (child.until, child.at, child.nodes) = (until, at, nodes);
            let (epoch, seen) = (child.epoch, child.seen);
            return Ok(self.granted(epoch, seen));
        }
        self.detach(&path);
        self.granted.0 += 1;
        let epoch = self.granted;
        self.children.insert(path, Child { epoch, founded, until, at, nodes, seen: 0 });
        Ok(self.granted(epoch, 0))
    }

    fn granted(&self, epoch: Epoch, seen: u64) -> Attached {
        let own = Place { path: self.path.clone(), at: Vec::new() };
        let above = core::iter::once(own).chain(self.above.places.iter().cloned());
        Attached { epoch, lease: LEASE, seen, above: above.take(MAX_DEPTH).collect() }
    }

    fn renew(&mut self, children: Vec<(Path, Epoch)>) -> Result<Verdict, Refusal> {
        at_most(children.len(), MAX_CHILDREN)?;
        let until = self.time + LEASE;
        let mut shunned = Vec::new();
        for (path, epoch) in children {
            match self.children.get_mut(&path) {
                Some(child) if child.epoch == epoch || self.planted.is(Bug::RenewAny) => {
                    child.until = until;
                }
                _ => shunned.push(path),
            }
        }
        Ok(Verdict::Renewed { shunned })
    }

    fn rise(&mut self, epoch: Epoch, seen: u64, places: Vec<Place>) -> Result<(), Refusal> {
        at_most(places.len(), MAX_DEPTH)?;
        if self.is_root() {
            return Err(Refusal::Root(self.path.clone()));
        }
        if let Some(place) = places.iter().find(|place| !self.path.is_below(&place.path)) {
            return Err(Refusal::NotBelow(self.path.clone(), place.path.clone()));
        }
        // The later news of one attachment count: answers may overtake each other.
        let by = |places: &[Place]| places.first().map(|place| place.path.clone());
        let is_same = epoch == self.above.epoch && by(&places) == by(&self.above.places);
        let seen = if is_same { seen.max(self.above.seen) } else { seen };
        self.above = Above { epoch, seen, places };
        self.exports.is_known(seen);
        Ok(())
    }

    fn want(&mut self, name: Name, bears: Duration) -> Verdict {
        let now = self.time;
        if let Some(known) = self.known.get_mut(&name) {
            (known.asked, known.bears) = (now, bears);
        }
        if let Some((found, age)) = self.known_well(now, &name, bears) {
            return Verdict::Known { found, age };
        }
        if self.known.len() >= MAX_KNOWN
            && !self.known.contains_key(&name)
            && let Some(oldest) = self.known.iter().min_by_key(|(_, it)| it.asked)
        {
            let oldest = oldest.0.clone();
            self.known.remove(&oldest);
        }
        let none = Known { found: None, asked: now, bears, wanted: None };
        let known = self.known.entry(name).or_insert(none);
        known.wanted = Some(now + WANTED_FOR);
        Verdict::Wanted
    }

    fn learn(&mut self, name: &Name, found: Option<Record>, as_of: Time) {
        let Some(known) = self.known.get_mut(name) else { return };
        let since = as_of.min(self.time);
        let is_newer = match &known.found {
            Some((_, before)) => since >= *before || self.planted.is(Bug::LearnOlder),
            None => true,
        };
        if is_newer {
            (known.found, known.wanted) = (Some((found, since)), None);
        }
    }

    /// Ends the leases that are over.
    fn expire(&mut self) {
        if self.planted.is(Bug::KeepForEver) {
            return;
        }
        let over = |(_, child): &(&Path, &Child)| child.until <= self.time;
        let over: Vec<Path> =
            self.children.iter().filter(over).map(|(path, _)| path.clone()).collect();
        for path in over {
            self.detach(&path);
        }
    }

    fn detach(&mut self, path: &Path) {
        if let Some(child) = self.children.remove(path)
            && !self.planted.is(Bug::KeepExports)
        {
            self.exports.forget(child.epoch);
            self.top_knows();
        }
    }

    /// Above a root nobody needs to know.
    fn top_knows(&mut self) {
        if self.is_root() {
            self.exports.is_known(u64::MAX);
        }
    }

    /// The cell, for people.
    pub fn picture(&self) -> Picture {
        let child = |(path, child): (&Path, &Child)| ChildPicture {
            place: Place { path: path.clone(), at: child.at.clone() },
            epoch: child.epoch,
            nodes: child.nodes,
            until: child.until,
        };
        Picture {
            path: self.path.clone(),
            epoch: (self.above.epoch > Epoch(0)).then_some(self.above.epoch),
            above: self.above.places.clone(),
            carriers: self.carriers.values().copied().collect(),
            children: self.children.iter().map(child).collect(),
            exports: self.exports.own().cloned().collect(),
            names: u32::try_from(self.exports.len()).unwrap_or(u32::MAX),
        }
    }

    /// The carriers in this order, of those nodes that are members: others are passed over by all.
    pub fn carriers_among(
        &self,
        order: &[NodeId],
        members: &[Member],
    ) -> impl Iterator<Item = &Carrier> {
        let carriers = order.iter().filter_map(|node| self.carrier(*node));
        carriers.filter(move |carrier| members.contains(&carrier.member))
    }

    /// The nodes at which clients of this cell call other ones, the seat first.
    pub fn doors(&self, view: ViewNumber, order: &[NodeId], members: &[Member]) -> Targets {
        let carriers = self.carriers_among(order, members).take(MAX_REPLICAS);
        let door = |it: &Carrier| Target { node: it.member.node, address: it.calls };
        Targets { view, style: Style::SemiActive, nodes: carriers.map(door).collect() }
    }

    /// Lives of carriers that are none of these.
    pub fn carriers_beyond(&self, members: &[Member]) -> Vec<Member> {
        let gone = |it: &&Carrier| !members.contains(&it.member);
        self.carriers.values().filter(gone).map(|it| it.member).collect()
    }

    /// The state's bytes, for a snapshot.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a book is plain data")
    }

    /// The state from the bytes of [`encode`](Cell::encode).
    ///
    /// # Errors
    /// The bytes are none, or no possible state.
    pub fn decode(bytes: &[u8]) -> Result<Cell, postcard::Error> {
        let cell: Cell = postcard::from_bytes(bytes)?;
        if cell.is_sound() { Ok(cell) } else { Err(postcard::Error::DeserializeBadEncoding) }
    }

    /// Checks the invariants. Reads the whole state: for tests.
    ///
    /// # Panics
    /// If they do not hold.
    pub fn check_invariants(&self) {
        assert!(self.is_sound() || self.planted != Planted::default(), "{self:?}");
    }

    fn is_sound(&self) -> bool {
        let mut epochs: Vec<Epoch> = self.children.values().map(|child| child.epoch).collect();
        let attached = epochs.clone();
        epochs.sort_unstable();
        epochs.dedup();
        let child = |(path, child): (&Path, &Child)| {
            path.is_below(&self.path)
                && child.epoch <= self.granted
                && child.until > self.time
                && child.at.len() <= MAX_PLACES
        };
        epochs.len() == self.children.len()
            && self.children.len() <= MAX_CHILDREN
            && self.carriers.len() <= MAX_CARRIERS
            && self.known.len() <= MAX_KNOWN
            && self.above.places.len() <= MAX_DEPTH
            && self.time.0 < u64::MAX / 2
            && self.children.iter().all(child)
            && self.exports.is_sound(|epoch| attached.contains(&epoch))
    }
}

fn at_most(count: usize, most: usize) -> Result<(), Refusal> {
    if count <= most { Ok(()) } else { Err(Refusal::TooMany(count, most)) }
}

fn check_group(group: &str) -> Result<(), Refusal> {
    let fits = (1..=MAX_NAME).contains(&group.len()) && !group.contains(':');
    if fits { Ok(()) } else { Err(Refusal::Group(group.len())) }
}
