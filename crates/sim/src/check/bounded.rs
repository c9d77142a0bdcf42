//! Nothing grows without bound: what leaves a machine at one step, its datagrams and frames, and what an
//! idle cluster says.
//!
//! Source: design.md, "every queue and list has a named limit"; docs/protocol/ring.md, "Parking" (an idle ring
//! sends nothing but heartbeats).

use wire::limits::{MAX_FRAME, MAX_WINDOW};
use wire::{Duration, Member};

use super::{Verdict, demand};

const PROPERTY: &str = "bounded";

/// Datagrams that may still be sent again for the last of the work when silence begins.
const LEFT_OVER: u64 = 300;

/// For so long an idle cluster is listened to. One that does not park says the same all the time.
pub fn silence(parking: bool) -> Duration {
    Duration::from_millis(if parking { 250 } else { 10 })
}

/// Outputs of one step of one machine, at most: a window of datagrams to every member, some
/// retransmissions, and what the deliveries of as many datagrams lead to.
pub fn outputs(by: Member, count: usize, members: usize) -> Verdict {
    let limit = 4 * MAX_WINDOW * (members + 1);
    demand(count <= limit, PROPERTY, || format!("{by} puts out {count} things at one step"))
}

/// A datagram is no larger than the configuration says.
pub fn datagram(by: Member, bytes: usize, limit: usize) -> Verdict {
    demand(bytes <= limit, PROPERTY, || format!("{by} sends {bytes} bytes, the limit is {limit}"))
}

/// A frame is no larger than a receiver takes.
pub fn frame(bytes: usize) -> Verdict {
    let limit = MAX_FRAME + wire::client::FRAME_OVERHEAD;
    demand(bytes <= limit, PROPERTY, || format!("a frame of {bytes} bytes, the limit is {limit}"))
}

/// A group's sessions are no more than the clients that ever called.
pub fn sessions(by: Member, kept: usize, clients: usize) -> Verdict {
    demand(kept <= clients, PROPERTY, || format!("{by} keeps {kept} sessions of {clients} clients"))
}

/// A whole cluster without work sends heartbeats and beacons only: per heartbeat, a token round and the
/// receipts for it.
pub fn idle(datagrams: u64, span: Duration, nodes: usize, parking: bool) -> Verdict {
    if !parking || nodes < 2 {
        return Ok(());
    }
    let rounds = span.as_millis() as u64 / 20 + 2;
    let limit = LEFT_OVER + rounds * nodes as u64 * 6;
    demand(datagrams <= limit, PROPERTY, || {
        format!(
            "{nodes} idle nodes send {datagrams} datagrams in {span:?}, expected {limit} at most"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    #[test]
    fn more_is_seen() {
        let by = Member { node: NodeId(1), incarnation: Incarnation(1) };
        assert!(outputs(by, 100, 3).is_ok());
        assert!(outputs(by, 1_000_000, 3).is_err());
        assert!(datagram(by, 1_401, 1_400).is_err());
        assert!(frame(MAX_FRAME + 9).is_err());
        assert!(sessions(by, 4, 3).is_err());
        assert!(idle(100, Duration::from_millis(250), 3, true).is_ok());
        assert!(idle(100_000, Duration::from_millis(250), 3, true).is_err());
        assert!(idle(100_000, Duration::from_millis(250), 3, false).is_ok());
    }
}
