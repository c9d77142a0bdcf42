//! The contracts of groups, as far as callers have needed them.
//!
//! A contract is asked for once, and again when it is old: a service may have been upgraded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use client::AsyncClient;
use steadfast::{Contract, ContractError};
use tokio::sync::{OnceCell, watch};

use crate::proto::Described;
use crate::refusals::Kind;
use crate::status::Failure;

/// After this time a contract is asked for anew, beside the calls that use the old one.
const FRESH: Duration = Duration::from_secs(10);

/// Contracts that are kept. The one asked for longest ago gives way.
const MAX_KEPT: usize = 256;

/// The contracts that are known.
#[derive(Clone, Debug)]
pub(crate) struct Contracts {
    own: AsyncClient,
    kept: Arc<Mutex<HashMap<String, Kept>>>,
    news: watch::Sender<u64>,
}

type Answer = Result<Arc<Described>, Failure>;

#[derive(Debug)]
struct Kept {
    /// The newest answer.
    answer: Arc<OnceCell<Answer>>,
    asked: Instant,
    /// The last contract that came, while a newer one is asked for.
    last: Option<Arc<Described>>,
}

impl Contracts {
    pub(crate) fn new(own: AsyncClient) -> Contracts {
        Contracts { own, kept: Arc::default(), news: watch::Sender::new(0) }
    }

    /// Wakes when a contract has come, or has changed.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// A group's contract, at most some seconds old unless nobody answers.
    pub(crate) async fn get(&self, group: &str) -> Answer {
        if let Some(last) = self.peek(group) {
            return Ok(last);
        }
        self.asked(group).await
    }

    /// A group's contract, if it is known. It is asked for if it is not, or is old.
    pub(crate) fn peek(&self, group: &str) -> Option<Arc<Described>> {
        let mut kept = self.lock();
        let known = kept.get_mut(group);
        let is_fresh = known.as_ref().is_some_and(|known| known.asked.elapsed() < FRESH);
        let last = known.and_then(|known| match known.answer.get() {
            Some(Ok(described)) => Some(described.clone()),
            _ => known.last.clone(),
        });
        drop(kept);
        if !is_fresh {
            let (contracts, group) = (self.clone(), group.to_owned());
            tokio::spawn(async move { drop(contracts.anew(&group).await) });
        }
        last
    }

    /// Whether a group's contract has come.
    pub(crate) fn has(&self, group: &str) -> bool {
        let kept = self.lock();
        kept.get(group)
            .is_some_and(|it| it.last.is_some() || matches!(it.answer.get(), Some(Ok(_))))
    }

    /// The paths of a group's methods that change nothing, as far as they are known.
    pub(crate) fn reads(&self, group: &str) -> Vec<String> {
        self.peek(group).map_or_else(Vec::new, |described| described.reads())
    }

    /// Asks for a contract whatever is known: a caller names a method that it does not have.
    pub(crate) async fn anew(&self, group: &str) -> Answer {
        let before = self.lock().get(group).map(|known| known.asked);
        // Callers of a method that does not exist do not have it asked for all the time.
        if before.is_none_or(|asked| asked.elapsed() > Duration::from_secs(1)) {
            self.expire(group);
        }
        self.asked(group).await
    }

    /// The newest answer, for which all wait that want it.
    async fn asked(&self, group: &str) -> Answer {
        let answer = {
            let mut kept = self.lock();
            if kept.len() >= MAX_KEPT && !kept.contains_key(group) {
                let oldest = kept.iter().min_by_key(|(_, known)| known.asked);
                let oldest = oldest.map(|(group, _)| group.clone());
                oldest.and_then(|oldest| kept.remove(&oldest));
            }
            let fresh = || Kept { answer: Arc::default(), asked: Instant::now(), last: None };
            let known = kept.entry(group.to_owned()).or_insert_with(fresh);
            // A failure is for those who waited for it: meanwhile the group may be there.
            if matches!(known.answer.get(), Some(Err(_))) {
                (known.answer, known.asked) = (Arc::default(), Instant::now());
            }
            known.answer.clone()
        };
        answer.get_or_init(|| self.ask(group)).await.clone()
    }

    async fn ask(&self, group: &str) -> Answer {
        let contract = Contract::read(self.own.call(Contract::ask(group)).await);
        let described = contract.map_err(Failure::from).and_then(|contract| {
            let unusable = |why| {
                let why = format!("the contract of `{group}` has no form in protobuf: {why}");
                Failure::new(Kind::Poisoned, why)
            };
            Described::new(group, contract).map(Arc::new).map_err(unusable)
        });
        if described.is_ok() {
            self.news.send_modify(|count| *count += 1);
        }
        described
    }

    /// The next who wants the contract asks for it.
    fn expire(&self, group: &str) {
        if let Some(known) = self.lock().get_mut(group)
            && let Some(answer) = known.answer.get()
        {
            known.last = answer.as_ref().ok().cloned().or(known.last.take());
            (known.answer, known.asked) = (Arc::default(), Instant::now());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<ContractError> for Failure {
    fn from(error: ContractError) -> Failure {
        match error {
            ContractError::Call(error) => Failure::from(error).of_a_question(),
            ContractError::Untold => Failure::new(
                Kind::NoMethod,
                format!("{error}; or call with the metadata steadfast-encoding: json"),
            ),
            other => Failure::new(Kind::Poisoned, other.to_string()),
        }
    }
}
