//! All nodes of an inner cell are silent: until the cells below it are attached above it.

use std::time::{Duration, Instant};

use harness::sites::Site;
use harness::system::{Load, System};
use harness::{Outcome, Run};
use rustix::process::Signal;
use serde_json::json;

use super::{INNER, LEAF, Options, ROOT, ms, tell};

/// A call every millisecond.
const PERIOD: Duration = Duration::from_millis(1);

/// Calls that are answered before a fault, and after one.
const STEADY: usize = 300;

pub(super) fn measure(options: &Options, run: &Run, system: &mut System) -> Outcome<()> {
    let (leaf, inner, root) = (system.site(LEAF)?, system.site(INNER)?, system.site(ROOT)?);
    for busy in [false, true] {
        let load = busy.then(|| Load::start(system, leaf, root, PERIOD)).transpose()?;
        let (mut attached, mut back, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.times {
            if let Some(load) = &load {
                load.wait_for(Instant::now(), STEADY)?;
                load.forget();
            }
            let at = system.signal_all(inner, Signal::STOP)?;
            attached.push(ms(subtree(system, inner, root)? - at));
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
        let what = format!("an inner cell is silent, {how}: its subtree is attached");
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
fn subtree(system: &System, lost: Site, root: Site) -> Outcome<Instant> {
    let below = (0..system.cells()).filter(|site| system.parent(*site) == Some(lost));
    let attached = below.map(|site| {
        let what = "the lost cell's subtree is attached to the root";
        system.until((site, 1), what, |sight| sight.is_attached_to(system.path(root)))
    });
    Ok(attached.collect::<Outcome<Vec<_>>>()?.into_iter().max().ok_or("nothing is below")?)
}
