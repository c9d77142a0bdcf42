//! How the view change after one crash grows with the number of nodes.

use node::{EventKind, EventRecord};
use rustix::process::Signal;
use serde_json::json;

use crate::cluster::{Cluster, Plan, Where};
use crate::figures::median_and_worst;
use crate::{Outcome, machine};

const GROUP: &str = "thread";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Sizes of clusters, each started anew.
    #[arg(long, value_delimiter = ',', default_values_t = [3, 4, 8, 16])]
    nodes: Vec<u32>,
    /// Crashes in each.
    #[arg(long, default_value_t = 5)]
    kills: usize,
    #[command(flatten)]
    at: Where,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// Milliseconds after a kill.
struct Change {
    detected: f64,
    ring: f64,
    view: f64,
}

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    if options.json {
        eprintln!("on {machine}");
    } else {
        println!("on {machine}; after a kill of the primary's node, median and worst, in ms");
        println!("{:>6}{:>18}{:>18}{:>18}", "nodes", "detected", "ring", "view");
    }
    for &nodes in &options.nodes {
        let placement = options.at.placement();
        let plan =
            Plan { nodes, replicas: nodes.min(3), groups: &[GROUP], placement, ..Plan::default() };
        let mut cluster = Cluster::start(plan)?;
        let changes: Vec<Change> =
            (0..options.kills).map(|_| kill(&mut cluster)).collect::<Outcome<_>>()?;
        show(options, nodes, &changes)?;
    }
    Ok(())
}

/// One crash, from a whole cluster to a whole cluster.
fn kill(cluster: &mut Cluster) -> Outcome<Change> {
    cluster.wait_for_ring_without(None)?;
    cluster.take_events();
    let node = cluster.view(GROUP).primary.ok_or("the group has no primary")?;
    let others = cluster.clients().len() - 1;
    let moved = |kind: &EventKind| match kind {
        EventKind::View { primary, .. } => primary.is_some_and(|primary| primary.node != node),
        _ => false,
    };
    let time = cluster.signal(node, Signal::KILL)?;
    cluster.wait_for_ring_without(Some(node))?;
    cluster.wait("the view at every node", |cluster| cluster.told(moved).len() == others)?;
    let events: Vec<EventRecord> =
        cluster.take_events().into_iter().filter(|event| event.time >= time).collect();
    let times = |wanted: &dyn Fn(&EventKind) -> bool| {
        let times = events.iter().filter(|event| wanted(&event.kind)).map(|event| event.time);
        let after = times.map(|at| (at - time) as f64 / 1e6).collect::<Vec<f64>>();
        let ends =
            after.iter().copied().reduce(f64::min).zip(after.iter().copied().reduce(f64::max));
        ends.ok_or("nobody tells of the change")
    };
    let lost = |kind: &EventKind| {
        matches!(kind, EventKind::Unreachable { .. } | EventKind::TokenLost { .. })
    };
    let (detected, _) = times(&lost)?;
    // The change is over when the last node has made it.
    let (_, ring) = times(&|kind| matches!(kind, EventKind::Installed { .. }))?;
    let (_, view) = times(&moved)?;
    cluster.start_node(node)?;
    cluster.wait_until_whole()?;
    Ok(Change { detected, ring, view })
}

fn show(options: &Options, nodes: u32, changes: &[Change]) -> Outcome<()> {
    let of = |figure: fn(&Change) -> f64| {
        median_and_worst(changes.iter().map(figure).collect()).ok_or("no kills, no figures")
    };
    let detected = of(|change| change.detected)?;
    let (ring, view) = (of(|change| change.ring)?, of(|change| change.view)?);
    if options.json {
        let figures = json!({
            "peer": "steadfast", "measure": "growth", "nodes": nodes, "n": changes.len(),
            "hosts": options.at.hosts,
            "detected_ms": detected.0, "ring_ms": ring.0, "view_ms": view.0,
            "worst_detected_ms": detected.1, "worst_ring_ms": ring.1, "worst_view_ms": view.1,
        });
        println!("{figures}");
    } else {
        let cell = |(median, worst): (f64, f64)| format!("{median:.2} {worst:.2}");
        println!("{nodes:6}{:>18}{:>18}{:>18}", cell(detected), cell(ring), cell(view));
    }
    Ok(())
}
