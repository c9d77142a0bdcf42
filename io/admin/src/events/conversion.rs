//! How the engine's and the ring's events become records.

use engine::{DeploymentNews, Event, ProgramNews, StorageNews, Suspicion};
use wire::NodeId;
use wire::keys::KeyName;
use wire::ordered::Poison;

use super::record::{EventKind, EventRecord, FaultCause, ReplicaRecord};
use crate::status::ChargeStatus;

impl EventRecord {
    /// The record of an event that `node` tells.
    pub fn new(time: u64, node: NodeId, event: &Event) -> EventRecord {
        EventRecord { time, node, kind: EventKind::from(event) }
    }
}

impl From<&Event> for EventKind {
    fn from(event: &Event) -> Self {
        match event.clone() {
            Event::Ring(event) => event.into(),
            Event::Malformed(reason) => EventKind::Malformed { reason: reason.to_string() },
            Event::Configuration { ring, members } => EventKind::Configuration { ring, members },
            Event::Quorum { ring, quorate, epoch } => EventKind::Quorum { ring, quorate, epoch },
            Event::View { name, view, replicas, primary, .. } => {
                let record = |(member, synced)| ReplicaRecord { member, synced };
                let replicas = replicas.into_iter().map(record).collect();
                EventKind::View { group: name, view, replicas, primary }
            }
            Event::JoinRefused { name, options } => EventKind::JoinRefused { group: name, options },
            Event::TransferStarted { group, to } => EventKind::TransferStarted { group, to },
            Event::TransferFailed { group, reason } => EventKind::TransferFailed { group, reason },
            Event::UpdateFailed { group, reason } => EventKind::UpdateFailed { group, reason },
            Event::Promoted { group: _, name, requests, restore, replay } => {
                let (restore_ns, replay_ns) = (ns(restore), ns(replay));
                EventKind::Promoted { group: name, requests, restore_ns, replay_ns }
            }
            Event::PromotionFailed { group, reason } => {
                EventKind::PromotionFailed { group, reason }
            }
            Event::Checkpointed { group, number, bytes } => {
                EventKind::Checkpointed { group, number, bytes }
            }
            Event::CheckpointFailed { group, reason } => {
                EventKind::CheckpointFailed { group, reason }
            }
            Event::Transferred { group, bytes } => EventKind::Transferred { group, bytes },
            Event::Suspected { member, ring, cause } => {
                let silent_ns = silent(Some(cause));
                EventKind::Suspected { member, ring, cause: cause.into(), silent_ns }
            }
            Event::Excluded { member, ring, cause, suspected } => EventKind::Excluded {
                member,
                ring,
                cause: cause.map(FaultCause::from),
                silent_ns: silent(cause),
                suspected_ns: suspected.map(ns),
            },
            Event::Restarted { member, before, ring } => {
                EventKind::Restarted { member, before, ring }
            }
            Event::Resumed { name, view, after, .. } => {
                EventKind::Resumed { group: name, view, after_ns: ns(after) }
            }
            Event::Deviated { name: group, member, position, cause, .. } => {
                EventKind::Deviated { group, member, position, cause: cause.into() }
            }
            Event::Hung { name: group, member, misses, ran, alone, .. } => {
                EventKind::Hung { group, member, misses, ran_ns: ns(ran), alone }
            }
            Event::Demoted { name: group, member, was_primary, asked, .. } => {
                EventKind::Demoted { group, member, was_primary, asked }
            }
            Event::Split { name: group, position, answers, .. } => {
                EventKind::Split { group, position, answers }
            }
            Event::Missed(events) => EventKind::Missed { events },
            Event::Moved { name, ring, sequence, from, to, asked, view, .. } => {
                EventKind::Moved { group: name, ring, sequence, from, to, asked, view }
            }
            Event::Restyled { name, ring, sequence, from, to, asked, view, .. } => {
                EventKind::Restyled { group: name, ring, sequence, from, to, asked, view }
            }
            Event::Deposited { name: group, holder, replaced, view, .. } => {
                EventKind::Deposited { group, holder, replaced, view }
            }
            Event::Ended { name: group, view, .. } => EventKind::Ended { group, view },
            Event::Ranked { name, ring, sequence, order, asked, view, .. } => {
                EventKind::Ranked { group: name, ring, sequence, order, asked, view }
            }
            Event::Overloaded { member, used, capacity } => {
                EventKind::Overloaded { member, used, capacity }
            }
            Event::Relieved { member, used, capacity } => {
                EventKind::Relieved { member, used, capacity }
            }
            Event::Shedding { node: host, level, refused } => {
                EventKind::Shedding { host, level, refused }
            }
            Event::Executed { group, client, number, position } => {
                EventKind::Executed { group, client, number, position }
            }
            Event::Poisoned { group, poison } => {
                let Poison { number, client, call, method, nodes, .. } = *poison;
                EventKind::Poisoned { group, number, client, call, method, nodes }
            }
            Event::Copy { group, client, number } => EventKind::Copy { group, client, number },
            Event::NestedEnded { group, by } => EventKind::NestedEnded { group, by },
            Event::NestedCopy { group } => EventKind::NestedCopy { group },
            Event::Replied { group, client, number } => {
                EventKind::Replied { group, client, number }
            }
            Event::BenchBegan { by, senders, size } => EventKind::BenchBegan { by, senders, size },
            Event::BenchEnded { by, whole } => EventKind::BenchEnded { by, whole },
            Event::KeyOffered(KeyName { number: key, fingerprint }) => {
                EventKind::KeyOffered { key, fingerprint: shown(fingerprint) }
            }
            Event::KeySwitched(KeyName { number: key, fingerprint }) => {
                EventKind::KeySwitched { key, fingerprint: shown(fingerprint) }
            }
            Event::KeyRetired(KeyName { number: key, fingerprint }) => {
                EventKind::KeyRetired { key, fingerprint: shown(fingerprint) }
            }
            Event::KeyAborted(KeyName { number: key, fingerprint }) => {
                EventKind::KeyAborted { key, fingerprint: shown(fingerprint) }
            }
            Event::Program { group, news } => program(group, news),
            Event::Deployment { group, news } => deployment(group, news),
            Event::Drained { node: host, begins: true } => EventKind::DrainBegan { host },
            Event::Drained { node: host, begins: false } => EventKind::DrainEnded { host },
            Event::Storage(StorageNews::Full(reason)) => EventKind::StorageFull { reason },
            Event::Storage(StorageNews::Room) => EventKind::StorageRoom,
            Event::Storage(StorageNews::Failed(reason)) => EventKind::StorageFailed { reason },
            Event::Left => EventKind::Left,
        }
    }
}

