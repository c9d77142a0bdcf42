//! Events as lines for people who follow them: when, who tells it, how long after the fault, and what.

use std::collections::BTreeMap;

use wire::limits::MAX_GROUPS;
use wire::{GroupId, Member};

use super::record::{DeviationCause, EventKind, EventRecord, FaultCause};

/// So long after a fault, what happens is told with its time since then, in nanoseconds.
const STORY: u64 = 5_000_000_000;

/// Tells events one after the other: it remembers the names of groups, and when the last fault was.
#[derive(Clone, Debug, Default)]
pub struct Teller {
    names: BTreeMap<GroupId, String>,
    /// The last sign of life of whoever was suspected first.
    fault: Option<u64>,
}

impl Teller {
    /// One that has told nothing yet.
    pub fn new() -> Teller {
        Teller::default()
    }

    /// The event in one line, without its end.
    pub fn line(&mut self, record: &EventRecord) -> String {
        let EventRecord { time, node, kind } = record;
        if let EventKind::View { group, .. } = kind {
            if self.names.len() >= MAX_GROUPS {
                self.names.clear();
            }
            self.names.insert(GroupId::of(group), group.clone());
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
        format!("{}  {:<4}{since:>12}  {}", clock(*time), node.to_string(), self.words(kind))
    }

    fn words(&self, kind: &EventKind) -> String {
        match kind {
            EventKind::Suspected { member, cause, silent_ns, .. } => {
                format!("{} is suspected: {}", member.node, why(*cause, *silent_ns))
            }
            EventKind::Excluded { member, cause, silent_ns, suspected_ns, ring } => {
                let why = match cause {
                    Some(cause) => why(*cause, *silent_ns),
                    None => "it left, or others found it out".to_owned(),
                };
                let suspected = match suspected_ns {
                    Some(span) => format!(", suspected {} before", ms(*span)),
                    None => String::new(),
                };
                format!("{} is excluded: {why}{suspected}; {ring}", member.node)
            }
            EventKind::Restarted { member, .. } => {
                format!("{} is back in a new life", member.node)
            }
            EventKind::Resumed { group, view, after_ns } => format!(
                "{group} answers again ({view}), {} after the last sign of its old primary",
                ms(*after_ns)
            ),
            EventKind::Deviated { group, member, position, cause } => {
                let why = match cause {
                    DeviationCause::Outcome { voters, .. } => format!(
                        "it answers, or asks, something else than a majority of {voters} (vote {position})"
                    ),
                    DeviationCause::Silent => format!("its vote {position} is missing"),
                    DeviationCause::Behind => format!("it is too far behind, at vote {position}"),
                };
                format!("{group}: the replica at {} is replaced: {why}", member.node)
            }
            EventKind::Hung { group, member, misses, ran_ns, alone } => {
                let then = if *alone {
                    "it stays: no other has the state"
                } else {
                    "it goes, and comes anew"
                };
                format!(
                    "{group}: the service at {} is hung, {misses} deadlines missed in a row, the last call runs for {}; {then}",
                    member.node,
                    ms(*ran_ns)
                )
            }
            EventKind::Demoted { group, member, was_primary, .. } => {
                let what = if *was_primary { "primary" } else { "replica" };
                format!("{group}: the {what} at {} is out: its service is hung", member.node)
            }
            EventKind::Split { group, position, answers } => {
                format!(
                    "{group}: {answers} different things are told in vote {position}, and none has a majority"
                )
            }
            EventKind::Poisoned { group, number, client, call, method, nodes } => {
                let on: Vec<String> = nodes.iter().map(ToString::to_string).collect();
                format!(
                    "{}: services died at {} of request {number} (call {call} of {client}, method {method}), and nobody executes it any more",
                    self.name(*group),
                    on.join(" ")
                )
            }
            EventKind::Moved { group, from, to, view, .. } => {
                format!("{group}: the primary moved from {} to {} ({view})", from.node, to.node)
            }
            EventKind::Restyled { group, from, to, view, .. } => {
                format!("{group}: the style changed from {from} to {to} ({view})")
            }
            EventKind::Deposited { group, holder, view, .. } => {
                format!(
                    "{group}: begins with a state that {} has from a file ({view})",
                    holder.node
                )
            }
            EventKind::Ended { group, view } => {
                format!("{group}: ended, its last replica has left ({view})")
            }
            EventKind::Ranked { group, order, view, .. } => {
                format!("{group}: backups are tried in the order {} ({view})", nodes(order))
            }
            EventKind::Overloaded { member, used, capacity } => {
                format!("{}: the host has much to do: {used} of {capacity}", member.node)
            }
            EventKind::Relieved { member, used, capacity } => {
                format!("{}: the host has room again: {used} of {capacity}", member.node)
            }
            EventKind::Deployed { group, replicas } => {
                format!("{group}: deployed, {replicas} replicas are wanted")
            }
            EventKind::Placed { group, on } => {
                let on: Vec<String> = on.iter().map(ToString::to_string).collect();
                format!("{group}: replicas are to be on {}", on.join(" "))
            }
            EventKind::Upgrading { group, at, program } => {
                format!("{group}: the replica at {at} is to run `{program}`")
            }
            EventKind::Upgraded { group, program } => {
                format!("{group}: all replicas run `{program}`")
            }
            EventKind::TakenBack { group, at, why } => {
                format!("{group}: the new program is taken back: at {at} {why}")
            }
            EventKind::Failing { group, at } => {
                format!("{group}: the program ends again and again at {at}, and is tried elsewhere")
            }
            EventKind::Withdrawn { group } => format!("{group}: withdrawn, all replicas end"),
            EventKind::DrainBegan { host } => format!("{host} is to be emptied"),
            EventKind::DrainEnded { host } => format!("{host} may have replicas again"),
            EventKind::Shedding { host, level: 0, refused } => {
                format!("{host}: the host refuses no calls any more ({refused} since its start)")
            }
            EventKind::Shedding { host, level, .. } => {
                format!("{host}: the host refuses calls of criticality below {level}")
            }
            EventKind::View { group, view, replicas, primary } => {
                let ranks: Vec<String> = replicas
                    .iter()
                    .map(|replica| match replica.synced {
                        true => replica.member.node.to_string(),
                        false => format!("({})", replica.member.node),
                    })
                    .collect();
                let primary = primary.map_or("none".to_owned(), |it| it.node.to_string());
                format!("{group}: {view}, primary {primary}, replicas {}", ranks.join(" "))
            }
            EventKind::Configuration { ring, members } => {
                format!("configuration {ring}: {}", nodes(members))
            }
            EventKind::Quorum { quorate: true, epoch, .. } => format!("quorum (epoch {epoch})"),
            EventKind::Quorum { quorate: false, .. } => "no quorum: nothing is answered".to_owned(),
            EventKind::Installed { ring, took_ns, .. } => {
                format!("ring {ring} installed within {}", ms(*took_ns))
            }
            EventKind::TransferStarted { group, to } => {
                format!("{}: {} is being given the state", self.name(*group), to.node)
            }
            EventKind::Promoted { group, requests, restore_ns, replay_ns } => {
                format!(
                    "{group}: the replica here is primary; its checkpoint took {}, {requests} requests of its log {}",
                    ms(*restore_ns),
                    ms(*replay_ns)
                )
            }
            EventKind::Transferred { group, bytes } => {
                format!("{}: the replica here has the state, {bytes} bytes", self.name(*group))
            }
            EventKind::TransferFailed { group, reason } => {
                format!("{}: the state cannot be transferred: {reason}", self.name(*group))
            }
            EventKind::Missed { events } => {
                format!("{events} events were not taken in time, and are gone")
            }
            other => match serde_json::to_string(other) {
                Ok(json) => json,
                Err(_) => format!("{other:?}"),
            },
        }
    }

    fn name(&self, group: GroupId) -> String {
        self.names.get(&group).cloned().unwrap_or_else(|| group.to_string())
    }
}

fn why(cause: FaultCause, silent_ns: Option<u64>) -> String {
    match (cause, silent_ns) {
        (FaultCause::Silence, Some(span)) => format!("no sign of the token for {}", ms(span)),
        (FaultCause::Silence, None) => "no sign of the token".to_owned(),
        (FaultCause::Gone, _) => "its host says that its process is gone".to_owned(),
        (FaultCause::NoAnswer, _) => "it did not answer in time".to_owned(),
        (FaultCause::TooSlow, _) => "it did not keep up".to_owned(),
    }
}

fn nodes(members: &[Member]) -> String {
    let names: Vec<String> = members.iter().map(|member| member.node.to_string()).collect();
    names.join(" ")
}

fn ms(nanoseconds: u64) -> String {
    format!("{:.1} ms", nanoseconds as f64 / 1e6)
}

/// The time of day, UTC, as the logs have it.
fn clock(time: u64) -> String {
    let (seconds, micros) = (time / 1_000_000_000 % 86_400, time / 1_000 % 1_000_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{micros:06}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId, RingId, ViewNumber};

    #[test]
    fn a_fail_over_is_a_story_in_one_nodes_lines() {
        let old = Member { node: NodeId(1), incarnation: Incarnation(7) };
        let new = Member { node: NodeId(2), incarnation: Incarnation(7) };
        let ring = RingId { sequence: 5, representative: NodeId(2) };
        let noon = 43_200_000_000_000;
        let mut teller = Teller::new();
        let mut tell = |ms: u64, kind| {
            let time = noon + ms * 1_000_000;
            teller.line(&EventRecord { time, node: NodeId(2), kind })
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
        assert!(excluded.contains("suspected 3.0 ms before"), "{excluded}");
        let (group, view) = ("counter".to_owned(), ViewNumber(4));
        let replicas = vec![super::super::record::ReplicaRecord { member: new, synced: true }];
        let view_line =
            EventKind::View { group: group.clone(), view, replicas, primary: Some(new) };
        assert!(tell(104, view_line).ends_with("+54.0 ms  counter: v4, primary n2, replicas n2"));
        let resumed = tell(105, EventKind::Resumed { group, view, after_ns: 55_000_000 });
        assert!(resumed.ends_with("55.0 ms after the last sign of its old primary"), "{resumed}");
        let group = GroupId::of("counter");
        let later = tell(9_000, EventKind::Transferred { group, bytes: 3 });
        assert_eq!(
            later,
            "12:00:09.000000  n2                counter: the replica here has the state, 3 bytes",
            "the story is over, and the name is known"
        );
    }
}
