//! The agent's main thread: what others report goes to the machine, and what that wants is done.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use image::{Parent, Place, Root};
use job::{Agent, Command, End, Host, Key, MAX_GROUP, Output, Word};
use os::clock::monotonic;
use wire::rank::{Frame, Saved};
use wire::{Duration, Member, Time};

use crate::bells::Bells;
use crate::copies::{self, Giver, Taker};
use crate::door;
use crate::error::AgentError;
use crate::event::{Event, Stop};
use crate::images;
use crate::keeping::{Keeping, Shelf};
use crate::ledger::Ledger;
use crate::options::{Options, Port, Tls};
use crate::post::{self, Post, Visits};
use crate::process;
use crate::program::Programs;
use crate::records::Records;
use crate::streams::{self, Door};
use crate::warm::Warm;
use crate::writers::{self, Write};

mod messages;
mod rank;
mod stall;
mod starting;
mod watching;

use rank::{Rank, wall};

/// How often ranks are looked after, and the book is told how far they are.
const TELL: Duration = Duration::from_secs(1);

/// How long a rank that has finished may take to end by itself.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Runs an agent until it is told to stop, or its node is gone: then all its ranks have ended.
/// `ledger` gives ways to the book, one for each thread; `begin` gets what stops the agent.
///
/// # Errors
/// It cannot begin: the reason, and the remedy. Or the node is gone.
pub fn run<L: Ledger + 'static>(
    options: Options,
    mut ledger: impl FnMut() -> L,
    begin: impl FnOnce(Stop),
) -> Result<(), AgentError> {
    // Others see its death at once, however many images it holds in memory.
    os::closer::begin();
    let (sender, events) = channel();
    begin(Stop(sender.clone()));
    let mut watch = ledger();
    let me = watch.me().map_err(|error| AgentError::Node(error.to_string()))?;
    let mut driver = Driver::new(options, me, (ledger(), sender.clone()))?;
    spawn("steadfast watch", move || watch_book(watch, &sender))?;
    driver.run(&events)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), AgentError> {
    let thread = thread::Builder::new().name(name.into()).spawn(body);
    thread.map(drop).map_err(AgentError::Thread)
}

