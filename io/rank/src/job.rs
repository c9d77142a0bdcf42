//! A rank, as its program sees it.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use channel::Notes;
use wire::rank::{
    Array, Every, MAX_ARRAY_NAME, MAX_ARRAYS, RANK_VARIABLE, RANKS_VARIABLE, SOCKET_VARIABLE,
    TOKEN, TOKEN_VARIABLE, Welcome,
};

use crate::agent::{Agent, Opened, Outcome};
use crate::arena::Arena;
use crate::error::JobError;
use crate::messages::{LOG, Messages};
use crate::output::{Output, Point};
use crate::staging::{Bytes, Extra};
use crate::tracker::Kind;
use crate::turns::Turns;

mod talk;

/// Names that begin so are no program's.
const PREFIX: &str = "steadfast.";

/// The note that has the loops.
const LOOPS: &str = "steadfast.loops";

/// The note that has what was sent and received.
const CHANNELS: &str = "steadfast.channels";

/// Arrays that have what is printed.
const OUTPUT: usize = 2;

/// Results are notes whose names begin so.
pub const RESULT: &str = "steadfast.result.";

/// Small objects are notes whose names begin so.
const OBJECT: &str = "steadfast.object.";

/// How often results are tried to be saved that could not be.
const TRIES: u32 = 3;

/// This process as a rank of a job. Where no agent has started it, it is the only rank of a job of
/// its own that saves nothing: a program runs the same by itself.
#[derive(Debug)]
pub struct Job {
    place: Welcome,
    arena: Arena,
    /// Arrays of the state that the program has asked for.
    claimed: Vec<bool>,
    notes: Notebook,
    turns: Turns,
    messages: Messages,
    /// Since when the log of a message that is to be sent has been full.
    full: Option<Duration>,
    /// When others were listened to last, where the program only looks for messages.
    listened: Duration,
    began: Instant,
    agent: Option<Agent>,
}

impl Job {
    /// Finds the agent that the environment names. With a state, this returns when it is read and
    /// verified.
    ///
    /// # Errors
    /// The agent cannot be reached, or this start is over.
    pub fn connect() -> Result<Job, JobError> {
        let Some(path) = env::var_os(SOCKET_VARIABLE).map(PathBuf::from) else {
            return Job::by_itself();
        };
        let token = env::var(TOKEN_VARIABLE).ok().and_then(|text| from_hex(&text));
        let token = token.ok_or(JobError::Environment(TOKEN_VARIABLE))?;
        let (mut opened, welcome, file, choices) = Opened::wait(path, token)?;
        let (arena, mut notes) = match file {
            Some(file) => restored(file, &welcome)?,
            None => (Arena::new(Vec::new())?, BTreeMap::new()),
        };
        let loops = notes.get(LOOPS).and_then(|(_, bytes)| Turns::decode(bytes));
        let messages = messages(&welcome, &mut notes, choices).inspect_err(|error| {
            error.divergence().iter().for_each(|why| opened.say(why));
        })?;
        let output = Output::begin(welcome.restored, &mut notes)?;
        let agent = Agent::new(opened, &welcome, &arena, output)?;
        let claimed = vec![false; arena.arrays().len()];
        let mut job = Job {
            place: welcome,
            claimed,
            arena,
            notes,
            turns: loops.unwrap_or_default(),
            messages,
            full: None,
            listened: Duration::ZERO,
            began: Instant::now(),
            agent: Some(agent),
        };
        job.pass_on()?;
        Ok(job)
    }

