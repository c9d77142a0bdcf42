//! What the engine orders on the ring: the payload of the ring's messages.
//!
//! The first byte is the kind. A request's header is fixed, because every call passes here; the
//! others are postcard, fields in the order of the type.
//!
//! | kind | message | who orders it, and when |
//! | --- | --- | --- |
//! | 1 | [`Request`] | a group's primary, for a client's call |
//! | 2 | [`Announce`] | every member, when a configuration is installed |
//! | 3 | [`Install`] | one member, when it has everybody's announcement |
//! | 4 | [`JoinGroup`] | a node that hosts a replica |
//! | 5 | [`LeaveGroup`] | a node that takes its replica away |
//! | 6 | [`StateChunk`] | the donor of a state transfer |
//! | 7 | [`Synced`] | a replica that has its state |
//! | 8 | [`Bench`](bench::Word) | a node that was asked for a benchmark of the ring, and all while it lasts |
//! | 9 | [`Load`](bench::Load) | the senders of a benchmark |
//! | 10 | [`Key`](KeyStep) | a node that was asked to change the cluster's key, and all while it changes |

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bench;
use crate::client::Refusal;
use crate::codec::{append, at_most, read};
use crate::keys::{KeyStep, KeyTable, checked_step, checked_table};
use crate::limits::{
    MAX_BODY, MAX_GROUPS, MAX_MEMBERS, MAX_NAME, MAX_REPLICAS, MAX_SESSION_WINDOW, MAX_SESSIONS,
    STATE_CHUNK,
};
use crate::{ClientId, GroupId, Malformed, Member, MethodId, RingId, Time, ViewNumber};

/// How a group is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Every replica executes in the same order; the primary answers.
    SemiActive,
}

/// Who must hold a request before its reply may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// The primary's node alone (agreed delivery): quickest; a crash may lose an answered request.
    One,
    /// A majority of the configuration: no crash of a minority loses an answered request.
    Majority,
    /// Every member of the configuration (safe delivery).
    All,
}

/// What a group's members must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupOptions {
    /// How the group is replicated.
    pub style: Style,
    /// When a reply may leave.
    pub hold: Hold,
}

impl Default for GroupOptions {
    fn default() -> Self {
        GroupOptions { style: Style::SemiActive, hold: Hold::Majority }
    }
}

/// A client's call, with what makes its execution the same everywhere.
///
/// ```text
///  0      1       2        4        8       16       24       32           40     48     56
/// +------+-------+--------+--------+-------+--------+--------+------------+------+------+------
/// | kind | flags |   0    | method | group | client | number | unanswered | time | seed | body
/// |  1   |       |        |        |       |        |        |            |      |      |
/// +------+-------+--------+--------+-------+--------+--------+------------+------+------+------
/// flags  bit 0: the body is JSON, and so shall the reply be (calls by hand)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The group that is called.
    pub group: GroupId,
    /// The method that is called.
    pub method: MethodId,
    /// Body and reply are JSON instead of postcard.
    pub json: bool,
    /// Whose call.
    pub client: ClientId,
    /// Which of its calls, from 1.
    pub number: u64,
    /// The client has the replies to all calls below this number: theirs need not be kept.
    pub unanswered: u64,
    /// The primary's clock, nanoseconds since the Unix epoch.
    pub time: Time,
    /// Seed of the handler's random numbers.
    pub seed: u64,
    /// The arguments.
    pub body: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RequestHeader {
    kind: u8,
    flags: u8,
    reserved: U16,
    method: U32,
    group: U64,
    client: U64,
    number: U64,
    unanswered: U64,
    time: U64,
    seed: U64,
}

const JSON: u8 = 1;

/// A configuration that had the quorum: its number, and who was in it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Component {
    /// Grows by one from each component to the next. 0: there was none.
    pub epoch: u64,
    /// Its ring. Of two components with one epoch, that of the larger ring came later.
    pub ring: RingId,
    /// Its members, in order of id.
    pub members: Vec<Member>,
}

/// A place in the history of the components. A later one compares as larger.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Place {
    /// The component.
    pub epoch: u64,
    /// Its ring.
    pub ring: RingId,
    /// The sequence number there.
    pub sequence: u64,
}

