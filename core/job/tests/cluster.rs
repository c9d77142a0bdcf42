//! A cluster with book, director and agents. Ranks, agents and nodes die, words are late, images
//! rot. Each rank ends with the result of an undisturbed run, once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use image::{Parent, Place, Root};
use steadfast_job::{
    Agent, Assignment, Command, Director, End, Host, JobState, Jobs, Key, Moments, Output, Planted,
    RankState, Sight, Spec, Taken, Task, Void, Word,
};
use wire::{Incarnation, Member, NodeId, Random, Time};

const NODES: usize = 3;
const RANKS: u32 = 3;
/// A rank's turns.
const WORK: u64 = 40;
/// Steps of the world in which faults happen, and at most all.
const FAULTS: u64 = 1_500;
const ALL: u64 = 60_000;

/// An undisturbed rank's state after so many turns.
fn work(state: u64, rank: u32) -> u64 {
    (state ^ u64::from(rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)
}

fn result(rank: u32) -> u64 {
    (0..WORK).fold(u64::from(rank), |state, _| work(state, rank))
}

/// A rank's process.
#[derive(Clone, Default)]
struct Process {
    step: u64,
    state: u64,
    /// It waits for a snapshot to be saved.
    saving: bool,
    full: bool,
    finishing: bool,
}

/// An image on a disk.
#[derive(Clone)]
struct Image {
    root: Root,
    parent: Option<Parent>,
    step: u64,
    state: u64,
    rotten: bool,
}

struct Node {
    life: u64,
    alive: bool,
    /// The others do not see it until then, and it hears and says nothing.
    cut: u64,
    agent: Option<Agent>,
    /// Which of the node's agents that is.
    serial: u64,
    processes: BTreeMap<Key, Process>,
    /// Images of which its agent has heard that they count.
    committed: BTreeSet<Place>,
    /// Starts of this life that have not been released.
    begun: BTreeSet<Key>,
    disk: BTreeMap<Place, Image>,
    /// Versions of the assignment that the agent has yet to see.
    news: VecDeque<Assignment>,
    /// Commands on their way to the book, and answers on their way back.
    said: VecDeque<(u64, Command)>,
    answers: VecDeque<(Command, Result<Taken, Void>)>,
}

struct World {
    random: Random,
    planted: Planted,
    now: u64,
    book: Jobs,
    job: u64,
    director: Director,
    nodes: Vec<Node>,
    results: BTreeMap<u32, u64>,
}

fn member(node: usize, life: u64) -> Member {
    Member { node: NodeId(node as u32 + 1), incarnation: Incarnation(life) }
}

impl World {
    fn new(seed: u64, planted: Planted) -> World {
        let mut book = Jobs::planted(planted);
        let spec = Spec {
            name: "matmul".into(),
            command: vec!["matmul".into()],
            ranks: RANKS,
            copies: 1 + (seed % 3) as u8,
            ..Spec::default()
        };
        let job = book.take(Time(1), &Command::Submit(spec)).unwrap().job.unwrap();
        let node = |_| Node {
            life: 1,
            alive: true,
            cut: 0,
            agent: None,
            serial: 0,
            processes: BTreeMap::new(),
            committed: BTreeSet::new(),
            begun: BTreeSet::new(),
            disk: BTreeMap::new(),
            news: VecDeque::new(),
            said: VecDeque::new(),
            answers: VecDeque::new(),
        };
        World {
            random: Random::new(seed),
            planted,
            now: 0,
            book,
            job,
            director: Director::default(),
            nodes: (0..NODES).map(node).collect(),
            results: BTreeMap::new(),
        }
    }

    fn pick(&mut self, below: usize) -> usize {
        self.random.below(below.max(1) as u64) as usize
    }

    fn time(&self) -> Time {
        Time(1 + self.now * 1_000_000)
    }

    fn order(&mut self, command: &Command) -> Result<Taken, Void> {
        let taken = self.book.take(self.time(), command);
        if taken.is_ok() {
            for (place, node) in (0..).zip(&mut self.nodes) {
                if node.alive {
                    node.news.push_back(self.book.assignment(member(place, node.life)));
                }
            }
        }
        taken
    }

    fn fault(&mut self) {
        let at = self.pick(NODES);
        let which = self.random.below(40);
        let (life, node) = (self.nodes[at].life, &mut self.nodes[at]);
        match which {
            0..8 => {
                let keys: Vec<Key> = node.processes.keys().copied().collect();
                let victim = keys.get(self.pick(keys.len())).copied();
                self.end(at, victim, End::Killed(9));
            }
            8..12 => self.nodes[at].agent = None,
            12 if node.alive => {
                (node.alive, node.agent, node.life) = (false, None, life + 1);
                node.processes.clear();
                node.begun.clear();
                node.said.clear();
                node.answers.clear();
                node.news.clear();
            }
            36..38 => self.nodes[at].cut = self.now + 60,
            13..16 => {
                if let Some(image) = node.disk.values_mut().next_back() {
                    image.rotten = true;
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, at: usize, key: Option<Key>, end: End) {
        let Some(key) = key else { return };
        let now = self.time();
        self.nodes[at].processes.remove(&key);
        if let Some(agent) = &mut self.nodes[at].agent {
            agent.handle_ended(key, end, now);
        }
    }

    /// A node's agent begins, if it has none.
    fn begin(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if !node.alive {
            node.alive = self.random.below(20) == 0;
            return;
        }
        if node.agent.is_none() && self.random.below(10) == 0 {
            let me = member(at, node.life);
            let disk: Vec<(Place, Root)> =
                node.disk.iter().map(|(place, image)| (*place, image.root)).collect();
            let host = Host { copies: at.to_string(), ..Host::default() };
            let begun = node.begun.iter().map(|key| (*key, node.processes.contains_key(key)));
            let agent = Agent::new(me, host, disk, begun).planted(self.planted);
            node.agent = Some(agent);
            node.serial += 1;
            // Its ranks find it, and begin with a full snapshot.
            for process in node.processes.values_mut() {
                (process.saving, process.full, process.finishing) = (false, true, false);
            }
            // Words of an earlier one may still arrive; it does not hear the answers.
            node.answers.clear();
            node.committed.clear();
            node.news = [self.book.assignment(me)].into();
        }
    }

    /// A process does something.
    fn compute(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let keys: Vec<Key> = node.processes.keys().copied().collect();
        let Some(key) = keys.get(self.random.below(keys.len().max(1) as u64) as usize).copied()
        else {
            return;
        };
        let process = node.processes.get_mut(&key).unwrap();
        let Some(agent) = &mut node.agent else { return };
        if process.step < WORK {
            process.state = work(process.state, key.rank);
            process.step += 1;
        }
        if self.random.below(4) == 0 && !process.saving {
            process.saving = true;
            agent.handle_snapshot(key, process.step, process.full);
        } else if process.step == WORK && !process.finishing && !process.saving {
            process.finishing = true;
            agent.handle_finish(key, Time(1));
        }
    }

    /// The agent's tasks are done.
    fn outputs(&mut self, at: usize) -> Result<(), String> {
        loop {
            let node = &mut self.nodes[at];
            let output = node.agent.as_mut().and_then(Agent::poll_output);
            let Some(output) = output else { return Ok(()) };
            match output {
                Output::Start(task) => self.start(at, &task)?,
                Output::Kill(key) => self.end(at, Some(key), End::Killed(15)),
                Output::Tell(key, word) => self.tell(at, key, word)?,
                Output::Save(place, parent) => self.save(at, place, parent)?,
                Output::Remove(place) => self.remove(at, place)?,
                Output::Release(key) => {
                    node.begun.remove(&key);
                }
                Output::Fetch(place, root, from) => self.fetch(at, place, root, &from),
                Output::Say(command) => node.said.push_back((node.serial, command)),
            }
        }
    }

    fn start(&mut self, at: usize, task: &Task) -> Result<(), String> {
        let (key, now) = (task.key(), self.time());
        let node = &mut self.nodes[at];
        if !node.begun.insert(key) {
            return Err(format!("{key:?} begins twice"));
        }
        let agent = node.agent.as_mut().unwrap();
        let mut process = Process {
            state: u64::from(task.rank),
            full: task.from.is_none(),
            ..Process::default()
        };
        let mut wanted = task.from;
        let mut newest = true;
        while let Some((place, root)) = wanted {
            let image = node.disk.get(&place).filter(|image| image.root == root && !image.rotten);
            let Some(image) = image else {
                agent.handle_damaged(place);
                agent.handle_ended(key, End::Damaged, now);
                return Ok(());
            };
            if std::mem::take(&mut newest) {
                (process.step, process.state) = (image.step, image.state);
            }
            wanted = image.parent.map(|parent| (parent.place, parent.root));
        }
        if node.processes.insert(key, process).is_some() {
            return Err(format!("{key:?} runs twice"));
        }
        agent.handle_computes(key, Moments::default());
        Ok(())
    }

    fn tell(&mut self, at: usize, key: Key, word: Word) -> Result<(), String> {
        let Some(process) = self.nodes[at].processes.get_mut(&key) else { return Ok(()) };
        match word {
            Word::Saved(_, full) => (process.saving, process.full) = (false, full),
            Word::Save => {}
            Word::Finished => {
                let (rank, state) = (key.rank, process.state);
                let it = &self.book.job(self.job).unwrap().ranks[rank as usize];
                let counts = (it.state, it.start) == (RankState::Finished, key.start);
                if counts && self.results.insert(rank, state).is_some() {
                    return Err(format!("rank {rank} has delivered twice"));
                }
                self.end(at, Some(key), End::Failed(0));
            }
        }
        Ok(())
    }

    fn save(&mut self, at: usize, place: Place, parent: Option<Parent>) -> Result<(), String> {
        let mut root = [0; 32];
        root[..8].copy_from_slice(&self.random.next_u64().to_le_bytes());
        let node = &mut self.nodes[at];
        let key = Key { job: place.job, rank: place.rank, start: place.start };
        let Some(process) = node.processes.get(&key) else {
            let died = Err("the rank has ended".into());
            node.agent.as_mut().unwrap().handle_saved(place, parent, died);
            return Ok(());
        };
        let (step, state) = (process.step, process.state);
        let agent = node.agent.as_mut().unwrap();
        if node.disk.contains_key(&place) {
            // The file is there already: an earlier agent has died over it.
            agent.handle_saved(place, parent, Err("it exists".into()));
            node.disk.remove(&place);
            return Ok(());
        }
        node.disk.insert(place, Image { root, parent, step, state, rotten: false });
        agent.handle_saved(place, parent, Ok((root, 9)));
        Ok(())
    }

    /// A copy comes from the first of these nodes that has the image. Who gives one away reads it, and
    /// so finds that it is rotten.
    fn fetch(&mut self, at: usize, place: Place, root: Root, from: &[String]) {
        let mut fetched = Err("it cannot be had".into());
        for other in from.iter().map(|name| name.parse::<usize>().unwrap()) {
            let node = &mut self.nodes[other];
            let image = node.disk.get(&place).filter(|it| node.alive && it.root == root).cloned();
            let (Some(image), Some(agent)) = (image, &mut node.agent) else { continue };
            if image.rotten {
                agent.handle_damaged(place);
            } else if self.random.below(5) > 0 {
                self.nodes[at].disk.insert(place, image);
                fetched = Ok(root);
                break;
            }
        }
        self.nodes[at].agent.as_mut().unwrap().handle_fetched(place, fetched);
    }

    /// No image goes that counts, and of which the agent knows that it does.
    fn remove(&mut self, at: usize, place: Place) -> Result<(), String> {
        let node = &mut self.nodes[at];
        let Some(image) = node.disk.remove(&place) else { return Ok(()) };
        let me = member(at, node.life);
        let ranks = &self.book.job(self.job).unwrap().ranks;
        let mut images = ranks[place.rank as usize].images.generations();
        let counts =
            images.any(|it| (it.place, it.root) == (place, image.root) && it.holders.contains(&me));
        match counts && node.committed.contains(&place) && !image.rotten {
            true => Err(format!("{place} is removed, and counts")),
            false => Ok(()),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.now += 1;
        if self.now < FAULTS && self.random.below(4) == 0 {
            self.fault();
        }
        let at = self.pick(NODES);
        self.begin(at);
        self.compute(at);
        self.outputs(at)?;
        let (now, cut) = (self.time(), self.nodes[at].cut > self.now);
        let node = &mut self.nodes[at];
        match self.random.below(4) {
            0..=2 if cut => {}
            0 => {
                if let Some((serial, command)) = node.said.pop_front() {
                    let taken = self.order(&command);
                    let node = &mut self.nodes[at];
                    // Its answer finds who has said it.
                    if node.serial == serial {
                        node.answers.push_back((command, taken));
                    }
                }
            }
            1 => {
                if let (Some(agent), Some((command, answer))) =
                    (&mut node.agent, node.answers.pop_front())
                {
                    agent.handle_answer(&command, &answer);
                    if let (Command::Commit { place, .. }, Ok(_)) = (&command, &answer) {
                        node.committed.insert(*place);
                    }
                }
            }
            2 => {
                if let (Some(agent), Some(news)) = (&mut node.agent, node.news.pop_front()) {
                    agent.assign(now, news);
                } else if let Some(agent) = &mut node.agent {
                    agent.handle_timeout();
                }
            }
            _ => self.direct(),
        }
        self.outputs(at)?;
        self.check()
    }

    fn direct(&mut self) {
        let now = self.now;
        let members = (0..).zip(&self.nodes).filter(|(_, node)| node.alive && node.cut <= now);
        let members = members.map(|(place, node)| member(place, node.life)).collect();
        let sight = Sight { members, ..Sight::default() };
        for command in self.director.look(self.time(), &sight, &self.book) {
            if self.random.below(3) > 0 {
                // It is void where something has come between.
                let _ = self.order(&command);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.book.job(self.job).unwrap().state == JobState::Finished
    }

    /// No start runs that is over, where the agent has heard of it.
    fn check_starts(&self) -> Result<(), String> {
        let job = self.book.job(self.job).unwrap();
        for (place, node) in (0..).zip(&self.nodes) {
            let heard = node.alive && node.agent.is_some() && node.news.is_empty();
            for (key, _) in node.processes.iter().filter(|(_, it)| heard && !it.finishing) {
                let rank = &job.ranks[key.rank as usize];
                let here = rank.state == RankState::At(member(place, node.life));
                if !here || rank.start != key.start || job.state != JobState::Running {
                    return Err(format!("{key:?} runs, and is over"));
                }
            }
        }
        Ok(())
    }

    /// Images that count as held are there, or their loss has yet to be told.
    fn check(&self) -> Result<(), String> {
        self.check_starts()?;
        let job = self.book.job(self.job).unwrap();
        let images = job.ranks.iter().flat_map(|rank| rank.images.generations());
        for image in images {
            for holder in &image.holders {
                let node = &self.nodes[holder.node.0 as usize - 1];
                let lives = node.alive && node.life == holder.incarnation.0;
                let there = node.disk.get(&image.place).is_some_and(|it| it.root == image.root);
                // An agent that has died may not have told, and words may be on their way.
                let quiet = node.said.is_empty() && node.answers.is_empty() && node.news.is_empty();
                if lives && node.agent.is_some() && quiet && !there {
                    return Err(format!("{} is said to be at {holder:?}, and is not", image.place));
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        for rank in 0..RANKS {
            // The answer may have been for an agent that died; the images say the rest.
            if self.results.get(&rank).is_some_and(|it| *it != result(rank)) {
                return Err(format!("rank {rank} has a wrong result"));
            }
        }
        let ranks = &self.book.job(self.job).unwrap().ranks;
        let finished = ranks.iter().all(|rank| rank.state == RankState::Finished);
        let left: BTreeSet<Key> =
            self.nodes.iter().flat_map(|node| node.processes.keys().copied()).collect();
        match finished && left.is_empty() {
            true => Ok(()),
            false => Err(format!("left: {left:?}, {ranks:?}")),
        }
    }
}

/// Runs a world; the promise that was broken.
fn run(seed: u64, planted: Planted) -> Result<(), String> {
    let mut world = World::new(seed, planted);
    while world.now < ALL && !world.is_over() {
        if let JobState::Failing(..) | JobState::Lost(_) = world.book.job(world.job).unwrap().state
        {
            let job = world.job;
            world.order(&Command::Resume { job }).unwrap();
        }
        world.step()?;
    }
    if !world.is_over() {
        return Err(format!("it does not end: {:?}", world.book.job(world.job).unwrap().ranks));
    }
    for _ in 0..4_000 {
        world.step()?;
    }
    world.finish()
}

#[test]
fn each_rank_ends_as_undisturbed_whatever_dies() {
    for seed in 0..300 {
        run(seed, Planted::default()).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_mistakes_of_agents_are_found() {
    use steadfast_job::Bug;

    for bug in [Bug::RemoveByOldList, Bug::LeaveOldStart] {
        let found = (0..300).find_map(|seed| run(seed, Planted::from(Some(bug))).err());
        println!("{bug:?}: {found:?}");
        assert!(found.is_some(), "{bug:?} is not found");
    }
}
