//! All nodes of an inner cell are silent: until the cells below it are attached above it.

use std::thread;
use std::time::{Duration, Instant};

use harness::cluster::wall;
use harness::sites::Site;
use harness::system::{Load, System};
use harness::{Outcome, Run};
use rustix::process::Signal;
use serde_json::json;
use wire::Random;

use super::options::{INNER, LEAF, Options, ROOT};
use super::telling::{ms, tell};

/// A call every millisecond.
const PERIOD: Duration = Duration::from_millis(1);

/// Calls that are answered before a fault, and after one.
const STEADY: usize = 300;

pub(super) fn measure(options: &Options, run: &Run, system: &mut System) -> Outcome<()> {
    let (leaf, inner, root) = (system.site(LEAF)?, system.site(INNER)?, system.site(ROOT)?);
    let mut random = Random::new(wall());
    for busy in [false, true] {
        let load = busy.then(|| Load::start(system, leaf, root, PERIOD)).transpose()?;
        let (mut attached, mut back, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.times {
            if let Some(load) = &load {
                load.wait_for(Instant::now(), STEADY)?;
                load.forget();
            }
            // Faults come at any time between two signs of life.
            thread::sleep(Duration::from_micros(random.below(1_000_000)));
            let at = system.signal_all(inner, Signal::STOP)?;
            // The links of the others are idle.
            let of_whom = |site: &Site| !busy || *site == leaf;
            attached.push(ms(subtree(system, inner, root, of_whom)? - at));
            if let Some(load) = &load {
                load.wait_for(at, STEADY)?;
                gaps.push(ms(load.gap(at)));
            }
            let at = system.signal_all(inner, Signal::CONT)?;
            system.wait_until_whole()?;
            back.push(ms(at.elapsed()));
        }
        let how = if busy { "busy" } else { "idle" };
        let of =
            |until: &str| json!({ "until": until, "busy": busy, "delay_ms": options.delay_ms });
        let what = format!("an inner cell is silent, {how}: the cells below are attached");
        tell(run, "cells-lost", &what, of("attached"), attached);
        let what = format!("it comes back, {how}: all is as before");
        tell(run, "cells-lost", &what, of("back"), back);
        if let Some(load) = load {
            let what = "the same, busy: gap of calls through the lost cell";
            tell(run, "cells-lost", what, of("gap"), gaps);
            let failed = load.failed();
            let line = json!({ "measure": "cells-lost-failed", "failed_calls": failed.len() });
            run.tell(&line, || format!("{} calls failed {:?}", failed.len(), failed.first()));
        }
    }
    Ok(())
}

/// When all cells whose parent is lost are attached to the root, as their own books say: the root
/// may know them from the last time, until that lease is over.
fn subtree(
    system: &System,
    lost: Site,
    root: Site,
    of_whom: impl Fn(&Site) -> bool,
) -> Outcome<Instant> {
    let below = (0..system.cells()).filter(|site| system.parent(*site) == Some(lost));
    let below = below.filter(of_whom);
    let attached = below.map(|site| {
        let what = "the lost cell's subtree is attached to the root";
        system.until((site, 1), what, |sight| sight.is_attached_to(system.path(root)))
    });
    Ok(attached.collect::<Outcome<Vec<_>>>()?.into_iter().max().ok_or("nothing is below")?)
}
