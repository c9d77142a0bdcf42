//! A system that nobody calls: packets on each link, and processor time of each node.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use harness::figures::median_and_worst;
use harness::sites::{Host, Site};
use harness::system::System;
use harness::usage::processor_time;
use harness::{Outcome, Run};
use serde_json::json;

use super::options::Options;

/// Time after the start until its effects are over.
const SETTLE: Duration = Duration::from_secs(3);

/// Two hosts with a link, the smaller address first.
type Pair = (Ipv4Addr, Ipv4Addr);

/// The resources that a node uses.
struct Use {
    links: usize,
    /// Percent of a processor: the node, and the process beside it.
    node: f64,
    beside: f64,
}

pub(super) fn measure(options: &Options, run: &Run, system: &System) -> Outcome<()> {
    thread::sleep(run.sized(SETTLE, Duration::ZERO));
    let (packets, times, start) = (pairs(system), processor_times(system)?, Instant::now());
    thread::sleep(Duration::from_secs(options.seconds));
    let seconds = start.elapsed().as_secs_f64();
    let (packets_now, times_now) = (pairs(system), processor_times(system)?);
    let rates: Vec<f64> = packets_now
        .iter()
        .map(|(pair, count)| (count - packets.get(pair).unwrap_or(&0)) as f64 / seconds)
        .filter(|rate| *rate > 0.0)
        .collect();
    let links = rates.len();
    let (median, worst) = median_and_worst(rates).unwrap_or_default();
    let line = json!({
        "peer": "steadfast", "measure": "cells-idle-links", "links": links, "seconds": seconds,
        "datagrams_s": median, "worst_datagrams_s": worst,
    });
    run.tell(&line, || {
        format!(
            "idle, {links} links: {median:.1} datagrams a second on a link, both ways together, \
             worst {worst:.1}"
        )
    });
    let mut by_links: BTreeMap<(bool, usize), Vec<Use>> = BTreeMap::new();
    for (node, used) in times_now {
        let before = times.get(&node).map_or(&[][..], |before| before);
        let percent = |place: usize| {
            let before = before.get(place).copied().unwrap_or_default();
            let now: Duration = used.get(place).copied().unwrap_or_default();
            now.saturating_sub(before).as_secs_f64() * 1e2 / seconds
        };
        let is_alone = system.is_alone(node.0);
        let links = match is_alone {
            true => 0,
            false => system.sight_of(node)?.status.neighbours.len(),
        };
        let used = Use { links, node: percent(0), beside: percent(1) };
        by_links.entry((is_alone, links)).or_default().push(used);
    }
    for ((is_alone, _), all) in &by_links {
        tell(run, *is_alone, all, seconds);
    }
    Ok(())
}

fn tell(run: &Run, is_alone: bool, all: &[Use], seconds: f64) {
    let mean = |figure: fn(&Use) -> f64| all.iter().map(figure).sum::<f64>() / all.len() as f64;
    let worst = all.iter().map(|used| used.node + used.beside).fold(0.0, f64::max);
    let (node, beside, links) = (mean(|it| it.node), mean(|it| it.beside), all[0].links);
    let line = json!({
        "peer": "steadfast", "measure": "cells-idle-node", "system": !is_alone, "links": links,
        "nodes": all.len(), "node_pct": node, "beside_pct": beside, "cpu_pct": node + beside,
        "worst_pct": worst, "seconds": seconds,
    });
    run.tell(&line, || {
        let whose = if is_alone { "of no system".into() } else { format!("with {links} links") };
        format!(
            "idle, {} nodes {whose}: {:.3} % of a core (node {node:.3}, beside it {beside:.3}), \
             worst {worst:.3}",
            all.len(),
            node + beside,
        )
    });
}

/// Packets that have passed between two hosts, both ways.
fn pairs(system: &System) -> BTreeMap<Pair, u64> {
    let mut all = BTreeMap::new();
    for (from, to, count) in system.sites().passed() {
        *all.entry((from.min(to), from.max(to))).or_default() += count;
    }
    all
}

/// The processor time of each node's processes, its own first.
fn processor_times(system: &System) -> Outcome<BTreeMap<(Site, Host), Vec<Duration>>> {
    let nodes =
        (0..system.cells()).flat_map(|site| (1..=system.nodes(site)).map(move |host| (site, host)));
    nodes
        .map(|node| {
            let of_each = system.processes(node).into_iter().map(processor_time);
            Ok((node, of_each.collect::<Outcome<_>>()?))
        })
        .collect()
}
