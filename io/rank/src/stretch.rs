//! Stretches of memory.

/// Bytes of an arena, from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub from: u64,
    /// The first behind it.
    pub to: u64,
}

/// Adds a stretch, together with the last one if it follows it.
pub(crate) fn add(stretches: &mut Vec<Stretch>, next: Stretch) {
    match stretches.last_mut() {
        Some(last) if last.to == next.from => last.to = next.to,
        _ => stretches.push(next),
    }
}
