//! The JSON form of events: one object, `time` and `event` first, the event's own fields after.

use engine::{DeploymentNews, Deviation, Event, ProgramNews, StorageNews, Suspicion};
use serde::{Deserialize, Serialize};
use wire::keys::KeyName;
use wire::ordered::{GroupOptions, Poison, Style};
use wire::{ClientId, GroupId, Incarnation, Member, MethodId, NodeId, RingId, Share, ViewNumber};

use crate::status::ChargeStatus;

/// An event as tools read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Nanoseconds since the Unix epoch when it left the stack.
    pub time: u64,
    /// The node that tells it.
    pub node: NodeId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened; the fields are those of [`engine::Event`] and [`ring::Event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the engine's and the ring's events document the fields")]
pub enum EventKind {
    /// The ring is given up: no sign of the token.
    TokenLost { ring: RingId, silent_ns: u64, suspect: Option<Member> },
    /// A membership is being gathered.
    Gathering { proposed: Vec<Member>, failed: Vec<Member> },
    /// A node's process is gone, as its host says.
    Unreachable { member: Member },
    /// A node did not agree to the membership in time.
    Silent { member: Member },
    /// This node was held up.
    HeldUp { span_ns: u64 },
    /// A node is excluded because it did not keep up: it kept `by` from sending.
    TooSlow { member: Member, by: Member, charge: Option<ChargeStatus> },
    /// A node that was lost again may not come back before this has passed.
    HeldOff { member: Member, span_ns: u64 },
    /// A ring is installed.
    Installed { ring: RingId, took_ns: u64, recovered: u64 },
    /// Datagrams were sent again.
    Retransmitted { datagrams: u64 },
    /// A node is not reached by this link any more, but by another.
    LinkLost { peer: NodeId, link: usize },
    /// A link has proved itself and carries again.
    LinkBack { peer: NodeId, link: usize },
    /// A datagram was dropped.
    Malformed { reason: String },
    /// The ring delivered a regular configuration.
    Configuration { ring: RingId, members: Vec<Member> },
    /// The configuration has the quorum or not.
    Quorum { ring: RingId, quorate: bool, epoch: u64 },
    /// A view was installed.
    View { group: String, view: ViewNumber, replicas: Vec<ReplicaRecord>, primary: Option<Member> },
    /// This node's replica has other options than its group.
    JoinRefused { group: String, options: GroupOptions },
    /// A transfer of state to another replica begins.
    TransferStarted { group: GroupId, to: Member },
    /// A replica's state could not be taken or read.
    TransferFailed { group: GroupId, reason: String },
    /// What a passive group's primary has changed could not be told, or not be done here.
    UpdateFailed { group: GroupId, reason: String },
    /// This node's replica of a cold passive group is primary, and has executed its log.
    Promoted { group: String, requests: u64, restore_ns: u64, replay_ns: u64 },
    /// It is primary, and its service cannot read the checkpoint.
    PromotionFailed { group: GroupId, reason: String },
    /// A cold passive group's checkpoint is here.
    Checkpointed { group: GroupId, number: u64, bytes: usize },
    /// A cold passive group's primary could not take one.
    CheckpointFailed { group: GroupId, reason: String },
    /// This node's replica has the state.
    Transferred { group: GroupId, bytes: usize },
    /// A member is held to have failed.
    Suspected { member: Member, ring: RingId, cause: FaultCause, silent_ns: Option<u64> },
    /// A member of the last configuration is not in this one.
    Excluded {
        member: Member,
        ring: RingId,
        cause: Option<FaultCause>,
        silent_ns: Option<u64>,
        suspected_ns: Option<u64>,
    },
    /// A node is there that was there before in another life.
    Restarted { member: Member, before: Incarnation, ring: RingId },
    /// A group whose primary was lost is answered for by this node again.
    Resumed { group: String, view: ViewNumber, after_ns: u64 },
    /// A replica of a voting group is taken out, and is to be given the state anew.
    Deviated { group: String, member: Member, position: u64, cause: DeviationCause },
    /// The service of this node's replica is hung: so many deadlines in a row were missed. `alone`: no other has the state.
    Hung { group: String, member: Member, misses: u32, ran_ns: u64, alone: bool },
    /// A replica is out of its group because its service is hung; its node hosts it anew.
    Demoted { group: String, member: Member, was_primary: bool, asked: ViewNumber },
    /// No majority of a voting group's replicas has the same outcome of a call, or asks the same of another group.
    Split { group: String, position: u64, answers: usize },
    /// So many events were not taken in time by this subscriber, and are gone.
    Missed { events: u64 },
    /// The primary of a group has moved; the view with the new rank follows.
    Moved {
        group: String,
        ring: RingId,
        sequence: u64,
        from: Member,
        to: Member,
        asked: ViewNumber,
        view: ViewNumber,
    },
    /// A group has another style; the view that has it follows.
    Restyled {
        group: String,
        ring: RingId,
        sequence: u64,
        from: Style,
        to: Style,
        asked: ViewNumber,
        view: ViewNumber,
    },
    /// A group begins with a state that a node has; the view that has no replica with the state follows.
    Deposited { group: String, holder: Member, replaced: bool, view: ViewNumber },
    /// The last replica of a group has left it: nobody has its state any more.
    Ended { group: String, view: ViewNumber },
    /// The backups of a group are tried in another order; the view that has it follows.
    Ranked {
        group: String,
        ring: RingId,
        sequence: u64,
        order: Vec<Member>,
        asked: ViewNumber,
        view: ViewNumber,
    },
    /// A host uses more of its processors, in millionths of one, than the level at which it says so at once.
    Overloaded { member: Member, used: Share, capacity: Share },
    /// It uses less again.
    Relieved { member: Member, used: Share, capacity: Share },
    /// A deployment was said, or said anew.
    Deployed { group: String, replicas: u32 },
    /// Its replicas are to be on these nodes.
    Placed { group: String, on: Vec<NodeId> },
    /// The replica at this node is to run this program: the new one, or after it was taken back the former.
    Upgrading { group: String, at: NodeId, program: String },
    /// All replicas run it.
    Upgraded { group: String, program: String },
    /// The new program is taken back.
    TakenBack { group: String, at: NodeId, why: String },
    /// A deployment's program ends again and again at this node: it is tried elsewhere.
    Failing { group: String, at: NodeId },
    /// A deployment is forgotten, and its replicas end.
    Withdrawn { group: String },
    /// A node is to be emptied.
    DrainBegan { host: NodeId },
    /// A node may have replicas again.
    DrainEnded { host: NodeId },
    /// A host refuses calls less critical than `level` from here on; 0: none any more. It had refused so many since its start.
    Shedding { host: NodeId, level: u8, refused: u64 },
    /// A request was executed here.
    Executed { group: GroupId, client: ClientId, number: u64, position: u64 },
    /// Services died of a call at these nodes, and it is executed by nobody any more: which of the group's history, which of which client.
    Poisoned {
        group: GroupId,
        number: u64,
        client: ClientId,
        call: u64,
        method: MethodId,
        nodes: Vec<NodeId>,
    },
    /// A call came again, and was not executed again.
    Copy { group: GroupId, client: ClientId, number: u64 },
    /// A group's call of another has ended.
    NestedEnded { group: GroupId, by: Member },
    /// The end of a group's call of another came once more.
    NestedCopy { group: GroupId },
    /// A reply left for a client.
    Replied { group: GroupId, client: ClientId, number: u64 },
    /// A benchmark loads the ring.
    BenchBegan { by: Member, senders: Vec<NodeId>, size: u32 },
    /// It is over.
    BenchEnded { by: Member, whole: bool },
    /// The cluster's next key is offered.
    KeyOffered { key: u8, fingerprint: String },
    /// It seals from here on.
    KeySwitched { key: u8, fingerprint: String },
    /// The last key is forgotten.
    KeyRetired { key: u8, fingerprint: String },
    /// The change to this key was given up.
    KeyAborted { key: u8, fingerprint: String },
    /// The disk of this node's storage is full: what is left is used up soon.
    StorageFull { reason: String },
    /// It has room again.
    StorageRoom,
    /// Nothing can be kept any more: the node leaves.
    StorageFailed { reason: String },
    /// A program's process was started.
    ProgramStarted { group: String, pid: u32 },
    /// It serves its replica.
    ProgramAttached { group: String, pid: u32 },
    /// A program's process has ended.
    ProgramEnded { group: String, pid: u32, how: String },
    /// A program ends again and again: how often in a row, and how long its next start waits.
    ProgramCrashLoop { group: String, ends: u32, wait_ns: u64 },
    /// A program that was in a crash loop serves well again.
    ProgramRecovered { group: String },
    /// A program was stopped.
    ProgramStopped { group: String },
    /// This node has left the ring.
    Left,
}

/// By what a member was first held to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCause {
    /// There was no sign of the token, which it had.
    Silence,
    /// Its host says that its process is gone.
    Gone,
    /// It did not agree to a membership in time.
    NoAnswer,
    /// It did not keep up.
    TooSlow,
}

impl From<Suspicion> for FaultCause {
    fn from(suspicion: Suspicion) -> Self {
        match suspicion {
            Suspicion::Silence(_) => FaultCause::Silence,
            Suspicion::Gone => FaultCause::Gone,
            Suspicion::NoAnswer => FaultCause::NoAnswer,
            Suspicion::TooSlow => FaultCause::TooSlow,
        }
    }
}

/// Why a replica of a voting group is taken out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviationCause {
    /// It has another outcome of a call than a majority, or asks another group for something else. Digests stand for the two.
    Outcome {
        /// Its own.
        told: String,
        /// The majority's.
        agreed: String,
        /// Replicas that had the state.
        voters: usize,
    },
    /// It has not told its outcome, or what it asks, in time.
    Silent,
    /// It is too far behind.
    Behind,
}

impl From<Deviation> for DeviationCause {
    fn from(deviation: Deviation) -> Self {
        match deviation {
            Deviation::Outcome { told, agreed, voters } => DeviationCause::Outcome {
                told: format!("{told:016x}"),
                agreed: format!("{agreed:016x}"),
                voters,
            },
            Deviation::Silent => DeviationCause::Silent,
            Deviation::Behind => DeviationCause::Behind,
        }
    }
}

/// One replica of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Where it is.
    pub member: Member,
    /// It has the state.
    pub synced: bool,
}

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
    use super::*;
    use wire::Incarnation;

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
