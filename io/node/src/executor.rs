//! Where a replica's handlers run: a thread of its own, a thread for each lane, the data-plane
//! thread, or a program in a process of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use config::Execution;
use engine::{Command, NestedError, Ticket};
use supervisor::{Attaching, Tether};
use wire::GroupId;
use wire::limits::{MAX_COMMAND_BYTES, MAX_COMMANDS};
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};

use crate::HostError;
use crate::service::{Factory, HostOptions};

mod digest;
mod guard;
mod process;
mod replica;
mod report;
mod standby;
mod threads;
mod trial;

pub(crate) use guard::{cut, panic_text};
pub(crate) use process::Process;
pub(crate) use replica::Replica;
use replica::bytes_of;
use report::Reply;
pub(crate) use report::{Asked, Done, News, Report, StateReply, StateReport};
pub(crate) use standby::Standby;
pub(crate) use threads::Results;
use threads::{Plan, Threads};

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
    /// The threads of handlers that wait for another group.
    calling: BTreeMap<Ticket, Reply>,
    /// Its program ends once it has given a state, and this is for the next one.
    stopping: Option<Vec<Command>>,
}

enum Place {
    /// Commands go to a thread of its own, or to one for each lane.
    Threads(Box<Threads>),
    Inline(Box<Replica>),
    Process(Box<Process>),
    /// The place of a program that does not run.
    Standby(Box<Standby>),
}

/// The replica has fallen too far behind.
#[derive(Debug)]
pub(crate) struct Overloaded;

impl Executor {
    pub fn start(
        group: GroupId,
        name: &str,
        make: Factory,
        options: HostOptions,
        results: Results,
    ) -> Result<Executor, HostError> {
        let serial = next_serial();
        let place = match options.execution {
            Execution::Inline => {
                let replica = Replica::new(group, serial, make, options.group.style, None);
                Place::Inline(Box::new(replica.map_err(HostError::State)?))
            }
            Execution::Thread | Execution::Lanes => {
                let make = Arc::new(Mutex::new(make));
                let plan = Plan { name: name.into(), make, options, results };
                Place::Threads(Box::new(Threads::start(group, serial, plan)?))
            }
        };
        let GroupOptions { style, ack, durability } = options.group;
        let memory = durability == Durability::Memory;
        let at_once = (ack == AckLevel::One && memory) || style == Style::Stateless;
        Ok(Executor::at(place, serial, at_once))
    }

    fn at(place: Place, serial: u64, at_once: bool) -> Executor {
        Executor {
            serial,
            leaving: false,
            at_once,
            place,
            waiting: 0,
            waiting_bytes: 0,
            calling: BTreeMap::new(),
            stopping: None,
        }
    }

    /// Makes the executor of a program that is started when it is needed: at once, except in a cold
    /// passive group.
    pub fn standing_by(options: GroupOptions, tether: Tether) -> Executor {
        let mut standby = Standby::new(tether);
        if options.style != Style::ColdPassive {
            standby.give(Command::Start(options.style));
        }
        let place = Place::Standby(Box::new(standby));
        Executor::at(place, next_serial(), options.ack == AckLevel::One)
    }

    /// Makes the executor of a program that has ended and is started again in any case.
    pub fn waiting(tether: Tether) -> Executor {
        Executor::at(Place::Standby(Box::new(Standby::new(tether))), next_serial(), false)
    }

    /// Makes the executor of a program that has shown its token.
    pub fn attached(group: GroupId, options: GroupOptions, program: Attaching) -> Executor {
        let serial = next_serial();
        let process = Process::new(group, serial, program, options.style);
        let (place, at_once) = (Place::Process(Box::new(process)), options.ack == AckLevel::One);
        Executor::at(place, serial, at_once)
    }

    /// Whether its service merges states; `None`: its program has not come.
    pub fn merges(&self) -> Option<bool> {
        match &self.place {
            Place::Threads(threads) => Some(threads.merges()),
            Place::Inline(replica) => Some(replica.merges()),
            Place::Process(process) => Some(process.merges()),
            Place::Standby(_) => None,
        }
    }

