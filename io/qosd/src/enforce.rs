//! A reserve's processor time, as the kernel enforces it.

use std::io;

use os::sched::{self, Class};
use qos::host::{Mechanism, Reserve as Admitted};
use rustix::io::Errno;
use rustix::thread::Pid;

use crate::owner::Target;

/// Why the kernel does not enforce it.
pub(crate) enum Unenforced {
    /// The processors have not so much time left.
    Busy,
    /// The reason, and the remedy.
    Refused(String),
}

/// Gives the threads the class that the mechanism stands for.
pub(crate) fn enforce(
    admitted: &Admitted,
    thread: Option<Target>,
    process: Option<Target>,
) -> Result<(), Unenforced> {
    let class = match admitted.cpu {
        Mechanism::None | Mechanism::Degraded => return Ok(()),
        Mechanism::Fifo(priority) => Class::Fifo(priority),
        Mechanism::Deadline(task) => Class::Deadline(sched::Reserve {
            runtime: task.cost,
            deadline: task.deadline,
            period: task.period,
        }),
    };
    let threads = match (thread, process) {
        (Some(thread), _) => vec![thread.id],
        (None, Some(process)) => process.threads(),
        (None, None) => {
            return Err(Unenforced::Refused("processor time needs a thread or a process".into()));
        }
    };
    threads.into_iter().try_for_each(|thread| match set(thread, class) {
        Ok(()) => Ok(()),
        // A thread of the program has ended meanwhile.
        Err(error) if errno(&error) == Some(Errno::SRCH) && process.is_some() => Ok(()),
        Err(error) if errno(&error) == Some(Errno::BUSY) => Err(Unenforced::Busy),
        Err(error) => Err(Unenforced::Refused(format!(
            "the kernel refuses {class:?} to thread {thread}: {error}"
        ))),
    })
}

/// Makes the threads ordinary again, as far as they live.
pub(crate) fn release(thread: Option<Target>, process: Option<Target>) {
    let process = process.filter(|process| process.lives());
    let threads = match thread {
        Some(thread) if thread.lives() => vec![thread.id],
        Some(_) => Vec::new(),
        None => process.map(Target::threads).unwrap_or_default(),
    };
    for thread in threads {
        // It may end at any time; and anybody may be ordinary.
        let _ = set(thread, Class::Ordinary);
    }
}

fn set(thread: i32, class: Class) -> io::Result<()> {
    let thread = Pid::from_raw(thread).ok_or(io::ErrorKind::InvalidInput)?;
    sched::set_class(Some(thread), class)
}

fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}
