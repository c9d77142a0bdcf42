//! The messages that the engine orders, as the payload of the ring's messages.
//!
//! The first byte is the kind. Requests have a fixed header, because every call is one. The other
//! messages are postcard, with the fields in the order of the type.
//!
//! | kind | message | who orders it, and when |
//! | --- | --- | --- |
//! | 1 | [`Request`] | a group's primary, for a client's call |
//! | 2 | [`Announce`] | every member, when a configuration is installed |
//! | 3 | [`Install`] | one member, when it has everybody's announcement |
//! | 4 | [`JoinGroup`] | a node that hosts a replica |
//! | 5 | [`LeaveGroup`] | a node whose replica leaves |
//! | 6 | [`StateChunk`] | the donor of a state transfer |
//! | 7 | [`Synced`] | a replica that has its state |
//! | 8 | [`Bench`](bench::Word) | a node that was asked for a benchmark of the ring; then every node, while it runs |
//! | 9 | [`Load`](bench::Load) | the senders of a benchmark |
//! | 10 | [`Key`](KeyStep) | a node that was asked to change the cluster's key; then every node, until it has changed |
//! | 11 | [`Move`] | a node that proposes another primary; then the new primary, to take over |
//! | 12 | [`PrimaryChunk`] | a passive group's primary, for executed calls and for a checkpoint |
//! | 13 | [`Relay`] | a cold passive group's primary, for a call that another node had ordered |
//! | 15 | [`Recalled`] | a node that hosts a replica whose state is on its disk |
//! | 16 | [`NestedEnd`] | the callee's primary; the caller's, to give the call up |
//! | 17 | [`Ballot`] | a replica of a voting group, for executed calls |
//! | 18 | [`Absent`] | a node with a replica of a voting group, when another's votes are missing |
//! | 19 | [`Restyle`] | a node that was asked to change a group's style |
//! | 20 | [`Usage`] | every node, by period and when its host's use crosses a level |
//! | 21 | [`Rank`] | the node that manages, when clients should try a group's backups in another order |
//! | 22 | [`Demote`] | a node whose replica's service is hung |
//! | 23 | [`Shedding`] | the node that manages, when a host is overloaded and no move helps |
//! | 24 | [`Progress`] | a leading replica, for executed calls, and before a trial |
//! | 25 | [`Poisoned`] | a leading replica, when two services have died of a call |
//! | 26 | [`StateOffer`] | the donor of a large state, which is to be fetched by a stream |
//! | 27 | [`StateDeclined`] | a replica that could not fetch it |
//! | 28 | [`Backup`](BackupStep) | a node that was asked to save a group's state, or to restore it |
//! | 29 | [`Activate`] | the first member, when all nodes know newer rules; or a node that was asked to |
//! | 30 | [`Roster`](RosterStep) | a node that was asked to admit or retire one; then every node, once that is on its disk |
//! | 31 | [`Roster`], [`Announce`] | as 2, once the nodes were changed |
//! | 32 | [`Roster`], [`Install`] | as 3, once the nodes were changed |
//! | 33 | [`Notes`] | a node whose replica cannot give or read a state, or can again |
//! | 34 | [`Anew`] | a replica that was not given its state, after a while |
//! | 35 | [`Compare`] | a group's primary, now and then: its replicas compare their states |
//! | 36 | [`Compared`] | a replica, for a comparison |
//! | 37 | [`Lineage`] | every member, before its announcement, where each side of a partition goes on |
//! | 38 | [`MergeChunk`] | a node whose replica has given up its history, for services that merge |

use alloc::boxed::Box;
use alloc::string::String;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec::{append, at_most, read};
use crate::keys::{KeyStep, checked_step};
use crate::limits::MAX_NAME;
use crate::roster::{Roster, RosterStep};
use crate::{GroupId, Malformed, Member, Payload, ViewNumber, bench};

mod backup;
mod change;
mod cold;
mod compare;
mod configuration;
mod entry;
mod identity;
mod lineage;
mod merge;
mod nested;
mod notes;
mod options;
mod place;
mod poison;
mod recall;
mod request;
mod restyle;
mod shedding;
mod state;
mod update;
mod usage;
mod votes;