fn program(group: String, news: ProgramNews) -> EventKind {
    match news {
        ProgramNews::Started { pid } => EventKind::ProgramStarted { group, pid },
        ProgramNews::Attached { pid } => EventKind::ProgramAttached { group, pid },
        ProgramNews::Ended { pid, how } => EventKind::ProgramEnded { group, pid, how },
        ProgramNews::CrashLoop { ends, wait } => {
            let wait_ns = ns(wait);
            EventKind::ProgramCrashLoop { group, ends, wait_ns }
        }
        ProgramNews::Recovered => EventKind::ProgramRecovered { group },
        ProgramNews::Stopped => EventKind::ProgramStopped { group },
    }
}

fn deployment(group: String, news: DeploymentNews) -> EventKind {
    match news {
        DeploymentNews::Deployed { replicas } => EventKind::Deployed { group, replicas },
        DeploymentNews::Placed { on } => EventKind::Placed { group, on },
        DeploymentNews::Changing { node: at, program } => {
            EventKind::Upgrading { group, at, program }
        }
        DeploymentNews::Changed { program } => EventKind::Upgraded { group, program },
        DeploymentNews::TakenBack { node: at, why } => EventKind::TakenBack { group, at, why },
        DeploymentNews::Failing { node: at } => EventKind::Failing { group, at },
        DeploymentNews::Withdrawn => EventKind::Withdrawn { group },
    }
}

