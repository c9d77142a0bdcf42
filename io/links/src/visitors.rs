//! Connections that others have begun, until they are links: a machine without sockets.
//!
//! A visitor has a fixed time in which it must shake hands, greet, and see the other three of its
//! link come. The number of visitors is bounded. At the bound, the origin with the most visitors
//! makes room, so a flood competes with itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use tls::Identity;

use crate::class::{CLASSES, Pipe};
use crate::greeting::{Greeting, Token};
use crate::refusal::Refusal;

/// The one who has begun a connection.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub address: SocketAddr,
    /// By its certificate, once the handshake is over.
    pub peer: Option<Identity>,
    /// The handshake is over.
    pub open: bool,
    token: Option<Token>,
    until: Instant,
    /// Visitors are numbered in the order in which they came.
    turn: u64,
}

/// The result of a greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Others of the link are missing.
    Waits,
    /// All four are there, by class. They are no visitors any more.
    Whole([Pipe; CLASSES]),
    /// This connection is refused, the others stay.
    Refused(Refusal),
}

#[derive(Debug)]
pub(crate) struct Visitors {
    visitors: BTreeMap<Pipe, Visitor>,
    /// Links of which some connections are there.
    gathering: BTreeMap<Token, [Option<Pipe>; CLASSES]>,
    /// Links that are up.
    up: BTreeSet<Token>,
    room: usize,
    turns: u64,
}

impl Visitors {
    pub fn new(room: usize) -> Visitors {
        let (visitors, gathering, up) = Default::default();
        Visitors { visitors, gathering, up, room, turns: 0 }
    }

    pub fn count(&self) -> usize {
        self.visitors.len()
    }

    pub fn get(&self, pipe: Pipe) -> Option<&Visitor> {
        self.visitors.get(&pipe)
    }

    /// A connection has come. Gives one that has to go for it.
    pub fn enter(&mut self, pipe: Pipe, address: SocketAddr, until: Instant) -> Option<Pipe> {
        let crowding = if self.visitors.len() >= self.room { self.most_crowding() } else { None };
        let turn = self.turns;
        self.turns += 1;
        let visitor = Visitor { address, peer: None, open: false, token: None, until, turn };
        self.visitors.insert(pipe, visitor);
        crowding
    }

    /// The handshake is over.
    pub fn identify(&mut self, pipe: Pipe, peer: Option<Identity>) {
        if let Some(visitor) = self.visitors.get_mut(&pipe) {
            visitor.peer = peer;
            visitor.open = true;
        }
    }

    /// It says what it is.
    pub fn greet(&mut self, pipe: Pipe, greeting: Greeting) -> Joined {
        let Greeting { token, class } = greeting;
        let Some(visitor) = self.visitors.get(&pipe) else { return Joined::Waits };
        let places = self.gathering.get(&token).copied().unwrap_or_default();
        // A number may be overheard, and its hearer is still not the one who drew it.
        let alike = |other: &Pipe| {
            let same =
                |it: &Visitor| it.peer == visitor.peer && it.address.ip() == visitor.address.ip();
            other.way == pipe.way && self.visitors.get(other).is_some_and(same)
        };
        let taken = places[class.index()].is_some() || self.up.contains(&token);
        if visitor.token.is_some() || taken || !places.iter().flatten().all(alike) {
            return Joined::Refused(Refusal::Twice);
        }
        let places = self.gathering.entry(token).or_default();
        places[class.index()] = Some(pipe);
        if let [Some(control), Some(alarm), Some(critical), Some(normal)] = *places {
            self.gathering.remove(&token);
            return Joined::Whole([control, alarm, critical, normal]);
        }
        self.visitors.entry(pipe).and_modify(|visitor| visitor.token = Some(token));
        Joined::Waits
    }

    /// A whole link is up: its connections are no visitors, and its number is taken.
    pub fn admit(&mut self, pipes: &[Pipe; CLASSES], token: Token) {
        pipes.iter().for_each(|pipe| _ = self.visitors.remove(pipe));
        self.up.insert(token);
    }

    /// Its number is free again.
    pub fn link_ended(&mut self, token: Token) {
        self.up.remove(&token);
    }

    /// A visitor has gone. Gives the others of its link, which are no use without it and have gone
    /// from here, too.
    pub fn leave(&mut self, pipe: Pipe) -> Vec<Pipe> {
        let Some(visitor) = self.visitors.remove(&pipe) else { return Vec::new() };
        let places = visitor.token.and_then(|token| self.gathering.remove(&token));
        let others = places.into_iter().flatten().flatten().filter(|it| *it != pipe);
        let others: Vec<Pipe> = others.collect();
        others.iter().for_each(|other| _ = self.visitors.remove(other));
        others
    }

    /// Those whose time is over.
    pub fn late(&self, now: Instant) -> Vec<Pipe> {
        let late = self.visitors.iter().filter(|(_, visitor)| visitor.until <= now);
        late.map(|(pipe, _)| *pipe).collect()
    }

