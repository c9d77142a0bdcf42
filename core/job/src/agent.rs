//! A node's part in its jobs: it has the ranks run that the book wants there, commits their images,
//! and keeps no image that nobody needs.
//!
//! It is told what the book wants ([`Agent::assign`]), what processes and disk do, and the book's
//! answers; it says what is to be done ([`Output`]). It remembers nothing that the book does not
//! have, but for what runs: a new agent is told of processes that still run.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem;

use image::{MAX_CHAIN, Parent, Place, Root};
use wire::rank::Counts;
use wire::{Member, Time};

use crate::bug::{Bug, Planted};
use crate::progress::{End, Moments};
use crate::{Assignment, Command, Host, Kept, Key, Taken, Task, Void};

/// A word for a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Its last snapshot is saved, as the image of this number, or not, and why; and whether the next
    /// one is to be full.
    Saved(Result<u64, String>, bool),
    /// Images before this one will not be restored.
    Oldest(u64),
    /// It is to save at its next safe point.
    Save,
    /// That it has finished is in the book.
    Finished,
}

/// A task for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Start a process.
    Start(Task),
    /// End it, and what it has started.
    Kill(Key),
    /// Tell a rank something.
    Tell(Key, Word),
    /// Write its snapshot as this image.
    Save(Place, Option<Parent>),
    /// Remove an image.
    Remove(Place),
    /// This start is over, and the book knows: nothing of it needs to be remembered.
    Release(Key),
    /// Get a copy of this image, with this root, from one of these agents.
    Fetch(Place, Root, Vec<String>),
    /// Say something to the book.
    Say(Command),
}

/// A start that runs here.
#[derive(Debug, Default)]
struct Run {
    /// The image on which the next increment builds, and the images of its chain.
    below: Option<Parent>,
    chain: usize,
    /// The number of the next image.
    next: u64,
    /// The image that is being written or committed, and how far the rank was.
    saving: Option<(Place, u64)>,
    /// A snapshot that waits for the number of the next image: how far the rank is, and whether it is
    /// a full one.
    waits: Option<(u64, bool)>,
    /// How often a user's wish for a checkpoint was passed on.
    saves: u64,
    /// It is to end.
    killed: bool,
    /// It has finished its work, and the book is to know.
    finishing: bool,
    /// It has sent messages, or got some.
    talks: bool,
    /// Its channels in the image that is being written.
    counts: Vec<Counts>,
    /// It has done its work, and waits for other ranks.
    done: bool,
    /// Images before this one are not restored.
    oldest: u64,
    /// Each image is a full one.
    full: bool,
    /// The process is gone.
    ended: bool,
}

/// An image on the disk.
#[derive(Clone, Copy, Debug)]
struct Own {
    root: Root,
    /// The version of the book that had it first.
    since: u64,
}

/// One node's agent.
#[derive(Debug)]
pub struct Agent {
    me: Member,
    host: Host,
    runs: BTreeMap<Key, Run>,
    /// Starts that were begun here, until the book shows that they are over: none is begun twice.
    begun: BTreeSet<Key>,
    disk: BTreeMap<Place, Own>,
    /// The image of which a copy is being fetched, and the last one that could not be had.
    fetching: Option<Place>,
    missed: Option<Place>,
    /// The book's wishes, as they were heard last.
    wanted: Assignment,
    /// Commands that were said, and not yet answered.
    said: Vec<Command>,
    outputs: VecDeque<Output>,
    planted: Planted,
}

impl Agent {
    /// The agent of this life of a node. `disk`: images that are whole there. `begun`: starts that an
    /// earlier agent of the same life has begun, and whether their processes still run.
    pub fn new(
        me: Member,
        host: Host,
        disk: impl IntoIterator<Item = (Place, Root)>,
        begun: impl IntoIterator<Item = (Key, bool)>,
    ) -> Agent {
        let own = |(place, root)| (place, Own { root, since: 0 });
        let begun: BTreeMap<Key, bool> = begun.into_iter().collect();
        let runs = begun.iter().filter(|(_, runs)| **runs).map(|(key, _)| (*key, Run::default()));
        Agent {
            me,
            host,
            runs: runs.collect(),
            begun: begun.keys().copied().collect(),
            disk: disk.into_iter().map(own).collect(),
            fetching: None,
            missed: None,
            wanted: Assignment::default(),
            said: Vec::new(),
            outputs: VecDeque::new(),
            planted: Planted::default(),
        }
    }

