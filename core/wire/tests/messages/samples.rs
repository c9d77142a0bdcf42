//! One message of each kind, with values that tell their fields apart in a hex dump.

mod bench;
mod compare;
pub mod identity;
mod kept;
mod keys;
mod lineage;
mod log;
mod poison;
mod roster;
mod versions;

use bytes::Bytes;
use wire::client::{
    self, Access, Bind, Bound, Farewell, Frame, Hello, Outcome, Refusal, Reply, Watch, Welcome,
};
use wire::client::{Target, Targets};
use wire::ordered::Identity;
use wire::ordered::{
    self, Activate, Announce, Component, GroupEntry, GroupOptions, Install, JoinGroup,
};
use wire::ordered::{About, Anew, BackupStep, Deposit, Form, Note, Notes, Shedding};
use wire::ordered::{Absent, Ballot, Change, Difference, Digest, Edit, StateChunk, StateHead};
use wire::ordered::{
    Demote, End, KeptReply, LeaveGroup, Move, NestedEnd, Ordered, Recall, Recalled, ReplicaEntry,
    ReplicaState, Restyle, nested_client, nested_number,
};
use wire::ordered::{Died, Going, StateDeclined, StateOffer};
use wire::ordered::{PrimaryChunk, Relay, SessionState, Style, Synced, Told};
use wire::ordered::{Rank, Update, UpdateEntry, UpdateHead, Usage};
use wire::ring::{
    Ack, Beacon, Charge, Commit, CommitMember, CommitStep, Data, Datagram, Join, Message,
};
use wire::ring::{
    Confirm, Confirmed, Level, Origin, Pulse, Stable, Stored, Token, Want, push_chunk,
};
use wire::roster::{Roster, RosterPart, RosterStep};
use wire::{
    ClientId, ClusterId, Extension, GroupId, Incarnation, Member, MethodId, NodeId, RingId, Share,
    Time, ViewNumber,
};

pub use kept::kept;
use keys::key_table;
pub use keys::keys_and_benchmarks;
pub use log::logged_state;
pub use poison::{poison, poisoned, progress, trial};
use roster::{propose, roster, with_roster};
pub use versions::{SPEAKS, program};

pub const CLUSTER: ClusterId = ClusterId(0xc1c2_c3c4);

pub fn member(node: u32) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(0x100 + u64::from(node)) }
}

pub const RING: RingId = RingId { sequence: 0x0a0b, representative: NodeId(1) };
pub const OLD_RING: RingId = RingId { sequence: 0x0a01, representative: NodeId(2) };
/// A place in the old ring.
pub const PLACE: ordered::Place = ordered::Place { epoch: 4, ring: OLD_RING, sequence: 0x54 };

/// Two chunks: the end of one message and a whole one.
pub fn chunks() -> Bytes {
    let mut body = Vec::new();
    push_chunk(&mut body, false, true, Level::Agreed, b"end");
    push_chunk(&mut body, true, true, Level::Agreed, b"whole");
    body.into()
}

fn join() -> Join {
    Join {
        proposed: vec![member(1), member(2), member(3)],
        failed: 0b010,
        slow: 0b010,
        heard: 0b101,
        ring_sequence: 0x0a0b,
        charges: vec![Charge {
            member: 1,
            by: 2,
            stopped_us: 1_200_000,
            within_us: 1_500_000,
            limit_us: 500_000,
            share: 50,
        }],
        speaks: SPEAKS,
        extension: Extension(vec![0xe1, 0xe2]),
    }
}

