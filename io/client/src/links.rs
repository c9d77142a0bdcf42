//! Connections to nodes, and what is known of the addresses that they lead to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use wire::client::{Frame, Hello};
use wire::limits::MAX_LINKS;
use wire::path::Path;
use wire::versions::CLIENT;
use wire::{ClientId, NodeId, Time, VersionRange};

use crate::CallError;
use crate::output::{Effects, Event, Link, Output, Timer, Trouble};

/// From the dial to the node's welcome. Longer than a round trip around the world.
const GREETING_TIMEOUT: Duration = Duration::from_secs(1);
/// A node that does not answer the question after its life within this time counts as lost.
const LIFE_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection that nothing needs is closed after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// For how long a failed address is avoided: after its first failure, and at most.
const AVOID: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Dialling,
    Greeting,
    Ready,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) address: SocketAddr,
    /// The node that answers there, once it has welcomed us.
    pub(crate) node: Option<NodeId>,
    /// The version of the protocol, once it has welcomed us.
    version: u8,
    phase: Phase,
    /// An attempt here timed out, and nothing has come since: others are tried before.
    pub(crate) suspect: bool,
    /// When it was asked for a sign of life, if that is to come.
    probed: Option<Time>,
    used: Time,
    /// When it was welcomed, at an address that had failed before.
    returned: Option<Time>,
}

/// An address that failed.
#[derive(Debug)]
struct Record {
    failures: u32,
    avoid_until: Time,
    trouble: Trouble,
}

/// The action that a connection's timer requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The node did not answer in time.
    Silent,
    /// Nothing was sent or received for a while.
    Idle,
    /// Nothing: the timer was set on.
    Not,
}

/// All connections of a session. At most one for each address.
#[derive(Debug)]
pub(crate) struct Links {
    client: ClientId,
    /// The cell that is called, if not the nodes' own.
    cell: Option<Path>,
    /// The addresses that the client was given, in the order in which it asks them.
    pub(crate) given: Vec<SocketAddr>,
    open: BTreeMap<Link, Connection>,
    by_address: BTreeMap<SocketAddr, Link>,
    records: BTreeMap<SocketAddr, Record>,
    next: u64,
}

impl Links {
    /// Connections have numbers from `first` on.
    pub(crate) fn new(
        client: ClientId,
        cell: Option<Path>,
        given: Vec<SocketAddr>,
        first: u64,
    ) -> Self {
        let (open, by_address, records) = Default::default();
        Links { client, cell, given, open, by_address, records, next: first }
    }

    /// Another cell than the nodes' own is called.
    pub(crate) fn is_away(&self) -> bool {
        self.cell.is_some()
    }

    /// The node welcomes clients of the cell that is called, or of whichever it is in.
    pub(crate) fn is_meant(&self, cluster: &str) -> bool {
        self.cell.as_ref().is_none_or(|cell| Path::of_cluster(cluster).as_ref() == Some(cell))
    }

    pub(crate) fn get(&self, link: Link) -> Option<&Connection> {
        self.open.get(&link)
    }

    pub(crate) fn is_ready(&self, link: Link) -> bool {
        self.open.get(&link).is_some_and(|connection| connection.phase == Phase::Ready)
    }

    pub(crate) fn any_ready(&self) -> bool {
        self.open.values().any(|connection| connection.phase == Phase::Ready)
    }

    /// The connections that calls may travel on, those that answer first.
    pub(crate) fn ready(&self) -> Vec<(Link, SocketAddr)> {
        let of = |suspect: bool| {
            let fits = move |c: &Connection| c.phase == Phase::Ready && c.suspect == suspect;
            self.open.iter().filter(move |(_, c)| fits(c)).map(|(link, c)| (*link, c.address))
        };
        of(false).chain(of(true)).collect()
    }

    /// The ready connection to this address.
    pub(crate) fn ready_at(&self, address: SocketAddr) -> Option<Link> {
        self.by_address.get(&address).copied().filter(|link| self.is_ready(*link))
    }

    pub(crate) fn is_suspect(&self, address: SocketAddr) -> bool {
        self.by_address.get(&address).is_some_and(|link| self.open[link].suspect)
    }

    /// This address failed before, and has not been connected again for so long.
    pub(crate) fn is_returning(&self, address: SocketAddr, now: Time, span: Duration) -> bool {
        match self.by_address.get(&address).map(|link| &self.open[link]) {
            Some(open) if open.phase == Phase::Ready => {
                open.returned.is_some_and(|at| now.since(at) < span)
            }
            _ => self.records.contains_key(&address),
        }
    }

