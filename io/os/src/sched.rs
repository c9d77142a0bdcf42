//! Scheduling classes of threads: sched_setattr(2) and sched_getattr(2), for any thread by its id.
//!
//! No library of ours has them whole: rustix and nix lack both calls; thread-priority loses the
//! error of SCHED_DEADLINE and reads the calling thread alone.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::time::Duration;

use rustix::thread::Pid;

/// The highest priority of SCHED_FIFO.
pub const MAX_PRIORITY: u8 = 99;

/// The flags of a reservation. A child of the thread begins as an ordinary one: a reservation cannot
/// be inherited. Time that others leave free does not count against it (*GRUB*).
const RESET_ON_FORK: u64 = 1;
const RECLAIM: u64 = 2;

/// The scheduling class of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// SCHED_OTHER, and whatever else is neither of the others.
    #[default]
    Ordinary,
    /// SCHED_FIFO with this priority, 1 to [`MAX_PRIORITY`].
    Fifo(u8),
    /// SCHED_DEADLINE.
    Deadline(Reserve),
}

/// Processor time that a thread has for certain: so much in every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The time in each period. At least 1.024 µs.
    pub runtime: Duration,
    /// After which the runtime is there at the latest. At most the period.
    pub deadline: Duration,
    /// The period: 100 µs to 4 s, unless the system's limits were changed.
    pub period: Duration,
}

/// The smallest reservation, which rounds to no share of a processor.
const LEAST: Class = Class::Deadline(Reserve {
    runtime: Duration::from_nanos(1_024),
    deadline: Duration::from_secs(4),
    period: Duration::from_secs(4),
});

/// The form of the system's call. Its first version has 48 bytes, which every kernel since 3.14
/// takes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = mem::size_of::<Attributes>() as u32;
/// A short turn: the least that Linux grants.
const TURN: Duration = Duration::from_micros(100);

/// The niceness of threads that are behind all others.
const NICE: i32 = 10;

const OTHER: u32 = 0;
const FIFO: u32 = 1;
const DEADLINE: u32 = 6;

impl Class {
    fn attributes(self) -> Attributes {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let none = Attributes { size: SIZE, policy: OTHER, ..Attributes::default() };
        match self {
            Class::Ordinary => none,
            Class::Fifo(priority) => Attributes { policy: FIFO, priority: priority.into(), ..none },
            Class::Deadline(Reserve { runtime, deadline, period }) => Attributes {
                policy: DEADLINE,
                flags: RESET_ON_FORK | RECLAIM,
                runtime: nanos(runtime),
                deadline: nanos(deadline),
                period: nanos(period),
                ..none
            },
        }
    }
}

/// Gives a thread this class; `None`: the calling thread.
///
/// # Errors
/// `EPERM`: it is not permitted, or the thread may not run on all processors. `EBUSY`: the
/// processors have not so much time left. `EINVAL`: the times are out of the system's range, or the
/// control group has no budget for real time. `ESRCH`: there is no such thread.
pub fn set_class(thread: Option<Pid>, class: Class) -> io::Result<()> {
    let is_deadline = |class: Class| matches!(class, Class::Deadline(_));
    if !is_deadline(class) && self::class(thread).is_ok_and(is_deadline) {
        // Linux forgets to give back the time of a sleeping thread that leaves SCHED_DEADLINE (seen
        // with 6.18): a reservation of next to nothing is all that is lost.
        set(thread, LEAST)?;
    }
    set(thread, class)
}

fn set(thread: Option<Pid>, class: Class) -> io::Result<()> {
    give(thread, &class.attributes())
}

fn give(thread: Option<Pid>, attributes: &Attributes) -> io::Result<()> {
    // SAFETY: the kernel reads `size` bytes at the pointer, which is to a value of exactly that
    // size that lives until the call returns; it writes nothing.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setattr, raw(thread), &raw const *attributes, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The class of a thread; `None`: that of the calling thread.
///
/// # Errors
/// There is no such thread.
pub fn class(thread: Option<Pid>) -> io::Result<Class> {
    let mut found = Attributes::default();
    // SAFETY: the kernel writes at most `SIZE` bytes at the pointer, which is to a value of exactly
    // that size, of integers alone, that nobody else uses until the call returns.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_getattr, raw(thread), &raw mut found, SIZE, 0) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(match found.policy {
        FIFO => Class::Fifo(u8::try_from(found.priority).unwrap_or(MAX_PRIORITY)),
        DEADLINE => Class::Deadline(Reserve {
            runtime: Duration::from_nanos(found.runtime),
            deadline: Duration::from_nanos(found.deadline),
            period: Duration::from_nanos(found.period),
        }),
        _ => Class::Ordinary,
    })
}

