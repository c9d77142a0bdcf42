//! A list that is longer than its limit is refused, and the largest messages fit where they must.

use bytes::{Bytes, BytesMut};
use wire::client::{Bind, Bound, Farewell, Frame, Outcome, Refusal, Target, Targets};
use wire::keys::{KeyChange, KeyName, KeyStep, KeyTable, OfferedKey};
use wire::limits::{
    MAX_BODY, MAX_DEATHS, MAX_EDITS, MAX_EXTENSION, MAX_FORGOTTEN, MAX_FRAME, MAX_GROUPS,
    MAX_KEYED_SESSIONS, MAX_MEMBERS, MAX_MESSAGE, MAX_NAME, MAX_POISON_BYTES, MAX_POISONED,
    MAX_REASON, MAX_REPLICAS, MAX_RETIRED, MAX_RETRANSMIT_REQUESTS, MAX_SESSION_REPLIES,
    MAX_SESSIONS, MAX_UPDATE_CALLS, MIN_DATAGRAM, STATE_CHUNK, UPDATE_CHUNK,
};
use wire::ordered::{
    Announce, Change, Component, Deposit, Difference, Edit, Form, GroupEntry, GroupOptions,
    Install, JoinGroup, MAX_ATTEMPTS, Ordered, Place, PrimaryChunk, ReplicaEntry, ReplicaState,
    StateChunk, StateHead, Style, Told, Update,
};
use wire::ordered::{EntryKey, ForgottenSession, KeysState};
use wire::ordered::{KeptReply, Poisoned, Progress, Relay, Trial};
use wire::ring::{
    Ack, Beacon, Charge, Commit, CommitMember, CommitStep, Datagram, FROZEN, Join, MAX_CHARGES,
    MAX_ENTRIES, Message, Token,
};
use wire::roster::{Motion, Roster, RosterStep, Seat};
use wire::system::{CELL, JOBS, MANAGER, REGISTRY};
use wire::versions;
use wire::{
    ClientId, Extension, GroupId, Incarnation, Malformed, Member, NodeId, Program, RingId, Secret,
    Time, ViewNumber,
};

use crate::samples::{self, CLUSTER, RING, SPEAKS, member};

/// Ids whose varints are as long as they get.
const WIDE_RING: RingId = RingId { sequence: u64::MAX, representative: NodeId(u32::MAX) };

fn wide_members(count: usize) -> Vec<Member> {
    let first = u32::MAX - u32::try_from(count).unwrap();
    (0..count as u32)
        .map(|i| Member { node: NodeId(first + i), incarnation: Incarnation(u64::MAX) })
        .collect()
}

fn datagram(message: Message) -> Bytes {
    Datagram::new(CLUSTER, 1, member(1), message).encode()
}

fn refused_field(message: Message) -> &'static str {
    match Datagram::decode(CLUSTER, versions::RING, &datagram(message)) {
        Err(Malformed::Field(field)) => field,
        other => panic!("{other:?}"),
    }
}

fn token(arus: usize, missing: usize) -> Token {
    Token {
        ring: WIDE_RING,
        hop: u64::MAX,
        sequence: u64::MAX,
        arus: vec![u64::MAX; arus],
        done: u64::MAX,
        received: u64::MAX,
        wants: u64::MAX,
        home: 0,
        missing: vec![u64::MAX; missing],
        following: u16::MAX,
    }
}

fn call(members: Vec<Member>) -> Message {
    Message::Commit(Commit { ring: WIDE_RING, step: CommitStep::Call(members) })
}

fn entries(members: Vec<Member>) -> Message {
    let entry = |member| CommitMember {
        member,
        old_ring: WIDE_RING,
        aru: u64::MAX,
        high: u64::MAX,
        stable: u64::MAX,
        obliged: u64::MAX,
    };
    let step = CommitStep::Entries(members.into_iter().map(entry).collect());
    Message::Commit(Commit { ring: WIDE_RING, step })
}

