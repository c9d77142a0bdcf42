//! Nobody who wants the token is passed over, and nobody waits for it longer than the formula says.
//!
//! Source: docs/protocol/ring.md, "Longest wait for the token": while a member stands in the
//! token's wants, every other member gets the token at most once before it (the lemma); nobody
//! gives out more than a turn's numbers while others wait; and where nothing is lost the wait has a
//! bound ([`ring::Config::longest_wait`]). Seen on the wire: every token, and in a trial of waiting
//! every Want and all data.

use bytes::Bytes;
use wire::ring::{Datagram, Message, Token};
use wire::{Duration, Member, NodeId, RingId, Time};

use super::hashed::HashMap;
use super::{Verdict, demand};

const PROPERTY: &str = "waiting";

/// Where a datagram says what it is, and what a token says: a token is one datagram in many, the
/// others need no reading.
const KIND_AT: usize = 3;
const TOKEN: u8 = 2;

/// All rings, by what is sent in them.
#[derive(Clone, Default)]
pub struct Wait {
    /// Datagrams in a turn while others want the token.
    turn: u64,
    parking: bool,
    rings: HashMap<RingId, Ring>,
    /// Waits are timed, and last at most so long.
    bound: Option<Duration>,
    /// Members that ask for the token, and since when, while waits are timed.
    asking: HashMap<Member, Time>,
    /// The longest of them so far.
    longest: Duration,
}

/// One ring: the place of its token, and the members that wait for it.
#[derive(Clone)]
struct Ring {
    members: Vec<NodeId>,
    last: Option<Pass>,
    /// Bit i: member i wants the token and has not got it since.
    waiting: u64,
    /// Members that have had it since member i waits.
    passed: Vec<u64>,
    /// The largest number that was given out.
    high: u64,
}

impl Wait {
    /// Rings with these knobs.
    pub fn new(turn: usize, parking: bool) -> Self {
        Wait { turn: turn as u64, parking, ..Wait::default() }
    }

    /// A regular configuration exists. Messages that its members sent before any member was told of
    /// it belong to its recovery.
    pub fn ring(&mut self, ring: RingId, members: &[Member]) {
        self.rings.entry(ring).or_insert_with(|| Ring {
            members: members.iter().map(|member| member.node).collect(),
            last: None,
            waiting: 0,
            passed: vec![0; members.len()],
            high: 0,
        });
    }

    /// From now on all is well: a member that asks for the token has it within `bound`. `None`: no
    /// longer.
    pub fn timed(&mut self, bound: Option<Duration>) {
        self.bound = bound;
        self.asking.clear();
    }

    /// A datagram leaves for the node `to` (the first of several).
    pub fn sent(&mut self, now: Time, to: NodeId, bytes: &Bytes) -> Verdict {
        if bytes.get(KIND_AT) != Some(&TOKEN) && self.bound.is_none() {
            return Ok(());
        }
        let Ok(datagram) =
            Datagram::decode(crate::options::CLUSTER_ID, wire::versions::RING, bytes)
        else {
            return Ok(());
        };
        let sender = datagram.sender;
        match datagram.message {
            Message::Token(token) => {
                self.had(now, sender)?;
                let Some(ring) = self.rings.get_mut(&token.ring) else { return Ok(()) };
                ring.passed_on(to, &token, self.turn, self.parking)
            }
            Message::Want(_) => {
                self.asking.entry(sender).or_insert(now);
                Ok(())
            }
            Message::Data(data) => {
                let Some(ring) = self.rings.get_mut(&data.ring) else { return Ok(()) };
                if data.sequence <= ring.high {
                    return Ok(());
                }
                ring.high = data.sequence;
                self.had(now, sender)
            }
            _ => Ok(()),
        }
    }

    /// Only a member with the token does this.
    fn had(&mut self, now: Time, member: Member) -> Verdict {
        let (Some(bound), Some(since)) = (self.bound, self.asking.remove(&member)) else {
            return Ok(());
        };
        let waited = now.since(since);
        self.longest = self.longest.max(waited);
        demand(waited <= bound, PROPERTY, || {
            format!("{member} waited {waited:?} for the token, the bound is {bound:?}")
        })
    }

