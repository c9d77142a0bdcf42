//! The book beside a cluster in which commands come late, twice and from starts that are over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use image::{Parent, Place, Root};
use steadfast_job::{
    Command, End, JobState, Jobs, KEPT, MAX_COMMAND, Planted, RankState, Spec, Void,
};
use wire::{Duration, Incarnation, Member, NodeId, Random, Time};

const NODES: u64 = 4;
const RANKS: u32 = 3;

/// The truth about one rank, whatever the book says.
#[derive(Default)]
struct Truth {
    /// Where each start was ordered to run, by its number.
    starts: BTreeMap<u64, Member>,
    /// The present one, while it runs.
    runs: Option<u64>,
    /// The image from which the last start went on; 0: anew.
    from: u64,
}

struct World {
    random: Random,
    book: Jobs,
    job: u64,
    truth: Vec<Truth>,
    /// The present life of each node, from 1.
    lives: Vec<u64>,
    /// The images on the nodes' disks.
    disks: BTreeSet<(NodeId, Place)>,
    roots: BTreeMap<Place, (Root, Option<Parent>)>,
    /// Words of each node that nobody has heard yet, in order.
    said: BTreeMap<NodeId, VecDeque<Command>>,
    /// Words of the director that come a second time, later.
    late: Vec<Command>,
}

fn spec() -> Spec {
    Spec {
        name: "matmul".into(),
        command: vec!["python".into(), "matmul.py".into()],
        ranks: RANKS,
        copies: 2,
        ..Spec::default()
    }
}

