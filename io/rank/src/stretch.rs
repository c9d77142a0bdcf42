//! Stretches of memory.

use wire::rank::PAGE;

/// Whole pages of an arena, from its beginning. Only a [`Tracker`](crate::Tracker) makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    from: u64,
    to: u64,
}

impl Stretch {
    pub(crate) fn new(from: u64, to: u64) -> Stretch {
        Stretch { from, to }
    }

    /// The first byte.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// The first byte behind it.
    pub fn to(&self) -> u64 {
        self.to
    }
}

/// Adds a stretch that begins no earlier than the last one, together with that one if they touch.
pub(crate) fn add(stretches: &mut Vec<Stretch>, next: Stretch) {
    match stretches.last_mut() {
        Some(last) if next.from <= last.to => last.to = last.to.max(next.to),
        _ => stretches.push(next),
    }
}

/// The stretches of two lists, each in order.
pub(crate) fn union(one: &[Stretch], other: &[Stretch]) -> Vec<Stretch> {
    let mut all = [one, other].concat();
    all.sort_unstable_by_key(|stretch| stretch.from);
    let mut stretches = Vec::with_capacity(all.len());
    all.into_iter().for_each(|next| add(&mut stretches, next));
    stretches
}

/// The same stretches, by larger pages: fewer of them, and more bytes.
pub(crate) fn coarsen(stretches: &[Stretch], grain: u64) -> Vec<Stretch> {
    let mut coarse = Vec::new();
    for stretch in stretches {
        let (from, to) = (stretch.from / grain * grain, stretch.to.next_multiple_of(grain));
        add(&mut coarse, Stretch::new(from, to));
    }
    coarse
}

/// The pages of a ring in which these bytes lie.
pub(crate) fn in_ring(capacity: u64, before: u64, written: u64) -> Vec<(u64, u64)> {
    if before == written {
        return Vec::new();
    }
    let within = |place: u64| place & (capacity - 1);
    let from = within(before) & !(PAGE - 1);
    let to = (within(written - 1) & !(PAGE - 1)) + PAGE;
    let around = before / capacity != (written - 1) / capacity;
    match around {
        _ if written - before >= capacity => vec![(0, capacity)],
        false => vec![(from, to)],
        true if to >= from => vec![(0, capacity)],
        true => vec![(0, to), (from, capacity)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_that_was_written_has_changed() {
        const CAPACITY: u64 = 4 * PAGE;
        for before in (0..2 * CAPACITY).step_by(992) {
            for written in (before..=before + CAPACITY).step_by(1_024) {
                let stretches = in_ring(CAPACITY, before, written);
                let end = stretches.iter().fold(0, |last, (from, to)| {
                    assert!(last <= *from && from < to && to.is_multiple_of(PAGE));
                    *to
                });
                assert!(end <= CAPACITY);
                for byte in (before..written).step_by(32) {
                    let within = byte % CAPACITY;
                    let saved = stretches.iter().any(|(from, to)| (*from..*to).contains(&within));
                    assert!(saved, "{byte} of {before} to {written}: {stretches:?}");
                }
            }
        }
    }
}
