//! Requests and answers: JSON, one line each.

use std::collections::BTreeMap;
use std::time::Duration;

use qos::Task;
use qos::host::{Ask, Mechanism, Rate, Threads, Traffic};
use serde::{Deserialize, Serialize};

/// Bytes of a request, its end included.
pub const MAX_LINE: usize = 16 << 10;

/// A request of a node or of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Makes a reserve, or changes the one of this path. It lasts as long as the connection.
    Reserve(Wanted),
    /// Ends a reserve of this connection.
    Release {
        /// Its path.
        path: String,
    },
    /// Shows all reserves.
    Show,
}

/// A reserve, as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Its place in the host's tree: `n1/plane`.
    pub path: String,
    /// The thread that has the processor time. It belongs to the asking process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i32>,
    /// The process that has the memory and devices, and the processor time if there is no thread:
    /// the asking one, or one below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<i32>,
    /// Processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Bytes of memory that are kept for the process.
    #[serde(default)]
    pub memory: u64,
    /// Bytes of memory that it may not exceed; 0: no limit.
    #[serde(default)]
    pub memory_most: u64,
    /// Bytes a second of devices, by number (`254:0`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, Device>,
    /// Bytes a second of its packets at each network interface; 0: no more than others.
    #[serde(default, skip_serializing_if = "is_none")]
    pub network: u64,
    /// The ports of these packets: they leave from one of them, or go to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

fn is_none(rate: &u64) -> bool {
    *rate == 0
}

/// Processor time of a thread, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// In each period.
    pub runtime_us: u64,
    /// Within which it is there.
    pub deadline_us: u64,
    /// The period.
    pub period_us: u64,
}

/// Bytes a second of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Device {
    /// Read.
    pub read: u64,
    /// Written.
    pub write: u64,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The reserve is made; what the system does not permit is listed.
    Reserved {
        /// The mechanism for its processor time.
        cpu: Enforced,
        /// Parts that are not in force, with the reason and the remedy.
        degraded: Vec<String>,
    },
    /// The reserve is ended.
    Released,
    /// All reserves of the host.
    Tree(Tree),
    /// It is not done: the reason and the remedy.
    Refused {
        /// The words.
        error: String,
        /// The host has no room: another one may.
        full: bool,
    },
}

/// The mechanism for a reserve of processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforced {
    /// None was asked for.
    None,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_FIFO with this priority.
    Fifo(u8),
    /// Nothing: it is not permitted.
    Degraded,
}

/// The host's reserves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Processors of the host.
    pub processors: u32,
    /// Processor time that reserves may have, in millionths of one processor.
    pub cpu: u64,
    /// Bytes of memory that they may have.
    pub memory: u64,
    /// Classes that the daemon may set: `deadline`, `fifo`.
    pub permitted: Vec<String>,
    /// The reserves, in order of their paths.
    pub reserves: Vec<Shown>,
}

/// A reserve, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The request.
    #[serde(flatten)]
    pub wanted: Wanted,
    /// The mechanism for its processor time.
    pub enforced: Enforced,
    /// Processor time that the thread or process has used since the reserve was made, in
    /// microseconds.
    pub used_us: u64,
    /// Parts that are not in force.
    pub degraded: Vec<String>,
}

impl Wanted {
    /// As the machine is asked.
    pub(crate) fn ask(&self) -> Ask {
        let task = |cpu: Cpu| Task {
            cost: Duration::from_micros(cpu.runtime_us),
            deadline: Duration::from_micros(cpu.deadline_us),
            period: Duration::from_micros(cpu.period_us),
        };
        let rate = |device: &Device| Rate { read: device.read, write: device.write };
        Ask {
            cpu: self.cpu.map(task),
            threads: if self.thread.is_some() { Threads::One } else { Threads::Program },
            memory: self.memory,
            memory_most: self.memory_most,
            devices: self.devices.iter().map(|(name, it)| (name.clone(), rate(it))).collect(),
            traffic: Traffic { rate: self.network, ports: self.ports.clone() },
        }
    }

    /// As it is shown.
    pub(crate) fn of(path: &str, thread: Option<i32>, process: Option<i32>, ask: &Ask) -> Wanted {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let cpu = |task: Task| Cpu {
            runtime_us: micros(task.cost),
            deadline_us: micros(task.deadline),
            period_us: micros(task.period),
        };
        let device = |rate: &Rate| Device { read: rate.read, write: rate.write };
        Wanted {
            path: path.into(),
            thread,
            process,
            cpu: ask.cpu.map(cpu),
            memory: ask.memory,
            memory_most: ask.memory_most,
            devices: ask.devices.iter().map(|(name, it)| (name.clone(), device(it))).collect(),
            network: ask.traffic.rate,
            ports: ask.traffic.ports.clone(),
        }
    }
}

impl From<Mechanism> for Enforced {
    fn from(mechanism: Mechanism) -> Self {
        match mechanism {
            Mechanism::None => Enforced::None,
            Mechanism::Deadline(_) => Enforced::Deadline,
            Mechanism::Fifo(priority) => Enforced::Fifo(priority),
            Mechanism::Degraded => Enforced::Degraded,
        }
    }
}
