//! Nothing is opened but what a node of the cluster sealed, for this node, in this life's time, and
//! once.
//!
//! Source: docs/protocol/seal.md, "Against whom" and "Opening": no message is delivered, and no
//! membership changes, because of what an outsider sends. The network itself could have delivered
//! everything that passes this checker.

use seal::Envelope;
use wire::{Member, Time};

use super::hashed::{HashMap, HashSet};
use super::{Verdict, demand};
use crate::trace::digest;

const PROPERTY: &str = "sealed datagrams";

/// All that was ever sealed, and the lives that opened it.
#[derive(Clone, Default)]
pub struct Sealed {
    genuine: HashMap<u64, Time>,
    opened: HashSet<(Member, u64)>,
    born: HashMap<Member, Time>,
}

impl Sealed {
    /// A life begins.
    pub fn born(&mut self, member: Member, now: Time) {
        self.born.insert(member, now);
    }

    /// A node seals these bytes.
    pub fn sealed(&mut self, now: Time, bytes: &[u8]) {
        self.genuine.insert(digest(bytes), now);
    }

    /// A node opens these bytes and gives what is in them to its ring.
    pub fn opened(&mut self, by: Member, bytes: &[u8]) -> Verdict {
        let name = digest(bytes);
        let envelope = Envelope::decode(bytes);
        let Some((&at, envelope)) = self.genuine.get(&name).zip(envelope) else {
            return demand(false, PROPERTY, || format!("{by} opens what nobody sealed"));
        };
        let Envelope { sender, to, counter, .. } = envelope;
        demand(to == Envelope::ALL || to == by.node, PROPERTY, || {
            format!("{by} opens #{counter} of {sender}, which is for node {to}")
        })?;
        demand(sender.node != by.node, PROPERTY, || format!("{by} opens what it sealed itself"))?;
        let born = self.born.get(&by).copied().unwrap_or_default();
        demand(at >= born, PROPERTY, || {
            format!("{by}, born at {born}, opens #{counter} of {sender}, sealed at {at}")
        })?;
        demand(self.opened.insert((by, name)), PROPERTY, || {
            format!("{by} opens #{counter} of {sender} a second time")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evs::samples::member;
    use wire::NodeId;

    fn sealed(by: u32, to: NodeId, counter: u64) -> Vec<u8> {
        let envelope = Envelope { key: 1, sender: member(by), salt: 5, to, counter };
        let mut bytes = envelope.encode().to_vec();
        bytes.resize(seal::OVERHEAD + 9, 7);
        bytes
    }

    #[test]
    fn what_is_invented_repeated_old_or_for_others_is_seen() {
        let mut check = Sealed::default();
        let (first, second) = (sealed(1, NodeId(2), 1), sealed(1, Envelope::ALL, 2));
        check.sealed(Time(10), &first);
        check.sealed(Time(20), &second);
        check.born(member(2), Time(5));
        check.opened(member(2), &first).unwrap();
        check.opened(member(2), &second).unwrap();
        assert!(check.opened(member(2), &first).is_err(), "twice");
        assert!(check.opened(member(2), &sealed(1, NodeId(2), 3)).is_err(), "nobody sealed it");
        assert!(check.opened(member(3), &first).is_err(), "for another");
        assert!(check.opened(member(1), &second).is_err(), "its own");
        check.born(member(3), Time(15));
        check.sealed(Time(12), &sealed(1, Envelope::ALL, 4));
        assert!(check.opened(member(3), &sealed(1, Envelope::ALL, 4)).is_err(), "before its time");
        check.opened(member(3), &second).unwrap();
    }
}
