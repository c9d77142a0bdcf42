//! The service of the tests' groups.

use bytes::Bytes;
use steadfast_engine::{Applied, Command, Executed, ServiceOutcome};
use wire::GroupId;

use super::Cluster;
use crate::base::Base;
use crate::voting::Fault;

/// The arguments of a call that every node's service executes in its own way.
pub const WHO: &str = "who";

impl<O: Base> Cluster<O> {
    pub(super) fn run(&mut self, id: u32, group: GroupId, command: Command) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let log = node.logs.entry(group).or_default();
        let changes = node.changes.entry(group).or_default();
        let lines = |state: &Bytes| -> Vec<String> {
            std::str::from_utf8(state).unwrap().lines().map(String::from).collect()
        };
        let (ticket, executed) = match command {
            Command::Execute { ticket, read: true, .. } => {
                let length = log.len().to_string();
                (ticket, Executed::Reply(ServiceOutcome::Ok(length.into())))
            }
            Command::Execute { ticket, body, .. } => {
                changes.executed();
                node.executions += 1;
                if node.fault == Some(Fault::Hangs) {
                    return;
                }
                let lie = if node.fault.is_some() { format!("lie {id} ") } else { String::new() };
                let mut entry = lie + std::str::from_utf8(&body).unwrap();
                if entry == WHO {
                    entry = format!("by {id}");
                }
                log.push(entry.clone());
                let result = format!("{}:{entry}", log.len());
                (ticket, Executed::Reply(ServiceOutcome::Ok(result.into())))
            }
            Command::Snapshot { ticket } => {
                let state = changes.current().cloned();
                (ticket, Executed::Snapshot(Ok(state.unwrap_or_else(|| log.join("\n").into()))))
            }
            Command::Restore { ticket, state } => {
                *log = lines(&state);
                changes.restored(state);
                (ticket, Executed::Restored(Ok(())))
            }
            Command::Change { ticket } => {
                let change = changes.take(None, || Ok(log.join("\n").into()));
                (ticket, Executed::Change(change))
            }
            Command::Apply { ticket, change } => match changes.apply(&change) {
                Ok(Applied::State(state)) => {
                    *log = lines(&state);
                    (ticket, Executed::Applied(Ok(())))
                }
                other => panic!("{other:?}"),
            },
            Command::Start => {
                node.starts += 1;
                return log.clear();
            }
            Command::Reset => {
                changes.reset();
                node.fault = node.fault.filter(|fault| *fault == Fault::LiesAlways);
                return log.clear();
            }
        };
        node.stack.handle_executed(now, group, ticket, executed);
    }
}
