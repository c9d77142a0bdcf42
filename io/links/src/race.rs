//! Which way a dialled link takes: a machine without sockets.
//!
//! At each address QUIC begins, and TCP begins beside it a little later, or at once when QUIC has
//! failed (as in RFC 8305, which does so with addresses). The way whose four connections are open
//! first is taken, and the other one is dropped before a word is said on it. When no way is left, or
//! the time is up, the next address has its turn.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use crate::class::{CLASSES, Class, Way};
use crate::event::Down;
use crate::options::{Limits, Transports};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Begin four connections.
    Open(Way, SocketAddr),
    /// Close those of this way.
    Drop(Way),
    /// Say on these which link they are.
    Greet(Way),
    /// Nothing is left to try.
    Over(Down),
}

/// A way's connections at the present address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Idle,
    Begun([bool; CLASSES]),
    Lost,
}

/// The attempt at one address.
#[derive(Debug)]
struct Round {
    address: SocketAddr,
    lanes: [Lane; 2],
    chosen: Option<Way>,
    tcp_at: Instant,
    until: Instant,
}

impl Round {
    fn lane(&mut self, way: Way) -> &mut Lane {
        &mut self.lanes[way as usize]
    }
}

#[derive(Debug)]
pub(crate) struct Race {
    left: VecDeque<SocketAddr>,
    transports: Transports,
    limits: Limits,
    round: Option<Round>,
    /// The trouble that came last.
    last: Down,
    steps: VecDeque<Step>,
}

impl Race {
    /// Begins at the first address.
    pub fn new(
        addresses: Vec<SocketAddr>,
        transports: Transports,
        limits: Limits,
        now: Instant,
    ) -> Race {
        let mut race = Race {
            left: addresses.into(),
            transports,
            limits,
            round: None,
            last: Down::NoAddress,
            steps: VecDeque::new(),
        };
        race.begin(now);
        race
    }

