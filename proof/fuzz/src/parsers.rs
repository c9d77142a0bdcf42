//! Parsers of outside input: any bytes are refused with an error or read, and a value that was read
//! survives being written and read again.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use node::admin::Request;
use node::cluster_state::{ClusterState, Command};
use seal::{ClusterKey, Keys, Seal};
use steadfast::Contract;
use store::backup::Backup;
use wire::client::Frame;
use wire::ordered::{
    Change, Form, GroupOptions, LoggedState, Ordered, Place, ReplicaState, Update,
};
use wire::report::Report;
use wire::ring::{Datagram, FROZEN, Message};
use wire::versions::RING;
use wire::{ClusterId, Incarnation, Malformed, Member, NodeId, Secret, Time};

use crate::Source;

const CLUSTER: ClusterId = ClusterId(0x0102_0304);

/// The input with the head that every datagram needs, so that the rest is looked at.
fn datagram_of(bytes: &[u8]) -> Bytes {
    let sender = Member { node: NodeId(1), incarnation: Incarnation(7) };
    let message = Message::Want(wire::ring::Want { ring: wire::RingId::default() });
    let mut whole = Datagram::new(CLUSTER, RING.least, sender, message).encode()[..24].to_vec();
    if let Some((kind, body)) = bytes.split_first() {
        whole[3] = *kind;
        if matches!(kind, 5 | 7 | 8) {
            whole[2] = FROZEN;
        }
        whole.extend_from_slice(body);
    }
    whole.into()
}

/// Datagrams between nodes, with and without a right head.
pub(crate) fn datagram(bytes: &[u8]) {
    for bytes in [Bytes::copy_from_slice(bytes), datagram_of(bytes)] {
        if let Ok(datagram) = Datagram::decode(CLUSTER, RING, &bytes) {
            if let Message::Data(data) = &datagram.message {
                let chunks: usize = data.chunks().map(|chunk| chunk.bytes.len()).sum();
                assert!(chunks <= data.body.len(), "chunks are parts of the body");
            }
            let again = Datagram::decode(CLUSTER, RING, &datagram.encode());
            assert_eq!(again.as_ref(), Ok(&datagram));
        }
        if let Ok((sender, report)) = Report::decode(CLUSTER, &bytes) {
            let again = Report::decode(CLUSTER, &report.encode(CLUSTER, sender));
            assert_eq!(again, Ok((sender, report)));
        }
    }
}

/// Saved states: any file, and one whose state alone is anything.
fn saved(bytes: &Bytes) {
    if let Ok((backup, _)) = Backup::decode(bytes) {
        assert_eq!(backup.encode(), bytes);
    }
    for form in [Form::State, Form::Log] {
        let content = form.look(bytes).unwrap_or_default();
        let backup = Backup {
            cluster: "fuzz".into(),
            group: "fuzz".into(),
            options: GroupOptions::default(),
            place: Place::default(),
            node: NodeId(1),
            saved: 0,
            executed: content.executed,
            form,
            state: bytes.clone(),
        };
        let read = Backup::decode(&backup.encode());
        assert_eq!(read.is_ok(), form.look(bytes).is_ok());
    }
}

/// Ordered messages, transferred states, and saved states.
pub(crate) fn ordered(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    saved(&bytes);
    if let Ok(ordered) = Ordered::decode(&bytes) {
        assert_eq!(Ordered::decode(&ordered.encode()).as_ref(), Ok(&ordered));
    }
    if let Ok(state) = ReplicaState::decode(&bytes) {
        assert_eq!(ReplicaState::decode(&state.encode().whole()).as_ref(), Ok(&state));
    }
    if let Ok(state) = LoggedState::decode(&bytes) {
        assert_eq!(LoggedState::decode(&state.encode().whole()).as_ref(), Ok(&state));
    }
    if let Ok(update) = Update::decode(&bytes) {
        assert_eq!(Update::decode(&update.encode()).as_ref(), Ok(&update));
    }
    if let Ok(change) = Change::decode(&bytes) {
        assert_eq!(Change::decode(&change.encode()).as_ref(), Ok(&change));
    }
}

/// Frames between a client and a node.
pub(crate) fn frame(bytes: &[u8]) {
    stream(bytes, Frame::take, Frame::encode);
}

/// Frames between a program and its node.
pub(crate) fn attach(bytes: &[u8]) {
    use wire::attach::Frame;
    stream(bytes, Frame::take, Frame::encode);
}

/// Frames between a rank and its agent.
pub(crate) fn rank(bytes: &[u8]) {
    use wire::rank::Frame;
    stream(bytes, Frame::take, Frame::encode);
}

/// Frames between agents.
pub(crate) fn agents(bytes: &[u8]) {
    use wire::agents::Frame;
    stream(bytes, Frame::take, Frame::encode);
}

/// A stream of frames, arriving in pieces: how it is cut makes no difference.
fn stream<F: PartialEq + Debug>(
    bytes: &[u8],
    take: fn(&mut BytesMut) -> Result<Option<F>, Malformed>,
    encode: fn(&F) -> Bytes,
) {
    let mut source = Source::new(bytes);
    let piece = 1 + source.below(40);
    let stream = source.rest();
    let mut whole = BytesMut::from(stream);
    let mut cut = BytesMut::new();
    let mut pieces = stream.chunks(piece);
    loop {
        let first = take(&mut whole);
        let mut second = take(&mut cut);
        while second == Ok(None)
            && let Some(piece) = pieces.next()
        {
            cut.extend_from_slice(piece);
            second = take(&mut cut);
        }
        assert_eq!(first, second);
        let Ok(Some(frame)) = first else { return };
        let mut again = BytesMut::from(&encode(&frame)[..]);
        assert_eq!(take(&mut again), Ok(Some(frame)));
        assert!(again.is_empty(), "a frame is read to its end");
    }
}

