//! A service under guard: its panics end neither the replica nor its host, and its outputs are kept
//! within limits. It is the same in a node's thread and in a separate program.

use std::sync::Arc;

use bytes::Bytes;
use engine::{Applied, Changes, Command, Executed, ServiceOutcome};
use os::clock::monotonic;
use wire::attach::{Digested, View};
use wire::client::Refusal;
use wire::limits::MAX_BODY;
use wire::ordered::{MERGE, StateDigest, Style};
use wire::{Duration, GroupId};

use super::digest;
use super::guard::{ask, cut, guarded};
use super::report::{Done, News, StateReply};
use super::trial::{Trials, dropped};
use crate::error::HostError;
use crate::heavy;
use crate::service::{Call, Context, Factory, Line, Outside, Service};

/// A handler that took less than this the last time is waited for before what it ordered is sent:
/// less than the three system calls that it goes before.
const QUICK: Duration = Duration::from_micros(20);

/// Why a handler on the data plane cannot call.
const INLINE: &str = "this replica runs on its node's data plane, which a call would stop: host it with a thread of its own \
    (Execution::Thread, `execution = \"thread\"`), at every node alike";

/// One service, and how it is spoken with.
pub(crate) struct Replica {
    group: GroupId,
    serial: u64,
    make: Factory,
    /// How its handlers call other groups, if they can.
    line: Option<Arc<dyn Line>>,
    /// `None` after the factory panicked, and in a cold passive group while another replica is
    /// primary.
    service: Option<Box<dyn Service>>,
    /// Nothing has happened to it since it was made.
    pristine: bool,
    /// Changes to send and to apply. A group whose replicas all execute has none.
    changes: Option<Changes>,
    /// Its last call was.
    pub quick: bool,
    trials: Trials,
    /// News of the state, to be told once.
    news: Vec<News>,
    /// Its service merges states.
    merges: bool,
}

impl Replica {
    /// Makes the service, and tries its initial state.
    ///
    /// # Errors
    /// Why the state would not come back as it is.
    pub fn new(
        group: GroupId,
        serial: u64,
        make: Factory,
        style: Style,
        line: Option<Arc<dyn Line>>,
    ) -> Result<Replica, String> {
        // A panic here is the caller's of `host`, on its own thread.
        let service = (style != Style::ColdPassive).then(&make);
        let changes = (style == Style::WarmPassive).then(Changes::default);
        let mut trials = Trials::default();
        if let Some(service) = service.as_ref().filter(|_| style.has_state()) {
            trials.begin(&**service, &make)?;
        }
        // Asked for once: in a cold passive group its service may run much later.
        let merges = match &service {
            Some(service) => service.merges(),
            None => make().merges(),
        };
        let (quick, news, pristine) = (false, Vec::new(), true);
        Ok(Replica {
            group,
            serial,
            make,
            line,
            service,
            pristine,
            changes,
            quick,
            trials,
            news,
            merges,
        })
    }

    /// Executes a command; `Digest`, `View`, `Start`, `Style`, `Reset` and `Stop` have no outcome.
    pub fn run(&mut self, command: Command) -> Option<Done> {
        let bytes = bytes_of(&command);
        let (ticket, (executed, panicked)) = match command {
            Command::Execute {
                ticket,
                method,
                json,
                read,
                body,
                now,
                seed,
                client,
                number,
                ..
            } => {
                let outside = match &self.line {
                    Some(line) => Outside::Node(line.clone(), ticket),
                    None => Outside::None(INLINE),
                };
                let context = Context::new(now, seed, client, number).with_outside(outside);
                let call = Call { method, json, body: &body };
                match method == MERGE {
                    true => (ticket, self.merge(&body)),
                    false => (ticket, self.execute(&context, call, read)),
                }
            }
            Command::Snapshot { ticket } => {
                let current = self.changes.as_ref().and_then(Changes::current).cloned();
                let state = current.map_or_else(|| self.snapshot().map(heavy::bytes), Ok);
                self.trials.seen(state.as_ref().map_or(0, Bytes::len));
                (ticket, (Executed::Snapshot(state), false))
            }
            Command::Restore { ticket, state } => {
                let restored = self.restore(&state);
                self.trials.seen(state.len());
                if let (Some(changes), Ok(())) = (&mut self.changes, &restored) {
                    changes.restored(state);
                }
                (ticket, (Executed::Restored(restored), false))
            }
            Command::Change { ticket } => (ticket, (Executed::Change(self.change()), false)),
            Command::Apply { ticket, change } => {
                (ticket, (Executed::Applied(self.apply(&change)), false))
            }
            Command::Digest { number } => {
                let told = self.digest().map(|state| News::Digest(Digested { number, state }));
                self.news.extend(told);
                return None;
            }
            Command::View(view) => {
                self.view(&view);
                return None;
            }
            Command::Style(style) => {
                self.take_style(style);
                return None;
            }
            Command::Start(style) => {
                self.changes = (style == Style::WarmPassive).then(Changes::default);
                self.renew();
                return None;
            }
            Command::Stop => {
                (self.service, self.changes) = (None, None);
                return None;
            }
            Command::Reset => {
                if let Some(changes) = &mut self.changes {
                    changes.reset();
                }
                self.renew();
                return None;
            }
        };
        Some(Done { group: self.group, serial: self.serial, ticket, executed, panicked, bytes })
    }