/// Reports each version of what the book wants.
fn watch_book(mut ledger: impl Ledger, events: &Sender<Event>) {
    let mut since = None;
    loop {
        let event = match ledger.wait(since) {
            Ok(assignment) => {
                since = Some(assignment.version);
                Event::Wanted(assignment)
            }
            Err(error) => Event::Gone(error.to_string()),
        };
        let last = matches!(event, Event::Gone(_));
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Says one command after the other, and reports the answers.
fn say_to_book(mut ledger: impl Ledger, commands: &Receiver<Command>, events: &Sender<Event>) {
    for command in commands {
        let event = match ledger.say(&command) {
            Ok(answer) => Event::Answer(command, answer),
            Err(error) => Event::Gone(error.to_string()),
        };
        let last = matches!(event, Event::Gone(_));
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// The main thread's own.
struct Driver {
    agent: Agent,
    options: Options,
    socket: PathBuf,
    records: Records,
    ranks: BTreeMap<Key, Rank>,
    post: Post,
    events: Sender<Event>,
    taker: Taker,
    commands: Sender<Command>,
    writes: Sender<Write>,
    /// Jobs that were forgotten, and of which something may be left here.
    forgotten: Vec<u64>,
    /// Programs that were found to be those of jobs.
    programs: Programs,
    /// Starts whose programs are being read, and whether they are to save as soon as they can.
    reading: BTreeMap<Key, bool>,
    /// Processes that fork ranks.
    warm: Warm,
    /// When the book was told how far ranks are, and that it has not yet answered.
    told: Time,
    telling: bool,
}

impl Driver {
    fn new(
        options: Options,
        me: Member,
        (ledger, events): (impl Ledger + 'static, Sender<Event>),
    ) -> Result<Driver, AgentError> {
        let failed = |source| AgentError::Folder { path: options.folder.clone(), source };
        door::private(&options.folder)?;
        door::private(&options.runtime)?;
        let socket = door::open(&options.runtime, events.clone())?;
        let (records, found) = Records::open(&options.runtime, me.incarnation)
            .map_err(|source| AgentError::Folder { path: options.runtime.clone(), source })?;
        images::sweep(&options.folder).map_err(failed)?;
        let disk = images::list(&options.folder).map_err(failed)?.images;
        let (bells, shelf) = (Bells::default(), Shelf::open(&options.folder).map_err(failed)?);
        let inside = (bells.clone(), shelf.clone());
        let (host, taker) = open_door((me, &options), inside, &events)?;
        let keeping = Keeping::new(shelf, bells.clone(), events.clone());
        let post = Post::new(me, tls_of(&options), (bells, keeping), events.clone());
        let begun = found.iter().map(|record| (record.key, record.pid.is_some()));
        let agent = Agent::new(me, host, disk, begun);
        let mut ranks = BTreeMap::new();
        for record in found {
            let Some(pid) = record.pid else { continue };
            process::watch_other(record.key, pid, events.clone()).map_err(AgentError::Thread)?;
            let welcomed = record.welcomed;
            ranks.insert(record.key, Rank { welcomed, ..Rank::new(record.token, Some(pid), None) });
        }
        let (commands, to_say) = channel();
        let writes = writers::start(&options.folder, &events)?;
        let answers = events.clone();
        spawn("steadfast say", move || say_to_book(ledger, &to_say, &answers))?;
        Ok(Driver {
            agent,
            options,
            socket,
            records,
            ranks,
            post,
            warm: Warm::new(events.clone()),
            events,
            taker,
            commands,
            writes,
            forgotten: Vec::new(),
            programs: Programs::default(),
            reading: BTreeMap::new(),
            told: monotonic(),
            telling: false,
        })
    }

    fn run(&mut self, events: &Receiver<Event>) -> Result<(), AgentError> {
        let ended = loop {
            let event = match events.recv_timeout(TELL) {
                Ok(Event::Stop) => break Ok(()),
                Ok(Event::Gone(why)) => break Err(AgentError::Node(why)),
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            match event {
                Some(event) => self.handle(event),
                None => self.agent.handle_timeout(),
            }
            while let Some(output) = self.agent.poll_output() {
                self.act(output);
            }
            self.post();
            self.look_after_ranks();
        };
        // Without its node, no rank can commit anything: it goes on elsewhere.
        for rank in self.ranks.values() {
            rank.pid.into_iter().for_each(process::kill);
        }
        // Their records stay: an agent of the same life must not begin these starts again.
        ended
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wanted(assignment) => {
                self.forgotten.clone_from(&assignment.forgotten);
                self.post.assigned(&assignment);
                self.warm.end(&assignment.over);
                for task in &assignment.tasks {
                    if let Some(rank) = self.ranks.get_mut(&task.key()) {
                        rank.stall.most = task.spec.stall;
                    }
                }
                self.agent.assign(wall(), assignment);
            }
            Event::Answer(Command::Progress(_), _) => self.telling = false,
            Event::Answer(command, answer) => self.agent.handle_answer(&command, &answer),
            Event::Came(link, token) => self.came(link, token),
            Event::Said(number, frame, file) => self.said(number, frame, file),
            Event::Nonsense(number, why) => {
                if let Some((_, rank)) = self.connected(number) {
                    tracing::warn!(why, "a rank is not understood");
                    rank.tell(&Frame::Farewell(why));
                    rank.link = None;
                }
            }
            Event::Closed(number) => {
                if let Some((_, rank)) = self.connected(number) {
                    rank.link = None;
                }
            }
            Event::Ended(key, end) => self.ended(key, end),
            Event::Saved(place, parent, saved) => self.agent.handle_saved(place, parent, saved),
            Event::Read(task, path, read) => self.read(*task, path, read),
            Event::Restored(key, restored) => self.restored(key, restored),
            Event::Fetched(place, fetched) => self.agent.handle_fetched(place, fetched),
            Event::Reached(agent) => self.post.reached(agent),
            Event::Unreached(agent) => self.post.unreached(agent),
            Event::Heard(from, word) => self.post.heard(from, word),
            Event::Mirrored(open, file) => self.post.mirrored(open, file),
            Event::Keeps(from, kept) => self.post.keeps(from, kept),
            Event::NotKept(route, start) => self.post.not_kept(route, start),
            Event::Damaged(place) => {
                tracing::warn!(%place, "a copy has rotted");
                self.agent.handle_damaged(place);
            }
            Event::Warmed(job, number, ready) => self.warm.handle(job, number, ready),
            Event::Gone(_) | Event::Stop => {}
        }
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Start(task) => self.start(task),
            Output::Kill(key) => {
                self.reading.remove(&key);
                let Some(rank) = self.ranks.get_mut(&key) else {
                    return self.agent.handle_ended(key, End::Killed(0), wall());
                };
                match &mut rank.ends_by {
                    // It is about to end by itself.
                    Some(by) => *by = monotonic() + ENDS_WITHIN,
                    None => rank.pid.into_iter().for_each(process::kill),
                }
            }
            Output::Tell(key, word) => self.tell(key, word),
            Output::Save(place, parent) => self.save(place, parent),
            Output::Remove(place) => {
                if let Err(error) = images::remove(&self.options.folder, place) {
                    tracing::warn!(%place, %error, "an image that is not needed stays");
                }
            }
            Output::Release(key) => self.records.remove(key),
            Output::Fetch(place, root, from) => self.fetch(place, root, from),
            Output::Say(command) => {
                // Without the thread that says it, the agent is about to end.
                let _ = self.commands.send(command);
            }
        }
    }

    /// A copy comes on a thread of its own, behind everybody else.
    fn fetch(&mut self, place: Place, root: Root, from: Vec<String>) {
        let (taker, events) = (self.taker.clone(), self.events.clone());
        let body = move || {
            let taken = taker.take(place, root, &from);
            if let Err(why) = &taken {
                tracing::debug!(%place, why, "a copy cannot be had yet");
            }
            let _ = events.send(Event::Fetched(place, taken.map(|()| root)));
        };
        let spawned = os::threads::spawn_behind("steadfast take", body);
        if let Err(error) = spawned {
            self.agent.handle_fetched(place, Err(error.to_string()));
        }
    }

    fn connected(&mut self, number: u64) -> Option<(Key, &mut Rank)> {
        let is_it = |rank: &Rank| rank.link.as_ref().is_some_and(|link| link.number == number);
        let found = self.ranks.iter_mut().find(|(_, rank)| is_it(rank));
        found.map(|(key, rank)| (*key, rank))
    }

    fn said(&mut self, number: u64, frame: Frame, file: Option<File>) {
        let Some((key, rank)) = self.connected(number) else { return };
        match (frame, file) {
            (Frame::Step(step), _) => {
                let computes = rank.heard(step);
                let moments = rank.moments;
                if computes {
                    self.agent.handle_computes(key, moments);
                    self.warm_up(key.job);
                }
            }
            (Frame::Snapshot(snapshot), Some(file)) => {
                let (step, full) = (snapshot.step, snapshot.full);
                let sent = !snapshot.counts.is_empty();
                let counts = match snapshot.counts.len() <= MAX_GROUP as usize {
                    true => snapshot.counts.clone(),
                    false => Vec::new(),
                };
                (rank.snapshot, rank.snapped) = (Some((snapshot, file)), wall());
                rank.step = step;
                rank.stall.waits();
                if sent || self.post.has_talked(key) {
                    self.agent.handle_talk(key, counts);
                }
                self.agent.handle_snapshot(key, step, full);
            }
            (Frame::Finish, _) => {
                rank.stall.waits();
                let waits = self.post.has_talked(key);
                self.agent.handle_finish(key, wall(), waits);
            }
            // It says so again and again, as long as it waits.
            (Frame::Waits, _) => rank.stall.reached(monotonic()),
            (frame @ (Frame::Log(_) | Frame::Bell(_)), Some(file)) => {
                self.offered(key, frame, file);
            }
            (Frame::Diverged(why), _) => {
                tracing::warn!(why, "a rank has diverged");
                rank.diverged = Some(End::Diverged(why));
                rank.tell(&Frame::Farewell("the agent knows why".into()));
            }
            (Frame::Needless(needless), _) => self.post.needless(key, needless),
            (Frame::Choices(choices), _) => self.post.chose(key, choices),
            (Frame::Farewell(_), _) => rank.link = None,
            (frame, _) => {
                tracing::warn!(?frame, "a rank says what is not for it to say");
                rank.tell(&Frame::Farewell("a rank does not say this".into()));
                rank.link = None;
            }
        }
    }

    fn ended(&mut self, key: Key, end: End) {
        self.post.ended(key);
        let mut end = end;
        if let Some(rank) = self.ranks.remove(&key) {
            if rank.stall.ended {
                end = End::Stalled;
            }
            if end != End::Finished {
                end = rank.diverged.unwrap_or(end);
            }
            let name = rank.task.as_ref().map(|task| task.spec.name.clone());
            tracing::info!(job = name, rank = key.rank, start = key.start, %end, "ended");
        }
        match end {
            // A program may know nothing of agents: then its exit status says it.
            End::Finished => {
                self.agent.handle_finish(key, wall(), false);
                self.agent.handle_ended(key, end, wall());
            }
            end => self.agent.handle_ended(key, end, wall()),
        }
    }

    fn save(&mut self, place: Place, parent: Option<Parent>) {
        let key = Key { job: place.job, rank: place.rank, start: place.start };
        let snapshot = self.ranks.get_mut(&key).and_then(|rank| rank.snapshot.take());
        let Some((snapshot, file)) = snapshot else {
            let why = Err("the rank has ended".into());
            return self.agent.handle_saved(place, parent, why);
        };
        if let Some(rank) = self.ranks.get_mut(&key) {
            rank.progress.stop_us = snapshot.stop_us;
        }
        // The threads that write live as long as this one.
        let _ = self.writes.send(Write { place, parent, snapshot, file });
    }

    fn tell(&mut self, key: Key, word: Word) {
        if word == Word::Save
            && let Some(owes_save) = self.reading.get_mut(&key)
        {
            *owes_save = true;
        }
        let Some(rank) = self.ranks.get_mut(&key) else { return };
        match word {
            Word::Saved(outcome, full) => {
                if outcome.is_ok() {
                    let took = wall().since(rank.snapped).as_micros();
                    rank.progress.save_us = u32::try_from(took).unwrap_or(u32::MAX);
                    (rank.progress.saved, rank.changed) = (wall(), true);
                }
                rank.stall.reached(monotonic());
                let generation = *outcome.as_ref().unwrap_or(&0);
                let outcome = outcome.map(drop);
                rank.tell(&Frame::Saved(Saved { step: rank.step, generation, outcome, full }));
            }
            Word::Oldest(generation) => rank.tell(&Frame::Oldest(generation)),
            Word::Save => rank.wish_for_save(),
            Word::Finished => {
                rank.ends_by = Some(Time::FAR);
                rank.tell(&Frame::Finished);
            }
        }
    }
}

/// Lets other agents in: what the host's others are told, and what gets copies from them.
fn open_door(
    (me, options): (Member, &Options),
    (bells, shelf): (Bells, Shelf),
    events: &Sender<Event>,
) -> Result<(Host, Taker), AgentError> {
    let told = events.clone();
    let giver = Giver::new(&options.folder, move |place| {
        let _ = told.send(Event::Damaged(place));
    });
    let path = options.runtime.join("copies");
    let (door, at) = match &options.port {
        Some(Port { address, tls: (server, _) }) => {
            (Door::Port(*address, server.clone()), address.to_string())
        }
        None => (Door::Socket(path.clone()), path.to_string_lossy().into_owned()),
    };
    let (events, visits) = (std::sync::Mutex::new(events.clone()), Visits::default());
    let serve = move |purpose, stream, seat| match purpose {
        copies::MAGIC => giver.give(purpose, stream),
        wire::agents::MAGIC => {
            // It stays for as long as both agents do.
            drop(seat);
            let events = events.lock().unwrap_or_else(PoisonError::into_inner).clone();
            post::hear(stream, &events, (me, &bells, &visits, &shelf))
        }
        _ => Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "nobody comes in so")),
    };
    let failed = |error: std::io::Error| AgentError::Copies { at: at.clone(), source: error };
    streams::open(door, serve).map_err(failed)?;
    let taker = Taker::new(&options.folder, tls_of(options));
    Ok((Host { copies: at, ..options.host.clone() }, taker))
}

fn tls_of(options: &Options) -> Option<Tls> {
    options.port.as_ref().map(|port| port.tls.clone())
}
