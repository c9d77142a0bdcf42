//! How long a cell's ring takes, where nothing else is broken: that is what the world `forest` takes
//! for granted of all its rings.

use engine::Event;
use wire::system::CELL_ID;
use wire::{Duration, Member, Time};

use super::{Gaps, Open};
use crate::check::Verdict;
use crate::check::licence::{Gap, within};
use crate::cluster::Cluster;
use crate::strike::Strike;

/// After something has happened to the ring, it is left alone for so long before it is measured.
const REST: Duration = Duration::from_millis(250);

impl Cluster {
    /// Three nodes or more, a network that only takes time, memory alone, a token that rests: what
    /// the model is of.
    fn is_as_modelled(&self) -> bool {
        let weather = self.options.weather;
        let is_plain = self.options.disks.is_none() && self.options.parking;
        is_plain && weather == weather.calm() && self.options.nodes > 2
    }

    /// Nothing has happened to the ring for a while, and nothing is amiss.
    fn is_at_rest(&self, gaps: &Gaps) -> bool {
        self.is_as_modelled()
            && self.fabric.now().since(gaps.disturbed) > REST
            && self.is_whole()
            && self.is_one_ring()
    }

    /// A fault strikes.
    pub(in crate::cluster) fn begin_gap(&mut self, fault: &Strike) {
        let Some(celling) = &self.celling else { return };
        let all_run = self.fabric.hosts.iter().all(|host| host.runs());
        let is_measured = all_run && self.is_at_rest(&celling.gaps);
        let of = match fault {
            Strike::End { node, power: false } => Some((Gap::Killed, *node)),
            Strike::End { node, power: true } | Strike::Pause(node) => Some((Gap::Silent, *node)),
            _ => None,
        };
        let since = self.fabric.now();
        let open = of.filter(|_| is_measured).map(|(gap, node)| {
            let member = self.fabric.member(node);
            Open { gap, since, member }
        });
        self.disturb(open);
    }

    /// A node has started.
    pub(in crate::cluster) fn begin_join(&mut self, node: usize) {
        let Some(celling) = &self.celling else { return };
        let all_run = self.fabric.hosts.iter().all(|host| host.runs());
        // It is in no ring yet, and the others are in one.
        let others: Vec<_> = (0..self.options.nodes).filter(|other| *other != node).collect();
        let rings = others.iter().filter_map(|other| {
            let ring = self.fabric.hosts[*other].process.as_ref()?.ring_status();
            (ring.state == "operational" && ring.members.len() == others.len()).then_some(ring.id)
        });
        let rings: Vec<_> = rings.collect();
        let is_one = rings.len() == others.len() && rings.iter().all(|ring| *ring == rings[0]);
        let rests = self.fabric.now().since(celling.gaps.disturbed) > REST;
        let is_measured = others.len() > 1 && all_run && is_one && rests;
        let is_measured = is_measured && self.is_as_modelled() && self.is_whole();
        let (since, member) = (self.fabric.now(), self.fabric.member(node));
        self.disturb(is_measured.then_some(Open { gap: Gap::Joined, since, member }));
    }

    /// Something happens to the ring.
    pub(in crate::cluster) fn disturb_gap(&mut self) {
        self.disturb(None);
    }

    fn disturb(&mut self, open: Option<Open>) {
        let now = self.fabric.now();
        if let Some(celling) = &mut self.celling {
            (celling.gaps.disturbed, celling.gaps.open) = (now, open);
        }
    }

    /// A node has installed a view of the book's group: with it a gap is over for that node.
    pub(super) fn end_gap(&mut self, by: Member, event: &Event) -> Verdict {
        let Event::View { group: CELL_ID, replicas, .. } = event else { return Ok(()) };
        let now = self.fabric.now();
        let celling = self.celling.as_mut().expect("it has a book");
        let Some(Open { gap, since, member }) = &celling.gaps.open else { return Ok(()) };
        let is_in = replicas.iter().any(|(replica, synced)| replica == member && *synced);
        let is_over = is_in == (*gap == Gap::Joined);
        if !is_over || (by == *member && *gap != Gap::Joined) {
            return Ok(());
        }
        let (gap, took) = (*gap, now.since(*since));
        celling.gaps.measured += 1;
        self.fabric.say(|| format!("GAP {gap:?} {took:?} at {by}"));
        within(gap, took)
    }

    /// A command was ordered, and took so long.
    pub(super) fn ordered(&mut self, node: usize, since: Time) -> Verdict {
        let now = self.fabric.now();
        let celling = self.celling.as_ref().expect("it has a book");
        let rests = celling.gaps.disturbed + REST < since && self.is_at_rest(&celling.gaps);
        if !rests || self.fabric.hosts.iter().any(|host| !host.runs()) {
            return Ok(());
        }
        let took = now.since(since);
        self.fabric.say(|| format!("GAP {:?} {took:?} at {node}", Gap::Ordered));
        self.celling.as_mut().expect("it was there").gaps.measured += 1;
        within(Gap::Ordered, took)
    }
}
