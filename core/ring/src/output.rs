//! The machine's requests and reports, in the order in which they must happen.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::limits::{MAX_MESSAGE, MAX_SEND_QUEUE};
use wire::ring::Level;
use wire::versions::Unfit;
use wire::{Duration, Member, NodeId, NodeList, NodeSet, RingId, Speaks, Time};

/// One thing to do or to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this datagram to each of these nodes.
    Send {
        /// The receivers, by place in [`Config::nodes`](crate::Config), or in the last
        /// [`Output::Nodes`]; never this node itself.
        to: NodeSet,
        /// The bytes.
        datagram: Bytes,
        /// Which way, where there are several.
        route: Route,
    },
    /// The next message of the total order.
    Deliver(Delivery),
    /// Messages from here on are delivered in this configuration.
    Configuration(Configuration),
    /// More is known about which members have the messages: a majority, all, or a single member.
    /// [`Ring::reached`](crate::Ring::reached) returns how far each is.
    Held {
        /// The ring.
        ring: RingId,
        /// A majority of its members has everything up to this sequence number.
        majority: u64,
        /// All of its members have everything up to this sequence number.
        all: u64,
    },
    /// More is known of what other members have on their disks
    /// ([`Ring::stored`](crate::Ring::stored)).
    Stored {
        /// The ring.
        ring: RingId,
    },
    /// A round of questions has an answer ([`Ring::confirm`](crate::Ring::confirm)). At some moment
    /// after the request, a majority of the members had installed no ring after this one. The
    /// messages that a majority, or all, of the members were known to have at the request are in
    /// the order up to `upto`.
    Confirmed {
        /// The ring.
        ring: RingId,
        /// The round.
        round: u64,
        /// A sequence number.
        upto: u64,
    },
    /// A resting ring has shown, without a question, what the answer to one at this time would have
    /// been: see [`Output::Confirmed`].
    Current {
        /// The ring.
        ring: RingId,
        /// When the question would have been asked.
        at: Time,
        /// A sequence number.
        upto: u64,
    },
    /// The nodes and their places from here on: those of sets in later outputs.
    Nodes(NodeList),
    /// Another node has a roster that is later, or that this node has, too. If the bytes are one that is
    /// later, [`Ring::set_nodes`](crate::Ring::set_nodes) is to follow.
    Roster {
        /// That node.
        from: NodeId,
        /// Its roster's bytes.
        roster: Bytes,
    },
    /// Something that logs and metrics want to know.
    Event(Event),
}

/// The way that a datagram takes to a node with several links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The link in use.
    Best,
    /// All links: an earlier copy may have been lost, or nothing is known of the receiver.
    Every,
}

/// A message in its place in the total order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The ring that ordered it. In a transitional configuration this is the old ring.
    pub ring: RingId,
    /// The sequence number of the datagram with its last part.
    pub sequence: u64,
    /// Everything before it has been delivered here too. False only in a transitional
    /// configuration, after a message that was lost with its holders.
    pub contiguous: bool,
    /// The sender.
    pub sender: Member,
    /// The guarantee of its delivery: see [`Level`].
    pub level: Level,
    /// The message.
    pub payload: Bytes,
}

/// Regular: messages are ordered by this ring. Transitional: the last ones of the old ring are
/// delivered to those who came from it together (extended virtual synchrony).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigurationKind {
    /// A ring that orders messages.
    Regular,
    /// The members of the old ring who go on to the same new one.
    Transitional,
}

/// A ring's membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Which kind.
    pub kind: ConfigurationKind,
    /// Regular: the ring's id. Transitional: that of the old ring.
    pub ring: RingId,
    /// In order of id.
    pub members: Vec<Member>,
}

/// How full something is that has a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Now.
    pub now: usize,
    /// At most, since this life of the node began.
    pub most: usize,
    /// It is never more than this.
    pub limit: usize,
}

