//! Keeps a node's answers in time on a busy host: a real-time priority, memory that is never paged
//! out, processors of its own, and a look at the sockets before it sleeps.
//!
//! Each is asked for in the configuration and may be refused by the system. A refusal degrades
//! the node and never stops it; [`RealtimeStatus`] says which is in force, and why one is not.

use std::io;

use rustix::mm::MlockAllFlags;
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use wire::Duration;

mod awake;

pub use awake::{Awake, IdleState, awake_in_force, driver, idle_states, probe_awake};

/// The highest priority of Linux's SCHED_FIFO.
pub const MAX_PRIORITY: u8 = 99;

/// The longest spin that is worth anything: several times what waking a core costs (25 to 30 µs
/// on the machines that this was measured on).
pub const MAX_SPIN: Duration = Duration::from_millis(1);

/// The longest time within which it makes sense to ask for processors to be woken: deeper sleep
/// than that there is none.
pub const MAX_WAKE_WITHIN: Duration = Duration::from_millis(1);

/// Requests to the system. None by default: all of them take from others on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Realtime {
    /// SCHED_FIFO priority of the data-plane thread, 1 to [`MAX_PRIORITY`]; 0: ordinary.
    pub priority: u8,
    /// The same for the threads that run handlers.
    pub executor_priority: u8,
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
    /// SCHED_FIFO of the data-plane thread.
    pub priority: Grant,
    /// SCHED_FIFO of the threads that run handlers.
    pub executor_priority: Grant,
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
    pub fn grants(&self) -> [(&'static str, &Grant); 5] {
        [
            ("priority", &self.priority),
            ("executor_priority", &self.executor_priority),
            ("lock_memory", &self.lock_memory),
            ("cpus", &self.cpus),
            ("wake_within_us", &self.wake_within_us),
        ]
    }
}

impl Realtime {
    /// Asks for the calling thread's part, and for the process's: called by the data-plane thread
    /// before its loop. Refusals are logged. The returned value keeps processors awake until
    /// dropped.
    pub fn apply(&self) -> (RealtimeStatus, Option<Awake>) {
        let (awake, wake_within_us) = match self.wake_within.map(Awake::hold) {
            None => (None, Grant::NotAsked),
            Some(Ok(awake)) => (Some(awake), Grant::InForce),
            Some(Err(why)) => (None, Grant::Refused(why)),
        };
        let status = RealtimeStatus {
            priority: fifo(self.priority),
            executor_priority: probe_on_a_thread(self.executor_priority),
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
    // A value above the range is refused by the configuration's check.
    let value = ThreadPriorityValue::try_from(priority).unwrap_or(ThreadPriorityValue::MIN);
    let set = set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(value),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    );
    match set {
        Ok(()) => Grant::InForce,
        Err(error) => Grant::Refused(format!(
            "SCHED_FIFO {priority} was refused ({error:?}): give the process CAP_SYS_NICE (setcap \
             cap_sys_nice+ep), or a limit: LimitRTPRIO={priority} in its systemd unit, `ulimit -r \
             {priority}` in a shell"
        )),
    }
}

/// Whether a thread could have this SCHED_FIFO priority, tried on one that ends at once.
pub fn probe_on_a_thread(priority: u8) -> Grant {
    if priority == 0 {
        return Grant::NotAsked;
    }
    let tried = std::thread::Builder::new().spawn(move || fifo(priority)).map(|t| t.join());
    match tried {
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
        let (status, _) = Realtime::default().apply();
        assert!(status.grants().iter().all(|(_, grant)| **grant == Grant::NotAsked));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        // No machine has this processor, so this is refused to every user.
        let asked = Realtime { cpus: vec![CpuSet::MAX_CPU - 1], ..Realtime::default() };
        let (status, _) = std::thread::spawn(move || asked.apply()).join().unwrap();
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
