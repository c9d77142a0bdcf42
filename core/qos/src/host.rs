//! The reserves of one host: what was asked, whether it is admitted, and what enforces it
//! (`stheno.txt`, section 3.1, figure 3).
//!
//! A reserve is a leaf of a tree: host, runtime (a node), part of it (its data plane, a service).
//! Its name is the path below the host, such as `n1/plane`. The machine decides; the daemon asks
//! the kernel, and tells the machine if the kernel refuses. A reserve may be asked for anew with
//! other figures at any time: it is changed as a whole, or stays as it was.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use wire::Share;

use crate::{Task, global, priority};

mod refusal;

pub use refusal::{MAX_PATH, MAX_PORTS, MAX_RESERVES, Refusal};

/// The resources of a host that reserves may have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Its processors.
    pub processors: u32,
    /// The share of each that others of the deadline class take: Linux's server for ordinary tasks
    /// has 5 %.
    pub taken: Share,
    /// The share of each that reserves may have.
    pub most: Share,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes a second of each device, by its number (`254:0`). A device that is not here has no
    /// known rate: limits are set there, and nothing is promised.
    pub devices: BTreeMap<String, Rate>,
    /// Bytes a second that reserves may have together at each network interface, by its name.
    pub networks: BTreeMap<String, u64>,
}

/// Bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Read.
    pub read: u64,
    /// Written.
    pub write: u64,
}

/// Packets of a reserve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes a second that they have at each interface; 0: no more than others.
    pub rate: u64,
    /// Their ports: packets that leave from one of them, or go to it. At most [`MAX_PORTS`].
    pub ports: Vec<u16>,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Processor time of each thread.
    pub cpu: Option<Task>,
    /// The threads: one, or those of a whole program.
    pub threads: Threads,
    /// Bytes of memory that are kept for it.
    pub memory: u64,
    /// Bytes of memory that it may not exceed; 0: no limit.
    pub memory_most: u64,
    /// Bytes a second of each device, by its number.
    pub devices: BTreeMap<String, Rate>,
    /// The rate of its packets.
    pub traffic: Traffic,
}

/// The threads of a reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// One thread, which may have a deadline.
    #[default]
    One,
    /// A program with any number of threads, of which one works for a call. They share a priority.
    Program,
}

/// The system's permissions of the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// SCHED_DEADLINE.
    pub deadline: bool,
    /// The highest SCHED_FIFO priority for services; 0: none.
    pub fifo: u8,
    /// Control groups that hold memory.
    pub memory: bool,
    /// Control groups that limit devices.
    pub devices: bool,
    /// Classes of network interfaces.
    pub networks: bool,
}

/// The mechanism for a reserve of processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// None was asked for.
    None,
    /// SCHED_DEADLINE with the task's cost, deadline and period.
    Deadline(Task),
    /// SCHED_FIFO with a priority by its rate.
    Fifo(u8),
    /// Nothing: the system does not permit it.
    Degraded,
}

impl Mechanism {
    /// The thread has a class for it.
    pub fn is_enforced(self) -> bool {
        matches!(self, Mechanism::Deadline(_) | Mechanism::Fifo(_))
    }
}

impl Ask {
    /// The part that is not the scheduler's.
    pub fn limits(&self) -> (u64, u64, &BTreeMap<String, Rate>, &Traffic) {
        (self.memory, self.memory_most, &self.devices, &self.traffic)
    }
}

/// An admitted reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The request.
    pub ask: Ask,
    /// The mechanism for its processor time.
    pub cpu: Mechanism,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Host {
    capacity: Capacity,
    platform: Platform,
    reserves: BTreeMap<String, Reserve>,
}

impl Host {
    /// A host without reserves.
    pub fn new(capacity: Capacity, platform: Platform) -> Host {
        Host { capacity, platform, reserves: BTreeMap::new() }
    }

    /// Its resources.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// The system's permissions.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// All reserves, in order of their paths: so the leaves of a runtime stand together.
    pub fn reserves(&self) -> impl Iterator<Item = (&str, &Reserve)> {
        self.reserves.iter().map(|(path, reserve)| (path.as_str(), reserve))
    }

    /// Admits a reserve, or changes the one of this path.
    ///
    /// # Errors
    /// There is no room, or it is impossible; a reserve of this path stays as it was.
    pub fn admit(&mut self, path: &str, ask: Ask) -> Result<&Reserve, Refusal> {
        check_path(path)?;
        if !self.reserves.contains_key(path) && self.reserves.len() >= MAX_RESERVES {
            return Err(Refusal::TooMany);
        }
        self.check_processors(path, &ask)?;
        self.check_memory(path, &ask)?;
        self.check_devices(path, &ask)?;
        self.check_traffic(path, &ask.traffic)?;
        let cpu = self.mechanism(&ask);
        self.reserves.insert(path.into(), Reserve { ask, cpu });
        Ok(&self.reserves[path])
    }

