//! Checks the kernel's permissions and its configuration.

use std::fs::read_to_string;

use steadfast::NodeConfig;
use steadfast::realtime::{probe_lock_memory, probe_on_a_thread};
use steadfast::status::Grant;

use super::finding::{Finding, Verdict};

pub fn examine(config: &NodeConfig) -> Vec<Finding> {
    let mut findings =
        vec![super::reserve::examine(config), priority(config), memory(config), processors(config)];
    findings.extend(throttling(config));
    findings.extend(clock_source());
    findings.extend(stolen_time());
    findings.extend(governor());
    findings.push(super::sleep::examine(config));
    findings
}

fn priority(config: &NodeConfig) -> Finding {
    let name = "real-time priority";
    let asked = config.realtime.priority;
    match (asked, probe_on_a_thread(asked.max(1))) {
        (0, Grant::Refused(_)) => Finding::new(
            Verdict::Advice,
            name,
            "not configured, and not permitted to this user",
            "on a busy host: CAP_SYS_NICE or LimitRTPRIO=20, and realtime.priority = 20",
        ),
        (0, _) => Finding::new(
            Verdict::Advice,
            name,
            "not configured, but permitted",
            "on a busy host set realtime.priority = 20: other programs then cannot delay the ring",
        ),
        (_, Grant::Refused(why)) => Finding::new(
            Verdict::Warning,
            name,
            format!("SCHED_FIFO {asked} is not permitted"),
            why,
        ),
        _ => Finding::good(name, format!("SCHED_FIFO {asked} is permitted")),
    }
}

fn memory(config: &NodeConfig) -> Finding {
    let name = "locked memory";
    let swap = read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
    match (config.realtime.lock_memory, probe_lock_memory()) {
        (true, Grant::Refused(why)) => {
            Finding::new(Verdict::Warning, name, "configured, but not permitted", why)
        }
        (true, _) => Finding::good(name, "is permitted"),
        (false, _) if swap => Finding::new(
            Verdict::Advice,
            name,
            "not configured, and this host swaps: a swapped page costs milliseconds",
            "realtime.lock_memory = true, with LimitMEMLOCK=infinity",
        ),
        (false, _) => Finding::good(name, "not configured; this host has no swap"),
    }
}

fn processors(config: &NodeConfig) -> Finding {
    let name = "processors";
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let handlers: usize = config.replicas.iter().map(|replica| replica.execution.threads()).sum();
    let busy = 1 + handlers;
    let says = format!("{cores} for this process, which has {busy} busy threads");
    if !config.realtime.spin.is_zero() && cores <= busy {
        return Finding::new(
            Verdict::Warning,
            name,
            format!("{says}; a spinning data plane takes a core from other work"),
            "realtime.spin_us = 0, or more cores",
        );
    }
    let allowed = rustix::thread::sched_getaffinity(None).ok();
    let is_foreign = |cpu: &&usize| allowed.is_some_and(|allowed| !allowed.is_set(**cpu));
    if let Some(cpu) = config.realtime.cpus.iter().find(is_foreign) {
        return Finding::new(
            Verdict::Warning,
            name,
            format!("{says}; realtime.cpus names processor {cpu}, which is not among them"),
            "use processors of Cpus_allowed_list in /proc/self/status",
        );
    }
    Finding::good(name, says)
}

/// A thread of real-time priority that never sleeps is stopped by the kernel for part of each
/// second.
fn throttling(config: &NodeConfig) -> Option<Finding> {
    let name = "real-time throttling";
    let text = read_to_string("/proc/sys/kernel/sched_rt_runtime_us").ok()?;
    let runtime: i64 = text.trim().parse().ok()?;
    if runtime < 0 || config.realtime.priority == 0 || config.realtime.spin.is_zero() {
        return Some(Finding::good(name, "has no effect with this configuration"));
    }
    Some(Finding::new(
        Verdict::Warning,
        name,
        format!("a spinning real-time thread gets {runtime} us of each second, then stops"),
        "realtime.spin_us = 0, or sysctl -w kernel.sched_rt_runtime_us=-1",
    ))
}

fn clock_source() -> Option<Finding> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = read_to_string(path).ok()?.trim().to_owned();
    let slow = ["hpet", "acpi_pm", "jiffies"].contains(&source.as_str());
    Some(if slow {
        Finding::new(
            Verdict::Warning,
            "clock",
            format!("{source}: each reading of the clock costs a microsecond or more"),
            "boot with clocksource=tsc if the processor's counter is stable",
        )
    } else {
        Finding::good("clock", source)
    })
}

/// Time that the hypervisor gave to others while this machine had work.
fn stolen_time() -> Option<Finding> {
    let text = read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
    let (all, stolen) = (fields.iter().take(8).sum::<u64>(), *fields.get(7)?);
    let share = 100.0 * stolen as f64 / all.max(1) as f64;
    let says = format!("{share:.2} % of this machine's time since it started");
    Some(if share > 1.0 {
        Finding::new(
            Verdict::Warning,
            "stolen time",
            says,
            "use a host with dedicated processors: stolen time causes stalls of milliseconds",
        )
    } else {
        Finding::good("stolen time", says)
    })
}

fn governor() -> Option<Finding> {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let governor = read_to_string(path).ok()?.trim().to_owned();
    Some(if governor == "performance" {
        Finding::good("power saving", governor)
    } else {
        Finding::new(
            Verdict::Advice,
            "power saving",
            format!("the frequency governor is {governor}: slow after a pause"),
            "cpupower frequency-set -g performance",
        )
    })
}

#[cfg(test)]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn processors_are_those_of_this_process_not_as_many_from_0_on() {
        let judge = |cpu| {
            let mut config = NodeConfig::from_toml(steadfast::DEFAULT_CONFIG).unwrap();
            config.realtime.cpus = vec![cpu];
            processors(&config).verdict
        };
        let allowed = sched_getaffinity(None).unwrap();
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        let last = *all.last().unwrap();
        // This test's thread alone.
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one).unwrap();
        assert_eq!(judge(last), Verdict::Good);
        assert_eq!(judge(if last == 0 { 1 } else { 0 }), Verdict::Warning);
    }
}
