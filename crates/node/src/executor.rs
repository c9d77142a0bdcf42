//! Where a replica's handlers run: a thread of its own, or the data-plane thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread;

use bytes::Bytes;
use engine::{Command, Executed, ServiceOutcome, Ticket};
use wire::client::Refusal;
use wire::limits::{MAX_BODY, MAX_COMMAND_BYTES, MAX_COMMANDS, MAX_REASON};
use wire::ordered::Hold;
use wire::{Duration, GroupId};

use crate::HostError;
use crate::poller::Waker;
use crate::realtime::fifo;
use crate::service::{Call, Context, Execution, Factory, HostOptions, Service};
use crate::timer::monotonic;

/// A handler that took less than this the last time is waited for before what it ordered is sent:
/// less than the three system calls that it goes before.
const QUICK: Duration = Duration::from_micros(20);

/// The state of a replica, or why there is none, for whoever asked.
pub(crate) type StateReply = SyncSender<Result<Vec<u8>, HostError>>;

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub group: GroupId,
    /// Which of the executors that this group has had here.
    pub serial: u64,
    pub ticket: Ticket,
    pub executed: Executed,
    /// The handler panicked.
    pub panicked: bool,
    /// Bytes of the request that wait no more.
    pub bytes: usize,
}

enum Job {
    Run(Command),
    State(StateReply),
}

/// A replica's service, wherever it runs.
pub(crate) struct Executor {
    pub serial: u64,
    /// The replica is on its way out of its group.
    pub leaving: bool,
    /// A reply waits for no other node.
    at_once: bool,
    place: Place,
    waiting: usize,
    waiting_bytes: usize,
}

enum Place {
    /// Commands go to a thread, which ends when the sender is dropped.
    Thread(Sender<Job>),
    Inline(Box<Replica>),
}

/// The replica has fallen too far behind.
#[derive(Debug)]
pub(crate) struct Overloaded;

/// Where threads send what is done, and how they are waited for at the end.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    pub sender: Sender<Done>,
    pub waker: Arc<Waker>,
    /// SCHED_FIFO priority of the threads; 0: ordinary.
    pub priority: u8,
    /// Dropped when the thread ends.
    pub _running: Sender<()>,
}

impl Executor {
    pub fn start(
        group: GroupId,
        name: &str,
        make: Factory,
        options: HostOptions,
        results: Results,
    ) -> std::io::Result<Executor> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let replica = Replica::new(group, serial, make);
        let place = match options.execution {
            Execution::Inline => Place::Inline(Box::new(replica)),
            Execution::Thread => {
                let (jobs, queue) = channel();
                // Linux shows 15 bytes of a thread's name.
                let name = format!("replica {}", name.replace('\0', ""));
                thread::Builder::new().name(name).spawn(move || work(replica, queue, results))?;
                Place::Thread(jobs)
            }
        };
        let at_once = options.group.hold == Hold::One;
        Ok(Executor { serial, leaving: false, at_once, place, waiting: 0, waiting_bytes: 0 })
    }

    /// Whether a command's reply may be expected sooner than other nodes could be told of it, and waits
    /// for none of them.
    pub fn replies_first(&self) -> bool {
        self.at_once && matches!(&self.place, Place::Inline(replica) if replica.quick)
    }

    /// Executes the command here and returns what became of it, or sends it to the thread.
    pub fn run(&mut self, command: Command) -> Result<Option<Done>, Overloaded> {
        match &mut self.place {
            Place::Inline(replica) => Ok(replica.run(command)),
            Place::Thread(jobs) => {
                if command != Command::Reset {
                    self.waiting += 1;
                    self.waiting_bytes += bytes_of(&command);
                }
                if self.waiting > MAX_COMMANDS || self.waiting_bytes > MAX_COMMAND_BYTES {
                    return Err(Overloaded);
                }
                // The thread ends only after this sender; handlers' panics are caught.
                let _ = jobs.send(Job::Run(command));
                Ok(None)
            }
        }
    }

    /// A result of this replica's thread has been taken.
    pub fn done(&mut self, done: &Done) {
        self.waiting -= 1;
        self.waiting_bytes -= done.bytes;
    }

    /// Sends the state, as it is after all commands so far, to `reply`.
    pub fn state(&self, reply: StateReply) {
        match &self.place {
            Place::Inline(replica) => replica.answer_state(&reply),
            Place::Thread(jobs) => {
                let _ = jobs.send(Job::State(reply));
            }
        }
    }
}

