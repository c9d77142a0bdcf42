//! Facts of the order for the checkers, and the demands at the end.

use image::{Place, Planted};
use job::{Command, End, Generation, Job, JobState, RankState};
use wire::Time;

use super::node::index;
use super::parts::Judge;
use super::{Event, LOOK, WITHIN, World, images, program};
use crate::check::kept::Cause;
use crate::check::starts::RankId;
use crate::check::{Verdict, demand};
use crate::disk::Troubles;

impl World {
    /// A word was ordered, and the book has taken it.
    pub(super) fn judge(&mut self, command: &Command) -> Verdict {
        let Judge { starts, kept, kinds, .. } = &mut self.judge;
        // Where nothing was ever done, any kind will do again.
        kinds.retain(|job, _| self.order.book.job(*job).is_some_and(|it| it.kind.is_some()));
        let mut of = None;
        match command {
            Command::Submit(spec) => {
                let plan = self.options.jobs.iter().find(|plan| plan.spec == *spec);
                let (plan, number) = (plan.cloned(), self.order.book.named(&spec.name));
                let (Some(plan), Some((number, _))) = (plan, number) else { return Ok(()) };
                for rank in 0..spec.ranks {
                    let states = program::undisturbed(&plan, (number, rank));
                    self.results.expect((number, rank), states);
                }
                self.jobs.insert(number, plan);
            }
            Command::Introduce { node, .. } => starts.introduced(*node)?,
            Command::Start { job, rank, start, node } => {
                let kind = self.options.kinds[index(node.node)];
                let same = *kinds.entry(*job).or_insert(kind) == kind;
                demand(same, "hosts are valid", || {
                    format!("a rank of {job} begins at {node}, of another kind")
                })?;
                starts.started((*job, *rank), *start, *node)?;
                of = Some((*job, *rank, Cause::Start));
            }
            Command::Move { job, rank, to, .. } => kept.moves((*job, *rank), *to),
            Command::Ended { job, rank, start, end, .. } => {
                let finished = *end == End::Finished && kept.has_last((*job, *rank));
                starts.ended((*job, *rank), *start, finished)?;
            }
            Command::Done { job, .. } => {
                let ranks = self.order.book.job(*job).map_or(&[][..], |it| &it.ranks);
                for (rank, it) in (0..).zip(ranks) {
                    let rests = !matches!(it.state, RankState::At(_));
                    if let Some(start) = starts.runs((*job, rank)).filter(|_| rests) {
                        starts.ended((*job, rank), start, kept.has_last((*job, rank)))?;
                    }
                }
            }
            Command::Resume { job } => {
                self.resumed(*job)?;
                return self.judge_states();
            }
            Command::Gone { node } => {
                starts.gone(*node);
                kept.gone(*node);
                for (job, it) in self.order.book.jobs() {
                    for (rank, it) in (0..).zip(&it.ranks) {
                        kept.left((job, rank), Cause::Nothing, &left(it))?;
                    }
                }
            }
            Command::Commit { place, parent, holder, .. } => {
                starts.committed(*place, *holder)?;
                let parent = parent.map(|parent| parent.place.generation);
                kept.committed(*place, parent, *holder);
                of = Some((place.job, place.rank, Cause::Needless));
            }
            Command::Held { place, holder, .. } => {
                starts.held(*holder)?;
                kept.held(*place, *holder);
                let rank = (place.job, place.rank);
                let waits = |job: &Job| job.ranks[rank.1 as usize].state == RankState::Waiting;
                if self.order.book.job(rank.0).is_some_and(waits)
                    && let Some(start) = starts.runs(rank)
                {
                    starts.ended(rank, start, false)?;
                    kept.moved(rank)?;
                    self.moved += 1;
                }
                of = Some((place.job, place.rank, Cause::Nothing));
            }
            Command::Lost { place, holder } => {
                kept.lost(*place, *holder);
                of = Some((place.job, place.rank, Cause::Lost));
            }
            Command::Retire { place } => of = Some((place.job, place.rank, Cause::Needless)),
            _ => {}
        }
        if let Some((job, rank, cause)) = of
            && let Some(it) = self.order.book.job(job).and_then(|it| it.ranks.get(rank as usize))
        {
            kept.left((job, rank), cause, &left(it))?;
            kept.floor((job, rank), it.images.oldest())?;
            if cause == Cause::Lost && !kept.has_last((job, rank)) {
                starts.reopened((job, rank));
                self.results.lost((job, rank));
            }
            if cause == Cause::Start {
                kept.started((job, rank), it.images.from().map(|image| image.place))?;
            }
        }
        self.judge_states()
    }

    /// A job was resumed: all its ranks may have gone back together.
    fn resumed(&mut self, job: u64) -> Verdict {
        let Judge { starts, kept, .. } = &mut self.judge;
        let ranks = self.order.book.job(job).map_or(&[][..], |it| &it.ranks);
        for (number, it) in (0..).zip(ranks) {
            let (rank, rests) = ((job, number), !matches!(it.state, RankState::At(_)));
            if let Some(start) = starts.runs(rank).filter(|_| rests) {
                starts.ended(rank, start, false)?;
            }
            if it.state == RankState::Waiting {
                starts.reopened(rank);
                self.results.lost(rank);
            }
            kept.left(rank, Cause::Back, &left(it))?;
        }
        Ok(())
    }

