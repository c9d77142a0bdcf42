//! The book.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use image::Place;
use serde::{Deserialize, Serialize};
use wire::{Incarnation, Member, NodeId, Time};

use crate::bug::{Bug, Planted};
use crate::catalogue::{Catalogue, Generation};
use crate::progress::{End, Moments, Progress, Why};
use crate::rank::{Rank, RankState};
use crate::{Command, Host, MAX_COPIES, MAX_FORGOTTEN, MAX_JOBS, MAX_RANKS, Spec, Taken, Void};

/// All jobs of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    jobs: BTreeMap<u64, Job>,
    /// The number of the last job.
    last: u64,
    /// Jobs that were forgotten last: their images may go.
    forgotten: VecDeque<u64>,
    /// Nodes whose agents have introduced themselves.
    hosts: BTreeMap<NodeId, (Member, Host)>,
    /// The last life of each node that is over: what it says is void.
    over: BTreeMap<NodeId, Incarnation>,
    /// Commands that have changed something.
    version: u64,
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
    /// The kind of the processors where the first of them began.
    pub kind: Option<String>,
    /// When it was submitted.
    pub submitted: Time,
    /// When it came to stand as it does.
    pub since: Time,
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Its ranks run, or are to.
    Running,
    /// A user has stopped it: no rank is started.
    Stopped,
    /// This rank has ended again and again, at last so: no rank is started.
    Failing(u32, End),
    /// All images of this rank are gone for good: no rank is started.
    Lost(u32),
    /// All ranks have finished.
    Finished,
}

impl Job {
    /// Whether a host has what its ranks need.
    pub fn fits(&self, host: &Host) -> bool {
        host.suits(&self.spec, self.kind.as_deref())
    }

    /// Nothing of it was ever done: no rank runs, has saved or has finished.
    fn is_untouched(&self) -> bool {
        let saved = |rank: &Rank| rank.images.next() > 1;
        self.ranks.iter().all(|rank| rank.state == RankState::Waiting && !saved(rank))
    }

    /// It is finished when all its ranks are. Those that wait for others finish together. One whose
    /// results are gone goes on from an older state first, while the others wait.
    fn finish(&mut self, now: Time, at: Time) {
        let finished = |rank: &Rank| rank.state == RankState::Finished;
        if !self.ranks.iter().all(|rank| finished(rank) || rank.done) {
            return;
        }
        let lost = |rank: &&mut Rank| rank.done && !rank.images.has_last();
        let mut lost = self.ranks.iter_mut().filter(lost).peekable();
        if lost.peek().is_some() {
            return lost.for_each(|rank| rank.over(now, Why::Ended(End::Finished), at));
        }
        for rank in self.ranks.iter_mut().filter(|rank| rank.done) {
            (rank.state, rank.moves, rank.done) = (RankState::Finished, None, false);
        }
        (self.state, self.since) = (JobState::Finished, now);
    }
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

    /// A job by its name.
    pub fn named(&self, name: &str) -> Option<(u64, &Job)> {
        self.jobs().find(|(_, job)| job.spec.name == name)
    }

    /// Nodes with agents, and what they offer.
    pub fn hosts(&self) -> impl Iterator<Item = (Member, &Host)> {
        self.hosts.values().map(|(member, host)| (*member, host))
    }

    /// The jobs that were forgotten last.
    pub fn forgotten(&self) -> impl Iterator<Item = u64> {
        self.forgotten.iter().copied()
    }

    /// Grows with each command that changes something.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All lives of nodes that are said to run something, to have something, or to be there.
    pub fn lives(&self) -> impl Iterator<Item = Member> {
        let ranks = || self.jobs.values().flat_map(|job| &job.ranks);
        let at = ranks().filter_map(|rank| match rank.state {
            RankState::At(member) => Some(member),
            _ => None,
        });
        let images = ranks().flat_map(|rank| rank.images.generations());
        let holders = images.flat_map(|image| image.holders.iter().copied());
        at.chain(holders).chain(self.hosts.values().map(|(member, _)| *member))
    }

    /// The images to restore at the next start of a rank, the newest first. Empty: it begins anew.
    pub fn to_restore(&self, job: u64, rank: u32) -> Vec<&Generation> {
        let rank = self.jobs.get(&job).and_then(|job| job.ranks.get(rank as usize));
        rank.and_then(|rank| rank.images.restorable_as(self.planted).next()).unwrap_or_default()
    }

