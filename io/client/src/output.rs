//! What comes out of a [`Session`](crate::Session).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wire::client::{Access, Bind, Frame};
use wire::{GroupId, NodeId, Random, Time, ViewNumber};

use crate::{Answer, CallError};

/// A connection to a node. Numbered by the session and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

/// How a call is answered that changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// By what was true at some moment between the call and its answer: all that was answered before it was made is seen.
    #[default]
    Linearizable,
    /// Perhaps by what was true so long ago, at least 1 ms, at most [`MAX_STALE`]: quicker, and while the cluster forms anew,
    /// too. A replica that is not sure to be so recent asks the others first.
    Stale(Duration),
}

/// The largest bound of [`Reading::Stale`]; longer ones count as this.
pub const MAX_STALE: Duration = Duration::from_millis(u16::MAX as u64);

impl From<Reading> for Access {
    fn from(reading: Reading) -> Access {
        match reading {
            Reading::Linearizable => Access::Read,
            Reading::Stale(most) => {
                let most = most.clamp(Duration::from_millis(1), MAX_STALE);
                Access::Stale { max_age_ms: u16::try_from(most.as_millis()).unwrap_or(u16::MAX) }
            }
        }
    }
}

/// A call, from [`Session::call`](crate::Session::call) to [`Output::Done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// One thing to do or to know, in the order in which it must happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open a connection, then tell `handle_connected`, or `handle_disconnected` if it fails.
    Connect {
        /// Its name from now on.
        link: Link,
        /// Where to.
        address: SocketAddr,
    },
    /// Write a frame.
    Send {
        /// The connection.
        link: Link,
        /// What to write.
        frame: Frame,
    },
    /// Close a connection, at once. The session has forgotten it: nothing is to be told.
    Disconnect {
        /// The connection.
        link: Link,
    },
    /// A call has ended.
    Done {
        /// Which.
        call: CallId,
        /// How.
        result: Result<Bytes, CallError>,
        /// What each replica said, of a call that all were asked; else none.
        answers: Vec<Answer>,
    },
    /// Something that logs, metrics and people want to know.
    Event(Event),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A node answered: calls may travel there.
    Connected {
        /// Where.
        address: SocketAddr,
        /// Which node it says it is.
        node: NodeId,
    },
    /// A connection ended, or could not be made.
    Lost {
        /// Where.
        address: SocketAddr,
        /// Why.
        trouble: Trouble,
    },
    /// A call under way goes to another node.
    FailedOver {
        /// The group that is called.
        group: GroupId,
        /// The call's number in its session.
        number: u64,
        /// Where it was sent before.
        from: SocketAddr,
        /// Where it is sent now.
        to: SocketAddr,
        /// Why.
        cause: Cause,
    },
    /// A newer view of a group is known.
    View {
        /// The group.
        group: GroupId,
        /// Its view.
        view: ViewNumber,
        /// The first target, if any replica may answer.
        first: Option<SocketAddr>,
    },
}

/// Why a call goes to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The connection was lost.
    Lost,
    /// No reply came within the attempt's time-out.
    Silent,
    /// The group's targets changed.
    Redirected,
    /// Its host has too much to do, and names one that has room.
    Shed,
}

/// What went wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It could not be connected to, or the connection was closed before the node answered.
    #[error("does not accept connections")]
    Refused,
    /// An established connection was closed.
    #[error("closed the connection")]
    Closed,
    /// Nothing came back for too long.
    #[error("does not answer")]
    Silent,
    /// The node speaks another version of the protocol.
    #[error("speaks protocol version {0}")]
    Version(u8),
    /// The node closed the connection and said why.
    #[error("turned the client away: {0}")]
    TurnedAway(String),
    /// TLS with it failed: one side does not trust the other. The text says what to do.
    #[error("cannot be talked with by TLS: {0}")]
    Distrusted(String),
    /// Frames came that no node sends to a client.
    #[error("does not behave like a Steadfast node")]
    Confused,
}

/// Counters since the session began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls that were begun.
    pub calls: u64,
    /// Requests that were sent: at least one for each call that reached a node.
    pub attempts: u64,
    /// Moves of a call to another node, after a loss, a time-out or a redirection.
    pub fail_overs: u64,
    /// Pauses of a call because nobody could serve it.
    pub pauses: u64,
    /// Connections that a node answered on.
    pub connects: u64,
    /// Connections that a node answered on at an address that was connected to before.
    pub reconnects: u64,
    /// Connections that were lost or could not be made.
    pub losses: u64,
    /// Replies to attempts that had ended.
    pub late_replies: u64,
    /// Attempts after one that was lost or silent: of calls that may have been executed.
    pub retries: u64,
    /// Questions for newer targets that a period asked for.
    pub refreshes: u64,
    /// Calls for which a second replica was asked before the first had failed.
    pub hedges: u64,
    /// Late replies that brought a result again: the call had its answer from another replica.
    pub copies: u64,
    /// Refusals because a host has too much to do for a call of this priority.
    pub shed: u64,
    /// Calls that went to a node which such a refusal had named.
    pub sent_on: u64,
    /// Calls that ended at their deadline.
    pub expired: u64,
}

/// What every part of the machine may do: put things out, set timers, draw, count.
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

/// What a timer is for. There is at most one for each.
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
