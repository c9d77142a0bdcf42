//! The seat of a cell is killed or silent, while calls go from a leaf to the root.

use std::time::Duration;

use harness::sites::Site;
use harness::system::{Load, System};
use harness::{Outcome, Run};
use rustix::process::Signal;
use serde_json::json;

use super::options::{INNER, LEAF, Options, ROOT};
use super::telling::{ms, spelt, tell};

/// A call every millisecond.
const PERIOD: Duration = Duration::from_millis(1);

/// Calls that are answered before a fault, and after one.
const STEADY: usize = 300;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Fault {
    Kill,
    Silent,
}

/// The cell whose seat it is.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum At {
    Caller,
    Relay,
    Callee,
}

pub(super) fn measure(options: &Options, run: &Run, system: &mut System) -> Outcome<()> {
    let (from, to) = (system.site(LEAF)?, system.site(ROOT)?);
    let places = [(At::Caller, from), (At::Relay, system.site(INNER)?), (At::Callee, to)];
    let load = Load::start(system, from, to, PERIOD)?;
    load.wait_for(std::time::Instant::now(), STEADY)?;
    for fault in [Fault::Kill, Fault::Silent] {
        for (at, site) in places {
            let mut gaps = Vec::new();
            for _ in 0..options.times {
                gaps.push(ms(strike(system, &load, fault, site)?));
            }
            let what = format!("the {at:?}'s seat, {fault:?}: gap of calls over two links");
            let of =
                json!({ "fault": spelt(fault), "at": spelt(at), "delay_ms": options.delay_ms });
            tell(run, "cells-seat", &what.to_lowercase(), of, gaps);
        }
    }
    let failed = load.failed();
    let line = json!({ "measure": "cells-seat-failed", "failed_calls": failed.len() });
    run.tell(&line, || format!("{} calls failed {:?}", failed.len(), failed.first()));
    Ok(())
}

/// The longest time without a good reply.
fn strike(system: &mut System, load: &Load, fault: Fault, site: Site) -> Outcome<Duration> {
    let seat = (site, system.seat(site)?);
    load.forget();
    let at = system.signal(
        seat,
        match fault {
            Fault::Kill => Signal::KILL,
            Fault::Silent => Signal::STOP,
        },
    )?;
    load.wait_for(at, STEADY)?;
    let gap = load.gap(at);
    let back = match fault {
        Fault::Kill => system.start_node(seat)?,
        Fault::Silent => system.signal(seat, Signal::CONT)?,
    };
    system.wait_until_whole()?;
    load.wait_for(back, STEADY)?;
    Ok(gap)
}
