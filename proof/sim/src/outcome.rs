//! The outcome of a seed.

use wire::Time;

use crate::check::Verdict;

/// The outcome of a seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first violation, if any.
    pub verdict: Verdict,
    /// The hash of the whole stream of events.
    pub hash: u64,
    /// The run in numbers.
    pub summary: Summary,
}

/// A run in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// How long it took, in virtual time.
    pub virtual_time: Time,
    /// Happenings.
    pub steps: u64,
    /// Datagrams between nodes.
    pub datagrams: u64,
    /// Calls that were answered by the service.
    pub answered: u64,
    /// Calls that ended otherwise.
    pub failed: u64,
    /// Requests executed, over all replicas.
    pub executed: u64,
    /// Lives that ended.
    pub deaths: u64,
    /// States that were transferred.
    pub transfers: u64,
    /// States that went by streams.
    pub streams: u64,
    /// Primaries that were moved, as somebody was told.
    pub moves: u64,
    /// Calls between groups that ended at a replica.
    pub nested: u64,
    /// Ends of such calls that were ordered once more than needed, as each replica of the callee
    /// saw it.
    pub nested_copies: u64,
    /// Changes of style, as somebody was told.
    pub restyles: u64,
    /// Services that calls killed.
    pub kills: u64,
    /// Answers that say that a call is poisonous.
    pub refusals: u64,
    /// Programs that died, of calls or otherwise.
    pub falls: u64,
    /// Replicas that went on with another program.
    pub revived: u64,
    /// Replicas that were taken out because their services hung.
    pub demotions: u64,
    /// Replicas of deployed programs that changed over to another program.
    pub upgrades: u64,
    /// Upgrades that were taken back because the new program did not serve.
    pub undone: u64,
    /// Steps of each operation of a script, undisturbed.
    pub steps_of: [u64; 4],
    /// Runs in which the leader died after such a step.
    pub interrupted: u64,
    /// Steps after which the promise does not cover that.
    pub uncovered: u64,
    /// Disks that were replaced because they had rotted.
    pub rotten: u64,
    /// Nodes that left because their disks were full.
    pub full: u64,
    /// Orders of backups that nodes obeyed, over all nodes.
    pub ranks: u64,
    /// Calls that hosts with too much to do refused.
    pub refused: u64,
    /// Histories of clients for which the checker would have taken too long.
    pub undecided: u64,
    /// Calls for which a second replica was asked, in worlds that came to their end.
    pub hedges: u64,
    /// Replies that brought what another had brought.
    pub copies: u64,
    /// Calls that clients sent again although they may have been executed.
    pub retries: u64,
    /// Calls that their callers made again by a gateway.
    pub repeated: u64,
}

impl Summary {
    /// Adds another run's numbers.
    pub fn add(&mut self, other: &Summary) {
        self.virtual_time.0 += other.virtual_time.0;
        self.steps += other.steps;
        self.datagrams += other.datagrams;
        self.answered += other.answered;
        self.failed += other.failed;
        self.executed += other.executed;
        self.deaths += other.deaths;
        self.transfers += other.transfers;
        self.streams += other.streams;
        self.moves += other.moves;
        self.nested += other.nested;
        self.nested_copies += other.nested_copies;
        self.restyles += other.restyles;
        self.demotions += other.demotions;
        self.kills += other.kills;
        self.refusals += other.refusals;
        self.falls += other.falls;
        self.revived += other.revived;
        self.upgrades += other.upgrades;
        self.undone += other.undone;
        self.steps_of.iter_mut().zip(other.steps_of).for_each(|(all, steps)| *all += steps);
        self.interrupted += other.interrupted;
        self.rotten += other.rotten;
        self.full += other.full;
        self.uncovered += other.uncovered;
        self.ranks += other.ranks;
        self.refused += other.refused;
        self.undecided += other.undecided;
        self.hedges += other.hedges;
        self.copies += other.copies;
        self.retries += other.retries;
        self.repeated += other.repeated;
    }
}
