//! A service under guard: its panics end neither the replica nor whoever hosts it, and what it says is
//! kept within limits. The same in a node's thread and in a program of its own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use engine::{Command, Executed, ServiceOutcome};
use wire::client::Refusal;
use wire::limits::{MAX_BODY, MAX_REASON};
use wire::{Duration, GroupId};

use super::{Done, StateReply};
use crate::HostError;
use crate::service::{Call, Context, Factory, Service};
use crate::timer::monotonic;

/// A handler that took less than this the last time is waited for before what it ordered is sent:
/// less than the three system calls that it goes before.
const QUICK: Duration = Duration::from_micros(20);

/// One service, and how it is spoken with.
pub(crate) struct Replica {
    group: GroupId,
    serial: u64,
    make: Factory,
    /// `None` after the factory panicked.
    service: Option<Box<dyn Service>>,
    /// Its last call was.
    pub quick: bool,
}

impl Replica {
    pub fn new(group: GroupId, serial: u64, make: Factory) -> Replica {
        // A panic here is the caller's of `host`, on its own thread.
        let service = Some(make());
        Replica { group, serial, make, service, quick: false }
    }

    /// Executes a command; `Reset` has no outcome.
    pub fn run(&mut self, command: Command) -> Option<Done> {
        let bytes = bytes_of(&command);
        let (ticket, (executed, panicked)) = match command {
            Command::Execute { ticket, method, json, body, now, seed, client, number } => {
                let context = Context::new(now, seed, client, number);
                let call = Call { method, json, body: &body };
                (ticket, self.execute(&context, call))
            }
            Command::Snapshot { ticket } => {
                let state = self.snapshot().map(Bytes::from);
                (ticket, (Executed::Snapshot(state), false))
            }
            Command::Restore { ticket, state } => {
                (ticket, (Executed::Restored(self.restore(&state)), false))
            }
            Command::Reset => {
                self.service = guarded("factory", || (self.make)()).ok();
                return None;
            }
        };
        Some(Done { group: self.group, serial: self.serial, ticket, executed, panicked, bytes })
    }

    fn execute(&mut self, context: &Context, call: Call<'_>) -> (Executed, bool) {
        let begun = monotonic();
        let outcome = match &mut self.service {
            Some(service) => guarded("call", || service.call(context, call)),
            None => Err(()),
        };
        self.quick = monotonic().since(begun) < QUICK;
        let panicked = outcome.is_err();
        // The text must be the same at every replica, so it does not repeat the panic's.
        let outcome = outcome.unwrap_or_else(|()| {
            let reason = "the service panicked in this call; the logs of its nodes say where";
            ServiceOutcome::Refused(Refusal::Failed, reason.into())
        });
        (Executed::Reply(limited(outcome)), panicked)
    }

    fn snapshot(&self) -> Result<Vec<u8>, String> {
        let service = self.service.as_ref().ok_or("the service could not be made")?;
        guarded("snapshot", || service.snapshot())
            .unwrap_or_else(|()| Err("the service panicked while its state was taken".into()))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let service = self.service.as_mut().ok_or("the service could not be made")?;
        guarded("restore", || service.restore(state))
            .unwrap_or_else(|()| Err("the service panicked while its state was restored".into()))
    }

    /// Gives the state to whoever asked for it.
    pub fn answer_state(&self, reply: &StateReply) {
        // Whoever asked may have given up.
        let _ = reply.try_send(self.snapshot().map_err(HostError::Snapshot));
    }
}

/// Bytes of a request.
pub(crate) fn bytes_of(command: &Command) -> usize {
    match command {
        Command::Execute { body, .. } => body.len(),
        _ => 0,
    }
}

/// Runs the service's code; its panic ends neither the replica nor the node. What the service's
/// state is then, is for the service to say: the same at every replica.
fn guarded<T>(what: &str, run: impl FnOnce() -> T) -> Result<T, ()> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        tracing::error!(panic = panic_text(&*panic), "a service panicked in its {what}");
    })
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Keeps what the service says within what a reply may carry.
pub(super) fn limited(outcome: ServiceOutcome) -> ServiceOutcome {
    match outcome {
        ServiceOutcome::Ok(body) | ServiceOutcome::Error(body) if body.len() > MAX_BODY => {
            let reason = format!(
                "the reply has {} bytes, at most {MAX_BODY} fit: ask for less at a time",
                body.len()
            );
            ServiceOutcome::Refused(Refusal::ReplyTooLarge, reason)
        }
        ServiceOutcome::Refused(refusal, reason) => ServiceOutcome::Refused(refusal, cut(reason)),
        fine => fine,
    }
}

/// A reason, cut between characters where the wire would refuse it.
pub(crate) fn cut(mut reason: String) -> String {
    let fits = |end: &usize| reason.is_char_boundary(*end);
    let end = (0..=reason.len().min(MAX_REASON)).rev().find(fits).unwrap_or(0);
    reason.truncate(end);
    reason
}
