//! The messages of cells to each other over a link.
//!
//! Messages are postcard: a variant's number, and its fields in order. Numbers of variants never
//! change. `docs/protocol/cells.md` has the rules.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::client::{Access, Refusal};
use wire::limits::{MAX_BODY, MAX_NAME, MAX_REASON};
use wire::path::{MAX_DEPTH, Name, Path};
use wire::{ClientId, Duration, MethodId, NodeId};

use crate::command::{Attached, Attachment, Count, Epoch, Place, Record};
use crate::limits::{MAX_HOPS, MAX_MEMBERS, MAX_PLACES, MAX_REPORT};

/// The version that this program speaks, and the oldest that it understands.
pub const VERSION: u8 = 2;
/// See [`VERSION`].
pub const OLDEST: u8 = 1;

/// From this version on calls say whose they are.
pub(crate) const ORIGINS: u8 = 2;

/// In which order messages of one link travel: each class by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The system's own.
    Control,
    /// Calls of priority 200 and above.
    Alarm,
    /// Calls of priority 100 and above.
    Critical,
    /// All others.
    Normal,
}

impl Class {
    /// The class of calls of this priority.
    pub fn of(priority: u8) -> Class {
        match priority {
            200.. => Class::Alarm,
            100.. => Class::Critical,
            _ => Class::Normal,
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The first of each side.
    Hello(Hello),
    /// By the side that has dialled: answer this.
    Ping {
        /// Its clock, which comes back.
        at: u64,
        /// The next one comes after so many milliseconds.
        every_ms: u16,
    },
    /// The answer.
    Pong {
        /// As it came.
        at: u64,
    },
    /// A cell asks to be attached.
    Attach(Attachment),
    /// It is.
    Attached(Attached),
    /// It is not, and why.
    Refused(String),
    /// It is still there.
    Renew(Epoch),
    /// It is not attached so, and must attach anew.
    Shunned,
    /// Its exports have changed.
    Report {
        /// Its attachment.
        epoch: Epoch,
        /// The last change.
        upto: u64,
        /// Those that have changed.
        counts: Vec<Count>,
    },
    /// They are known up to this change.
    Reported {
        /// The attachment.
        epoch: Epoch,
        /// The change.
        upto: u64,
    },
    /// The attaching cell and all above it, as they are now.
    Above(Vec<Place>),
    /// Where is this?
    Find(Find),
    /// There. It comes again when it has changed.
    Found {
        /// The question, by the asker's number.
        id: u64,
        /// `None`: nowhere.
        found: Option<Record>,
    },
    /// Make this call, of a caller without a name: as neighbours of version 1 say all calls.
    Carry(Carry),
    /// So it ended.
    Carried {
        /// The call, by the sender's number.
        id: u64,
        /// Its end.
        end: End,
    },
    /// Cells of the system and where they are, newer than told before.
    Members(Vec<MemberCell>),
    /// Make this call, of this caller. Since version 2.
    CarryFor(Origin, Carry),
}

/// The first words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The newest version that the sender speaks.
    pub version: u8,
    /// The sender's cell.
    pub path: Path,
    /// The sender.
    pub node: NodeId,
}

/// A question for a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Find {
    /// The asker's number of it.
    pub id: u64,
    /// The name.
    pub name: Name,
    /// The asker gives up after this time.
    pub left: Duration,
    /// Hops that it may still make.
    pub hops: u8,
    /// How it came.
    pub course: Course,
}

/// How a question or a call came: first up and then down, and through a cell by three of its nodes
/// at most, the seat between the others. So nothing goes round in circles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// It came from above, or from beside a cell that it came to so: it goes up no more.
    pub is_down: bool,
    /// Nodes of the same cell that it has come by last.
    pub beside: u8,
}

impl Course {
    /// It may go on to another node of the cell.
    pub(crate) fn may_go_beside(self) -> bool {
        self.beside < 2
    }
}

/// A call on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carry {
    /// The sender's number of it.
    pub id: u64,
    /// The cell that is to execute it.
    pub to: Path,
    /// Its caller gives up after this time.
    pub left: Duration,
    /// Hops that it may still make.
    pub hops: u8,
    /// How it came.
    pub course: Course,
    /// The call itself.
    pub call: Call,
}

/// The caller of a call, as its own cell knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// That cell.
    pub cell: Path,
    /// The first label of its certificate's name, such as `client-hmi`.
    pub name: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.cell)
    }
}

