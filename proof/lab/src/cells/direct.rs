//! One call at a time to a node of another cell, beside the same call by a caller of that cell.
//!
//! Both callers are on one host. So they differ only in the cell that they belong to.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use harness::figures::{Summary, Times};
use harness::sites::{Host, Site, address};
use harness::system::{ECHO, Plan, System, TIMEOUT};
use harness::{Outcome, Run, bail};
use serde_json::json;
use steadfast::Client;
use steadfast::events::ClientEvent as Event;

use super::carried::echoed;
use super::options::{INNER, Options, ROOT};

/// Rounds that do not count.
const COLD: usize = 5;

pub(super) fn measure(options: &Options, run: &Run) -> Outcome<()> {
    let cells = [(ROOT, 3), (INNER, 3)];
    let plan = Plan { direct: true, ..options.place.plan(&cells, Duration::ZERO) };
    let system = System::start(&plan)?;
    let (to, from) = (system.site(ROOT)?, system.site(INNER)?);
    let own = system.at_callers(from, || {
        Ok(Client::builder().tls(system.tls(to)).connect(system.clients(to))?)
    })?;
    let other = system.connect(from, system.clients(from))?;
    let group = format!("{ROOT}:{ECHO}");
    let (mut within, mut direct) = (Times::default(), Times::default());
    system.at_callers(from, || {
        wait_until_direct(&system, &other, &group, to)?;
        for round in 0..options.calls + COLD {
            within.measure_if(round >= COLD, 1, || echoed(&own, ECHO))?;
            direct.measure_if(round >= COLD, 1, || echoed(&other, &group))?;
        }
        Ok(())
    })?;
    let both = within.summary().zip(direct.summary());
    let (within, direct): (Summary, Summary) = both.ok_or("no calls")?;
    let more = (direct.p50 / within.p50 - 1.0) * 1e2;
    let line = json!({
        "peer": "steadfast", "measure": "cells-direct", "n": direct.n, "p50_us": direct.p50,
        "p99_us": direct.p99, "within_p50_us": within.p50, "within_p99_us": within.p99,
        "more_percent": more,
    });
    run.tell(&line, || {
        format!(
            "a direct call to another cell: p50 {:.0} us  p99 {:.0}; by a caller of that cell, from \
             the same host: p50 {:.0}  p99 {:.0}; {more:+.1} %",
            direct.p50, direct.p99, within.p50, within.p99
        )
    });
    Ok(())
}

/// Calls until the client has a connection to a node of that cell.
fn wait_until_direct(system: &System, client: &Client, group: &str, site: Site) -> Outcome<()> {
    let hosts = 1..=system.nodes(site);
    let nodes: Vec<IpAddr> = hosts.map(|host: Host| address(site, host).into()).collect();
    let is_there = |at: SocketAddr| nodes.contains(&at.ip());
    let end = Instant::now() + TIMEOUT;
    while Instant::now() < end {
        echoed(client, group)?;
        let there =
            |(_, event)| matches!(event, Event::Connected { address, .. } if is_there(address));
        if client.take_events().into_iter().any(there) {
            return Ok(());
        }
    }
    bail!("calls to {group} are carried still, after {TIMEOUT:?}")
}
