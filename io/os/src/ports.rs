//! Free addresses on loopback, for tests and demonstrations.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::wall_clock;

/// Below the range from which Linux gives ports to clients (from 32,768), so that a node that is
/// restarted finds its port free.
const PORTS: Range<u16> = 20_000..32_000;

/// Addresses of loopback for the rings of `count` nodes: their ports are free on UDP and TCP now,
/// and no two calls of this process get the same.
///
/// # Panics
/// If there are not that many free ports.
pub fn free_ring_addresses(count: usize) -> Vec<SocketAddr> {
    free_ring_addresses_at(Ipv4Addr::LOCALHOST.into(), count)
}

/// As [`free_ring_addresses`], at another address of this host: all of 127.0.0.0/8 is its own, so
/// 127.0.0.2 serves as a second link.
///
/// # Panics
/// If there are not that many free ports.
pub fn free_ring_addresses_at(host: IpAddr, count: usize) -> Vec<SocketAddr> {
    // Each process starts elsewhere; within it the numbers go on.
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let _ = TAKEN.compare_exchange(
        0,
        (wall_clock() >> 10) ^ u64::from(process::id()).wrapping_mul(0x9e37_79b9),
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
    let span = u64::from(PORTS.end - PORTS.start);
    let free: Vec<SocketAddr> = (0..span)
        .map(|_| PORTS.start + (TAKEN.fetch_add(1, Ordering::Relaxed) % span) as u16)
        .map(|port| SocketAddr::new(host, port))
        .filter(|&address| TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok())
        .take(count)
        .collect();
    assert_eq!(free.len(), count, "the ports {PORTS:?} of {host} are taken");
    free
}
