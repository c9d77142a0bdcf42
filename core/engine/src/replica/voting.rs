//! A voting replica's part: it tells what its handlers ask and what its outcomes are, and answers
//! what is settled (`docs/protocol/group.md`, "Voting").

mod acting;

mod asks;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};
use wire::ordered::{Digest, StateHead};
use wire::{ClientId, ViewNumber};

use super::calls::Child;
use crate::api::ServiceOutcome;
use crate::bug::{Bug, Planted};
use crate::tally::Verdict;

/// What a client is told whose call has no outcome that a majority of the replicas agrees on.
const SPLIT: &str = "the call was executed, but no majority of the replicas has the same outcome: the service is not \
    deterministic, or several replicas are faulty at once; see the `split` events of the nodes";

/// What a replica tells: an outcome, or what a handler asks of another group.
#[derive(Debug)]
struct Cast {
    digest: Digest,
    matter: Matter,
}

/// What a vote is about.
#[derive(Clone, Copy, Debug)]
enum Matter {
    Outcome(ClientId, u64),
    Ask(Child),
}

/// How what this replica tells stands to what a majority does.
enum Stands {
    /// That is not known yet.
    Open,
    Alike,
    Apart,
    /// There is no majority.
    Split,
}

/// A ballot, but for what its node adds.
#[derive(Clone, Debug)]
pub(crate) struct Slip {
    pub opening: Option<u64>,
    pub first: u64,
    pub digests: Vec<Digest>,
}

/// A state that was taken, and is neither given nor kept before all that led to it is settled.
#[derive(Debug)]
pub(super) struct Unsettled {
    pub(super) purpose: Purpose,
    position: u64,
    pub(super) head: StateHead,
    pub(super) service: bytes::Bytes,
}

/// What a state was taken for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Give(ViewNumber),
    Keep,
}

/// What a voting replica keeps of its votes.
#[derive(Debug)]
pub(super) struct Voting {
    /// The position of the first of these.
    first: u64,
    cast: VecDeque<Cast>,
    /// Told up to here.
    told: u64,
    /// Told, and not yet delivered.
    in_flight: bool,
    /// It is delivered from where on it votes. With that come all verdicts so far: one that comes
    /// before may be the second of two (simulator seed 557714), and to go on from it would leave
    /// the first unknown for ever.
    opened: bool,
    /// Settled up to here.
    settled: u64,
    /// Calls of those cast that are not settled, or not as they were here: they are not answered.
    pub(super) open: BTreeMap<(ClientId, u64), u64>,
    /// What its handler asks, if that is not settled, or not as it is asked here: which call, and
    /// the position.
    awaited: Option<(Child, u64)>,
    /// Something else was settled than what it has. It will be taken out, when all know what it
    /// told.
    pub(super) deviates: bool,
    /// Verdicts on what is still to be executed.
    pub(super) ahead: BTreeMap<u64, Verdict>,
    pub(super) unsettled: Vec<Unsettled>,
}

impl Voting {
    /// Of a replica that has executed so much, all of it settled.
    fn from(executed: u64) -> Voting {
        Voting {
            first: executed + 1,
            cast: VecDeque::new(),
            told: executed,
            in_flight: false,
            opened: false,
            settled: executed,
            open: BTreeMap::new(),
            awaited: None,
            deviates: false,
            ahead: BTreeMap::new(),
            unsettled: Vec::new(),
        }
    }

    /// How far it is, for whoever looks for a fault.
    pub(super) fn for_people(&self) -> String {
        let Voting { first, told, in_flight, opened, settled, deviates, .. } = self;
        let (cast, open, kept) = (self.cast.len(), self.open.len(), self.unsettled.len());
        format!(
            "votes from {first}: cast {cast}, told {told} (in flight: {in_flight}), opened {opened}, settled {settled}, deviates \
             {deviates}, {open} open, {kept} states kept; "
        )
    }

    fn digest(&self, position: u64) -> Option<&Cast> {
        self.cast.get(usize::try_from(position.checked_sub(self.first)?).ok()?)
    }

    /// This replica has this to tell next.
    fn cast(&mut self, position: u64, digest: Digest, matter: Matter, planted: Planted) -> Stands {
        self.cast.push_back(Cast { digest, matter });
        if position > self.settled {
            return Stands::Open;
        }
        match self.ahead.remove(&position) {
            Some(Verdict::Agreed(agreed))
                if agreed != digest && !planted.is(Bug::AnswerMinority) =>
            {
                self.deviates = true;
                Stands::Apart
            }
            Some(Verdict::Split(_)) => Stands::Split,
            // Settled before this replica could be told: the others have what it has, or it will be
            // taken out.
            Some(Verdict::Agreed(_)) | None => Stands::Alike,
        }
    }
}

/// What stands for an outcome.
pub(crate) fn digest(outcome: &ServiceOutcome) -> Digest {
    let mut hash = Sha256::new();
    match outcome {
        ServiceOutcome::Ok(bytes) => {
            hash.update([0]);
            hash.update(bytes);
        }
        ServiceOutcome::Error(bytes) => {
            hash.update([1]);
            hash.update(bytes);
        }
        ServiceOutcome::Refused(refusal, reason) => {
            hash.update([2, *refusal as u8]);
            hash.update(reason);
        }
    }
    Digest(hash.finalize()[..16].try_into().expect("a hash of 32 bytes has 16"))
}