/// A node's configuration and its key file.
pub(crate) fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Errors are for people: they must be able to be said.
    if let Err(error) = node::Config::from_toml(text) {
        assert!(!error.to_string().is_empty());
    }
    // As additions to a good one they are looked at further.
    let added = format!("{}\n{text}", node::DEFAULT_CONFIG);
    let _ = node::Config::from_toml(&added).map_err(|error| error.to_string());
    match Keys::parse(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(keys) => {
            let again = Keys::parse(&keys.print()).expect("what was printed can be read");
            assert!(again.iter().map(ClusterKey::number).eq(keys.iter().map(ClusterKey::number)));
        }
    }
}

/// A line at the admin socket; and, as bytes, what nodes say to the cluster state, and its state.
pub(crate) fn admin(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<Request>(bytes) {
        let text = serde_json::to_string(&request).expect("a request can be written");
        let again = serde_json::from_str::<Request>(&text).expect("and read again");
        assert_eq!(again, request);
    }
    if let Ok(command) = Command::decode(bytes) {
        assert_eq!(Command::decode(&command.encode()).as_ref(), Ok(&command));
        // The cluster state stays valid, whichever node sends the command.
        let _ = ClusterState::default().apply(Time(1), command);
    }
    if let Ok(cluster_state) = ClusterState::decode(bytes) {
        cluster_state.check_invariants();
        assert_eq!(ClusterState::decode(&cluster_state.encode()), Ok(cluster_state));
    }
}

/// Sealed datagrams: a changed datagram is not opened.
pub(crate) fn sealed(bytes: &[u8]) {
    let node = |id: u32| Member { node: NodeId(id), incarnation: Incarnation(u64::from(id)) };
    let make = |id: u32| {
        Seal::new(seal::Config {
            cluster: CLUSTER,
            me: node(id),
            nodes: vec![NodeId(1), NodeId(2)],
            keys: Keys::single(ClusterKey::new(1, Secret::new([5; 32]))),
            seed: Secret::new([id as u8; 32]),
        })
    };
    let (mut ours, mut theirs) = (make(1), make(2));
    let now = Time(1);
    // First contact, as after a start.
    ours.greet(now, NodeId(2));
    theirs.greet(now, NodeId(1));
    for _ in 0..8 {
        let mut quiet = true;
        while let Some(contact) = ours.poll_contact() {
            quiet = false;
            assert!(theirs.open(now, &mut contact.bytes.clone()).is_ok());
        }
        while let Some(contact) = theirs.poll_contact() {
            quiet = false;
            assert!(ours.open(now, &mut contact.bytes.clone()).is_ok());
        }
        if quiet {
            break;
        }
    }
    let mut raw = bytes.to_vec();
    assert!(!matches!(theirs.open(now, &mut raw), Ok(Some(_))), "nobody has sealed this");
    let mut source = Source::new(bytes);
    let (at, flip, body) = (source.number() as usize, source.byte(), source.rest());
    let body = &body[..body.len().min(1_000)];
    let mut datagram = vec![0; body.len() + seal::OVERHEAD];
    datagram[seal::HEADER..seal::HEADER + body.len()].copy_from_slice(body);
    ours.seal_in_place(NodeId(2), &mut datagram).expect("the first is not the last");
    let mut spoilt = datagram.clone();
    let length = spoilt.len();
    spoilt[at % length] ^= flip;
    if flip != 0 {
        assert!(theirs.open(now, &mut spoilt).is_err(), "one bit is as good as all");
    }
    let opened = theirs.open(now, &mut datagram.clone()).expect("a good one is opened");
    // Bytes that read as a first contact are one, whichever node sealed them: the ring does not see
    // them.
    let is_contact = seal::Contact::decode(body).is_some();
    assert_eq!(opened, (!is_contact).then_some(seal::HEADER..seal::HEADER + body.len()));
    assert!(theirs.open(now, &mut datagram).is_err(), "and not again");
}

/// Contracts that programs tell, and the comparison of two: one that was kept stands before a line
/// of dashes.
pub(crate) fn contract(bytes: &[u8]) {
    let dashes = b"\n---\n";
    let middle = bytes.windows(dashes.len()).position(|window| window == dashes);
    let (older, newer) = match middle {
        Some(middle) => (&bytes[..middle], &bytes[middle + dashes.len()..]),
        None => (bytes, bytes),
    };
    let (older, newer) = (Contract::from_json(older), Contract::from_json(newer));
    for contract in [&older, &newer].into_iter().flatten() {
        assert!(contract.breaks(contract).is_empty(), "it does not break its own callers");
        // Indented, it may be too long to be read again.
        if let Ok(again) = Contract::from_json(contract.to_json().as_bytes()) {
            assert_eq!(&again, contract);
        }
    }
    if let (Ok(older), Ok(newer)) = (older, newer) {
        assert!(older.breaks(&newer).len() <= 256, "the list ends");
    }
}
