//! The book's wishes for one node.

use alloc::string::String;
use alloc::vec::Vec;

use image::{Place, Root};
use serde::{Deserialize, Serialize};
use wire::Member;

use crate::{JobState, Jobs, Key, RankState, Spec};

/// All that a node is to do, as the book has it in this version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The book's version.
    pub version: u64,
    /// The ranks that run there.
    pub tasks: Vec<Task>,
    /// Starts that the book has there, and that are to end: their jobs were stopped.
    pub ending: Vec<Key>,
    /// Starts that have finished there.
    pub finished: Vec<Key>,
    /// The ranks that run, of jobs with more than one: where each does.
    pub peers: Vec<(Key, Member)>,
    /// Jobs whose ranks have all gone back: of each rank, the first start since.
    pub since: Vec<(u64, Vec<u64>)>,
    /// The agents that there are, each with its [place](crate::Host::copies).
    pub agents: Vec<(Member, String)>,
    /// All images that count, wherever they are.
    pub images: Vec<Kept>,
    /// The jobs that the book has, and those that it has forgotten: what agents have of these and is
    /// not among the images is needless.
    pub jobs: Vec<u64>,
    /// Those that it has forgotten.
    pub forgotten: Vec<u64>,
    /// Those that are finished.
    pub over: Vec<u64>,
    /// The node's agent is known in this life of the node.
    pub introduced: bool,
}

/// A rank that is to run at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The job.
    pub job: u64,
    /// The rank.
    pub rank: u32,
    /// The start.
    pub start: u64,
    /// The job, as it was submitted.
    pub spec: Spec,
    /// The image from which the start goes on, while it has none of its own.
    pub from: Option<(Place, Root)>,
    /// The images of which that state is made.
    pub chain: usize,
    /// The number of the rank's next image.
    pub next: u64,
    /// Images before this one will not be restored.
    pub oldest: u64,
    /// All ranks have gone back, and it begins with a state from before: what it chose later by then
    /// counts no more.
    pub regrouped: bool,
    /// How often a user has asked this start for a checkpoint.
    pub saves: u64,
}

/// An image that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// It.
    pub place: Place,
    /// The root of its manifest.
    pub root: Root,
    /// The node has it, by what it said in its present life.
    pub here: bool,
    /// The node had it in an earlier life.
    pub awaited: bool,
    /// The node is to have it, and gets it from one of these ([`Host::copies`](crate::Host)).
    pub from: Vec<String>,
}

impl Task {
    /// The start that is meant.
    pub fn key(&self) -> Key {
        Key { job: self.job, rank: self.rank, start: self.start }
    }
}

impl Jobs {
    /// Where copies of this life of a node's images are given away.
    fn copies_of(&self, node: Member) -> Option<String> {
        let (_, host) = self.hosts().find(|(member, _)| *member == node)?;
        (!host.copies.is_empty()).then(|| host.copies.clone())
    }

    /// The work of a node in its present life.
    pub fn assignment(&self, node: Member) -> Assignment {
        let mut assignment = Assignment {
            version: self.version(),
            jobs: self.jobs().map(|(number, _)| number).chain(self.forgotten()).collect(),
            forgotten: self.forgotten().collect(),
            over: self
                .jobs()
                .filter(|(_, it)| it.state == JobState::Finished)
                .map(|it| it.0)
                .collect(),
            introduced: self.hosts().any(|(member, _)| member == node),
            agents: self.hosts().map(|(member, host)| (member, host.copies.clone())).collect(),
            ..Assignment::default()
        };
        for (number, job) in self.jobs() {
            if job.ranks.iter().any(|rank| rank.since > 0) {
                let since = job.ranks.iter().map(|rank| rank.since).collect();
                assignment.since.push((number, since));
            }
            for (rank, it) in (0..).zip(&job.ranks) {
                let keeps = it.keepers.contains(&node.node);
                for image in it.images.generations() {
                    let here = image.holders.contains(&node);
                    // A node's earlier life gives nothing away: its files are this life's.
                    let others = |holder: &&Member| holder.node != node.node;
                    let holders = image.holders.iter().filter(others).filter(|_| keeps && !here);
                    assignment.images.push(Kept {
                        place: image.place,
                        root: image.root,
                        here,
                        awaited: image.away.contains(&node.node),
                        from: holders.filter_map(|holder| self.copies_of(*holder)).collect(),
                    });
                }
                if let RankState::At(node) = it.state
                    && job.ranks.len() > 1
                {
                    assignment.peers.push((Key { job: number, rank, start: it.start }, node));
                }
                if it.state == RankState::Finished && it.ran == Some(node.node) {
                    assignment.finished.push(Key { job: number, rank, start: it.start });
                }
                if it.state != RankState::At(node) {
                    continue;
                }
                if job.state != JobState::Running {
                    assignment.ending.push(Key { job: number, rank, start: it.start });
                    continue;
                }
                let from = it.images.from();
                assignment.tasks.push(Task {
                    job: number,
                    rank,
                    start: it.start,
                    spec: job.spec.clone(),
                    from: from.map(|image| (image.place, image.root)),
                    chain: it.images.length(),
                    next: it.images.next(),
                    oldest: it.images.oldest(),
                    regrouped: from.is_some_and(|image| image.place.start < it.since),
                    saves: it.saves,
                });
            }
        }
        assignment
    }
}
