//! A replica's state is tried before it is needed.
//!
//! The service writes its state, another instance reads it and writes it again. What does not come
//! back the same would be found at the next fail-over otherwise, when the last good copy is gone.
//! The initial state is tried at once, then the state after 1, 2, 4, ... calls, and later once a
//! minute; one that takes long, less often. A large one is not tried, because calls wait meanwhile:
//! it is read back when it is transferred.

use os::clock::monotonic;
use wire::attach::{Notice, NoticeCode};
use wire::{Duration, Time};

use super::guard::{ask, cut};
use crate::service::{Factory, Service};

/// Between two trials.
const EVERY: Duration = Duration::from_secs(60);

/// A trial takes at most one part of so many of a replica's time.
const SHARE: u64 = 1_000;

/// Trials after so many calls come without a wait, if the last one was quick.
const FIRST_CALLS: u64 = 1_024;
const QUICK: Duration = Duration::from_millis(1);

/// A state that is larger is not tried.
const LARGE: usize = 1 << 20;

/// When the next trial is due, and what the last one told.
#[derive(Debug)]
pub struct Trials {
    calls: u64,
    is_due: bool,
    /// The number of calls after which the next early trial comes.
    after: u64,
    /// The time from which on a trial may come.
    from: Time,
    /// The last trial failed.
    is_failed: bool,
    /// The state was too large when it was last seen.
    is_large: bool,
}

impl Default for Trials {
    fn default() -> Self {
        let (is_due, is_failed, is_large) = (false, false, false);
        Trials { calls: 0, is_due, after: 1, from: Time(0), is_failed, is_large }
    }
}

impl Trials {
    /// Tries the initial state: what is wrong with its type mostly shows there.
    ///
    /// # Errors
    /// Why the state cannot be kept.
    pub fn begin(&mut self, service: &dyn Service, make: &Factory) -> Result<(), String> {
        self.is_large = !try_state(service, make)?;
        Ok(())
    }

    /// One more call was executed: whether a trial is due, once it was answered.
    #[inline]
    pub fn executed(&mut self) {
        self.calls += 1;
        if self.calls >= self.after {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        self.is_due = !self.is_large && monotonic() >= self.from;
        if !self.is_due {
            // Looking at the clock costs something, too.
            self.after = self.calls + FIRST_CALLS / 16;
        }
    }

    /// A trial is due.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Tries the state, as is due.
    #[cold]
    pub fn due(&mut self, service: &dyn Service, make: &Factory) -> Option<Notice> {
        self.is_due = false;
        let now = monotonic();
        let told = self.tried(service, make);
        let took = monotonic().since(now);
        let early = self.calls < FIRST_CALLS && took < QUICK;
        self.after = if early { self.calls * 2 } else { self.calls + 1 };
        let rest = Duration::from_nanos(took.as_nanos() as u64 * SHARE);
        self.from = now + if early { Duration::ZERO } else { rest.max(EVERY) };
        told
    }

    /// Tries the state now.
    pub fn tried(&mut self, service: &dyn Service, make: &Factory) -> Option<Notice> {
        let result = try_state(service, make).map(|is_small| self.is_large = !is_small);
        let was_failed = std::mem::replace(&mut self.is_failed, result.is_err());
        match result {
            Err(reason) => Some(notice(NoticeCode::Unreadable, reason)),
            Ok(()) if was_failed => Some(notice(NoticeCode::Well, String::new())),
            Ok(()) => None,
        }
    }

    /// The state, if it is known to be small.
    pub fn small_state(&mut self, service: &dyn Service) -> Option<Vec<u8>> {
        if self.is_large {
            return None;
        }
        let state = snapshot(service).ok()?;
        self.is_large = state.is_none();
        state
    }

    /// The state has so many bytes.
    pub fn seen(&mut self, bytes: usize) {
        self.is_large = bytes > LARGE;
    }
}

/// Writes, reads and writes the state, unless it is large: whether it is small, or what is wrong.
fn try_state(service: &dyn Service, make: &Factory) -> Result<bool, String> {
    let Some(state) = snapshot(service)? else { return Ok(false) };
    let mut other = ask("factory", || Ok(make()))?;
    ask("restore", || other.restore(&state))
        .map_err(|reason| format!("it cannot be read back: {reason}"))?;
    let again = ask("snapshot", || other.snapshot())?;
    match service.is_same_state(&state, &again) {
        true => Ok(true),
        false => Err("it reads back as another state: look for values that `serialize` and \
                      `deserialize` treat differently"
            .into()),
    }
}

fn snapshot(service: &dyn Service) -> Result<Option<Vec<u8>>, String> {
    ask("snapshot", || service.snapshot_within(LARGE))
}

/// The fields of a state that were left out, as one text.
pub fn dropped(fields: Vec<String>) -> Option<Notice> {
    (!fields.is_empty()).then(|| notice(NoticeCode::Dropped, fields.join(", ")))
}

fn notice(code: NoticeCode, text: String) -> Notice {
    Notice { code, text: cut(text) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::service::{BoxError, Call, Context};
    use engine::ServiceOutcome;

    /// Loses what is above its limit when it is read.
    struct Lossy {
        value: u8,
        limit: u8,
        snapshots: Arc<AtomicU32>,
    }

    impl Service for Lossy {
        fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
            unreachable!("nobody calls it")
        }

        fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
            self.snapshots.fetch_add(1, Ordering::Relaxed);
            Ok(vec![self.value])
        }

        fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
            self.value = state[0].min(self.limit);
            if state[0] == 255 { Err("no such value".into()) } else { Ok(()) }
        }
    }

    fn lossy(value: u8) -> (Lossy, Factory, Arc<AtomicU32>) {
        let snapshots = Arc::new(AtomicU32::new(0));
        let (of_one, of_other) = (snapshots.clone(), snapshots.clone());
        let make = move || -> Box<dyn Service> {
            Box::new(Lossy { value: 0, limit: 9, snapshots: of_other.clone() })
        };
        (Lossy { value, limit: 9, snapshots: of_one }, Box::new(make), snapshots)
    }

    #[test]
    fn what_reads_back_as_another_state_is_told_until_all_is_well_again() {
        let (mut service, make, _) = lossy(7);
        let mut trials = Trials::default();
        assert_eq!(trials.tried(&service, &make), None);
        service.value = 10;
        let told = trials.tried(&service, &make).expect("it is told");
        assert!(told.text.contains("another"), "{told:?}");
        service.value = 255;
        let told = trials.tried(&service, &make).expect("it is told again");
        assert_eq!(told.code, NoticeCode::Unreadable);
        assert!(told.text.contains("no such value"), "{told:?}");
        service.value = 9;
        let told = trials.tried(&service, &make).expect("it is told, too");
        assert_eq!((told.code, &*told.text), (NoticeCode::Well, ""));
        assert_eq!(trials.tried(&service, &make), None);
    }

    #[test]
    fn early_calls_are_tried_often_and_later_ones_seldom() {
        let (service, make, snapshots) = lossy(7);
        let mut trials = Trials::default();
        for _ in 0..100_000 {
            trials.executed();
            if trials.is_due() {
                assert_eq!(trials.due(&service, &make), None);
            }
        }
        // Two snapshots each: after 1, 2, 4, .. 1,024 calls, and not again within a minute.
        assert_eq!(snapshots.load(Ordering::Relaxed), 2 * 11);
    }
}
