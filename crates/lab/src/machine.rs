//! What an experiment ran on.

use std::fs;
use std::thread::available_parallelism;

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
