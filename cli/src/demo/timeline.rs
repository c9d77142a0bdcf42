//! The costs of a fault: from the nodes' events and the clients' own records, on one clock.

use serde::Serialize;

use super::fault::{Fault, Means, Role};
use super::gaps::Clients;

/// A moment in what a node saw, told by that node. Nanoseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// When.
    pub at: u64,
    /// The reporting node.
    pub node: u32,
    /// Its observation.
    pub what: Seen,
}

/// An observation of a node, as far as the timeline needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A node's process is gone: its host says that nobody listens.
    Unreachable(u32),
    /// Nothing was seen of the token for too long.
    TokenLost,
    /// A node did not agree to the next membership in time.
    Silent(u32),
    /// A new ring orders messages.
    Ring,
    /// A new view of the demo's group.
    View {
        /// Its number.
        number: u64,
        /// The nodes of its replicas, and whether each has the state.
        replicas: Vec<(u32, bool)>,
        /// The primary's node.
        primary: Option<u32>,
    },
    /// This node's replica was given the state and has caught up.
    Transferred {
        /// Bytes of the state.
        bytes: u64,
    },
}

/// The effects of a fault. Times are milliseconds since the fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// The fault.
    pub means: Means,
    /// To whom.
    pub role: Role,
    /// To which node.
    pub node: u32,
    /// Seconds from the start of the traffic.
    pub at_s: f64,
    /// The kernel had ended the process (its sockets are closed a moment before).
    pub dead_ms: Option<f64>,
    /// The first sign of it that any other node noticed.
    pub detected_ms: Option<f64>,
    /// The nodes that noticed, and how.
    pub detected_by: Option<String>,
    /// A ring without the node orders messages.
    pub ring_ms: Option<f64>,
    /// A view without the node's replica is installed.
    pub view_ms: Option<f64>,
    /// That view's number and primary.
    pub view: Option<u64>,
    /// That view's primary's node.
    pub primary: Option<u32>,
    /// The first answer that a client got in that view.
    pub first_reply_ms: Option<f64>,
    /// How long clients went without answers.
    #[serde(flatten)]
    pub gaps: Gaps,
    /// The fault was undone: the process started again, or continued.
    pub undone_ms: f64,
    /// As many replicas as are wanted had the state again.
    pub synced_ms: Option<f64>,
    /// Where the new one is.
    pub restored_on: Option<u32>,
    /// Bytes of state that it was given.
    pub state_bytes: Option<u64>,
    /// The group went on without the node, all replicas that are wanted came to have the state, and
    /// the node came back.
    pub survived: bool,
}

/// Gaps that a fault made. Each is the longest time that any client had a call due and got no
/// answer, of those that overlap a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gaps {
    /// From the fault to the first reply.
    pub gap_ms: f64,
    /// Which client that was.
    pub gap_client: String,
    /// From the fault until it was undone.
    pub longest_gap_ms: f64,
    /// When that gap began; less than zero if before the fault.
    pub longest_gap_from_ms: f64,
    /// Which client that was.
    pub longest_gap_client: String,
    /// While the node came back.
    pub return_gap_ms: f64,
}

impl Gaps {
    fn of(fault: &Fault, first_reply: Option<u64>, clients: &Clients) -> Gaps {
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let first = first_reply.unwrap_or(fault.undone);
        let (gap, _, gap_client) = clients.longest_gap(fault.at, first);
        let (longest_gap, begin, client) = clients.longest_gap(fault.at, fault.undone);
        let end = fault.back.unwrap_or(u64::MAX);
        Gaps {
            gap_ms: millis(gap),
            gap_client: gap_client.to_owned(),
            longest_gap_ms: millis(longest_gap),
            longest_gap_from_ms: (begin as f64 - fault.at as f64) / 1e6,
            longest_gap_client: client.to_owned(),
            return_gap_ms: millis(clients.longest_gap(fault.undone, end).0),
        }
    }
}

/// Puts together what came of a fault.
pub fn timeline(
    fault: &Fault,
    wanted: usize,
    start: u64,
    events: &[NodeEvent],
    clients: &Clients,
) -> Timeline {
    let since = |moment: u64| moment.saturating_sub(fault.at) as f64 / 1e6;
    // The node is away until the fault is undone; later events belong to its return.
    let away: Vec<&NodeEvent> =
        events.iter().filter(|event| (fault.at..fault.undone).contains(&event.at)).collect();
    let others = || away.iter().copied().filter(|event| event.node != fault.node);
    let detected = others().filter(|event| is_sign(&event.what, fault.node)).min_by_key(by_time);
    let view = others().filter(|event| without(&event.what, fault.node)).min_by_key(by_time);
    let ring = others().filter(|event| event.what == Seen::Ring).min_by_key(by_time);
    let installed = view.map(|event| event.at);
    let first_reply = installed.and_then(|moment| clients.first_answer_after(moment));
    let whole = view.and_then(|view| restored(view, wanted, events));
    let restored_on = whole.and_then(|whole| newcomer(view?, whole));
    let transferred = events.iter().filter(|event| {
        Some(event.node) == restored_on
            && event.at >= fault.at
            && matches!(event.what, Seen::Transferred { .. })
    });
    let transferred = transferred.min_by_key(by_time);
    let (number, primary) = match view.map(|event| &event.what) {
        Some(Seen::View { number, primary, .. }) => (Some(*number), *primary),
        _ => (None, None),
    };
    Timeline {
        means: fault.means,
        role: fault.role,
        node: fault.node,
        at_s: fault.at.saturating_sub(start) as f64 / 1e9,
        dead_ms: fault.dead.map(since),
        detected_ms: detected.map(|event| since(event.at)),
        detected_by: detected.map(|event| format!("node {}: {}", event.node, how(&event.what))),
        ring_ms: ring.map(|event| since(event.at)),
        view_ms: installed.map(since),
        view: number,
        primary,
        first_reply_ms: first_reply.map(since),
        gaps: Gaps::of(fault, first_reply, clients),
        undone_ms: since(fault.undone),
        synced_ms: whole.map(|event| since(event.at)),
        restored_on,
        state_bytes: transferred.and_then(|event| match event.what {
            Seen::Transferred { bytes } => Some(bytes),
            _ => None,
        }),
        survived: installed.is_some() && first_reply.is_some() && fault.back.is_some(),
    }
}

