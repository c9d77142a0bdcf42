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
    /// The last change that the daemon was asked for.
    asked: Option<Change>,
    /// The request has yet to be sent, because the keeper's thread was at work.
    due: bool,
    glanced: Time,
}

impl Learning {
    /// Learns from here on, if it is to.
    pub fn begin(requests: &Realtime) -> Option<Learning> {
        let Realtime { runtime, runtime_most, period, .. } = *requests;
        let learner = Learner::new(runtime, period, runtime_most);
        let learning = Learning { learner, asked: None, due: false, glanced: Time::ZERO };
        (!runtime_most.is_zero()).then_some(learning)
    }

    /// Looks at the calling thread's use, and asks for another reserve if it is due: the daemon if
    /// there is a keeper, else the kernel.
    pub fn look(
        &mut self,
        now: Time,
        requests: &Realtime,
        (keeper, path, ports): (Option<&Keeper>, &str, &[u16]),
    ) -> Option<ReserveNews> {
        let change = self.learner.look(now, used_by_thread());
        if let Some(keeper) = keeper {
            self.asked = change.or(self.asked);
            self.due |= change.is_some();
            self.glance(now, keeper);
            if self.due {
                let requests = Realtime { runtime: self.learner.runtime(), ..requests.clone() };
                self.due = !keeper.try_change(wanted(&requests, path, ports));
            }
        } else if let Some(change) = change
            && let Grant::Refused(why) = reserve(change.to, requests.period)
        {
            tracing::info!(why, "the learned reserve is not to be had");
            self.learner.refused(change);
            return None;
        }
        let Change { to, overruns, .. } = change?;
        Some(match overruns {
            0 => ReserveNews::Changed { runtime: to },
            _ => ReserveNews::Overran { overruns, runtime: to },
        })
    }

    /// If the daemon refuses the last change, asks for what was in force before.
    fn glance(&mut self, now: Time, keeper: &Keeper) {
        if self.asked.is_none() || now.since(self.glanced) < GLANCE {
            return;
        }
        self.glanced = now;
        if let Some(Standing::Refused(why)) = keeper.glance()
            && let Some(change) = self.asked.take()
        {
            tracing::info!(why, "the learned reserve is not to be had");
            self.learner.refused(change);
            self.due = true;
        }
    }
}
