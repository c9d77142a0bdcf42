//! The book.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use image::Place;
use serde::{Deserialize, Serialize};
use wire::{Incarnation, Member, NodeId};

use crate::bug::{Bug, Planted};
use crate::catalogue::{Catalogue, Generation};
use crate::{Command, MAX_JOBS, MAX_RANKS, Spec, Void};

/// All jobs of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    jobs: BTreeMap<u64, Job>,
    /// The number of the last job.
    last: u64,
    /// The last life of each node that is over: what it says is void.
    over: BTreeMap<NodeId, Incarnation>,
    #[serde(skip)]
    planted: Planted,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// As it was submitted.
    pub spec: Spec,
    /// How it stands.
    pub state: JobState,
    /// Its ranks, from 0.
    pub ranks: Vec<Rank>,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// Its ranks run, or are to.
    Running,
    /// A user has stopped it: no rank is started.
    Stopped,
    /// All ranks have finished.
    Finished,
}

/// A rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// How it stands.
    pub state: RankState,
    /// The number of its last start; 0: it never began.
    pub start: u64,
    /// Its images.
    pub images: Catalogue,
}

/// How a rank stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RankState {
    /// It is to be started.
    #[default]
    Waiting,
    /// Its present start runs at this node, or is about to.
    At(Member),
    /// It has finished.
    Finished,
}

impl Jobs {
    /// A book that has these mistakes.
    pub fn planted(planted: Planted) -> Jobs {
        Jobs { planted, ..Jobs::default() }
    }

    /// All jobs, by number.
    pub fn jobs(&self) -> impl Iterator<Item = (u64, &Job)> {
        self.jobs.iter().map(|(number, job)| (*number, job))
    }

    /// A job.
    pub fn job(&self, number: u64) -> Option<&Job> {
        self.jobs.get(&number)
    }

    /// The images to restore at the next start of a rank, the newest first. Empty: it begins anew.
    pub fn to_restore(&self, job: u64, rank: u32) -> Vec<&Generation> {
        let rank = self.jobs.get(&job).and_then(|job| job.ranks.get(rank as usize));
        rank.and_then(|rank| rank.images.restorable_as(self.planted).next()).unwrap_or_default()
    }

    /// Takes a command. Returns the number of a job that it has made.
    ///
    /// # Errors
    /// It is void, and changes nothing.
    pub fn take(&mut self, command: &Command) -> Result<Option<u64>, Void> {
        let planted = self.planted;
        match command {
            Command::Submit(spec) => return self.submit(spec).map(Some),
            Command::Kill { job } => self.turn(*job, JobState::Running, JobState::Stopped),
            Command::Resume { job } => self.turn(*job, JobState::Stopped, JobState::Running),
            Command::Forget { job } => self.forget(*job),
            Command::Start { job, rank, start, node } => self.start(*job, *rank, *start, *node),
            Command::Ended { job, rank, start, finished } => {
                self.ended(*job, *rank, *start, *finished)
            }
            Command::Gone { node } => {
                self.gone(*node);
                Ok(())
            }
            Command::Commit { place, root, bytes, parent, holder } => {
                let generation = Generation {
                    place: *place,
                    root: *root,
                    bytes: *bytes,
                    parent: *parent,
                    holders: [*holder].into(),
                };
                self.commit(generation, *holder)
            }
            Command::Held { place, root, holder } => {
                self.check_life(*holder)?;
                self.images(*place)?.hold(*place, *root, *holder)
            }
            Command::Lost { place, holder } => self.images(*place)?.lose(*place, *holder),
            Command::Retire { place } => self.images(*place)?.retire(*place, planted),
        }
        .map(|()| None)
    }

    /// A node speaks, or is to do something, in this life.
    fn check_life(&self, node: Member) -> Result<(), Void> {
        let over = self.over.get(&node.node).is_some_and(|over| node.incarnation <= *over);
        match over && !self.planted.is(Bug::BelieveTheDead) {
            true => Err(Void::Stale),
            false => Ok(()),
        }
    }