pub use crate::system::MERGE;
pub use backup::{BackupStep, Content, Deposit, Form};
pub use change::{Change, Difference, Edit};
pub use cold::{Blamed, LoggedState, Relay};
pub use compare::{Compare, Compared, StateDigest};
pub use configuration::{Announce, Component, Install, MAX_ATTEMPTS};
pub use entry::{GroupEntry, ReplicaEntry};
pub use identity::{EntryKey, ForgottenSession, Identity, KeysState, SessionKeys, call_digest};
pub use lineage::Lineage;
pub use merge::MergeChunk;
pub use nested::{
    End, NestedEnd, Origin, asked, nested_client, nested_number, nested_parts, nested_window,
};
pub use notes::{About, Note, Notes};
pub use options::{AckLevel, Durability, GroupOptions, Style};
pub use place::Place;
use poison::check_number;
pub use poison::{Died, Poison, Poisoned, Progress, Trial};
pub use recall::Recall;
pub use request::Request;
pub use restyle::Restyle;
pub use shedding::{Classes, Shedding};
pub use state::{
    KeptReply, ReplicaState, SessionState, StateChunk, StateDeclined, StateHead, StateOffer,
};
pub use update::{PrimaryChunk, Told, Update, UpdateEntry, UpdateHead};
pub use usage::{Rank, Usage};
pub use votes::{Absent, Ballot, Digest};

/// The sender hosts a replica of this group from here on. | name | options |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinGroup {
    /// The group's name.
    pub name: String,
    /// The group's options. If the group exists, they must match.
    pub options: GroupOptions,
}

impl JoinGroup {
    fn checked(self) -> Result<JoinGroup, Malformed> {
        at_most(self.name.len(), MAX_NAME, "name")?;
        Ok(self)
    }
}

/// The sender's replica leaves this group.
///
/// ```text
/// | group | going | died: 0, or 1 and (executed, given, ahead: count, each (client, number)) |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveGroup {
    /// Which group.
    pub group: GroupId,
    /// How it leaves.
    pub going: Going,
    /// If its service died: the service's progress.
    pub died: Option<Died>,
}

/// How a replica leaves. | 0: for good | 1: it returns | 2: if it is spared |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Going {
    /// For good. The group ends with its last replica.
    ForGood,
    /// Its node still hosts it: the replica joins again, without the state.
    Returns,
    /// For good if another replica has the state. Otherwise the replica stays.
    IfSpared,
}

impl LeaveGroup {
    fn checked(self) -> Result<LeaveGroup, Malformed> {
        self.died.as_ref().map_or(Ok(()), Died::check)?;
        Ok(self)
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

/// The sender's replica could not be given the state by this transfer, and is to be given it by another.
/// From level 3 on. | group | transfer |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anew {
    /// Which group.
    pub group: GroupId,
    /// Which transfer.
    pub transfer: ViewNumber,
}

/// Makes this replica the primary of its group. From the replica's own node, this is the hand-over,
/// which takes effect at its place in the order. From any other node, it is a proposal. It is void
/// if the group's view is another one.
///
/// ```text
/// | group | to: node, incarnation | view |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Which group.
    pub group: GroupId,
    /// The member whose replica is to be primary.
    pub to: Member,
    /// The view that is to be changed.
    pub view: ViewNumber,
}

/// The service of the sender's replica is hung. The replica leaves its group if another one has the
/// state. This is void if the group's view is another one.
///
/// ```text
/// | group | view | died: executed, given, ahead: count, each (client, number) |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demote {
    /// Which group.
    pub group: GroupId,
    /// The view that is to be changed.
    pub view: ViewNumber,
    /// The service's progress.
    pub died: Died,
}

impl Demote {
    fn checked(self) -> Result<Demote, Malformed> {
        self.died.check()?;
        Ok(self)
    }
}

/// Since its announcement, the sender has begun to host a replica whose state is on its disk.
///
/// ```text
/// | group | taken: place |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recalled {
    /// Which group.
    pub group: GroupId,
    /// The place of the last message that the replica took.
    pub taken: Place,
}

/// From here on the rules of this level are in force: every configured node knows them. | level |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activate {
    /// The level.
    pub level: u8,
}

