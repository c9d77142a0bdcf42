//! Limits of a check.

/// Limits of the search of one object.
///
/// The problem is NP-complete (Gibbons and Korach, *Testing Shared Memories*, 1997), so some
/// history takes longer than anybody waits. A search that reaches a limit reports it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Executions of a call by the model: some tens of nanoseconds each where states are small.
    pub steps: u64,
    /// Pairs of operations done and state that are remembered: some 50 bytes each.
    pub configurations: usize,
}

impl Default for Limits {
    /// Some seconds, and some 100 MB.
    fn default() -> Self {
        Limits { steps: 20_000_000, configurations: 2_000_000 }
    }
}
