//! Stretches of memory.

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