    /// When the first visitor's time is over.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.visitors.values().map(|visitor| visitor.until).min()
    }

    /// The oldest visitor of the origins that have the most.
    fn most_crowding(&self) -> Option<Pipe> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for visitor in self.visitors.values() {
            *counts.entry(visitor.address.ip()).or_default() += 1;
        }
        let most = counts.values().max().copied();
        let crowd = self
            .visitors
            .iter()
            .filter(|(_, visitor)| counts.get(&visitor.address.ip()).copied() == most);
        crowd.min_by_key(|(_, visitor)| visitor.turn).map(|(pipe, _)| *pipe)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::class::Class;

    const TOKEN: Token = Token([1; 16]);

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 40_000))
    }

    fn greeting(class: Class) -> Greeting {
        Greeting { token: TOKEN, class }
    }

    /// Visitors 0 to 3 from one origin, all of whom have greeted but the last.
    fn three_of_four() -> (Visitors, Instant) {
        let (mut visitors, until) = (Visitors::new(8), Instant::now());
        for (number, class) in Class::ALL.into_iter().enumerate() {
            let pipe = Pipe::tcp(number as u64);
            assert_eq!(visitors.enter(pipe, address(1), until), None);
            if number < 3 {
                assert_eq!(visitors.greet(pipe, greeting(class)), Joined::Waits);
            }
        }
        (visitors, until)
    }

    #[test]
    fn a_link_is_whole_when_the_fourth_class_is_there() {
        let (mut visitors, _) = three_of_four();
        let pipes = [0, 1, 2, 3].map(Pipe::tcp);
        let joined = visitors.greet(pipes[3], greeting(Class::Normal));
        assert_eq!(joined, Joined::Whole(pipes));
        visitors.admit(&pipes, TOKEN);
        assert_eq!(visitors.count(), 0);
        let fifth = Pipe::tcp(4);
        visitors.enter(fifth, address(1), Instant::now());
        let refused = Joined::Refused(Refusal::Twice);
        assert_eq!(visitors.greet(fifth, greeting(Class::Alarm)), refused, "the link is up");
        visitors.link_ended(TOKEN);
        assert_eq!(visitors.greet(fifth, greeting(Class::Alarm)), Joined::Waits);
    }

    #[test]
    fn a_second_connection_of_a_class_is_refused_and_the_first_stays() {
        let (mut visitors, until) = three_of_four();
        let second = Pipe::tcp(9);
        visitors.enter(second, address(1), until);
        let refused = Joined::Refused(Refusal::Twice);
        assert_eq!(visitors.greet(second, greeting(Class::Alarm)), refused);
        assert_eq!(visitors.leave(second), [], "no other goes with it");
        let last = visitors.greet(Pipe::tcp(3), greeting(Class::Normal));
        assert!(matches!(last, Joined::Whole(_)));
    }

    #[test]
    fn connections_of_one_link_have_one_owner_one_host_and_one_way() {
        let (mut visitors, until) = three_of_four();
        let identity = Identity::client("plant", "eve").unwrap();
        let others = [
            (Pipe::tcp(5), address(2), None),
            (Pipe::quic(5), address(1), None),
            (Pipe::tcp(6), address(1), Some(identity)),
        ];
        for (pipe, address, peer) in others {
            visitors.enter(pipe, address, until);
            visitors.identify(pipe, peer);
            let refused = Joined::Refused(Refusal::Twice);
            assert_eq!(visitors.greet(pipe, greeting(Class::Normal)), refused, "{pipe:?}");
        }
    }

    #[test]
    fn if_one_goes_the_others_of_its_link_go_with_it() {
        let (mut visitors, _) = three_of_four();
        assert_eq!(visitors.leave(Pipe::tcp(1)), [Pipe::tcp(0), Pipe::tcp(2)]);
        assert_eq!(visitors.count(), 1, "who has not greeted stays");
        assert_eq!(visitors.leave(Pipe::tcp(1)), []);
    }

    #[test]
    fn who_crowds_makes_room_and_the_oldest_first() {
        let (mut visitors, until) = (Visitors::new(3), Instant::now());
        visitors.enter(Pipe::quic(7), address(1), until);
        visitors.enter(Pipe::tcp(2), address(2), until);
        visitors.enter(Pipe::tcp(3), address(2), until);
        assert_eq!(visitors.enter(Pipe::tcp(4), address(3), until), Some(Pipe::tcp(2)));
    }

    #[test]
    fn each_has_its_time() {
        let (mut visitors, now) = (Visitors::new(3), Instant::now());
        let later = now + Duration::from_secs(5);
        visitors.enter(Pipe::tcp(1), address(1), later);
        visitors.enter(Pipe::tcp(2), address(1), later + Duration::from_secs(1));
        assert_eq!((visitors.next_timeout(), visitors.late(now)), (Some(later), vec![]));
        assert_eq!(visitors.late(later), [Pipe::tcp(1)]);
    }
}
