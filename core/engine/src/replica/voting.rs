//! A voting replica's part: it votes on its handlers' nested calls and its outcomes, and answers
//! settled calls (`docs/protocol/group.md`, "Voting").

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

/// The error of a call for whose outcome no majority of the replicas agrees.
const SPLIT: &str = "the call was executed, but no majority of the replicas has the same outcome: the service is not \
    deterministic, or several replicas are faulty at once; see the `split` events of the nodes";

/// A vote: on an outcome, or on a handler's call of another group.
#[derive(Clone, Debug)]
struct Cast {
    digest: Digest,
    matter: Matter,
}

/// The subject of a vote.
#[derive(Clone, Copy, Debug)]
enum Matter {
    Outcome(Answerable),
    Ask(Child),
}

/// A client's call, and its number in the group's history.
#[derive(Clone, Copy, Debug)]
struct Answerable {
    client: ClientId,
    call: u64,
    number: u64,
}

/// This replica's vote compared with the majority's.
#[derive(Clone, Debug)]
enum Stands {
    /// The majority is not known yet.
    Open,
    Alike,
    Apart,
    /// There is no majority.
    Split,
}

/// A ballot without the fields that its node adds.
#[derive(Clone, Debug)]
pub(crate) struct Slip {
    pub opening: Option<u64>,
    pub first: u64,
    pub digests: Vec<Digest>,
}

/// A state that was taken. It is neither sent nor stored before all calls in it are settled.
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    pub(super) purpose: Purpose,
    position: u64,
    pub(super) head: StateHead,
    pub(super) service: bytes::Bytes,
}

/// The purpose of a state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Give(ViewNumber),
    Keep,
}

/// A voting replica's votes.
#[derive(Clone, Debug)]
pub(super) struct Voting {
    /// The position of the first cast vote.
    first: u64,
    cast: VecDeque<Cast>,
    /// The last position in a ballot.
    told: u64,
    /// A ballot is ordered and not yet delivered.
    in_flight: bool,
    /// The ballot with this replica's first position is delivered. With it all earlier verdicts are
    /// there. One that comes before may be the second of two; to go on from it would leave the
    /// first unknown for ever.
    opened: bool,
    /// The last settled position.
    settled: u64,
    /// Executed calls that are not settled, or settled differently: they are not answered.
    pub(super) open: BTreeMap<(ClientId, u64), u64>,
    /// The handler's nested call that is not settled, or settled differently: the call and its
    /// position.
    awaited: Option<(Child, u64)>,
    /// A position was settled differently. The replica will be taken out, when all know its vote.
    pub(super) deviates: bool,
    /// Verdicts on positions that are still to be executed.
    pub(super) ahead: BTreeMap<u64, Verdict>,
    pub(super) unsettled: Vec<Unsettled>,
}

impl Voting {
    /// Starts after so many executed calls, all of them settled.
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

    /// All up to this position is settled, and this replica voted as most did.
    pub(super) fn agreed(&self, position: u64) -> bool {
        !self.deviates && self.settled >= position
    }

    /// The progress of the votes, for diagnosis.
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

    /// Casts this replica's next vote.
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
            // Settled before this replica had voted: the others voted the same, or it will be taken
            // out.
            Some(Verdict::Agreed(_)) | None => Stands::Alike,
        }
    }
}

/// The digest of an outcome.
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
