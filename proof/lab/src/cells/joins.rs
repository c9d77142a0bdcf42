//! From the start of processes until a node, or a cell, is a member.

use std::thread;
use std::time::{Duration, Instant};

use harness::sites::{Host, Site};
use harness::system::{Sight, System, TIMEOUT};
use harness::{Outcome, Run, bail};
use rustix::process::Signal;
use serde_json::json;

use super::options::{INNER, LEAF, Options, ROOT};
use super::telling::{ms, tell};

/// How often a node that starts is asked.
const LOOK: Duration = Duration::from_micros(500);

pub(super) fn measure(options: &Options, run: &Run, system: &mut System) -> Outcome<()> {
    let (leaf, above) = (system.site(LEAF)?, system.site(INNER)?);
    let (mut member, mut carries) = (Vec::new(), Vec::new());
    for _ in 0..options.times {
        let (as_member, as_carrier) = node(system, leaf)?;
        member.push(ms(as_member));
        carries.push(ms(as_carrier));
    }
    let of = |until: &str| json!({ "of": "node", "until": until });
    tell(run, "cells-join", "a node starts: it has its cell's book", of("member"), member);
    tell(run, "cells-join", "a node starts: it carries calls", of("carries"), carries);
    let (mut attached, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..options.times {
        let (first, all) = cell(system, leaf, above)?;
        attached.push(ms(first));
        whole.push(ms(all));
    }
    let of = |until: &str| json!({ "of": "cell", "until": until });
    let what = "a cell of the third level starts: attached, knows the root";
    tell(run, "cells-join", what, of("attached"), attached);
    let what = "a cell of the third level starts: with all nodes above";
    tell(run, "cells-join", what, of("whole"), whole);
    Ok(())
}

/// A node of the cell is killed, and starts once the others know that it is gone.
fn node(system: &mut System, site: Site) -> Outcome<(Duration, Duration)> {
    let host = system.nodes(site);
    let others = host - 1;
    system.signal((site, host), Signal::KILL)?;
    system.until((site, 1), "the killed node is out", |sight| sight.carriers().len() == others)?;
    let start = system.start_node((site, host))?;
    let member = first(system, (site, host), |sight| sight.status.ranks.is_some())?;
    let carries = first(system, (site, host), |sight| sight.carriers().len() > others)?;
    system.wait_until_whole()?;
    Ok((member - start, carries - start))
}

/// All nodes of the cell are killed, and start once the cell above has forgotten it.
fn cell(system: &mut System, site: Site, above: Site) -> Outcome<(Duration, Duration)> {
    system.signal_all(site, Signal::KILL)?;
    let path = system.path(site);
    system.until((above, 1), "the lease of the lost cell is over", |sight| {
        !sight.picture().children.iter().any(|child| child.place.path.as_str() == path)
    })?;
    let start = system.start_cell(site)?;
    let knows_root = |sight: &Sight| {
        let above = sight.book.above().last();
        sight.book.epoch().0 > 0 && above.is_some_and(|last| last.path.as_str() == ROOT)
    };
    let attached = first(system, (site, 1), knows_root)?;
    let nodes = system.nodes(site);
    let whole = system.until((above, 1), "the cell is attached with all its nodes", |sight| {
        sight.has_below(path, nodes)
    })?;
    system.wait_until_whole()?;
    Ok((attached - start, whole - start))
}

/// When a node that starts first sees its cell so.
fn first(system: &System, node: (Site, Host), is_so: impl Fn(&Sight) -> bool) -> Outcome<Instant> {
    let end = Instant::now() + TIMEOUT;
    loop {
        // It does not listen at first.
        if system.sight_of(node).is_ok_and(|sight| is_so(&sight)) {
            return Ok(Instant::now());
        }
        if Instant::now() > end {
            bail!("a node that starts is no member after {TIMEOUT:?}");
        }
        thread::sleep(LOOK);
    }
}
