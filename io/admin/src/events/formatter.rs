//! Formats an event as a line for `steadfast events`: time of day, reporting node, time since the
//! fault, sentence.

use super::known::Names;
use super::record::EventRecord;
use super::table::{EventKind, sentence};

/// For this many nanoseconds after a fault, lines have the time since the fault.
const STORY: u64 = 5_000_000_000;

/// Formats a sequence of events. It remembers the names of groups, and the time of the last fault.
#[derive(Clone, Debug, Default)]
pub struct EventFormatter {
    names: Names,
    /// The last sign of life of the member that was suspected first.
    fault: Option<u64>,
}

impl EventFormatter {
    /// A formatter without history.
    pub fn new() -> EventFormatter {
        EventFormatter::default()
    }

    /// The event's line, without a line break.
    pub fn line(&mut self, record: &EventRecord) -> String {
        let EventRecord { time, node, kind } = record;
        if let EventKind::View { group, .. } = kind {
            self.names.learn(group);
        }
        let told = |fault: &u64| time.saturating_sub(*fault) <= STORY;
        self.fault = self.fault.filter(told);
        if let EventKind::Suspected { silent_ns, .. } = kind {
            self.fault.get_or_insert(time.saturating_sub(silent_ns.unwrap_or(0)));
        }
        let since = match self.fault {
            Some(fault) => format!("{:+.1} ms", time.saturating_sub(fault) as f64 / 1e6),
            None => String::new(),
        };
        let told = sentence(kind, &self.names).unwrap_or_else(|| json(kind));
        format!("{}  {:<4}{since:>12}  {told}", clock(*time), node.to_string())
    }
}

fn json(kind: &EventKind) -> String {
    serde_json::to_string(kind).unwrap_or_else(|_| format!("{kind:?}"))
}

/// The time of day in UTC, in the format of the logs.
fn clock(time: u64) -> String {
    let (seconds, micros) = (time / 1_000_000_000 % 86_400, time / 1_000 % 1_000_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{micros:06}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use wire::{GroupId, Incarnation, Member, NodeId, RingId, ViewNumber};

    use super::super::parts::{FaultCause, ReplicaRecord};
    use super::*;

    #[test]
    fn a_fail_over_is_a_story_in_one_nodes_lines() {
        let old = Member { node: NodeId(1), incarnation: Incarnation(7) };
        let new = Member { node: NodeId(2), incarnation: Incarnation(7) };
        let ring = RingId { sequence: 5, representative: NodeId(2) };
        let noon = 43_200_000_000_000;
        let mut formatter = EventFormatter::new();
        let mut tell = |ms: u64, kind| {
            let time = noon + ms * 1_000_000;
            formatter.line(&EventRecord { time, node: NodeId(2), kind })
        };
        let (cause, silent_ns) = (FaultCause::Silence, Some(50_000_000));
        assert_eq!(
            tell(100, EventKind::Suspected { member: old, ring, cause, silent_ns }),
            "12:00:00.100000  n2      +50.0 ms  n1 is suspected: no sign of the token for 50.0 ms"
        );
        let (cause, suspected_ns) = (Some(cause), Some(3_000_000));
        let excluded =
            tell(103, EventKind::Excluded { member: old, ring, cause, silent_ns, suspected_ns });
        assert!(excluded.contains("+53.0 ms  n1 is excluded:"), "{excluded}");
        assert!(excluded.contains("suspected 3.0 ms earlier"), "{excluded}");
        let (group, view) = ("counter".to_owned(), ViewNumber(4));
        let replicas = vec![ReplicaRecord { member: new, synced: true }];
        let view_line =
            EventKind::View { group: group.clone(), view, replicas, primary: Some(new) };
        assert!(tell(104, view_line).ends_with("+54.0 ms  counter: v4, primary n2, replicas n2"));
        let resumed = tell(105, EventKind::Resumed { group, view, after_ns: 55_000_000 });
        assert!(
            resumed.ends_with("55.0 ms after the last sign of life of its old primary"),
            "{resumed}"
        );
        let group = GroupId::of("counter");
        let later = tell(9_000, EventKind::Transferred { group, bytes: 3 });
        assert_eq!(
            later,
            "12:00:09.000000  n2                counter: this node's replica has the state, 3 bytes",
            "the story is over, and the name is known"
        );
    }
}
