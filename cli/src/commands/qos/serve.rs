//! `steadfast qos serve`: runs the daemon.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use qos::host::{Capacity, Host, Platform, Rate};
use qosd::{Groups, Limiters, Networks, Server, platform};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steadfast::realtime::{Grant, fifo};
use wire::Share;

use crate::commands::{Failure, log, notify};

/// The socket in the RuntimeDirectory of the daemon's unit.
pub const SOCKET: &str = "/run/steadfast-qos/qos.sock";

/// Above all services: a request is answered beside any load. Interrupts' threads have 50.
const PRIORITY: u8 = 49;

/// The share of each processor that Linux's server for ordinary programs has (since 6.12).
const FAIR_SERVER: u64 = 5;

const EXAMPLES: &str = "\
Examples:
  steadfast qos serve                                        as root, or under its systemd unit
  steadfast qos serve --socket qos.sock                      to try it in a folder of one's own
  steadfast qos serve --device 254:0=200000000/100000000     compares disk limits with what the disk does
  steadfast qos serve --network eth0=1000                    shares out a network of 1 Gbit/s

The daemon needs CAP_SYS_NICE for processor time, CAP_NET_ADMIN for networks, and root for control
groups. What is not permitted is degraded: the log says it, and `steadfast qos` lists what is permitted.";

/// Runs the daemon of this host, until SIGTERM or SIGINT. Reserves in force outlive it until their
/// owners have asked the next one.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The socket at which nodes ask. Its folder must exist.
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
    /// Percent of each processor and network that reserves may have together.
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=95))]
    most: u64,
    /// Percent of the memory that reserves may keep together.
    #[arg(long, value_name = "PERCENT", default_value_t = 80, value_parser = clap::value_parser!(u64).range(0..=100))]
    memory_most: u64,
    /// A device's bytes a second, such as 254:0=200000000/100000000 (read/written): only with it
    /// are requests for the device compared with what it can do.
    #[arg(long = "device", value_name = "NUMBER=READ/WRITTEN", value_parser = device)]
    devices: Vec<(String, Rate)>,
    /// A network interface and the megabits a second that it can send, such as eth0=1000: it is
    /// shared out (HTB, needs CAP_NET_ADMIN and `tc`). Nodes ask with `network_mb_s` in [realtime].
    #[arg(long = "network", value_name = "INTERFACE=MEGABITS", value_parser = network)]
    networks: Vec<(String, u64)>,
}

/// Serves.
pub fn serve(args: &Args) -> Result<(), Failure> {
    let log = log::start(None)?;
    let groups =
        Groups::find(&fs::read_to_string("/proc/mounts").unwrap_or_default(), Path::new("/"));
    let networks = Networks::open(args.networks.iter().cloned().collect());
    for why in networks.refused() {
        tracing::warn!("degraded: a network is not shared out: {why}");
    }
    let limiters = Limiters { groups, networks };
    let platform = platform::probe(&limiters);
    if !platform.deadline {
        tracing::warn!(
            "degraded: SCHED_DEADLINE is not permitted: give the daemon CAP_SYS_NICE and all \
             processors"
        );
    }
    let capacity = Capacity {
        processors: u32::try_from(thread::available_parallelism().map_or(1, usize::from))
            .unwrap_or(u32::MAX),
        taken: Share::percent(FAIR_SERVER),
        most: Share::percent(args.most),
        memory: memory() / 100 * args.memory_most,
        devices: args.devices.iter().cloned().collect::<BTreeMap<_, _>>(),
        networks: left_for_reserves(limiters.networks.interfaces(), args.most),
    };
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Failure::Failed(format!("cannot handle signals: {error}")))?;
    if let Grant::Refused(why) = fifo(PRIORITY) {
        tracing::warn!("degraded: requests may wait for other programs: {why}");
    }
    let server = Server::open(&args.socket, Host::new(capacity, platform), limiters)
        .map_err(Failure::failed)?;
    let (wake, woken) = mpsc::channel();
    let by_signal = wake.clone();
    thread::spawn(move || signals.forever().next().map(|_| by_signal.send(Ok(()))));
    thread::spawn(move || wake.send(server.serve()));
    let Platform { deadline, fifo, memory, devices, networks } = platform;
    let socket = args.socket.display();
    tracing::info!(%socket, deadline, fifo = fifo > 0, memory, devices, networks, "serving");
    // It may run without systemd.
    let _ = notify::systemd("READY=1");
    let ended = woken.recv().unwrap_or(Ok(()));
    log.flush();
    ended.map_err(|error| Failure::Failed(format!("the daemon cannot go on: {error}")))
}

/// Bytes a second that reserves may have. Other packets have the rest, at least a twentieth.
fn left_for_reserves(interfaces: &BTreeMap<String, u64>, most: u64) -> BTreeMap<String, u64> {
    let share = |rate: &u64| rate / 100 * most.min(90);
    interfaces.iter().map(|(name, rate)| (name.clone(), share(rate))).collect()
}

/// Bytes of memory of this host.
fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

fn device(text: &str) -> Result<(String, Rate), String> {
    let wrong = || "give a device's number and bytes a second, such as 254:0=200000000/100000000";
    let (number, rates) = text.split_once('=').ok_or_else(wrong)?;
    let (read, write) = rates.split_once('/').ok_or_else(wrong)?;
    let parse = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (major, minor) = number.split_once(':').ok_or_else(wrong)?;
    for part in [major, minor] {
        part.parse::<u32>().map_err(|_| wrong())?;
    }
    Ok((number.into(), Rate { read: parse(read)?, write: parse(write)? }))
}

/// An interface, and the bytes a second that it can send.
fn network(text: &str) -> Result<(String, u64), String> {
    let wrong = || "give an interface and its megabits a second, such as eth0=1000";
    let (name, megabits) = text.split_once('=').ok_or_else(wrong)?;
    // As the system names them. `tc` reads lines of words.
    let is_name = |name: &str| {
        (1..=15).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_graphic() && it != b'/')
    };
    let megabits = megabits.parse::<u64>().map_err(|_| wrong())?;
    if !is_name(name) || !(1..=1_000_000).contains(&megabits) {
        return Err(wrong().into());
    }
    Ok((name.into(), megabits * 125_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_a_name_and_a_rate() {
        assert_eq!(network("eth0=1000"), Ok(("eth0".into(), 125_000_000)));
        for wrong in ["eth0", "=1", "eth0=0", "eth0=x", "eth 0=1", "eth/0=1", "a-very-long-name=1"]
        {
            network(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn a_device_has_a_number_and_two_rates() {
        let rate = Rate { read: 200, write: 100 };
        assert_eq!(device("254:0=200/100"), Ok(("254:0".into(), rate)));
        for wrong in ["", "vda=1/2", "254:0", "254:0=1", "254:0=a/1", "254:x=1/1"] {
            device(wrong).expect_err(wrong);
        }
    }
}
