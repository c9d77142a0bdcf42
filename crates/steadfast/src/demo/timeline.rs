//! What a fault cost: from the nodes' events and the clients' own records, on one clock.

use serde::Serialize;

use super::record::Record;

/// A moment in what a node saw, told by that node. Nanoseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// When.
    pub at: u64,
    /// Who tells it.
    pub node: u32,
    /// What it saw.
    pub what: Seen,
}

/// What a node saw, as far as the timeline needs it.
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

/// What was done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// SIGKILL, and a new process later.
    Kill,
    /// SIGSTOP, and SIGCONT later.
    Stop,
}

impl Means {
    /// What people read.
    pub fn name(self) -> &'static str {
        match self {
            Means::Kill => "kill -9",
            Means::Stop => "kill -STOP",
        }
    }
}

/// Whose node it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The primary's.
    Primary,
    /// Another replica's.
    Backup,
}

impl Role {
    /// What people read.
    pub fn name(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::Backup => "backup",
        }
    }
}

/// A fault that the conductor made, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was done.
    pub means: Means,
    /// To whom.
    pub role: Role,
    /// To which node.
    pub node: u32,
    /// When.
    pub at: u64,
    /// When the kernel had ended the process, if it was killed.
    pub dead: Option<u64>,
    /// When it was undone.
    pub undone: u64,
    /// When the conductor saw that the replica had the state again.
    pub back: Option<u64>,
}

/// What came of a fault. Times are milliseconds since the fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// What was done.
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
    /// Who noticed, and how.
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
    /// The longest time that any client had a call due and got no answer, from the fault until
    /// it was undone.
    pub longest_gap_ms: f64,
    /// When that gap began; less than zero if before the fault.
    pub longest_gap_from_ms: f64,
    /// Which client that was.
    pub longest_gap_client: String,
    /// The same while the node came back.
    pub return_gap_ms: f64,
    /// The fault was undone: the process started again, or continued.
    pub undone_ms: f64,
    /// The node's replica had the state and had caught up.
    pub synced_ms: Option<f64>,
    /// Bytes of state that it was given.
    pub state_bytes: Option<u64>,
    /// The group went on without the node, and the node's replica came back with the state.
    pub survived: bool,
}

/// A call, as far as gaps are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    due: u64,
    /// `None`: it failed.
    answered: Option<u64>,
}

/// The calls around the faults, client by client.
#[derive(Default)]
pub struct Clients {
    clients: Vec<(String, Vec<Call>)>,
    windows: Vec<(u64, u64)>,
}

/// Before a fault, calls are kept from this long on: longer than any call may take.
const LEAD: u64 = 15_000_000_000;

impl Clients {
    /// Keeps the calls around these faults only.
    pub fn around(faults: &[Fault]) -> Clients {
        let window = |fault: &Fault| {
            let end = fault.back.unwrap_or(fault.undone).saturating_add(LEAD);
            (fault.at.saturating_sub(LEAD), end)
        };
        Clients { clients: Vec::new(), windows: faults.iter().map(window).collect() }
    }

    /// Begins another client; its calls are added by the number that this returns.
    pub fn begin(&mut self, name: String) -> usize {
        self.clients.push((name, Vec::new()));
        self.clients.len() - 1
    }

    /// Adds a call of a client.
    pub fn add(&mut self, client: usize, record: &Record) {
        let Record { due, answered, .. } = *record;
        if self.windows.iter().any(|&(from, to)| answered >= from && due <= to) {
            let answered = record.error.is_none().then_some(answered);
            self.clients[client].1.push(Call { due, answered });
        }
    }

    /// The longest gap that overlaps the window: how long, from when on, and whose it is.
    fn longest_gap(&self, from: u64, to: u64) -> (u64, u64, &str) {
        let gaps = self.clients.iter().map(|(name, calls)| {
            let (length, begin) = gap(calls, from, to);
            (length, begin, name.as_str())
        });
        gaps.max().unwrap_or((0, from, ""))
    }

    fn first_answer_after(&self, moment: u64) -> Option<u64> {
        let calls = self.clients.iter().flat_map(|(_, calls)| calls);
        calls.filter_map(|call| call.answered).filter(|&answered| answered > moment).min()
    }
}

/// The longest time without an answer while a call was due, of those that overlap the window, and
/// when it began.
///
/// A gap begins with the last answer, or when the oldest unanswered call became due if that was
/// later, and ends with the next answer, whichever call that is for.
fn gap(calls: &[Call], from: u64, to: u64) -> (u64, u64) {
    let mut calls = calls.to_vec();
    calls.sort_unstable_by_key(|call| call.answered.unwrap_or(u64::MAX));
    // For each call the earliest due time among it and those answered later.
    let mut oldest = vec![u64::MAX; calls.len() + 1];
    for (place, call) in calls.iter().enumerate().rev() {
        oldest[place] = oldest[place + 1].min(call.due);
    }
    let mut longest = (0, from);
    let mut last = 0;
    for (place, call) in calls.iter().enumerate() {
        let Some(answered) = call.answered else { break };
        let begin = oldest[place].max(last);
        if begin <= to && answered >= from {
            longest = longest.max((answered.saturating_sub(begin), begin));
        }
        last = answered;
    }
    longest
}

