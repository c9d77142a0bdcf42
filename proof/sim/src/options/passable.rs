//! A seed's draws must be possible: demands of time concern clusters that can meet them.

use wire::Duration;
use wire::limits::MAX_WAITING;
use wire::ordered::Style;

use super::{GroupPlan, Options};
use crate::cluster::DiskPlan;

/// Bytes that a datagram takes, about.
pub(super) const PAYLOAD: usize = 1_200;

/// A large state takes no longer, if nobody else sends: half of the time for which votes are
/// awaited.
const LONGEST_PASSAGE: Duration = Duration::from_millis(150);

/// The bytes that remain of a state that is too large.
const SMALL: usize = 1_000;

/// So many operations of a disk are a state and a new segment of the log.
const OPERATIONS: u32 = 16;

/// A disk that needs longer for them has calls wait.
const LONG: Duration = Duration::from_millis(100);

impl DiskPlan {
    /// Calls wait for states: the disk takes one after every few calls, and the log gets its next
    /// segment when that is done. With room for only a few calls at a time, the others wait too
    /// long.
    pub(super) fn is_behind(&self) -> bool {
        self.snapshot_after < 1_000 && self.slowest * OPERATIONS / 2 >= LONG
    }
}

impl GroupPlan {
    /// Where few calls at a time are taken, and each orders all of a large state, the others wait
    /// beyond their deadlines.
    pub(super) fn pass_with(&mut self, waiting: usize) {
        if waiting < MAX_WAITING {
            self.padding = self.padding.min(SMALL);
        }
    }
}

impl Options {
    /// How long it takes until a node has sent so many bytes by a token that circulates: a turn in
    /// a rotation.
    pub(super) fn passage(&self, bytes: usize) -> Duration {
        let rotations = bytes / (self.turn * PAYLOAD);
        self.weather.latency * (self.nodes * rotations) as u32
    }

    /// Nobody is to wait in vain.
    pub(super) fn passable(mut self) -> Options {
        for index in 0..self.groups.len() {
            // Two states of 100,000 bytes may need seven seconds. A passive group's primary sends
            // as much with each update: votes of its node, which wait behind that, would come too
            // late again and again.
            if self.passage(self.groups[index].padding) > LONGEST_PASSAGE {
                self.groups[index].padding = SMALL;
            }
            if self.groups[index].options.style == Style::WarmPassive {
                self.groups[index].pass_with(self.waiting);
            }
        }
        let slow = !self.parking && self.turn == 1;
        // A benchmark that leaves one datagram at a time keeps calls waiting beyond their
        // deadlines.
        let benches = self.benches && self.turn > 1;
        // A call keeps its place for as many rounds as it has datagrams, and others wait for that
        // beyond their deadlines. Where a replica hangs, so do the calls that its node has taken.
        let lies = self.groups.iter().any(|group| group.lies.is_some());
        let waiting = if slow || lies { self.waiting.max(8) } else { self.waiting };
        let weather = if slow { self.weather.near() } else { self.weather };
        Options { weather, benches, waiting, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;
    use crate::options::World;

    /// Seed 397 of decay had disks that took up to 20 ms for each operation, and gave a state after
    /// three records.
    #[test]
    fn where_few_calls_wait_a_slow_disk_has_no_large_states_to_take() {
        let drawn = |seed| Options::draw(&mut Draw::new(seed), World::Decay);
        let is_slow = |options: &Options| options.disks.is_some_and(|plan| plan.is_behind());
        let slow: Vec<Options> = (0..2_000).map(drawn).filter(is_slow).collect();
        let (few, many): (Vec<_>, Vec<_>) = slow.iter().partition(|it| it.waiting < MAX_WAITING);
        let large = |options: &&&Options| options.groups.iter().any(|it| it.padding > SMALL);
        assert_eq!(few.iter().filter(large).count(), 0);
        assert!(few.len() > 20 && many.iter().filter(large).count() > 20);
    }

    /// Seed 58990 had seven nodes, turns of four datagrams, and 2.5 ms from one to the next.
    #[test]
    fn a_slow_ring_has_no_large_states_to_carry() {
        let drawn = |seed| Options::draw(&mut Draw::new(seed), World::Cluster);
        let mut large = 0;
        for options in (0..2_000).map(drawn) {
            for group in options.groups.iter().filter(|group| group.padding > SMALL) {
                assert!(options.passage(group.padding) <= LONGEST_PASSAGE, "{options:?}");
                large += 1;
            }
        }
        assert!(large > 500, "others have: {large}");
        let slow = Options { nodes: 7, turn: 4, ..drawn(0) };
        let weather =
            crate::network::Weather { latency: Duration::from_micros(2_500), ..slow.weather };
        let slow = Options { weather, ..slow };
        assert_eq!(slow.passage(100_000), Duration::from_micros(20 * 7 * 2_500));
    }
}
