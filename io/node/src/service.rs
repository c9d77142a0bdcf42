//! A service at the level of bytes.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use client::Invocation;
use config::Execution;
use engine::{NestedCall, NestedError, ServiceOutcome, Ticket};
use wire::attach::View;
use wire::client::Refusal;
use wire::limits::{MAX_DEADLINE, MAX_NAME};
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};
use wire::{ClientId, Duration, MethodId, Random, Time};

/// Why a service cannot give or take a state: any error, or words (`"why".into()`). It stands in
/// the node's log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A replicated service. Every replica executes the same calls in the same order, so a handler
/// must be deterministic: what it answers and leaves behind may depend on nothing but the state,
/// the call and the [`Context`]. Clocks, random numbers, threads, files and hash maps with random
/// order make replicas differ. In a warm passive group ([`Style`](wire::ordered::Style)) only the
/// primary executes, and handlers may do as they like with what is their own.
pub trait Service: Any + Send {
    /// Executes one call.
    ///
    /// A panic is caught and becomes a refusal at every replica; the state stays as the handler
    /// left it.
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome;

    /// Executes one call that changes nothing, at this replica alone: so it must change nothing
    /// that a later call or the state could show. Other methods are refused with
    /// [`not_read_only`](wire::client::Refusal::NotReadOnly), as all are here.
    fn read(&self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        let _ = (context, call);
        let reason = "this service has no read-only methods: do not call it as a read";
        ServiceOutcome::Refused(Refusal::NotReadOnly, reason.into())
    }

    /// The whole state.
    ///
    /// # Errors
    /// Why it cannot be taken, in words.
    fn snapshot(&self) -> Result<Vec<u8>, BoxError>;

    /// The whole state, if it has no more bytes than this: a replica tries small states now and
    /// then, and calls wait meanwhile. By default the whole one is made, and looked at.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    fn snapshot_within(&self, bytes: usize) -> Result<Option<Vec<u8>>, BoxError> {
        Ok(Some(self.snapshot()?).filter(|state| state.len() <= bytes))
    }

    /// Replaces the whole state by what another replica's `snapshot` gave. It is asked of an instance
    /// in the initial state, which takes the place of the one before once it has read the state.
    ///
    /// # Errors
    /// Why the bytes are not a state, in words. The replica is not given the group's state then.
    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError>;

    /// As [`restore`](Self::restore), and tells which fields of the given state were left out because
    /// this version of the service does not know them.
    ///
    /// # Errors
    /// As `restore`.
    fn restore_telling(&mut self, state: &[u8], dropped: &mut Vec<String>) -> Result<(), BoxError> {
        let _ = dropped;
        self.restore(state)
    }

    /// Whether two states are the same, but for the order of what a hash map has in them. By
    /// default they must have the same bytes, in whatever order.
    fn is_same_state(&self, one: &[u8], other: &[u8]) -> bool {
        has_same_bytes(one, other)
    }

    /// A digest of a state, for a comparison with those of other replicas: what differs is an alarm.
    /// It is equal for states that are the same but for the order of what a hash map has in them. By
    /// default it is made of how often the state has each byte.
    fn digest(&self, state: &[u8]) -> u64 {
        digest_of_bytes(state)
    }

    /// The group has this view from here on: it is told among the calls, at the same place at each
    /// replica with the state, but for views between which there was no call: a replica that was
    /// away may have missed them. So the state may depend on the newest view, and not on how many
    /// there were.
    fn view(&mut self, view: &View) {
        let _ = view;
    }

    /// Whether states of histories that have parted can be merged: without a quorum both sides of a
    /// partition go on, and where they meet again one of them is given up.
    fn merges(&self) -> bool {
        false
    }

    /// Merges the state of another history with this one, among the calls. `other` is a service as the
    /// factory makes it, with that state. Calls from before the two parted are in both, and a call whose
    /// answer was lost may be: what both have counts once.
    ///
    /// # Errors
    /// Why it cannot be done, in words: the same at every replica. Then this state must be as before,
    /// and the other's calls are told as discarded.
    fn merge(&mut self, other: Box<dyn Service>) -> Result<(), BoxError> {
        let _ = other;
        Err("this service merges no states".into())
    }

    /// Only for the primary of a warm passive group: what the calls have changed since this was
    /// asked last, or since the state came, in words that [`apply`](Self::apply) understands.
    /// `None`, as by default: the node finds out by comparing whole states, which costs a snapshot
    /// of all of it at each update. Worth the trouble for a state of more than some kilobytes.
    ///
    /// # Errors
    /// Why it cannot be told, in words. Another replica then becomes primary, if one has the state.
    fn delta(&mut self) -> Result<Option<Vec<u8>>, BoxError> {
        Ok(None)
    }

    /// Only for a backup of a warm passive group whose service gives a [`delta`](Self::delta):
    /// makes that change here.
    ///
    /// # Errors
    /// Why it cannot be made, in words. The replica then gets the whole state anew.
    fn apply(&mut self, delta: &[u8]) -> Result<(), BoxError> {
        let _ = delta;
        Err("this service takes no deltas: the group's primary runs another version of it".into())
    }
}

