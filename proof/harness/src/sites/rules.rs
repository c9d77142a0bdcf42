//! The rules for packets between sites: which pass, and after how long.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

/// The rules in force, and what has passed.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// One way, for every packet.
    pub delay: Duration,
    /// Pairs of sites between which nothing passes, the smaller number first.
    pub cut: BTreeSet<(usize, usize)>,
    /// The same of hosts.
    pub links: BTreeSet<(Ipv4Addr, Ipv4Addr)>,
    /// Hosts that have lost the way out of their site.
    pub away: BTreeSet<Ipv4Addr>,
    /// Packets that have passed, by who sent them to whom.
    pub passed: BTreeMap<(Ipv4Addr, Ipv4Addr), u64>,
}

/// The ends of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
}

impl Ends {
    /// Those of a packet of IPv4.
    pub fn of(packet: &[u8]) -> Option<Ends> {
        let address = |at: usize| {
            let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
            Some(Ipv4Addr::from(bytes))
        };
        (packet.first()? >> 4 == 4).then_some(())?;
        Some(Ends { from: address(12)?, to: address(16)? })
    }

    /// The sites, by the addresses.
    pub fn sites(self) -> (usize, usize) {
        (site(self.from), site(self.to))
    }
}

/// The site of an address, counted from 0.
pub fn site(address: Ipv4Addr) -> usize {
    usize::from(address.octets()[2]).wrapping_sub(1)
}

impl Rules {
    /// Whether a packet passes.
    pub fn pass(&self, ends: Ends) -> bool {
        let (a, b) = ends.sites();
        let Ends { from, to } = ends;
        !self.cut.contains(&(a.min(b), a.max(b)))
            && !self.links.contains(&(from.min(to), from.max(to)))
            && !self.away.contains(&from)
            && !self.away.contains(&to)
    }

    /// A packet has passed.
    pub fn count(&mut self, ends: Ends) {
        *self.passed.entry((ends.from, ends.to)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45; 12];
        packet.extend(from);
        packet.extend(to);
        packet
    }

    #[test]
    fn a_cut_is_for_both_ways_and_other_pairs_go_on() {
        let there = Ends::of(&packet([10, 78, 1, 1], [10, 78, 3, 2])).unwrap();
        assert_eq!(there.sites(), (0, 2));
        let back = Ends { from: there.to, to: there.from };
        let other = Ends { from: there.from, to: [10, 78, 2, 2].into() };
        let mut rules = Rules::default();
        assert!([there, back, other].into_iter().all(|ends| rules.pass(ends)));
        rules.cut.insert((0, 2));
        assert_eq!([there, back, other].map(|ends| rules.pass(ends)), [false, false, true]);
        rules.cut.clear();
        rules.away.insert(other.to);
        assert_eq!([there, back, other].map(|ends| rules.pass(ends)), [true, true, false]);
        rules.away.clear();
        rules.links.insert((other.from, other.to));
        assert_eq!([there, back, other].map(|ends| rules.pass(ends)), [true, true, false]);
    }

    #[test]
    fn what_is_no_packet_of_ipv4_has_no_ends() {
        assert_eq!(Ends::of(&[]), None);
        assert_eq!(Ends::of(&[0x45; 19]), None);
        assert_eq!(Ends::of(&[0x60; 40]), None);
    }
}
