//! Reserved time, proved by trial: a thread reserves it and takes it, beside a load that the doctor
//! makes itself and ends itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use steadfast::NodeConfig;
use steadfast::realtime::{self, Realtime, probe_reserve};
use steadfast::status::Grant;

use super::finding::{Finding, Verdict};

const NAME: &str = "reserved time";

/// The trial's length. The load takes the processors for so long, but for what the kernel keeps
/// for others.
const TRIAL: Duration = Duration::from_millis(200);

/// The load's SCHED_FIFO priority: above ordinary programs, below all others.
const LOAD: u8 = 1;

/// A thread that runs needs less between two looks at the clock.
const STEP: Duration = Duration::from_micros(5);

/// Only whether it is permitted.
pub fn examine(config: &NodeConfig) -> Finding {
    let Realtime { runtime, period, .. } = config.realtime;
    let (asked, what) = request(config);
    match (runtime.is_zero(), probe_reserve(asked, period)) {
        (true, Grant::Refused(_)) => Finding::new(
            Verdict::Advice,
            NAME,
            "not configured, and not permitted to this user",
            "on a busy host: CAP_SYS_NICE, and realtime.runtime_us = 1000",
        ),
        (true, _) => Finding::new(
            Verdict::Advice,
            NAME,
            format!("not configured, but {what} are to be had (SCHED_DEADLINE)"),
            "on a busy host set realtime.runtime_us = 1000: no other program then delays the ring, \
             real-time ones included",
        ),
        (false, Grant::Refused(why)) => {
            Finding::new(Verdict::Warning, NAME, format!("{what} are not to be had"), why)
        }
        (false, _) => Finding::good(NAME, format!("{what} are to be had (SCHED_DEADLINE)")),
    }
}

/// The configured reservation, or a quarter of a processor.
fn request(config: &NodeConfig) -> (Duration, String) {
    let Realtime { runtime, period, .. } = config.realtime;
    let asked = if runtime.is_zero() { period / 4 } else { runtime };
    (asked, format!("{asked:?} in every {period:?}"))
}

/// The findings of the trial.
struct Seen {
    periods: u32,
    /// In which the reserved time was not had.
    missed: u32,
    /// From the beginning of a period until the time had been had.
    longest: Duration,
}

/// Whether what was reserved is got. Nothing where it is not permitted: that is said already.
pub fn prove(config: &NodeConfig) -> Option<Finding> {
    let period = config.realtime.period;
    let (asked, what) = request(config);
    if probe_reserve(asked, period) != Grant::InForce {
        return None;
    }
    let over = Arc::new(AtomicBool::new(false));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let trial = thread::spawn(move || {
        (realtime::reserve(asked, period) == Grant::InForce).then(|| take(asked, period))
    });
    let load = |_| {
        let over = over.clone();
        thread::spawn(move || {
            // Without permission it is an ordinary load.
            realtime::fifo(LOAD);
            let end = Instant::now() + TRIAL;
            while !over.load(Ordering::Relaxed) && Instant::now() < end {
                std::hint::spin_loop();
            }
        })
    };
    let loads: Vec<_> = (0..processors).map(load).collect();
    let seen = trial.join().ok().flatten();
    over.store(true, Ordering::Relaxed);
    loads.into_iter().for_each(|load| drop(load.join()));
    let Seen { periods, missed, longest } = seen?;
    let got = periods - missed;
    let says = format!(
        "beside a load on all processors, {what} were got in {got} of {periods} periods, after {} us \
         at the latest",
        longest.as_micros()
    );
    Some(match missed * 20 <= periods {
        true => Finding::good("reservation kept", says),
        false => Finding::new(
            Verdict::Warning,
            "reservation kept",
            says,
            "the machine itself takes the processors away (a hypervisor, interrupts): give the \
             virtual machine processors of its own, or reserve with a longer period",
        ),
    })
}

/// Takes nine tenths of the reserved time in each period, and looks when it had it.
fn take(runtime: Duration, period: Duration) -> Seen {
    let mut seen = Seen { periods: 0, missed: 0, longest: Duration::ZERO };
    let (wanted, end) = (runtime * 9 / 10, Instant::now() + TRIAL);
    let mut begun = Instant::now();
    while begun < end {
        let mut had = Duration::ZERO;
        let mut last = Instant::now();
        while had < wanted {
            let now = Instant::now();
            // A longer step was somebody else's time.
            had += (now - last).min(STEP);
            last = now;
        }
        let took = begun.elapsed();
        seen.periods += 1;
        seen.missed += u32::from(took > period);
        seen.longest = seen.longest.max(took);
        begun = (begun + period).max(Instant::now());
        thread::sleep(begun.saturating_duration_since(Instant::now()));
    }
    seen
}