    /// The same with these mistakes.
    pub fn planted(self, planted: Planted) -> Agent {
        Agent { planted, ..self }
    }

    /// The next task for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The book wants this.
    pub fn assign(&mut self, now: Time, assignment: Assignment) {
        if !assignment.introduced {
            self.say(Command::Introduce { node: self.me, host: self.host.clone() });
        }
        self.end_others(&assignment);
        for task in &assignment.tasks {
            let key = task.key();
            match self.runs.get_mut(&key) {
                Some(run) => {
                    (run.full, run.next) = (task.spec.full, run.next.max(task.next));
                    if run.oldest < task.oldest {
                        run.oldest = task.oldest;
                        self.outputs.push_back(Output::Tell(key, Word::Oldest(task.oldest)));
                    }
                    if run.saves < task.saves {
                        run.saves = task.saves;
                        self.outputs.push_back(Output::Tell(key, Word::Save));
                    }
                }
                None if self.begun.contains(&key) => {
                    // It has ended, and the book has not heard it.
                    let Key { job, rank, start } = key;
                    self.say(Command::Ended { job, rank, start, end: End::Killed(0), at: now });
                }
                None => {
                    self.runs.insert(key, Run::of(task));
                    self.begun.insert(key);
                    self.outputs.push_back(Output::Start(task.clone()));
                    // It may have been asked for before this agent knew of it.
                    if task.saves > 0 {
                        self.outputs.push_back(Output::Tell(key, Word::Save));
                    }
                }
            }
        }
        self.wanted = assignment;
        self.compare_images();
        let numbered = self.runs.iter_mut().filter(|(_, run)| run.next > 0);
        let waiting = numbered.filter_map(|(key, run)| Some((*key, run.waits.take()?)));
        for (key, (step, full)) in waiting.collect::<Vec<_>>() {
            self.handle_snapshot(key, step, full);
        }
    }

    /// A start that runs here and is wanted no more ends.
    fn end_others(&mut self, assignment: &Assignment) {
        for (key, run) in &mut self.runs {
            let wanted = assignment.tasks.iter().any(|task| task.key() == *key);
            if !wanted && !run.killed && !run.ended && !self.planted.is(Bug::LeaveOldStart) {
                run.killed = true;
                if run.done && assignment.finished.contains(key) {
                    self.outputs.push_back(Output::Tell(*key, Word::Finished));
                }
                self.outputs.push_back(Output::Kill(*key));
            }
        }
        // One whose end is told goes when the book has it.
        let known = |key: &Key| {
            let task = assignment.tasks.iter().any(|task| task.key() == *key);
            task || assignment.ending.contains(key)
        };
        self.runs.retain(|key, run| !run.ended || known(key));
        let over = |key: &Key| !self.runs.contains_key(key) && !known(key);
        let over: Vec<Key> = self.begun.iter().copied().filter(over).collect();
        for key in over {
            self.begun.remove(&key);
            self.outputs.push_back(Output::Release(key));
        }
    }

    /// The disk and the book are brought together: by what the book has, and by what is here.
    fn compare_images(&mut self) {
        let assignment = mem::take(&mut self.wanted);
        let mut needless: Vec<Place> = Vec::new();
        let kept: BTreeMap<Place, (Root, bool)> =
            assignment.images.iter().map(|it| (it.place, (it.root, it.here))).collect();
        // The newest first: the first state that is whole is the one to go on from.
        for (place, own) in self.disk.iter().rev() {
            let by_old_list = assignment.version < own.since;
            if by_old_list && !self.planted.is(Bug::RemoveByOldList) {
                continue;
            }
            match kept.get(place) {
                Some((root, true)) if *root == own.root => {}
                Some((root, false)) if *root == own.root => {
                    let held = Command::Held { place: *place, root: *root, holder: self.me };
                    say(&mut self.said, &mut self.outputs, held);
                }
                // The book knows nothing of its job: its user may.
                _ if assignment.jobs.contains(&place.job) => needless.push(*place),
                _ => {}
            }
        }
        for place in needless {
            self.disk.remove(&place);
            self.outputs.push_back(Output::Remove(place));
        }
        let mine = assignment.images.iter().filter(|it| it.here || it.awaited);
        let lost: Vec<Place> = mine.map(|it| it.place).filter(|place| !self.has(*place)).collect();
        for place in lost {
            self.say(Command::Lost { place, holder: self.me });
        }
        self.fetch(&assignment);
        self.wanted = assignment;
    }

