//! The data plane's reserve at the host's daemon.

use os::realtime::{Grant, Realtime};
use qosd::{Cpu, Enforced, Keeper, Standing, Wanted};
use rustix::thread::gettid;

/// Asks the daemon for the calling thread's reserve, if there is to be one.
pub(super) fn hold(requests: &Realtime, path: &str) -> Option<Keeper> {
    let daemon = requests.daemon.as_ref().filter(|_| !requests.runtime.is_zero())?;
    let micros = |time: wire::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let (runtime_us, period_us) = (micros(requests.runtime), micros(requests.period));
    let wanted = Wanted {
        path: path.into(),
        thread: Some(gettid().as_raw_nonzero().get()),
        cpu: Some(Cpu { runtime_us, deadline_us: period_us, period_us }),
        ..Wanted::default()
    };
    match Keeper::start(daemon, wanted) {
        Ok(keeper) => Some(keeper),
        Err(error) => {
            tracing::warn!(%error, "no thread holds the reserve at the host's daemon");
            None
        }
    }
}

/// A standing in the terms of `[realtime]`. While no daemon has answered it is as the kernel has
/// told `alone`.
pub(super) fn granted(standing: Standing, alone: impl FnOnce() -> Grant) -> Grant {
    match standing {
        Standing::InForce(Enforced::Deadline | Enforced::Fifo(_), _) => Grant::InForce,
        Standing::InForce(_, degraded) => Grant::Refused(degraded.join("; ")),
        Standing::Refused(why) => Grant::Refused(why),
        Standing::Absent(why) => match alone() {
            Grant::InForce => Grant::InForce,
            _ => Grant::Refused(why),
        },
    }
}
