//! Somebody without the cluster's key, who sees every datagram and sends any data to any node.
//!
//! Source: docs/protocol/seal.md, "Against whom". Delays and losses that he could cause are the
//! network's weather. Here he repeats, changes, cuts off, misaddresses and invents.

use bytes::Bytes;
use wire::Duration;

use crate::draw::Draw;
use crate::network::Place;

/// Datagrams that he keeps.
const KEPT: usize = 256;

/// The longest that he waits before he sends one again: lives and rings last less.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A datagram of his: the apparent sender, the receiver, the bytes and the delay.
pub struct Sent {
    /// The place that it seems to come from.
    pub from: Place,
    /// The place that it goes to.
    pub to: Place,
    /// The bytes.
    pub bytes: Bytes,
    /// When.
    pub after: Duration,
}

/// The outsider.
pub struct Outsider {
    /// His acts per 1,000 datagrams.
    rate: u64,
    nodes: usize,
    draw: Draw,
    /// The datagrams that he has seen, sealed and in the clear, for he may guess the latter.
    kept: Vec<(Place, Place, Bytes, Bytes)>,
}

impl Outsider {
    /// He acts upon so many of 1,000 datagrams between so many nodes.
    pub fn new(rate: u64, nodes: usize, draw: Draw) -> Self {
        Outsider { rate, nodes, draw, kept: Vec::new() }
    }

    /// He sees a datagram, and may send one of his own.
    pub fn sees(&mut self, from: Place, to: Place, sealed: &Bytes, plain: &Bytes) -> Option<Sent> {
        let seen = (from, to, sealed.clone(), plain.clone());
        if self.kept.len() < KEPT {
            self.kept.push(seen);
        } else if self.draw.one_in(4) {
            let place = self.draw.count(0, KEPT - 1);
            self.kept[place] = seen;
        }
        if !self.draw.permille(self.rate) {
            return None;
        }
        let (from, to, sealed, plain) = self.draw.pick(&self.kept);
        let other = self.draw.count(0, self.nodes - 1);
        let after = self.draw.scale(Duration::from_micros(20), TIMEOUT);
        let (to, bytes) = match self.draw.between(0, 7) {
            0..=2 => (to, sealed),
            3 => (other, sealed),
            4 => (to, sealed.slice(..self.draw.count(0, sealed.len()))),
            5 => (to, plain),
            6 => (to, (0..self.draw.count(0, 200)).map(|_| self.draw.bits() as u8).collect()),
            _ => {
                let mut bytes = sealed.to_vec();
                let at = self.draw.count(0, bytes.len() - 1);
                bytes[at] ^= 1 << self.draw.count(0, 7);
                (to, bytes.into())
            }
        };
        Some(Sent { from, to, bytes, after })
    }
}
