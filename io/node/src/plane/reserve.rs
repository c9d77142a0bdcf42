//! The data plane's reserve at the host's daemon.

use os::realtime::{Grant, Realtime};
use qosd::{Cpu, Enforced, Keeper, Standing, Wanted};
use rustix::thread::gettid;
use wire::Duration;

/// Asks the daemon for the calling thread's reserve and for the rate of packets of these ports, if
/// there is to be any.
pub(super) fn hold(requests: &Realtime, path: &str, ports: &[u16]) -> Option<Keeper> {
    let wanted = wanted(requests, path, ports);
    let asks = wanted.cpu.is_some() || wanted.network > 0;
    let daemon = requests.daemon.as_ref().filter(|_| asks)?;
    match Keeper::start(daemon, wanted) {
        Ok(keeper) => Some(keeper),
        Err(error) => {
            tracing::warn!(%error, "no thread holds the reserve at the host's daemon");
            None
        }
    }
}

/// The request of the calling thread.
pub(super) fn wanted(requests: &Realtime, path: &str, ports: &[u16]) -> Wanted {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let (runtime_us, period_us) = (micros(requests.runtime), micros(requests.period));
    let network = requests.network_mb_s * 1_000_000;
    Wanted {
        path: path.into(),
        thread: Some(gettid().as_raw_nonzero().get()),
        cpu: (runtime_us > 0).then_some(Cpu { runtime_us, deadline_us: period_us, period_us }),
        network,
        ports: if network > 0 { ports.into() } else { Vec::new() },
        ..Wanted::default()
    }
}

/// A standing in the terms of `[realtime]`: the reserved time, and the rate of packets. While no
/// daemon has answered, the time is as the kernel has told `alone`.
pub(super) fn granted(
    requests: &Realtime,
    standing: Standing,
    alone: impl FnOnce() -> Grant,
) -> (Grant, Grant) {
    let network = match requests.network_mb_s {
        0 => Grant::NotAsked,
        _ => network(&standing),
    };
    match requests.runtime.is_zero() {
        true => (Grant::NotAsked, network),
        false => (time(standing, alone), network),
    }
}

/// The beginning of the daemon's words about networks.
const NETWORK: &str = "network: ";

fn words(degraded: &[String], about: impl Fn(&&String) -> bool) -> String {
    let words: Vec<&str> = degraded.iter().filter(about).map(String::as_str).collect();
    words.join("; ")
}

fn network(standing: &Standing) -> Grant {
    match standing {
        Standing::InForce(_, degraded) => match words(degraded, |why| why.starts_with(NETWORK)) {
            none if none.is_empty() => Grant::InForce,
            why => Grant::Refused(why),
        },
        Standing::Refused(why) | Standing::Absent(why) => Grant::Refused(why.clone()),
    }
}

fn time(standing: Standing, alone: impl FnOnce() -> Grant) -> Grant {
    match standing {
        Standing::InForce(Enforced::Deadline | Enforced::Fifo(_), _) => Grant::InForce,
        Standing::InForce(_, degraded) => {
            Grant::Refused(words(&degraded, |why| !why.starts_with(NETWORK)))
        }
        Standing::Refused(why) => Grant::Refused(why),
        Standing::Absent(why) => match alone() {
            Grant::InForce => Grant::InForce,
            _ => Grant::Refused(why),
        },
    }
}