    /// Until when this address is not to be dialled, if it failed lately and is not connected.
    pub(crate) fn avoided_until(&self, address: SocketAddr, now: Time) -> Option<Time> {
        if self.by_address.contains_key(&address) {
            return None;
        }
        self.records.get(&address).map(|record| record.avoid_until).filter(|until| *until > now)
    }

    /// A newer view has a replica there again: whatever failed before, it may be dialled now. It still
    /// counts as returning.
    pub(crate) fn forgive(&mut self, now: Time, address: SocketAddr) {
        if let Some(record) = self.records.get_mut(&address) {
            record.avoid_until = record.avoid_until.min(now);
        }
    }

    /// The connection to this address; it is dialled if there is none. `None` at the limit.
    pub(crate) fn open(
        &mut self,
        now: Time,
        address: SocketAddr,
        effects: &mut Effects,
    ) -> Option<Link> {
        if let Some(link) = self.by_address.get(&address) {
            return Some(*link);
        }
        if self.open.len() >= MAX_LINKS {
            return None;
        }
        let link = Link(self.next);
        self.next += 1;
        let phase = Phase::Dialling;
        let (node, suspect, probed, returned) = (None, false, None, None);
        let (used, version) = (now, CLIENT.least);
        let connection =
            Connection { address, node, version, phase, suspect, probed, used, returned };
        self.open.insert(link, connection);
        self.by_address.insert(address, link);
        effects.timers.set(Timer::Link(link), now + GREETING_TIMEOUT);
        effects.outputs.push_back(Output::Connect { link, address });
        Some(link)
    }

    /// The stream is there: say hello.
    pub(crate) fn connected(&mut self, link: Link, effects: &mut Effects) {
        if let Some(connection) = self.open.get_mut(&link)
            && connection.phase == Phase::Dialling
        {
            connection.phase = Phase::Greeting;
            let hello = match &self.cell {
                None => Hello::new(self.client),
                Some(cell) => Hello::to(self.client, cell),
            };
            effects.send(link, Frame::Hello(hello));
        }
    }

    /// The node welcomes the client. False if it should not have.
    pub(crate) fn welcomed(
        &mut self,
        now: Time,
        link: Link,
        (node, version): (NodeId, u8),
        effects: &mut Effects,
    ) -> bool {
        let Some(connection) = self.open.get_mut(&link) else { return false };
        if connection.phase != Phase::Greeting {
            return false;
        }
        connection.phase = Phase::Ready;
        (connection.node, connection.version) = (Some(node), version);
        connection.suspect = false;
        connection.used = now;
        let address = connection.address;
        connection.returned = self.records.contains_key(&address).then_some(now);
        effects.timers.set(Timer::Link(link), now + IDLE_TIMEOUT);
        effects.stats.connects += 1;
        effects.stats.reconnects += u64::from(self.records.contains_key(&address));
        effects.event(Event::Connected { address, node });
        true
    }

    /// The node at the other end knows what requests say from this version on.
    pub(crate) fn speaks(&self, link: Link, version: u8) -> bool {
        self.open.get(&link).is_some_and(|connection| connection.version >= version)
    }

    /// Anything came: the node lives.
    pub(crate) fn heard(&mut self, now: Time, link: Link, effects: &mut Effects) {
        if let Some(connection) = self.open.get_mut(&link) {
            connection.used = now;
            connection.suspect = false;
            if connection.probed.take().is_some() {
                effects.timers.set(Timer::Link(link), now + IDLE_TIMEOUT);
            }
        }
    }

    /// A real answer came: what went wrong at this address before is of the past. A welcome alone
    /// does not count, or a node that welcomes and closes would be dialled without end.
    pub(crate) fn served(&mut self, link: Link) {
        if let Some(connection) = self.open.get(&link) {
            self.records.remove(&connection.address);
        }
    }

    pub(crate) fn used(&mut self, now: Time, link: Link) {
        if let Some(connection) = self.open.get_mut(&link) {
            connection.used = now;
        }
    }

    /// Nothing came back in time. True if the node is to be asked for a sign of life.
    pub(crate) fn suspect(&mut self, now: Time, link: Link, effects: &mut Effects) -> bool {
        let Some(connection) = self.open.get_mut(&link) else { return false };
        connection.suspect = true;
        let ask = connection.phase == Phase::Ready && connection.probed.is_none();
        if ask {
            connection.probed = Some(now);
            effects.timers.set(Timer::Link(link), now + LIFE_TIMEOUT);
        }
        ask
    }

