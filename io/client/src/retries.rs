//! Attempts after one that was lost or silent: who is asked first, and whether there is credit for
//! it.

use wire::Time;

use crate::binding::ASK_TIMEOUT;
use crate::bug::Bug;
use crate::call::Phase;
use crate::output::{CallId, Cause, Timer};
use crate::policy::Strategy;
use crate::session::Session;

impl Session {
    /// The last attempt has failed. A reactive client asks for the targets before it goes on, for
    /// at most [`ASK_TIMEOUT`]; any other client knows them.
    pub(crate) fn try_again(&mut self, now: Time, id: CallId, cause: Cause) {
        let call = self.calls.get_mut(&id).expect("only calls under way are tried again");
        let group = self.groups.get_mut(&call.group).expect("a call's group is kept");
        if group.policy.strategy != Strategy::Reactive {
            return self.attempt(now, id, cause);
        }
        group.doubt = true;
        (call.phase, call.asks) = (Phase::Pausing, true);
        let (group, deadline) = (call.group, call.deadline);
        self.effects.timers.set(Timer::Call(id), deadline.min(now + ASK_TIMEOUT));
        self.inquire(now, group);
    }

    /// An attempt that is a retry costs credit: else the time at which there may be some.
    pub(crate) fn pay_for_retry(&mut self, now: Time, id: CallId) -> Result<(), Time> {
        let call = self.calls.get_mut(&id).expect("only calls under way are tried again");
        if call.owes {
            let paid = self.credit.spend(now);
            if !self.planted.is(Bug::RetryWithoutEnd) {
                paid?;
            }
            call.owes = false;
            self.effects.stats.retries += 1;
        }
        Ok(())
    }

    /// The retries are spent: the call waits for credit, and for an answer from wherever it still
    /// lies.
    pub(crate) fn wait_for_credit(&mut self, id: CallId, at: Time) {
        let call = self.calls.get_mut(&id).expect("only calls under way wait");
        (call.phase, call.asks) = (Phase::Pausing, false);
        self.effects.stats.pauses += 1;
        self.effects.timers.set(Timer::Call(id), call.deadline.min(at));
    }
}