/// How full a node's buffers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Messages that wait to be ordered ([`MAX_SEND_QUEUE`](wire::limits::MAX_SEND_QUEUE)).
    pub messages: Fill,
    /// Their bytes ([`MAX_SEND_QUEUE_BYTES`](wire::limits::MAX_SEND_QUEUE_BYTES)).
    pub bytes: Fill,
    /// Datagrams on the ring that are kept because somebody may lack them. Its limit is
    /// [`Config::window`](crate::Config::window), where all members have the same.
    pub datagrams: Fill,
}

/// The charge against a member that was excluded for being slow: its account at the member that it
/// kept from sending. Charges reported by others are exact to a microsecond, and at most 71
/// minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// For how long it kept that member from sending.
    pub stopped: Duration,
    /// Within which time.
    pub within: Duration,
    /// So long is granted once ([`Timing::slow_limit`](crate::Timing::slow_limit), as it is in
    /// force there),
    pub limit: Duration,
    /// and for ever so many percent of the time
    /// ([`Config::slow_share`](crate::Config::slow_share)).
    pub share: u32,
}

/// Internal events, for logs, metrics and people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The ring is given up: nothing was seen of the token for this long.
    TokenLost {
        /// The ring.
        ring: RingId,
        /// Since the last sign of it.
        silent: Duration,
        /// The member that had it, as far as this node saw.
        suspect: Option<Member>,
    },
    /// A membership is being gathered.
    Gathering {
        /// Nodes proposed.
        proposed: Vec<Member>,
        /// Those held to have failed.
        failed: Vec<Member>,
    },
    /// A node's process is gone: its host says that nobody listens.
    Unreachable(Member),
    /// A node did not agree to the membership in time and is left out.
    Silent(Member),
    /// A member is left out because it did not keep up: its part of the window stayed full while a
    /// majority had taken everything in. Told by every member, and by the one that is left out if
    /// it can be reached.
    TooSlow {
        /// The member; perhaps this node.
        member: Member,
        /// The member that it kept from sending; where `charge` is unknown, the member that
        /// reported the exclusion.
        by: Member,
        /// The charge. Unknown only if so many were left out at once that a proposal had no room
        /// for all charges ([`MAX_CHARGES`](wire::ring::MAX_CHARGES)).
        charge: Option<Charge>,
    },
    /// A member was lost again, or did not keep up: it is not taken into a ring before this has
    /// passed.
    HeldOff {
        /// The member.
        member: Member,
        /// For how long.
        span: Duration,
    },
    /// A node is not taken into a ring: the two do not understand each other.
    Unfit {
        /// The node.
        member: Member,
        /// Its versions.
        speaks: Speaks,
        /// This node's.
        ours: Speaks,
        /// The cause.
        why: Unfit,
    },
    /// This node was held up for so long that it does not trust its own suspicion.
    HeldUp(Duration),
    /// A ring is installed.
    Installed {
        /// Its id.
        ring: RingId,
        /// From leaving the last ring to installing this one.
        took: Duration,
        /// Messages of the old ring that were sent again.
        recovered: u64,
    },
    /// Datagrams were sent again because somebody missed them.
    Retransmitted(u64),
    /// Nothing that is sent to this node by this link arrives there any more, while it does by
    /// another.
    LinkLost {
        /// The node.
        node: NodeId,
        /// The link, from 1, as the configuration lists them.
        link: usize,
    },
    /// The link has proved itself, and carries again.
    LinkBack {
        /// The node.
        node: NodeId,
        /// The link, from 1, as the configuration lists them.
        link: usize,
    },
    /// This node has left the ring, as it was told to.
    Left,
}

/// Why a message was not taken. Nothing has happened; it can be handed in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The message is longer than any that the ring orders.
    #[error("a message of {0} bytes, the ring orders at most {MAX_MESSAGE}")]
    TooLarge(usize),
    /// So much waits to be ordered that more would only wait longer.
    #[error("{MAX_SEND_QUEUE} messages or their limit of bytes wait to be ordered already")]
    QueueFull,
    /// This node was told to leave the ring.
    #[error("this node has left the ring")]
    Left,
}