/// Puts together what came of a fault.
pub fn timeline(fault: &Fault, start: u64, events: &[NodeEvent], clients: &Clients) -> Timeline {
    let since = |moment: u64| moment.saturating_sub(fault.at) as f64 / 1e6;
    // Until the fault is undone the node is away; what comes after belongs to its return.
    let away: Vec<&NodeEvent> =
        events.iter().filter(|event| (fault.at..fault.undone).contains(&event.at)).collect();
    let others = || away.iter().copied().filter(|event| event.node != fault.node);
    let detected = others().filter(|event| is_sign(&event.what, fault.node)).min_by_key(by_time);
    let view = others().filter(|event| without(&event.what, fault.node)).min_by_key(by_time);
    let ring = others().filter(|event| event.what == Seen::Ring).min_by_key(by_time);
    let installed = view.map(|event| event.at);
    let first_reply = installed.and_then(|moment| clients.first_answer_after(moment));
    let (longest_gap, begin, client) = clients.longest_gap(fault.at, fault.undone);
    let end = fault.back.unwrap_or(u64::MAX);
    let transferred = |event: &&NodeEvent| {
        event.node == fault.node
            && event.at >= fault.undone
            && matches!(event.what, Seen::Transferred { .. })
    };
    let transferred = events.iter().filter(transferred).min_by_key(by_time);
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
        longest_gap_ms: longest_gap as f64 / 1e6,
        longest_gap_from_ms: (begin as f64 - fault.at as f64) / 1e6,
        longest_gap_client: client.to_owned(),
        return_gap_ms: clients.longest_gap(fault.undone, end).0 as f64 / 1e6,
        undone_ms: since(fault.undone),
        synced_ms: transferred.map(|event| event.at).or(fault.back).map(since),
        state_bytes: transferred.and_then(|event| match event.what {
            Seen::Transferred { bytes } => Some(bytes),
            _ => None,
        }),
        survived: installed.is_some() && first_reply.is_some() && fault.back.is_some(),
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

    fn calls(times: &[(u64, u64)]) -> Vec<Call> {
        times.iter().map(|&(due, answered)| Call { due, answered: Some(answered) }).collect()
    }

    #[test]
    fn a_gap_lasts_from_answer_to_answer_while_calls_are_due() {
        // Due every 10, answered at once, but for a pause from 32 to 75.
        let calls = calls(&[(10, 11), (20, 21), (30, 31), (32, 75), (42, 76), (80, 81)]);
        assert_eq!(gap(&calls, 0, 100).0, 43);
        assert_eq!(gap(&calls, 33, 34).0, 43, "a gap counts that only overlaps the window");
        assert_eq!(gap(&calls, 0, 25).0, 1);
    }

    #[test]
    fn a_client_with_nothing_due_sees_no_gap() {
        assert_eq!(gap(&calls(&[(10, 11), (90, 92)]), 0, 100).0, 2);
    }

    #[test]
    fn a_call_that_fails_leaves_a_gap_until_the_next_answer() {
        let mut calls = calls(&[(10, 11), (60, 62)]);
        calls.push(Call { due: 20, answered: None });
        assert_eq!(gap(&calls, 0, 100).0, 42);
    }

    #[test]
    fn answers_out_of_order_end_a_gap_all_the_same() {
        assert_eq!(gap(&calls(&[(10, 50), (12, 20), (14, 21)]), 0, 100).0, 29);
    }

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
            view(2, 3_050 * MS, &[2, 3, 1]),
            event(1, 3_060, Seen::Transferred { bytes: 512 }),
        ];
        let mut clients = Clients::around(&[fault()]);
        let client = clients.begin("line A".to_owned());
        clients.clients[client].1 = calls(&[
            (998 * MS, 999 * MS),
            (1_000 * MS, 1_006 * MS),
            (1_001 * MS, 1_007 * MS),
            (3_001 * MS, 3_004 * MS),
        ]);
        let timeline = timeline(&fault(), 0, &events, &clients);
        assert_eq!(timeline.detected_ms, Some(1.0));
        assert_eq!(timeline.detected_by.as_deref(), Some("node 2: its host refuses"));
        assert_eq!(timeline.ring_ms, Some(3.0));
        assert_eq!(
            (timeline.view_ms, timeline.view, timeline.primary),
            (Some(4.0), Some(4), Some(2))
        );
        assert_eq!(timeline.first_reply_ms, Some(6.0));
        assert_eq!((timeline.longest_gap_ms, timeline.return_gap_ms), (6.0, 3.0));
        assert_eq!((timeline.synced_ms, timeline.state_bytes), (Some(2_060.0), Some(512)));
        assert!(timeline.survived);
    }

    #[test]
    fn a_node_that_does_not_come_back_is_not_survived() {
        let gone = Fault { back: None, ..fault() };
        let events = [view(2, 1_004 * MS, &[2, 3])];
        let mut clients = Clients::around(&[gone]);
        let client = clients.begin("line A".to_owned());
        clients.clients[client].1 = calls(&[(1_000 * MS, 1_006 * MS)]);
        assert!(!timeline(&gone, 0, &events, &clients).survived);
    }
}
