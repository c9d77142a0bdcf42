//! The verdict on a history, object by object.

use std::collections::BTreeMap;

use crate::counterexample::{Counterexample, explain};
use crate::model::{Model, Told};
use crate::record::{End, Operation};
use crate::search::{Found, Item, Search};

/// What the search of one object may cost.
///
/// The problem is NP-complete (Gibbons and Korach, *Testing Shared Memories*, 1997), so some history takes longer than
/// anybody waits. A search that reaches a limit says so.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Executions of a call by the model: some tens of nanoseconds each where states are small.
    pub steps: u64,
    /// Pairs of operations done and state that are remembered: some 50 bytes each.
    pub configurations: usize,
}

impl Default for Limits {
    /// Some seconds, and some 100 MB.
    fn default() -> Self {
        Limits { steps: 20_000_000, configurations: 2_000_000 }
    }
}

/// An object of which it is not known whether its history is linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided<K> {
    /// Which.
    pub key: K,
    /// Operations of its history.
    pub operations: usize,
    /// The limit that was reached: `steps` or `configurations`.
    pub limit: &'static str,
}

/// What a check found.
#[derive(Debug)]
pub struct Report<M: Model> {
    /// Objects in the history.
    pub keys: usize,
    /// Operations that were looked at.
    pub operations: usize,
    /// What it cost: see [`Limits::steps`].
    pub steps: u64,
    /// Objects whose search reached a limit.
    pub undecided: Vec<Undecided<M::Key>>,
    /// The first object found whose history is not linearizable. The others were not all looked at.
    pub broken: Option<Counterexample<M>>,
}

impl<M: Model> Report<M> {
    /// Every object's history is linearizable, for certain.
    pub fn is_linearizable(&self) -> bool {
        self.broken.is_none() && self.undecided.is_empty()
    }
}

/// Checks a history: each object apart, each within the limits.
pub fn check<M: Model>(model: &M, operations: &[Told<M>], limits: Limits) -> Report<M> {
    let mut objects: BTreeMap<M::Key, Vec<&Told<M>>> = BTreeMap::new();
    for operation in operations {
        objects.entry(model.key(&operation.call)).or_default().push(operation);
    }
    let mut report = Report {
        keys: objects.len(),
        operations: operations.len(),
        steps: 0,
        undecided: Vec::new(),
        broken: None,
    };
    for (key, history) in objects {
        let items = items(model, &history);
        let mut search = Search::new(model, model.initial(&key), items, limits);
        let found = search.run();
        report.steps += search.steps;
        match found {
            Found::Linearization => {}
            Found::Limit(limit) => {
                report.undecided.push(Undecided { key, operations: history.len(), limit });
            }
            Found::Nothing(stuck) => {
                report.broken = Some(explain(model, key, &history, &stuck, limits));
                break;
            }
        }
    }
    report
}

/// What of an object's history has to have a place, or may.
pub(crate) fn items<'a, M: Model>(model: &M, history: &[&'a Told<M>]) -> Vec<Item<'a, M>> {
    let item = |(place, operation): (usize, &&'a Told<M>)| {
        let Operation { call, invoked, end, .. } = operation;
        let invoked = *invoked;
        match end {
            End::Answered { at, reply } => {
                Some(Item { call, reply: Some(reply), invoked, ended: Some(*at), place })
            }
            // A read that nobody saw changes nothing.
            End::Unknown if model.is_read(call, None) => None,
            End::Unknown => Some(Item { call, reply: None, invoked, ended: None, place }),
            End::Failed => None,
        }
    };
    history.iter().enumerate().filter_map(item).collect()
}
