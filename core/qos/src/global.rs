//! Processors that share one queue of deadlines and cannot be partitioned, as SCHED_DEADLINE has
//! them outside exclusive control groups.

use wire::Share;

use crate::Task;

/// All tasks are in time on so many processors, earliest deadline first (Goossens, Funk and Baruah,
/// 2003, with densities for deadlines within the period): the sum of densities is at most M less
/// (M - 1) times the largest.
///
/// `taken` is the share of each processor that another task of the class has: Linux's server for
/// ordinary tasks has 5 %. The bound is sufficient, not exact: no exact test for many processors
/// ends in time.
pub fn admits(tasks: &[Task], processors: u32, taken: Share) -> bool {
    let densities = || tasks.iter().map(Task::density);
    let Some(largest) = densities().max() else { return true };
    if processors == 0 || largest > Share::ONE {
        return false;
    }
    let whole = |each: Share, count: u32| u128::from(each.0) * u128::from(count);
    let sum: u128 = densities().map(|density| u128::from(density.0)).sum();
    let bound = whole(Share::ONE, processors)
        .checked_sub(whole(largest.max(taken), processors - 1) + whole(taken, processors));
    bound.is_some_and(|bound| sum <= bound)
}