    /// Ends a reserve; the one that was there.
    pub fn release(&mut self, path: &str) -> Option<Reserve> {
        self.reserves.remove(path)
    }

    fn others(&self, path: &str) -> impl Iterator<Item = &Reserve> {
        self.reserves.iter().filter(move |(other, _)| other.as_str() != path).map(|(_, it)| it)
    }

    fn check_processors(&self, path: &str, ask: &Ask) -> Result<(), Refusal> {
        let Some(task) = ask.cpu else { return Ok(()) };
        let possible = !task.cost.is_zero() && task.cost <= task.deadline;
        if !possible || task.deadline > task.period {
            return Err(Refusal::Impossible);
        }
        let Capacity { processors, taken, most, .. } = self.capacity;
        let mut tasks: Vec<Task> = self.others(path).filter_map(|other| other.ask.cpu).collect();
        let used: Share = tasks.iter().map(Task::share).sum();
        let left = Share(most.0 * u64::from(processors)).saturating_sub(used);
        tasks.push(task);
        if task.share() > left || !global::admits(&tasks, processors, taken) {
            return Err(Refusal::Processors { asked: task.share(), left });
        }
        Ok(())
    }

    fn check_memory(&self, path: &str, ask: &Ask) -> Result<(), Refusal> {
        if ask.memory_most > 0 && ask.memory > ask.memory_most {
            return Err(Refusal::Impossible);
        }
        let used: u64 = self.others(path).map(|other| other.ask.memory).sum();
        let left = self.capacity.memory.saturating_sub(used);
        if ask.memory > left {
            return Err(Refusal::Memory { asked: ask.memory, left });
        }
        Ok(())
    }

    fn check_devices(&self, path: &str, ask: &Ask) -> Result<(), Refusal> {
        for (device, asked) in &ask.devices {
            let Some(whole) = self.capacity.devices.get(device) else { continue };
            let others = || self.others(path).filter_map(|other| other.ask.devices.get(device));
            for (way, whole, asked, used) in [
                ("read", whole.read, asked.read, others().map(|other| other.read).sum::<u64>()),
                ("write", whole.write, asked.write, others().map(|other| other.write).sum()),
            ] {
                let left = whole.saturating_sub(used);
                if asked > left {
                    return Err(Refusal::Device { device: device.clone(), way, asked, left });
                }
            }
        }
        Ok(())
    }

    fn check_traffic(&self, path: &str, traffic: &Traffic) -> Result<(), Refusal> {
        let Traffic { rate, ports } = traffic;
        if (*rate > 0) == ports.is_empty() || ports.len() > MAX_PORTS || ports.contains(&0) {
            return Err(Refusal::Impossible);
        }
        let mut taken = self.others(path).flat_map(|other| &other.ask.traffic.ports);
        if let Some(port) = taken.find(|port| ports.contains(port)) {
            return Err(Refusal::Port(*port));
        }
        let rates = self.others(path).map(|other| other.ask.traffic.rate);
        let used = rates.fold(0, u64::saturating_add);
        for (network, whole) in &self.capacity.networks {
            let left = whole.saturating_sub(used);
            if *rate > left {
                return Err(Refusal::Network { network: network.clone(), asked: *rate, left });
            }
        }
        Ok(())
    }

    fn mechanism(&self, ask: &Ask) -> Mechanism {
        match (ask.cpu, ask.threads) {
            (None, _) => Mechanism::None,
            (Some(task), Threads::One) if self.platform.deadline => Mechanism::Deadline(task),
            (Some(task), _) if self.platform.fifo > 0 => {
                Mechanism::Fifo(priority::by_rate(task.period, self.platform.fifo))
            }
            (Some(_), _) => Mechanism::Degraded,
        }
    }
}

/// A path has at least two parts, of letters, digits and `-_.`: it becomes the name of a control
/// group.
fn check_path(path: &str) -> Result<(), Refusal> {
    let part = |part: &str| {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(usual)
    };
    let possible = path.len() <= MAX_PATH && path.contains('/') && path.split('/').all(part);
    if possible { Ok(()) } else { Err(Refusal::Path(path.chars().take(MAX_PATH).collect())) }
}

#[cfg(test)]
mod tests;