/// An ordered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// A client's call.
    Request(Request),
    /// The state of a member at the start of a configuration.
    Announce(Box<Announce>),
    /// The groups at the start of a component.
    Install(Box<Install>),
    /// A replica joins.
    JoinGroup(JoinGroup),
    /// A replica leaves.
    LeaveGroup(LeaveGroup),
    /// A piece of state.
    StateChunk(StateChunk),
    /// A state is there to be fetched.
    StateOffer(StateOffer),
    /// A state could not be fetched.
    StateDeclined(StateDeclined),
    /// A replica has its state.
    Synced(Synced),
    /// A benchmark of the ring: its plan, reports and end.
    Bench(Box<bench::Word>),
    /// A step of a change of the cluster's key.
    Key(KeyStep),
    /// A benchmark's load.
    Load(bench::Load),
    /// A primary is to move, or moves.
    Move(Move),
    /// A chunk of an update or a checkpoint from a passive group's primary.
    PrimaryChunk(PrimaryChunk),
    /// The reply to a call whose client is at another node than a cold passive group's primary.
    Relay(Relay),
    /// A replica is back from its node's disk.
    Recalled(Recalled),
    /// A call between groups has ended.
    NestedEnd(NestedEnd),
    /// A voting replica's votes.
    Ballot(Ballot),
    /// A replica's votes are missing.
    Absent(Absent),
    /// A group has another style from here on.
    Restyle(Restyle),
    /// How much of its processors a host uses.
    Usage(Usage),
    /// A group's backups are tried in another order from here on.
    Rank(Rank),
    /// A replica whose service is hung leaves.
    Demote(Demote),
    /// A host begins or ceases to refuse calls.
    Shedding(Shedding),
    /// How many calls a leading replica has executed.
    Progress(Progress),
    /// Nobody executes this call any more: services died of it.
    Poisoned(Poisoned),
    /// A group's state is saved, or restored.
    Backup(BackupStep),
    /// Newer rules are in force.
    Activate(Activate),
    /// A step of a change of the nodes. From level 2 on.
    Roster(Box<RosterStep>),
    /// All that a node has to say about the states of its replicas. From level 3 on.
    Notes(Notes),
    /// A transfer that failed begins anew. From level 3 on.
    Anew(Anew),
    /// A group's replicas compare their states. From level 3 on.
    Compare(Compare),
    /// The digest of a replica's state. From level 3 on.
    Compared(Compared),
    /// See [`Lineage`].
    Lineage(Lineage),
    /// A piece of the state of another history. From level 3 on.
    MergeChunk(MergeChunk),
}

impl Ordered {
    /// The payload to multicast, which shares the bodies of calls, states and updates.
    pub fn payload(&self) -> Payload {
        let start = |kind: u8| alloc::vec![kind];
        match self {
            Ordered::Request(request) => return request.payload(),
            Ordered::Announce(announce) if announce.roster.stamp == Place::default() => {
                append(start(2), &**announce)
            }
            Ordered::Announce(announce) => append(start(31), &(&announce.roster, &**announce)),
            Ordered::Install(install) if install.roster.stamp == Place::default() => {
                append(start(3), &**install)
            }
            Ordered::Install(install) => append(start(32), &(&install.roster, &**install)),
            Ordered::JoinGroup(join) => append(start(4), join),
            Ordered::LeaveGroup(leave) => append(start(5), leave),
            Ordered::StateChunk(chunk) => return chunk.payload(),
            Ordered::Synced(synced) => append(start(7), synced),
            Ordered::Bench(word) => append(start(8), &**word),
            Ordered::Key(step) => append(start(10), step),
            Ordered::Load(load) => return load.payload(),
            Ordered::Move(proposal) => append(start(11), proposal),
            Ordered::PrimaryChunk(chunk) => return chunk.payload(),
            Ordered::Relay(relay) => relay.append(start(13)),
            Ordered::Recalled(recalled) => append(start(15), recalled),
            Ordered::NestedEnd(end) => append(start(16), end),
            Ordered::Ballot(ballot) => append(start(17), ballot),
            Ordered::Absent(absent) => append(start(18), absent),
            Ordered::Restyle(restyle) => append(start(19), restyle),
            Ordered::Usage(usage) => append(start(20), usage),
            Ordered::Rank(rank) => append(start(21), rank),
            Ordered::Demote(demote) => append(start(22), demote),
            Ordered::Shedding(shedding) => append(start(23), shedding),
            Ordered::Progress(progress) => append(start(24), progress),
            Ordered::Poisoned(poisoned) => append(start(25), poisoned),
            Ordered::StateOffer(offer) => append(start(26), offer),
            Ordered::StateDeclined(declined) => append(start(27), declined),
            Ordered::Backup(step) => append(start(28), step),
            Ordered::Activate(activate) => append(start(29), activate),
            Ordered::Roster(step) => append(start(30), &**step),
            Ordered::Notes(notes) => append(start(33), notes),
            Ordered::Anew(anew) => append(start(34), anew),
            Ordered::Compare(compare) => append(start(35), compare),
            Ordered::Compared(compared) => append(start(36), compared),
            Ordered::Lineage(lineage) => append(start(37), lineage),
            Ordered::MergeChunk(chunk) => return chunk.payload(),
        }
        .into()
    }

