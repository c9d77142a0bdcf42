//! The kernel's permissions of this process, by trial.

use std::time::Duration;

use os::realtime::Grant;
use os::realtime::{PERIOD, probe_on_a_thread, probe_reserve};
use qos::host::Platform;

use crate::enforce::Limiters;

/// The SCHED_FIFO priority of the services with the shortest periods. Kernel threads of interrupts
/// have 50.
pub const SERVICES: u8 = 40;

/// The smallest reservation that says whether any is permitted.
const TRIAL: Duration = Duration::from_micros(100);

/// Tries each class on a thread that ends at once, and looks at what limits others.
pub fn probe(Limiters { groups, networks }: &Limiters) -> Platform {
    let permitted = |grant: Grant| grant == Grant::InForce;
    Platform {
        deadline: permitted(probe_reserve(TRIAL, PERIOD)),
        fifo: if permitted(probe_on_a_thread(SERVICES)) { SERVICES } else { 0 },
        memory: groups.has_memory(),
        devices: groups.has_devices(),
        networks: !networks.interfaces().is_empty(),
    }
}
