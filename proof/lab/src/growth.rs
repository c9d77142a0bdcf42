//! How the view change after one crash grows with the number of nodes.

use node::{EventKind, EventRecord};
use rustix::process::Signal;
use serde_json::{Value, json};

use harness::cluster::{Cluster, Plan, Where};
use harness::figures::median_and_worst;
use harness::{Experiment, Outcome, Run};

const GROUP: &str = "thread";

/// The time of a view change after one crash, by the number of nodes.
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
}

/// Milliseconds after a kill.
struct Change {
    detected: f64,
    ring: f64,
    view: f64,
}

impl Experiment for Options {
    const NAME: &'static str = "growth";
    const SMOKE: &'static str = "--nodes 3 --kills 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        run.begin("after a kill of the primary's node, median and worst, in ms");
        let table = run.table(
            "nodes:6, detected=detected_ms:10.2, worst=worst_detected_ms:9.2, ring=ring_ms:9.2, \
             worst=worst_ring_ms:9.2, view=view_ms:9.2, worst=worst_view_ms:9.2",
        );
        for &nodes in &self.nodes {
            let placement = self.at.placement();
            let replicas = nodes.min(3);
            let plan = Plan { placement, ..Plan::of(nodes, replicas, &[GROUP]) };
            let mut cluster = Cluster::start(plan)?;
            let changes: Vec<Change> =
                (0..self.kills).map(|_| kill(&mut cluster)).collect::<Outcome<_>>()?;
            table.row(&self.row(nodes, &changes)?);
        }
        Ok(())
    }
}

impl Options {
    fn row(&self, nodes: u32, changes: &[Change]) -> Outcome<Value> {
        let of = |figure: fn(&Change) -> f64| {
            median_and_worst(changes.iter().map(figure).collect()).ok_or("no kills, no figures")
        };
        let detected = of(|change| change.detected)?;
        let (ring, view) = (of(|change| change.ring)?, of(|change| change.view)?);
        Ok(json!({
            "peer": "steadfast", "measure": "growth", "nodes": nodes, "n": changes.len(),
            "hosts": self.at.hosts,
            "detected_ms": detected.0, "ring_ms": ring.0, "view_ms": view.0,
            "worst_detected_ms": detected.1, "worst_ring_ms": ring.1, "worst_view_ms": view.1,
        }))
    }
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