    fn submit(&mut self, spec: &Spec) -> Result<u64, Void> {
        spec.check().map_err(Void::Refused)?;
        if self.jobs.values().any(|job| job.spec.name == spec.name) {
            return Err(Void::NameTaken);
        }
        let ranks: u32 = self.jobs.values().map(|job| job.spec.ranks).sum();
        if self.jobs.len() >= MAX_JOBS || ranks + spec.ranks > MAX_RANKS {
            return Err(Void::Full);
        }
        self.last += 1;
        let ranks = (0..spec.ranks).map(|_| Rank::default()).collect();
        let job = Job { spec: spec.clone(), state: JobState::Running, ranks };
        self.jobs.insert(self.last, job);
        Ok(self.last)
    }

    fn turn(&mut self, job: u64, from: JobState, to: JobState) -> Result<(), Void> {
        let job = self.jobs.get_mut(&job).ok_or(Void::Unknown)?;
        if job.state != from {
            return Err(Void::State);
        }
        job.state = to;
        Ok(())
    }

    fn forget(&mut self, number: u64) -> Result<(), Void> {
        let job = self.jobs.get(&number).ok_or(Void::Unknown)?;
        let runs = job.ranks.iter().any(|rank| matches!(rank.state, RankState::At(_)));
        if job.state == JobState::Running || runs {
            return Err(Void::State);
        }
        self.jobs.remove(&number);
        Ok(())
    }

    fn start(&mut self, job: u64, rank: u32, start: u64, node: Member) -> Result<(), Void> {
        self.check_life(node)?;
        let (planted, twice) = (self.planted, self.planted.is(Bug::StartTwice));
        let job = self.jobs.get_mut(&job).ok_or(Void::Unknown)?;
        if job.state != JobState::Running {
            return Err(Void::State);
        }
        let rank = job.ranks.get_mut(rank as usize).ok_or(Void::Unknown)?;
        let again = twice && start == rank.start && matches!(rank.state, RankState::At(_));
        if start != rank.start + 1 && !again {
            return Err(Void::Stale);
        }
        if rank.state != RankState::Waiting && !again {
            return Err(Void::State);
        }
        (rank.state, rank.start) = (RankState::At(node), start);
        rank.images.begin(planted);
        Ok(())
    }

    fn ended(&mut self, job: u64, rank: u32, start: u64, finished: bool) -> Result<(), Void> {
        let job = self.jobs.get_mut(&job).ok_or(Void::Unknown)?;
        let rank = job.ranks.get_mut(rank as usize).ok_or(Void::Unknown)?;
        if rank.start != start || !matches!(rank.state, RankState::At(_)) {
            return Err(Void::Stale);
        }
        rank.state = if finished { RankState::Finished } else { RankState::Waiting };
        if job.ranks.iter().all(|rank| rank.state == RankState::Finished) {
            job.state = JobState::Finished;
        }
        Ok(())
    }

    /// Ranks of a node that is gone are to be started elsewhere; its copies are lost.
    fn gone(&mut self, node: Member) {
        let over = self.over.entry(node.node).or_insert(node.incarnation);
        *over = (*over).max(node.incarnation);
        let forgets = self.planted.is(Bug::ForgetHolder);
        for rank in self.jobs.values_mut().flat_map(|job| &mut job.ranks) {
            let ran = |at: &Member| at.node == node.node && *at <= node;
            if matches!(&rank.state, RankState::At(at) if ran(at)) {
                rank.state = RankState::Waiting;
            }
            if !forgets {
                rank.images.gone(node);
            }
        }
    }

    /// An image counts if the start that has saved it is the present one, and runs there.
    fn commit(&mut self, generation: Generation, holder: Member) -> Result<(), Void> {
        let place = generation.place;
        let late = self.planted.is(Bug::CommitOldStart);
        let rank = self.rank(place)?;
        let present = rank.start == place.start && rank.state == RankState::At(holder);
        if !present && !late {
            return Err(Void::Stale);
        }
        rank.images.commit(generation)
    }

    fn images(&mut self, place: Place) -> Result<&mut Catalogue, Void> {
        Ok(&mut self.rank(place)?.images)
    }

    fn rank(&mut self, place: Place) -> Result<&mut Rank, Void> {
        let job = self.jobs.get_mut(&place.job).ok_or(Void::Unknown)?;
        job.ranks.get_mut(place.rank as usize).ok_or(Void::Unknown)
    }
}