    /// At the end of a time in which waits are timed: nobody waits for longer either.
    pub fn finish(&self, now: Time) -> Verdict {
        let Some(bound) = self.bound else { return Ok(()) };
        let late = |(_, since): &(&Member, &Time)| now.since(**since) > bound;
        let late = self.asking.iter().filter(late).min();
        demand(late.is_none(), PROPERTY, || {
            format!("{late:?} still waits for the token at {now}, the bound is {bound:?}")
        })
    }

    /// The longest wait that was timed.
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

/// The last token that was sent.
#[derive(Clone, Copy)]
struct Pass {
    to: usize,
    hop: u64,
    sequence: u64,
    wants: u64,
}

impl Ring {
    fn passed_on(&mut self, to: NodeId, token: &Token, turn: u64, parking: bool) -> Verdict {
        let Some(to) = self.members.iter().position(|member| *member == to) else { return Ok(()) };
        let &Token { ring: id, hop, sequence, wants, .. } = token;
        if let Some(last) = self.last {
            if hop <= last.hop {
                return Ok(()); // Sent again.
            }
            let wanted = last.wants & !(1 << last.to) != 0 || !parking;
            let given = sequence.saturating_sub(last.sequence);
            demand(!wanted || given <= turn, PROPERTY, || {
                let node = self.members[last.to];
                format!("node {node} gives out {given} numbers of {id} while others want the token")
            })?;
        }
        self.waiting = (self.waiting | wants) & !(1 << to);
        self.passed[to] = 0;
        let waiting = self.waiting;
        for member in (0..self.members.len()).filter(|member| waiting >> member & 1 == 1) {
            let passed = &mut self.passed[member];
            demand(*passed >> to & 1 == 0, PROPERTY, || {
                let (twice, waits) = (self.members[to], self.members[member]);
                format!("node {twice} gets the token of {id} twice while node {waits} wants it")
            })?;
            *passed |= 1 << to;
        }
        self.last = Some(Pass { to, hop, sequence, wants });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evs::samples::{RING, member};
    use crate::options::CLUSTER_ID;
    use wire::ring::Want;

    fn sent(by: u32, message: Message) -> Bytes {
        Datagram::new(CLUSTER_ID, wire::versions::RING.least, member(by), message).encode()
    }

    fn token(hop: u64, wants: u64, sequence: u64) -> Message {
        Message::Token(Token {
            ring: RING,
            hop,
            sequence,
            arus: vec![0; 3],
            done: 0,
            received: 0,
            wants,
            home: 0,
            missing: Vec::new(),
            following: 0,
        })
    }

    fn three(turn: usize) -> Wait {
        let mut wait = Wait::new(turn, true);
        wait.ring(RING, &[member(1), member(2), member(3)]);
        wait
    }

    #[test]
    fn who_is_passed_over_is_seen() {
        let mut wait = three(4);
        let mut pass =
            |hop, by, to, wants| wait.sent(Time(hop), NodeId(to), &sent(by, token(hop, wants, 0)));
        pass(1, 1, 2, 0b110).unwrap();
        pass(1, 1, 2, 0b110).unwrap();
        pass(2, 2, 1, 0b100).unwrap();
        assert!(pass(3, 1, 2, 0b100).is_err(), "node 2 again, and node 3 waits");
    }

    #[test]
    fn a_turn_without_end_is_seen() {
        let mut wait = three(4);
        wait.sent(Time(1), NodeId(2), &sent(1, token(1, 0b100, 10))).unwrap();
        assert!(wait.sent(Time(2), NodeId(3), &sent(2, token(2, 0, 15))).is_err());
        let mut wait = three(4);
        wait.sent(Time(1), NodeId(2), &sent(1, token(1, 0, 10))).unwrap();
        wait.sent(Time(2), NodeId(3), &sent(2, token(2, 0, 15))).unwrap();
    }

    #[test]
    fn a_wait_beyond_the_bound_is_seen_while_it_lasts_and_when_it_ends() {
        let bound = Duration::from_millis(1);
        let late = Time::ZERO + bound * 2;
        let mut wait = three(4);
        wait.timed(Some(bound));
        wait.sent(Time::ZERO, NodeId(1), &sent(3, Message::Want(Want { ring: RING }))).unwrap();
        assert!(wait.finish(Time::ZERO + bound).is_ok());
        assert!(wait.finish(late).is_err());
        assert!(wait.sent(late, NodeId(1), &sent(3, token(7, 0, 0))).is_err());
        assert!(wait.finish(late).is_ok(), "it has it");
    }
}