    /// A job of one rank without an agent; the environment may say another place.
    fn by_itself() -> Result<Job, JobError> {
        let number = |name: &'static str, without: u32| match env::var(name) {
            Ok(text) => text.parse().map_err(|_| JobError::Environment(name)),
            Err(_) => Ok(without),
        };
        let place = Welcome {
            version: wire::versions::RANK.greatest,
            restored: false,
            full: false,
            blocking: false,
            regrouped: false,
            rank: number(RANK_VARIABLE, 0)?,
            ranks: number(RANKS_VARIABLE, 1)?,
            job: 0,
            start: 1,
            step: 0,
            every: Every::Never,
            age_us: 0,
            generation: 0,
            after: 0,
            noted: 0,
            arrays: Vec::new(),
        };
        let messages = messages(&place, &mut BTreeMap::new(), Notes::default())?;
        Ok(Job {
            place,
            messages,
            arena: Arena::new(Vec::new())?,
            claimed: Vec::new(),
            notes: BTreeMap::new(),
            turns: Turns::default(),
            full: None,
            listened: Duration::ZERO,
            began: Instant::now(),
            agent: None,
        })
    }

    /// Which rank this is, from 0.
    pub fn rank(&self) -> u32 {
        self.place.rank
    }

    /// Ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.place.ranks
    }

    /// Which start of the rank this is, from 1.
    pub fn start(&self) -> u64 {
        self.place.start
    }

    /// It goes on from a state.
    pub fn is_restored(&self) -> bool {
        self.place.restored
    }

    /// An agent saves what the rank has.
    pub fn is_saved(&self) -> bool {
        self.agent.is_some()
    }

    /// How changes are found, and why by no better way.
    pub fn tracker(&self) -> Option<(Kind, Option<&str>)> {
        let agent = self.agent.as_ref()?;
        Some(agent.tracker())
    }

    /// The array of this name: its number, and whether it has what it had. Else it is zeros.
    ///
    /// # Errors
    /// The state has it in another form, it was asked for before, or there is no memory for it.
    pub fn array(
        &mut self,
        name: &str,
        form: &str,
        length: u64,
    ) -> Result<(usize, bool), JobError> {
        if name.starts_with(PREFIX) {
            return Err(JobError::Name(name.into()));
        }
        let known = self.arena.arrays().position(|array| array.name == name);
        if let Some(number) = known
            && !self.claimed[number]
        {
            let array = self.arena.arrays().nth(number).expect("it is there");
            if array.form != form || array.length != length {
                let (restored, asked) = (array.form.clone(), form.into());
                return Err(JobError::Form { name: name.into(), restored, asked });
            }
            self.claimed[number] = true;
            return Ok((number, true));
        }
        self.check_room(1)?;
        let number = self.arena.add(Array { name: name.into(), form: form.into(), length })?;
        self.claimed.push(true);
        Ok((number, false))
    }

    /// The bytes of an array.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn bytes(&self, array: usize) -> &[u8] {
        self.arena.bytes(array)
    }

    /// The bytes of an array, to be changed.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn bytes_mut(&mut self, array: usize) -> &mut [u8] {
        self.arena.bytes_mut(array)
    }

    /// Where the bytes of an array are, for another language. They stay there while the job lives; who
    /// writes there does so while none of the job's methods runs.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn pointer(&self, array: usize) -> *mut [u8] {
        self.arena.pointer(array)
    }

    /// Keeps a small object with what is saved next.
    ///
    /// # Errors
    /// The name is too long, or there are too many arrays and objects.
    pub fn put(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), JobError> {
        self.keep(format!("{OBJECT}{name}"), "", bytes)
    }

    fn keep(&mut self, name: String, form: &str, bytes: Vec<u8>) -> Result<(), JobError> {
        if name.len().max(form.len()) > MAX_ARRAY_NAME {
            return Err(JobError::Long { name, most: MAX_ARRAY_NAME });
        }
        if !self.notes.contains_key(&name) {
            self.check_room(1)?;
        }
        self.notes.insert(name, (form.into(), bytes));
        Ok(())
    }

    /// There is room for more arrays, beside the notes with loops and channels and the output.
    fn check_room(&self, more: usize) -> Result<(), JobError> {
        let loops =
            [LOOPS, CHANNELS].into_iter().filter(|it| !self.notes.contains_key(*it)).count();
        let all = self.arena.arrays().len() + self.notes.len() + loops + more;
        let most = MAX_ARRAYS - OUTPUT;
        if all > most { Err(JobError::Many(most - 2)) } else { Ok(()) }
    }

    /// The small object of this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.notes.get(&format!("{OBJECT}{name}")).map(|(_, bytes)| &bytes[..])
    }

    /// Delivers a result, with the job's end: once, whatever dies.
    ///
    /// # Errors
    /// The name or the form is too long, or there are too many arrays and objects.
    pub fn result(&mut self, name: &str, form: &str, bytes: Vec<u8>) -> Result<(), JobError> {
        self.keep(format!("{RESULT}{name}"), form, bytes)
    }

    /// Begins a loop of so many turns, or goes on with it: its depth, and the first turn that is to
    /// be done. Loops are known by their order, which has to be the same at each start.
    pub fn begin_loop(&mut self, turns: u64) -> (usize, u64) {
        self.messages.begin_loop();
        self.turns.begin(turns)
    }

    /// A turn of the loop of this depth is about to begin: a safe point. True: a checkpoint is due,
    /// and [`save`](Job::save) is to be called now.
    ///
    /// # Errors
    /// This start is over.
    pub fn turn(&mut self, depth: usize, turn: u64) -> Result<bool, JobError> {
        let another = self.turns.turn(depth, turn);
        self.messages.turn(depth, another);
        self.reach(Point::Turn(self.turns.open()), another)?;
        self.look()
    }

    /// A loop is over: it has done all turns, or was left.
    pub fn end_loop(&mut self, depth: usize) {
        self.turns.end(depth);
        self.messages.end_loop(depth);
    }

    /// Here the rank may be saved. True: a checkpoint is due, and [`save`](Job::save) is to be called
    /// now.
    ///
    /// # Errors
    /// This start is over.
    pub fn safe_point(&mut self) -> Result<bool, JobError> {
        self.turns.point();
        self.messages.point();
        self.reach(Point::Own(self.turns.open()), false)?;
        self.look()
    }

    /// The present output was printed before, and goes nowhere. A caller with a buffer of
    /// its own for the standard output flushes it before it calls [`turn`](Job::turn) or
    /// [`safe_point`](Job::safe_point), and always before [`save`](Job::save) and
    /// [`finish`](Job::finish).
    pub fn repeats_output(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.output.repeats())
    }

    /// The program is at a place where it may be saved; `new`: it was never there before.
    fn reach(&mut self, point: Point, new: bool) -> Result<(), JobError> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        Ok(agent.output.reach(point, new)?)
    }

    fn look(&mut self) -> Result<bool, JobError> {
        let Some(agent) = &mut self.agent else {
            self.messages.let_go();
            return Ok(false);
        };
        let (now, step) = (self.began.elapsed(), self.turns.step());
        self.messages.say_choices();
        agent.look(now, step, &self.arena, &mut self.messages)
    }

    /// Saves what the rank has: copies what has changed, and goes on while it is written. Where the
    /// job is a blocking one, this returns when it is written.
    ///
    /// # Errors
    /// This start is over, or there is no memory for the copy.
    pub fn save(&mut self) -> Result<(), JobError> {
        let blocking = self.place.blocking;
        // The copy that is still being saved is the agent's.
        self.settle()?;
        self.snapshot()?;
        if blocking { self.settle() } else { Ok(()) }
    }

    fn snapshot(&mut self) -> Result<(), JobError> {
        if self.agent.is_none() {
            return Ok(());
        }
        let begun = self.began;
        self.notes.insert(LOOPS.into(), (String::new(), self.turns.encode()));
        let saved = self.messages.save();
        let state = self.told(saved)?;
        let counts = state.counts();
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let state = state.encode();
        self.notes.insert(CHANNELS.into(), (String::new(), state));
        let notes = self.notes.iter().map(note).chain(self.messages.rings());
        agent.snapshot(begun, &self.arena, notes.collect(), (self.turns.count(), counts))
    }

    fn settle(&mut self) -> Result<(), JobError> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        agent.settle(self.began, &mut self.messages)
    }

    /// The work is done: results are saved, and the job knows. The process may end then. The arrays are
    /// there as long as the job is; nothing is saved any more.
    ///
    /// # Errors
    /// This start is over, or the results cannot be saved.
    pub fn finish(&mut self) -> Result<(), JobError> {
        let has_results = self.notes.keys().any(|name| name.starts_with(RESULT));
        let (mut saved, mut failures) = (!has_results, 0);
        self.reach(Point::End, false)?;
        while let Some(agent) = &self.agent {
            // Its node is to be emptied, or others need room.
            saved &= !agent.wants_save();
            // A snapshot that is still being saved comes first.
            self.settle()?;
            if !saved {
                self.snapshot()?;
                self.settle()?;
                match self.agent.as_ref().map(Agent::outcome) {
                    Some(Outcome::Saved) => saved = true,
                    Some(Outcome::Failed(why)) if failures == TRIES => {
                        return Err(JobError::NotSaved(why));
                    }
                    Some(Outcome::Failed(_)) => failures += 1,
                    Some(Outcome::Alone) | None => {}
                }
            }
            let Some(agent) = &mut self.agent else { break };
            if saved && agent.say_finished(self.began, &mut self.messages)? {
                self.agent = None;
                break;
            }
            agent.find_again(self.began, &mut self.messages)?;
        }
        Ok(())
    }
}