    fn execute(&mut self, context: &Context, call: Call<'_>, read: bool) -> (Executed, bool) {
        if let Some(changes) = self.changes.as_mut().filter(|_| !read) {
            changes.executed();
        }
        let begun = monotonic();
        let outcome = match &mut self.service {
            Some(service) if read => guarded("read", || service.read(context, call)),
            Some(service) => guarded("call", || service.call(context, call)),
            None => Err(()), // it could not be made
        };
        self.quick = monotonic().since(begun) < QUICK;
        let panicked = outcome.is_err();
        // The text must be the same at every replica, so it does not repeat the panic's.
        let outcome = outcome.unwrap_or_else(|()| {
            let reason = "the service panicked in this call; the logs of its nodes say where";
            ServiceOutcome::Refused(Refusal::Failed, reason.into())
        });
        if !read {
            self.pristine = false;
            self.trials.executed();
        }
        (Executed::Reply(limited(outcome)), panicked)
    }

    /// Merges the state of another history with the service's. Its words are the same at every replica.
    fn merge(&mut self, state: &[u8]) -> (Executed, bool) {
        if let Some(changes) = &mut self.changes {
            changes.executed();
        }
        let make = &self.make;
        let merged = match &mut self.service {
            Some(service) if !service.merges() => {
                let reason = "this service merges no states";
                let outcome = ServiceOutcome::Refused(Refusal::NoSuchMethod, reason.into());
                return (Executed::Reply(outcome), false);
            }
            Some(service) => ask("merge", || {
                let mut other = make();
                other.restore(state)?;
                service.merge(other)
            }),
            None => Err(NOT_RUNNING.into()),
        };
        self.pristine = false;
        self.trials.executed();
        let outcome = match merged {
            Ok(()) => ServiceOutcome::Ok(Bytes::new()),
            Err(reason) => ServiceOutcome::Refused(Refusal::Failed, cut(reason)),
        };
        (Executed::Reply(outcome), false)
    }

    /// The group has another view. A panic leaves the state as it is then, as one in a call does.
    fn view(&mut self, view: &View) {
        if let Some(service) = &mut self.service {
            self.pristine = false;
            let _ = guarded("view", || service.view(view));
        }
    }

    /// Its service merges states.
    pub fn merges(&self) -> bool {
        self.merges
    }

    /// Its group, and which of the executors that the group has had here.
    pub fn name(&self) -> (GroupId, u64) {
        (self.group, self.serial)
    }

