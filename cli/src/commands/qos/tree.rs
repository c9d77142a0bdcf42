//! The host's reserves as text.

use std::fmt::Write;

use qosd::{Enforced, Shown, Tree};

/// The tree: the host, each node, each part of it.
pub fn text(tree: &Tree) -> String {
    let reserved: u64 = tree.reserves.iter().map(share).sum();
    let permitted = match tree.permitted.is_empty() {
        true => "nothing: the daemon needs CAP_SYS_NICE".into(),
        false => tree.permitted.join(", "),
    };
    let mut text = format!(
        "host: {} processors; {:.1}% of a processor reserved of {:.1}%; permitted: {permitted}\n",
        tree.processors,
        percent(reserved),
        percent(tree.cpu),
    );
    let mut above = "";
    for shown in &tree.reserves {
        let (runtime, part) = shown.wanted.path.rsplit_once('/').unwrap_or_default();
        if runtime != above {
            let _ = writeln!(text, "  {runtime}");
            above = runtime;
        }
        let _ = writeln!(text, "    {part:<16} {}", line(shown));
        for why in &shown.degraded {
            let _ = writeln!(text, "    {:<16} not in force: {why}", "");
        }
    }
    if tree.reserves.is_empty() {
        text += "  nothing is reserved: a node asks with `daemon` in [realtime]\n";
    }
    text
}

fn line(shown: &Shown) -> String {
    let mut parts = Vec::new();
    if let Some(cpu) = shown.wanted.cpu {
        let by = match shown.enforced {
            Enforced::Deadline => " by SCHED_DEADLINE".to_owned(),
            Enforced::Fifo(priority) => format!(" by SCHED_FIFO {priority}"),
            Enforced::None | Enforced::Degraded => ", not in force".to_owned(),
        };
        let (runtime, period) = (cpu.runtime_us, cpu.period_us);
        parts.push(format!("{runtime} us in every {period} us{by}"));
    }
    if shown.wanted.memory > 0 {
        parts.push(format!("{} bytes of memory kept", shown.wanted.memory));
    }
    if shown.wanted.memory_most > 0 {
        parts.push(format!("at most {} bytes of memory", shown.wanted.memory_most));
    }
    for (device, rate) in &shown.wanted.devices {
        let (read, write) = (rate.read, rate.write);
        parts.push(format!("device {device}: {read} bytes/s read, {write} written"));
    }
    if shown.wanted.network > 0 {
        let (rate, ports) = (shown.wanted.network, &shown.wanted.ports);
        parts.push(format!("network: {rate} bytes/s for ports {ports:?}"));
    }
    format!("{}; used {:.3} s", parts.join(", "), shown.used_us as f64 / 1e6)
}

/// In millionths of a processor.
fn share(shown: &Shown) -> u64 {
    let cpu = shown.wanted.cpu;
    cpu.and_then(|cpu| (cpu.runtime_us * 1_000_000).checked_div(cpu.period_us)).unwrap_or_default()
}

fn percent(millionths: u64) -> f64 {
    millionths as f64 / 10_000.0
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use qosd::{Cpu, Wanted};

    use super::*;

    #[test]
    fn a_host_is_shown_as_a_tree() {
        let reserve = |path: &str, enforced, degraded: &[&str]| Shown {
            wanted: Wanted {
                path: path.into(),
                cpu: Some(Cpu { runtime_us: 1_000, deadline_us: 4_000, period_us: 4_000 }),
                memory_most: if enforced == Enforced::Deadline { 0 } else { 1 << 20 },
                ..Wanted::default()
            },
            enforced,
            used_us: 1_234_567,
            degraded: degraded.iter().map(|&it| it.into()).collect(),
        };
        let mut tree = Tree {
            processors: 2,
            cpu: 1_800_000,
            memory: 0,
            permitted: vec!["deadline".into(), "fifo".into()],
            reserves: vec![
                reserve("trial/n1/orders", Enforced::Fifo(36), &["memory: no control group"]),
                reserve("trial/n1/plane", Enforced::Deadline, &[]),
                reserve("trial/n2/plane", Enforced::Deadline, &[]),
            ],
        };
        expect![[r#"
            host: 2 processors; 75.0% of a processor reserved of 180.0%; permitted: deadline, fifo
              trial/n1
                orders           1000 us in every 4000 us by SCHED_FIFO 36, at most 1048576 bytes of memory; used 1.235 s
                                 not in force: memory: no control group
                plane            1000 us in every 4000 us by SCHED_DEADLINE; used 1.235 s
              trial/n2
                plane            1000 us in every 4000 us by SCHED_DEADLINE; used 1.235 s
        "#]]
        .assert_eq(&text(&tree));
        tree.reserves.clear();
        tree.permitted.clear();
        expect![[r#"
            host: 2 processors; 0.0% of a processor reserved of 180.0%; permitted: nothing: the daemon needs CAP_SYS_NICE
              nothing is reserved: a node asks with `daemon` in [realtime]
        "#]]
        .assert_eq(&text(&tree));
    }
}
