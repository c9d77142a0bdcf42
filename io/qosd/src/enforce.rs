//! The kernel, as the machine asks it.

use std::io;

use os::sched::{self, Class};
use qos::daemon::{Kernel, Unenforced};
use qos::host::{Ask, Mechanism};
use rustix::io::Errno;
use rustix::thread::Pid;

use crate::groups::Groups;
use crate::networks::Networks;
use crate::owner::Target;

/// The owner of a reserve: a thread, or all threads of a process. Limits are those of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub thread: Option<Target>,
    pub process: Option<Target>,
}

impl Subject {
    fn threads(&self) -> Vec<i32> {
        match (self.thread, self.process) {
            (Some(thread), _) => thread.lives().then_some(thread.id).into_iter().collect(),
            (None, Some(process)) if process.lives() => process.threads(),
            (None, _) => Vec::new(),
        }
    }

    /// Processor time that its threads have used, in microseconds.
    pub fn used_us(&self) -> u64 {
        self.threads().into_iter().map(Target::used_us).sum()
    }
}

/// The limits for other programs, for the sake of a reserve. By default there are none, and a
/// reserve that needs them is degraded.
#[derive(Debug, Default)]
pub struct Limiters {
    /// Control groups, for memory and devices.
    pub groups: Groups,
    /// Classes of network interfaces.
    pub networks: Networks,
}

/// The scheduler and the limiters.
#[derive(Debug)]
pub(crate) struct Enforcer {
    pub limiters: Limiters,
}

impl Kernel<Subject> for Enforcer {
    fn enforce(&mut self, subject: &Subject, mechanism: Mechanism) -> Result<(), Unenforced> {
        let class = match mechanism {
            Mechanism::None | Mechanism::Degraded => return Ok(()),
            Mechanism::Fifo(priority) => Class::Fifo(priority),
            Mechanism::Deadline(task) => Class::Deadline(sched::Reserve {
                runtime: task.cost,
                deadline: task.deadline,
                period: task.period,
            }),
        };
        let threads = subject.threads();
        if threads.is_empty() {
            let why = "processor time needs a thread or a process that lives";
            return Err(Unenforced::Refused(why.into()));
        }
        threads.into_iter().try_for_each(|thread| match set(thread, class) {
            Ok(()) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // A thread of the program has ended meanwhile.
                Some(Errno::SRCH) if subject.thread.is_none() => Ok(()),
                Some(Errno::BUSY) => Err(Unenforced::Busy),
                _ => Err(Unenforced::Refused(format!(
                    "the kernel refuses {class:?} to thread {thread}: {error}"
                ))),
            },
        })
    }

    fn release(&mut self, subject: &Subject) {
        for thread in subject.threads() {
            // It may end at any time; and anybody may be ordinary.
            let _ = set(thread, Class::Ordinary);
        }
    }

    fn limit(&mut self, path: &str, subject: &Subject, ask: &Ask) -> Vec<String> {
        let Limiters { groups, networks } = &mut self.limiters;
        let mut degraded = groups.apply(path, subject.process.map(|process| process.id), ask);
        degraded.extend(networks.apply(path, &ask.traffic));
        degraded
    }

    fn unlimit(&mut self, path: &str) {
        self.limiters.groups.remove(path);
        self.limiters.networks.remove(path);
    }
}

fn set(thread: i32, class: Class) -> io::Result<()> {
    let thread = Pid::from_raw(thread).ok_or(io::ErrorKind::InvalidInput)?;
    sched::set_class(Some(thread), class)
}