fn join(proposed: Vec<Member>, failed: u64, slow: u64) -> Message {
    let heard = if proposed.len() == MAX_MEMBERS { u64::MAX } else { 0 };
    let charges = (0..MAX_CHARGES as u8).filter(|place| slow >> place & 1 == 1).map(charge);
    let charges = charges.collect();
    Message::Join(Join {
        proposed,
        failed,
        slow,
        heard,
        ring_sequence: u64::MAX,
        charges,
        speaks: SPEAKS,
        extension: Extension(vec![0xff; MAX_EXTENSION]),
    })
}

/// With the largest figures.
fn charge(member: u8) -> Charge {
    let (stopped_us, within_us, limit_us) = (u32::MAX, u32::MAX, u32::MAX);
    Charge { member, by: 0, stopped_us, within_us, limit_us, share: 100 }
}

/// Three members of which the last two were excluded for being slow, for these reasons.
fn charged(charges: Vec<Charge>) -> Message {
    let proposed = vec![member(1), member(2), member(3)];
    Message::Join(Join {
        proposed,
        failed: 0b110,
        slow: 0b110,
        heard: 1,
        ring_sequence: 1,
        charges,
        speaks: SPEAKS,
        extension: Extension::default(),
    })
}

fn beacon(members: usize, heard: usize, welcome: u64) -> Message {
    let nodes = |count| wide_members(count).iter().map(|member| member.node).collect();
    Message::Beacon(Beacon {
        ring: WIDE_RING,
        members: nodes(members),
        heard: nodes(heard),
        welcome,
        speaks: SPEAKS,
        extension: Extension(vec![0xff; MAX_EXTENSION]),
    })
}

#[test]
fn lists_of_ring_messages_are_limited_and_in_order() {
    let over = MAX_MEMBERS + 1;
    assert_eq!(refused_field(Message::Token(token(over, 0))), "arus");
    assert_eq!(refused_field(Message::Token(token(0, 0))), "home");
    assert_eq!(refused_field(Message::Token(Token { home: 3, ..token(3, 0) })), "home");
    assert_eq!(refused_field(Message::Token(token(3, MAX_RETRANSMIT_REQUESTS + 1))), "missing");
    let missing = vec![1; MAX_RETRANSMIT_REQUESTS + 1];
    assert_eq!(refused_field(Message::Ack(Ack { ring: RING, hop: 1, aru: 1, missing })), "missing");

    assert_eq!(refused_field(join(wide_members(over), 0, 0)), "proposed");
    let twice = vec![member(1), Member { node: NodeId(1), incarnation: Incarnation(0x900) }];
    assert_eq!(refused_field(join(vec![member(2), member(1)], 0, 0)), "join's order");
    assert_eq!(refused_field(join(twice.clone(), 0, 0)), "join's order");
    assert_eq!(refused_field(join(vec![member(1)], 0b10, 0)), "join's bits");
    assert_eq!(refused_field(join(vec![member(1), member(2)], 0b10, 0b01)), "slow");

    assert_eq!(refused_field(charged(vec![charge(1); MAX_CHARGES + 1])), "charges");
    for wrong in [
        vec![charge(0)],
        vec![charge(3)],
        vec![Charge { by: 3, ..charge(1) }],
        vec![charge(2), charge(1)],
        vec![charge(1), charge(1)],
        vec![Charge { within_us: 1, ..charge(1) }],
        vec![Charge { share: 101, ..charge(1) }],
    ] {
        assert_eq!(refused_field(charged(wrong)), "charge");
    }

    assert_eq!(refused_field(call(wide_members(over))), "members");
    assert_eq!(refused_field(entries(wide_members(MAX_ENTRIES + 1))), "entries");
    for form in [call, entries] {
        assert_eq!(refused_field(form(vec![])), "members' order");
        assert_eq!(refused_field(form(twice.clone())), "members' order");
    }

    assert_eq!(refused_field(beacon(over, 1, 1)), "members");
    assert_eq!(refused_field(beacon(1, over, 1)), "heard");
    assert_eq!(refused_field(beacon(1, 2, 0b100)), "welcome");
}

