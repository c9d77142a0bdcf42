//! The service of the tests' groups.

use std::collections::VecDeque;

use bytes::Bytes;
use steadfast_engine::{
    Applied, Begun, Changes, Command, Executed, NestedCall, NestedError, ServiceOutcome, Ticket,
};
use wire::ordered::{MERGE, StateDigest};
use wire::{Duration, GroupId, MethodId};

use super::{Cluster, DELAY};
use crate::base::Base;
use crate::voting::Fault;

/// The arguments of a call that every node's service executes in its own way.
pub const WHO: &str = "who";

/// The arguments of a call that ends the program that executes it, and of one that ends the node.
const DIE: &[u8] = b"die";
const CRASH: &[u8] = b"crash";

/// At nodes 1 and 2 the program is gone before it has read it.
const UNREAD: &[u8] = b"unread";

fn lines(state: &Bytes) -> Vec<String> {
    std::str::from_utf8(state).unwrap().lines().map(String::from).collect()
}

/// The union of two logs.
fn merge(log: &mut Vec<String>, changes: &mut Changes, other: &Bytes) -> Executed {
    changes.executed();
    let new = lines(other).into_iter().filter(|line| !log.contains(line));
    let new: Vec<String> = new.collect();
    log.extend(new);
    Executed::Reply(ServiceOutcome::Ok(Bytes::new()))
}

impl<O: Base> Cluster<O> {
    pub(super) fn run(&mut self, id: u32, group: GroupId, command: Command) {
        let now = self.world.now;
        let node = self.at_mut(id);
        if let Some((_, _, queue)) = node.blocked.get_mut(&group) {
            return queue.push_back(command);
        }
        if let Command::Execute { ticket, read: false, body, .. } = &command
            && body.contains(&b'>')
        {
            return self.call_another(id, group, *ticket, body);
        }
        let log = node.logs.entry(group).or_default();
        let changes = node.changes.entry(group).or_default();
        let (ticket, executed) = match command {
            Command::Execute { ticket, read: true, .. } => {
                (ticket, Executed::Reply(ServiceOutcome::Ok(log.len().to_string().into())))
            }
            Command::Execute { ticket, method: MERGE, body, .. } => {
                (ticket, merge(log, changes, &body))
            }
            Command::Execute { ref body, .. } if body.starts_with(DIE) => {
                node.executions += 1;
                node.logs.remove(&group);
                return node.stack.service_lost(now, group, Begun::Any);
            }
            Command::Execute { ticket, ref body, .. } if body.starts_with(UNREAD) && id < 3 => {
                node.logs.remove(&group);
                return node.stack.service_lost(now, group, Begun::Before(ticket));
            }
            Command::Execute { ref body, .. } if body.starts_with(CRASH) => {
                node.executions += 1;
                return self.world.later(DELAY, id);
            }
            Command::Execute { ticket, body, .. } => {
                changes.executed();
                node.executions += 1;
                if node.fault == Some(Fault::Hangs) {
                    return;
                }
                let lie = if node.fault.is_some_and(Fault::lies) {
                    format!("lie {id} ")
                } else {
                    String::new()
                };
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
            Command::Restore { ticket, .. } if node.fault == Some(Fault::CannotRead) => {
                (ticket, Executed::Restored(Err("no such field".into())))
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
            Command::View(view) => {
                return node.views.entry(group).or_default().push((log.len(), view));
            }
            Command::Start(_) => {
                node.starts += 1;
                changes.reset();
                return log.clear();
            }
            Command::Digest { number } => {
                let value = log
                    .iter()
                    .flat_map(|line| line.bytes())
                    .fold(1, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
                let state = StateDigest { form: 1, value };
                return node.stack.handle_digest(now, group, number, state);
            }
            Command::Style(_) => return changes.reset(),
            Command::Reset | Command::Stop => {
                changes.reset();
                node.fault = node.fault.filter(Fault::lasts);
                return log.clear();
            }
        };
        node.stack.handle_executed(now, group, ticket, executed);
    }

    /// `callee>text`: the handler calls another group.
    fn call_another(&mut self, id: u32, group: GroupId, ticket: Ticket, body: &Bytes) {
        let now = self.world.now;
        let node = self.at_mut(id);
        let log = node.logs.entry(group).or_default();
        node.changes.entry(group).or_default();
        let entry = String::from_utf8(body.to_vec()).unwrap();
        let (callee, text) = entry.split_once('>').unwrap();
        let lie = format!("lie {id}");
        let (text, timeout) = match node.fault {
            Some(Fault::AsksElse) => (&*lie, Duration::from_secs(60)),
            Some(Fault::AsksInHaste) => (text, Duration::ZERO),
            Some(Fault::Hangs) => return,
            Some(Fault::AsksNothing) => {
                log.push(entry.clone());
                let executed = Executed::Reply(ServiceOutcome::Ok(entry.into()));
                return node.stack.handle_executed(now, group, ticket, executed);
            }
            _ => (text, Duration::from_secs(60)),
        };
        let call = NestedCall {
            ticket,
            callee: callee.into(),
            method: MethodId::of("append"),
            json: false,
            body: Bytes::copy_from_slice(text.as_bytes()),
            timeout,
        };
        node.blocked.insert(group, (ticket, entry, VecDeque::new()));
        node.stack.handle_nested(now, now, group, call);
    }

    /// A handler's call has ended: it answers with what came of it, and what waited behind it is
    /// executed.
    pub(super) fn resume_handler(
        &mut self,
        id: u32,
        group: GroupId,
        ticket: Ticket,
        outcome: Result<Bytes, NestedError>,
    ) {
        let now = self.world.now;
        let node = self.at_mut(id);
        let (waited, entry, queue) = node.blocked.remove(&group).expect("a handler waits");
        assert_eq!(waited, ticket, "the handler that waits goes on");
        let log = node.logs.entry(group).or_default();
        let came = match outcome {
            Ok(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Err(error) => format!("{error:?}"),
        };
        node.changes.entry(group).or_default().executed();
        node.executions += 1;
        log.push(format!("{entry}={came}"));
        let result = format!("{}:{entry}={came}", log.len());
        let executed = Executed::Reply(ServiceOutcome::Ok(result.into()));
        node.stack.handle_executed(now, group, ticket, executed);
        for command in queue {
            self.run(id, group, command);
        }
    }
}
