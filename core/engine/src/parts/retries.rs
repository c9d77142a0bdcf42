//! When replicas that were not given their groups' states ask for them again.

use alloc::collections::BTreeMap;

use wire::{Duration, GroupId, RingId, Time, ViewNumber};

/// The first wait; each further one is twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// A replica that waits for its state in vain.
#[derive(Clone, Copy, Debug)]
struct Retry {
    /// The transfer that failed.
    transfer: ViewNumber,
    /// Transfers that have failed in a row.
    times: u32,
    until: Time,
    /// The ring on which another was asked for.
    asked: Option<RingId>,
    /// Nothing has failed since.
    rests: bool,
}

/// The replicas here that wait in vain, by group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retries(BTreeMap<GroupId, Retry>);

impl Retries {
    /// This transfer has failed. True if another is to be asked for now.
    pub(crate) fn is_due(
        &mut self,
        now: Time,
        group: GroupId,
        transfer: ViewNumber,
        ring: RingId,
    ) -> bool {
        let begun = Retry { transfer, times: 0, until: now + FIRST, asked: None, rests: false };
        let retry = self.0.entry(group).or_insert(begun);
        if retry.transfer != transfer {
            let times = retry.times.saturating_add(1);
            let wait = (FIRST * 2u32.saturating_pow(times).min(1 << 16)).min(LONGEST);
            *retry = Retry { transfer, times, until: now + wait, asked: None, rests: false };
        }
        let due = retry.until <= now && retry.asked != Some(ring);
        if due {
            retry.asked = Some(ring);
        }
        due
    }

    /// Nobody waits in vain.
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// This transfer has failed before. Its donor may have given the state to others since.
    pub(crate) fn knows(&self, group: GroupId, transfer: ViewNumber) -> bool {
        self.0.get(&group).is_some_and(|retry| retry.transfer == transfer)
    }

    /// These groups' replicas wait in vain now; the others need no reminder.
    pub(crate) fn rest_all_but(&mut self, failing: &[GroupId]) {
        for (group, retry) in &mut self.0 {
            retry.rests = !failing.contains(group);
        }
    }

    /// The replica has the state, or waits for it no more.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.0.remove(&group);
    }

    /// When another transfer is to be asked for.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let waiting = self.0.values().filter(|retry| retry.asked.is_none() && !retry.rests);
        waiting.map(|retry| retry.until).min()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_time_in_a_row_is_twice_as_long_after_the_last() {
        let (mut retries, group, ring) = (Retries::default(), GroupId(7), RingId::default());
        let mut now = Time(1_000_000_000);
        let mut waits = Vec::new();
        for transfer in 0..12 {
            let transfer = ViewNumber(transfer);
            assert!(!retries.is_due(now, group, transfer, ring));
            let until = retries.next_timeout().expect("it waits");
            assert!(retries.is_due(until, group, transfer, ring));
            assert!(!retries.is_due(until, group, transfer, ring), "it was asked for");
            assert_eq!(retries.next_timeout(), None);
            waits.push(until.since(now));
            now = until;
        }
        assert_eq!((waits[0], waits[1], waits[11]), (FIRST, FIRST * 2, LONGEST));
        retries.rest_all_but(&[]);
        assert_eq!(retries.next_timeout(), None);
        retries.forget(group);
        assert!(!retries.is_due(now, group, ViewNumber(20), ring));
        assert_eq!(retries.next_timeout(), Some(now + FIRST));
    }
}
