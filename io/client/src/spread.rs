//! A session's record of a call that goes to all replicas at once: the answers and the verdict.

use std::net::SocketAddr;

use bytes::Bytes;
use wire::NodeId;
use wire::client::{Refusal, Target};
use wire::limits::MAX_REPLICAS;

use crate::CallError;
use crate::bug::{Bug, Planted};
use crate::policy::Replies;

/// The answer of one replica to a call that went to all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The node of the replica.
    pub node: NodeId,
    /// The replica's reply. If it gave none, this is the error of the call.
    pub result: Result<Bytes, CallError>,
}

impl Answer {
    /// An answer of this node's replica.
    pub fn new(node: NodeId, result: Result<Bytes, CallError>) -> Answer {
        Answer { node, result }
    }
}

/// Replicas come and go while a call waits: of so many at most is kept that they were asked, and
/// what they said. The last count.
const MAX_ASKED: usize = 2 * MAX_REPLICAS;

/// The results of such a call so far.
#[derive(Debug)]
pub(crate) struct Spread {
    pub(crate) replies: Replies,
    /// The nodes that were asked, by the last address.
    pub(crate) asked: Vec<Target>,
    /// One of a node at most.
    pub(crate) answers: Vec<Answer>,
    /// The nodes that had no room for it in this round.
    pub(crate) full: Vec<SocketAddr>,
    /// The node that answered a call that went to one target, as its group orders calls.
    pub(crate) alone: Option<NodeId>,
}

impl Spread {
    pub(crate) fn new(replies: Replies) -> Spread {
        Spread { replies, asked: Vec::new(), answers: Vec::new(), full: Vec::new(), alone: None }
    }

    pub(crate) fn begin_round(&mut self) {
        self.full.clear();
    }

    pub(crate) fn ask(&mut self, target: Target) {
        self.asked.retain(|asked| asked.address != target.address);
        self.asked.push(target);
        keep_last(&mut self.asked);
    }

    pub(crate) fn take(&mut self, from: SocketAddr, result: Result<Bytes, CallError>) {
        let Some(asked) = self.asked.iter().find(|asked| asked.address == from) else { return };
        let node = asked.node;
        self.answers.retain(|answer| answer.node != node);
        self.answers.push(Answer { node, result });
        keep_last(&mut self.answers);
    }

    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.answers.iter().any(|answer| answer.node == node)
    }

    /// The verdict of the answers, of a group with these targets; `None` while that may change.
    pub(crate) fn verdict(
        &self,
        targets: &[Target],
        planted: Planted,
    ) -> Option<Result<Bytes, CallError>> {
        let results = || self.answers.iter().map(|answer| &answer.result);
        let have_all = !targets.is_empty() && targets.iter().all(|target| self.has(target.node));
        let first = || results().next().cloned();
        // A replica's refusal does not mean that the others have not executed it: only refusals by
        // all count.
        let shed = || first().filter(|_| results().all(is_shed));
        let split = || Err(self.split());
        match self.replies {
            Replies::First => {
                let given = results().find(|result| !is_shed(result)).cloned();
                given.or_else(|| shed().filter(|_| have_all))
            }
            Replies::Majority => {
                let enough = targets.len() / 2 + 1;
                let any = planted.is(Bug::CountUnlike) && self.answers.len() >= enough;
                let agree = |result: &&Result<Bytes, CallError>| {
                    !is_shed(result) && (any || self.alike(result, targets) >= enough)
                };
                let agreed = results().find(agree).cloned().filter(|_| !targets.is_empty());
                agreed.or_else(|| have_all.then(|| shed().unwrap_or_else(split)))
            }
            Replies::All => {
                let some = planted.is(Bug::AllButOne) && self.answers.len() + 1 >= targets.len();
                let agreed = first().filter(|first| results().all(|result| result == first));
                (have_all || some && first().is_some())
                    .then(|| agreed.or_else(shed).unwrap_or_else(split))
            }
        }
    }

    /// How many of these targets have said this.
    pub(crate) fn alike(&self, result: &Result<Bytes, CallError>, targets: &[Target]) -> usize {
        let said = self.answers.iter().filter(|answer| answer.result == *result);
        said.filter(|answer| targets.iter().any(|target| target.node == answer.node)).count()
    }

    pub(crate) fn split(&self) -> CallError {
        let mut different: Vec<&Result<Bytes, CallError>> = Vec::new();
        for answer in &self.answers {
            if !different.contains(&&answer.result) {
                different.push(&answer.result);
            }
        }
        let (asked, different) = (self.answers.len(), different.len());
        let reason =
            format!("{asked} replicas gave {different} different answers: `gather` lists them all");
        CallError::Refused { refusal: Refusal::Split, reason }
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.asked.len() <= MAX_ASKED && self.answers.len() <= MAX_ASKED);
        assert!(self.full.len() <= MAX_ASKED);
    }

    /// All answers, with what became of the call at those that have given none.
    pub(crate) fn into_answers(
        mut self,
        targets: &[Target],
        result: &Result<Bytes, CallError>,
    ) -> Vec<Answer> {
        let is_said = self.answers.iter().any(|answer| answer.result == *result);
        let is_split = matches!(result, Err(CallError::Refused { refusal: Refusal::Split, .. }));
        let fails = !self.asked.is_empty() && result.is_err() && !is_said && !is_split;
        let silent = targets.iter().filter(|_| fails).map(|target| target.node);
        let meant: Vec<NodeId> = self.alone.map_or_else(|| silent.collect(), |node| vec![node]);
        for node in meant {
            if !self.has(node) {
                self.answers.push(Answer { node, result: result.clone() });
            }
        }
        self.answers
    }
}

pub(crate) fn keep_last<T>(list: &mut Vec<T>) {
    if list.len() > MAX_ASKED {
        list.remove(0);
    }
}

/// It was refused by its priority, before anything was done. Other refusals are the service's
/// answers, which say the same at each replica.
pub(crate) fn is_shed(result: &Result<Bytes, CallError>) -> bool {
    matches!(result, Err(CallError::Refused { refusal: Refusal::Shed, .. }))
}
