//! A group's calls beside a program that takes all that it can of one resource: without a reserve,
//! and with one that the host's daemon enforces.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::ValueEnum;
use node::sched::Class;
use qosd::{Client as Qos, Device, Wanted, disk_of};
use serde_json::{Value, json};
use steadfast::{Client, Invocation};

use harness::cluster::{Cluster, Placement, Plan};
use harness::echo::ECHO;
use harness::figures::Times;
use harness::hog::on_a_thread;
use harness::process::{Process, Role};
use harness::report::row;
use harness::{Experiment, Outcome, Run, daemon, hosts};

mod hog;

/// The priority of the data planes and of the client, where they have one.
const PRIORITY: u8 = 50;

const SIZE: usize = 1_024;
const DEADLINE: Duration = Duration::from_secs(30);

/// The discard port, at which nobody listens.
const DISCARD: u16 = 9;

/// The links of a node's host: the ring's and the clients'.
const LINKS: [&str; 2] = ["eth0", "eth1"];

/// A resource that a neighbour takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Resource {
    /// The disk: it writes past the cache. Reserve: it may write less.
    Disk,
    /// Memory: it fills the page cache. Reserve: it may have less of it.
    Memory,
    /// The network of a host: it sends datagrams. Reserve: the node's packets have a rate.
    Network,
}

/// A group's calls beside a program that takes all that it can of the disk, of memory or of the
/// network.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The resource.
    #[arg(long, default_value = "disk")]
    of: Resource,
    /// Calls of each run.
    #[arg(long, default_value_t = 2_000)]
    calls: usize,
    /// Millions of bytes a second that the limited program may write to the disk.
    #[arg(long, default_value_t = 10)]
    limit_mb_s: u64,
    /// Millions of bytes of memory that it may have.
    #[arg(long, default_value_t = 64)]
    limit_mb: u64,
    /// Megabits a second that each link of the primary's host can carry.
    #[arg(long, default_value_t = 100)]
    link_mbit: u64,
    /// Nodes keep the group in a folder of its own here.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
    /// The nodes' threads and the client are under SCHED_FIFO, as the neighbour takes processors,
    /// too. Needs CAP_SYS_NICE.
    #[arg(long)]
    fifo: bool,
}

impl Experiment for Options {
    const NAME: &'static str = "neighbour";
    const SMOKE: &'static str = "--calls 20";

    fn impossible(&self) -> Option<String> {
        if let Some(why) = harness::hog::impossible(u32::from(self.fifo)) {
            return Some(why);
        }
        let groups = daemon::groups().ok()?;
        let none = |what: &str| Some(format!("no control group that limits {what} can be made"));
        match self.of {
            Resource::Disk if !groups.has_devices() => none("disks"),
            Resource::Memory if !groups.has_memory() => none("memory"),
            Resource::Network => hosts::missing().map(|what| format!("hosts need {what}")),
            Resource::Disk | Resource::Memory => None,
        }
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let folder = tempfile::tempdir_in(&self.storage)?;
        let (group, placement) = match self.of {
            Resource::Network => ("inline", Placement::Hosts { links: 1 }),
            Resource::Disk | Resource::Memory => ("disk", Placement::Loopback),
        };
        let (storage, class) = (Some(self.storage.clone()), self.class());
        let mut cluster =
            Cluster::start(Plan { storage, placement, class, ..Plan::of(3, 3, &[group]) })?;
        let client = cluster.connect()?;
        let socket = folder.path().join("qos.sock");
        self.serve(&mut cluster, &socket)?;
        self.measure(&client, group)?;
        run.begin(&format!(
            "calls of 1 KiB to a group of 3 ({group}), one after the other; {}; {class:?}; ms",
            self.words()
        ));
        let table = run.table(
            "of=of:<8, neighbour:<10, files MB/s=moved_mb_s:11.1, p50:9.2, p99:9.2, max:9.2, \
             times alone=times:12.2",
        );
        let mut alone = None;
        for name in ["none", "free", "reserved"] {
            let hog = match name {
                "none" => None,
                _ => Some(self.hog(&mut cluster, folder.path())?),
            };
            let mut qos = Qos::connect(&socket)?;
            if let (Some(hog), "reserved") = (&hog, name) {
                let (_, degraded) =
                    qos.reserve(self.wanted(&cluster, hog.id(), folder.path())?)?;
                if let Some(why) = degraded.first() {
                    return Err(why.clone().into());
                }
            }
            let (began, before) = (Instant::now(), moved(hog.as_ref())?);
            let times = self.measure(&client, group)?;
            let span = began.elapsed().as_secs_f64();
            let moved = moved(hog.as_ref())? - before;
            let all = times.summary().ok_or("no calls")?;
            let p99 = *alone.get_or_insert(all.p99);
            table.row(&row(
                json!({ "p50": all.p50 / 1e3, "p99": all.p99 / 1e3, "max": all.max / 1e3 }),
                json!({
                    "peer": "steadfast", "measure": "neighbour", "neighbour": name,
                    "of": format!("{:?}", self.of), "times": all.p99 / p99,
                    "moved_mb_s": moved as f64 / 1e6 / span,
                }),
            ));
        }
        Ok(())
    }

