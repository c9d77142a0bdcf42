//! The cell that has a group.

use std::time::{Duration, Instant};

use cells::{Command, Name, Record, Refusal, Verdict};
use serde::Serialize;

use crate::commands::Failure;

/// An answer may be so old.
const BEARS: wire::Duration = wire::Duration::from_secs(1);

/// The whole system answers within this time, or does not.
const PATIENCE: Duration = Duration::from_secs(5);

/// A group that nobody finds for so long is nowhere: links that come up meanwhile lead to more cells.
const SURE: Duration = Duration::from_secs(1);

/// The book is asked again after this time, or when it has changed.
const AGAIN: Duration = Duration::from_millis(100);

/// A group of another cell.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    name: Name,
    /// Milliseconds since it was so in its own cell.
    age_ms: u64,
    found: Record,
}

/// Finds a group, by asking this node.
pub(super) fn find(name: &Name, node: &mut admin::Client) -> Result<Found, Failure> {
    let begun = Instant::now();
    loop {
        let want = Command::Want { name: name.clone(), bears: BEARS };
        let since = node.cell(None, Duration::ZERO).map_err(Failure::failed)?.version;
        let verdict: Result<Verdict, Refusal> = node.tell_cell(&want).map_err(Failure::failed)?;
        match verdict.map_err(Failure::failed)? {
            Verdict::Known { found: Some(found), age } => {
                let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
                return Ok(Found { name: name.clone(), age_ms, found });
            }
            Verdict::Known { found: None, .. } if begun.elapsed() >= SURE => {
                return Err(Failure::Failed(format!(
                    "{name} is nowhere: does the cell have such a group, or for *:GROUP, does a \
                     cell export it (`steadfast cell export`)?"
                )));
            }
            _ if begun.elapsed() >= PATIENCE => {
                return Err(Failure::Failed(format!(
                    "nobody has found {name} in time: is the cell attached (`steadfast cell tree`)?"
                )));
            }
            _ => {}
        }
        // It is found out meanwhile, and then the book has it.
        let version = node.cell(Some(since), AGAIN).map_err(Failure::failed)?.version;
        let _ = node.cell(Some(version), AGAIN).map_err(Failure::failed)?;
    }
}

impl Found {
    /// For people.
    pub(super) fn text(&self) -> String {
        let Record { cell, targets } = &self.found;
        let nodes = targets.nodes.iter().map(|target| target.address.to_string());
        let nodes = nodes.collect::<Vec<_>>().join(", ");
        format!("{cell}:{}  replicas at {nodes}; {} ms old\n", self.name.group, self.age_ms)
    }
}
