//! Answers that come from the second target, in the place of the first one that was asked.
//!
//! In a semi-active group of three the first backup knows as soon as it is given a request that two hold it, and has the answer
//! a message earlier than the primary may give it (`docs/protocol/group.md`, "Deputies"). Where that goes wrong, the primary is
//! asked again, under the call's number.

use std::time::Duration;

use wire::Time;
use wire::ordered::Style;

use crate::bug::Bug;
use crate::hedge::Hedging;
use crate::output::{CallId, Link};
use crate::session::Session;

/// When an answer that a deputy was to give is asked for where the call was sent, and how often that may be: each brings a copy.
pub(crate) const TAKING_BACK: Hedging = Hedging {
    floor: Duration::from_millis(1),
    ceiling: Duration::from_millis(10),
    per_thousand: 50,
};

/// Who may answer a call to which it was not sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deputy {
    pub(crate) link: Link,
    /// Where the call was sent, and when.
    asked: Link,
    pub(crate) at: Time,
    /// It was sent there once more, without a deputy.
    pub(crate) taken_back: bool,
}

impl Session {
    /// A call is sent here: its answer may come from the second target if this is the first, the second is connected, and the call
    /// can still be taken back. After how long that is to be done.
    pub(crate) fn leave_to_deputy(
        &mut self,
        now: Time,
        id: CallId,
        asked: Link,
    ) -> Option<Duration> {
        let call = self.calls.get_mut(&id)?;
        let group = self.groups.get_mut(&call.group)?;
        // In larger groups nobody is one.
        let ([first, second] | [first, second, _]) = group.targets.nodes[..] else { return None };
        let wanted = self.deputies
            && group.targets.style == Style::SemiActive
            && !call.access.reads()
            && call.is_fresh()
            && call.attempts[0].address == first.address
            && !self.links.is_suspect(second.address);
        let link = self.links.ready_at(second.address).filter(|_| wanted)?;
        let delay = group.deputies.delay(&TAKING_BACK)?;
        let credit = group.deputies.spend();
        debug_assert!(credit, "there is no delay without it");
        call.deputy = Some(Deputy { link, asked, at: now, taken_back: false });
        Some(delay)
    }

    /// A call was answered by its deputy.
    pub(crate) fn answered_by_deputy(&mut self, now: Time, id: CallId) {
        let call = &self.calls[&id];
        let group = self.groups.get_mut(&call.group).expect("a call's group is kept");
        if let Some(deputy) = call.deputy {
            group.deputies.took(now.since(deputy.at));
        }
        group.expect_copy(call.number);
        self.effects.stats.deputies += 1;
    }

    /// The deputy takes longer than others did.
    pub(crate) fn deputy_due(&mut self, now: Time, id: CallId) {
        if self.take_back(now, id) {
            self.effects.stats.taken_back += 1;
            if self.planted.is(Bug::TakeBackWithoutEnd) {
                let group = self.calls[&id].group;
                self.groups.entry(group).and_modify(|group| group.deputies.refund());
            }
        }
    }

    /// Asks for the answer where the call was sent, if that was not done, and the call is still there and nowhere else: whoever it went on
    /// to answers it. The deputy may still be the first.
    pub(crate) fn take_back(&mut self, now: Time, id: CallId) -> bool {
        let Some(call) = self.calls.get_mut(&id) else { return false };
        let attempts = &call.attempts;
        let left = call.deputy.as_mut().filter(|deputy| {
            !deputy.taken_back && attempts.len() == 1 && attempts[0].link == deputy.asked
        });
        let Some(deputy) = left else { return false };
        deputy.taken_back = true;
        // Whatever is said of the second request, the first may have been taken (seed 86452).
        let asked = deputy.asked;
        call.unsure = true;
        self.put_request(now, id, asked, false);
        true
    }

    /// A connection is gone: what was to be answered on it is asked for where it was sent.
    pub(crate) fn lose_deputy(&mut self, now: Time, link: Link) {
        let of = |call: &crate::attempts::Call| call.deputy.is_some_and(|d| d.link == link);
        let left: Vec<CallId> =
            self.calls.iter().filter(|(_, call)| of(call)).map(|(id, _)| *id).collect();
        for id in left {
            self.take_back(now, id);
        }
    }
}