impl World {
    fn new(seed: u64, planted: Planted) -> World {
        let mut book = Jobs::planted(planted);
        let job = book.take(Time(1), &Command::Submit(spec())).unwrap().job.unwrap();
        World {
            random: Random::new(seed),
            book,
            job,
            truth: (0..RANKS).map(|_| Truth::default()).collect(),
            lives: vec![1; NODES as usize + 1],
            disks: BTreeSet::new(),
            roots: BTreeMap::new(),
            said: BTreeMap::new(),
            late: Vec::new(),
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        self.random.below(count.max(1) as u64) as usize
    }

    /// A node in its present life.
    fn node(&mut self) -> Member {
        let node = 1 + self.random.below(NODES) as u32;
        Member { node: NodeId(node), incarnation: Incarnation(self.lives[node as usize]) }
    }

    fn images(&self, rank: u32) -> Vec<Place> {
        let rank = &self.book.job(self.job).unwrap().ranks[rank as usize];
        rank.images.generations().map(|it| it.place).collect()
    }

    /// A node does something, and says so: that is heard later.
    fn act(&mut self) {
        let rank = self.random.below(RANKS.into()) as u32;
        let (node, images) = (self.node(), self.images(rank));
        let image = images.get(self.pick(images.len())).copied();
        let command = match (self.random.below(5), image) {
            (3, Some(place)) => {
                self.disks.insert((node.node, place));
                Command::Held { place, root: self.roots[&place].0, holder: node }
            }
            (4, Some(place)) => {
                self.disks.remove(&(node.node, place));
                Command::Lost { place, holder: node }
            }
            _ => self.save(rank, &images),
        };
        let (Command::Held { holder, .. }
        | Command::Lost { holder, .. }
        | Command::Commit { holder, .. }) = &command
        else {
            return;
        };
        self.said.entry(holder.node).or_default().push_back(command);
    }

    /// An image of any start, over or not, full or on one that the rank has.
    fn save(&mut self, rank: u32, images: &[Place]) -> Command {
        let last = self.truth[rank as usize].starts.len() as u64;
        let start = if self.random.below(4) == 0 { self.random.below(last + 1) } else { last };
        let generation = self.book.job(self.job).unwrap().ranks[rank as usize].images.next();
        let place = Place { job: self.job, rank, start, generation };
        let holder = self.truth[rank as usize].starts.get(&start).copied();
        let holder = holder.unwrap_or_else(|| self.node());
        let below = images.get(self.pick(images.len() + 2));
        let parent = below.map(|place| Parent { place: *place, root: self.roots[place].0 });
        let mut root = [0; 32];
        root[..8].copy_from_slice(&self.random.next_u64().to_le_bytes());
        let (root, parent) = *self.roots.entry(place).or_insert((root, parent));
        self.disks.insert((holder.node, place));
        Command::Commit {
            place,
            root,
            bytes: 9,
            step: 1,
            parent,
            holder,
            talks: false,
            counts: Vec::new(),
        }
    }

    /// The director says something, or somebody is heard at last.
    fn command(&mut self) -> Option<Command> {
        let rank = self.random.below(RANKS.into()) as u32;
        let (job, node, images) = (self.job, self.node(), self.images(rank));
        let start = self.truth[rank as usize].starts.len() as u64;
        Some(match self.random.below(12) {
            0 | 1 => Command::Start { job, rank, start: start + self.random.below(2), node },
            2 => Command::Ended { job, rank, start, end: End::Killed(9), at: Time(1) },
            3 if self.random.below(4) == 0 => {
                self.lives[node.node.0 as usize] += 1;
                if self.random.below(2) == 0 {
                    self.disks.retain(|(holder, _)| *holder != node.node);
                }
                Command::Gone { node }
            }
            4 => Command::Retire { place: *images.get(self.pick(images.len()))? },
            5 if !self.late.is_empty() => {
                let at = self.pick(self.late.len());
                self.late.swap_remove(at)
            }
            _ => self.said.get_mut(&node.node)?.pop_front()?,
        })
    }

    fn whole(&self, rank: u32) -> usize {
        let rank = &self.book.job(self.job).unwrap().ranks[rank as usize];
        rank.images.restorable().count()
    }

    fn step(&mut self) -> Result<(), String> {
        self.act();
        let Some(command) = self.command() else { return Ok(()) };
        let before: Vec<usize> = (0..RANKS).map(|rank| self.whole(rank)).collect();
        let taken = self.book.take(Time(1), &command).is_ok();
        let of_a_node = matches!(command, Command::Held { .. } | Command::Lost { .. });
        if !of_a_node && self.random.below(3) == 0 {
            self.late.push(command.clone());
        }
        if let Command::Gone { node } = &command {
            for truth in &mut self.truth {
                truth.runs.take_if(|start| {
                    truth.starts[start] <= *node && truth.starts[start].node == node.node
                });
            }
        }
        if taken {
            self.follow(&command, &before)?;
        }
        self.check()
    }

    /// A command was taken: what it says has to be true.
    fn follow(&mut self, command: &Command, before: &[usize]) -> Result<(), String> {
        let demand = |so: bool, why: &str| so.then_some(()).ok_or(format!("{command:?}: {why}"));
        match command {
            Command::Start { rank, start, node, .. } => {
                let from = self.book.to_restore(self.job, *rank);
                let from = from.first().map_or(0, |image| image.place.generation);
                let truth = &mut self.truth[*rank as usize];
                truth.from = from;
                demand(truth.starts.insert(*start, *node).is_none(), "the start runs twice")?;
                demand(truth.runs.replace(*start).is_none(), "the rank runs already")
            }
            Command::Ended { rank, start, .. } => {
                let ran = self.truth[*rank as usize].runs.take();
                demand(ran == Some(*start), "the start does not run")
            }
            Command::Commit { place, .. } => {
                let runs = self.truth[place.rank as usize].runs;
                demand(runs == Some(place.start), "the image counts, and its start is over")
            }
            Command::Retire { place } => {
                let kept = before[place.rank as usize].min(KEPT);
                demand(self.whole(place.rank) >= kept, "the image was needed")
            }
            _ => Ok(()),
        }
    }

    /// A node has it, or has yet to say that it has it no more.
    fn is_there(&self, place: Place) -> bool {
        let is_it = |command: &Command| matches!(command, Command::Lost { place: lost, .. } if *lost == place);
        self.disks.iter().any(|(_, it)| *it == place) || self.said.values().flatten().any(is_it)
    }

    /// All that would be restored is there.
    fn check(&self) -> Result<(), String> {
        for rank in 0..RANKS {
            let images = self.book.to_restore(self.job, rank);
            let mut wanted = images.first().map(|image| image.place);
            let truth = &self.truth[rank as usize];
            if let Some(place) = wanted
                && place.start < truth.starts.len() as u64
                && place.generation > truth.from
            {
                return Err(format!("{place} is of a past that the last start did not have"));
            }
            for image in &images {
                if wanted != Some(image.place) {
                    return Err(format!("{} is not the one below", image.place));
                }
                wanted = self.roots[&image.place].1.map(|parent| parent.place);
                if !self.is_there(image.place) {
                    return Err(format!("{} is to be restored, and nobody has it", image.place));
                }
            }
            if wanted.is_some() {
                return Err(format!("rank {rank} is to restore an image without all below it"));
            }
        }
        Ok(())
    }
}

/// Runs a world; the promise that was broken.
fn run(seed: u64, planted: Planted) -> Result<(), String> {
    let mut world = World::new(seed, planted);
    (0..600).try_for_each(|_| world.step())
}

#[test]
fn what_would_be_restored_is_there_and_of_the_right_start() {
    for seed in 0..1_000 {
        run(seed, Planted::default()).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_mistakes_are_found() {
    use steadfast_job::Bug;

    // Those of agents and moves are found by the simulator's world of jobs.
    let others = [Bug::RemoveByOldList, Bug::LeaveOldStart, Bug::MoveTooEarly];
    for bug in Bug::all().filter(|bug| !others.contains(bug)) {
        let found = (0..1_000).find_map(|seed| run(seed, Planted::from(Some(bug))).err());
        println!("{bug:?}: {found:?}");
        assert!(found.is_some(), "{bug:?} is not found");
    }
}

#[test]
fn a_job_is_submitted_stopped_resumed_and_finished() {
    let mut book = Jobs::default();
    let job = book.take(Time(1), &Command::Submit(spec())).unwrap().job.unwrap();
    let node = Member { node: NodeId(1), incarnation: Incarnation(1) };
    assert_eq!(book.take(Time(1), &Command::Submit(spec())), Err(Void::NameTaken));
    assert_eq!(book.take(Time(1), &Command::Forget { job }), Err(Void::State));
    book.take(Time(1), &Command::Kill { job }).unwrap();
    let start = |rank| Command::Start { job, rank, start: 1, node };
    assert_eq!(book.take(Time(1), &start(0)), Err(Void::State), "it is stopped");
    book.take(Time(1), &Command::Resume { job }).unwrap();
    for rank in 0..RANKS {
        book.take(Time(1), &start(rank)).unwrap();
        assert_eq!(book.take(Time(1), &start(rank)), Err(Void::Stale));
        book.take(
            Time(1),
            &Command::Ended { job, rank, start: 1, end: End::Finished, at: Time(1) },
        )
        .unwrap();
    }
    assert_eq!(book.job(job).unwrap().state, JobState::Finished);
    assert!(book.job(job).unwrap().ranks.iter().all(|rank| rank.state == RankState::Finished));
    book.take(Time(1), &Command::Forget { job }).unwrap();
    assert!(book.job(job).is_none());
}

#[test]
fn an_impossible_job_is_refused_with_the_remedy() {
    let mut book = Jobs::default();
    for (wrong, words) in [
        (Spec { name: String::new(), ..spec() }, "1 to 128 bytes"),
        (Spec { command: Vec::new(), ..spec() }, "behind --"),
        (Spec { ranks: 0, ..spec() }, "1 to 1024 ranks"),
        (Spec { copies: 5, ..spec() }, "1 to 4 copies"),
        (Spec { name: "a/b".into(), ..spec() }, "no slash"),
        (Spec { folder: "x".repeat(MAX_COMMAND), ..spec() }, "put what is long into a file"),
        (Spec { stall: Duration::from_millis(50), ..spec() }, "1 s or more (--stall)"),
        (Spec { labels: vec![String::new(); 17], ..spec() }, "at most 16 labels"),
    ] {
        let void = book.take(Time(1), &Command::Submit(wrong)).unwrap_err();
        assert!(void.to_string().contains(words), "{void}");
    }
}
