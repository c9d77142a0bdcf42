//! The data plane's reserved time follows its use.

use engine::ReserveNews;
use os::clock::used_by_thread;
use os::realtime::{Grant, Realtime, reserve};
use qos::learn::{Change, Learner};
use qosd::{Keeper, Standing};
use wire::{Duration, Time};

use super::reserve::wanted;

/// The daemon answers within milliseconds. Its answer is looked for this often.
const GLANCE: Duration = Duration::from_millis(100);

/// The reserve of the calling thread, as it learns.
pub(super) struct Learning {
    learner: Learner,
    /// A request to the daemon. Nothing is learned until it is answered.
    asking: Option<Asking>,
}

/// A request that the daemon has yet to answer.
struct Asking {
    /// The change; `None`: it is refused, and the former reserve is asked for again.
    change: Option<Change>,
    /// The number of answers when it was sent; `None`: the keeper's thread was at work.
    answers: Option<u64>,
    glanced: Time,
}

impl Learning {
    /// Learns from here on, if it is to.
    pub fn begin(requests: &Realtime) -> Option<Learning> {
        let Realtime { runtime, runtime_most, period, .. } = *requests;
        let learner = Learner::new(runtime, period, runtime_most);
        (!runtime_most.is_zero()).then_some(Learning { learner, asking: None })
    }

    /// A change was asked for, or the former reserve again, and the daemon has yet to answer.
    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Looks at the calling thread's use, and asks for another reserve if it is due: the daemon, or
    /// the kernel where none has answered.
    pub fn look(
        &mut self,
        now: Time,
        requests: &Realtime,
        (keeper, path, ports): (Option<&Keeper>, &str, &[u16]),
    ) -> Option<ReserveNews> {
        if let (Some(asking), Some(keeper)) = (&mut self.asking, keeper) {
            if asking.answers.is_none() {
                let runtime = self.learner.runtime();
                let wanted = wanted(&Realtime { runtime, ..requests.clone() }, path, ports);
                asking.answers = keeper.try_change(wanted);
                return None;
            }
            return self.glance(now, keeper);
        }
        let change = self.learner.look(now, used_by_thread())?;
        let absent = |keeper: &Keeper| match keeper.glance() {
            Some((standing, _)) => matches!(standing, Standing::Absent(_)),
            None => false,
        };
        if keeper.is_none_or(absent) {
            if let Grant::Refused(why) = reserve(change.to, requests.period) {
                self.learner.refused(now, change);
                return Some(ReserveNews::Refused { why });
            }
            // A daemon that comes is asked for the same.
            let wanted = wanted(&Realtime { runtime: change.to, ..requests.clone() }, path, ports);
            let _ = keeper.and_then(|keeper| keeper.try_change(wanted));
        } else {
            self.asking = Some(Asking { change: Some(change), answers: None, glanced: now });
        }
        let Change { to, overruns, .. } = change;
        Some(match overruns {
            0 => ReserveNews::Changed { runtime: to },
            _ => ReserveNews::Overran { overruns, runtime: to },
        })
    }

    /// Looks for the daemon's answer. If it refuses, the former reserve is asked for, which is still
    /// in force.
    fn glance(&mut self, now: Time, keeper: &Keeper) -> Option<ReserveNews> {
        let asking = self.asking.as_mut().filter(|it| now.since(it.glanced) >= GLANCE)?;
        asking.glanced = now;
        let (standing, answers) = keeper.glance()?;
        if asking.answers.is_some_and(|before| answers <= before) {
            return None;
        }
        let change = asking.change;
        self.asking = None;
        if let (Standing::Refused(why), Some(change)) = (standing, change) {
            self.learner.refused(now, change);
            self.asking = Some(Asking { change: None, answers: None, glanced: now });
            return Some(ReserveNews::Refused { why });
        }
        None
    }
}