#[test]
fn the_largest_ring_messages_fit_in_a_datagram() {
    // None of them may depend on IP fragmentation.
    let everybody = wide_members(MAX_MEMBERS);
    for message in [
        Message::Token(token(MAX_MEMBERS, MAX_RETRANSMIT_REQUESTS)),
        join(everybody.clone(), u64::MAX, u64::MAX),
        call(everybody),
        entries(wide_members(MAX_ENTRIES)),
        beacon(MAX_MEMBERS, MAX_MEMBERS, u64::MAX),
    ] {
        let bytes = datagram(message);
        assert!(bytes.len() <= MIN_DATAGRAM, "{}", bytes.len());
        assert!(Datagram::decode(CLUSTER, versions::RING, &bytes).is_ok());
    }
}

fn refused_ordered(message: Ordered) -> &'static str {
    match Ordered::decode(&message.encode()) {
        Err(Malformed::Field(field)) => field,
        other => panic!("{other:?}"),
    }
}

fn group(name: usize, replicas: usize) -> GroupEntry {
    let replica = ReplicaEntry { member: wide_members(1)[0], synced: true };
    GroupEntry {
        name: "n".repeat(name),
        options: GroupOptions::default(),
        view: ViewNumber(u64::MAX),
        last: WIDE_PLACE,
        floor: WIDE_PLACE,
        replicas: vec![replica; replicas],
        asleep: Vec::new(),
        awaited: Vec::new(),
        deposit: Some(Deposit {
            holder: wide_members(1)[0],
            number: u64::MAX,
            form: Form::Log,
            pending: true,
        }),
    }
}

fn install(groups: Vec<GroupEntry>) -> Ordered {
    Ordered::Install(Box::new(Install {
        ring: WIDE_RING,
        epoch: u64::MAX,
        groups,
        keys: None,
        programs: Vec::new(),
        roster: Roster::default(),
    }))
}

const WIDE_PLACE: Place = Place { epoch: u64::MAX, ring: WIDE_RING, sequence: u64::MAX };

fn announce(last: usize, attempts: usize, replicas: usize) -> Ordered {
    let component =
        |members| Component { epoch: u64::MAX, ring: WIDE_RING, members: wide_members(members) };
    Ordered::Announce(Box::new(Announce {
        ring: WIDE_RING,
        first_life: true,
        last: component(last),
        attempts: vec![component(MAX_MEMBERS); attempts],
        position: u64::MAX,
        replicas: vec![(GroupId(u64::MAX), WIDE_PLACE); replicas],
        ahead: vec![GroupId(u64::MAX); replicas],
        address: Some(([0; 16], u16::MAX).into()),
        recall: None,
        program: Program::this("0.1.0"),
        level: u8::MAX,
        extension: Extension(vec![0xff; MAX_EXTENSION]),
        roster: Roster::default(),
    }))
}

fn state_chunk(bytes: usize) -> Ordered {
    Ordered::StateChunk(StateChunk {
        group: GroupId(u64::MAX),
        transfer: ViewNumber(u64::MAX),
        index: u32::MAX,
        last: true,
        bytes: vec![0; bytes].into(),
    })
}

fn update_chunk(bytes: usize) -> Ordered {
    Ordered::PrimaryChunk(PrimaryChunk {
        group: GroupId(u64::MAX),
        what: Told::Checkpoint,
        since: WIDE_PLACE,
        number: u64::MAX,
        index: u32::MAX,
        last: true,
        bytes: vec![0; bytes].into(),
    })
}

