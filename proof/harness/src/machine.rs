//! The machine that an experiment ran on.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::thread::available_parallelism;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Outcome;

/// Lets the calling thread run on this processor only.
pub fn run_on(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Runs `body` on this processor only, then lets the thread run where it might before.
pub fn while_on<T>(core: usize, body: impl FnOnce() -> T) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    run_on(core)?;
    let result = body();
    sched_setaffinity(None, &before)?;
    Ok(result)
}

/// Two processors that this process may run on, if there are two.
pub fn two_cores() -> io::Result<Option<(usize, usize)>> {
    let set = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core));
    Ok(cores.next().zip(cores.next()))
}

/// One line: processor, cores, kernel, load.
pub fn description() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let cores = available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{model}, {cores} cores, Linux {}, load {load}", kernel.trim())
}

/// How often each thread of a process has slept and been woken, by its name. Threads of one name
/// are one.
pub fn wake_ups_by_thread(process: u32) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        *all.entry(name.trim().to_owned()).or_default() += switches(&thread);
    }
    all
}

/// How often the threads of these processes have slept and been woken.
pub fn wake_ups(processes: &[u32]) -> u64 {
    let threads = processes.iter().filter_map(|id| fs::read_dir(format!("/proc/{id}/task")).ok());
    threads.flatten().flatten().map(|thread| switches(&thread)).sum()
}

/// A thread may have ended meanwhile: then none.
fn switches(thread: &fs::DirEntry) -> u64 {
    let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Memory of a process that is in use, in KiB.
pub fn resident_kib(process: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(number.ok_or("the kernel does not tell the memory of a process")?.parse()?)
}
