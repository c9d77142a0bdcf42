//! A rank, as its program sees it.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wire::rank::{
    Array, Every, Frame, MAX_ARRAY_NAME, MAX_ARRAYS, RANK_VARIABLE, RANKS_VARIABLE,
    SOCKET_VARIABLE, Saved, Step, TOKEN, TOKEN_VARIABLE, Welcome,
};

use crate::arena::Arena;
use crate::cadence::Cadence;
use crate::error::JobError;
use crate::link::{Link, LinkError};
use crate::staging::Staging;
use crate::tracker::{Kind, Tracker};
use crate::turns::Turns;

/// Names that begin so are no program's.
const PREFIX: &str = "steadfast.";

/// The note that has the loops.
const LOOPS: &str = "steadfast.loops";

/// Results are notes whose names begin so.
pub const RESULT: &str = "steadfast.result.";

/// Small objects are notes whose names begin so.
const OBJECT: &str = "steadfast.object.";

/// How often the agent is told how far the rank is, and is looked for when it is gone.
const TELL: Duration = Duration::from_millis(100);

/// How often the agent is listened to.
const LISTEN: Duration = Duration::from_millis(1);

/// How long a rank goes on without an agent. Its node may be gone, and the rank is started elsewhere.
const ALONE: Duration = Duration::from_secs(10);

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
    notes: BTreeMap<String, (String, Vec<u8>)>,
    turns: Turns,
    began: Instant,
    agent: Option<Agent>,
}