    /// The bytes of the book, for a replica that comes.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a book is plain data")
    }

    /// Reads them.
    ///
    /// # Errors
    /// They are no book of this version.
    pub fn decode(bytes: &[u8]) -> Result<Jobs, postcard::Error> {
        postcard::from_bytes(bytes)
    }

    /// Takes a command that was ordered at this time.
    ///
    /// # Errors
    /// It is void, and changes nothing.
    pub fn take(&mut self, now: Time, command: &Command) -> Result<Taken, Void> {
        let job = self.apply(now, command)?;
        self.version += 1;
        Ok(Taken { version: self.version, job })
    }

    fn apply(&mut self, now: Time, command: &Command) -> Result<Option<u64>, Void> {
        let planted = self.planted;
        match command {
            Command::Submit(spec) => return self.submit(now, spec).map(Some),
            Command::Kill { job } => self.kill(now, *job),
            Command::Resume { job } => self.resume(now, *job),
            Command::Forget { job } => self.forget(*job),
            Command::Loosen { job, processor, program } => {
                let job = self.jobs.get_mut(job).ok_or(Void::Unknown)?;
                job.spec.any_processor |= processor;
                job.spec.program.take_if(|_| *program);
                job.ranks.iter_mut().for_each(Rank::may_begin_anywhere);
                Ok(())
            }
            Command::Save { job } => {
                let ranks = &mut self.running(*job)?.ranks;
                let at_work = |rank: &&mut Rank| matches!(rank.state, RankState::At(_));
                ranks.iter_mut().filter(at_work).for_each(|rank| rank.saves += 1);
                Ok(())
            }
            Command::Introduce { node, host } => self.introduce(*node, host),
            Command::Start { job, rank, start, node } => {
                self.start(now, (*job, *rank), *start, *node)
            }
            Command::Move { job, rank, start, to } => self
                .running(*job)?
                .ranks
                .get_mut(*rank as usize)
                .ok_or(Void::Unknown)?
                .set_move(*start, *to),
            Command::Keep { job, rank, keepers } => self.keep((*job, *rank), keepers),
            Command::Computes { job, rank, start, moments } => {
                self.computes((*job, *rank), *start, *moments)
            }
            Command::Progress(all) => self.progress(all),
            Command::Ended { job, rank, start, end, at } => {
                self.ended(now, (*job, *rank), *start, (end, *at))
            }
            Command::Done { job, rank, start, at } => self.done(now, (*job, *rank), *start, *at),
            Command::Gone { node } => self.gone(now, *node),
            Command::Commit { place, root, bytes, step, parent, holder, talks, counts } => {
                let generation = Generation {
                    place: *place,
                    root: *root,
                    bytes: *bytes,
                    step: *step,
                    parent: *parent,
                    talks: *talks,
                    counts: counts.clone(),
                    holders: [*holder].into(),
                    away: BTreeSet::new(),
                };
                self.commit(generation, *holder)
            }
            Command::Held { place, root, holder } => {
                self.check_life(*holder)?;
                let rank = self.rank((place.job, place.rank))?;
                rank.images.hold(*place, *root, *holder)?;
                rank.arrived(now, planted);
                self.keep_together(place.job);
                Ok(())
            }
            Command::Lost { place, holder } => self.lost(now, *place, *holder),
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

    fn submit(&mut self, now: Time, spec: &Spec) -> Result<u64, Void> {
        spec.check().map_err(Void::Refused)?;
        if self.named(&spec.name).is_some() {
            return Err(Void::NameTaken);
        }
        let ranks: u32 = self.jobs.values().map(|job| job.spec.ranks).sum();
        if self.jobs.len() >= MAX_JOBS || ranks + spec.ranks > MAX_RANKS {
            return Err(Void::Full);
        }
        // Unlike in any other book: images of a book that was lost are nobody else's.
        self.last = (self.last + 1).max(now.0 / 1_000_000);
        let rank = |_| Rank::new(spec);
        let ranks = (0..spec.ranks).map(rank).collect();
        let (spec, state) = (spec.clone(), JobState::Running);
        let job = Job { spec, state, ranks, kind: None, submitted: now, since: now };
        self.jobs.insert(self.last, job);
        Ok(self.last)
    }

    fn running(&mut self, job: u64) -> Result<&mut Job, Void> {
        let job = self.jobs.get_mut(&job).ok_or(Void::Unknown)?;
        if job.state == JobState::Running { Ok(job) } else { Err(Void::State) }
    }

    fn kill(&mut self, now: Time, job: u64) -> Result<(), Void> {
        let job = self.running(job)?;
        (job.state, job.since) = (JobState::Stopped, now);
        Ok(())
    }

    /// A rank that cannot go on from anything begins anew only if a user says so: what it had done
    /// may be hours of work, and its disks may be away.
    fn lost(&mut self, now: Time, place: Place, holder: Member) -> Result<(), Void> {
        self.images(place)?.lose(place, holder)?;
        self.check_results(place.job, place.rank);
        self.check_lost(now, place.job, place.rank);
        Ok(())
    }

    /// A rank that has finished goes on once more if its results are gone, while others still work.
    fn check_results(&mut self, job: u64, number: u32) {
        let job = self.jobs.get_mut(&job).filter(|job| job.state != JobState::Finished);
        let rank = job.and_then(|job| job.ranks.get_mut(number as usize));
        if let Some(rank) = rank
            && rank.state == RankState::Finished
            && !rank.images.has_last()
        {
            rank.state = RankState::Waiting;
        }
    }

    fn check_lost(&mut self, now: Time, job: u64, number: u32) {
        let Ok(job) = self.running(job) else { return };
        let rank = &job.ranks[number as usize];
        if rank.state == RankState::Waiting && rank.images.is_lost() {
            (job.state, job.since) = (JobState::Lost(number), now);
        }
    }

    fn resume(&mut self, now: Time, job: u64) -> Result<(), Void> {
        let job = self.jobs.get_mut(&job).ok_or(Void::Unknown)?;
        if matches!(job.state, JobState::Running | JobState::Finished) {
            return Err(Void::State);
        }
        // By itself such a rank can never go on.
        let diverged = matches!(job.state, JobState::Failing(_, End::Diverged(_)));
        let lost = job.ranks.iter().any(|rank| rank.images.is_lost());
        let talked = job.ranks.iter().any(|rank| rank.images.has_talked());
        let together = diverged || lost && talked;
        (job.state, job.since) = (JobState::Running, now);
        for rank in &mut job.ranks {
            rank.forgive();
        }
        if together {
            job.regroup(now, true);
        }
        Ok(())
    }

    fn forget(&mut self, number: u64) -> Result<(), Void> {
        let job = self.jobs.get(&number).ok_or(Void::Unknown)?;
        let runs = job.ranks.iter().any(|rank| matches!(rank.state, RankState::At(_)));
        if job.state == JobState::Running || runs {
            return Err(Void::State);
        }
        self.jobs.remove(&number);
        if self.forgotten.len() == MAX_FORGOTTEN {
            self.forgotten.pop_front();
        }
        self.forgotten.push_back(number);
        Ok(())
    }

    fn introduce(&mut self, node: Member, host: &Host) -> Result<(), Void> {
        if !host.is_possible() {
            return Err(Void::Host);
        }
        // A node that was only cut off comes back in the same life, with what it has.
        if self.over.get(&node.node) == Some(&node.incarnation) {
            self.over.insert(node.node, Incarnation(node.incarnation.0 - 1));
        }
        self.check_life(node)?;
        if self.hosts.insert(node.node, (node, host.clone())).is_none_or(|(life, _)| life < node) {
            let ranks = self.jobs.values_mut().flat_map(|job| &mut job.ranks);
            ranks.for_each(|rank| rank.may_begin_at(node.node));
        }
        Ok(())
    }

    fn start(
        &mut self,
        now: Time,
        (job, rank): (u64, u32),
        start: u64,
        node: Member,
    ) -> Result<(), Void> {
        self.check_life(node)?;
        let (planted, twice) = (self.planted, self.planted.is(Bug::StartTwice));
        let host = self.hosts.get(&node.node).map(|(_, host)| host.clone());
        let job = self.running(job)?;
        // The director may not have known where another rank began.
        if host.as_ref().is_some_and(|host| !job.fits(host)) {
            return Err(Void::State);
        }
        let rank = job.ranks.get_mut(rank as usize).ok_or(Void::Unknown)?;
        let again = twice && start == rank.start && matches!(rank.state, RankState::At(_));
        if start != rank.start + 1 && !again {
            return Err(Void::Stale);
        }
        // Its images are away: they must not go, because somebody has yet to know that.
        let waits = rank.state == RankState::Waiting && !rank.images.is_away(planted);
        if !waits && !again {
            return Err(Void::State);
        }
        rank.begin(now, start, node, planted);
        job.kind = job.kind.take().or(host.map(|host| host.kind));
        Ok(())
    }

    fn keep(&mut self, rank: (u64, u32), keepers: &BTreeSet<NodeId>) -> Result<(), Void> {
        if keepers.len() > MAX_COPIES.into() {
            return Err(Void::State);
        }
        self.rank(rank)?.keepers.clone_from(keepers);
        Ok(())
    }

    fn computes(&mut self, rank: (u64, u32), start: u64, moments: Moments) -> Result<(), Void> {
        let rank = self.rank(rank)?;
        let last = rank.recoveries.back_mut().filter(|last| last.start + 1 == start);
        last.ok_or(Void::Stale)?.moments = Some(moments);
        Ok(())
    }

    /// Words of starts that are over are left out.
    fn progress(&mut self, all: &[Progress]) -> Result<(), Void> {
        for progress in all {
            if let Ok(rank) = self.rank((progress.job, progress.rank))
                && rank.start == progress.start
            {
                rank.progress = *progress;
            }
        }
        Ok(())
    }

    fn done(
        &mut self,
        now: Time,
        (number, rank): (u64, u32),
        start: u64,
        at: Time,
    ) -> Result<(), Void> {
        let job = self.jobs.get_mut(&number).ok_or(Void::Unknown)?;
        let it = job.ranks.get_mut(rank as usize).ok_or(Void::Unknown)?;
        if it.start != start || !matches!(it.state, RankState::At(_)) {
            return Err(Void::Stale);
        }
        it.done = true;
        job.finish(now, at);
        (0..job.spec.ranks).for_each(|rank| self.check_lost(now, number, rank));
        Ok(())
    }

    fn ended(
        &mut self,
        now: Time,
        (number, rank): (u64, u32),
        start: u64,
        (end, at): (&End, Time),
    ) -> Result<(), Void> {
        let job = self.jobs.get_mut(&number).ok_or(Void::Unknown)?;
        let it = job.ranks.get_mut(rank as usize).ok_or(Void::Unknown)?;
        if it.start != start || !matches!(it.state, RankState::At(_)) {
            return Err(Void::Stale);
        }
        // Without its last image its results are gone: then it goes on from an older one.
        if *end == End::Finished && it.images.has_last() {
            (it.state, it.moves) = (RankState::Finished, None);
            job.finish(now, at);
            return Ok(());
        }
        it.over(now, Why::Ended(end.clone()), at);
        if matches!(end, End::NotStarted(_)) && job.is_untouched() {
            job.kind = None;
        }
        let suiting = self.hosts.iter().filter(|(_, (_, host))| job.fits(host));
        let suiting: BTreeSet<NodeId> = suiting.map(|(node, _)| *node).collect();
        let it = &mut job.ranks[rank as usize];
        // One that a user has stopped is no failure of the program.
        if job.state == JobState::Running && it.fails(end, &suiting) {
            (job.state, job.since) = (JobState::Failing(rank, end.clone()), now);
        }
        if matches!(end, End::Diverged(_))
            && job.state == JobState::Running
            && !job.regroup(now, false)
        {
            (job.state, job.since) = (JobState::Failing(rank, end.clone()), now);
        }
        self.check_lost(now, number, rank);
        Ok(())
    }

    /// Ranks of a node that is gone are to be started elsewhere; its copies are lost.
    fn gone(&mut self, now: Time, node: Member) -> Result<(), Void> {
        self.check_life(node)?;
        self.over.insert(node.node, node.incarnation);
        if self.hosts.get(&node.node).is_some_and(|(host, _)| *host <= node) {
            self.hosts.remove(&node.node);
        }
        let forgets = self.planted.is(Bug::ForgetHolder);
        // A rank whose images rotted while it ran has nothing now.
        let ranks = |(number, job): (&u64, &Job)| {
            (0..job.spec.ranks).map(|rank| (*number, rank)).collect::<Vec<_>>()
        };
        let all: Vec<(u64, u32)> = self.jobs.iter().flat_map(ranks).collect();
        for rank in self.jobs.values_mut().flat_map(|job| &mut job.ranks) {
            let ran = |at: &Member| at.node == node.node && *at <= node;
            if matches!(&rank.state, RankState::At(at) if ran(at)) {
                rank.over(now, Why::Gone(node), now);
            }
            if !forgets {
                rank.images.gone(node);
            }
        }
        all.into_iter().for_each(|(job, rank)| self.check_lost(now, job, rank));
        Ok(())
    }

    /// An image counts if the start that has saved it is the present one, and runs there.
    fn commit(&mut self, generation: Generation, holder: Member) -> Result<(), Void> {
        let (place, step) = (generation.place, generation.step);
        let late = self.planted.is(Bug::CommitOldStart);
        let rank = self.rank((place.job, place.rank))?;
        let present = rank.start == place.start && rank.state == RankState::At(holder);
        if !present && !late {
            return Err(Void::Stale);
        }
        rank.images.commit(generation)?;
        rank.came_to(step);
        self.keep_together(place.job);
        Ok(())
    }

    fn keep_together(&mut self, job: u64) {
        self.jobs.get_mut(&job).into_iter().for_each(Job::keep_together);
    }

    fn images(&mut self, place: Place) -> Result<&mut Catalogue, Void> {
        Ok(&mut self.rank((place.job, place.rank))?.images)
    }

    fn rank(&mut self, (job, rank): (u64, u32)) -> Result<&mut Rank, Void> {
        let job = self.jobs.get_mut(&job).ok_or(Void::Unknown)?;
        job.ranks.get_mut(rank as usize).ok_or(Void::Unknown)
    }
}
