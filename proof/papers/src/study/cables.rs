//! Cables between the nodes, on which every datagram is under way for a given time: on one machine
//! a pass of the token would else be as short as waking a process, and be held up by whatever else
//! runs there.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::set_current_timer_slack;

use harness::Outcome;
use harness::wires::{Wire, Wires};

/// The largest datagram that a node sends.
const ROOM: usize = 9_216;

/// So many datagrams may be under way on a cable; more are lost, as in a switch that is full.
const MAX_UNDER_WAY: usize = 4_096;

/// Between nodes at these addresses. They last as long as the process.
pub fn start(nodes: &[SocketAddr], delay: Duration) -> Outcome<Wires> {
    Wires::start(nodes, move |wire| carry(&wire, delay))
}

/// One direction of a cable.
fn carry(wire: &Wire, delay: Duration) {
    // Sleeping in `recv` would be late for datagrams under way: `poll` has an end.
    wire.taken.set_nonblocking(true).expect("a socket can be made so");
    // Refused only where prctl is filtered out: all datagrams are then some 50 µs longer on it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut room = [0; ROOM];
    loop {
        let left = under_way.front().map(|(due, _)| due.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec { tv_sec: 0, tv_nsec: left.as_nanos() as i64 });
        // Interrupted or not, what follows looks for itself.
        let _ = poll(&mut [PollFd::new(&*wire.taken, PollFlags::IN)], left.as_ref());
        loop {
            match wire.taken.recv(&mut room) {
                Ok(length) if under_way.len() < MAX_UNDER_WAY => {
                    under_way.push_back((Instant::now() + delay, room[..length].to_vec()));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The answer to a datagram for a node that is not there yet.
                Err(_) => {}
            }
        }
        while under_way.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let (_, bytes) = under_way.pop_front().expect("it was looked at");
            wire.give(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    #[test]
    fn all_comes_in_order_and_not_before_its_time() {
        let nodes =
            [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
        let addresses = nodes.each_ref().map(|node| node.local_addr().expect("bound"));
        let delay = Duration::from_millis(20);
        let cables = start(&addresses, delay).expect("sockets");
        let far = cables.seen_by(0).expect("addresses");
        assert_eq!(far[0], addresses[0]);
        let start = Instant::now();
        for number in 0..50u8 {
            nodes[0].send_to(&[number], far[1]).expect("loopback takes it");
        }
        let mut room = [0; 8];
        for number in 0..50 {
            let (length, from) = nodes[1].recv_from(&mut room).expect("it arrives");
            assert!(start.elapsed() >= delay);
            assert_eq!(
                (&room[..length], from),
                (&[number][..], cables.seen_by(1).expect("addresses")[0])
            );
        }
    }
}