    /// One copy is fetched at a time, the oldest image first: later ones build on it.
    fn fetch(&mut self, assignment: &Assignment) {
        let missing = |it: &&Kept| !it.from.is_empty() && !self.has(it.place);
        // One that cannot be had must not hold up the others.
        let images = || assignment.images.iter().filter(missing);
        let next = images().find(|it| Some(it.place) > self.missed).or_else(|| images().next());
        if self.fetching.is_none()
            && let Some(image) = next
        {
            self.fetching = Some(image.place);
            self.outputs.push_back(Output::Fetch(image.place, image.root, image.from.clone()));
        }
    }

    /// A copy is whole on the disk, or could not be had.
    pub fn handle_fetched(&mut self, place: Place, fetched: Result<Root, String>) {
        self.fetching.take_if(|fetching| *fetching == place);
        match fetched {
            Ok(root) => {
                self.disk.insert(place, Own { root, since: 0 });
                self.compare_images();
            }
            Err(_) => self.missed = Some(place),
        }
    }

    /// Time has passed: what could not be had is tried again.
    pub fn handle_timeout(&mut self) {
        self.compare_images();
    }

    /// It is on the disk, or the book has it already while the answer is on its way.
    fn has(&self, place: Place) -> bool {
        let saving = |run: &Run| run.saving.is_some_and(|(saving, _)| saving == place);
        // Its start may be over by then.
        let commits =
            |it: &Command| matches!(it, Command::Commit { place: it, .. } if *it == place);
        self.disk.contains_key(&place)
            || self.runs.values().any(saving)
            || self.said.iter().any(commits)
    }

    /// Images of a rank that runs here which come before this one will not be restored.
    pub fn oldest(&self, key: Key) -> Option<u64> {
        self.runs.get(&key).map(|run| run.oldest).filter(|oldest| *oldest > 0)
    }

    /// A rank that has a snapshot has sent messages, or got some: it does not go back behind its kept
    /// states. `counts`: its channels in the snapshot, of a job of few ranks.
    pub fn handle_talk(&mut self, key: Key, counts: Vec<Counts>) {
        if let Some(run) = self.runs.get_mut(&key).filter(|run| run.saving.is_none()) {
            (run.talks, run.counts) = (true, counts);
        }
    }

    /// A rank has a snapshot.
    pub fn handle_snapshot(&mut self, key: Key, step: u64, full: bool) {
        let Some(run) = self.runs.get_mut(&key).filter(|run| !run.killed && !run.ended) else {
            return;
        };
        if run.next == 0 {
            // The number of its next image is not known yet: the book's wishes are on their way.
            run.waits = Some((step, full));
            return;
        }
        let busy = run.saving.is_some();
        let parent = run.below.filter(|_| !full);
        let fits = full || parent.is_some() && run.chain < MAX_CHAIN;
        if busy || !fits {
            let why =
                if busy { "the last snapshot is not saved yet" } else { "a full image is needed" };
            self.outputs.push_back(Output::Tell(key, Word::Saved(Err(why.into()), true)));
            return;
        }
        let Key { job, rank, start } = key;
        let place = Place { job, rank, start, generation: run.next };
        run.saving = Some((place, step));
        self.outputs.push_back(Output::Save(place, parent));
    }

    /// A snapshot is an image on the disk, or is not.
    pub fn handle_saved(
        &mut self,
        place: Place,
        parent: Option<Parent>,
        saved: Result<(Root, u64), String>,
    ) {
        let key = key_of(place);
        let run = self.runs.get_mut(&key);
        let (saving, talks, counts) = run.map_or((None, false, Vec::new()), |run| {
            (run.saving, run.talks, mem::take(&mut run.counts))
        });
        match (saving, saved) {
            (Some((_, step)), Ok((root, bytes))) => {
                let holder = self.me;
                self.say(Command::Commit {
                    place,
                    root,
                    bytes,
                    step,
                    parent,
                    holder,
                    talks,
                    counts,
                });
            }
            (None, Ok(_)) => {
                self.outputs.push_back(Output::Remove(place));
                self.compare_images();
            }
            (_, Err(why)) => self.give_up(key, why),
        }
    }

