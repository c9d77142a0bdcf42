//! Keeps a node's answers in time on a busy host: reserved time, a real-time priority, memory that
//! is never paged out, processors of its own, and a look at the sockets before it sleeps.
//!
//! Each is asked for in the configuration and may be refused by the system. A refusal degrades
//! the node and never stops it; [`RealtimeStatus`] says which is in force, and why one is not.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::mm::MlockAllFlags;
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};
use wire::Duration;

use crate::sched::{self, Class, Reserve};

mod awake;

pub use crate::sched::MAX_PRIORITY;
pub use awake::{Awake, IdleState, awake_in_force, driver, idle_states, probe_awake};

/// The shortest period of a reservation that Linux takes.
pub const MIN_PERIOD: Duration = Duration::from_micros(100);

/// The longest one.
pub const MAX_PERIOD: Duration = Duration::from_secs(4);

/// The period of a reservation, unless another is configured: as long as a clock tick of the
/// slowest usual kernels, at which a thread that takes more than its time is stopped.
pub const PERIOD: Duration = Duration::from_millis(4);

/// The longest spin that is worth anything: several times what waking a core costs (25 to 30 µs
/// on the machines that this was measured on).
pub const MAX_SPIN: Duration = Duration::from_millis(1);

/// The longest time within which it makes sense to ask for processors to be woken: deeper sleep
/// than that there is none.
pub const MAX_WAKE_WITHIN: Duration = Duration::from_millis(1);

/// Requests to the system. None by default: all of them take from others on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Realtime {
    /// Processor time that is reserved for the data-plane thread in each `period`
    /// (SCHED_DEADLINE); zero: none. It goes before every priority, so `priority` then counts only
    /// if the system refuses it.
    pub runtime: Duration,
    /// The most that the reservation may become as it follows what the thread uses; zero: it stays
    /// as it is.
    pub runtime_most: Duration,
    /// The period of that reservation, [`MIN_PERIOD`] to [`MAX_PERIOD`].
    pub period: Duration,
    /// The socket of the host's daemon, which reserves it; `None`: the node asks the kernel itself.
    pub daemon: Option<PathBuf>,
    /// Megabytes a second that the daemon keeps at each network interface for the node's packets;
    /// 0: none.
    pub network_mb_s: u64,
    /// SCHED_FIFO priority of the data-plane thread, 1 to [`MAX_PRIORITY`]; 0: ordinary.
    pub priority: u8,
    /// The same for the threads that run handlers.
    pub executor_priority: u8,
    /// The same for the node's other threads.
    pub helper_priority: u8,
    /// Keeps all of the process's memory, present and future, from being paged out.
    pub lock_memory: bool,
    /// Processors that the data-plane thread may run on; empty: all.
    pub cpus: Vec<usize>,
    /// How long the data-plane thread looks for work before it sleeps; 0: not at all.
    pub spin: Duration,
    /// Keeps the host's idle processors in states that they leave within this time; zero: they do
    /// not sleep. `None`: as the system likes.
    pub wake_within: Option<Duration>,
}

impl Default for Realtime {
    fn default() -> Self {
        Realtime {
            runtime: Duration::ZERO,
            runtime_most: Duration::ZERO,
            period: PERIOD,
            daemon: None,
            network_mb_s: 0,
            priority: 0,
            executor_priority: 0,
            helper_priority: 0,
            lock_memory: false,
            cpus: Vec::new(),
            spin: Duration::ZERO,
            wake_within: None,
        }
    }
}

/// The result of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// Nobody asked for it.
    #[default]
    NotAsked,
    /// The system has given it.
    InForce,
    /// The system has refused it: why, and what to do.
    Refused(String),
}