/// This thread is behind all ordinary ones: Linux has a niceness for each. What it uses costs them
/// little. No harm is done where the system refuses.
pub fn yield_to_others() {
    // It may have been started by a thread with a priority.
    let _ = set_class(None, Class::Ordinary);
    let _ = rustix::process::setpriority_process(None, NICE);
    take_short_turns();
}

/// This thread runs for [`TURN`] at a time, and then looks whether others want to; one that wakes
/// with shorter turns than the running one's need not wait for its end (Linux 6.12; earlier ones
/// know no turns of a thread's own). Its share of the processor remains as it is.
fn take_short_turns() {
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    let runtime = u64::try_from(TURN.as_nanos()).unwrap_or(u64::MAX);
    let attributes =
        Attributes { size: SIZE, policy: OTHER, nice, runtime, ..Attributes::default() };
    if class(None).is_ok_and(|class| class == Class::Ordinary) {
        let _ = give(None, &attributes);
    }
}

fn raw(thread: Option<Pid>) -> i32 {
    thread.map_or(0, |thread| thread.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use rustix::thread::gettid;

    use super::*;

    /// Each class that this user may have is read back as it was set, also by another thread.
    #[test]
    fn a_class_is_read_back_as_it_was_set() {
        let millis = Duration::from_millis;
        let reserve = Reserve { runtime: millis(1), deadline: millis(50), period: millis(100) };
        for wanted in [Class::Fifo(1), Class::Deadline(reserve), Class::Ordinary] {
            let thread = std::thread::spawn(move || match set_class(None, wanted) {
                Ok(()) => {
                    let me = gettid();
                    let other = std::thread::spawn(move || class(Some(me)).unwrap());
                    assert_eq!(other.join().unwrap(), wanted);
                    // Under a reservation this thread starts ordinary ones.
                    let child = std::thread::spawn(|| class(None).unwrap()).join().unwrap();
                    assert!(!matches!(child, Class::Deadline(_)), "{child:?}");
                    class(None).unwrap()
                }
                Err(error) => {
                    assert!(
                        matches!(error.raw_os_error(), Some(libc::EPERM | libc::EBUSY)),
                        "{error}"
                    );
                    assert_ne!(wanted, Class::Ordinary, "anybody may be ordinary");
                    wanted
                }
            });
            assert_eq!(thread.join().unwrap(), wanted);
        }
    }

    /// Thirty times a tenth of a processor is more than two processors have.
    #[test]
    fn a_sleeping_thread_gives_its_time_back() {
        let (until, told) = std::sync::mpsc::channel::<()>();
        let (tell, id) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(gettid()).unwrap();
            let _ = told.recv();
        });
        let id = id.recv().unwrap();
        let period = Duration::from_micros(100);
        let reserve = Reserve { runtime: period / 10, deadline: period, period };
        let processors = std::thread::available_parallelism().unwrap().get();
        for round in 0..15 * processors {
            match set_class(Some(id), Class::Deadline(reserve)) {
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => return,
                done => done.unwrap_or_else(|error| panic!("round {round}: {error}")),
            }
            // Its time is over, so it is no longer counted among the active ones.
            let set = std::time::Instant::now();
            while set.elapsed() < 2 * period {
                std::hint::spin_loop();
            }
            set_class(Some(id), Class::Ordinary).unwrap();
        }
        drop(until);
        thread.join().unwrap();
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let tiny = Duration::from_nanos(1);
        let reserve = Reserve { runtime: tiny, deadline: tiny, period: tiny };
        let error = std::thread::spawn(move || set_class(None, Class::Deadline(reserve)));
        let error = error.join().unwrap().unwrap_err();
        assert!(matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM)), "{error}");
        let nobody = Pid::from_raw(i32::MAX).unwrap();
        assert_eq!(class(Some(nobody)).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
