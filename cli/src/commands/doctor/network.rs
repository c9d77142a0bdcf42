//! Buffers, addresses, and the other nodes.

use std::fs::read_to_string;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use steadfast::{NodeConfig, NodeId};

use super::finding::{Finding, Verdict};

/// A host of the same site answers in well under a millisecond.
const DIAL_WITHIN: Duration = Duration::from_millis(500);

pub fn examine(config: &NodeConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(receive_buffer(config));
    findings.extend(own_addresses(config));
    let others = config.nodes.iter().filter(|node| node.id != config.node);
    let addresses = others.flat_map(|node| node.ring.iter().map(|address| (node.id, *address)));
    // All at once: each that does not answer takes its whole time.
    let dials: Vec<_> =
        addresses.map(|(id, address)| thread::spawn(move || other_node(id, address))).collect();
    findings.extend(dials.into_iter().filter_map(|dial| dial.join().ok()));
    findings
}

/// While the process is held up, the kernel keeps what the others send, as far as it is permitted.
fn receive_buffer(config: &NodeConfig) -> Option<Finding> {
    let name = "receive buffer";
    let text = read_to_string("/proc/sys/net/core/rmem_max").ok()?;
    let limit: usize = text.trim().parse().ok()?;
    let needed = config.ring.receive_room();
    let says = format!("net.core.rmem_max = {limit}, a full window may need {needed} bytes");
    Some(if limit < needed {
        Finding::new(
            Verdict::Warning,
            name,
            format!("{says}: datagrams beyond the limit are lost and sent again"),
            format!("sysctl -w net.core.rmem_max={needed}, or a smaller ring.window"),
        )
    } else {
        Finding::good(name, says)
    })
}

/// An address that is not this host's cannot be listened at.
fn own_addresses(config: &NodeConfig) -> Vec<Finding> {
    let name = "own address";
    let finding = |mine: &SocketAddr| match UdpSocket::bind(SocketAddr::new(mine.ip(), 0)) {
        Ok(_) => Finding::good(name, format!("{} is this host's", mine.ip())),
        Err(error) => Finding::new(
            Verdict::Failure,
            name,
            format!("cannot listen at {}: {error}", mine.ip()),
            "give [[nodes]] this host's own address, or bring the interface up",
        ),
    };
    let mine = config.nodes.iter().filter(|node| node.id == config.node);
    mine.flat_map(|node| node.ring.iter()).map(finding).collect()
}

/// The ring's port is used on TCP too, so that a node's death is seen: it can be dialled.
fn other_node(id: NodeId, address: SocketAddr) -> Finding {
    let name = "other node";
    match TcpStream::connect_timeout(&address, DIAL_WITHIN) {
        Ok(_) => Finding::good(name, format!("{id} at {address} answers")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Finding::new(
            Verdict::Advice,
            name,
            format!("{id} at {address}: the host answers, but no node listens"),
            "start the node; if it runs, correct its ring address",
        ),
        Err(error) => Finding::new(
            Verdict::Warning,
            name,
            format!("{id} at {address}: {error}"),
            "check that the host is up, and that its firewall admits TCP and UDP at this port",
        ),
    }
}