/// What a member brings to a new configuration, said by each of its members.
///
/// ```text
/// | ring.seq | rep | first life | last: component | attempts: count, each component | position |
///                                                  replicas: count, each (group, place) | address |
/// component   | epoch | ring.seq | rep | members: count, each (node, incarnation) |
/// place       | epoch | ring.seq | rep | sequence |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announce {
    /// The configuration that this is about.
    pub ring: RingId,
    /// The sender knows that its node never ran before: it cannot have forgotten anything.
    pub first_life: bool,
    /// The last component that the sender knows to have been installed by all its members.
    pub last: Component,
    /// Later components, oldest first, that the sender installed without learning whether all
    /// their members did.
    pub attempts: Vec<Component>,
    /// The sender has executed all that was ordered, up to this sequence number, in the newest
    /// component named here.
    pub position: u64,
    /// The groups of which the sender has a replica with the state, in order, each with the place
    /// of the last request that it took.
    pub replicas: Vec<(GroupId, Place)>,
    /// Where the sender's clients connect.
    pub address: Option<SocketAddr>,
}

/// Attempts that an announcement may carry.
pub const MAX_ATTEMPTS: usize = 16;

/// The groups as they stand after a configuration's announcements, from a member that knows.
///
/// ```text
/// | ring.seq | rep | epoch | groups: count, each group | keys: 0 or 1, the table |
/// group   | name | options | view | last: place | replicas: count, each (member, synced) |
///                                                          asleep: count, each member |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Install {
    /// The configuration that this is about.
    pub ring: RingId,
    /// The number of the component that is hereby installed.
    pub epoch: u64,
    /// Every group, in order of name.
    pub groups: Vec<GroupEntry>,
    /// The keys that seal datagrams; `None` where they are not sealed.
    pub keys: Option<KeyTable>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEntry {
    /// Its name.
    pub name: String,
    /// What its members agreed on.
    pub options: GroupOptions,
    /// The number of its view.
    pub view: ViewNumber,
    /// The place of the last request to it: who has taken that has the group's state.
    pub last: Place,
    /// Its replicas in order of rank: the first that is synced is the primary.
    pub replicas: Vec<ReplicaEntry>,
    /// While no replica in the component has the group's state: who had it, in order of rank. The
    /// group goes on when one of them comes back in the same life, and with all that was ordered.
    pub asleep: Vec<Member>,
}

/// One replica of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaEntry {
    /// The node that hosts it, in the life in which it joined.
    pub member: Member,
    /// It has the group's state.
    pub synced: bool,
}

/// The sender hosts a replica of this group from here on. | name | options |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinGroup {
    /// The group's name.
    pub name: String,
    /// Must be what the group was made with, if it exists.
    pub options: GroupOptions,
}

/// The sender's replica of this group is gone from here on. | group |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveGroup {
    /// Which group.
    pub group: GroupId,
}

/// A piece of a replica's state for those that have none.
///
/// ```text
///  0      1      2        4       8       16         24
/// +------+------+--------+-------+-------+----------+------
/// | kind | last |   0    | index | group | transfer | bytes      at most STATE_CHUNK
/// |  6   | 0, 1 |        |       |       |          |
/// +------+------+--------+-------+-------+----------+------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChunk {
    /// Which group.
    pub group: GroupId,
    /// The view at whose installation the state was taken: names the transfer.
    pub transfer: ViewNumber,
    /// Place of the chunk, from 0.
    pub index: u32,
    /// No chunk follows.
    pub last: bool,
    /// The bytes.
    pub bytes: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ChunkHeader {
    kind: u8,
    last: u8,
    reserved: U16,
    index: U32,
    group: U64,
    transfer: U64,
}

/// All that a replica knows, as the chunks of a transfer carry it.
///
/// ```text
/// | length of the head 4 | head: executed, clock, sessions | the service's own state |
/// session   | client | unanswered | last used | replies: count, each (number, kept) |
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// What is kept beside the service's state.
    pub head: StateHead,
    /// The service's own state.
    pub service: Bytes,
}