/// The parts of [`Realtime`] that are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealtimeStatus {
    /// Reserved time of the data-plane thread.
    #[serde(default)]
    pub runtime_us: Grant,
    /// The rate of the node's packets.
    #[serde(default)]
    pub network_mb_s: Grant,
    /// SCHED_FIFO of the data-plane thread.
    pub priority: Grant,
    /// SCHED_FIFO of the threads that run handlers.
    pub executor_priority: Grant,
    /// SCHED_FIFO of the other threads.
    #[serde(default)]
    pub helper_priority: Grant,
    /// Locked memory.
    pub lock_memory: Grant,
    /// Processors of its own.
    pub cpus: Grant,
    /// Processors that are woken in time.
    #[serde(default)]
    pub wake_within_us: Grant,
}

impl RealtimeStatus {
    /// Each request with its name in the configuration.
    pub fn grants(&self) -> [(&'static str, &Grant); 8] {
        [
            ("runtime_us", &self.runtime_us),
            ("network_mb_s", &self.network_mb_s),
            ("priority", &self.priority),
            ("executor_priority", &self.executor_priority),
            ("helper_priority", &self.helper_priority),
            ("lock_memory", &self.lock_memory),
            ("cpus", &self.cpus),
            ("wake_within_us", &self.wake_within_us),
        ]
    }
}

impl Realtime {
    /// Asks for the calling thread's part, and for the process's: called by the data-plane thread
    /// before its loop. `reserve` makes its reservations, of time and of networks. Refusals are
    /// logged. The returned value keeps processors awake until dropped.
    pub fn apply(
        &self,
        reserve: impl FnOnce() -> (Grant, Grant),
    ) -> (RealtimeStatus, Option<Awake>) {
        let (awake, wake_within_us) = match self.wake_within.map(Awake::hold) {
            None => (None, Grant::NotAsked),
            Some(Ok(awake)) => (Some(awake), Grant::InForce),
            Some(Err(why)) => (None, Grant::Refused(why)),
        };
        let (runtime_us, network_mb_s) = reserve();
        let priority = match runtime_us {
            Grant::InForce => Grant::NotAsked,
            _ => fifo(self.priority),
        };
        let status = RealtimeStatus {
            runtime_us,
            network_mb_s,
            priority,
            executor_priority: probe_on_a_thread(self.executor_priority),
            helper_priority: probe_on_a_thread(self.helper_priority),
            lock_memory: if self.lock_memory { lock_memory() } else { Grant::NotAsked },
            cpus: pin(&self.cpus),
            wake_within_us,
        };
        for (knob, grant) in status.grants() {
            if let Grant::Refused(why) = grant {
                tracing::warn!("realtime.{knob} is not in force: {why}");
            }
        }
        (status, awake)
    }
}

/// Gives the calling thread this SCHED_FIFO priority; 0 leaves it as it is.
pub fn fifo(priority: u8) -> Grant {
    if priority == 0 {
        return Grant::NotAsked;
    }
    match sched::set_class(None, Class::Fifo(priority)) {
        Ok(()) => Grant::InForce,
        Err(error) => Grant::Refused(format!(
            "SCHED_FIFO {priority} was refused ({error}): give the process CAP_SYS_NICE (setcap \
             cap_sys_nice+ep), or a limit: LimitRTPRIO={priority} in its systemd unit, `ulimit -r \
             {priority}` in a shell"
        )),
    }
}

/// Gives the calling thread this SCHED_FIFO priority, or makes it ordinary if that is 0, whatever
/// it has inherited.
pub fn fifo_or_ordinary(priority: u8) -> Grant {
    if priority == 0 && sched::class(None).is_ok_and(|class| class != Class::Ordinary) {
        // Anybody may be ordinary.
        let _ = sched::set_class(None, Class::Ordinary);
    }
    fifo(priority)
}

/// Reserves so much time in each period for the calling thread; zero reserves none.
pub fn reserve(runtime: Duration, period: Duration) -> Grant {
    if runtime.is_zero() {
        return Grant::NotAsked;
    }
    let reserve = Reserve { runtime, deadline: period, period };
    let Err(error) = sched::set_class(None, Class::Deadline(reserve)) else {
        return Grant::InForce;
    };
    let remedy = match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => {
            "the processors have not so much time left: reserve less, or end other programs with \
             reservations"
        }
        Some(Errno::INVAL) => {
            "the kernel takes periods of 100 us to 4 s, unless kernel.sched_deadline_period_min_us \
             and _max_us say otherwise"
        }
        _ => {
            "give the process CAP_SYS_NICE (setcap cap_sys_nice+ep, or AmbientCapabilities= in its \
             systemd unit), and all processors (no taskset, CPUAffinity= or [realtime] cpus)"
        }
    };
    Grant::Refused(format!(
        "SCHED_DEADLINE, {runtime:?} in every {period:?}, was refused ({error}): {remedy}"
    ))
}

