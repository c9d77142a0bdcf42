//! A call as its caller describes it.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use wire::MethodId;
use wire::client::Access;
use wire::limits::MAX_SESSION_WINDOW;

use crate::Balancing;

/// The deadline of a call that sets none.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(1);

/// The description of one call: the group, the method, and how the client makes the call.
///
/// The name keeps three things apart. A caller describes an *invocation*. The client sends it in
/// one or more *requests*. A service's handler receives a *call* (`steadfast::Call`).
///
/// ```
/// use std::time::Duration;
/// use steadfast_client::{Balancing, Invocation, Reading};
///
/// let add = Invocation::new("counter", "add").json().body("[5]");
/// let patient = add.clone().within(Duration::from_secs(10));
/// assert_eq!((add.deadline, patient.deadline), (None, Some(Duration::from_secs(10))));
///
/// // A method that changes nothing needs no order. One replica answers it.
/// let get = Invocation::new("counter", "get").json().body("[]").reading(Reading::Linearizable);
///
/// // This one goes to all replicas at once, whatever the client's policy says.
/// let voted = get.balancing(Balancing::Majority);
/// # let _ = voted;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "an invocation does nothing until a client makes the call"]
pub struct Invocation<'a> {
    /// The name of the group.
    pub group: Cow<'a, str>,
    /// The method.
    pub method: MethodId,
    /// The encoded arguments.
    pub body: Bytes,
    /// True if the arguments and the result are JSON, not postcard.
    pub json: bool,
    /// How a read is answered. `None` is a call that may change the state.
    pub reading: Option<Reading>,
    /// The replicas that receive this call. `None` leaves them to the client's policy.
    pub balancing: Option<Balancing>,
    /// The call's number, if its caller counts calls. `None` leaves that to the client.
    pub key: Option<Key>,
    /// How critical the call is, from 0 to 255. `None` leaves that to the client's policy.
    pub priority: Option<u8>,
    /// The longest time to an answer. `None` means [`DEFAULT_DEADLINE`] at a client, and the
    /// handler's own time in a handler.
    pub deadline: Option<Duration>,
}

impl<'a> Invocation<'a> {
    /// Describes a call of this method, without arguments.
    ///
    /// The method is a name, or a [`MethodId`] that a constant holds.
    pub fn new(group: impl Into<Cow<'a, str>>, method: impl Into<MethodId>) -> Invocation<'a> {
        Invocation {
            group: group.into(),
            method: method.into(),
            body: Bytes::new(),
            json: false,
            reading: None,
            balancing: None,
            key: None,
            priority: None,
            deadline: None,
        }
    }

    /// Sets the encoded arguments.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Invocation { body: body.into(), ..self }
    }

    /// Says that the arguments and the result are JSON. Without this they are postcard.
    pub fn json(self) -> Self {
        Invocation { json: true, ..self }
    }

    /// Sets the deadline, at most [`MAX_DEADLINE`](wire::limits::MAX_DEADLINE) from now.
    pub fn within(self, deadline: Duration) -> Self {
        Invocation { deadline: Some(deadline), ..self }
    }

    /// Makes the call a read: one replica answers it, without ordering.
    ///
    /// Only methods that change nothing (`&self` in the service's trait) can be read. The service
    /// refuses to read other methods ([`NotReadOnly`](wire::client::Refusal::NotReadOnly)).
    pub fn reading(self, reading: Reading) -> Self {
        Invocation { reading: Some(reading), ..self }
    }

    /// Chooses the replicas of this call, in place of the policy's [`Balancing`].
    pub fn balancing(self, balancing: Balancing) -> Self {
        Invocation { balancing: Some(balancing), ..self }
    }

    /// Sets how critical the call is, in place of the policy's priority.
    pub fn priority(self, priority: u8) -> Self {
        Invocation { priority: Some(priority), ..self }
    }

    /// Gives the call its number. Only clients of a named session take such calls, and no others:
    /// see `Builder::session`.
    pub fn keyed(self, key: Key) -> Self {
        Invocation { key: Some(key), ..self }
    }

    pub(crate) fn access(&self) -> Access {
        self.reading.map_or(Access::Change, Access::from)
    }

    /// The call goes to all replicas, and waits for all unless it says for how many.
    pub(crate) fn for_all(self) -> Self {
        let balancing = self.balancing.filter(|balancing| balancing.replies().is_some());
        self.balancing(balancing.unwrap_or(Balancing::All))
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn into_owned(self) -> Invocation<'static> {
        Invocation { group: Cow::Owned(self.group.into_owned()), ..self }
    }
}

/// The number of a call in a session whose calls a program counts in place of its client.
///
/// So a call keeps its number when it comes by another client, as a call of a gateway's caller does
/// that is repeated at another gateway. It is executed once, and both have its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Which of the session's calls, from 1. A repeated call has the number of the first attempt.
    pub number: u64,
    /// The caller has the replies to all calls below this number, or has given them up. From 1, at
    /// most `number`, and less than [`MAX_SESSION_WINDOW`] below it.
    pub unanswered: u64,
}

/// The greatest number of a call.
const MOST: u64 = i64::MAX as u64;

impl Key {
    /// Why no session can have such a call.
    pub(crate) fn check(self) -> Result<(), String> {
        let Key { number, unanswered } = self;
        if number > MOST {
            return Err(format!("call {number}: numbers count from 1 to {MOST}"));
        }
        if unanswered == 0 || unanswered > number {
            return Err(format!(
                "call {number} with {unanswered} as the first unanswered one: that is from 1 to \
                 the call's own number"
            ));
        }
        if number - unanswered >= MAX_SESSION_WINDOW {
            return Err(format!(
                "call {number} while {unanswered} is unanswered: a session has at most \
                 {MAX_SESSION_WINDOW} calls under way; use a further session"
            ));
        }
        Ok(())
    }
}

/// How a read is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// The answer was true at some moment during the call. The read sees every call that was
    /// answered before it began.
    #[default]
    Linearizable,
    /// The answer may be this old: at least 1 ms, at most [`MAX_STALE`].
    ///
    /// Such a read is faster, and replicas answer it while the cluster forms anew. A replica that
    /// may be older asks the others first.
    Stale(Duration),
}

/// The largest age of [`Reading::Stale`]. A longer one counts as this.
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
