//! One node's end of an ideal order: what comes to it, and when, the explorer decides.
//!
//! It keeps the promises of [`Ordering`], and nothing happens in it by itself. What the explorer
//! tells it comes as an [`Input`] in the bytes of a datagram; what it wants leaves as one, too. So
//! the stack above is driven as by any other engine, and a copy of it is a copy of all its state.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use engine::Route;
use engine::ordering::{
    Configuration, ConfigurationKind, Delivery, Level, Ordering, Output, Refused,
};
use wire::limits::MAX_MESSAGE;
use wire::{Incarnation, Malformed, Member, NodeId, NodeSet, Payload, RingId, Time};

/// One node's end.
#[derive(Clone, Debug)]
pub struct Ideal {
    me: Member,
    ring: RingId,
    members: Vec<Member>,
    /// How far each member is known to be in the order, and with its disk.
    reached: BTreeMap<Member, u64>,
    stored: BTreeMap<Member, u64>,
    /// The last report of what is held by a majority, and by all.
    held: (u64, u64),
    ready: VecDeque<Output>,
    left: bool,
}

/// A report of the explorer to one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The next message.
    Deliver(Delivery),
    /// The next configuration.
    Configuration(Configuration),
    /// A member of the present configuration is so far in the order, and with its disk.
    Knows { member: Member, reached: u64, stored: u64 },
}

/// A request of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// That this message gets a place in the order.
    Order(Level, Bytes),
    /// That others learn how far its disk is in this configuration.
    TellStored(RingId, u64),
    /// To leave.
    Leave,
}

/// Any input as plain data: kind, ring, numbers, member, level, members, bytes.
type Plain = (u8, (u64, u32), (u64, u64), (u32, u64), u8, Vec<(u32, u64)>, Vec<u8>);

impl Input {
    /// The bytes of a datagram.
    pub fn encode(&self) -> Bytes {
        let ring = |ring: RingId| (ring.sequence, ring.representative.0);
        let plain: Plain = match self {
            Input::Deliver(it) => (
                u8::from(it.contiguous),
                ring(it.ring),
                (it.sequence, 0),
                of(it.sender),
                byte(it.level),
                Vec::new(),
                it.payload.to_vec(),
            ),
            Input::Configuration(it) => (
                2 + u8::from(it.kind == ConfigurationKind::Regular),
                ring(it.ring),
                (0, 0),
                (0, 0),
                0,
                it.members.iter().map(|member| of(*member)).collect(),
                Vec::new(),
            ),
            Input::Knows { member, reached, stored } => {
                (4, (0, 0), (*reached, *stored), of(*member), 0, Vec::new(), Vec::new())
            }
        };
        postcard::to_extend(&plain, Vec::new()).expect("plain data").into()
    }

    fn decode(bytes: &[u8]) -> Option<Input> {
        let (kind, (sequence, node), (one, two), member, level, members, payload) =
            postcard::from_bytes::<Plain>(bytes).ok()?;
        let ring = RingId { sequence, representative: NodeId(node) };
        Some(match kind {
            0 | 1 => Input::Deliver(Delivery {
                ring,
                sequence: one,
                contiguous: kind == 1,
                sender: named(member),
                level: level_of(level),
                payload: payload.into(),
            }),
            2 | 3 => Input::Configuration(Configuration {
                kind: match kind {
                    2 => ConfigurationKind::Transitional,
                    _ => ConfigurationKind::Regular,
                },
                ring,
                members: members.into_iter().map(named).collect(),
            }),
            _ => Input::Knows { member: named(member), reached: one, stored: two },
        })
    }
}

impl Wish {
    /// Returns the meaning of a datagram of an end.
    pub fn decode(bytes: &Bytes) -> Wish {
        match bytes[0] {
            3 => {
                let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8"));
                let representative = NodeId(word(9) as u32);
                Wish::TellStored(RingId { sequence: word(1), representative }, word(17))
            }
            4 => Wish::Leave,
            level => Wish::Order(level_of(level), bytes.slice(1..)),
        }
    }
}

fn of(member: Member) -> (u32, u64) {
    (member.node.0, member.incarnation.0)
}

fn named((node, life): (u32, u64)) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(life) }
}

fn byte(level: Level) -> u8 {
    match level {
        Level::Agreed => 0,
        Level::Held => 1,
        Level::Safe => 2,
    }
}

fn level_of(byte: u8) -> Level {
    [Level::Agreed, Level::Held, Level::Safe][usize::from(byte.min(2))]
}

impl Ideal {
    /// The end of this life, which is in no configuration yet.
    pub fn new(me: Member) -> Ideal {
        Ideal {
            me,
            ring: RingId { sequence: 0, representative: me.node },
            members: vec![me],
            reached: BTreeMap::new(),
            stored: BTreeMap::new(),
            held: (0, 0),
            ready: VecDeque::new(),
            left: false,
        }
    }

    fn wish(&mut self, datagram: Vec<u8>) {
        let datagram = datagram.into();
        self.ready.push_back(Output::Send { to: NodeSet::default(), datagram, route: Route::Best });
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Deliver(delivery) => self.ready.push_back(Output::Deliver(delivery)),
            Input::Configuration(configuration) => {
                if configuration.kind == ConfigurationKind::Regular {
                    self.ring = configuration.ring;
                    self.members.clone_from(&configuration.members);
                    self.reached.clear();
                    self.stored.clear();
                    self.held = (0, 0);
                }
                self.ready.push_back(Output::Configuration(configuration));
            }
            Input::Knows { member, reached, stored } => {
                self.reached.insert(member, reached);
                let ring = self.ring;
                let mut all: Vec<u64> = self.members.iter().map(|it| self.of(*it)).collect();
                all.sort_unstable();
                let (least, majority) = (all[0], all[(all.len() - 1) / 2]);
                self.held = (majority, least);
                self.ready.push_back(Output::Held { ring, majority, all: least });
                if stored > self.stored.insert(member, stored).unwrap_or_default() {
                    self.ready.push_back(Output::Stored { ring });
                }
            }
        }
    }

    fn of(&self, member: Member) -> u64 {
        self.reached.get(&member).copied().unwrap_or_default()
    }
}

