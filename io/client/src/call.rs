//! A session's record of one call.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wire::client::Access;
use wire::{GroupId, MethodId, Time};

use crate::CallError;
use crate::invocation::{Invocation, Key};
use crate::policy::Balancing;
use crate::spread::Spread;
use crate::trail::Trail;

/// An attempt waits for this share of what is left of the deadline, within the bounds.
const ATTEMPT_SHARE: u32 = 4;

const ATTEMPT_LEAST: Duration = Duration::from_millis(20);

const ATTEMPT_MOST: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In its group's queue, without a number.
    Queued,
    /// Sent, or to be sent when a connection is there.
    Attempting,
    /// Nobody could serve; news of the group end the pause early.
    Pausing,
}

/// The part of a call that its service gets.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) method: MethodId,
    pub(crate) json: bool,
    pub(crate) body: Bytes,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) group: GroupId,
    pub(crate) content: Content,
    pub(crate) access: Access,
    /// Its own, or that of its group's policy.
    pub(crate) balancing: Balancing,
    pub(crate) deadline: Time,
    /// Its own, in place of its group's policy.
    pub(crate) priority: Option<u8>,
    /// Its number by its caller, if that counts calls.
    pub(crate) key: Option<Key>,
    /// 0 until it leaves the queue.
    pub(crate) number: u64,
    pub(crate) phase: Phase,
    /// Where it has gone.
    pub(crate) trail: Trail,
    pub(crate) hops: usize,
    pub(crate) pauses: u32,
    /// How often a node has had no room for it.
    pub(crate) refusals: u32,
    /// Which one had none just now.
    pub(crate) full: Option<SocketAddr>,
    /// A request was sent on a connection that is gone: it may have been executed.
    pub(crate) unsure: bool,
    /// The next attempt is a retry, which has to be paid for.
    pub(crate) owes: bool,
    /// It goes on when a question for targets has been answered.
    pub(crate) asks: bool,
    /// The error of the last reply without a result.
    pub(crate) obstacle: Option<CallError>,
    /// It has gone to a node that another named which would not take it.
    pub(crate) sent_on: bool,
    /// All replicas are to be asked.
    pub(crate) spread: Option<Spread>,
}

impl Call {
    pub(crate) fn new(
        group: GroupId,
        invocation: Invocation<'_>,
        balancing: Balancing,
        deadline: Time,
    ) -> Self {
        Call {
            group,
            access: invocation.access(),
            content: Content {
                method: invocation.method,
                json: invocation.json,
                body: invocation.body,
            },
            balancing,
            deadline,
            priority: invocation.priority,
            key: invocation.key,
            number: 0,
            phase: Phase::Queued,
            trail: Trail::default(),
            hops: 0,
            pauses: 0,
            refusals: 0,
            full: None,
            unsure: false,
            owes: false,
            asks: false,
            obstacle: None,
            sent_on: false,
            spread: balancing.replies().map(Spread::new),
        }
    }

    /// A request is or was out that nobody has declined.
    pub(crate) fn may_be_executed(&self) -> bool {
        self.unsure || self.trail.is_out()
    }

    /// A new round over the targets: only where the request still lies is left out.
    pub(crate) fn begin_round(&mut self) {
        self.trail.begin_round();
        if let Some(spread) = &mut self.spread {
            spread.begin_round();
        }
    }

    /// The end of an attempt that begins now. `path`: hardly any answer takes longer.
    pub(crate) fn attempt_end(&self, now: Time, path: Duration) -> Time {
        let share = self.deadline.since(now) / ATTEMPT_SHARE;
        let span = share.clamp(ATTEMPT_LEAST, ATTEMPT_MOST).max(path);
        self.deadline.min(now + span)
    }
}
