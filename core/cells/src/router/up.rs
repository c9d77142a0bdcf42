//! The way up: a link to the cell above, by which this cell is attached there.
//!
//! The two first carriers of a cell each keep a link. The first, the *seat*, attaches the cell, and
//! tells what it exports. A cell whose parent is lost goes to the next one above, and goes back when
//! the parent answers again.

use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::path::Path;
use wire::{Duration, Time};

use super::asks::Asks;
use super::links::Links;
use super::sight::Sight;
use crate::bug::{Bug, Planted};
use crate::command::{Command, Place};
use crate::limits::{DIAL, MAX_PLACES};
use crate::output::{LinkId, Output, Outputs};

mod attaching;

/// After a cell's nodes could not be reached, it is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// Tries of one cell before it is the next one's turn.
const TRIES: u32 = 2;

/// A cell to which a link was lately up answers a dial within this time, and some round trips:
/// handshakes, and first words. One that nothing is known of has the time that dialling takes.
/// A later answer costs little: the next one above attaches the cell, until it looks back.
const DIAL_WITHIN: Duration = Duration::from_millis(40);
const ROUND_TRIPS: u32 = 2;

/// Handshakes take so long beside round trips: QUIC has that much of a start before TCP.
const HANDSHAKES: Duration = Duration::from_millis(250);

/// A node that has no place among the carriers for so long closes its ways: a change of the view
/// takes milliseconds, and calls travel on meanwhile.
const BLIND_FOR: Duration = Duration::from_millis(500);

/// A cell that is attached elsewhere looks so often whether its parent is back.
const LOOK_BACK: Duration = Duration::from_secs(1);

/// An unanswered question is repeated after this time.
const REPEAT: Duration = Duration::from_millis(250);

/// A link to a cell above, being made or there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    link: LinkId,
    to: Path,
    /// The other side has said who it is.
    is_up: bool,
    /// It is given up then, if it is not up. `None`: when dialling ends.
    until: Option<Time>,
}

/// The cells above, as the attaching one has said last by this link.
#[derive(Clone, Debug)]
struct Heard {
    link: LinkId,
    above: Vec<Place>,
    /// The book was to learn it then.
    ordered: Time,
}

/// The way up of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Up {
    way: Option<Way>,
    /// A link to the parent, while another cell has attached this one.
    back: Option<Way>,
    /// A link to the next cell above, while the one that was linked is tried once more.
    spare: Option<Way>,
    /// Which of the cells above is tried, and how often it was.
    level: usize,
    tries: u32,
    /// Rounds of all of them in vain, before any was linked.
    rounds: u32,
    /// The longest round trip so far to any of them.
    longest: Option<Duration>,
    /// The node that is dialled first: another one after each that was lost, or did not answer.
    first: usize,
    /// The cell that was linked last, and a round trip that hardly any exceeds.
    round_trip: Option<(Path, Duration)>,
    dial_at: Time,
    look_back_at: Time,
    asked: Option<Time>,
    renewed: Option<Time>,
    reported: Option<(u64, Time)>,
    heard: Option<Heard>,
    /// The cell's nodes, as the cell above was told last.
    told: Option<(Vec<SocketAddr>, u16)>,
    /// The attachment was ended from above.
    is_shunned: bool,
    /// Since then the node has had no place among the carriers.
    blind: Option<Time>,
    /// Links that are wanted no more.
    given_up: Vec<LinkId>,
    planted: Planted,
}

/// The fields that the handlers of the way up may touch.
pub(super) struct UpHandler<'a, 'b> {
    pub(super) up: &'a mut Up,
    pub(super) links: &'a mut Links,
    pub(super) out: &'a mut Outputs,
    pub(super) asks: &'a mut Asks,
    pub(super) next_link: &'a mut u64,
    pub(super) sight: &'a Sight<'b>,
}

impl Up {
    pub(super) fn with_bug(planted: Planted) -> Up {
        Up { planted, ..Up::default() }
    }

    /// The link by which questions and calls go up.
    pub(super) fn link(&self) -> Option<LinkId> {
        self.way.as_ref().filter(|way| way.is_up).map(|way| way.link)
    }

    /// The next link that is wanted no more.
    pub(super) fn given_up(&mut self) -> Option<LinkId> {
        self.given_up.pop()
    }

    /// The cell that is dialled by this link.
    pub(super) fn expects(&self, link: LinkId) -> Option<&Path> {
        [&self.way, &self.back, &self.spare]
            .into_iter()
            .flatten()
            .find(|way| way.link == link)
            .map(|way| &way.to)
    }

    /// The cell at the other end of the way has attached this one.
    fn is_attached(&self, to: Option<&Path>, sight: &Sight<'_>) -> bool {
        let attached = sight.cell.above().first().map(|place| &place.path);
        sight.cell.epoch().0 > 0 && attached.is_some() && attached == to && !self.is_shunned
    }