#[test]
fn what_an_update_lists_is_limited() {
    let calls = |count| {
        let mut update = samples::update();
        update.head.entries = vec![update.head.entries[0].clone(); count];
        Update::decode(&update.encode()).err()
    };
    assert_eq!(calls(MAX_UPDATE_CALLS), None);
    assert_eq!(calls(MAX_UPDATE_CALLS + 1), Some(Malformed::Field("update entries")));
    let edits = |count| {
        let edits = vec![Edit { keep: 1, drop: 1, put: 1 }; count];
        let difference = Difference { base: 1, edits, put: vec![0; count].into() };
        Change::decode(&Change::Difference(difference).encode()).err()
    };
    assert_eq!(edits(MAX_EDITS), None);
    assert_eq!(edits(MAX_EDITS + 1), Some(Malformed::Field("edits")));
}

#[test]
fn lists_of_ordered_messages_are_limited() {
    assert_eq!(refused_ordered(announce(MAX_MEMBERS + 1, 0, 0)), "component");
    assert_eq!(refused_ordered(announce(1, MAX_ATTEMPTS + 1, 0)), "attempts");
    assert_eq!(refused_ordered(announce(1, 0, MAX_GROUPS + 1)), "announced replicas");
    assert_eq!(refused_ordered(install(vec![group(1, 1); MAX_GROUPS + 1])), "groups");
    assert_eq!(refused_ordered(install(vec![group(MAX_NAME + 1, 1)])), "name");
    assert_eq!(refused_ordered(install(vec![group(1, MAX_REPLICAS + 1)])), "replicas");
    let mut lost = group(1, 1);
    lost.asleep = wide_members(MAX_REPLICAS + 1);
    assert_eq!(refused_ordered(install(vec![lost])), "asleep");
    let join = JoinGroup { name: "n".repeat(MAX_NAME + 1), options: GroupOptions::default() };
    assert_eq!(refused_ordered(Ordered::JoinGroup(join)), "name");
    assert_eq!(refused_ordered(state_chunk(STATE_CHUNK + 1)), "bytes");
    assert_eq!(refused_ordered(update_chunk(UPDATE_CHUNK + 1)), "bytes");
    let Ordered::Announce(announce) = announce(1, 0, MAX_GROUPS) else { unreachable!() };
    let ahead = vec![GroupId(1); MAX_GROUPS + 1];
    let announce = Ordered::Announce(Box::new(Announce { ahead, ..*announce }));
    assert_eq!(refused_ordered(announce), "replicas ahead");
}

#[test]
fn sessions_and_their_replies_are_limited() {
    let refused = |change: fn(&mut StateHead)| {
        let mut state = samples::replica_state();
        change(&mut state.head);
        ReplicaState::decode(&state.encode().whole()).err()
    };
    assert_eq!(refused(|_| {}), None);
    let many = |head: &mut StateHead| {
        let replies = &mut head.sessions[0].replies;
        *replies = vec![replies[0].clone(); MAX_SESSION_REPLIES + 1];
    };
    assert_eq!(refused(many), Some(Malformed::Field("replies")));
    let many = |head: &mut StateHead| {
        let most = MAX_SESSIONS + MAX_KEYED_SESSIONS;
        head.sessions = vec![head.sessions[0].clone(); most + 1];
    };
    assert_eq!(refused(many), Some(Malformed::Field("sessions")));
    let many = |head: &mut StateHead| {
        let last = ForgottenSession { client: ClientId(1), last: 1, last_used: Time(1) };
        let forgotten = vec![last; MAX_FORGOTTEN + 1];
        head.keys = Some(KeysState { forgotten, ..KeysState::default() });
    };
    assert_eq!(refused(many), Some(Malformed::Field("forgotten")));
}