    fn live(orders: Value) -> Outcome<()> {
        hog::live(&serde_json::from_value(orders)?)
    }
}

impl Options {
    fn words(&self) -> String {
        match self.of {
            Resource::Disk => format!(
                "the neighbour writes blocks of 1 MiB past the cache; reserved: at most {} MB/s",
                self.limit_mb_s
            ),
            Resource::Memory => format!(
                "the neighbour reads a file of 4 GiB through the cache; reserved: at most {} MB",
                self.limit_mb
            ),
            Resource::Network => format!(
                "the neighbour sends datagrams from the primary's host, whose links carry {} Mbit/s; \
                 reserved: half of each for the node",
                self.link_mbit
            ),
        }
    }

    /// Starts the daemon in this process: for a network, on the primary's host.
    fn serve(&self, cluster: &mut Cluster, socket: &Path) -> Outcome<()> {
        let open = |networks| {
            let server = daemon::open(socket, networks)?;
            // Its threads stay on the host of the thread that starts them.
            thread::spawn(move || server.serve());
            Ok(())
        };
        match self.of {
            Resource::Network => {
                let rate = self.link_mbit * 125_000;
                let networks = LINKS.map(|link| (link.to_owned(), rate));
                cluster.hosts()?.within(1, || open(BTreeMap::from(networks)))
            }
            Resource::Disk | Resource::Memory => open(BTreeMap::new()),
        }
    }

    fn hog(&self, cluster: &mut Cluster, folder: &Path) -> Outcome<Process> {
        let start = |orders| Process::start(&Role::own(Self::NAME, orders)?);
        let file = folder.join("hog");
        match self.of {
            Resource::Disk => start(hog::Orders::Write(file)),
            Resource::Memory => start(hog::Orders::Read(file)),
            Resource::Network => {
                let hosts = cluster.hosts()?;
                let clients = hosts.address(hosts.clients(), hosts.clients_link());
                let to = [hosts.address(2, 0), clients].map(|it| SocketAddr::new(it, DISCARD));
                hosts.within(1, || start(hog::Orders::Send { to: to.into() }))
            }
        }
    }

    /// The reserve against the neighbour: a limit of its own, or a rate of the primary's.
    fn wanted(&self, cluster: &Cluster, process: u32, folder: &Path) -> Outcome<Wanted> {
        let hog = Wanted {
            path: "lab/hog".into(),
            process: Some(i32::try_from(process)?),
            ..Wanted::default()
        };
        Ok(match self.of {
            Resource::Disk => {
                let limit = Device { read: 0, write: self.limit_mb_s * 1_000_000 };
                Wanted { devices: BTreeMap::from([(disk_of(folder)?, limit)]), ..hog }
            }
            Resource::Memory => Wanted { memory_most: self.limit_mb * 1_000_000, ..hog },
            Resource::Network => Wanted {
                path: "lab/n1".into(),
                network: self.link_mbit * 125_000 / 2,
                ports: cluster.ports_of_first(),
                ..Wanted::default()
            },
        })
    }

    fn class(&self) -> Class {
        if self.fifo { Class::Fifo(PRIORITY) } else { Class::Ordinary }
    }

    fn measure(&self, client: &Client, group: &'static str) -> Outcome<Times> {
        let body = Bytes::from_static(&[7; SIZE]);
        on_a_thread(self.class(), || {
            let mut times = Times::default();
            for _ in 0..self.calls {
                let begun = Instant::now();
                client.call(Invocation::new(group, ECHO).body(body.clone()).within(DEADLINE))?;
                times.push(begun.elapsed());
            }
            Ok(times)
        })
    }
}

fn moved(hog: Option<&Process>) -> Outcome<u64> {
    hog.map_or(Ok(0), |hog| hog::moved(hog.id()))
}
