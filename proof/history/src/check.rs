//! The verdict on a history, object by object.

use std::collections::BTreeMap;

use crate::counterexample::{Counterexample, explain};
use crate::limits::Limits;
use crate::model::{Model, Told};
use crate::search::{Found, Search, items};

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

/// The result of a check.
#[derive(Debug)]
pub struct Report<M: Model> {
    /// Objects in the history.
    pub keys: usize,
    /// Operations that were checked.
    pub operations: usize,
    /// The cost of the check: see [`Limits::steps`].
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
