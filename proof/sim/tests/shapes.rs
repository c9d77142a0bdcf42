//! Networks of a bad shape, as they were reported of others: each settles, and heals.

use steadfast_sim::draw::Draw;
use steadfast_sim::faults::Cuts;
use steadfast_sim::options::{Options, World};
use steadfast_sim::run::{Plant, catch_panics};
use steadfast_sim::{rings, trial::Trial};

fn settles(nodes: usize, cuts: Cuts, cold: bool) {
    for seed in 0..4 {
        let mut draw = Draw::new(seed);
        let mut options = Options::draw(&mut draw, World::Rings).without_faults();
        options.weather = options.weather.near();
        options.nodes = nodes;
        options.clocks.resize(nodes, options.clocks[0]);
        options.trial = Some(Trial::Shape { cuts: cuts.clone(), cold, rests: true });
        let outcome = rings::run(options, &mut draw, Plant::default(), false);
        assert!(outcome.verdict.is_ok(), "{nodes} nodes, {cuts:?}, {seed}: {:?}", outcome.verdict);
    }
}

/// corosync#760: one node hears another, and is not heard by it.
#[test]
fn one_way_that_is_cut() {
    catch_panics();
    for nodes in [2, 3, 4] {
        for (from, to) in [(0, 1), (1, 0), (0, nodes - 1), (nodes - 1, 0)] {
            for cold in [false, true] {
                settles(nodes, vec![(from, to)], cold);
            }
        }
    }
}

/// Two do not hear each other, and a third hears both.
#[test]
fn two_that_are_apart() {
    catch_panics();
    for nodes in [3, 5] {
        for (a, b) in [(0, 1), (0, 2), (1, nodes - 1)] {
            settles(nodes, vec![(a, b), (b, a)], false);
        }
    }
}