/// Only what newer rules add stands behind the messages of older ones.
#[test]
fn what_is_compared_fits_its_message() {
    let Update { head, change } = samples::identity::update();
    for count in [0, 2] {
        let keys = vec![EntryKey::default(); count];
        let mut bytes = samples::update().encode().to_vec();
        let head = usize::from(bytes[0]);
        bytes.splice(4 + head..4 + head, postcard::to_allocvec(&keys).unwrap());
        bytes[0] += u8::try_from(1 + 2 * count).unwrap();
        let refused = Update::decode(&bytes.into());
        assert_eq!(refused, Err(Malformed::Field("update keys")), "{count}");
    }
    let whole = Update { head, change };
    assert_eq!(Update::decode(&whole.encode()), Ok(whole));
}

#[test]
fn what_is_kept_of_poisonous_calls_is_limited() {
    let refused = |count, nodes, body| {
        let mut poison = samples::poison();
        poison.nodes = vec![NodeId(1); nodes];
        poison.body = vec![0; body];
        let mut state = samples::replica_state();
        state.head.poisoned = vec![poison; count];
        ReplicaState::decode(&state.encode().whole()).err()
    };
    assert_eq!(refused(MAX_POISONED, MAX_DEATHS, MAX_POISON_BYTES), None);
    assert_eq!(refused(MAX_POISONED + 1, 2, 0), Some(Malformed::Field("poisoned")));
    assert_eq!(refused(1, MAX_DEATHS + 1, 0), Some(Malformed::Field("nodes")));
    assert_eq!(refused(1, 2, MAX_POISON_BYTES + 1), Some(Malformed::Field("body")));
}

#[test]
fn deaths_of_one_call_are_limited_and_its_number_is_possible() {
    const REACHED: u64 = u64::MAX / 2 - 1;
    let progress = |executed, deaths| {
        let trial = Trial {
            node: NodeId(u32::MAX),
            deaths: vec![NodeId(u32::MAX); deaths],
            answered: true,
            beside: true,
        };
        let progress = Progress { executed, ..samples::progress(Some(trial)) };
        Ordered::decode(&Ordered::Progress(progress).encode()).err()
    };
    assert_eq!(progress(REACHED, MAX_DEATHS), None);
    assert_eq!(progress(REACHED, MAX_DEATHS + 1), Some(Malformed::Field("deaths")));
    assert_eq!(progress(REACHED + 1, 0), Some(Malformed::Field("number of a call")));
    let poisoned = |number, nodes| {
        let nodes = vec![NodeId(u32::MAX); nodes];
        let poisoned = Poisoned { number, nodes, ..samples::poisoned() };
        Ordered::decode(&Ordered::Poisoned(poisoned).encode()).err()
    };
    assert_eq!(poisoned(REACHED, MAX_DEATHS), None);
    assert_eq!(poisoned(REACHED, MAX_DEATHS + 1), Some(Malformed::Field("nodes")));
    assert_eq!(poisoned(REACHED + 1, 2), Some(Malformed::Field("number of a call")));
    assert_eq!(poisoned(0, 2), Some(Malformed::Field("poisoned number")));
}

/// A reply of so many bytes for a client at another node.
fn wide_relay(bytes: usize) -> Ordered {
    let reply = KeptReply::Service(vec![0xff; bytes]);
    let (group, client) = (GroupId(u64::MAX), ClientId(u64::MAX));
    Ordered::Relay(Relay { group, since: WIDE_PLACE, client, number: u64::MAX, reply, asked: 0 })
}

#[test]
fn a_relayed_reply_is_limited() {
    assert!(Ordered::decode(&wide_relay(MAX_BODY).encode()).is_ok());
    assert!(Ordered::decode(&wide_relay(MAX_BODY + 1).encode()).is_err());
}