/// Whether a thread could have this reservation, tried on one that ends at once.
pub fn probe_reserve(runtime: Duration, period: Duration) -> Grant {
    on_a_thread(move || reserve(runtime, period))
}

/// Whether a thread could have this SCHED_FIFO priority, tried on one that ends at once.
pub fn probe_on_a_thread(priority: u8) -> Grant {
    if priority == 0 {
        return Grant::NotAsked;
    }
    on_a_thread(move || fifo(priority))
}

fn on_a_thread(ask: impl FnOnce() -> Grant + Send + 'static) -> Grant {
    match std::thread::Builder::new().spawn(ask).map(|thread| thread.join()) {
        Ok(Ok(grant)) => grant,
        _ => Grant::Refused("no thread could be started to try it".into()),
    }
}

fn lock_memory() -> Grant {
    // On fault: what was touched stays. Else every thread's whole stack would be made at once.
    let wanted = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    match rustix::mm::mlockall(wanted) {
        Ok(()) => Grant::InForce,
        Err(error) => Grant::Refused(refused_memory(error.into())),
    }
}

/// Whether the process's present memory could be locked. It is not, after this.
pub fn probe_lock_memory() -> Grant {
    match rustix::mm::mlockall(MlockAllFlags::CURRENT) {
        Ok(()) => {
            // It was possible to lock it, so it is possible to unlock it.
            let _ = rustix::mm::munlockall();
            Grant::InForce
        }
        Err(error) => Grant::Refused(refused_memory(error.into())),
    }
}

fn refused_memory(error: io::Error) -> String {
    format!(
        "memory cannot be locked ({error}): give the process CAP_IPC_LOCK, or a limit: \
         LimitMEMLOCK=infinity in its systemd unit, `ulimit -l unlimited` in a shell"
    )
}

fn pin(cpus: &[usize]) -> Grant {
    if cpus.is_empty() {
        return Grant::NotAsked;
    }
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
        set.set(*cpu);
    }
    match rustix::thread::sched_setaffinity(None, &set) {
        Ok(()) => Grant::InForce,
        Err(error) => Grant::Refused(format!(
            "processors {cpus:?} were refused ({error}): name some that exist and that the \
             process may use (`taskset -p`, AllowedCPUs= of its systemd unit)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_for_by_default() {
        let (status, _) = Realtime::default().apply(|| (Grant::NotAsked, Grant::NotAsked));
        assert!(status.grants().iter().all(|(_, grant)| **grant == Grant::NotAsked));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        // No machine has this processor, so this is refused to every user.
        let asked = Realtime { cpus: vec![CpuSet::MAX_CPU - 1], ..Realtime::default() };
        let (status, _) =
            std::thread::spawn(move || asked.apply(|| (Grant::NotAsked, Grant::NotAsked)))
                .join()
                .unwrap();
        let Grant::Refused(why) = status.cpus else { panic!("{status:?}") };
        assert!(why.contains("taskset"), "{why}");
    }

    #[test]
    fn a_priority_is_given_or_refused_with_the_remedy() {
        match probe_on_a_thread(1) {
            Grant::InForce => {}
            Grant::Refused(why) => assert!(why.contains("LimitRTPRIO"), "{why}"),
            Grant::NotAsked => panic!("it was asked for"),
        }
    }
}
