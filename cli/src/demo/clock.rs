//! The wall clock, which all processes of one host share, and a timer finer than tokio's.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Now, in nanoseconds since the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// From now until a moment, or nothing if it is past.
pub fn until(moment: u64) -> Duration {
    Duration::from_nanos(moment.saturating_sub(now()))
}

/// Wakes a task at a moment. Tokio's own timer has a grain of a millisecond, which would be the
/// largest part of every latency that the demo measures.
pub struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    /// Needs a tokio runtime with I/O.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
        // SAFETY: the descriptor is open, and an `OwnedFd` keeps it so and keeps its number for as
        // long as the `AsyncFd` owns it.
        #[allow(unsafe_code)]
        let timer = unsafe { AsyncFd::register(timer)? };
        Ok(Alarm(timer))
    }

    /// Returns at this moment, or at once if it is past.
    pub async fn at(&mut self, moment: u64) -> io::Result<()> {
        let second = 1_000_000_000;
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The kernel takes a time of zero for "never".
        let moment = moment.max(1);
        let value = Timespec { tv_sec: (moment / second) as i64, tv_nsec: (moment % second) as _ };
        let times = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &times)?;
        let mut ready = self.0.readable().await?;
        let _ = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0u8; 8])?));
        ready.clear_ready();
        Ok(())
    }
}