#[test]
fn the_largest_ordered_messages_fit_on_the_ring() {
    let mut largest = group(MAX_NAME, MAX_REPLICAS);
    largest.asleep = wide_members(MAX_REPLICAS);
    let own = |name: &str| GroupEntry {
        name: name.into(),
        asleep: wide_members(MAX_MEMBERS),
        awaited: wide_members(MAX_MEMBERS),
        ..group(1, MAX_MEMBERS)
    };
    let mut all = vec![largest; MAX_GROUPS - 4];
    all.extend([MANAGER, REGISTRY, JOBS, CELL].map(own));
    for message in [
        announce(MAX_MEMBERS, MAX_ATTEMPTS, MAX_GROUPS),
        install(all),
        state_chunk(STATE_CHUNK),
        update_chunk(UPDATE_CHUNK),
        wide_relay(MAX_BODY),
    ] {
        let bytes = message.encode();
        assert!(bytes.len() <= MAX_MESSAGE, "{}", bytes.len());
        assert!(Ordered::decode(&bytes).is_ok());
    }
}

#[test]
fn an_ordered_request_has_a_possible_number_and_body() {
    let (_, Ordered::Request(request)) = samples::ordered().remove(0) else {
        panic!("the first sample is a request");
    };
    let with = |number, unanswered, body: usize| {
        let body = vec![0; body].into();
        let request = wire::ordered::Request { number, unanswered, body, ..request.clone() };
        Ordered::decode(&Ordered::Request(request).encode()).err()
    };
    assert_eq!(with(1, 1, MAX_BODY), None);
    assert_eq!(with(0, 0, 0), Some(Malformed::Field("request number")));
    assert_eq!(with(1, 2, 0), Some(Malformed::Field("request number")));
    assert_eq!(with(1, 1, MAX_BODY + 1), Some(Malformed::Field("body")));
}

fn refused_frame(frame: Frame) -> &'static str {
    match Frame::take(&mut BytesMut::from(&frame.encode()[..])) {
        Err(Malformed::Field(field)) => field,
        other => panic!("{other:?}"),
    }
}

fn targets(count: usize) -> Targets {
    let target = Target { node: NodeId(u32::MAX), address: ([0xff; 16], u16::MAX).into() };
    Targets { view: ViewNumber(u64::MAX), style: Style::SemiActive, nodes: vec![target; count] }
}

#[test]
fn lists_and_texts_of_frames_are_limited() {
    let bound = |count| Frame::Bound(Bound { group: GroupId(1), targets: Some(targets(count)) });
    assert_eq!(refused_frame(bound(MAX_REPLICAS + 1)), "targets");
    let reply = samples::reply(Outcome::NotPrimary, Some(targets(MAX_REPLICAS + 1)));
    assert_eq!(refused_frame(reply), "targets");
    assert_eq!(refused_frame(Frame::Bind(Bind { name: "n".repeat(MAX_NAME + 1) })), "name");
    let reason = "r".repeat(MAX_REASON + 1);
    let refused = Outcome::Refused(Refusal::Failed, reason.clone());
    assert_eq!(refused_frame(samples::reply(refused, None)), "reason");
    let busy = Outcome::Busy { retry_after_us: 1, reason: reason.clone() };
    assert_eq!(refused_frame(samples::reply(busy, None)), "reason");
    let shed = Outcome::Shed { instead: None, reason: reason.clone() };
    assert_eq!(refused_frame(samples::reply(shed, None)), "reason");
    for twice in [Refusal::Busy, Refusal::Shed] {
        let twice = Outcome::Refused(twice, "one word for one thing".into());
        assert_eq!(refused_frame(samples::reply(twice, None)), "refusal");
    }
    assert_eq!(refused_frame(Frame::Farewell(Farewell::new(reason))), "reason");
}

#[test]
fn the_largest_call_and_reply_fit_in_a_frame() {
    let body = Bytes::from(vec![0; MAX_BODY]);
    let request =
        Frame::Request(wire::client::Request { body: body.clone(), ..samples::request() });
    let reply = samples::reply(Outcome::Ok(body), Some(targets(MAX_REPLICAS)));
    for frame in [request, reply] {
        let bytes = frame.encode();
        assert!(bytes.len() <= MAX_FRAME, "{}", bytes.len());
        assert_eq!(Frame::take(&mut BytesMut::from(&bytes[..])), Ok(Some(frame)));
    }
}