    /// The next thing to do.
    pub fn next(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// The address that is tried.
    pub fn address(&self) -> Option<SocketAddr> {
        self.round.as_ref().map(|round| round.address)
    }

    /// The way whose connections are greeted on: the other side may speak.
    pub fn chosen(&self) -> Option<Way> {
        self.round.as_ref().and_then(|round| round.chosen)
    }

    /// A connection is open, and the other side is the right one.
    pub fn opened(&mut self, way: Way, class: Class) {
        let Some(round) = &mut self.round else { return };
        let Lane::Begun(open) = round.lane(way) else { return };
        open[class.index()] = true;
        if !open.iter().all(|open| *open) || round.chosen.is_some() {
            return;
        }
        round.chosen = Some(way);
        if matches!(round.lane(way.other()), Lane::Begun(_)) {
            self.steps.push_back(Step::Drop(way.other()));
        }
        *round.lane(way.other()) = Lane::Lost;
        self.steps.push_back(Step::Greet(way));
    }

    /// A connection of this way has ended, or the link is refused on it.
    pub fn failed(&mut self, way: Way, why: Down, now: Instant) {
        let Some(round) = &mut self.round else { return };
        if !matches!(round.lane(way), Lane::Begun(_)) {
            return;
        }
        *round.lane(way) = Lane::Lost;
        self.steps.push_back(Step::Drop(way));
        self.last = why;
        match *round.lane(way.other()) {
            Lane::Begun(_) => {}
            Lane::Idle => self.open(way.other()),
            Lane::Lost => self.begin(now),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(round) = &mut self.round else { return };
        if round.until <= now {
            for way in [Way::Quic, Way::Tcp] {
                if matches!(round.lane(way), Lane::Begun(_)) {
                    self.steps.push_back(Step::Drop(way));
                }
            }
            self.last = Down::Silent;
            self.begin(now);
        } else if round.tcp_at <= now && *round.lane(Way::Tcp) == Lane::Idle {
            self.open(Way::Tcp);
        }
    }

    /// When something is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let round = self.round.as_ref()?;
        let waits = round.lanes[Way::Tcp as usize] == Lane::Idle;
        Some(if waits { round.until.min(round.tcp_at) } else { round.until })
    }

    fn begin(&mut self, now: Instant) {
        self.round = None;
        let Some(address) = self.left.pop_front() else {
            self.steps.push_back(Step::Over(self.last.clone()));
            return;
        };
        let lane = |may: bool| if may { Lane::Idle } else { Lane::Lost };
        self.round = Some(Round {
            address,
            lanes: [lane(self.transports.quic()), lane(self.transports.tcp())],
            chosen: None,
            tcp_at: now + self.limits.head_start,
            until: now + self.limits.dial,
        });
        self.open(if self.transports.quic() { Way::Quic } else { Way::Tcp });
    }

    fn open(&mut self, way: Way) {
        let round = self.round.as_mut().expect("something is opened only at an address");
        *round.lane(way) = Lane::Begun([false; CLASSES]);
        self.steps.push_back(Step::Open(way, round.address));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HEAD_START: Duration = Duration::from_millis(200);
    const PATIENCE: Duration = Duration::from_secs(5);

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 7100))
    }

    fn race(count: u8, transports: Transports) -> (Race, Instant) {
        let now = Instant::now();
        let limits = Limits { dial: PATIENCE, head_start: HEAD_START, ..Limits::default() };
        (Race::new((1..=count).map(address).collect(), transports, limits, now), now)
    }

    fn steps(race: &mut Race) -> Vec<Step> {
        std::iter::from_fn(|| race.next()).collect()
    }

    fn open_all(race: &mut Race, way: Way) {
        Class::ALL.iter().for_each(|class| race.opened(way, *class));
    }

    #[test]
    fn quic_is_alone_at_first_and_wins_if_it_is_up() {
        let (mut race, now) = race(1, Transports::Both);
        assert_eq!(steps(&mut race), [Step::Open(Way::Quic, address(1))]);
        assert_eq!(race.next_timeout(), Some(now + HEAD_START));
        race.handle_timeout(now + HEAD_START - Duration::from_millis(1));
        assert_eq!(steps(&mut race), []);
        open_all(&mut race, Way::Quic);
        assert_eq!(steps(&mut race), [Step::Greet(Way::Quic)]);
        race.handle_timeout(now + HEAD_START);
        assert_eq!(steps(&mut race), [], "TCP does not begin any more");
    }

    #[test]
    fn the_first_whose_four_connections_are_open_is_taken_and_the_other_dropped() {
        let (mut race, now) = race(1, Transports::Both);
        race.handle_timeout(now + HEAD_START);
        Class::ALL[..3].iter().for_each(|class| race.opened(Way::Quic, *class));
        open_all(&mut race, Way::Tcp);
        race.opened(Way::Quic, Class::Normal);
        let (quic, tcp) = (Way::Quic, Way::Tcp);
        let wanted = [
            Step::Open(quic, address(1)),
            Step::Open(tcp, address(1)),
            Step::Drop(quic),
            Step::Greet(tcp),
        ];
        assert_eq!(steps(&mut race), wanted);
        race.failed(Way::Quic, Down::Ended, now);
        assert_eq!(steps(&mut race), [], "its end does not matter any more");
    }

    #[test]
    fn tcp_begins_at_once_where_quic_fails_and_then_the_next_address() {
        let (mut race, now) = race(2, Transports::Both);
        race.failed(Way::Quic, Down::Lost("refused".into()), now);
        race.failed(Way::Tcp, Down::Silent, now);
        let wanted = [
            Step::Open(Way::Quic, address(1)),
            Step::Drop(Way::Quic),
            Step::Open(Way::Tcp, address(1)),
            Step::Drop(Way::Tcp),
            Step::Open(Way::Quic, address(2)),
        ];
        assert_eq!(steps(&mut race), wanted);
    }

    #[test]
    fn a_refusal_after_the_choice_leads_to_the_next_address_and_the_last_reason_is_told() {
        let (mut race, now) = race(2, Transports::Quic);
        for last in [1, 2] {
            assert_eq!(steps(&mut race), [Step::Open(Way::Quic, address(last))]);
            open_all(&mut race, Way::Quic);
            assert_eq!(steps(&mut race), [Step::Greet(Way::Quic)]);
            race.failed(Way::Quic, Down::Refused(crate::Refusal::Crowded), now);
            assert_eq!(race.next(), Some(Step::Drop(Way::Quic)));
        }
        let over = Step::Over(Down::Refused(crate::Refusal::Crowded));
        assert_eq!(steps(&mut race), [over]);
        assert_eq!(race.next_timeout(), None);
    }

    #[test]
    fn an_address_that_says_nothing_has_its_time_and_no_more() {
        let (mut race, now) = race(1, Transports::Tcp);
        assert_eq!(steps(&mut race), [Step::Open(Way::Tcp, address(1))]);
        assert_eq!(race.next_timeout(), Some(now + PATIENCE));
        race.handle_timeout(now + PATIENCE);
        assert_eq!(steps(&mut race), [Step::Drop(Way::Tcp), Step::Over(Down::Silent)]);
    }

    #[test]
    fn without_an_address_it_is_over_at_once() {
        let (mut race, _) = race(0, Transports::Both);
        assert_eq!(steps(&mut race), [Step::Over(Down::NoAddress)]);
    }
}
