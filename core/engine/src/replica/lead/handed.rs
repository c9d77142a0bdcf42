//! The evidence against calls of a log, which goes with the log from one replica to another.

use alloc::vec::Vec;

use wire::limits::{MAX_CONDEMNED, MAX_DEATHS};
use wire::ordered::{Blamed, Trial};

use super::Lead;

impl Lead {
    /// The calls that services may have died of, for a replica that gets the log.
    pub(in crate::replica) fn blamed(&self) -> Vec<Blamed> {
        let tried = self.trial.as_ref().map(|(number, trial)| Blamed {
            number: *number,
            deaths: trial.deaths.clone(),
            answered: trial.answered,
            tried_at: Some(trial.node),
        });
        let suspected = self.suspects.blamed();
        let others =
            suspected.filter(|blamed| tried.as_ref().is_none_or(|it| it.number != blamed.number));
        others.chain(tried.clone()).take(MAX_CONDEMNED).collect()
    }

    /// A log that came, or a disk, blames these calls. A node that tried one has died of it if it
    /// was in an earlier life: this node's own, or, by a disk, any.
    pub(in crate::replica) fn blame_again(&mut self, blamed: Vec<Blamed>, from_disk: bool) {
        let me = self.me.map(|me| me.node);
        for Blamed { number, mut deaths, answered, tried_at } in blamed {
            if number <= self.proven {
                continue;
            }
            match tried_at {
                Some(node) if from_disk || Some(node) == me => {
                    if deaths.len() < MAX_DEATHS {
                        deaths.push(node);
                    }
                    self.suspects.take(number, deaths, answered);
                }
                Some(node) => {
                    let trial = Trial { node, deaths, answered, beside: false };
                    (self.trial, self.tried_by) = (Some((number, trial)), None);
                }
                None => self.suspects.take(number, deaths, answered),
            }
        }
    }
}