/// One datagram of each kind, and data with an origin.
pub fn datagrams() -> Vec<(&'static str, Datagram)> {
    let data = Data {
        ring: RING,
        ack_wanted: true,
        complete: true,
        hop: 0x11,
        sequence: 0x22,
        stable: 0x21,
        origin: None,
        body: chunks(),
    };
    let origin = Origin { ring: OLD_RING, sender: member(3), sequence: 0x33 };
    let mut safe = Vec::new();
    push_chunk(&mut safe, true, true, Level::Safe, b"safe");
    let safe = Data { body: safe.into(), ..data.clone() };
    let recovered =
        Data { origin: Some(origin), ack_wanted: false, complete: false, ..data.clone() };
    let token = Token {
        ring: RING,
        hop: 300,
        sequence: 0x22,
        arus: vec![0x22, 0x21, 0x20],
        done: 0b101,
        received: 0b001,
        wants: 0b010,
        home: 2,
        missing: vec![0x1f, 0x1e],
        following: 1,
    };
    let entry = |node| CommitMember {
        member: member(node),
        old_ring: OLD_RING,
        aru: 0x30,
        high: 0x31,
        stable: 0x2f,
        obliged: 0b011,
    };
    let commit = |step| Message::Commit(Commit { ring: RING, step });
    let messages = [
        ("data", Message::Data(data)),
        ("safe data", Message::Data(safe)),
        ("recovered data", Message::Data(recovered)),
        ("token", Message::Token(token)),
        ("ack", Message::Ack(Ack { ring: RING, hop: 300, aru: 0x20, missing: vec![0x22] })),
        ("want", Message::Want(Want { ring: RING })),
        ("join", Message::Join(join())),
        ("call", commit(CommitStep::Call(vec![member(1), member(3)]))),
        ("entry", commit(CommitStep::Entry(entry(3)))),
        ("entries", commit(CommitStep::Entries(vec![entry(1), entry(3)]))),
        (
            "beacon",
            Message::Beacon(Beacon {
                ring: RING,
                members: vec![NodeId(1), NodeId(3)],
                heard: vec![NodeId(2), NodeId(4)],
                welcome: 0b10,
                speaks: SPEAKS,
                extension: Extension::default(),
            }),
        ),
        (
            "roster",
            Message::RosterPart(RosterPart {
                stamp: roster().stamp,
                part: 0,
                parts: 2,
                bytes: vec![1, 2],
            }),
        ),
        ("stable", Message::Stable(Stable { ring: RING, hop: 300, stable: 0x20 })),
        (
            "pulse",
            Message::Pulse(Pulse {
                ring: RING,
                hop: 300,
                number: 2,
                home: 1,
                stable: 0x20,
                sequence: 0x21,
                next: 40_000,
            }),
        ),
        ("stored", Message::Stored(Stored { ring: RING, stored: 0x20, question: true })),
        ("confirm", Message::Confirm(Confirm { ring: RING, round: 3 })),
        ("confirmed", Message::Confirmed(Confirmed { ring: RING, round: 3, aru: 300 })),
    ];
    messages
        .into_iter()
        .map(|(name, message)| (name, Datagram::new(CLUSTER, 1, member(7), message)))
        .collect()
}

/// One ordered message of each kind.
fn group() -> GroupEntry {
    GroupEntry {
        name: "counter".into(),
        options: GroupOptions::default(),
        view: ViewNumber(6),
        last: PLACE,
        floor: PLACE,
        replicas: vec![
            ReplicaEntry { member: member(1), synced: true },
            ReplicaEntry { member: member(2), synced: false },
        ],
        asleep: vec![member(3)],
        awaited: vec![member(4)],
        deposit: Some(Deposit { holder: member(5), number: 9, form: Form::State, pending: true }),
    }
}

pub fn ordered() -> Vec<(&'static str, Ordered)> {
    let parts =
        [requests_and_components(), memberships_and_states(), decisions(), keys_and_benchmarks()];
    parts.into_iter().flatten().collect()
}

