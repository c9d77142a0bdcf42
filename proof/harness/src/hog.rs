//! The load generator of `stheno.txt`, section 4: a thread for each processor, under SCHED_FIFO,
//! that computes a percentage of each of many random spans of time, and sleeps for the rest.

use std::error::Error;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use node::realtime::{Grant, probe_on_a_thread};
use node::sched::{Class, MAX_PRIORITY, Reserve, set_class};
use wire::Random;

use crate::Outcome;
use crate::process::{Process, Role};

/// The priority of the paper's load generator.
pub const PRIORITY: u8 = 48;

/// The longest span of the paper's.
const LONGEST: Duration = Duration::from_millis(5);

/// Why there can be no hogs here, if any are wanted.
pub fn impossible(percent: u32) -> Option<String> {
    match probe_on_a_thread(MAX_PRIORITY) {
        Grant::Refused(why) if percent > 0 => Some(why),
        _ => None,
    }
}

/// Starts a process that takes this percentage of each processor until it is dropped; no process
/// for none.
pub fn start(percent: u32) -> Outcome<Option<Process>> {
    if percent == 0 {
        return Ok(None);
    }
    let mut process = Process::start(&Role::Hog { percent, priority: PRIORITY })?;
    process.line()?;
    Ok(Some(process))
}

/// A load beside an experiment, and the time that is reserved against it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Under {
    /// Threads under SCHED_FIFO 48, one for each processor, take this percentage of it, in random
    /// spans of at most 5 ms (`stheno.txt`, section 4). Needs CAP_SYS_NICE.
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    pub hogs: u32,
    /// Microseconds of each period that are reserved for each node's data plane and for the client
    /// (SCHED_DEADLINE); 0: none.
    #[arg(long, value_name = "MICROS", default_value_t = 0)]
    pub runtime_us: u64,
    /// The period of that reservation.
    #[arg(long, value_name = "MICROS", default_value_t = 4_000)]
    pub period_us: u64,
}

impl Under {
    /// Starts the hogs.
    pub fn start(self) -> Outcome<Option<Process>> {
        start(self.hogs)
    }

    /// The class of each data plane and of the client.
    pub fn class(self) -> Class {
        let period = Duration::from_micros(self.period_us);
        match Duration::from_micros(self.runtime_us) {
            Duration::ZERO => Class::Ordinary,
            runtime => Class::Deadline(Reserve { runtime, deadline: period, period }),
        }
    }
}

/// Gives the calling thread this class.
pub fn take(class: Class) -> Outcome<()> {
    set_class(None, class).map_err(|error| format!("{class:?} is not to be had: {error}").into())
}

/// Measures on a thread of this class. The class is the thread's alone, and the processes that the
/// calling thread starts do not inherit it.
pub fn on_a_thread<T: Send>(
    class: Class,
    measure: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>> + Send,
) -> Outcome<T> {
    let measure = || {
        set_class(None, class)?;
        measure()
    };
    let ended = thread::scope(|scope| scope.spawn(measure).join());
    ended.map_err(|_| "the measuring thread panicked")?.map_err(|why| why as Box<dyn Error>)
}

/// The life of such a process. It ends with its input, before every other thread here: the machine
/// must not be left to hogs that nobody can stop.
pub(crate) fn live(percent: u32, priority: u8, ready: impl FnOnce()) -> Outcome<()> {
    if priority > 0 {
        set_class(None, Class::Fifo(MAX_PRIORITY))?;
    }
    for number in 0..thread::available_parallelism()?.get() as u64 {
        thread::spawn(move || {
            let class = match priority {
                0 => Class::Ordinary,
                _ => Class::Fifo(priority),
            };
            set_class(None, class).expect("a thread may lower its own priority");
            compute(percent, Random::new(number + 1))
        });
    }
    ready();
    // Until the other side is gone.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn compute(percent: u32, mut random: Random) -> ! {
    let longest = LONGEST.as_micros() as u64;
    loop {
        let span = Duration::from_micros(1 + random.below(longest));
        let (begun, work) = (Instant::now(), span * percent.min(100) / 100);
        let mut number = 1_u64;
        while begun.elapsed() < work {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005));
        }
        thread::sleep(span.saturating_sub(begun.elapsed()));
    }
}
