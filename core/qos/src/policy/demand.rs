//! Earliest deadline first on one processor, exact: the demand of every span is at most the span.
//!
//! The demand of a span of length t is the cost of all releases that begin and are due within it,
//! where all tasks begin at once: h(t) = sum of floor((t + period - deadline) / period) * cost
//! (Baruah, Rosier and Howell, 1990). Only spans within the first busy period matter, and of those
//! few: the search goes from the longest downwards (*QPA*: Zhang and Burns, 2009).

use alloc::vec::Vec;

use wire::Share;

use crate::Task;
use crate::task::Nanos;

/// Steps of both searches; a set that needs more is refused. Random sets of 64 tasks take some
/// tens.
const EFFORT: usize = 100_000;

/// All tasks are in time at this speed. Their use is at most the speed: the caller has looked.
pub(super) fn is_met(tasks: &[Task], speed: Share) -> bool {
    let tasks: Vec<Nanos> = tasks.iter().map(|task| task.at(speed)).collect();
    if tasks.iter().all(|task| task.deadline == task.period) {
        return tasks.iter().all(|task| task.cost <= task.deadline);
    }
    let Some(shortest) = tasks.iter().map(|task| task.deadline).min() else { return true };
    let Some(end) = busy_period(&tasks) else { return false };
    let Some(mut span) = last_due(&tasks, end.saturating_add(1)) else { return true };
    for _ in 0..EFFORT {
        let demand = demand(&tasks, span);
        if demand > span {
            return false;
        }
        if demand <= shortest {
            return true;
        }
        span = match last_due(&tasks, span) {
            Some(due) if demand == span => due,
            None => return true,
            Some(_) => demand,
        };
    }
    false
}

/// The time until the processor is idle first, if all tasks begin at once.
fn busy_period(tasks: &[Nanos]) -> Option<u128> {
    let mut busy = tasks.iter().fold(0, |sum: u128, task| sum.saturating_add(task.cost));
    for _ in 0..EFFORT {
        let next = tasks.iter().fold(0, |sum: u128, task| {
            sum.saturating_add(busy.div_ceil(task.period).saturating_mul(task.cost))
        });
        if next == busy {
            return Some(busy);
        }
        busy = next;
    }
    None
}

fn demand(tasks: &[Nanos], span: u128) -> u128 {
    tasks.iter().fold(0, |sum: u128, task| {
        let due = (span + task.period).saturating_sub(task.deadline) / task.period;
        sum.saturating_add(due.saturating_mul(task.cost))
    })
}

/// The last time before `end` at which something is due.
fn last_due(tasks: &[Nanos], end: u128) -> Option<u128> {
    let before = |task: &Nanos| {
        let left = end.checked_sub(task.deadline + 1)?;
        Some(left / task.period * task.period + task.deadline)
    };
    tasks.iter().filter_map(before).max()
}