fn ns(span: wire::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// How long there was no sign of life, where that was measured.
fn silent(cause: Option<Suspicion>) -> Option<u64> {
    cause.map(Suspicion::silent).filter(|span| !span.is_zero()).map(ns)
}

fn shown(fingerprint: [u8; 8]) -> String {
    seal::Fingerprint(fingerprint).to_string()
}

impl From<ring::Event> for EventKind {
    fn from(event: ring::Event) -> Self {
        match event {
            ring::Event::TokenLost { ring, silent, suspect } => {
                EventKind::TokenLost { ring, silent_ns: ns(silent), suspect }
            }
            ring::Event::Gathering { proposed, failed } => {
                EventKind::Gathering { proposed, failed }
            }
            ring::Event::Unreachable(member) => EventKind::Unreachable { member },
            ring::Event::Silent(member) => EventKind::Silent { member },
            ring::Event::TooSlow { member, by, charge } => {
                EventKind::TooSlow { member, by, charge: charge.map(ChargeStatus::from) }
            }
            ring::Event::HeldOff { member, span } => {
                EventKind::HeldOff { member, span_ns: ns(span) }
            }
            ring::Event::HeldUp(span) => EventKind::HeldUp { span_ns: ns(span) },
            ring::Event::Installed { ring, took, recovered } => {
                EventKind::Installed { ring, took_ns: ns(took), recovered }
            }
            ring::Event::Retransmitted(datagrams) => EventKind::Retransmitted { datagrams },
            ring::Event::LinkLost { node, link } => EventKind::LinkLost { peer: node, link },
            ring::Event::LinkBack { node, link } => EventKind::LinkBack { peer: node, link },
            ring::Event::Left => EventKind::Left,
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::ordered::Style;
    use wire::{ClientId, GroupId, Incarnation, Member, MethodId, ViewNumber};

    use super::*;

    #[test]
    fn the_json_form_is_flat_and_is_read_back() {
        let member = Member { node: NodeId(3), incarnation: Incarnation(7) };
        let event = Event::View {
            group: GroupId::of("counter"),
            name: "counter".into(),
            style: Style::SemiActive,
            view: ViewNumber(4),
            replicas: vec![(member, true)],
            primary: Some(member),
        };
        let record = EventRecord::new(12, NodeId(1), &event);
        let json = serde_json::to_string(&record).unwrap();
        assert!(
            json.starts_with(r#"{"time":12,"node":1,"event":"view","group":"counter""#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<EventRecord>(&json).unwrap(), record);
    }

    #[test]
    fn a_poisonous_call_is_told_without_its_arguments() {
        let poison = Poison {
            number: 5,
            client: ClientId(7),
            call: 9,
            method: MethodId(3),
            json: false,
            time: wire::Time(1),
            nodes: vec![NodeId(1), NodeId(3)],
            size: 6,
            body: b"secret".to_vec(),
        };
        let poison = Box::new(poison);
        let event = Event::Poisoned { group: GroupId::of("counter"), poison };
        let record = EventRecord::new(12, NodeId(2), &event);
        let json = serde_json::to_string(&record).unwrap();
        assert!(json.contains(r#""event":"poisoned""#), "{json}");
        assert!(
            json.ends_with(r#""number":5,"client":7,"call":9,"method":3,"nodes":[1,3]}"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<EventRecord>(&json).unwrap(), record);
    }

    #[test]
    fn what_is_told_of_another_node_is_not_taken_for_who_tells_it() {
        let node = NodeId(3);
        let group = || String::from("own");
        for event in [
            Event::Shedding { node, level: 4, refused: 9 },
            Event::Drained { node, begins: true },
            Event::Deployment {
                group: group(),
                news: DeploymentNews::Changing { node, program: "./own".into() },
            },
            Event::Deployment { group: group(), news: DeploymentNews::Failing { node } },
        ] {
            let record = EventRecord::new(12, NodeId(1), &event);
            let json = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<EventRecord>(&json).unwrap(), record, "{json}");
        }
    }
}