    pub(super) fn next_timeout(&self, links: &Links, sight: &Sight<'_>) -> Option<Time> {
        if !sight.links_up() {
            let is_any = self.way.is_some() || self.back.is_some() || self.spare.is_some();
            return self.blind.map(|since| since + BLIND_FOR).filter(|_| is_any);
        }
        let dial = match &self.way {
            None => Some(self.dial_at),
            Some(way) => way.until.filter(|_| !way.is_up),
        };
        let seat = self.link().filter(|_| sight.is_seat()).and_then(|link| {
            match self.is_attached(links.path_of(link), sight) {
                // It goes with a ping, which is due at a time of its own.
                true => self.renewed.map_or(Some(Time::ZERO), |_| None),
                false => Some(self.asked.map_or(Time::ZERO, |at| at + REPEAT)),
            }
        });
        let reported = self.reported.map(|(_, at)| at + REPEAT);
        let reported = reported.filter(|_| sight.is_seat() && self.link().is_some());
        let learn = self.unlearned(sight).map(|heard| heard.ordered + REPEAT);
        let looks_back = sight.is_seat() && self.level > 0 && self.back.is_none();
        let back = (self.link().is_some() && looks_back).then_some(self.look_back_at);
        dial.into_iter().chain(seat).chain(reported).chain(learn).chain(back).min()
    }

    /// The cells above, if the book does not have them as the attaching one has said last: it may
    /// have said so before the book had the attachment.
    fn unlearned(&self, sight: &Sight<'_>) -> Option<&Heard> {
        let heard = self.heard.as_ref().filter(|heard| Some(heard.link) == self.link())?;
        let by = heard.above.first().map(|place| &place.path);
        let is_news = self.is_attached(by, sight) && sight.cell.above() != heard.above;
        (is_news && sight.is_seat()).then_some(heard)
    }
}

impl UpHandler<'_, '_> {
    /// Does what is due, and what the book asks for.
    pub(super) fn look(&mut self, now: Time) {
        if !self.sight.is_seat() {
            // When it is the seat again, the cell above is asked how things are by then.
            (self.up.asked, self.up.renewed, self.up.reported) = (None, None, None);
            self.up.heard = None;
        }
        match self.sight.rank {
            None if *self.up.blind.get_or_insert(now) + BLIND_FOR > now => return,
            None => {}
            Some(_) => self.up.blind = None,
        }
        if !self.sight.links_up() {
            let Up { way, back, spare, .. } = &mut *self.up;
            let ways = [way, back, spare].map(Option::take);
            ways.into_iter().flatten().for_each(|way| self.close(way.link));
            return;
        }
        let is_late = |way: &mut Way| !way.is_up && way.until.is_some_and(|until| until <= now);
        if let Some(way) = self.up.way.take_if(is_late) {
            self.close(way.link);
            self.failed(now);
        }
        if self.up.way.is_none() && self.up.dial_at <= now {
            self.dial(now);
        }
        if self.is_astray() {
            if let Some(way) = self.up.way.take() {
                self.close(way.link);
            }
            self.dial(now);
        }
        let Some(link) = self.up.link() else { return };
        if let Some((path, bound)) = self.links.path_of(link).zip(self.links.bound(link)) {
            self.up.longest = self.up.longest.max(Some(bound));
            self.up.round_trip = Some((path.clone(), bound));
        }
        if self.sight.is_seat()
            && self.up.level > 0
            && self.up.back.is_none()
            && self.up.look_back_at <= now
        {
            self.up.look_back_at = now + LOOK_BACK;
            let places = self.places();
            // Nothing waits for it.
            self.up.back = places.first().and_then(|parent| self.make(now, parent, DIAL.1));
        }
        if self.sight.is_seat() {
            self.attach(now);
            self.learn(now);
            self.report(now);
        }
    }

    /// The other side of a dialled link has said who it is.
    pub(super) fn hello(&mut self, now: Time, link: LinkId) {
        if self.up.back.as_ref().is_some_and(|way| way.link == link) {
            // The parent is there again: the cell goes back to it.
            if let Some(former) = self.up.way.take() {
                self.close(former.link);
            }
            self.up.way = self.up.back.take();
            self.up.level = 0;
        }
        if let Some(spare) = self.up.spare.as_mut().filter(|way| way.link == link) {
            spare.is_up = true;
        }
        if let Some(way) = self.up.way.as_mut().filter(|way| way.link == link) {
            way.is_up = true;
            self.begin(now);
        }
    }

    /// The way is up.
    fn begin(&mut self, now: Time) {
        (self.up.tries, self.up.rounds) = (0, 0);
        (self.up.asked, self.up.renewed, self.up.reported) = (None, None, None);
        self.up.look_back_at = now + LOOK_BACK;
        if let Some(spare) = self.up.spare.take() {
            self.close(spare.link);
        }
        self.look(now);
    }

    /// A link that was dialled or was up is gone.
    pub(super) fn lost(&mut self, now: Time, link: LinkId) {
        if self.up.back.as_ref().is_some_and(|way| way.link == link) {
            self.up.back = None;
            return;
        }
        if self.up.spare.take_if(|way| way.link == link).is_some() {
            return;
        }
        let Some(way) = self.up.way.take_if(|way| way.link == link) else { return };
        if way.is_up {
            // Its other node is tried at once: that is this cell's second try.
            self.up.first += 1;
            (self.up.tries, self.up.dial_at) = (1, now);
        } else {
            self.failed(now);
        }
        if self.up.dial_at <= now {
            self.look(now);
        }
        if way.is_up {
            self.prepare(now);
        }
    }

