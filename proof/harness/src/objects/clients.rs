//! Clients that call all the time and record the results.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use history::History;
use history::models::{LogCall, LogReply, RegisterCall, RegisterReply};
use steadfast::{BytesCallError, Client, Invocation, Reading, Refusal};
use wire::{Random, Time};

use super::{ASK, Ask, Death, LOOK, log_reply, register_reply};
use crate::wait::until_so;
use crate::{Outcome, bail};

/// Keys that are in use at a time: few, so that clients meet.
const KEYS: u64 = 8;
/// A round's end waits for calls under way no longer than this.
const CLOSE_WITHIN: Duration = Duration::from_secs(30);
/// A client that has no call left looks so often whether the round is over.
const IDLE: Duration = Duration::from_millis(1);

/// How clients call.
#[derive(Clone, Debug)]
pub struct Habit {
    /// A client pauses no longer than this between calls.
    pub pause_us: u64,
    /// Deadlines of calls, of which one is drawn for each.
    pub deadlines_ms: &'static [u64],
    /// All of them together make no more calls.
    pub calls: u64,
    /// The calls, counted from 0 over all clients, whose handler dies, and how.
    pub poisonous: BTreeMap<u64, Death>,
}

impl Default for Habit {
    /// Without an end, and some deadlines end before a fail-over is over.
    fn default() -> Self {
        Habit {
            pause_us: 10_000,
            deadlines_ms: &[50, 400, 2_000, 10_000],
            calls: u64::MAX,
            poisonous: BTreeMap::new(),
        }
    }
}

/// A poisonous call, as its client saw it.
pub struct Poisonous {
    /// The client's number.
    pub lane: u32,
    /// From when.
    pub asked: Time,
    /// To when.
    pub ended: Time,
    /// How it ended, if not with [`Refusal::Poisoned`].
    pub wrong: Option<String>,
}

/// The records of one client in a round.
#[derive(Default)]
pub struct Book {
    /// Its calls of registers.
    pub registers: History<RegisterCall, RegisterReply>,
    /// Its calls of logs.
    pub logs: History<LogCall, LogReply>,
    /// A reply that no such call has.
    pub nonsense: Option<String>,
    /// Calls that ended without a reply, in words.
    pub errors: Vec<String>,
    /// Its calls whose handler died.
    pub poisonous: Vec<Poisonous>,
}

/// The state that all clients share.
struct Shared {
    began: Instant,
    /// The first key of the round.
    base: AtomicU64,
    stop: AtomicBool,
    /// Nobody makes another call, and so many have seen that.
    held: AtomicBool,
    holding: AtomicU64,
    /// When any client was answered last, and the longest time without since it was asked.
    last: AtomicU64,
    longest: AtomicU64,
    /// The longest time that a client waited for the end of a call.
    wait: AtomicU64,
    good: AtomicU64,
    asked: AtomicU64,
    habit: Habit,
}

impl Shared {
    fn now(&self) -> Time {
        Time(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn answered(&self) {
        let now = self.now().0;
        let last = self.last.fetch_max(now, Ordering::Relaxed);
        self.longest.fetch_max(now.saturating_sub(last), Ordering::Relaxed);
        self.good.fetch_add(1, Ordering::Relaxed);
    }
}

/// The clients.
pub struct Clients {
    shared: Arc<Shared>,
    books: Receiver<Book>,
    threads: Vec<JoinHandle<()>>,
    group: &'static str,
}

impl Habit {
    /// A deadline ends only where something is wrong, also on a machine that is busy: for those who
    /// say that no call fails, and tell how long calls wait.
    pub fn patient() -> Habit {
        Habit { deadlines_ms: &[10_000], ..Habit::default() }
    }
}

/// One client, with its book.
struct Caller {
    client: Client,
    group: &'static str,
    lane: u32,
    shared: Arc<Shared>,
    book: Book,
}

impl Clients {
    /// Starts them.
    pub fn start(made: Vec<Client>, group: &'static str, habit: Habit, seed: u64) -> Clients {
        let shared = Arc::new(Shared {
            began: Instant::now(),
            base: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            held: AtomicBool::new(false),
            holding: AtomicU64::new(0),
            last: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            wait: AtomicU64::new(0),
            good: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            habit,
        });
        let (sender, books) = channel();
        let threads = made
            .into_iter()
            .zip(0..)
            .map(|(client, lane)| {
                let (shared, book) = (shared.clone(), Book::default());
                let caller = Caller { client, group, lane, shared, book };
                let sender = sender.clone();
                let random = Random::new(seed ^ u64::from(lane) << 32);
                thread::spawn(move || caller.live(random, &sender))
            })
            .collect();
        Clients { shared, books, threads, group }
    }

    /// Calls answered so far.
    pub fn good(&self) -> u64 {
        self.shared.good.load(Ordering::Relaxed)
    }

    /// Calls made so far.
    pub fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed).min(self.shared.habit.calls)
    }