/// The agent, and what is saved by it.
#[derive(Debug)]
struct Agent {
    path: PathBuf,
    token: [u8; TOKEN],
    link: Option<Link>,
    /// Since when there is no link.
    alone: Duration,
    tracker: Tracker,
    staging: Staging,
    cadence: Cadence,
    /// When the snapshot was taken that is being saved, and how long that took.
    saving: Option<(Duration, Duration)>,
    /// The next snapshot is to be a full one; a checkpoint is wanted.
    full: bool,
    wanted: bool,
    told: Duration,
    listened: Duration,
    /// The last checkpoint that failed, and why.
    failed: Option<String>,
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
        let opened = Link::open(&path, token);
        let (link, welcome, file) = opened.map_err(|error| failed(&path, error))?;
        let (arena, notes) = match file {
            Some(file) => restored(file, &welcome)?,
            None => (Arena::new(Vec::new())?, BTreeMap::new()),
        };
        let loops = notes.get(LOOPS).and_then(|(_, bytes)| Turns::decode(bytes));
        let mut tracker = Tracker::new(&arena);
        if welcome.restored {
            tracker.saved();
        }
        let age = Duration::from_micros(welcome.age_us);
        let agent = Agent {
            path,
            token,
            link: Some(link),
            alone: Duration::ZERO,
            tracker,
            staging: Staging::new()?,
            cadence: Cadence::new(welcome.every, age),
            saving: None,
            full: welcome.full || !welcome.restored,
            wanted: false,
            told: Duration::ZERO,
            listened: Duration::ZERO,
            failed: None,
        };
        let claimed = vec![false; arena.arrays().len()];
        Ok(Job {
            place: welcome,
            claimed,
            arena,
            notes,
            turns: loops.unwrap_or_default(),
            began: Instant::now(),
            agent: Some(agent),
        })
    }

    /// A job of one rank without an agent; the environment may say another place.
    fn by_itself() -> Result<Job, JobError> {
        let number = |name: &'static str, without: u32| match env::var(name) {
            Ok(text) => text.parse().map_err(|_| JobError::Environment(name)),
            Err(_) => Ok(without),
        };
        let place = Welcome {
            version: wire::PROTOCOL_VERSION,
            restored: false,
            full: false,
            blocking: false,
            rank: number(RANK_VARIABLE, 0)?,
            ranks: number(RANKS_VARIABLE, 1)?,
            job: 0,
            start: 1,
            step: 0,
            every: Every::Never,
            age_us: 0,
            arrays: Vec::new(),
        };
        Ok(Job {
            place,
            arena: Arena::new(Vec::new())?,
            claimed: Vec::new(),
            notes: BTreeMap::new(),
            turns: Turns::default(),
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
        Some((agent.tracker.kind(), agent.tracker.instead()))
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

    /// There is room for more arrays, beside the note with the loops.
    fn check_room(&self, more: usize) -> Result<(), JobError> {
        let loops = usize::from(!self.notes.contains_key(LOOPS));
        let all = self.arena.arrays().len() + self.notes.len() + loops + more;
        if all > MAX_ARRAYS { Err(JobError::Many(MAX_ARRAYS - 1)) } else { Ok(()) }
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
        self.turns.begin(turns)
    }

    /// A turn of the loop of this depth is about to begin: a safe point. True: a checkpoint is due,
    /// and [`save`](Job::save) is to be called now.
    ///
    /// # Errors
    /// This start is over.
    pub fn turn(&mut self, depth: usize, turn: u64) -> Result<bool, JobError> {
        self.turns.turn(depth, turn);
        self.look()
    }

    /// A loop is over: it has done all turns, or was left.
    pub fn end_loop(&mut self, depth: usize) {
        self.turns.end(depth);
    }

    /// Here the rank may be saved. True: a checkpoint is due, and [`save`](Job::save) is to be called
    /// now.
    ///
    /// # Errors
    /// This start is over.
    pub fn safe_point(&mut self) -> Result<bool, JobError> {
        self.turns.point();
        self.look()
    }

    fn look(&mut self) -> Result<bool, JobError> {
        let Some(agent) = &mut self.agent else { return Ok(false) };
        let (now, step) = (self.began.elapsed(), self.turns.step());
        if now >= agent.listened + LISTEN {
            agent.listened = now;
            agent.listen(now)?;
        }
        if now >= agent.told + TELL || agent.told.is_zero() {
            agent.told = now;
            agent.tell(now, step)?;
        }
        let due = agent.wanted || agent.cadence.is_due(now);
        Ok(due && agent.saving.is_none() && agent.link.is_some())
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
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let begun = self.began.elapsed();
        self.notes.insert(LOOPS.into(), (String::new(), self.turns.encode()));
        let notes: Vec<(Array, &[u8])> = self.notes.iter().map(note).collect();
        let changed = agent.tracker.changed(&self.arena)?;
        let changed = (!agent.full).then_some(&changed[..]);
        let step = self.turns.count();
        let mut snapshot = agent.staging.take(&self.arena, &notes, step, changed)?;
        let now = self.began.elapsed();
        snapshot.stop_us = u32::try_from((now - begun).as_micros()).unwrap_or(u32::MAX);
        agent.cadence.begin(now);
        (agent.saving, agent.wanted) = (Some((begun, now - begun)), false);
        let sent = agent
            .link
            .as_mut()
            .map(|link| link.send(&Frame::Snapshot(snapshot), Some(agent.staging.file())));
        match sent {
            Some(Err(error)) => agent.lost(now, error),
            _ => Ok(()),
        }
    }

    /// Waits until what was copied is saved.
    fn settle(&mut self) -> Result<(), JobError> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        while agent.saving.is_some() {
            let Some(link) = &mut agent.link else { break };
            let now = self.began.elapsed();
            match link.wait() {
                Ok(frame) => agent.hear(self.began.elapsed(), frame)?,
                Err(error) => agent.lost(now, error)?,
            }
        }
        Ok(())
    }

    /// The work is done: results are saved, and the job knows. The process may end then. The arrays are
    /// there as long as the job is; nothing is saved any more.
    ///
    /// # Errors
    /// This start is over, or the results cannot be saved.
    pub fn finish(&mut self) -> Result<(), JobError> {
        let has_results = self.notes.keys().any(|name| name.starts_with(RESULT));
        let (mut saved, mut failures) = (!has_results, 0);
        while self.agent.is_some() {
            // A snapshot that is still being saved comes first.
            self.settle()?;
            if !saved {
                self.snapshot()?;
                self.settle()?;
                let agent = self.agent.as_ref().expect("it is there");
                match (&agent.failed, &agent.link) {
                    (None, Some(_)) => saved = true,
                    (Some(why), Some(_)) if failures == TRIES => {
                        return Err(JobError::NotSaved(why.clone()));
                    }
                    (Some(_), Some(_)) => failures += 1,
                    (_, None) => {}
                }
            }
            if saved && self.say_finished()? {
                self.agent = None;
                break;
            }
            self.agent.as_mut().expect("it is there").find_again(self.began.elapsed())?;
        }
        Ok(())
    }

    /// False: the agent is gone.
    fn say_finished(&mut self) -> Result<bool, JobError> {
        let Some(agent) = &mut self.agent else { return Ok(true) };
        let now = self.began.elapsed();
        let Some(link) = &mut agent.link else { return Ok(false) };
        let sent = link.send(&Frame::Finish, None);
        if let Err(error) = sent {
            agent.lost(now, error)?;
            return Ok(false);
        }
        while let Some(link) = &mut agent.link {
            match link.wait() {
                Ok(Frame::Finished) => return Ok(true),
                Ok(frame) => agent.hear(now, frame)?,
                Err(error) => agent.lost(now, error)?,
            }
        }
        Ok(false)
    }
}