    /// A rank has finished its work. `waits`: others may need what it has sent, so it stays until
    /// they have finished as well.
    pub fn handle_finish(&mut self, key: Key, at: Time, waits: bool) {
        let Some(run) = self.runs.get_mut(&key).filter(|run| !run.killed) else { return };
        let Key { job, rank, start } = key;
        if waits {
            run.done = true;
            self.say(Command::Done { job, rank, start, at });
        } else if !mem::replace(&mut run.finishing, true) {
            self.say(Command::Ended { job, rank, start, end: End::Finished, at });
        }
    }

    /// A rank's process has ended, or could not begin.
    pub fn handle_ended(&mut self, key: Key, end: End, at: Time) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let told = run.finishing;
        run.ended = true;
        if !told {
            let Key { job, rank, start } = key;
            self.say(Command::Ended { job, rank, start, end, at });
        }
    }

    /// A rank computes.
    pub fn handle_computes(&mut self, key: Key, moments: Moments) {
        let Key { job, rank, start } = key;
        if start > 1 && self.runs.contains_key(&key) {
            self.say(Command::Computes { job, rank, start, moments });
        }
    }

    /// An image here is damaged, or gone: it could not be restored, or given away.
    pub fn handle_damaged(&mut self, place: Place) {
        // Else it may be on its way here once more.
        if self.disk.remove(&place).is_some() {
            self.outputs.push_back(Output::Remove(place));
        }
        self.say(Command::Lost { place, holder: self.me });
    }

    /// The book's answer.
    pub fn handle_answer(&mut self, command: &Command, answer: &Result<Taken, Void>) {
        let said = self.said.iter().position(|said| said == command);
        // Else an earlier agent has said it, and knew more of it.
        let Some(place) = said else { return };
        self.said.remove(place);
        match command {
            Command::Commit { place, root, parent, .. } => {
                self.committed(Parent { place: *place, root: *root }, parent.is_none(), answer);
            }
            Command::Ended { job, rank, start, end: End::Finished, .. } => {
                // Void: the book has it already, or another start counts. It is of no more use here.
                let key = Key { job: *job, rank: *rank, start: *start };
                self.outputs.push_back(Output::Tell(key, Word::Finished));
            }
            _ => {}
        }
    }

    fn committed(&mut self, image: Parent, full: bool, answer: &Result<Taken, Void>) {
        let Parent { place, root } = image;
        let key = key_of(place);
        let taken = match answer {
            Ok(taken) => taken,
            Err(void) => {
                self.outputs.push_back(Output::Remove(place));
                return self.give_up(key, void.to_string());
            }
        };
        self.disk.insert(place, Own { root, since: taken.version });
        let Some(run) = self.runs.get_mut(&key) else { return };
        run.chain = if full { 1 } else { run.chain + 1 };
        (run.below, run.saving, run.next) = (Some(image), None, place.generation + 1);
        let full = run.full || run.chain == MAX_CHAIN;
        self.outputs.push_back(Output::Tell(key, Word::Saved(Ok(place.generation), full)));
    }

    /// There is no image. The next one is a full one.
    fn give_up(&mut self, key: Key, why: String) {
        if let Some(run) = self.runs.get_mut(&key) {
            (run.saving, run.below) = (None, None);
            self.outputs.push_back(Output::Tell(key, Word::Saved(Err(why), true)));
        }
        // An earlier agent may have committed another one by this name.
        self.compare_images();
    }

    fn say(&mut self, command: Command) {
        say(&mut self.said, &mut self.outputs, command);
    }
}

impl Run {
    fn of(task: &Task) -> Run {
        let below = task.from.map(|(place, root)| Parent { place, root });
        let (next, saves, full) = (task.next, task.saves, task.spec.full);
        let (chain, oldest) = (task.chain, task.oldest);
        Run { below, chain, next, saves, full, oldest, ..Run::default() }
    }
}

/// A command that is on its way is not said twice.
fn say(said: &mut Vec<Command>, outputs: &mut VecDeque<Output>, command: Command) {
    if !said.contains(&command) {
        said.push(command.clone());
        outputs.push_back(Output::Say(command));
    }
}

fn key_of(Place { job, rank, start, .. }: Place) -> Key {
    Key { job, rank, start }
}