/// A count that the bytes do not back must fail when they end, whatever it promises.
#[test]
fn a_count_without_its_elements_is_refused() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let header = samples::datagrams()[0].1.encode();
    let mut join = header[..24].to_vec();
    (join[2], join[3]) = (FROZEN, 5);
    join.extend_from_slice(&huge);
    assert_eq!(Datagram::decode(CLUSTER, versions::RING, &join.into()), Err(Malformed::Length));

    let mut bind = vec![10, 0, 0, 0, 3, 0, 0, 0];
    bind.extend_from_slice(&huge);
    assert_eq!(Frame::take(&mut BytesMut::from(&bind[..])), Err(Malformed::Length));
}

#[test]
fn a_key_has_a_number_and_no_more_nodes_confirm_it_than_there_can_be() {
    let named = |number| OfferedKey {
        name: KeyName { number, fingerprint: [7; 8] },
        secret: Secret::new([8; 32]),
    };
    assert_eq!(refused_ordered(Ordered::Key(KeyStep::Offer(named(0)))), "key number");
    assert_eq!(refused_ordered(Ordered::Key(KeyStep::Abort(named(0).name))), "key number");
    let with = |sealing, confirmed| {
        let confirmed = vec![NodeId(1); confirmed];
        let change = KeyChange { key: named(2), switched: true, forced: false, confirmed };
        let keys = Some(KeyTable { sealing: named(sealing).name, change: Some(change) });
        let (groups, programs, roster) = Default::default();
        let (ring, epoch) = (WIDE_RING, 1);
        Ordered::Install(Box::new(Install { ring, epoch, groups, keys, programs, roster }))
    };
    assert!(Ordered::decode(&with(1, MAX_MEMBERS).encode()).is_ok());
    assert_eq!(refused_ordered(with(1, MAX_MEMBERS + 1)), "confirmed");
    assert_eq!(refused_ordered(with(0, 1)), "key number");
}

#[test]
fn rosters_are_bounded_and_in_order() {
    let seat = |node| Seat { node: NodeId(node), ring: Vec::new() };
    let stamp = Place { epoch: 1, ..Place::default() };
    let with = |seats: Vec<Seat>, retired: usize| {
        let retired = vec![seat(9); retired];
        Roster { stamp, seats, retired, moving: None }
    };
    let refused = |roster: Roster| match Roster::decode(&roster.encode()) {
        Err(Malformed::Field(field)) => field,
        other => panic!("{other:?}"),
    };
    assert!(Roster::decode(&with((0..64).map(seat).collect(), MAX_RETIRED).encode()).is_ok());
    assert_eq!(refused(with((0..65).map(seat).collect(), 0)), "seats");
    assert_eq!(refused(with(vec![seat(1)], MAX_RETIRED + 1)), "retired");
    assert_eq!(refused(with(vec![seat(2), seat(1)], 0)), "order of seats");
    let far = Seat { ring: vec![([127, 0, 0, 1], 1).into(); 5], ..seat(1) };
    assert_eq!(refused(with(vec![far.clone()], 0)), "links");
    let propose = |base| {
        let motion = Motion::Admit(seat(1));
        Ordered::Roster(Box::new(RosterStep::Propose { motion, base }))
    };
    assert_eq!(refused_ordered(propose(vec![far])), "links");
    assert_eq!(refused_ordered(propose(vec![seat(2), seat(1)])), "order of the base");
    // A message without a roster has one form.
    let Ordered::Install(install) = install(Vec::new()) else { unreachable!("it is one") };
    let mut bytes = vec![32];
    bytes.extend_from_slice(&Roster::default().encode());
    bytes.extend_from_slice(&Ordered::Install(install).encode()[1..]);
    assert_eq!(Ordered::decode(&bytes.into()), Err(Malformed::Field("stamp")));
}