impl Agent {
    /// Hears what there is to hear.
    fn listen(&mut self, now: Duration) -> Result<(), JobError> {
        while let Some(link) = &mut self.link {
            match link.poll() {
                Ok(Some(frame)) => self.hear(now, frame)?,
                Ok(None) => return Ok(()),
                Err(error) => self.lost(now, error)?,
            }
        }
        Ok(())
    }

    fn hear(&mut self, now: Duration, frame: Frame) -> Result<(), JobError> {
        match frame {
            Frame::Saved(Saved { outcome, full, .. }) => {
                if let Some((begun, stop)) = self.saving.take()
                    && outcome.is_ok()
                {
                    self.tracker.saved();
                    // The agent's work for it costs a part of a processor as well.
                    self.cadence.cost(stop + (now - begun) / 4);
                }
                (self.full, self.failed) = (full, outcome.err());
                if self.failed.is_some() {
                    self.cadence.again(now);
                }
                Ok(())
            }
            Frame::Save => {
                self.wanted = true;
                Ok(())
            }
            Frame::Farewell(reason) => Err(JobError::Over(reason)),
            _ => Ok(()),
        }
    }

    /// Tells how far the rank is, or looks for an agent.
    fn tell(&mut self, now: Duration, step: Step) -> Result<(), JobError> {
        match &mut self.link {
            Some(link) => match link.send(&Frame::Step(step), None) {
                Ok(()) => Ok(()),
                Err(error) => self.lost(now, error),
            },
            None => self.look_for(now),
        }
    }

    /// The link is broken. The rank computes on: another agent may come.
    fn lost(&mut self, now: Duration, error: LinkError) -> Result<(), JobError> {
        if let LinkError::Refused(reason) = error {
            return Err(JobError::Over(reason));
        }
        (self.link, self.alone, self.saving) = (None, now, None);
        // Nobody knows which image would be the one below.
        self.full = true;
        self.failed = Some("the agent has gone".into());
        Ok(())
    }

    fn look_for(&mut self, now: Duration) -> Result<(), JobError> {
        match Link::open(&self.path, self.token) {
            Ok((link, ..)) => {
                // A copy that was made meanwhile went to nobody.
                (self.link, self.saving, self.wanted) = (Some(link), None, true);
                Ok(())
            }
            Err(LinkError::Refused(reason)) => Err(JobError::Over(reason)),
            Err(LinkError::Io(_)) if now >= self.alone + ALONE => {
                Err(JobError::Alone(ALONE.as_secs()))
            }
            Err(LinkError::Io(_)) => Ok(()),
        }
    }

    /// Waits for another agent, if this one is gone.
    fn find_again(&mut self, mut now: Duration) -> Result<(), JobError> {
        while self.link.is_none() {
            self.look_for(now)?;
            if self.link.is_none() {
                std::thread::sleep(TELL);
                now += TELL;
            }
        }
        Ok(())
    }
}

/// A note as an array beside the arena.
fn note<'a>((name, (form, bytes)): (&'a String, &'a (String, Vec<u8>))) -> (Array, &'a [u8]) {
    (Array { name: name.clone(), form: form.clone(), length: bytes.len() as u64 }, bytes)
}

type Notes = BTreeMap<String, (String, Vec<u8>)>;

/// Notes are behind all arrays.
fn restored(file: File, welcome: &Welcome) -> Result<(Arena, Notes), JobError> {
    let first = welcome.arrays.iter().position(|array| array.name.starts_with(PREFIX));
    let mut arena = Arena::restored(file, welcome.arrays.clone())?;
    let notes = arena.split_off(first.unwrap_or(welcome.arrays.len()));
    Ok((arena, notes.into_iter().map(|(it, bytes)| (it.name, (it.form, bytes))).collect()))
}

fn failed(path: &std::path::Path, error: LinkError) -> JobError {
    match error {
        LinkError::Io(source) => JobError::Agent { path: path.display().to_string(), source },
        LinkError::Refused(reason) => JobError::Over(reason),
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