    /// The clients' clock.
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// Has all clients wait; returns when no call is under way.
    pub fn hold(&mut self) -> Outcome<()> {
        self.shared.held.store(true, Ordering::SeqCst);
        let all = self.threads.len() as u64;
        let missing = format!("a client's call took more than {CLOSE_WITHIN:?}");
        let holding = || Ok(self.shared.holding.load(Ordering::SeqCst) >= all);
        until_so(CLOSE_WITHIN, IDLE, &missing, holding)
    }

    /// They go on.
    pub fn go_on(&mut self) {
        self.shared.holding.store(0, Ordering::SeqCst);
        self.shared.held.store(false, Ordering::SeqCst);
    }

    /// From now on the longest times without an answer are measured anew.
    pub fn forget_gap(&self) {
        self.shared.longest.store(0, Ordering::Relaxed);
        self.shared.wait.store(0, Ordering::Relaxed);
    }

    /// The longest time in which nobody was answered, in milliseconds.
    pub fn gap(&self) -> f64 {
        let since = self.shared.now().0.saturating_sub(self.shared.last.load(Ordering::Relaxed));
        self.shared.longest.load(Ordering::Relaxed).max(since) as f64 / 1e6
    }

    /// The longest time that a client waited for the end of a call, in milliseconds.
    pub fn longest_wait(&self) -> f64 {
        self.shared.wait.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// All clients go on to other keys. Returns their records of the round, and the final values of
    /// the objects, which `client`, a new one, reads.
    pub fn close_round(&mut self, client: Client) -> Outcome<Book> {
        let base = self.shared.base.fetch_add(KEYS, Ordering::SeqCst);
        let mut all = Book::default();
        let deadline = Instant::now() + CLOSE_WITHIN;
        for _ in 0..self.threads.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            let book = self.books.recv_timeout(left);
            let book =
                book.map_err(|_| format!("a client's call took more than {CLOSE_WITHIN:?}"))?;
            all.add(book);
        }
        let (lane, shared, group) = (self.threads.len() as u32, self.shared.clone(), self.group);
        let mut reader = Caller { client, group, lane, shared, book: Book::default() };
        for key in base..base + KEYS {
            reader.register(RegisterCall::Read(key), CLOSE_WITHIN);
            reader.log(LogCall::Read(key), CLOSE_WITHIN);
        }
        if !matches!(reader.ask(Ask::Forget { below: base }, CLOSE_WITHIN), Ok(Some(_))) {
            bail!("a call had no answer in {CLOSE_WITHIN:?} after all was well");
        }
        all.add(reader.book);
        Ok(all)
    }

    /// Ends the clients, and returns their records of the last round.
    pub fn finish(mut self, client: Client) -> Outcome<Book> {
        self.shared.stop.store(true, Ordering::SeqCst);
        let all = self.close_round(client);
        for thread in self.threads.drain(..) {
            // A panic there has been printed already, and its book is missing.
            let _ = thread.join();
        }
        all
    }
}

impl Book {
    fn add(&mut self, other: Book) {
        self.registers.join(other.registers);
        self.logs.join(other.logs);
        self.nonsense = self.nonsense.take().or(other.nonsense);
        self.errors.extend(other.errors);
        self.poisonous.extend(other.poisonous);
    }
}

impl Caller {
    /// Calls until the end; at the end of each round its book is handed over.
    fn live(mut self, mut random: Random, books: &Sender<Book>) {
        let (mut base, mut value) = (0, 0);
        let mut waits = false;
        let mut seen = [0; KEYS as usize];
        loop {
            let next = self.shared.base.load(Ordering::SeqCst);
            if next != base {
                base = next;
                seen = [0; KEYS as usize];
                let sent = books.send(std::mem::take(&mut self.book));
                // The last round is closed after the stop.
                if sent.is_err() || self.shared.stop.load(Ordering::SeqCst) {
                    return;
                }
            }
            if self.shared.held.load(Ordering::SeqCst) {
                self.shared.holding.fetch_add(u64::from(!waits), Ordering::SeqCst);
                waits = true;
                thread::sleep(IDLE);
                continue;
            }
            waits = false;
            let number = self.shared.asked.fetch_add(1, Ordering::Relaxed);
            let habit = &self.shared.habit;
            if number >= habit.calls {
                thread::sleep(IDLE);
                continue;
            }
            let place = random.below(KEYS);
            let key = base + place;
            value += 1;
            let mine = u64::from(self.lane + 1) << 32 | value;
            let deadlines = habit.deadlines_ms;
            let deadline = deadlines[random.below(deadlines.len() as u64) as usize];
            let (deadline, pause) = (Duration::from_millis(deadline), habit.pause_us);
            if let Some(&death) = habit.poisonous.get(&number) {
                self.poison(key, mine, death, deadline);
                continue;
            }
            match random.below(10) {
                0..=2 => {
                    if let Some(held) = self.register(RegisterCall::Read(key), deadline) {
                        seen[place as usize] = held;
                    }
                }
                3 | 4 => {
                    self.register(RegisterCall::Write(key, mine), deadline);
                }
                5 | 6 => {
                    let call = RegisterCall::Swap { key, old: seen[place as usize], new: mine };
                    if let Some(held) = self.register(call, deadline) {
                        seen[place as usize] = held;
                    }
                }
                7 | 8 => self.log(LogCall::Append(key, mine), deadline),
                _ => self.log(LogCall::Read(key), deadline),
            }
            thread::sleep(Duration::from_micros(random.below(pause)));
        }
    }