pub fn requests_and_components() -> Vec<(&'static str, Ordered)> {
    let component =
        |epoch| Component { epoch, ring: OLD_RING, members: vec![member(1), member(2)] };
    vec![
        (
            "request",
            Ordered::Request(ordered::Request {
                group: GroupId(0xa1),
                method: MethodId(0xb1),
                json: true,
                read: true,
                client: ClientId(0xc1),
                number: 9,
                unanswered: 8,
                time: Time(0xd1),
                seed: 0xe1,
                proven: 0x65,
                timeout_us: 0x71,
                priority: 3,
                identity: Identity::Number,
                origin: None,
                body: Bytes::from_static(b"body"),
            }),
        ),
        ("request that is compared", Ordered::Request(identity::request(Identity::Call))),
        ("request with a key", Ordered::Request(identity::request(Identity::Key))),
        (
            "nested request",
            Ordered::Request(ordered::Request {
                group: GroupId(0xa1),
                method: MethodId(0xb1),
                json: false,
                read: false,
                client: nested_client(GroupId(0xa3), ClientId(0xc1)),
                number: nested_number(9, 2).expect("a small number"),
                unanswered: 8 << 8,
                time: Time(0xd1),
                seed: 0xe1,
                proven: 0x65,
                timeout_us: 0x71,
                priority: 3,
                identity: Identity::Number,
                origin: Some(Box::new(ordered::Origin {
                    client: ClientId(0xc1),
                    path: vec![GroupId(0xa2), GroupId(0xa3)],
                })),
                body: Bytes::from_static(b"body"),
            }),
        ),
        (
            "nested end",
            Ordered::NestedEnd(NestedEnd {
                callee: GroupId(0xa1),
                caller: GroupId(0xa3),
                client: ClientId(0xc1),
                number: 9,
                call: 2,
                asked: 0x91,
                end: End::Reply(KeptReply::Ok(b"result".to_vec())),
            }),
        ),
        (
            "announce",
            Ordered::Announce(Box::new(Announce {
                ring: RING,
                first_life: true,
                last: component(4),
                attempts: vec![component(5)],
                position: 0x55,
                replicas: vec![(GroupId(0xa1), PLACE)],
                ahead: vec![GroupId(0xa1)],
                address: Some(([127, 0, 0, 1], 7100).into()),
                recall: Some(Recall {
                    since: Incarnation(0x71),
                    restarted: true,
                    volatile: false,
                    groups: vec![(group(), PLACE)],
                    waiting: vec![GroupId(0xa2)],
                }),
                program: program(),
                level: 2,
                extension: Extension(vec![0xe1, 0xe2]),
                roster: Roster::default(),
            })),
        ),
        (
            "install",
            Ordered::Install(Box::new(Install {
                ring: RING,
                epoch: 5,
                groups: vec![group()],
                keys: Some(key_table()),
                programs: vec![(NodeId(4), program())],
                roster: Roster::default(),
            })),
        ),
    ]
}

pub fn memberships_and_states() -> Vec<(&'static str, Ordered)> {
    let (group, transfer) = (GroupId(0xa1), ViewNumber(6));
    vec![
        (
            "join group",
            Ordered::JoinGroup(JoinGroup {
                name: "counter".into(),
                options: GroupOptions::default(),
            }),
        ),
        (
            "leave group",
            Ordered::LeaveGroup(LeaveGroup {
                group: GroupId(0xa1),
                going: Going::Returns,
                died: None,
            }),
        ),
        (
            "leave group of the dead",
            Ordered::LeaveGroup(LeaveGroup {
                group: GroupId(0xa1),
                going: Going::Returns,
                died: Some(Died { executed: 0x66, given: 0x68, ahead: Vec::new() }),
            }),
        ),
        (
            "state chunk",
            Ordered::StateChunk(StateChunk {
                group: GroupId(0xa1),
                transfer: ViewNumber(6),
                index: 2,
                last: true,
                bytes: Bytes::from_static(b"state"),
            }),
        ),
        (
            "update chunk",
            Ordered::PrimaryChunk(PrimaryChunk {
                group: GroupId(0xa1),
                what: Told::Update,
                since: PLACE,
                number: 0x67,
                index: 2,
                last: true,
                bytes: Bytes::from_static(b"update"),
            }),
        ),
        (
            "checkpoint chunk",
            Ordered::PrimaryChunk(PrimaryChunk {
                group: GroupId(0xa1),
                what: Told::Checkpoint,
                since: PLACE,
                number: 0x67,
                index: 0,
                last: false,
                bytes: Bytes::from_static(b"checkpoint"),
            }),
        ),
        ("relay", Ordered::Relay(relay())),
        ("relay of a call that is compared", Ordered::Relay(Relay { asked: 0x92, ..relay() })),
        ("offer", Ordered::StateOffer(StateOffer { group, transfer, bytes: 300 })),
        ("declined", Ordered::StateDeclined(StateDeclined { group, transfer })),
        ("synced", Ordered::Synced(Synced { group, transfer })),
        ("recalled", Ordered::Recalled(Recalled { group: GroupId(0xa1), taken: PLACE })),
    ]
}

