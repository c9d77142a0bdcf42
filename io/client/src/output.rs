//! The outputs of a [`Session`](crate::Session).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use bytes::Bytes;
use wire::client::{Bind, Frame};
use wire::{GroupId, NodeId, Random, Time, VersionRange, ViewNumber};

use crate::{Answer, CallError};

/// A connection to a node. The session gives each a new number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

/// A call, from [`Session::call`](crate::Session::call) to [`Output::Done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// One thing that the driver must do or know, in the session's order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open a connection, then call `handle_connected`, or `handle_disconnected` if it fails.
    Connect {
        /// The name of the connection from now on.
        link: Link,
        /// The address of the node.
        address: SocketAddr,
    },
    /// Write a frame.
    Send {
        /// The connection.
        link: Link,
        /// The frame.
        frame: Frame,
    },
    /// Close a connection at once. The session has forgotten it and expects no answer.
    Disconnect {
        /// The connection.
        link: Link,
    },
    /// A call has ended.
    Done {
        /// The call.
        call: CallId,
        /// The result of the call.
        result: Result<Bytes, CallError>,
        /// Each replica's reply, if the call went to all. Other calls have an empty list.
        answers: Vec<Answer>,
    },
    /// Something for logs and metrics.
    Event(Event),
}

/// Something that happened at a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A node answered on a new connection. Calls may go there.
    Connected {
        /// The address of the node.
        address: SocketAddr,
        /// The node, by its own word.
        node: NodeId,
    },
    /// A connection ended, or could not be made.
    Lost {
        /// The address of the node.
        address: SocketAddr,
        /// The reason.
        trouble: Trouble,
    },
    /// A call under way went to another node.
    FailedOver {
        /// The group of the call.
        group: GroupId,
        /// The number of the call in its session.
        number: u64,
        /// The node that had the call before.
        from: SocketAddr,
        /// The node that has the call now.
        to: SocketAddr,
        /// The reason.
        cause: Cause,
    },
    /// The client learned a newer view of a group.
    View {
        /// The group.
        group: GroupId,
        /// The number of the view.
        view: ViewNumber,
        /// The first target, if any replica may answer.
        first: Option<SocketAddr>,
    },
}

/// Why a call went to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The connection was lost.
    Lost,
    /// No reply came before the attempt timed out.
    Silent,
    /// The targets of the group changed.
    Redirected,
    /// A busy host refused the call and named a node with room.
    Shed,
}

/// The trouble with an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The node closed or refused the connection before it answered.
    #[error("does not accept connections")]
    Refused,
    /// The node closed an established connection.
    #[error("closed the connection")]
    Closed,
    /// The node was silent for too long.
    #[error("does not answer")]
    Silent,
    /// The node speaks other versions of the protocol.
    #[error("speaks protocol version {0}")]
    Version(VersionRange),
    /// The node closed the connection and gave this reason.
    #[error("rejected the client: {0}")]
    TurnedAway(String),
    /// The node is of another cluster than the one that is called.
    #[error("is of another cluster: {0}")]
    Elsewhere(String),
    /// TLS failed: one side does not trust the other. The text names the remedy.
    #[error("cannot be reached by TLS: {0}")]
    Distrusted(String),
    /// The node sent frames that no node sends to a client.
    #[error("does not behave like a Steadfast node")]
    Confused,
}

/// Counters since the session began.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = steadfast_client::Client::connect(["192.0.2.1:7100"])?;
/// let stats = client.stats();
/// println!("{} calls, {} moved to another node", stats.calls, stats.fail_overs);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Calls that the client began.
    pub calls: u64,
    /// Requests that the client sent: at least one for each call that reached a node.
    pub attempts: u64,
    /// Moves of a call to another node, after a loss, a time-out or a redirection.
    pub fail_overs: u64,
    /// Pauses of a call because no node could serve it.
    pub pauses: u64,
    /// Connections on which a node answered.
    pub connects: u64,
    /// Connections on which a node answered at an address that the client had been connected to.
    pub reconnects: u64,
    /// Connections that were lost or could not be made.
    pub losses: u64,
    /// Replies to attempts that had ended.
    pub late_replies: u64,
    /// Attempts after one that was lost or silent, so of calls that may have been executed.
    pub retries: u64,
    /// Questions for newer targets because a period had passed.
    pub refreshes: u64,
    /// Calls for which the client asked a second replica before the first had failed.
    pub hedges: u64,
    /// Late replies with a result that another replica had already given.
    pub copies: u64,
    /// Refusals because a host had too much to do for a call of this priority.
    pub shed: u64,
    /// Calls that went to a node which such a refusal had named.
    pub sent_on: u64,
    /// Calls that ended at their deadline.
    pub expired: u64,
}

impl Stats {
    /// The counters of two sessions together.
    pub(crate) fn and(self, other: Stats) -> Stats {
        Stats {
            calls: self.calls + other.calls,
            attempts: self.attempts + other.attempts,
            fail_overs: self.fail_overs + other.fail_overs,
            pauses: self.pauses + other.pauses,
            connects: self.connects + other.connects,
            reconnects: self.reconnects + other.reconnects,
            losses: self.losses + other.losses,
            late_replies: self.late_replies + other.late_replies,
            retries: self.retries + other.retries,
            refreshes: self.refreshes + other.refreshes,
            hedges: self.hedges + other.hedges,
            copies: self.copies + other.copies,
            shed: self.shed + other.shed,
            sent_on: self.sent_on + other.sent_on,
            expired: self.expired + other.expired,
        }
    }
}

/// The effects that every part of the machine may have: outputs, timers, random draws, counters.
#[derive(Debug)]
pub(crate) struct Effects {
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) timers: Timers,
    pub(crate) random: Random,
    pub(crate) stats: Stats,
}

impl Effects {
    pub(crate) fn new(seed: u64) -> Self {
        Effects {
            outputs: VecDeque::new(),
            timers: Timers::default(),
            random: Random::new(seed),
            stats: Stats::default(),
        }
    }

    pub(crate) fn send(&mut self, link: Link, frame: Frame) {
        self.outputs.push_back(Output::Send { link, frame });
    }

    /// Asks for a group's targets.
    pub(crate) fn ask(&mut self, link: Link, name: String) {
        self.send(link, Frame::Bind(Bind { name }));
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

/// The purpose of a timer. There is at most one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// An attempt's time-out, a pause's end or the deadline, whichever is first.
    Call(CallId),
    /// A second replica is to be asked for this call.
    Hedge(CallId),
    /// A connection's greeting or sign of life is due, or it has been idle.
    Link(Link),
    /// A question for a group's targets is to be asked again; `None`: for any connection at all.
    Inquiry(Option<GroupId>),
    /// A target of this group may be dialled again.
    Warm(GroupId),
    /// A node is to be asked for this group's targets, whatever is known.
    Refresh(GroupId),
}

/// The timers that are set.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Time, Timer)>,
    at: BTreeMap<Timer, Time>,
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Time) {
        if let Some(earlier) = self.at.insert(timer, at) {
            self.due.remove(&(earlier, timer));
        }
        self.due.insert((at, timer));
    }

    pub(crate) fn clear(&mut self, timer: Timer) {
        if let Some(at) = self.at.remove(&timer) {
            self.due.remove(&(at, timer));
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(crate) fn take_due(&mut self, now: Time) -> Option<Timer> {
        let (at, timer) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.clear(timer);
        Some(timer)
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.at.contains_key(&timer)
    }
}