    /// The payload in one piece.
    pub fn encode(&self) -> Bytes {
        self.payload().whole()
    }

    /// Reads a delivered payload. The body of a [`Request`] shares `payload`.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(payload: &Bytes) -> Result<Ordered, Malformed> {
        let (&kind, rest) = payload.split_first().ok_or(Malformed::Length)?;
        Ok(match kind {
            1 => Ordered::Request(Request::decode(payload)?),
            2 => Ordered::Announce(Box::new(read::<Announce>(rest)?.checked()?)),
            3 => Ordered::Install(Box::new(read::<Install>(rest)?.checked()?)),
            4 => Ordered::JoinGroup(read::<JoinGroup>(rest)?.checked()?),
            5 => Ordered::LeaveGroup(read::<LeaveGroup>(rest)?.checked()?),
            6 => Ordered::StateChunk(StateChunk::decode(payload)?),
            7 => Ordered::Synced(read(rest)?),
            8 => Ordered::Bench(Box::new(bench::checked(read(rest)?)?)),
            9 => Ordered::Load(bench::Load::decode(payload)?),
            10 => Ordered::Key(checked_step(read(rest)?)?),
            11 => Ordered::Move(read(rest)?),
            12 => Ordered::PrimaryChunk(PrimaryChunk::decode(payload)?),
            13 => Ordered::Relay(Relay::decode(rest)?),
            15 => Ordered::Recalled(read(rest)?),
            16 => Ordered::NestedEnd(read::<NestedEnd>(rest)?.checked()?),
            17 => Ordered::Ballot(read::<Ballot>(rest)?.checked()?),
            18 => Ordered::Absent(read(rest)?),
            19 => Ordered::Restyle(read(rest)?),
            20 => Ordered::Usage(read::<Usage>(rest)?.checked()?),
            21 => Ordered::Rank(read::<Rank>(rest)?.checked()?),
            22 => Ordered::Demote(read::<Demote>(rest)?.checked()?),
            23 => Ordered::Shedding(read::<Shedding>(rest)?.checked()?),
            24 => Ordered::Progress(read::<Progress>(rest)?.checked()?),
            25 => Ordered::Poisoned(read::<Poisoned>(rest)?.checked()?),
            26 => Ordered::StateOffer(read::<StateOffer>(rest)?.checked()?),
            27 => Ordered::StateDeclined(read(rest)?),
            28 => Ordered::Backup(read::<BackupStep>(rest)?.checked()?),
            29 => Ordered::Activate(read(rest)?),
            30 => Ordered::Roster(Box::new(read::<RosterStep>(rest)?.checked()?)),
            31 => {
                let (roster, announce): (Roster, Announce) = read(rest)?;
                let roster = changed(roster.stamp).and_then(|()| roster.checked())?;
                Ordered::Announce(Box::new(Announce { roster, ..announce.checked()? }))
            }
            32 => {
                let (roster, install): (Roster, Install) = read(rest)?;
                let roster = changed(roster.stamp).and_then(|()| roster.checked())?;
                Ordered::Install(Box::new(Install { roster, ..install.checked()? }))
            }
            33 => Ordered::Notes(read::<Notes>(rest)?.checked()?),
            34 => Ordered::Anew(read(rest)?),
            35 => Ordered::Compare(read(rest)?),
            36 => Ordered::Compared(read(rest)?),
            37 => Ordered::Lineage(read::<Lineage>(rest)?.checked()?),
            38 => Ordered::MergeChunk(MergeChunk::decode(payload)?),
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}

/// The kinds of rosters that were changed are not for others: each message has one form.
fn changed(stamp: Place) -> Result<(), Malformed> {
    if stamp == Place::default() { Err(Malformed::Field("stamp")) } else { Ok(()) }
}