/// The same bytes, in whatever order: hash maps of equal content are written in different ones.
pub fn has_same_bytes(one: &[u8], other: &[u8]) -> bool {
    one == other || (one.len() == other.len() && counts(one) == counts(other))
}

/// A digest of how often each byte is there, in whatever order: FNV-1a of the 256 counts.
pub fn digest_of_bytes(bytes: &[u8]) -> u64 {
    counts(bytes)
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .fold(FNV.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV.1))
}

/// The offset and the prime of FNV-1a.
pub(crate) const FNV: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x100_0000_01b3);

fn counts(bytes: &[u8]) -> [u64; 256] {
    let mut counts = [0; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    counts
}

/// Makes a service in its initial state: at hosting, and when a replica has to begin anew.
pub type Factory = Box<dyn Fn() -> Box<dyn Service> + Send>;

/// One call of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// Which method.
    pub method: MethodId,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// The arguments.
    pub body: &'a [u8],
}

/// The input of a handler besides its state and its arguments: the same at every replica.
#[derive(Debug)]
pub struct Context {
    now: Time,
    random: RefCell<Random>,
    client: ClientId,
    number: u64,
    outside: Outside,
}

/// How a handler reaches other groups.
#[derive(Clone, Debug)]
pub(crate) enum Outside {
    /// Through its node, in the course of this command.
    Node(Arc<dyn Line>, Ticket),
    /// Not at all, for this reason.
    None(&'static str),
}

/// The way from a handler to its node, and back.
pub(crate) trait Line: fmt::Debug + Send + Sync {
    /// Calls another group, and waits for what comes of it.
    fn call(&self, call: NestedCall) -> Result<Bytes, NestedError>;
}

impl Context {
    /// The context of one call. Public so that a service can be tested without a node.
    pub fn new(now: Time, seed: u64, client: ClientId, number: u64) -> Self {
        let outside = Outside::None(
            "this context is a test's own: only a handler that a node runs can call another group",
        );
        Context { now, random: RefCell::new(Random::new(seed)), client, number, outside }
    }

    /// The context of a handler that is run by a node.
    pub(crate) fn with_outside(self, outside: Outside) -> Self {
        Context { outside, ..self }
    }

    /// Ordered time, in nanoseconds since the Unix epoch: never running backwards.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A generator of ordered random numbers. Each call of this function gives another one.
    pub fn random(&self) -> Random {
        self.random.borrow_mut().fork()
    }