/// The part of a replica's state that is not the service's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHead {
    /// Requests executed in the group's history.
    pub executed: u64,
    /// Ordered time.
    pub clock: Time,
    /// In order of client.
    pub sessions: Vec<SessionState>,
}

/// One client's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    /// Whose.
    pub client: ClientId,
    /// No reply below this number is wanted any more.
    pub unanswered: u64,
    /// Ordered time of its last request.
    pub last_used: Time,
    /// Replies by number, in order.
    pub replies: Vec<(u64, KeptReply)>,
}

/// A reply that a replica keeps for retries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptReply {
    /// The method's result.
    Ok(Vec<u8>),
    /// The service's own error.
    Service(Vec<u8>),
    /// The request could not be executed.
    Refused(Refusal, String),
}

impl ReplicaState {
    /// The bytes that the chunks carry.
    pub fn encode(&self) -> Bytes {
        let mut buffer = append(alloc::vec![0; 4], &self.head);
        let length = u32::try_from(buffer.len() - 4).expect("kept replies are limited");
        buffer[..4].copy_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(&self.service);
        buffer.into()
    }

    /// Reads what [`ReplicaState::encode`] wrote.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &Bytes) -> Result<ReplicaState, Malformed> {
        let (length, rest) = U32::read_from_prefix(bytes).map_err(|_| Malformed::Length)?;
        let length = length.get() as usize;
        let head = rest.get(..length).ok_or(Malformed::Length)?;
        let head = checked_head(read(head)?)?;
        Ok(ReplicaState { head, service: bytes.slice(4 + length..) })
    }
}

/// The sender's replica has the state of this transfer and has caught up. | group | transfer |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synced {
    /// Which group.
    pub group: GroupId,
    /// Which transfer.
    pub transfer: ViewNumber,
}

/// An ordered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// A client's call.
    Request(Request),
    /// What a member brings to a configuration.
    Announce(Announce),
    /// The groups in a configuration.
    Install(Install),
    /// A replica comes.
    JoinGroup(JoinGroup),
    /// A replica goes.
    LeaveGroup(LeaveGroup),
    /// A piece of state.
    StateChunk(StateChunk),
    /// A replica has its state.
    Synced(Synced),
    /// About a benchmark of the ring.
    Bench(bench::Word),
    /// A step of a change of the cluster's key.
    Key(KeyStep),
    /// A benchmark's load.
    Load(bench::Load),
}

impl Ordered {
    /// The payload to multicast.
    pub fn encode(&self) -> Bytes {
        let start = |kind: u8| alloc::vec![kind];
        match self {
            Ordered::Request(request) => encode_request(request),
            Ordered::Announce(announce) => append(start(2), announce),
            Ordered::Install(install) => append(start(3), install),
            Ordered::JoinGroup(join) => append(start(4), join),
            Ordered::LeaveGroup(leave) => append(start(5), leave),
            Ordered::StateChunk(chunk) => encode_chunk(chunk),
            Ordered::Synced(synced) => append(start(7), synced),
            Ordered::Bench(word) => append(start(8), word),
            Ordered::Key(step) => append(start(10), step),
            Ordered::Load(load) => return load.encode(),
        }
        .into()
    }