    /// A job that is called lost is lost.
    fn judge_states(&mut self) -> Verdict {
        for (number, job) in self.order.book.jobs() {
            if self.judge.states.get(&number) == Some(&job.state) {
                continue;
            }
            self.judge.states.insert(number, job.state.clone());
            match job.state {
                JobState::Lost(rank) => {
                    let floor = job.ranks[rank as usize].images.oldest();
                    self.judge.kept.is_lost((number, rank), floor)?;
                }
                JobState::Finished => {
                    let mut ranks = 0..job.spec.ranks;
                    ranks.try_for_each(|rank| self.judge.kept.finished((number, rank)))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// After the faults: is all well by now?
    pub(super) fn check(&mut self) -> Verdict {
        let now = self.queue.now();
        match self.is_well() {
            Ok(()) => {
                self.done = true;
                self.finish()
            }
            Err(why) => {
                self.queue.push(now + LOOK, Event::Check);
                let late = now.since(self.calm.unwrap_or(Time::FAR)) > WITHIN;
                demand(!late, "liveness", || format!("{WITHIN:?} after all healed, {why}"))
            }
        }
    }

    fn is_well(&self) -> Result<(), String> {
        if self.jobs.len() < self.options.jobs.len() {
            return Err("a job is not submitted".into());
        }
        for (number, job) in self.order.book.jobs() {
            if job.state != JobState::Finished {
                let ranks = job.ranks.iter().map(|rank| rank.state).collect::<Vec<_>>();
                return Err(format!("job {number} is {:?}: {ranks:?}", job.state));
            }
        }
        self.is_quiet()?;
        if !self.is_idle() {
            return Err("an agent is at work".into());
        }
        for (number, job) in self.order.book.jobs() {
            for rank in 0..job.spec.ranks {
                self.is_settled((number, rank), job)?;
            }
        }
        for node in &self.nodes {
            for image in images::on(&node.disk) {
                let jobs = |place: Place| self.order.book.job(place.job);
                let kept = jobs(image).is_some_and(|job| {
                    let mut images = job.ranks[image.rank as usize].images.generations();
                    images.any(|it| it.place == image)
                });
                if !kept && !node.harmed.contains(&image) {
                    return Err(format!("{image} is on a disk, and nobody needs it"));
                }
            }
        }
        Ok(())
    }

    /// A rank's images have all their copies, and no other is kept.
    fn is_settled(&self, (number, rank): RankId, job: &Job) -> Result<(), String> {
        let it = &job.ranks[rank as usize];
        if let Some(spare) = it.images.spare().next() {
            return Err(format!("{spare} is needed no more"));
        }
        // Its results may have been lost after it had finished.
        let there = it.images.restorable().next().is_some();
        let restorable = there || !self.judge.kept.has_last((number, rank));
        if it.state != RankState::Finished || !restorable {
            return Err(format!("rank {rank} of job {number} has no image"));
        }
        let copies = usize::from(job.spec.copies).min(self.nodes.len());
        let few = |image: &&Generation| {
            let all = image.holders.iter().all(|holder| self.lives(*holder));
            !all || image.holders.len() < copies
        };
        match it.images.generations().find(few) {
            Some(image) => {
                let Generation { place, holders, .. } = image;
                Err(format!("{place} is to have {copies} copies, and is at {holders:?}"))
            }
            None => Ok(()),
        }
    }

    /// All is well, and now all hosts lose power: results and copies are there.
    fn finish(&mut self) -> Verdict {
        for node in &mut self.nodes {
            node.disk.troubles = Troubles::default();
            node.disk.lose_power();
        }
        for (number, job) in self.order.book.jobs() {
            for (rank, it) in (0..).zip(&job.ranks) {
                for image in it.images.generations() {
                    for holder in &image.holders {
                        let node = &self.nodes[index(holder.node)];
                        let there = self.is_whole(holder.node, image.place, &image.root);
                        let harmed = node.harmed.contains(&image.place);
                        demand(there || harmed, "images are kept", || {
                            format!("{} is said to be at {holder}, and is not", image.place)
                        })?;
                    }
                }
                let state = it.images.restorable().next();
                let has_last = self.judge.kept.has_last((number, rank));
                let Some(state) = state.filter(|_| has_last) else { continue };
                let (last, mut is_harmed) = (state[0], true);
                let mut found = None;
                for holder in &last.holders {
                    let node = &mut self.nodes[index(holder.node)];
                    is_harmed &= state.iter().any(|image| {
                        node.harmed.contains(&image.place) || !image.holders.contains(holder)
                    });
                    let whole = (last.place, last.root);
                    let read = images::restore(&mut node.disk, whole, Planted::default());
                    found = found.or(read.ok());
                }
                if found.is_some() || !is_harmed {
                    self.results.found((number, rank), found.as_ref())?;
                }
            }
        }
        Ok(())
    }
}

/// The images of a rank that count, and who has them.
fn left(rank: &job::Rank) -> crate::check::kept::Left {
    let images = rank.images.generations();
    images.map(|image| (image.place.generation, image.holders.clone())).collect()
}