/// A note as an array beside the arena.
fn note<'a>((name, (form, bytes)): (&'a String, &'a (String, Vec<u8>))) -> Extra<'a> {
    let array = Array { name: name.clone(), form: form.clone(), length: bytes.len() as u64 };
    Extra { array, bytes: Bytes::Slice(bytes), changed: None }
}

type Notebook = BTreeMap<String, (String, Vec<u8>)>;

/// Notes are behind all arrays.
fn restored(file: File, welcome: &Welcome) -> Result<(Arena, Notebook), JobError> {
    let first = welcome.arrays.iter().position(|array| array.name.starts_with(PREFIX));
    let mut arena = Arena::restored(file, welcome.arrays.clone())?;
    let notes = arena.split_off(first.unwrap_or(welcome.arrays.len()));
    Ok((arena, notes.into_iter().map(|(it, bytes)| (it.name, (it.form, bytes))).collect()))
}

/// The channels of a start, from the notes in its state.
fn messages(place: &Welcome, notes: &mut Notebook, choices: Notes) -> Result<Messages, JobError> {
    let ranks = (place.rank, place.ranks.max(1));
    let names = notes.keys().filter(|name| name.starts_with(LOG));
    let names: Vec<String> = names.cloned().collect();
    let ring = |name: String| {
        let (_, bytes) = notes.remove(&name)?;
        Some((name.strip_prefix(LOG)?.parse().ok()?, bytes))
    };
    let rings = names.into_iter().filter_map(ring).collect();
    match notes.remove(CHANNELS) {
        Some((_, state)) => {
            let starts = (place.start, place.generation);
            Messages::restored(ranks, starts, &state, rings, (choices, place.regrouped))
        }
        None => Messages::new(ranks, place.start, choices),
    }
}

fn from_hex(text: &str) -> Option<[u8; TOKEN]> {
    let mut token = [0; TOKEN];
    if text.len() != 2 * TOKEN || !text.is_ascii() {
        return None;
    }
    for (place, byte) in token.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(token)
}