    /// Reads a delivered payload. The body of a [`Request`] shares `payload`.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(payload: &Bytes) -> Result<Ordered, Malformed> {
        let (&kind, rest) = payload.split_first().ok_or(Malformed::Length)?;
        Ok(match kind {
            1 => Ordered::Request(decode_request(payload)?),
            2 => Ordered::Announce(checked_announce(read(rest)?)?),
            3 => Ordered::Install(checked_install(read(rest)?)?),
            4 => Ordered::JoinGroup(checked_join(read(rest)?)?),
            5 => Ordered::LeaveGroup(read(rest)?),
            6 => Ordered::StateChunk(decode_chunk(payload)?),
            7 => Ordered::Synced(read(rest)?),
            8 => Ordered::Bench(bench::checked(read(rest)?)?),
            9 => Ordered::Load(bench::Load::decode(payload)?),
            10 => Ordered::Key(checked_step(read(rest)?)?),
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}

fn encode_request(request: &Request) -> Vec<u8> {
    let header = RequestHeader {
        kind: 1,
        flags: u8::from(request.json) * JSON,
        reserved: 0.into(),
        method: request.method.0.into(),
        group: request.group.0.into(),
        client: request.client.0.into(),
        number: request.number.into(),
        unanswered: request.unanswered.into(),
        time: request.time.0.into(),
        seed: request.seed.into(),
    };
    let mut buffer = Vec::with_capacity(size_of::<RequestHeader>() + request.body.len());
    buffer.extend_from_slice(header.as_bytes());
    buffer.extend_from_slice(&request.body);
    buffer
}

fn decode_request(payload: &Bytes) -> Result<Request, Malformed> {
    let (header, body) = RequestHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
    if header.flags & !JSON != 0 || header.reserved.get() != 0 {
        return Err(Malformed::Field("request flags"));
    }
    if header.number.get() == 0 || header.unanswered.get() > header.number.get() {
        return Err(Malformed::Field("request number"));
    }
    at_most(body.len(), MAX_BODY, "body")?;
    Ok(Request {
        group: GroupId(header.group.get()),
        method: MethodId(header.method.get()),
        json: header.flags & JSON != 0,
        client: ClientId(header.client.get()),
        number: header.number.get(),
        unanswered: header.unanswered.get(),
        time: Time(header.time.get()),
        seed: header.seed.get(),
        body: payload.slice(size_of::<RequestHeader>()..),
    })
}

fn checked_announce(announce: Announce) -> Result<Announce, Malformed> {
    at_most(announce.attempts.len(), MAX_ATTEMPTS, "attempts")?;
    at_most(announce.replicas.len(), MAX_GROUPS, "announced replicas")?;
    for component in core::iter::once(&announce.last).chain(&announce.attempts) {
        at_most(component.members.len(), MAX_MEMBERS, "component")?;
    }
    Ok(announce)
}

fn checked_install(install: Install) -> Result<Install, Malformed> {
    at_most(install.groups.len(), MAX_GROUPS, "groups")?;
    for group in &install.groups {
        at_most(group.name.len(), MAX_NAME, "name")?;
        at_most(group.replicas.len(), MAX_REPLICAS, "replicas")?;
        at_most(group.asleep.len(), MAX_REPLICAS, "asleep")?;
    }
    install.keys.as_ref().map_or(Ok(()), checked_table)?;
    Ok(install)
}

fn checked_join(join: JoinGroup) -> Result<JoinGroup, Malformed> {
    at_most(join.name.len(), MAX_NAME, "name")?;
    Ok(join)
}

fn checked_head(head: StateHead) -> Result<StateHead, Malformed> {
    at_most(head.sessions.len(), MAX_SESSIONS, "sessions")?;
    for session in &head.sessions {
        at_most(session.replies.len(), MAX_SESSION_WINDOW as usize, "replies")?;
    }
    Ok(head)
}

fn encode_chunk(chunk: &StateChunk) -> Vec<u8> {
    let header = ChunkHeader {
        kind: 6,
        last: u8::from(chunk.last),
        reserved: 0.into(),
        index: chunk.index.into(),
        group: chunk.group.0.into(),
        transfer: chunk.transfer.0.into(),
    };
    let mut buffer = Vec::with_capacity(size_of::<ChunkHeader>() + chunk.bytes.len());
    buffer.extend_from_slice(header.as_bytes());
    buffer.extend_from_slice(&chunk.bytes);
    buffer
}

fn decode_chunk(payload: &Bytes) -> Result<StateChunk, Malformed> {
    let (header, bytes) = ChunkHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
    if header.last > 1 || header.reserved.get() != 0 {
        return Err(Malformed::Field("chunk flags"));
    }
    at_most(bytes.len(), STATE_CHUNK, "bytes")?;
    Ok(StateChunk {
        group: GroupId(header.group.get()),
        transfer: ViewNumber(header.transfer.get()),
        index: header.index.get(),
        last: header.last == 1,
        bytes: payload.slice(size_of::<ChunkHeader>()..),
    })
}