    /// The program that serves the replica, if one does.
    pub fn process(&mut self) -> Option<&mut Process> {
        match &mut self.place {
            Place::Process(process) => Some(process),
            Place::Threads(_) | Place::Inline(_) | Place::Standby(_) => None,
        }
    }

    /// The place of its program, if that is not there.
    pub fn standby(&mut self) -> Option<&mut Standby> {
        match &mut self.place {
            Place::Standby(standby) => Some(standby),
            Place::Threads(_) | Place::Inline(_) | Place::Process(_) => None,
        }
    }

    /// Its thread, if it has one: gone when that has ended.
    pub fn thread(&self) -> Option<Weak<()>> {
        match &self.place {
            Place::Threads(threads) => Some(threads.alive()),
            Place::Inline(_) | Place::Process(_) | Place::Standby(_) => None,
        }
    }

    /// Another executor for the same replica, with a service in its initial state, if it runs in a
    /// thread.
    pub fn anew(&self) -> Option<Result<(String, GroupOptions, Executor), HostError>> {
        let Place::Threads(threads) = &self.place else { return None };
        let plan = threads.plan();
        let (name, options) = (plan.name.clone(), plan.options.group);
        let serial = next_serial();
        let threads = Threads::start(GroupId::of(&name), serial, plan);
        Some(threads.map(|threads| {
            let place = Place::Threads(Box::new(threads));
            (name, options, Executor::at(place, serial, self.at_once))
        }))
    }

    /// The tie to the thread that supervises the program, if there is one.
    pub fn tether(&mut self) -> Option<&mut Tether> {
        match &mut self.place {
            Place::Process(process) => Some(process.tether()),
            Place::Standby(standby) => Some(standby.tether()),
            Place::Threads(_) | Place::Inline(_) => None,
        }
    }

    /// Whether a command's reply may be expected sooner than other nodes could be told of it, and
    /// waits for none of them.
    pub fn replies_first(&self) -> bool {
        self.at_once && matches!(&self.place, Place::Inline(replica) if replica.quick)
    }

    /// Executes the command here and returns what became of it, or sends it to the thread or
    /// program.
    pub fn run(&mut self, command: Command) -> Result<Option<Done>, Overloaded> {
        if let Place::Inline(replica) = &mut self.place {
            return Ok(replica.run(command));
        }
        if command == Command::Stop && !matches!(self.place, Place::Threads(_)) {
            // A state that is to be merged is asked for last.
            match self.process().is_some_and(|process| process.owes_state()) {
                true => self.stopping = Some(Vec::new()),
                false => self.stand_by(),
            }
            return Ok(None);
        }
        if let Some(later) = &mut self.stopping {
            later.push(command);
            return Ok(None);
        }
        if command.ticket().is_some() {
            self.waiting += 1;
            self.waiting_bytes += bytes_of(&command);
        }
        // One alone may be larger: what a passive primary has changed can be all of a state.
        let is_heavy = self.waiting > 1 && self.waiting_bytes > MAX_COMMAND_BYTES;
        if self.waiting > MAX_COMMANDS || is_heavy {
            return Err(Overloaded);
        }
        match &mut self.place {
            Place::Inline(_) => {}
            Place::Threads(threads) => threads.give(command),
            Place::Process(process) => process.give(command),
            Place::Standby(standby) => standby.give(command),
        }
        Ok(None)
    }

    /// News of the state of a replica that was executed here.
    pub fn take_news(&mut self) -> Vec<News> {
        match &mut self.place {
            Place::Inline(replica) if replica.has_news() => replica.take_news(),
            _ => Vec::new(),
        }
    }

    /// If its program was to end, and owes nothing any more, it does. Returns the commands for the next
    /// one.
    pub fn stop_if_due(&mut self) -> Vec<Command> {
        if self.stopping.is_none() || self.process().is_some_and(|process| process.owes_state()) {
            return Vec::new();
        }
        self.stand_by();
        self.stopping.take().unwrap_or_default()
    }

