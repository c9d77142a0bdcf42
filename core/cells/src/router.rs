//! A node's part in its system: links to other cells, and what travels by them.
//!
//! The router of a node looks at its cell's book, and has the cell's group order what changes it.
//! All that must survive is in the book: a router that is lost is replaced by the next one. It has
//! no clock: time is an argument, and only its differences count, but for [`Sight::wall`].

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::client::Targets;
use wire::path::{Name, Path};
use wire::{Duration, NodeId, Time};

use crate::bug::{Bug, Planted};
use crate::command::{Place, Refusal, Verdict};
use crate::limits::{DIAL, MAX_LINKS};
use crate::message::{End, Hello, Message, OLDEST, VERSION};
use crate::output::{Event, LinkId, Output, Outputs};
use crate::overlay::Overlay;

mod asks;
mod below;
mod calls;
mod finds;
mod links;
mod sight;
mod up;
mod ways;

use asks::Asks;
use below::{Below, BelowHandler};
pub use calls::Made;
use calls::{CallHandler, Calls};
use finds::{FindHandler, Finds};
use links::{Links, Peer};
pub use sight::{LINKING, Sight};
use up::{Up, UpHandler};

/// After the seat could not be reached, it is tried again.
const JOIN_AGAIN: Duration = Duration::from_millis(250);

/// A cell below whose second link comes back to this node keeps it for so long.
const SPREAD_AGAIN: Duration = Duration::from_secs(10);

/// The router of one node.
#[derive(Clone, Debug)]
pub struct Router<O> {
    node: NodeId,
    overlay: O,
    links: Links,
    up: Up,
    below: Below,
    calls: Calls,
    finds: Finds,
    asks: Asks,
    /// Links that are dialled for short ways.
    shortcuts: BTreeMap<LinkId, Path>,
    out: Outputs,
    next_link: u64,
    join_at: Time,
    /// When a link of these cells was closed last, as their seat has its own to this node.
    spread: BTreeMap<Path, Time>,
    planted: Planted,
}

impl<O: Overlay> Router<O> {
    /// The router of this node.
    pub fn new(node: NodeId, overlay: O) -> Router<O> {
        Router::planted(node, overlay, Planted::default())
    }