    /// The timer of this connection fired.
    pub(crate) fn overdue(
        &mut self,
        now: Time,
        link: Link,
        needed: bool,
        effects: &mut Effects,
    ) -> Overdue {
        let Some(connection) = self.open.get(&link) else { return Overdue::Not };
        if connection.phase != Phase::Ready || connection.probed.is_some() {
            return Overdue::Silent;
        }
        let end = connection.used + IDLE_TIMEOUT;
        if !needed && end <= now {
            return Overdue::Idle;
        }
        effects.timers.set(Timer::Link(link), end.max(now + IDLE_TIMEOUT / 2));
        Overdue::Not
    }

    /// Forgets a connection, and remembers what went wrong with its address, if anything did.
    pub(crate) fn close(
        &mut self,
        now: Time,
        link: Link,
        trouble: Option<Trouble>,
        effects: &mut Effects,
    ) -> Option<Connection> {
        let connection = self.open.remove(&link)?;
        self.by_address.remove(&connection.address);
        effects.timers.clear(Timer::Link(link));
        if let Some(trouble) = trouble {
            effects.stats.losses += 1;
            let address = connection.address;
            effects.event(Event::Lost { address, trouble: trouble.clone() });
            self.remember(now, address, trouble, effects);
        }
        Some(connection)
    }

    fn remember(
        &mut self,
        now: Time,
        address: SocketAddr,
        trouble: Trouble,
        effects: &mut Effects,
    ) {
        let failures = self.records.get(&address).map_or(0, |record| record.failures);
        let span = backoff(failures, AVOID, effects);
        let record = Record { failures: failures + 1, avoid_until: now + span, trouble };
        self.records.insert(address, record);
        if self.records.len() > MAX_LINKS {
            // The address that may be dialled again soonest is the least loss.
            let soonest = self.records.iter().min_by_key(|(_, record)| record.avoid_until);
            if let Some(address) = soonest.map(|(address, _)| *address) {
                self.records.remove(&address);
            }
        }
    }

    /// A stream broke: by what it had reached, what that says of the node.
    pub(crate) fn trouble_of_loss(&self, link: Link) -> Trouble {
        if self.is_ready(link) { Trouble::Closed } else { Trouble::Refused }
    }

    /// True if each of the given addresses has failed and none is being tried.
    pub(crate) fn all_failed(&self) -> bool {
        let failed =
            |address| self.records.contains_key(address) && !self.by_address.contains_key(address);
        self.given.iter().all(failed)
    }

    /// The other protocol versions, if that is what keeps the given addresses from being of use.
    pub(crate) fn other_version(&self) -> Option<VersionRange> {
        let version = |address: &SocketAddr| match self.records.get(address)?.trouble {
            Trouble::Version(theirs) => Some(theirs),
            _ => None,
        };
        self.given.iter().find_map(version)
    }

    /// The other protocol versions, if nothing else keeps any of the given addresses.
    pub(crate) fn only_other_versions(&self) -> Option<VersionRange> {
        let other = |address| {
            matches!(self.records.get(address), Some(Record { trouble: Trouble::Version(_), .. }))
        };
        if self.given.is_empty() || self.any_ready() || !self.given.iter().all(other) {
            return None;
        }
        self.other_version()
    }

    /// Why no node can be reached.
    pub(crate) fn unreachable(&self) -> CallError {
        match self.other_version() {
            Some(theirs) => CallError::Version { theirs },
            None => CallError::Unreachable(self.describe()),
        }
    }

    /// Describes what each of the given addresses did, for an error's text.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for address in &self.given {
            let comma = if text.is_empty() { "" } else { ", " };
            let trouble = match self.records.get(address) {
                Some(record) => &record.trouble,
                None => &Trouble::Silent,
            };
            write!(text, "{comma}{address} {trouble}").expect("writing to a string");
        }
        text
    }

    pub(crate) fn check_invariants(&self, effects: &Effects) {
        assert!(self.open.len() <= MAX_LINKS && self.records.len() <= MAX_LINKS);
        assert_eq!(self.open.len(), self.by_address.len());
        for (address, link) in &self.by_address {
            assert_eq!(self.open[link].address, *address);
            assert!(effects.timers.is_set(Timer::Link(*link)), "{link:?} can be forgotten");
        }
    }
}

/// A span that doubles with each failure from the first bound to the second, then half of it at
/// random off: clients that lost the same node do not come back together.
pub(crate) fn backoff(
    failures: u32,
    (least, most): (Duration, Duration),
    effects: &mut Effects,
) -> Duration {
    let span = least.saturating_mul(1 << failures.min(16)).min(most);
    let half = u64::try_from(span.as_nanos() / 2).expect("backoffs are short");
    Duration::from_nanos(half + effects.random.below(half + 1))
}
