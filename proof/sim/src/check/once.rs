//! No request is executed twice in a group's history.
//!
//! Source: docs/protocol/group.md, "Requests": (client, number) is executed once, whatever is
//! retried or ordered again; sessions travel with the state.

use super::hashed::{HashMap, HashSet};

use wire::{ClientId, GroupId, Member};

use super::{Verdict, demand};
use crate::service::Entry;

const PROPERTY: &str = "none executed twice";

/// The calls in each replica's history.
#[derive(Clone, Default)]
pub struct Once {
    histories: HashMap<(Member, GroupId), HashSet<(ClientId, u64)>>,
}

impl Once {
    /// A replica executes a call.
    pub fn executed(&mut self, by: Member, group: GroupId, entry: &Entry) -> Verdict {
        let history = self.histories.entry((by, group)).or_default();
        demand(history.insert((entry.client, entry.number)), PROPERTY, || {
            let Entry { client, number, .. } = entry;
            format!("{by} executes call {number} of {client} in {group} again")
        })
    }

    /// A replica's history is now this one: a transferred state, or none.
    pub fn replaced(&mut self, by: Member, group: GroupId, history: &[Entry]) -> Verdict {
        self.histories.insert((by, group), HashSet::default());
        history.iter().try_for_each(|entry| self.executed(by, group, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, MethodId, NodeId, Time};

    #[test]
    fn a_repetition_is_seen_also_across_a_transfer() {
        let by = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let group = GroupId(1);
        let entry = |number| {
            let (time, method) = (Time(0), MethodId(1));
            Entry {
                client: ClientId(1),
                number,
                time,
                random: 0,
                method,
                body: 0,
                filling: 0,
                came: 0,
            }
        };
        let mut once = Once::default();
        once.executed(by, group, &entry(1)).unwrap();
        assert!(once.executed(by, group, &entry(1)).is_err());
        once.replaced(by, group, &[entry(2), entry(3)]).unwrap();
        once.executed(by, group, &entry(1)).unwrap();
        assert!(once.executed(by, group, &entry(3)).is_err());
        assert!(once.replaced(by, group, &[entry(4), entry(4)]).is_err());
    }
}
