//! Which processor of a host serves which task.
//!
//! Each task gets one processor, because a thread runs on one at a time. Tasks are placed in falling
//! order of use, each on the first processor that passes the test with it (*first fit*). Where that
//! fails, a bounded search looks for another way.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use wire::Share;

use crate::policy::relative;
use crate::{Policy, Task};

/// Tests of one processor that a search may cost. First fit alone fails for about one set in fifty
/// that has a solution, and a search of this length for hardly any.
const EFFORT: usize = 400;

/// More processors are not counted: no host of today has them.
const MAX_PROCESSORS: u64 = 1_024;

impl Policy {
    /// The overload of a host, in millionths of its capacity: zero if each task has a processor
    /// that serves it in time.
    ///
    /// The capacity is so many whole processors and a rest, which counts as a slower one. Work
    /// without a period takes the share `other`, spread over all of them.
    pub fn excess(self, tasks: &[Task], other: Share, capacity: Share) -> Share {
        if capacity <= Share::ONE {
            return self.overload(tasks, other, capacity);
        }
        let mut host = Host::new(self, other, capacity);
        let order = by_use(tasks);
        let too_much =
            (tasks.iter().map(Task::share).sum::<Share>() + other).saturating_sub(capacity);
        if too_much == Share::ZERO && host.search(tasks, &order, &mut { EFFORT }) {
            return Share::ZERO;
        }
        // A task that fits nowhere goes where it does least harm.
        let mut host = Host::new(self, other, capacity);
        for task in order {
            host.place_somewhere(tasks[task]);
        }
        host.overload().max(relative(too_much, capacity))
    }

    /// All are in time.
    pub fn admits(self, tasks: &[Task], other: Share, capacity: Share) -> bool {
        self.excess(tasks, other, capacity) == Share::ZERO
    }

    /// The processor of each task, if all are in time.
    pub fn fit(self, tasks: &[Task], other: Share, capacity: Share) -> Option<Vec<usize>> {
        let mut host = Host::new(self, other, capacity);
        host.search(tasks, &by_use(tasks), &mut { EFFORT }).then(|| {
            let mut places = vec![0; tasks.len()];
            for (processor, one) in host.processors.iter().enumerate() {
                one.places.iter().for_each(|task| places[*task] = processor);
            }
            places
        })
    }
}

/// The tasks' places in falling order of use.
fn by_use(tasks: &[Task]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|task| (Reverse(tasks[*task].share()), *task));
    order
}

/// A host while its tasks are placed.
struct Host {
    policy: Policy,
    processors: Vec<Processor>,
}

struct Processor {
    capacity: Share,
    other: Share,
    tasks: Vec<Task>,
    /// Each task's place in the list of all.
    places: Vec<usize>,
}

impl Host {
    fn new(policy: Policy, other: Share, capacity: Share) -> Host {
        let rest = Share(capacity.0 % Share::ONE.0);
        let mut shares = vec![Share::ONE; (capacity.0 / Share::ONE.0).min(MAX_PROCESSORS) as usize];
        if rest > Share::ZERO || shares.is_empty() {
            shares.push(rest);
        }
        let part = |share: Share| match capacity.0 {
            0 => other,
            whole => {
                let part = u128::from(other.0) * u128::from(share.0);
                Share(part.div_ceil(u128::from(whole)) as u64)
            }
        };
        let processor = |share| Processor {
            capacity: share,
            other: part(share),
            tasks: Vec::new(),
            places: Vec::new(),
        };
        Host { policy, processors: shares.into_iter().map(processor).collect() }
    }

    /// Places the tasks that are left, or tells that the search found no way. The first way that it
    /// tries is first fit.
    fn search(&mut self, tasks: &[Task], left: &[usize], effort: &mut usize) -> bool {
        let Some((task, left)) = left.split_first() else { return true };
        let mut tried: Option<Share> = None;
        for place in 0..self.processors.len() {
            let processor = &mut self.processors[place];
            // All empty processors of one capacity are alike.
            if processor.tasks.is_empty()
                && tried.replace(processor.capacity) == Some(processor.capacity)
            {
                continue;
            }
            let Some(fewer) = effort.checked_sub(1) else { return false };
            *effort = fewer;
            processor.tasks.push(tasks[*task]);
            if processor.overload(self.policy) == Share::ZERO {
                processor.places.push(*task);
                if self.search(tasks, left, effort) {
                    return true;
                }
                self.processors[place].places.pop();
            }
            self.processors[place].tasks.pop();
        }
        false
    }

    /// Places a task on the first processor that serves it in time, else on the one whose overload
    /// grows least.
    fn place_somewhere(&mut self, task: Task) {
        let mut best: Option<(Share, usize)> = None;
        for (place, processor) in self.processors.iter_mut().enumerate() {
            let before = processor.weight(self.policy);
            processor.tasks.push(task);
            let after = processor.weight(self.policy);
            processor.tasks.pop();
            let growth = after.saturating_sub(before);
            if best.is_none_or(|(least, _)| growth < least) {
                best = Some((growth, place));
            }
            if after == Share::ZERO {
                break;
            }
        }
        if let Some((_, place)) = best {
            self.processors[place].tasks.push(task);
        }
    }

    fn overload(&self) -> Share {
        let capacity = self.processors.iter().map(|one| one.capacity).sum::<Share>();
        let weights = self.processors.iter().map(|one| one.weight(self.policy));
        relative(weights.sum(), capacity)
    }
}

impl Processor {
    fn overload(&self, policy: Policy) -> Share {
        policy.overload(&self.tasks, self.other, self.capacity)
    }

    /// The overload in time of one processor.
    fn weight(&self, policy: Policy) -> Share {
        let overload = u128::from(self.overload(policy).0) * u128::from(self.capacity.0);
        Share(
            u64::try_from(overload.div_ceil(u128::from(Share::ONE.0))).unwrap_or(u64::MAX / 1_024),
        )
    }
}