    /// Asks. `Ok(None)`: it is not known whether it was done. `Err`: it certainly was not.
    fn ask(&mut self, ask: Ask, deadline: Duration) -> Result<Option<bytes::Bytes>, ()> {
        // A service in another language takes it, too: the variant is the name of an argument.
        let body = ask.body();
        let invocation = if ask.looks() {
            Invocation::new(self.group, LOOK).reading(Reading::Linearizable)
        } else {
            Invocation::new(self.group, ASK)
        };
        let asked = self.shared.now().0;
        let end = self.client.call(invocation.json().body(body).within(deadline));
        self.shared.wait.fetch_max(self.shared.now().0 - asked, Ordering::Relaxed);
        match end {
            Ok(bytes) => {
                self.shared.answered();
                Ok(Some(bytes))
            }
            Err(error) => {
                self.book.errors.push(format!("{ask:?} of c{}: {error}", self.lane));
                if error.was_executed() == Some(false) { Err(()) } else { Ok(None) }
            }
        }
    }

    /// A call that appends an entry and whose handler dies then: noted as an append that must leave
    /// no trace.
    fn poison(&mut self, key: u64, entry: u64, death: Death, deadline: Duration) {
        let asked = self.shared.now();
        let handle = self.book.logs.invoke(self.lane, asked, LogCall::Append(key, entry));
        let body = Ask::Die { key, entry, death }.body();
        let invocation = Invocation::new(self.group, ASK).body(body).within(deadline);
        let wrong = match self.client.call(invocation) {
            Err(BytesCallError::Refused { refusal: Refusal::Poisoned, .. }) => {
                self.book.logs.failed(handle);
                None
            }
            Err(error) => Some(format!("{death:?} of c{}: {error}", self.lane)),
            Ok(_) => Some(format!("{death:?} of c{} was answered", self.lane)),
        };
        let (lane, ended) = (self.lane, self.shared.now());
        self.book.poisonous.push(Poisonous { lane, asked, ended, wrong });
    }

    /// A call of a register, recorded. Returns the value in the reply, if there is one.
    fn register(&mut self, call: RegisterCall, deadline: Duration) -> Option<u64> {
        match self.noted(call, deadline, |book| &mut book.registers, register_reply)? {
            RegisterReply::Value(held) => Some(held),
            RegisterReply::Written => None,
        }
    }

    /// A call of a log, noted.
    fn log(&mut self, call: LogCall, deadline: Duration) {
        self.noted(call, deadline, |book| &mut book.logs, log_reply);
    }

    /// Asks, and notes how the call ended. Its reply, if it has one.
    fn noted<C: Copy + Debug + Into<Ask>, R: Clone>(
        &mut self,
        call: C,
        deadline: Duration,
        history: fn(&mut Book) -> &mut History<C, R>,
        read: fn(&C, &[u8]) -> Option<R>,
    ) -> Option<R> {
        let handle = history(&mut self.book).invoke(self.lane, self.shared.now(), call);
        let answer = self.ask(call.into(), deadline);
        let now = self.shared.now();
        match answer {
            Err(()) => history(&mut self.book).failed(handle),
            Ok(None) => {}
            Ok(Some(bytes)) => match read(&call, &bytes) {
                Some(reply) => {
                    history(&mut self.book).answered(handle, now, reply.clone());
                    return Some(reply);
                }
                None => self.nonsense(&format!("{call:?}"), &bytes),
            },
        }
        None
    }

    fn nonsense(&mut self, call: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.book.nonsense.get_or_insert(format!("{call} was answered by `{text}`"));
    }
}