    /// The same with a mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn with_bug(node: NodeId, overlay: O, bug: Bug) -> Router<O> {
        Router::planted(node, overlay, Some(bug).into())
    }

    fn planted(node: NodeId, overlay: O, planted: Planted) -> Router<O> {
        Router {
            node,
            overlay,
            links: Links::with_bug(planted),
            up: Up::with_bug(planted),
            below: Below::default(),
            calls: Calls::with_bug(planted),
            finds: Finds::with_bug(planted),
            asks: Asks::default(),
            shortcuts: BTreeMap::new(),
            out: Outputs::default(),
            next_link: 1,
            join_at: Time::ZERO,
            spread: BTreeMap::new(),
            planted,
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop()
    }

    /// When there will be something to do if nothing happens.
    pub fn next_timeout(&self, now: Time, sight: &Sight<'_>) -> Option<Time> {
        let parts = [
            self.links.next_timeout(),
            self.up.next_timeout(&self.links, sight),
            self.below.next_timeout(now, sight),
            self.calls.next_timeout(),
            self.finds.next_timeout(),
        ];
        parts.into_iter().flatten().min()
    }

    /// Looks at the book and the clock, and does what is due.
    pub fn look(&mut self, now: Time, sight: &Sight<'_>) {
        for link in self.links.silent(now) {
            self.out.push(Output::Close(link));
            self.end_link(now, link, true, sight);
        }
        self.links.ping(now, &mut self.out);
        let way = self.up.link();
        self.up(sight).look(now);
        self.retry_by_other(way, now, sight);
        self.below(sight).look(now);
        self.calls(sight).look(now);
        self.finds(sight).look(now);
        self.overlay.handle_own(sight.wall, sight.cell, &|| sight.links_at());
        self.join_seat(now, sight);
        self.close_given_up(now, sight);
    }

    /// A link is up that was dialled or accepted; whose certificate the other side has, if any.
    pub fn handle_link_up(
        &mut self,
        now: Time,
        link: LinkId,
        proven: Option<(Path, NodeId)>,
        sight: &Sight<'_>,
    ) {
        let is_wanted = !link.is_dialled()
            || self.up.expects(link).is_some()
            || self.shortcuts.contains_key(&link);
        if !is_wanted || self.links.len() >= MAX_LINKS || sight.rank.is_none() {
            self.out.push(Output::Close(link));
            // The way up, or a short one, dials again.
            return self.end_link(now, link, false, sight);
        }
        self.links.add(now, link, proven);
        let hello = Hello { version: VERSION, path: sight.cell.path().clone(), node: self.node };
        self.out.control(link, Message::Hello(hello));
    }

    /// A link could not be made, or has ended.
    pub fn handle_link_down(&mut self, now: Time, link: LinkId, sight: &Sight<'_>) {
        self.end_link(now, link, false, sight);
        self.close_given_up(now, sight);
    }

    /// A message has come by a link.
    pub fn handle_message(&mut self, now: Time, link: LinkId, message: Message, sight: &Sight<'_>) {
        let Some(known) = self.links.get(link) else { return };
        let is_greeted = known.peer.is_some();
        self.links.heard(now, link);
        match message {
            Message::Hello(hello) if !is_greeted => self.hello(now, link, hello, sight),
            _ if !is_greeted => self.misbehave(now, link, "its first words are others", sight),
            Message::Hello(_) => self.misbehave(now, link, "it says Hello twice", sight),
            Message::Ping { at, every_ms } => {
                self.links.pinged(link, every_ms);
                self.out.control(link, Message::Pong { at });
            }
            Message::Pong { at } => self.links.ponged(now, link, at),
            Message::Attach(wanted) => match self.below(sight).attach(link, wanted) {
                Ok(()) => self.spread(now, link, sight),
                Err(why) => self.misbehave(now, link, why, sight),
            },
            Message::Attached(attached) => self.up(sight).attached(now, link, attached),
            Message::Refused(reason) => self.up(sight).refused(now, link, reason),
            Message::Renew(epoch) => {
                self.below(sight).renew(now, link, epoch);
                self.spread(now, link, sight);
            }
            Message::Shunned => self.up(sight).shunned(now, link),
            Message::Report { epoch, upto, counts } => {
                self.below(sight).report(link, epoch, upto, counts);
            }
            Message::Reported { epoch, upto } => self.up(sight).reported(link, epoch, upto),
            Message::Above(above) => self.up(sight).above(now, link, above),
            Message::Find(find) => self.finds(sight).find(now, link, find),
            Message::Found { id, found } => self.finds(sight).found(now, link, id, found),
            Message::Carry(carry) => self.calls(sight).carry(now, link, None, carry),
            Message::CarryFor(origin, carry) => match self.calls(sight).vouched(link, origin) {
                Ok(origin) => self.calls(sight).carry(now, link, origin, carry),
                Err(()) => {
                    self.misbehave(now, link, "it carries a call of another cell's caller", sight);
                }
            },
            Message::Carried { id, end } => self.calls(sight).carried(now, link, id, end),
            Message::Members(members) => {
                let news = self.overlay.handle_members(now, members);
                let others: Vec<LinkId> =
                    self.links.known().map(|(id, ..)| id).filter(|id| *id != link).collect();
                for other in others.into_iter().filter(|_| !news.is_empty()) {
                    self.out.control(other, Message::Members(news.clone()));
                }
            }
        }
        self.close_given_up(now, sight);
    }

    /// The group's verdict on a command; `Err(None)`: nobody ordered it.
    pub fn handle_verdict(
        &mut self,
        ask: u64,
        verdict: Result<Verdict, Option<Refusal>>,
        sight: &Sight<'_>,
    ) {
        let Some(back) = self.asks.waiting.remove(&ask) else { return };
        match verdict {
            Ok(verdict) => self.below(sight).answered(back, Ok(verdict)),
            Err(Some(refusal)) => self.below(sight).answered(back, Err(refusal)),
            Err(None) => {}
        }
    }

    /// The targets of a group of this cell, as they are now; `None`: there is no such group.
    pub fn handle_located(
        &mut self,
        now: Time,
        group: &str,
        targets: Option<Targets>,
        sight: &Sight<'_>,
    ) {
        self.finds(sight).located(now, group, targets);
    }

    /// A call was executed in this cell, and ended so.
    pub fn handle_executed(&mut self, call: u64, end: End, sight: &Sight<'_>) {
        self.calls(sight).executed(call, end);
    }

    /// A caller of this cell calls a group of another one, and waits so long. The end is told with
    /// the token.
    pub fn call(&mut self, now: Time, token: u64, made: Made, sight: &Sight<'_>) {
        if *sight.cell.path() != made.to {
            self.shorten(now, &made.to, sight);
        }
        self.calls(sight).make(now, token, made);
    }

    /// A caller of this cell asks for a group. [`Output::Found`] tells the answer with the token, and
    /// for a while each change of it. The same token asks anew.
    pub fn find(&mut self, now: Time, token: u64, name: Name, sight: &Sight<'_>) {
        self.finds(sight).ask_here(now, token, name);
    }

    fn hello(&mut self, now: Time, link: LinkId, hello: Hello, sight: &Sight<'_>) {
        let Hello { version, path, node } = hello;
        let own = sight.cell.path();
        let proven = self.links.get(link).and_then(|link| link.proven.as_ref());
        let is_other = |(proven, its): &(Path, NodeId)| *proven != path || *its != node;
        let expected = self.up.expects(link).or_else(|| self.shortcuts.get(&link));
        let why = if version < OLDEST {
            Some("its version is too old")
        } else if proven.is_some_and(is_other) && !self.planted.is(Bug::BelievePaths) {
            Some("its certificate is another's")
        } else if !path.is_of_system(own) {
            Some("it is of another system")
        } else if expected.is_some_and(|expected| *expected != path) {
            Some("it is another cell than was dialled")
        } else {
            None
        };
        if let Some(why) = why {
            return self.misbehave(now, link, why, sight);
        }
        if let Some(known) = self.links.get_mut(link) {
            known.peer = Some(Peer { path: path.clone(), node, version });
        }
        self.out.event(Event::LinkUp { path, node });
        let members = self.overlay.members();
        if !members.is_empty() {
            self.out.control(link, Message::Members(members));
        }
        self.up(sight).hello(now, link);
        self.calls(sight).retry(now);
    }

    /// The way up is another one than this: calls that wait for one are tried.
    fn retry_by_other(&mut self, way: Option<LinkId>, now: Time, sight: &Sight<'_>) {
        if self.up.link() != way {
            self.calls(sight).retry(now);
        }
    }

    fn misbehave(&mut self, now: Time, link: LinkId, why: &'static str, sight: &Sight<'_>) {
        let path = self.links.path_of(link).or_else(|| self.up.expects(link));
        let path = path.unwrap_or(sight.cell.path()).clone();
        self.out.event(Event::Misbehaved { path, why });
        self.out.push(Output::Close(link));
        self.end_link(now, link, false, sight);
    }

    fn end_link(&mut self, now: Time, link: LinkId, is_silent: bool, sight: &Sight<'_>) {
        let known = self.links.remove(link);
        if let Some(Peer { path, node, .. }) = known.and_then(|link| link.peer) {
            self.out.event(Event::LinkDown { path, node, is_silent });
        }
        self.shortcuts.remove(&link);
        self.below.lost(link);
        let way = self.up.link();
        self.up(sight).lost(now, link);
        self.calls(sight).lost(now, link);
        self.retry_by_other(way, now, sight);
        self.finds(sight).lost(now, link);
    }

    /// The second carrier has a link to the seat: each may have links that the other one lacks. So
    /// has any other one to which a neighbour has come (`stheno.txt`, 3.2: all are connected to the
    /// coordinator).
    fn join_seat(&mut self, now: Time, sight: &Sight<'_>) {
        let (own, seat) = (sight.cell.path(), sight.order.first());
        let is_seat = |peer: &Peer| peer.path == *own && Some(&peer.node) == seat;
        let is_there = self.links.known().any(|(_, peer, _)| is_seat(peer))
            || self
                .shortcuts
                .iter()
                .any(|(link, path)| path == own && self.links.get(*link).is_none());
        let is_needed = match sight.rank {
            None | Some(0) => false,
            Some(1) => true,
            Some(_) => self.links.known().next().is_some() || self.calls.wait_for_a_way(),
        };
        if !is_needed || is_there || self.join_at > now {
            return;
        }
        self.join_at = now + JOIN_AGAIN;
        let seat = seat.and_then(|node| sight.cell.carrier(*node));
        if let Some(seat) = seat {
            self.dial(own.clone(), alloc::vec![seat.links], DIAL.0);
        }
    }

    fn dial(&mut self, cell: Path, to: Vec<SocketAddr>, patience: Duration) {
        let link = LinkId(self.next_link);
        self.next_link += 1;
        self.shortcuts.insert(link, cell.clone());
        self.out.push(Output::Dial { link, to, cell, patience });
    }

    /// The two links of a cell below are to end at different nodes here, so that it loses one of them
    /// at most. The seat's stays; the other one's node dials on, and may come back if it finds none.
    fn spread(&mut self, now: Time, seats: LinkId, sight: &Sight<'_>) {
        let Some(path) = self.links.path_of(seats).cloned() else { return };
        let is_recent = |at: &Time| now < *at + SPREAD_AGAIN;
        if sight.order.len() < LINKING || self.spread.get(&path).is_some_and(is_recent) {
            return;
        }
        let others = self.links.to(&path).filter(|id| *id != seats && !id.is_dialled());
        let others: Vec<LinkId> = others.collect();
        if others.is_empty() {
            return;
        }
        self.spread.retain(|_, at| is_recent(at));
        self.spread.insert(path, now);
        for other in others {
            self.out.push(Output::Close(other));
            self.end_link(now, other, false, sight);
        }
    }

    /// Makes a direct link to a cell, where the overlay knows one.
    fn shorten(&mut self, now: Time, to: &Path, sight: &Sight<'_>) {
        let is_there = self.links.to(to).next().is_some()
            || self.shortcuts.values().any(|path| path == to)
            || !sight.links_up();
        let place = if is_there { None } else { self.overlay.shortcut(now, to) };
        if let Some(Place { path, at }) = place
            && self.links.len() + self.shortcuts.len() < MAX_LINKS
        {
            // Calls go another way meanwhile.
            self.dial(path, at, DIAL.1);
        }
    }

    /// Closes what the way up has given up.
    fn close_given_up(&mut self, now: Time, sight: &Sight<'_>) {
        while let Some(link) = self.up.given_up() {
            self.out.push(Output::Close(link));
            self.end_link(now, link, false, sight);
        }
    }

    fn up<'a, 'b>(&'a mut self, sight: &'a Sight<'b>) -> UpHandler<'a, 'b> {
        let Router { up, links, out, asks, next_link, .. } = self;
        UpHandler { up, links, out, asks, next_link, sight }
    }

    fn below<'a, 'b>(&'a mut self, sight: &'a Sight<'b>) -> BelowHandler<'a, 'b> {
        let believes = self.planted.is(Bug::BelievePaths);
        let Router { below, links, out, asks, .. } = self;
        BelowHandler { below, links, out, asks, sight, believes }
    }

    fn calls<'a, 'b>(&'a mut self, sight: &'a Sight<'b>) -> CallHandler<'a, 'b> {
        let up = self.up.link();
        let Router { calls, links, out, .. } = self;
        CallHandler { calls, links, out, up, sight }
    }

    fn finds<'a, 'b>(&'a mut self, sight: &'a Sight<'b>) -> FindHandler<'a, 'b> {
        let up = self.up.link();
        let Router { finds, links, out, asks, .. } = self;
        FindHandler { finds, links, out, asks, up, sight }
    }

    /// The links that are up, for people: cell, node and round trip.
    pub fn neighbours(&self) -> Vec<(Path, NodeId, Duration)> {
        let known = self.links.known();
        known
            .map(|(_, peer, link)| (peer.path.clone(), peer.node, link.round_trip.usual()))
            .collect()
    }

    /// Calls on their way, for people and for tests.
    pub fn calls_under_way(&self) -> usize {
        self.calls.len()
    }
}