    /// The replica's service is to run no more: its program ends.
    fn stand_by(&mut self) {
        (self.waiting, self.waiting_bytes) = (0, 0);
        match &mut self.place {
            Place::Standby(standby) => standby.reset(),
            Place::Process(process) => {
                let tether = process.tether().again();
                tether.released();
                self.serial = next_serial();
                self.place = Place::Standby(Box::new(Standby::new(tether)));
            }
            Place::Threads(_) | Place::Inline(_) => {}
        }
    }

    /// Its handler calls another group.
    pub fn calls(&mut self, ticket: Ticket, reply: Option<Reply>) {
        self.calling.extend(reply.map(|reply| (ticket, reply)));
    }

    /// The handler that calls another group goes on.
    pub fn resume(&mut self, ticket: Ticket, outcome: Result<Bytes, NestedError>) {
        if let Place::Process(process) = &mut self.place {
            process.resume(ticket, outcome);
        } else if let Some(reply) = self.calling.remove(&ticket) {
            // There is room for one, and one comes.
            let _ = reply.try_send(outcome);
        }
    }

    /// A result of this replica's thread or program has been taken.
    pub fn done(&mut self, done: &Done) {
        self.waiting -= 1;
        self.waiting_bytes -= done.bytes;
    }

    /// Sends the state, as it is after all commands so far, to `reply`.
    pub fn state(&mut self, reply: StateReply) {
        match &mut self.place {
            Place::Inline(replica) => replica.answer_state(&reply),
            Place::Threads(threads) => threads.ask_state(reply),
            Place::Process(process) => process.ask_state(reply),
            Place::Standby(_) => {
                let reason = "its program does not run: in a cold passive group it does at the primary alone";
                let _ = reply.try_send(Err(HostError::Snapshot(reason.into())));
            }
        }
    }
}

fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use bytes::Bytes;
    use engine::ServiceOutcome;
    use wire::ordered::GroupOptions;
    use wire::{ClientId, Duration, Lane, MethodId, Time};

    use super::*;
    use crate::service::{BoxError, Call, Context, Service};
    use os::clock::monotonic;
    use os::waker::Waker;

    /// Takes as long as the call's body says, in microseconds.
    struct Slow;

    impl Service for Slow {
        fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
            let until = monotonic() + Duration::from_micros(call.body[0].into());
            while monotonic() < until {}
            ServiceOutcome::Ok(Bytes::new())
        }

        fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
            Ok(Vec::new())
        }

        fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
            Ok(())
        }
    }

    fn hosted(ack: AckLevel, execution: Execution) -> Executor {
        let waker = Arc::new(Waker::new().unwrap());
        let (sender, clocks) = (channel().0, None);
        let results = Results { sender, waker, priority: 0, clocks, _running: channel().0 };
        let group = GroupOptions { ack, ..GroupOptions::default() };
        let options = HostOptions { group, execution };
        let make: Factory = Box::new(|| Box::new(Slow));
        Executor::start(GroupId::of("slow"), "slow", make, options, results).unwrap()
    }

    fn run(executor: &mut Executor, micros: u8) {
        let command = Command::Execute {
            ticket: Ticket(1),
            method: MethodId(1),
            json: false,
            read: false,
            body: Bytes::copy_from_slice(&[micros]),
            now: Time(0),
            seed: 0,
            client: ClientId(1),
            number: 1,
            lane: Lane::Normal,
        };
        executor.run(command).unwrap();
    }

    #[test]
    fn a_reply_goes_first_where_it_waits_for_nobody_and_its_handler_was_quick() {
        let mut executor = hosted(AckLevel::One, Execution::Inline);
        assert!(!executor.replies_first(), "nothing is known of its handler");
        // Other work on this host may have slowed the handler down.
        while !executor.replies_first() {
            run(&mut executor, 0);
        }
        run(&mut executor, 100);
        assert!(!executor.replies_first(), "the others would wait for it");
        for (ack, execution) in [
            (AckLevel::Majority, Execution::Inline),
            (AckLevel::All, Execution::Inline),
            (AckLevel::One, Execution::Thread),
        ] {
            let mut executor = hosted(ack, execution);
            run(&mut executor, 0);
            assert!(!executor.replies_first(), "{ack:?}, {execution:?}");
        }
    }
}
