//! Calls of a group on disk, beside a program that writes to the same disk all that it can: without
//! a reserve, and with a limit that the host's daemon has set for that program.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use qos::host::{Capacity, Host};
use qosd::{Client as Qos, Device, Groups, Server, Wanted, disk_of, platform};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast::{Client, Invocation};
use wire::Share;

use harness::cluster::{Cluster, Plan};
use harness::echo::ECHO;
use harness::figures::Times;
use harness::process::{Process, Role};
use harness::report::row;
use harness::{Experiment, Outcome, Run};

const GROUP: &str = "disk";
const SIZE: usize = 1_024;
const DEADLINE: Duration = Duration::from_secs(30);

/// Bytes that the hog writes at a time, and of its file.
const BLOCK: usize = 1 << 20;
const FILE: u64 = 256 << 20;

/// A group's calls on disk beside a program that writes to the same disk all that it can.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Calls of each run.
    #[arg(long, default_value_t = 2_000)]
    calls: usize,
    /// Millions of bytes a second that the limited program may write.
    #[arg(long, default_value_t = 10)]
    limit_mb_s: u64,
    /// Nodes keep the group in a folder of its own here.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
}

/// The orders of the hog.
#[derive(Serialize, Deserialize)]
struct Orders {
    file: PathBuf,
}

impl Experiment for Options {
    const NAME: &'static str = "neighbour";
    const SMOKE: &'static str = "--calls 20";

    fn impossible(&self) -> Option<String> {
        let groups = Groups::find(&fs::read_to_string("/proc/mounts").ok()?, Path::new("/"));
        (!groups.has_devices()).then(|| "no control group that limits disks can be made".into())
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let folder = tempfile::tempdir_in(&self.storage)?;
        let socket = folder.path().join("qos.sock");
        serve(&socket)?;
        let cluster = Cluster::start(Plan {
            storage: Some(self.storage.clone()),
            ..Plan::of(3, 3, &[GROUP])
        })?;
        let client = cluster.connect()?;
        self.measure(&client)?;
        run.begin(&format!(
            "calls of 1 KiB to a group of 3 on disk, one after the other; the neighbour writes \
             blocks of 1 MiB past the cache; limited to {} MB/s; ms",
            self.limit_mb_s
        ));
        let table =
            run.table("neighbour:<10, wrote MB/s=wrote_mb_s:11.1, p50:9.2, p99:9.2, max:9.2");
        for name in ["none", "unlimited", "limited"] {
            let file = folder.path().join("hog");
            let mut hog = match name {
                "none" => None,
                _ => Some(Process::start(&Role::own(Self::NAME, Orders { file })?)?),
            };
            let mut qos = Qos::connect(&socket)?;
            if let (Some(hog), "limited") = (&hog, name) {
                let (_, degraded) = qos.reserve(self.wanted(hog.id(), folder.path())?)?;
                if let Some(why) = degraded.first() {
                    return Err(why.clone().into());
                }
            }
            let began = Instant::now();
            let times = self.measure(&client)?;
            let span = began.elapsed().as_secs_f64();
            let wrote = match &mut hog {
                None => 0,
                Some(hog) => written(hog.id())?,
            };
            let all = times.summary().ok_or("no calls")?;
            table.row(&row(
                json!({ "p50": all.p50 / 1e3, "p99": all.p99 / 1e3, "max": all.max / 1e3 }),
                json!({
                    "peer": "steadfast", "measure": "neighbour", "neighbour": name,
                    "wrote_mb_s": wrote as f64 / 1e6 / span,
                }),
            ));
        }
        Ok(())
    }

    fn live(orders: Value) -> Outcome<()> {
        let Orders { file } = serde_json::from_value(orders)?;
        let direct = OFlags::DIRECT.bits().cast_signed();
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(direct)
            .open(file)?;
        // Writes past the cache begin at a page.
        let buffer = vec![7; BLOCK + 4_096];
        let page = buffer.as_ptr().align_offset(4_096);
        let block = &buffer[page..page + BLOCK];
        loop {
            file.write_all(block)?;
            if file.stream_position()? >= FILE {
                file.seek(SeekFrom::Start(0))?;
            }
        }
    }
}

impl Options {
    fn measure(&self, client: &Client) -> Outcome<Times> {
        let (mut times, body) = (Times::default(), Bytes::from_static(&[7; SIZE]));
        times.measure(self.calls, || {
            let call = Invocation::new(GROUP, ECHO).body(body.clone()).within(DEADLINE);
            client.call(call).map(drop).map_err(Into::into)
        })?;
        Ok(times)
    }

    fn wanted(&self, process: u32, folder: &Path) -> Outcome<Wanted> {
        let write = self.limit_mb_s * 1_000_000;
        let devices = BTreeMap::from([(disk_of(folder)?, Device { read: 0, write })]);
        let process = Some(i32::try_from(process)?);
        Ok(Wanted { path: "lab/hog".into(), process, devices, ..Wanted::default() })
    }
}

/// A daemon in this process, which may make control groups.
fn serve(socket: &Path) -> Outcome<()> {
    let groups = Groups::find(&fs::read_to_string("/proc/mounts")?, Path::new("/"));
    let platform = platform::probe(&groups);
    let processors = u32::try_from(thread::available_parallelism()?.get())?;
    let (taken, most) = (Share::percent(5), Share::percent(90));
    let capacity = Capacity { processors, taken, most, memory: 0, devices: BTreeMap::new() };
    let server = Server::open(socket, Host::new(capacity, platform), groups)?;
    thread::spawn(move || server.serve());
    Ok(())
}

/// Bytes that a process has had written to disks.
fn written(process: u32) -> Outcome<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/io"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.ok_or("its io has no bytes written")?.trim().parse()?)
}
