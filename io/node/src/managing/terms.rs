//! A deployment's needs, as this host's daemon and scheduler understand them.

use std::collections::BTreeMap;
use std::path::Path;

use manager::cluster_state::{Deployment, Reservation};
use qosd::{Cpu, Device, Wanted, disk_of, path};
use supervisor::Terms;
use wire::{Duration, NodeId};

/// The terms of a deployment's replica at this node.
pub(super) fn of(deployment: &Deployment, cluster: &str, me: NodeId) -> Terms {
    let Deployment { group, need, reserve, .. } = deployment;
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let cpu = need.map(|need| Cpu {
        runtime_us: micros(need.cost),
        deadline_us: micros(need.deadline),
        period_us: micros(need.period),
    });
    let wanted = |Reservation { memory, memory_most, disks }: &Reservation| {
        let mut devices: BTreeMap<String, Device> = BTreeMap::new();
        for disk in disks {
            match disk_of(Path::new(&disk.folder)) {
                Ok(number) => {
                    let device = devices.entry(number).or_default();
                    device.read += disk.read;
                    device.write += disk.write;
                }
                Err(error) => {
                    tracing::warn!(group, folder = disk.folder, %error, "degraded: no such disk");
                }
            }
        }
        let path = path(cluster, me, group);
        let (memory, memory_most) = (*memory, *memory_most);
        Wanted { path, cpu, memory, memory_most, devices, ..Wanted::default() }
    };
    Terms { period: need.map(|need| need.period), reserve: reserve.as_deref().map(wanted) }
}