/// A replica's thread: commands strictly in order.
fn work(mut replica: Replica, queue: Receiver<Job>, results: Results) {
    // A refusal was logged when the node started.
    fifo(results.priority);
    for job in queue {
        match job {
            Job::Run(command) => {
                if let Some(done) = replica.run(command) {
                    if results.sender.send(done).is_err() {
                        return;
                    }
                    results.waker.wake();
                }
            }
            Job::State(reply) => replica.answer_state(&reply),
        }
    }
}

struct Replica {
    group: GroupId,
    serial: u64,
    make: Factory,
    /// `None` after the factory panicked.
    service: Option<Box<dyn Service>>,
    /// Its last call was.
    quick: bool,
}

impl Replica {
    fn new(group: GroupId, serial: u64, make: Factory) -> Replica {
        // A panic here is the caller's of `host`, on its own thread.
        let service = Some(make());
        Replica { group, serial, make, service, quick: false }
    }

    fn run(&mut self, command: Command) -> Option<Done> {
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

    fn answer_state(&self, reply: &StateReply) {
        // Whoever asked may have given up.
        let _ = reply.try_send(self.snapshot().map_err(HostError::Snapshot));
    }
}

fn bytes_of(command: &Command) -> usize {
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
fn limited(outcome: ServiceOutcome) -> ServiceOutcome {
    match outcome {
        ServiceOutcome::Ok(body) | ServiceOutcome::Error(body) if body.len() > MAX_BODY => {
            let reason = format!(
                "the reply has {} bytes, at most {MAX_BODY} fit: ask for less at a time",
                body.len()
            );
            ServiceOutcome::Refused(Refusal::ReplyTooLarge, reason)
        }
        ServiceOutcome::Refused(refusal, mut reason) => {
            let fits = |end: &usize| reason.is_char_boundary(*end);
            let end = (0..=reason.len().min(MAX_REASON)).rev().find(fits).unwrap_or(0);
            reason.truncate(end);
            ServiceOutcome::Refused(refusal, reason)
        }
        fine => fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use wire::ordered::GroupOptions;
    use wire::{ClientId, MethodId, Time};

    /// Takes as long as the call's body says, in microseconds.
    struct Slow;

    impl Service for Slow {
        fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
            let until = monotonic() + Duration::from_micros(call.body[0].into());
            while monotonic() < until {}
            ServiceOutcome::Ok(Bytes::new())
        }

        fn snapshot(&self) -> Result<Vec<u8>, String> {
            Ok(Vec::new())
        }

        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }

    fn hosted(hold: Hold, execution: Execution) -> Executor {
        let waker = Arc::new(Waker::new().unwrap());
        let results = Results { sender: channel().0, waker, priority: 0, _running: channel().0 };
        let group = GroupOptions { hold, ..GroupOptions::default() };
        let options = HostOptions { group, execution };
        let make: Factory = Box::new(|| Box::new(Slow));
        Executor::start(GroupId::of("slow"), "slow", make, options, results).unwrap()
    }

    fn run(executor: &mut Executor, micros: u8) {
        let command = Command::Execute {
            ticket: Ticket(1),
            method: MethodId(1),
            json: false,
            body: Bytes::copy_from_slice(&[micros]),
            now: Time(0),
            seed: 0,
            client: ClientId(1),
            number: 1,
        };
        executor.run(command).unwrap();
    }

    #[test]
    fn a_reply_goes_first_where_it_waits_for_nobody_and_its_handler_was_quick() {
        let mut executor = hosted(Hold::One, Execution::Inline);
        assert!(!executor.replies_first(), "nothing is known of its handler");
        // Whoever else has work here may have held it up.
        while !executor.replies_first() {
            run(&mut executor, 0);
        }
        run(&mut executor, 100);
        assert!(!executor.replies_first(), "the others would wait for it");
        for (hold, execution) in [
            (Hold::Majority, Execution::Inline),
            (Hold::All, Execution::Inline),
            (Hold::One, Execution::Thread),
        ] {
            let mut executor = hosted(hold, execution);
            run(&mut executor, 0);
            assert!(!executor.replies_first(), "{hold:?}, {execution:?}");
        }
    }
}
