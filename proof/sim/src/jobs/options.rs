//! The draws of a seed: the cluster, its jobs, its delays and its faults.

use job::Spec;
use wire::Duration;

use crate::disk::Troubles;
use crate::draw::Draw;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A rank is killed.
    KillRank,
    /// A rank ends with an error.
    FailRank,
    /// All ranks of a node are killed.
    KillRanks,
    /// An agent is killed, and at times others with it.
    KillAgents,
    /// A node is killed, with its agent and its ranks; at times others with it.
    KillNodes,
    /// A host loses power.
    Power,
    /// All hosts lose power.
    AllPower,
    /// A host loses power, and comes back with an empty disk.
    NewDisk,
    /// Hosts are cut off.
    Cut,
    /// A bit of an image's file rots.
    Rot,
    /// A file of an image is torn, is gone, or is another one.
    Harm,
    /// A disk is full for a while.
    Full,
    /// The primary of the book moves.
    Move,
    /// A node is to be emptied for a while.
    Drain,
    /// A user stops a job, and goes on with it later.
    Stop,
    /// A user wants a checkpoint.
    Save,
}

impl Fault {
    const ALL: [Fault; 16] = [
        Fault::KillRank,
        Fault::FailRank,
        Fault::KillRanks,
        Fault::KillAgents,
        Fault::KillNodes,
        Fault::Power,
        Fault::AllPower,
        Fault::NewDisk,
        Fault::Cut,
        Fault::Rot,
        Fault::Harm,
        Fault::Full,
        Fault::Move,
        Fault::Drain,
        Fault::Stop,
        Fault::Save,
    ];
}

/// A job of a seed.
#[derive(Clone, Debug)]
pub struct JobPlan {
    pub spec: Spec,
    /// The turns of each rank, and the longest one.
    pub turns: u64,
    pub turn: Duration,
    /// Turns between two snapshots.
    pub every: u64,
    /// Its arrays, and the words of each.
    pub arrays: usize,
    pub words: usize,
    /// When it is submitted.
    pub at: Duration,
}

/// The draws of a seed.
#[derive(Clone, Debug)]
pub struct Options {
    pub nodes: usize,
    pub jobs: Vec<JobPlan>,
    /// The longest time until a word is ordered, a replica or an agent hears of it, and so on.
    pub lag: Duration,
    /// The longest operation of a disk.
    pub slowest: Duration,
    /// Until a member that is silent is excluded.
    pub detection: Duration,
    /// The longest time until a node or an agent begins again.
    pub restart: Duration,
    pub faults: Vec<Fault>,
    /// Pause between faults, on average.
    pub pause: Duration,
    /// The faults end after so long.
    pub phase: Duration,
    /// Words of directors that are lost, and that come once more, later: of 1,000.
    pub unheard: u64,
    pub repeated: u64,
    /// Starts that fail at once, of 1,000.
    pub unstarted: u64,
    pub troubles: Troubles,
    /// The kind of each node's processors.
    pub kinds: Vec<u8>,
}

fn millis(draw: &mut Draw, from: &[u64]) -> Duration {
    Duration::from_millis(draw.pick(from))
}

impl Options {
    pub fn draw(draw: &mut Draw) -> Options {
        let mut faults = draw.fork();
        let nodes = draw.pick(&[1, 2, 3, 3, 3, 4, 5]);
        let many = draw.pick(&[1, 1, 2]);
        let phase = millis(&mut faults, &[300, 1_000, 3_000]);
        let jobs = (0..many).map(|number| JobPlan::draw(draw, number, phase)).collect();
        let sometimes = |faults: &mut Draw, rates: &[u64]| match faults.one_in(2) {
            true => faults.pick(rates),
            false => 0,
        };
        let kinds = faults.count(1, 7);
        let chosen = faults.distinct(kinds, Fault::ALL.len());
        Options {
            nodes,
            jobs,
            lag: millis(draw, &[1, 5, 5, 40]),
            slowest: millis(draw, &[1, 4, 30]),
            detection: millis(draw, &[5, 50, 200]),
            restart: millis(draw, &[10, 100, 100, 800]),
            faults: chosen.into_iter().map(|kind| Fault::ALL[kind]).collect(),
            pause: phase / faults.pick(&[6, 20, 60]),
            phase,
            unheard: sometimes(&mut faults, &[20, 200]),
            repeated: sometimes(&mut faults, &[20, 200]),
            unstarted: sometimes(&mut faults, &[10]),
            troubles: Troubles {
                // One that fails takes the names of other ranks' images with it: their folder is
                // here the same.
                unsynced: 0,
                refused: sometimes(&mut faults, &[2, 10]),
                spoilt: sometimes(&mut faults, &[20, 200]),
                copies: false,
            },
            kinds: match faults.one_in(4) {
                true => (0..nodes).map(|_| faults.pick(&[0, 1])).collect(),
                false => vec![0; nodes],
            },
        }
    }
}

impl JobPlan {
    /// Undisturbed it takes about as long as the faults.
    fn draw(draw: &mut Draw, number: u64, phase: Duration) -> JobPlan {
        let spec = Spec {
            name: format!("job-{number}"),
            command: vec!["matmul".into()],
            ranks: draw.between(1, 3) as u32,
            copies: draw.between(1, 3) as u8,
            full: draw.one_in(4),
            blocking: draw.one_in(4),
            ..Spec::default()
        };
        let turns = draw.between(4, 40);
        JobPlan {
            spec,
            turns,
            turn: draw.span(phase / 4, 2 * phase) / turns as u32,
            every: draw.pick(&[1, 1, 2, 5]),
            arrays: draw.count(1, 4),
            words: draw.count(1, 6),
            at: draw.span(Duration::ZERO, phase / 2),
        }
    }
}