    /// There is, or may be, news of the state: to be asked for once the call was answered.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.trials.is_due() || !self.news.is_empty()
    }

    /// Tries the state if that is due, and returns the news of it.
    pub fn take_news(&mut self) -> Vec<News> {
        let mut news = std::mem::take(&mut self.news);
        // In a cold passive group it runs at the primary alone.
        if let Some(service) = self.service.as_ref().filter(|_| self.trials.is_due()) {
            news.extend(self.trials.due(&**service, &self.make).map(News::Notice));
        }
        news
    }

    /// A digest of the state, unless that is large.
    #[cold]
    fn digest(&mut self) -> Option<StateDigest> {
        let (service, form) = (self.service.as_ref()?, digest::form()?);
        let state = self.trials.small_state(&**service)?;
        let value = guarded("digest", || service.digest(&state)).ok()?;
        Some(StateDigest { form, value })
    }

    fn snapshot(&self) -> Result<Vec<u8>, String> {
        let service = self.service.as_ref().ok_or(NOT_RUNNING)?;
        ask("snapshot", || service.snapshot())
    }

    /// Makes the service anew, in its initial state.
    fn renew(&mut self) {
        self.service = guarded("factory", || (self.make)()).ok();
        self.pristine = true;
    }

    /// The present state must outlast one that cannot be read: so another instance reads that, unless
    /// nothing has happened to this one.
    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let before = if self.pristine { None } else { self.service.take() };
        if before.is_some() {
            self.renew();
        }
        let restored = self.take_state(state);
        match (&restored, before) {
            (Ok(()), _) => {}
            (Err(_), Some(before)) => (self.service, self.pristine) = (Some(before), false),
            (Err(_), None) => self.renew(),
        }
        restored
    }

    fn take_state(&mut self, state: &[u8]) -> Result<(), String> {
        self.pristine = false;
        let service = self.service.as_mut().ok_or("the service could not be made")?;
        let mut fields = Vec::new();
        ask("restore", || service.restore_telling(state, &mut fields))?;
        self.news.extend(dropped(fields).map(News::Notice));
        Ok(())
    }

    /// Returns what the calls have changed since the last time.
    fn change(&mut self) -> Result<Bytes, String> {
        let mut changes = self.changes.take().ok_or(NOT_PASSIVE)?;
        let change = self.own_change().and_then(|own| changes.take(own, || self.snapshot()));
        self.changes = Some(changes);
        change
    }

    fn own_change(&mut self) -> Result<Option<Vec<u8>>, String> {
        let service = self.service.as_mut().ok_or("the service could not be made")?;
        ask("delta", || service.delta())
    }

    /// Makes the state what it became at the primary.
    fn apply(&mut self, change: &Bytes) -> Result<(), String> {
        match self.changes.as_mut().ok_or(NOT_PASSIVE)?.apply(change)? {
            Applied::State(state) => self.take_state(&state),
            Applied::Own(delta) => {
                self.pristine = false;
                let service = self.service.as_mut().ok_or("the service could not be made")?;
                ask("apply", || service.apply(&delta))
            }
        }
    }

    /// From here on the primary alone executes, and tells what has changed; or all do.
    fn take_style(&mut self, style: Style) {
        if style != Style::WarmPassive {
            self.changes = None;
        } else if self.changes.is_none() {
            self.changes = Some(Changes::default());
            // The others have executed the changes up to here themselves. If the service cannot
            // report them, it fails again when it is asked for the next.
            let _ = self.own_change();
        }
    }

    /// Sends the state to the asker.
    pub fn answer_state(&self, reply: &StateReply) {
        // The asker may have given up.
        let _ = reply.try_send(self.snapshot().map_err(HostError::Snapshot));
    }
}

const NOT_RUNNING: &str = "the service could not be made, or does not run: in a cold passive group it does at the primary alone";

const NOT_PASSIVE: &str = "the group is not passive: its replicas all execute";

/// Bytes of a request, or of what a primary has changed.
pub(crate) fn bytes_of(command: &Command) -> usize {
    match command {
        Command::Execute { body, .. } => body.len(),
        Command::Apply { change, .. } => change.len(),
        _ => 0,
    }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use engine::Ticket;
    use wire::{ClientId, MethodId, Time};

    use super::*;
    use crate::service::BoxError;

    /// A state of one byte, which grows by one with each call; it reads no zeros.
    struct Byte(u8);

    impl Service for Byte {
        fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
            self.0 += 1;
            ServiceOutcome::Ok(Bytes::new())
        }

        fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
            Ok(vec![self.0])
        }

        fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
            self.0 = state[0]; // before it knows that it is none
            if self.0 == 0 { Err("no zeros".into()) } else { Ok(()) }
        }
    }

    fn restore(replica: &mut Replica, state: &'static [u8]) -> bool {
        let (ticket, state) = (Ticket(1), Bytes::from_static(state));
        let done = replica.run(Command::Restore { ticket, state }).expect("it is answered");
        matches!(done.executed, Executed::Restored(Ok(())))
    }

    /// A state that cannot be read costs nothing. A service to which nothing has happened is not made
    /// twice: a large one would need its memory twice.
    #[test]
    fn a_state_that_cannot_be_read_leaves_the_one_before() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let make: Factory = Box::new(|| {
            MADE.fetch_add(1, Ordering::Relaxed);
            Box::new(Byte(1))
        });
        let replica = Replica::new(GroupId::of("byte"), 0, make, Style::SemiActive, None);
        let mut replica = replica.expect("its state comes back");
        let before = MADE.load(Ordering::Relaxed);
        assert!(restore(&mut replica, &[7]));
        assert_eq!(MADE.load(Ordering::Relaxed), before, "it was new");
        assert!(!restore(&mut replica, &[0]));
        assert_eq!(replica.snapshot(), Ok(vec![7]));
        let context = Context::new(Time(0), 0, ClientId(1), 1);
        let call = Call { method: MethodId(1), json: false, body: b"" };
        replica.execute(&context, call, false);
        assert!(!restore(&mut replica, &[0]));
        assert_eq!(replica.snapshot(), Ok(vec![8]), "it is the one that the call changed");
        assert!(restore(&mut replica, &[9]));
        assert_eq!(replica.snapshot(), Ok(vec![9]));
        assert!(replica.run(Command::Reset).is_none());
        assert!(!restore(&mut replica, &[0]));
        assert_eq!(replica.snapshot(), Ok(vec![1]), "it begins anew");
    }
}