/// The first view after this one in which all replicas that are wanted have the state.
fn restored<'a>(view: &NodeEvent, wanted: usize, events: &'a [NodeEvent]) -> Option<&'a NodeEvent> {
    let later = events.iter().filter(|event| event.at >= view.at);
    let whole = later.filter(|event| match &event.what {
        Seen::View { replicas, .. } => {
            replicas.iter().filter(|(_, synced)| *synced).count() == wanted
        }
        _ => false,
    });
    whole.min_by_key(by_time)
}

/// A node with a replica in the second of these views and none in the first.
fn newcomer(before: &NodeEvent, after: &NodeEvent) -> Option<u32> {
    match (&before.what, &after.what) {
        (Seen::View { replicas: before, .. }, Seen::View { replicas: after, .. }) => {
            let is_new = |node: &u32| before.iter().all(|(other, _)| other != node);
            after.iter().map(|(node, _)| *node).find(is_new)
        }
        _ => None,
    }
}

fn by_time(event: &&NodeEvent) -> u64 {
    event.at
}

fn is_sign(what: &Seen, victim: u32) -> bool {
    match what {
        Seen::Unreachable(node) | Seen::Silent(node) => *node == victim,
        Seen::TokenLost => true,
        _ => false,
    }
}

fn without(what: &Seen, victim: u32) -> bool {
    match what {
        Seen::View { replicas, .. } => replicas.iter().all(|&(node, _)| node != victim),
        _ => false,
    }
}

fn how(what: &Seen) -> &'static str {
    match what {
        Seen::Unreachable(_) => "its host refuses",
        Seen::Silent(_) => "it is silent",
        Seen::TokenLost => "the token is lost",
        Seen::Ring => "new ring",
        Seen::View { .. } => "new view",
        Seen::Transferred { .. } => "state",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn fault() -> Fault {
        let (means, role, node) = (Means::Kill, Role::Primary, 1);
        let (at, undone, back) = (1_000 * MS, 3_000 * MS, Some(3_100 * MS));
        Fault { means, role, node, at, dead: Some(at + MS), undone, back }
    }

    fn view(node: u32, at: u64, replicas: &[u32]) -> NodeEvent {
        let replicas: Vec<(u32, bool)> = replicas.iter().map(|&node| (node, true)).collect();
        let primary = replicas.first().map(|first| first.0);
        NodeEvent { at, node, what: Seen::View { number: 4, replicas, primary } }
    }

    #[test]
    fn the_steps_are_found_among_what_the_nodes_tell() {
        let event = |node, at, what| NodeEvent { at: at * MS, node, what };
        let events = [
            event(3, 900, Seen::TokenLost),
            event(3, 1_002, Seen::Unreachable(1)),
            event(2, 1_001, Seen::Unreachable(1)),
            event(2, 1_003, Seen::Ring),
            view(2, 1_004 * MS, &[2, 3]),
            event(4, 1_060, Seen::Transferred { bytes: 512 }),
            view(2, 1_061 * MS, &[2, 3, 4]),
        ];
        let mut clients = Clients::around(&[fault()]);
        let client = clients.begin("line A".to_owned());
        clients.answer(
            client,
            &[
                (998 * MS, 999 * MS),
                (1_000 * MS, 1_006 * MS),
                (1_001 * MS, 1_007 * MS),
                (1_600 * MS, 1_609 * MS),
                (3_001 * MS, 3_004 * MS),
            ],
        );
        let timeline = timeline(&fault(), 3, 0, &events, &clients);
        assert_eq!(timeline.detected_ms, Some(1.0));
        assert_eq!(timeline.detected_by.as_deref(), Some("node 2: its host refuses"));
        assert_eq!(timeline.ring_ms, Some(3.0));
        assert_eq!(
            (timeline.view_ms, timeline.view, timeline.primary),
            (Some(4.0), Some(4), Some(2))
        );
        assert_eq!(timeline.first_reply_ms, Some(6.0));
        assert_eq!(
            (timeline.gaps.gap_ms, timeline.gaps.longest_gap_ms, timeline.gaps.return_gap_ms),
            (6.0, 9.0, 3.0)
        );
        assert_eq!(
            (timeline.synced_ms, timeline.restored_on, timeline.state_bytes),
            (Some(61.0), Some(4), Some(512))
        );
        assert!(timeline.survived);
    }

    #[test]
    fn a_node_that_does_not_come_back_is_not_survived() {
        let gone = Fault { back: None, ..fault() };
        let events = [view(2, 1_004 * MS, &[2, 3])];
        let mut clients = Clients::around(&[gone]);
        let client = clients.begin("line A".to_owned());
        clients.answer(client, &[(1_000 * MS, 1_006 * MS)]);
        assert!(!timeline(&gone, 3, 0, &events, &clients).survived);
    }
}