pub fn decisions() -> Vec<(&'static str, Ordered)> {
    vec![
        (
            "restyle",
            Ordered::Restyle(Restyle {
                group: GroupId(0xa1),
                view: ViewNumber(6),
                style: Style::Active,
            }),
        ),
        ("move", Ordered::Move(Move { group: GroupId(0xa1), to: member(2), view: ViewNumber(6) })),
        (
            "demote",
            Ordered::Demote(Demote {
                group: GroupId(0xa1),
                view: ViewNumber(6),
                died: Died { executed: 0x66, given: 0x68, ahead: vec![(ClientId(0xc1), 9)] },
            }),
        ),
        ("usage", Ordered::Usage(usage())),
        (
            "rank",
            Ordered::Rank(Rank {
                group: GroupId(0xa1),
                view: ViewNumber(6),
                order: vec![NodeId(3), NodeId(2)],
            }),
        ),
        (
            "shedding",
            Ordered::Shedding(Shedding {
                node: NodeId(2),
                level: 5,
                term_ms: 6_000,
                room: vec![NodeId(4), NodeId(3)],
            }),
        ),
        (
            "notes",
            Ordered::Notes(Notes(vec![Note {
                group: GroupId(0xa1),
                about: About::Read,
                text: "missing field `x`".into(),
            }])),
        ),
        ("anew", Ordered::Anew(Anew { group: GroupId(0xa1), transfer: ViewNumber(6) })),
        ("compare", compare::compare()),
        ("compared", compare::compared()),
        ("lineage", lineage::lineage()),
        ("merge chunk", lineage::merge_chunk()),
        ("progress", Ordered::Progress(progress(None))),
        ("trial", Ordered::Progress(progress(Some(trial())))),
        ("poisoned", Ordered::Poisoned(poisoned())),
        ("save", Ordered::Backup(BackupStep::Save { group: GroupId(0xa1), number: 9 })),
        (
            "deposit",
            Ordered::Backup(BackupStep::Deposit {
                name: "counter".into(),
                options: GroupOptions::default(),
                form: Form::Log,
                number: 9,
                replace: true,
            }),
        ),
        ("activate", Ordered::Activate(Activate { level: 2 })),
        ("a node comes", Ordered::Roster(Box::new(propose()))),
        ("a roster is kept", Ordered::Roster(Box::new(RosterStep::Kept(roster().stamp)))),
        ("install with a roster", with_roster("install")),
        ("announce with a roster", with_roster("announce")),
        ("discard", Ordered::Backup(BackupStep::Discard { group: GroupId(0xa1), number: 9 })),
        ("ballot", Ordered::Ballot(ballot(None))),
        ("opening ballot", Ordered::Ballot(ballot(Some(0x10)))),
        (
            "absent",
            Ordered::Absent(Absent { group: GroupId(0xa1), member: member(2), position: 0x12 }),
        ),
    ]
}

/// A state with a session that keeps a reply of each kind.
pub fn replica_state() -> ReplicaState {
    let replies = vec![
        (7, KeptReply::Ok(b"result".to_vec())),
        (8, KeptReply::Service(b"error".to_vec())),
        (9, KeptReply::Refused(Refusal::Stale, "old".into())),
    ];
    let (client, last_used, asked) = (ClientId(0xc1), Time(0xd0), vec![(8, 0x91)]);
    let session = SessionState { client, unanswered: 7, last_used, replies, asked };
    let head = StateHead {
        executed: 0x66,
        asks: 0x67,
        updates: 0x65,
        clock: Time(0xd1),
        sessions: vec![session],
        poisoned: vec![poison()],
        keys: None,
    };
    ReplicaState { head, service: Bytes::from_static(b"service") }
}

fn usage() -> Usage {
    let replicas = vec![(GroupId(0xa1), Share::percent(20)), (GroupId(0xa2), Share(9))];
    Usage {
        used: Share::percent(120),
        capacity: Share::percent(150),
        above: true,
        replicas,
        classes: [0, 5, 200].into_iter().collect(),
        refused: 0x68,
    }
}

fn ballot(opening: Option<u64>) -> Ballot {
    let digests = vec![Digest([0xe1; 16]), Digest([0xe2; 16])];
    Ballot {
        group: GroupId(0xa1),
        since: 0x12,
        opening,
        first: 0x11,
        proven: 0x10,
        begun: true,
        digests,
    }
}

