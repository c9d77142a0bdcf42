//! Says what is to start where, and which images may go (`star.txt`, section 2: recovery server and
//! allocation manager). Driven by levels: what the book does not show is said again.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::{Duration, Member, NodeId, Time};

use crate::seats::Seats;
use crate::sight::Sight;
use crate::{Command, Generation, Job, JobState, Jobs, Rank, RankState};

/// A command that the book does not show is repeated after this time.
pub const AGAIN: Duration = Duration::from_millis(200);

/// A rank that ended twice without progress waits so long, then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The director of the node that has the group's primary.
#[derive(Clone, Debug, Default)]
pub struct Director {
    asked: Vec<(Command, Time)>,
    /// When a rank was first seen to wait, by its last start.
    waits: BTreeMap<(u64, u32, u64), Time>,
}

impl Director {
    /// Looks at what is there, and says what is to be said.
    pub fn look(&mut self, now: Time, sight: &Sight, book: &Jobs) -> Vec<Command> {
        let gone: BTreeSet<Member> =
            book.lives().filter(|life| !sight.members.contains(life)).collect();
        let mut wanted: Vec<Command> = newest(&gone).map(|node| Command::Gone { node }).collect();
        // Until they are struck out, the book does not show which ranks still run.
        if wanted.is_empty() {
            self.start(now, sight, book, &mut wanted);
        }
        let mut seats = Seats::new(sight, book);
        for (number, job) in book.jobs() {
            for (place, rank) in (0..).zip(&job.ranks) {
                let to = seats.refuge(sight, job, rank);
                if let RankState::At(_) = rank.state
                    && rank.moves.map(|moves| moves.to) != to
                {
                    let start = rank.start;
                    wanted.push(Command::Move { job: number, rank: place, start, to });
                }
                let keepers = keepers(sight, book, job, rank);
                if keepers != rank.keepers {
                    wanted.push(Command::Keep { job: number, rank: place, keepers });
                }
            }
            let spare = job.ranks.iter().flat_map(|rank| rank.images.spare());
            wanted.extend(spare.map(|place| Command::Retire { place }));
        }
        self.asked.retain(|(command, at)| wanted.contains(command) && now < *at + AGAIN);
        wanted.retain(|command| !self.asked.iter().any(|(asked, _)| asked == command));
        self.asked.extend(wanted.iter().map(|command| (command.clone(), now)));
        wanted
    }

    /// When there will be something to do if nothing happens.
    pub fn next_look(&self, now: Time, book: &Jobs) -> Option<Time> {
        let again = self.asked.iter().map(|(_, at)| *at + AGAIN);
        let due = self.waits.iter().filter_map(|((job, rank, _), since)| {
            let rank = book.job(*job)?.ranks.get(*rank as usize)?;
            Some(*since + pause(rank))
        });
        again.chain(due.filter(|at| *at > now)).min()
    }

    fn start(&mut self, now: Time, sight: &Sight, book: &Jobs, wanted: &mut Vec<Command>) {
        let mut seats = Seats::new(sight, book);
        let mut waits = BTreeMap::new();
        for (number, job) in book.jobs().filter(|(_, job)| job.state == JobState::Running) {
            // The first of a job's starts says of which kind all its hosts are.
            let mut kind = job.kind.clone();
            for (place, rank) in (0..).zip(&job.ranks) {
                if rank.state != RankState::Waiting {
                    continue;
                }
                let key = (number, place, rank.start);
                let since = self.waits.get(&key).copied().unwrap_or(now);
                waits.insert(key, since);
                if now < since + pause(rank) {
                    continue;
                }
                if let Some((node, host)) = seats.choose(job, kind.as_deref(), rank) {
                    kind.get_or_insert_with(|| host.kind.clone());
                    let start = rank.start + 1;
                    wanted.push(Command::Start { job: number, rank: place, start, node });
                }
            }
        }
        self.waits = waits;
    }
}

/// The nodes that are to have a rank's images: where it is to go on or runs, where it may, those that
/// have them already, and those that have the least to keep (`star.txt`, section 3.3: the degree of
/// replication is kept).
fn keepers(sight: &Sight, book: &Jobs, job: &Job, rank: &Rank) -> BTreeSet<NodeId> {
    let newest = rank.images.restorable().next();
    let has = |node: Member| {
        let has_all = |state: &Vec<&Generation>| state.iter().all(|it| it.holders.contains(&node));
        newest.as_ref().is_some_and(has_all)
    };
    let kept = |node: NodeId| {
        let ranks = book.jobs().flat_map(|(_, job)| &job.ranks);
        ranks.filter(|rank| rank.keepers.contains(&node)).count()
    };
    let mut hosts: Vec<_> = book.hosts().filter(|(node, _)| sight.offers(*node)).collect();
    hosts.sort_by_cached_key(|(node, host)| {
        let goes = rank.moves.is_some_and(|moves| moves.to == node.node);
        let runs = rank.state == RankState::At(*node);
        let fits = job.fits(host) && !rank.is_unfit(node.node);
        let (keeps, has) = (rank.keepers.contains(&node.node), has(*node));
        (!goes, !runs, !fits, !(keeps && has), !keeps, !has, kept(node.node), *node)
    });
    hosts.into_iter().take(job.spec.copies.into()).map(|(node, _)| node.node).collect()
}

/// The newest of each node's lives.
fn newest(lives: &BTreeSet<Member>) -> impl Iterator<Item = Member> {
    let by_node: BTreeMap<NodeId, Member> = lives.iter().map(|life| (life.node, *life)).collect();
    by_node.into_values()
}

/// How long a rank rests before its next start. The first time it does not: hosts fail.
fn pause(rank: &Rank) -> Duration {
    match rank.fruitless() {
        0 | 1 => Duration::ZERO,
        times => (FIRST_PAUSE * (1 << (times - 2).min(10))).min(LONGEST_PAUSE),
    }
}
