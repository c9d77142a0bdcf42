//! The book.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use image::Place;
use serde::{Deserialize, Serialize};
use wire::NodeId;

use crate::bug::{Bug, Planted};
use crate::catalogue::{Catalogue, Generation};
use crate::{Command, MAX_JOBS, MAX_RANKS, Spec, Void};

/// All jobs of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    jobs: BTreeMap<u64, Job>,
    /// The number of the last job.
    last: u64,
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
    At(NodeId),
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
        rank.and_then(|rank| rank.images.restorable(self.planted).next()).unwrap_or_default()
    }

    /// Takes a command. Returns the number of the job that it is about, or 0.
    ///
    /// # Errors
    /// It is void, and changes nothing.
    pub fn take(&mut self, command: &Command) -> Result<u64, Void> {
        match command {
            Command::Submit(spec) => return self.submit(spec),
            Command::Kill { job } => self.turn(*job, JobState::Running, JobState::Stopped)?,
            Command::Resume { job } => self.turn(*job, JobState::Stopped, JobState::Running)?,
            Command::Forget { job } => self.forget(*job)?,
            Command::Start { job, rank, start, node } => {
                self.start(*job, *rank, *start, *node)?;
            }
            Command::Ended { job, rank, start, finished } => {
                self.ended(*job, *rank, *start, *finished)?;
            }
            Command::Gone { node } => {
                self.gone(*node);
                return Ok(0);
            }
            Command::Commit { place, root, bytes, parent, holder } => {
                let generation = Generation {
                    place: *place,
                    root: *root,
                    bytes: *bytes,
                    parent: *parent,
                    holders: [*holder].into(),
                };
                self.commit(generation)?;
            }
            Command::Held { place, holder } => self.images(*place)?.hold(*place, *holder)?,
            Command::Lost { place, holder } => self.images(*place)?.lose(*place, *holder)?,
            Command::Retire { place } => {
                let planted = self.planted;
                self.images(*place)?.retire(*place, planted)?;
            }
        }
        Ok(match command {
            Command::Commit { place, .. }
            | Command::Held { place, .. }
            | Command::Lost { place, .. }
            | Command::Retire { place } => place.job,
            Command::Kill { job }
            | Command::Resume { job }
            | Command::Forget { job }
            | Command::Start { job, .. }
            | Command::Ended { job, .. } => *job,
            Command::Submit(_) | Command::Gone { .. } => 0,
        })
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

    fn start(&mut self, job: u64, rank: u32, start: u64, node: NodeId) -> Result<(), Void> {
        let twice = self.planted.is(Bug::StartTwice);
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
    fn gone(&mut self, node: NodeId) {
        let forgets = self.planted.is(Bug::ForgetHolder);
        for rank in self.jobs.values_mut().flat_map(|job| &mut job.ranks) {
            if rank.state == RankState::At(node) {
                rank.state = RankState::Waiting;
            }
            if !forgets {
                rank.images.gone(node);
            }
        }
    }

    /// An image counts if the start that has saved it is the present one, and runs.
    fn commit(&mut self, generation: Generation) -> Result<(), Void> {
        let place = generation.place;
        let late = self.planted.is(Bug::CommitOldStart);
        let rank = self.rank(place)?;
        let present = rank.start == place.start && matches!(rank.state, RankState::At(_));
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
