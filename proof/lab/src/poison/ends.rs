//! All programs, or all nodes, are killed at once while calls flow, again and again.

use std::thread;
use std::time::Duration;

use steadfast::NodeId;

use super::stage::{NODES, Stage};
use harness::Outcome;
use harness::objects::clients::Habit;
use harness::objects::evidence::Finding;

/// After so many ends histories are judged, and others begun.
const ROUND: usize = 10;

/// Between two ends calls flow for so many milliseconds at most.
const CALM_MS: u64 = 300;

/// The group ends so often, and each time all must be well again before it ends once more.
pub fn play(
    stage: &mut Stage<'_>,
    times: usize,
    end: fn(&mut Stage<'_>, &[NodeId]) -> Outcome<()>,
) -> Result<(), Finding> {
    let all: Vec<NodeId> = (1..=NODES).map(NodeId).collect();
    stage.call(Habit::default())?;
    for number in 1..=times {
        let calm = stage.random.below(CALM_MS);
        thread::sleep(Duration::from_millis(calm));
        end(stage, &all)?;
        stage.counts.ends += 1;
        stage.wait_until_well()?;
        if number % ROUND == 0 {
            stage.close_round()?;
        }
    }
    stage.finish()
}

/// All programs end; their nodes start them again.
pub fn programs(stage: &mut Stage<'_>, all: &[NodeId]) -> Outcome<()> {
    stage.kill_programs(all)
}

/// All nodes end, and their programs with them. They start again, and run the programs.
pub fn nodes(stage: &mut Stage<'_>, all: &[NodeId]) -> Outcome<()> {
    stage.trial.note("all nodes are killed");
    let cluster = &mut stage.trial.cluster;
    cluster.kill_at_once(all)?;
    all.iter().try_for_each(|id| cluster.start_node(*id))?;
    cluster.wait_for_ring_without(None)?;
    cluster.run_programs()
}