    /// If the whole cell is lost, the next one above has answered by the time that this is known.
    fn prepare(&mut self, now: Time) {
        let places = self.places();
        let next = places.get((self.up.level + 1) % places.len().max(1));
        if self.sight.is_seat() && self.up.spare.is_none() && places.len() > 1 {
            self.up.spare = next.and_then(|place| self.make(now, place, self.patience()));
        }
    }

    /// A node of a cell above could not be reached in time.
    fn failed(&mut self, now: Time) {
        self.up.first += 1;
        self.up.tries += 1;
        self.up.dial_at = now + AGAIN;
        if self.up.tries >= TRIES && !self.up.planted.is(Bug::WaitForParent) {
            self.up.tries = 0;
            let count = self.places().len().max(1);
            self.up.level = (self.up.level + 1) % count;
            // A whole round without success is no reason to hurry, and who answers late is given
            // more time. Others than the seat try one cell alone.
            let is_round = self.up.level == 0 || !self.sight.is_seat();
            self.up.dial_at = if is_round { now + AGAIN * 4 } else { now };
            self.up.round_trip = self.up.round_trip.take().filter(|_| !is_round);
            self.up.rounds += u32::from(is_round);
        }
    }

    /// The seat has attached the cell elsewhere.
    fn is_astray(&self) -> bool {
        let to = self.up.way.as_ref().filter(|way| way.is_up).map(|way| &way.to);
        let attached = self.sight.cell.above().first().map(|place| &place.path);
        !self.sight.is_seat() && attached.zip(to).is_some_and(|(attached, to)| attached != to)
    }

    /// The cells above, the parent first: as the cell above has said, and as the configuration says.
    fn places(&self) -> Vec<Place> {
        let Some(parent) = self.sight.cell.path().parent() else { return Vec::new() };
        let (of_parent, others): (Vec<&Place>, Vec<&Place>) =
            self.sight.cell.above().iter().partition(|place| place.path == parent);
        // Its nodes that are known to live, and then those that the configuration names.
        let mut at: Vec<SocketAddr> =
            of_parent.iter().flat_map(|place| &place.at).copied().collect();
        at.extend(self.sight.parent.iter().filter(|named| !at.contains(named)).collect::<Vec<_>>());
        let mut places = alloc::vec![Place { path: parent, at }];
        places.extend(others.into_iter().cloned());
        places.retain(|place| !place.at.is_empty());
        places
    }

    fn dial(&mut self, now: Time) {
        let places = self.places();
        if places.is_empty() || self.sight.cell.is_root() {
            self.up.dial_at = now + LOOK_BACK;
            return;
        }
        let attached = self.sight.cell.above().first().filter(|_| !self.sight.is_seat());
        // The others are where the seat has attached the cell.
        let chosen = attached.and_then(|to| places.iter().position(|it| it.path == to.path));
        self.up.level = chosen.unwrap_or(self.up.level % places.len());
        let place = &places[self.up.level];
        match self.up.spare.take_if(|spare| spare.to == place.path) {
            Some(spare) => {
                let is_up = spare.is_up;
                self.up.way = Some(spare);
                if is_up {
                    self.begin(now);
                }
            }
            None => {
                self.up.way = self.make(now, place, self.patience());
            }
        }
    }

    /// The time for each address. Where nothing is known of round trips, it grows with each round.
    fn patience(&self) -> Duration {
        let needed = match self.up.longest {
            Some(round_trip) => HANDSHAKES + round_trip * 4,
            None => DIAL.0 * (1 << self.up.rounds.min(8)),
        };
        needed.clamp(DIAL.0, DIAL.1)
    }

    /// Dials a cell's nodes, each carrier another one first.
    fn make(&mut self, now: Time, place: &Place, patience: Duration) -> Option<Way> {
        let mut to: Vec<SocketAddr> = place.at.iter().copied().take(MAX_PLACES).collect();
        if to.is_empty() {
            return None;
        }
        let first = (self.sight.rank.unwrap_or(0) + self.up.first) % to.len();
        to.rotate_left(first);
        let link = LinkId(*self.next_link);
        *self.next_link += 1;
        self.out.push(Output::Dial { link, to, cell: place.path.clone(), patience });
        let known = self.up.round_trip.as_ref().filter(|(path, _)| *path == place.path);
        let until = known.map(|(_, bound)| now + DIAL_WITHIN + *bound * ROUND_TRIPS);
        Some(Way { link, to: place.path.clone(), is_up: false, until })
    }

    fn order(&mut self, command: Command) {
        self.asks.order(self.out, command, None);
    }

    /// It is given up. The router closes it, and what goes by it goes elsewhere.
    fn close(&mut self, link: LinkId) {
        self.up.given_up.push(link);
    }
}
