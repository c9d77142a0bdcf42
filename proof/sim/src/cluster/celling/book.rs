//! A node's replica of the cell's book, and the commands that the node has ordered.

use bytes::Bytes;
use cells::{Command, Refusal, Verdict as Answer};
use engine::{Command as Run, Event, Executed, ServiceOutcome, Stack};
use wire::client::Outcome;
use wire::ordered::GroupOptions;
use wire::system::{CELL, CELL_ID};
use wire::{Duration, GroupId};

use super::Desk;
use crate::celled::{book, kept_book};
use crate::check::{Verdict, demand, liveness};
use crate::cluster::Cluster;
use crate::fabric::node_id;

/// How long an order may take to be answered, as in `io/node`.
const TIMEOUT: Duration = Duration::from_secs(4);

impl Cluster {
    /// A node that starts hosts its replica of the book, and carries.
    pub(in crate::cluster) fn begin_carrying(
        &mut self,
        node: usize,
        stack: &mut Stack<ring::Ring>,
    ) {
        let Some(celling) = &mut self.celling else { return };
        celling.desks[node] = Desk::new(&celling.plan, node, celling.plant);
        let options = GroupOptions { durability: self.options.durability(), ..Default::default() };
        stack.host(self.fabric.local(node), CELL, options).expect("it is hosted once");
    }

    /// A node's replica of the book does what it is told, at once.
    pub(in crate::cluster) fn keep_book(&mut self, node: usize, command: Run) -> Verdict {
        let celling = self.celling.as_mut().expect("the book is kept");
        let (path, plant) = (celling.plan.path.clone(), celling.plant);
        let desk = &mut celling.desks[node];
        desk.is_news = true;
        let (ticket, executed) = match command {
            Run::Execute { ticket, body, now, .. } => {
                let command = Command::decode(&body).expect("nodes say what they should");
                let answer = desk.book.apply(now, command.clone());
                desk.book.check_invariants();
                self.fabric.note(20, node, [now.0, body.len() as u64]);
                self.fabric
                    .say(|| format!("the book at {} takes {command:?}: {answer:?}", node_id(node)));
                let bytes = postcard::to_allocvec(&answer).expect("a verdict is plain data");
                (ticket, Executed::Reply(ServiceOutcome::Ok(bytes.into())))
            }
            Run::Snapshot { ticket } => (ticket, Executed::Snapshot(Ok(desk.book.encode().into()))),
            Run::Restore { ticket, state } => {
                let restored = kept_book(&state, plant).filter(|book| *book.path() == path);
                demand(restored.is_some(), "the book is kept", || {
                    format!("a transfer to {} brings no book of {path}", node_id(node))
                })?;
                restored.into_iter().for_each(|book| desk.book = book);
                (ticket, Executed::Restored(Ok(())))
            }
            Run::Reset | Run::Stop | Run::Start(_) => {
                desk.book = book(&path, plant);
                return Ok(());
            }
            Run::Style(_) | Run::View(_) | Run::Digest { .. } => return Ok(()),
            Run::Change { .. } | Run::Apply { .. } => {
                unreachable!("the book's group is semi-active")
            }
        };
        let now = self.fabric.local(node);
        let stack = self.fabric.hosts[node].process.as_mut().expect("it has just asked");
        stack.handle_executed(now, CELL_ID, ticket, executed);
        Ok(())
    }

    /// Has the cell's group order this. `ask`: the number by which the router is told.
    pub(super) fn order(&mut self, node: usize, ask: Option<u64>, command: &Command) {
        let (now, wall) = (self.fabric.local(node), self.fabric.wall(node));
        self.fabric.say(|| format!("{} orders {command:?}", node_id(node)));
        let stack = self.fabric.hosts[node].process.as_mut().expect("it runs");
        let body = Bytes::from(command.encode());
        let number = stack.call(now, wall, (CELL_ID, Command::METHOD), body, TIMEOUT);
        let celling = self.celling.as_mut().expect("it has a router");
        let since = self.fabric.now();
        celling.desks[node].orders.insert(number, (ask, since));
    }

    /// An order has ended.
    pub(in crate::cluster) fn order_ended(
        &mut self,
        node: usize,
        number: u64,
        outcome: &Outcome,
    ) -> Verdict {
        let wall = self.fabric.wall(node);
        let celling = self.celling.as_mut().expect("it has ordered something");
        let desk = &mut celling.desks[node];
        let Some((ask, since)) = desk.orders.remove(&number) else { return Ok(()) };
        let is_taken = matches!(outcome, Outcome::Ok(_));
        let verdict: Result<Answer, Option<Refusal>> = match outcome {
            Outcome::Ok(bytes) => {
                let answer: Result<Answer, Refusal> =
                    postcard::from_bytes(bytes).expect("a verdict comes as it was written");
                answer.map_err(Some)
            }
            _ => Err(None),
        };
        if let Some(ask) = ask {
            desk.touch(&celling.plan.parents_at, wall, |router, sight| {
                router.handle_verdict(ask, verdict, sight);
            });
        }
        if is_taken { self.ordered(node, since) } else { Ok(()) }
    }

    /// A node has something to show.
    pub(in crate::cluster) fn told_of_cell(&mut self, node: usize, event: &Event) -> Verdict {
        let by = self.fabric.member(node);
        let Some(celling) = &mut self.celling else { return Ok(()) };
        let is_news = matches!(
            event,
            Event::View { .. }
                | Event::Configuration { .. }
                | Event::Quorum { .. }
                | Event::Moved { .. }
        );
        celling.desks[node].is_news |= is_news;
        self.end_gap(by, event)
    }

    /// Returns something that the cell, or its system, still lacks.
    pub(in crate::cluster) fn missing_of_cell(
        &self,
        statuses: &[Option<engine::Status>],
    ) -> Option<String> {
        let celling = self.celling.as_ref()?;
        for status in statuses.iter().flatten() {
            let Some(group) =
                status.groups.iter().find(|group| GroupId::of(&group.name) == CELL_ID)
            else {
                return Some(format!("{} does not know the book", status.me));
            };
            let synced = group.replicas.iter().filter(|replica| replica.synced).count();
            let missing = liveness::group(CELL, self.options.nodes, synced, group.replicas.len());
            if missing.is_some() {
                return missing;
            }
        }
        let first = &celling.desks[0].book;
        if celling.desks.iter().any(|desk| desk.book != *first) {
            return Some("the nodes' books are not alike yet".into());
        }
        celling.unsettled.clone()
    }
}
