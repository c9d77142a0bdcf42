//! Nothing grows without bound: the outputs of a machine at one step, its datagrams and frames, and
//! the traffic of an idle cluster.
//!
//! Source: design.md, "every queue and list has a named limit"; docs/protocol/ring.md, "The pulse"
//! (an idle ring sends `n` datagrams in each interval, and the interval grows).

use wire::limits::{MAX_FRAME, MAX_WINDOW};
use wire::{Duration, Member, Time};

use super::{Verdict, Violation, demand};

const PROPERTY: &str = "bounded";

/// By then the last work is done, and the interval has grown as far as it may.
const SETTLING: Duration = Duration::from_millis(600);

/// A token that does not rest sends the same all the time: the remaining work is done by then.
const CLASSIC: Duration = Duration::from_millis(10);

/// For so long an idle cluster is listened to: ten of its longest intervals, that one datagram more
/// in each is heard from up to nine nodes.
const LISTENING: Duration = Duration::from_millis(2_000);

/// A copy of an old datagram may come so late, and stir the ring: then it is listened to once more.
const LATEST: Duration = Duration::from_millis(5_000);

/// A whole cluster without work, and its traffic meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    began: Time,
    since: Time,
    /// When listening began, and how many datagrams had been sent.
    settled: Option<(Time, u64)>,
}

/// The parameters of an idle cluster's traffic.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// The nodes, all in one ring.
    pub nodes: usize,
    /// The token rests.
    pub parking: bool,
    /// The longest that a datagram is under way.
    pub delay: Duration,
}

impl Silence {
    /// It begins.
    pub fn new(now: Time) -> Silence {
        Silence { began: now, since: now, settled: None }
    }

    /// So many datagrams have been sent by now. True when enough has been heard.
    pub fn listen(&mut self, now: Time, datagrams: u64, idle: Idle) -> Result<bool, Violation> {
        if !idle.parking {
            return Ok(now.since(self.since) >= CLASSIC);
        }
        if now.since(self.since) < SETTLING {
            return Ok(false);
        }
        let (since, before) = *self.settled.get_or_insert((now, datagrams));
        let span = now.since(since);
        if span < LISTENING {
            return Ok(false);
        }
        let verdict = idle.check(datagrams - before, span);
        if verdict.is_err() && since.since(self.began) < LATEST {
            *self = Silence { began: self.began, ..Silence::new(now) };
            return Ok(false);
        }
        verdict.map(|()| true)
    }
}

/// Outputs of one step of one machine, at most: a window of datagrams to every member, some
/// retransmissions, and the effects of as many deliveries.
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

/// Messages that may be added to a journal while the state that cuts it is taken.
const BEHIND: u64 = 200;

/// A node cuts the journal of a program that may die after so many messages.
pub fn journal(by: Member, group: &str, kept: u64, most: u64) -> Verdict {
    demand(kept <= most + BEHIND, PROPERTY, || {
        format!("{by} keeps {kept} messages for the program of {group}, {most} at most")
    })
}

impl Idle {
    /// A pulse wakes each node once per interval. Where the network is so slow that none is back in
    /// time, each heartbeat ends in a round: the pulse, the token, its copies, and the receipts for
    /// them.
    fn check(self, datagrams: u64, span: Duration) -> Verdict {
        if self.nodes < 2 {
            return Ok(());
        }
        let nodes = self.nodes as u64;
        let timing = ring::Timing::default();
        let (interval, each) = if self.delay * self.nodes as u32 <= timing.ack_wait {
            (timing.heartbeat_max, nodes)
        } else {
            (timing.heartbeat, 7 * nodes)
        };
        // One that was under way at the beginning, and clocks that are not the same.
        let times = (span.as_micros() + 1_000) / interval.as_micros() + 1;
        let limit = times as u64 * each;
        demand(datagrams <= limit, PROPERTY, || {
            format!(
                "{nodes} idle nodes send {datagrams} datagrams in {span:?}, expected {limit} at most"
            )
        })
    }
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
        assert!(journal(by, "any", 220, 20).is_ok() && journal(by, "any", 221, 20).is_err());
    }

    /// One datagram more in each interval is heard.
    #[test]
    fn an_idle_ring_says_so_much_and_no_more() {
        let heard = |nodes: usize, each: usize, parking| {
            let idle = Idle { nodes, parking, delay: Duration::from_micros(50) };
            let mut silence = Silence::new(Time::ZERO);
            let mut now = Time::ZERO;
            let mut sent = 0;
            while !silence.listen(now, sent, idle)? {
                now += ring::Timing::default().heartbeat_max;
                sent += each as u64;
            }
            Ok::<_, Violation>(now)
        };
        for nodes in 2..=9 {
            assert!(heard(nodes, nodes, true).is_ok());
            assert!(heard(nodes, nodes + 1, true).is_err(), "{nodes} nodes");
        }
        assert!(heard(4, 100_000, false).is_ok());
    }
}
