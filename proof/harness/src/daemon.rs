//! The daemon of a host's reserves, in a process of an experiment.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use qos::host::{Capacity, Host};
use qosd::{Groups, Limiters, Networks, Server, platform};
use wire::Share;

use crate::Outcome;

/// Opens one that may give 90 % of each processor and of these networks, each with the bytes a
/// second that it can send.
pub fn open(socket: &Path, networks: BTreeMap<String, u64>) -> Outcome<Server> {
    let limiters = Limiters { groups: groups()?, networks: Networks::open(networks.clone()) };
    if let Some(why) = limiters.networks.refused().first() {
        return Err(why.clone().into());
    }
    let platform = platform::probe(&limiters);
    let capacity = Capacity {
        processors: u32::try_from(thread::available_parallelism()?.get())?,
        taken: Share::percent(5),
        most: Share::percent(90),
        memory: 0,
        devices: BTreeMap::new(),
        networks: networks.into_iter().map(|(name, rate)| (name, rate / 10 * 9)).collect(),
    };
    Ok(Server::open(socket, Host::new(capacity, platform), limiters)?)
}

/// The control groups of this host.
pub fn groups() -> Outcome<Groups> {
    Ok(Groups::find(&fs::read_to_string("/proc/mounts")?, Path::new("/")))
}
