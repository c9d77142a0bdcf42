//! The promises of sealing (`docs/protocol/seal.md`), by example and by chance.

mod contact;
mod envelope;
mod keys;
mod network;
mod window;

use steadfast_seal::{ClusterKey, Config, Keys, Refused, Seal};
use wire::{ClusterId, Duration, Incarnation, Member, NodeId, Secret, Time};

pub(crate) const CLUSTER: ClusterId = ClusterId::of("test");

pub(crate) fn key(number: u8) -> ClusterKey {
    ClusterKey::new(number, Secret::new([number; 32]))
}

pub(crate) fn member(node: u32, incarnation: u64) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(incarnation) }
}

/// A life of a node in a cluster of four; `chance` makes its salt and its nonces.
pub(crate) fn seal(node: u32, incarnation: u64, chance: u8) -> Seal {
    Seal::new(Config {
        cluster: CLUSTER,
        me: member(node, incarnation),
        nodes: [1, 2, 3, 4].map(NodeId).to_vec(),
        keys: Keys::single(key(1)),
        seed: Secret::new([chance; 32]),
    })
}

pub(crate) fn at(micros: u64) -> Time {
    Time(1_000_000_000) + Duration::from_micros(micros)
}

/// The bytes of a sealed datagram.
pub(crate) fn sealed(from: &mut Seal, to: NodeId, datagram: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    from.seal(to, datagram, &mut out).unwrap();
    out
}

/// The bytes that the ring would be given.
pub(crate) fn open(by: &mut Seal, now: Time, datagram: &[u8]) -> Result<Option<Vec<u8>>, Refused> {
    let mut copy = datagram.to_vec();
    let in_place = by.open(now, &mut copy)?;
    Ok(in_place.map(|range| copy[range].to_vec()))
}

/// Lets two nodes exchange contact messages until there are no more.
pub(crate) fn talk(a: &mut Seal, b: &mut Seal, now: Time) {
    loop {
        let mut silent = true;
        for turn in 0..2 {
            let (from, to) = if turn == 0 { (&mut *a, &mut *b) } else { (&mut *b, &mut *a) };
            while let Some(contact) = from.poll_contact() {
                silent = false;
                let _ = open(to, now, &contact.bytes);
            }
        }
        if silent {
            return;
        }
    }
}

/// Two nodes that have met.
pub(crate) fn acquainted() -> (Seal, Seal) {
    let (mut a, mut b) = (seal(1, 10, 1), seal(2, 20, 2));
    a.greet(at(0), NodeId(2));
    talk(&mut a, &mut b, at(0));
    assert!(a.is_in_touch(NodeId(2)) && b.is_in_touch(NodeId(1)));
    (a, b)
}
