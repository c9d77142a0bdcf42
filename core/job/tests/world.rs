//! The book beside a cluster in which commands come late, twice and from starts that are over.

use std::collections::{BTreeMap, BTreeSet};

use image::{Parent, Place, Root};
use steadfast_job::{Command, JobState, Jobs, KEPT, Planted, RankState, Spec, Void};
use wire::{NodeId, Random};

const NODES: u64 = 4;
const RANKS: u32 = 3;

/// The truth about one rank, whatever the book says.
#[derive(Default)]
struct Truth {
    /// Where each start was ordered to run, by its number.
    starts: BTreeMap<u64, NodeId>,
    /// The present one, while it runs.
    runs: Option<u64>,
}

struct World {
    random: Random,
    book: Jobs,
    job: u64,
    truth: Vec<Truth>,
    /// The images on the nodes' disks.
    disks: BTreeSet<(NodeId, Place)>,
    roots: BTreeMap<Place, (Root, Option<Parent>)>,
    /// Commands that come a second time, later.
    late: Vec<Command>,
}

fn spec() -> Spec {
    Spec {
        name: "matmul".into(),
        command: vec!["python".into(), "matmul.py".into()],
        ranks: RANKS,
        copies: 2,
        labels: Vec::new(),
        memory: 0,
    }
}

impl World {
    fn new(seed: u64, planted: Planted) -> World {
        let mut book = Jobs::planted(planted);
        let job = book.take(&Command::Submit(spec())).unwrap();
        World {
            random: Random::new(seed),
            book,
            job,
            truth: (0..RANKS).map(|_| Truth::default()).collect(),
            disks: BTreeSet::new(),
            roots: BTreeMap::new(),
            late: Vec::new(),
        }
    }

    fn node(&mut self) -> NodeId {
        NodeId(1 + self.random.below(NODES) as u32)
    }

    fn rank(&mut self) -> u32 {
        self.random.below(RANKS.into()) as u32
    }

    fn images(&self, rank: u32) -> Vec<Place> {
        let rank = &self.book.job(self.job).unwrap().ranks[rank as usize];
        rank.images.generations().map(|it| it.place).collect()
    }

    /// An image of any start, over or not, full or on one that the rank has.
    fn commit(&mut self) -> Command {
        let rank = self.rank();
        let last = self.truth[rank as usize].starts.len() as u64;
        let start = if self.random.below(4) == 0 { self.random.below(last + 1) } else { last };
        let known = self.images(rank);
        let generation = self.book.job(self.job).unwrap().ranks[rank as usize].images.next();
        let place = Place { job: self.job, rank, start, generation };
        let below = known.get(self.random.below(known.len() as u64 + 2) as usize);
        let parent = below.map(|place| Parent { place: *place, root: self.roots[place].0 });
        let mut root = [0; 32];
        root[..8].copy_from_slice(&self.random.next_u64().to_le_bytes());
        let holder = self.truth[rank as usize].starts.get(&start).copied();
        let holder = holder.unwrap_or_else(|| self.node());
        self.roots.entry(place).or_insert((root, parent));
        let (root, parent) = self.roots[&place];
        Command::Commit { place, root, bytes: 9, parent, holder }
    }

    fn command(&mut self) -> Command {
        let (job, rank, node) = (self.job, self.rank(), self.node());
        let truth = &self.truth[rank as usize];
        let start = truth.starts.len() as u64;
        let image = {
            let images = self.images(rank);
            let at = self.random.below(images.len().max(1) as u64) as usize;
            images.get(at).copied()
        };
        match self.random.below(12) {
            0..4 => self.commit(),
            4 | 5 => Command::Start { job, rank, start: start + self.random.below(2), node },
            6 => Command::Ended { job, rank, start, finished: false },
            7 if self.random.below(6) == 0 => Command::Gone { node },
            8 => match image {
                Some(place) => Command::Held { place, holder: node },
                None => self.commit(),
            },
            9 => match image {
                Some(place) => Command::Lost { place, holder: node },
                None => self.commit(),
            },
            10 => match image {
                Some(place) => Command::Retire { place },
                None => self.commit(),
            },
            _ if !self.late.is_empty() => {
                let at = self.random.below(self.late.len() as u64) as usize;
                self.late.swap_remove(at)
            }
            _ => self.commit(),
        }
    }

    fn whole(&self, rank: u32) -> usize {
        let rank = &self.book.job(self.job).unwrap().ranks[rank as usize];
        rank.images.restorable(Planted::default()).count()
    }

    fn step(&mut self) -> Result<(), String> {
        let command = self.command();
        // A copy is on a disk before anybody says so, and is gone before that is said.
        match &command {
            Command::Commit { place, holder, .. } | Command::Held { place, holder } => {
                self.disks.insert((*holder, *place));
            }
            Command::Lost { place, holder } => {
                self.disks.remove(&(*holder, *place));
            }
            Command::Gone { node } => self.disks.retain(|(holder, _)| holder != node),
            _ => {}
        }
        let before: Vec<usize> = (0..RANKS).map(|rank| self.whole(rank)).collect();
        let taken = self.book.take(&command).is_ok();
        if self.random.below(3) == 0 {
            self.late.push(command.clone());
        }
        if let Command::Gone { node } = &command {
            for truth in &mut self.truth {
                truth.runs.take_if(|start| truth.starts[start] == *node);
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
                let truth = &mut self.truth[*rank as usize];
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

    /// All that would be restored is there.
    fn check(&self) -> Result<(), String> {
        for rank in 0..RANKS {
            let images = self.book.to_restore(self.job, rank);
            let mut wanted = images.first().map(|image| image.place);
            for image in &images {
                if wanted != Some(image.place) {
                    return Err(format!("{} is not the one below", image.place));
                }
                wanted = self.roots[&image.place].1.map(|parent| parent.place);
                if !self.disks.iter().any(|(_, place)| *place == image.place) {
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
    (0..300).try_for_each(|_| world.step())
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
    for bug in steadfast_job::Bug::all() {
        let found = (0..1_000).find_map(|seed| run(seed, Planted::from(Some(bug))).err());
        println!("{bug:?}: {found:?}");
        assert!(found.is_some(), "{bug:?} is not found");
    }
}

#[test]
fn a_job_is_submitted_stopped_resumed_and_finished() {
    let mut book = Jobs::default();
    let job = book.take(&Command::Submit(spec())).unwrap();
    assert_eq!(book.take(&Command::Submit(spec())), Err(Void::NameTaken));
    assert_eq!(book.take(&Command::Forget { job }), Err(Void::State));
    book.take(&Command::Kill { job }).unwrap();
    let start = |rank| Command::Start { job, rank, start: 1, node: NodeId(1) };
    assert_eq!(book.take(&start(0)), Err(Void::State), "it is stopped");
    book.take(&Command::Resume { job }).unwrap();
    for rank in 0..RANKS {
        book.take(&start(rank)).unwrap();
        assert_eq!(book.take(&start(rank)), Err(Void::Stale));
        book.take(&Command::Ended { job, rank, start: 1, finished: true }).unwrap();
    }
    assert_eq!(book.job(job).unwrap().state, JobState::Finished);
    assert!(book.job(job).unwrap().ranks.iter().all(|rank| rank.state == RankState::Finished));
    book.take(&Command::Forget { job }).unwrap();
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
    ] {
        let void = book.take(&Command::Submit(wrong)).unwrap_err();
        assert!(void.to_string().contains(words), "{void}");
    }
}