impl Ordering for Ideal {
    fn handle_datagram(&mut self, _: Time, bytes: &Bytes) -> Result<(), Malformed> {
        let input = Input::decode(bytes).ok_or(Malformed::Magic)?;
        self.take(input);
        Ok(())
    }

    fn handle_unreachable(&mut self, _: Time, _: NodeId) {}

    fn handle_timeout(&mut self, _: Time) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn multicast(&mut self, _: Time, payload: Payload, level: Level) -> Result<(), Refused> {
        if self.left {
            return Err(Refused::Left);
        }
        if payload.len() > MAX_MESSAGE {
            return Err(Refused::TooLarge(payload.len()));
        }
        let mut datagram = vec![byte(level)];
        datagram.extend_from_slice(&payload.whole());
        self.wish(datagram);
        Ok(())
    }

    fn confirm(&mut self, _: Time) -> Option<u64> {
        None
    }

    fn leave(&mut self, _: Time) {
        self.left = true;
        self.wish(vec![4]);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    fn id(&self) -> RingId {
        self.ring
    }

    fn members(&self) -> &[Member] {
        &self.members
    }

    fn reached(&self, ring: RingId, member: Member) -> u64 {
        if ring == self.ring && self.members.contains(&member) { self.of(member) } else { 0 }
    }

    fn stored(&self, ring: RingId, member: Member) -> u64 {
        let known = ring == self.ring && self.members.contains(&member);
        self.stored.get(&member).copied().filter(|_| known).unwrap_or_default()
    }

    fn reached_before(&self, _: RingId, _: Member) -> u64 {
        0 // only reads ask for it, and no world has any
    }

    fn stored_before(&self, _: RingId, _: Member) -> u64 {
        0
    }

    fn tell_stored(&mut self, _: Time, ring: RingId, upto: u64) {
        if ring != self.ring {
            return;
        }
        let own = self.stored.entry(self.me).or_default();
        *own = (*own).max(upto);
        let words = [ring.sequence, u64::from(ring.representative.0), upto];
        let datagram = [3].into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes));
        self.wish(datagram.collect());
    }

    fn ask_stored(&mut self, _: Time) {
        // A report is not lost here.
    }

    fn state_name(&self) -> &'static str {
        if self.left { "left" } else { "operational" }
    }

    fn queued(&self) -> usize {
        0
    }

    fn check_invariants(&self) {
        assert!(self.members.contains(&self.me));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_come_through_as_bytes() {
        let ring = RingId { sequence: 7, representative: NodeId(2) };
        let member = named((3, 9));
        let delivery = |contiguous| Delivery {
            ring,
            sequence: 5,
            contiguous,
            sender: member,
            level: Level::Safe,
            payload: "abc".into(),
        };
        let configuration =
            |kind| Configuration { kind, ring, members: vec![named((1, 1)), member] };
        for input in [
            Input::Deliver(delivery(true)),
            Input::Deliver(delivery(false)),
            Input::Configuration(configuration(ConfigurationKind::Regular)),
            Input::Configuration(configuration(ConfigurationKind::Transitional)),
            Input::Knows { member, reached: 4, stored: 3 },
        ] {
            assert_eq!(Input::decode(&input.encode()), Some(input));
        }
    }

    #[test]
    fn what_an_end_knows_of_the_others_is_reported_as_held() {
        let members: Vec<Member> = (1..=3).map(|node| named((node, 1))).collect();
        let mut end = Ideal::new(members[0]);
        let ring = RingId { sequence: 1, representative: NodeId(1) };
        let kind = ConfigurationKind::Regular;
        end.take(Input::Configuration(Configuration { kind, ring, members: members.clone() }));
        let held = |end: &mut Ideal, member: usize, reached| {
            end.take(Input::Knows { member: members[member], reached, stored: 0 });
            end.held
        };
        assert_eq!(held(&mut end, 0, 4), (0, 0));
        assert_eq!(held(&mut end, 1, 3), (3, 0));
        assert_eq!(held(&mut end, 2, 2), (3, 2));
        assert_eq!(end.reached(ring, members[2]), 2);
        assert_eq!(end.reached(RingId::default(), members[2]), 0);
    }

    #[test]
    fn what_an_end_wants_comes_out_as_bytes() {
        let mut end = Ideal::new(named((2, 1)));
        end.multicast(Time(0), "x".into(), Level::Safe).unwrap();
        end.tell_stored(Time(0), end.ring, 6);
        end.leave(Time(0));
        let mut wishes = std::iter::from_fn(|| end.poll_output()).map(|output| match output {
            Output::Send { datagram, .. } => Wish::decode(&datagram),
            other => panic!("{other:?}"),
        });
        assert_eq!(wishes.next(), Some(Wish::Order(Level::Safe, "x".into())));
        assert!(matches!(wishes.next(), Some(Wish::TellStored(_, 6))));
        assert_eq!(wishes.next(), Some(Wish::Leave));
    }
}
