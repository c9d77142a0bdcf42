//! One call at a time, within the cell and to cells over 1 to 4 links, beside TCP over one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use harness::figures::{Summary, Times};
use harness::sites::{Site, address};
use harness::system::{ECHO, System};
use harness::{Outcome, Run};
use serde_json::json;
use steadfast::{Client, Invocation};

use super::options::{INNER, LEAF, Options, targets};

/// Bytes of a call, and of its reply.
const SIZE: usize = 64;

/// Rounds that do not count.
const COLD: usize = 5;

/// A port that no node has.
const PORT: u16 = 7_999;

/// One of those that are compared.
struct Way {
    name: String,
    hops: usize,
    round: Box<dyn FnMut() -> Outcome<()>>,
    times: Times,
}

pub(super) fn measure(options: &Options, run: &Run, system: &System) -> Outcome<()> {
    let (leaf, inner) = (system.site(LEAF)?, system.site(INNER)?);
    let floor = echo(system, inner)?;
    for delay in [options.delay(), Duration::ZERO] {
        system.sites().delay(delay);
        let mut ways = system.at_callers(leaf, || Ok(vec![bare(floor)?]))?;
        let own = system.connect(leaf, system.clients(leaf))?;
        ways.push(call(own, ECHO.into(), "within the cell", 0));
        for (hops, site) in targets(system) {
            let client = system.connect(leaf, system.clients(leaf))?;
            let name = format!("{}:{ECHO}", system.path(site));
            ways.push(call(client, name, system.path(site), hops));
        }
        system.at_callers(leaf, || {
            for round in 0..options.calls + COLD {
                for way in &mut ways {
                    way.times.measure_if(round >= COLD, 1, &mut way.round)?;
                }
            }
            Ok(())
        })?;
        report(run, delay, &ways);
    }
    system.sites().delay(options.delay());
    Ok(())
}

fn call(client: Client, group: String, name: &str, hops: usize) -> Way {
    let round = move || echoed(&client, &group);
    Way { name: name.into(), hops, round: Box::new(round), times: Times::default() }
}

/// One call.
pub(super) fn echoed(client: &Client, group: &str) -> Outcome<()> {
    let body = Bytes::from_static(&[7; SIZE]);
    client.call(Invocation::new(group, "echo").body(body))?;
    Ok(())
}

/// All that is said on a connection comes back, as long as the process lives.
fn echo(system: &System, site: Site) -> Outcome<SocketAddr> {
    let at = SocketAddr::from((address(site, 1), PORT));
    system.sites().within((site, 1), || {
        let listener = TcpListener::bind(at)?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // It ends with its connection.
                thread::spawn(move || answer(stream).ok());
            }
        });
        Ok(at)
    })
}

fn answer(mut stream: TcpStream) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; SIZE];
    loop {
        stream.read_exact(&mut buffer)?;
        stream.write_all(&buffer)?;
    }
}

fn bare(at: SocketAddr) -> Outcome<Way> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    let mut buffer = [7; SIZE];
    let round = move || {
        stream.write_all(&buffer)?;
        Ok(stream.read_exact(&mut buffer)?)
    };
    let name = "TCP to the cell above".into();
    Ok(Way { name, hops: 1, round: Box::new(round), times: Times::default() })
}

fn report(run: &Run, delay: Duration, ways: &[Way]) {
    let summary = |way: Option<&Way>| way.and_then(|way| way.times.summary());
    let (floor, own) = (summary(ways.first()), summary(ways.get(1)));
    let (Some(floor), Some(own)) = (floor, own) else { return };
    let delay = delay.as_secs_f64() * 1e3;
    for way in ways {
        let Some(Summary { n, p50, p99, max, .. }) = way.times.summary() else { continue };
        let over = p50 - own.p50 - way.hops as f64 * floor.p50;
        let hops = way.hops;
        let a_hop = (hops > 0).then(|| over / hops as f64);
        let line = json!({
            "peer": if hops > 0 && way.name.starts_with("TCP") { "floor" } else { "steadfast" },
            "measure": "cells-carried", "to": way.name, "hops": hops, "delay_ms": delay, "n": n,
            "p50_us": p50, "p99_us": p99, "max_us": max, "floor_p50_us": floor.p50,
            "own_p50_us": own.p50, "over_us": over, "over_a_hop_us": a_hop,
        });
        run.tell(&line, || {
            format!(
                "{delay} ms: a call to {:<24} {hops} links: p50 {p50:9.0} us  p99 {p99:9.0}  beyond a \
                 call within the cell and {hops} TCP round trips: {over:7.0} us",
                way.name
            )
        });
    }
}