    /// The client that calls.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// Which of the client's calls, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Calls another group and waits for its reply. The call is executed exactly once, whichever
    /// replica of either group fails meanwhile.
    ///
    /// The identity of the call follows from the call that this handler executes. A handler that is
    /// executed again makes the same calls again, and gets the same replies. So an invocation may
    /// depend only on what a handler may depend on.
    ///
    /// The call takes at most seven eighths of the time that the handler's own call has left, and
    /// at most the invocation's deadline, if it has one. Meanwhile this replica executes nothing
    /// else. A generated `...Nested` type calls by the trait's methods.
    ///
    /// ```
    /// use client::Invocation;
    /// use steadfast_node::{Context, NestedError};
    ///
    /// fn take(context: &Context, pieces: u32) -> Result<bytes::Bytes, NestedError> {
    ///     let take = Invocation::new("stock", "take").json().body(format!("[{pieces}]"));
    ///     context.call(take)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`NestedError`] tells what became of the call, alike at every replica. These calls fail:
    ///
    /// - a call of a group that waits for the call of this handler,
    /// - more than [`MAX_NESTED_CALLS`](wire::limits::MAX_NESTED_CALLS) calls of one handler,
    /// - a call of a handler that runs [inline](Execution::Inline),
    /// - a read, or a call with a [`Balancing`](client::Balancing): all replicas of the called
    ///   group order a nested call.
    pub fn call(&self, invocation: Invocation<'_>) -> Result<Bytes, NestedError> {
        let Invocation { group, method, json, body, reading, balancing, deadline, .. } = invocation;
        if reading.is_some() || balancing.is_some() {
            return Err(NestedError::Unable(
                "a handler's call is ordered by the called group: leave `reading` and `balancing` out",
            ));
        }
        let (line, ticket) = match &self.outside {
            Outside::Node(line, ticket) => (line, *ticket),
            Outside::None(reason) => return Err(NestedError::Unable(reason)),
        };
        if group.is_empty() || group.len() > MAX_NAME {
            return Err(NestedError::NoSuchGroup);
        }
        let timeout = deadline.unwrap_or(MAX_DEADLINE).min(MAX_DEADLINE);
        let timeout = Duration::from_micros(timeout.as_micros() as u64);
        let callee = group.into_owned();
        line.call(NestedCall { ticket, callee, method, json, body, timeout })
    }
}

/// How a replica is hosted.
///
/// ```
/// use steadfast_node::HostOptions;
/// use wire::ordered::Style;
///
/// let options = HostOptions::default().style(Style::Active).on_disk();
/// assert_eq!(options.group.style, Style::Active);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    /// Options on which all replicas of the group must agree.
    pub group: GroupOptions,
    /// Where the handlers run at this node.
    pub execution: Execution,
}

impl HostOptions {
    /// The group is replicated in this style.
    pub fn style(mut self, style: Style) -> HostOptions {
        self.group.style = style;
        self
    }

    /// So many nodes must have a request before its reply may leave.
    pub fn ack(mut self, ack: AckLevel) -> HostOptions {
        self.group.ack = ack;
        self
    }

    /// The group is kept on the disks of its nodes, which need `[storage]`.
    pub fn on_disk(mut self) -> HostOptions {
        self.group.durability = Durability::Disk;
        self
    }

    /// Handlers run on the data plane's own thread: for handlers of a few microseconds.
    pub fn inline(mut self) -> HostOptions {
        self.execution = Execution::Inline;
        self
    }

    /// Normal, critical and alarm calls have a thread and a service each: only for stateless
    /// groups. See [`Execution::Lanes`].
    pub fn in_lanes(mut self) -> HostOptions {
        self.execution = Execution::Lanes;
        self
    }
}

#[cfg(test)]
mod tests {
    use client::{Balancing, Reading};

    use super::*;

    #[test]
    fn a_handler_neither_reads_nor_chooses_replicas() {
        let context = Context::new(Time(1), 1, ClientId(1), 1);
        let call = Invocation::new("stock", "left");
        let read = call.clone().reading(Reading::Linearizable);
        for refused in [read, call.balancing(Balancing::All)] {
            let Err(NestedError::Unable(reason)) = context.call(refused) else {
                panic!("such a call is not what the handler asks for");
            };
            assert!(reason.contains("leave `reading` and `balancing` out"), "{reason}");
        }
    }
}