/// A call, as the caller's session has numbered it: the same on each way and in each attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The caller's session.
    pub client: ClientId,
    /// Which of its calls.
    pub number: u64,
    /// All calls below this number have ended for the caller.
    pub unanswered: u64,
    /// The group, by its name in its cell.
    pub group: String,
    /// The method.
    pub method: MethodId,
    /// Arguments and result are JSON.
    pub json: bool,
    /// Its possible effect on the state.
    pub reading: Reading,
    /// How critical it is.
    pub priority: u8,
    /// The arguments.
    pub body: Bytes,
}

/// The possible effect of a call on the state: [`Access`] as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reading {
    /// It may change it.
    No,
    /// It is linearizable, and changes nothing.
    Linearizable,
    /// It may be so many milliseconds old, and changes nothing.
    Stale(u16),
}

impl From<Access> for Reading {
    fn from(access: Access) -> Reading {
        match access {
            Access::Change => Reading::No,
            Access::Read => Reading::Linearizable,
            Access::Stale { max_age_ms } => Reading::Stale(max_age_ms),
        }
    }
}

/// How a carried call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The service's result.
    Answer(Bytes),
    /// The service's own error.
    Error(Bytes),
    /// It was refused, with the reason.
    Refused(Refusal, String),
    /// The cell has no such group.
    NoSuchGroup,
    /// No way leads there now, or the group has no replica. Not executed.
    NoWay,
    /// The caller's patience is less than the way's round trip. Not executed.
    TooFar,
    /// Nobody knows whether it was executed.
    Lost,
}

/// A cell of a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberCell {
    /// The cell and its nodes.
    pub place: Place,
    /// Grows with each change of it.
    pub stamp: u64,
}

/// A message that no cell sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes are none.
    #[error("the bytes are no message")]
    Bytes,
    /// A list is too long.
    #[error("{0} is longer than its limit")]
    TooLong(&'static str),
}

impl Message {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a message is plain data")
    }

    /// The message of these bytes.
    ///
    /// # Errors
    /// They are none, or exceed a limit.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        let (message, rest) = postcard::take_from_bytes(bytes).map_err(|_| Malformed::Bytes)?;
        if !rest.is_empty() {
            return Err(Malformed::Bytes);
        }
        check(&message)?;
        Ok(message)
    }

    /// The connection of a link that it travels by.
    pub fn class(&self) -> Class {
        match self {
            Message::Carry(carry) | Message::CarryFor(_, carry) => Class::of(carry.call.priority),
            _ => Class::Control,
        }
    }
}

fn check(message: &Message) -> Result<(), Malformed> {
    let at_most = |count: usize, most: usize, what: &'static str| {
        if count <= most { Ok(()) } else { Err(Malformed::TooLong(what)) }
    };
    let places = |places: &[Place]| {
        at_most(places.len(), MAX_DEPTH, "above")?;
        places.iter().try_for_each(|place| at_most(place.at.len(), MAX_PLACES, "places"))
    };
    let carried = |carry: &Carry| {
        at_most(carry.hops.into(), MAX_HOPS.into(), "hops")?;
        at_most(carry.call.group.len(), MAX_NAME, "group")?;
        at_most(carry.call.body.len(), MAX_BODY, "body")
    };
    match message {
        Message::Attach(attachment) => at_most(attachment.place.at.len(), MAX_PLACES, "places"),
        Message::Attached(attached) => places(&attached.above),
        Message::Above(above) => places(above),
        Message::Refused(reason) => at_most(reason.len(), MAX_REASON, "reason"),
        Message::Report { counts, .. } => {
            at_most(counts.len(), MAX_REPORT, "counts")?;
            let name = |count: &Count| at_most(count.group.len(), MAX_NAME, "group");
            counts.iter().try_for_each(name)
        }
        Message::Find(find) => at_most(find.hops.into(), MAX_HOPS.into(), "hops"),
        Message::Carry(carry) => carried(carry),
        Message::CarryFor(origin, carry) => {
            at_most(origin.name.len(), MAX_NAME, "name")?;
            carried(carry)
        }
        Message::Members(members) => {
            at_most(members.len(), MAX_MEMBERS, "members")?;
            let one = |member: &MemberCell| at_most(member.place.at.len(), MAX_PLACES, "places");
            members.iter().try_for_each(one)
        }
        _ => Ok(()),
    }
}
