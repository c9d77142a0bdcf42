//! A network that is bad in the same way all the time settles, and one that flaps changes the ring
//! ever more rarely.
//!
//! Source: docs/protocol/ring.md, "Merging" and "Holding off": rings merge only where that lasts,
//! and a node that is lost again and again is held off. Counted at each life: the changes of the
//! membership since the network's shape changed last. (After a false suspicion a ring of the same
//! members follows; no member is lost, and so none is held off.)

use wire::{Member, Time};

use super::hashed::HashMap;
use super::{Verdict, demand};

const PROPERTY: &str = "settling";

/// The most changes of the membership that a node of so many sees after the network has taken a
/// shape that it keeps: it loses each of the others once at most, and finds each again once at
/// most.
pub fn most(nodes: usize) -> usize {
    2 * nodes
}

/// Changes of the membership since the network's shape changed.
#[derive(Clone, Default)]
pub struct Settling {
    rings: HashMap<Member, Vec<Member>>,
    counts: HashMap<Member, usize>,
    last: Option<(Member, Time)>,
}

impl Settling {
    /// The network takes another shape.
    pub fn shaped(&mut self) {
        self.counts.clear();
        self.last = None;
    }

    /// A node delivers a regular configuration.
    pub fn configured(&mut self, by: Member, members: &[Member], now: Time) {
        self.last = Some((by, now));
        if self.rings.get(&by).map(Vec::as_slice) != Some(members) {
            self.rings.insert(by, members.to_vec());
            *self.counts.entry(by).or_default() += 1;
        }
    }

    /// No life has seen more than so many.
    pub fn few(&self, most: usize) -> Verdict {
        let worst = self.counts.iter().max_by_key(|(member, count)| (**count, **member));
        let count = worst.map_or(0, |(_, count)| *count);
        demand(count <= most, PROPERTY, || {
            format!("{worst:?} changes since the network took this shape, the bound is {most}")
        })
    }

    /// No configuration has come since then, of the same members or others.
    pub fn quiet_since(&self, since: Time) -> Verdict {
        let late = self.last.filter(|(_, at)| *at > since);
        demand(late.is_none(), PROPERTY, || {
            format!("the network has not changed, and the ring still does: {late:?}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evs::samples::member;

    #[test]
    fn too_many_and_too_late_are_seen() {
        let mut settling = Settling::default();
        for at in 1..=3 {
            let ring = [member(1), member(at as u32 + 1)];
            settling.configured(member(1), &ring, Time(at));
            settling.configured(member(2), &ring, Time(at));
        }
        settling.configured(member(1), &[member(1), member(4)], Time(3));
        assert!(settling.few(3).is_ok() && settling.few(2).is_err());
        assert!(settling.quiet_since(Time(3)).is_ok());
        assert!(settling.quiet_since(Time(2)).is_err());
        settling.shaped();
        assert!(settling.few(0).is_ok() && settling.quiet_since(Time(0)).is_ok());
    }
}
