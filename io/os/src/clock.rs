//! Clocks, and waiting to the nanosecond.

use std::num::NonZeroU64;

use rustix::time::{ClockId, Timespec, clock_gettime};
use wire::{Duration, Time};

/// The monotonic clock: what timers are measured by.
pub fn monotonic() -> Time {
    Time(nanoseconds(clock_gettime(ClockId::Monotonic)))
}

/// The wall clock in nanoseconds since the Unix epoch.
pub fn wall_clock() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// The processor time that the calling thread has used.
pub fn used_by_thread() -> Duration {
    Duration::from_nanos(nanoseconds(clock_gettime(ClockId::ThreadCPUTime)))
}

fn nanoseconds(time: Timespec) -> u64 {
    // Both clocks stand after their epochs on every host that can run this.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

/// How long to wait from `now` until `due`, for `epoll_pwait2`.
pub fn timeout(now: Time, due: Time) -> Timespec {
    let span = due.since(now);
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}

/// Makes this thread's waits end when they are due. By default the kernel lets them run late by
/// 50 µs to save wake-ups.
pub fn sharpen() {
    // Refused only where prctl is filtered out: timers are then late by those 50 µs.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