/// A reply for a client at another node.
pub fn relay() -> Relay {
    let reply = KeptReply::Service(b"error".to_vec());
    let (group, client) = (GroupId(0xa1), ClientId(0xc1));
    Relay { group, since: PLACE, client, number: 9, reply, asked: 0 }
}

/// An update with a call that the service answered.
pub fn update() -> Update {
    let reply = KeptReply::Ok(b"result".to_vec());
    let entry =
        UpdateEntry { client: ClientId(0xc1), number: 9, unanswered: 7, asked: 0x91, reply };
    let (entries, poisoned, keys) = (vec![entry], Vec::new(), Vec::new());
    let head = UpdateHead { clock: Time(0xd1), entries, poisoned, keys };
    Update { head, change: changes()[1].1.encode() }
}

/// A change of each kind.
pub fn changes() -> [(&'static str, Change); 3] {
    let edits = vec![Edit { keep: 300, drop: 2, put: 3 }, Edit { keep: 1, drop: 0, put: 1 }];
    let difference = Difference { base: 0xba5e, edits, put: Bytes::from_static(b"news") };
    [
        ("whole", Change::Whole(Bytes::from_static(b"service"))),
        ("difference", Change::Difference(difference)),
        ("own", Change::Own(Bytes::from_static(b"words"))),
    ]
}

pub fn targets() -> Targets {
    Targets {
        view: ViewNumber(6),
        style: Style::Active,
        nodes: vec![
            Target { node: NodeId(1), address: ([127, 0, 0, 1], 7100).into() },
            Target { node: NodeId(2), address: ([0, 0, 0, 0, 0, 0, 0, 1], 7101).into() },
        ],
    }
}

pub fn reply(outcome: Outcome, targets: Option<Targets>) -> Frame {
    Frame::Reply(Reply { number: 9, group: GroupId(0xa1), view: ViewNumber(6), targets, outcome })
}

pub fn request() -> client::Request {
    client::Request {
        group: GroupId(0xa1),
        client: ClientId(0xc1),
        number: 9,
        unanswered: 8,
        view: ViewNumber(5),
        method: MethodId(0xb1),
        timeout_us: 250_000,
        priority: 3,
        json: false,
        beside: false,
        has_key: false,
        access: Access::Change,
        body: Bytes::from_static(b"body"),
    }
}

/// One frame of each kind, and a reply with each outcome.
pub fn frames() -> Vec<(&'static str, Frame)> {
    let refused = Outcome::Refused(Refusal::Window, "wait".into());
    let busy = Outcome::Busy { retry_after_us: 0x1234, reason: "wait".into() };
    let shed = Outcome::Shed { instead: Some(NodeId(3)), reason: "too much".into() };
    vec![
        ("hello", Frame::Hello(Hello::new(ClientId(0xc1)))),
        (
            "welcome",
            Frame::Welcome(Welcome {
                version: 1,
                node: NodeId(7),
                cluster: "trial".into(),
                extension: Extension(vec![0xe1, 0xe2]),
            }),
        ),
        ("bind", Frame::Bind(Bind { name: "counter".into() })),
        ("bound", Frame::Bound(Bound { group: GroupId(0xa1), targets: Some(targets()) })),
        ("bound to nothing", Frame::Bound(Bound { group: GroupId(0xa1), targets: None })),
        ("request", Frame::Request(request())),
        ("reply", reply(Outcome::Ok(Bytes::from_static(b"result")), None)),
        ("reply with targets", reply(Outcome::NotPrimary, Some(targets()))),
        ("reply of the service", reply(Outcome::Service(Bytes::from_static(b"error")), None)),
        ("refused", reply(refused, Some(targets()))),
        ("busy", reply(busy, Some(targets()))),
        ("shed", reply(shed, Some(targets()))),
        ("no such group", reply(Outcome::NoSuchGroup, None)),
        ("no replica", reply(Outcome::NoReplica, None)),
        ("gone", reply(Outcome::Gone, None)),
        ("farewell", Frame::Farewell(Farewell::new("upgrade"))),
        ("watch", Frame::Watch(Watch { group: GroupId(0xa1), view: ViewNumber(3) })),
        ("news", Frame::News(Bound { group: GroupId(0xa1), targets: Some(targets()) })),
    ]
}
