//! One order of words and of components, which each node sees when it sees it.

use job::{Command, Director, Sight, Void};
use wire::{Duration, Member};

use super::node::{Node, Replica, Said, id, index};
use super::parts::Entry;
use super::{At, Event, World};
use crate::check::Verdict;

/// How often a director looks at least.
const PERIOD: Duration = Duration::from_millis(500);

impl World {
    fn is_member(&self, node: usize) -> bool {
        let it = &self.nodes[node];
        it.is_connected() && self.order.members.contains(&it.member(node))
    }

    /// Words can be ordered.
    pub(super) fn is_quorate(&self) -> bool {
        let there = (0..self.nodes.len()).filter(|node| self.is_member(*node)).count();
        2 * there > self.nodes.len()
    }

    /// A word is ordered.
    pub(super) fn order(&mut self, command: Command, from: Option<(Member, u64, u64)>) -> Verdict {
        let at = self.queue.now();
        let before = self.order.book.version();
        let answer = self.order.book.take(at, &command);
        self.trace.note(at, 30, before as usize, [self.order.book.version(), 0]);
        self.trace.say(at, || {
            let void = answer.as_ref().err();
            format!("{}: {command:?} {}", self.order.book.version(), said(void))
        });
        if answer.is_ok() {
            self.judge(&command)?;
        }
        self.order.entries.push(Entry::Word { at, command: Box::new(command), from, answer });
        self.publish();
        Ok(())
    }

    /// Each member sees it when it sees it.
    fn publish(&mut self) {
        for node in 0..self.nodes.len() {
            if !self.is_member(node) {
                continue;
            }
            let Some(replica) = &mut self.nodes[node].replica else { continue };
            if !std::mem::replace(&mut replica.due, true) {
                self.soon(node, At::Deliver);
            }
        }
    }

    /// Something has changed of who is connected: it shows after a while.
    pub(super) fn regroup_soon(&mut self) {
        if !std::mem::replace(&mut self.order.regroups, true) {
            let detection = self.options.detection;
            let after = self.draw.scale(Duration::from_millis(1), detection);
            self.queue.push(self.queue.now() + after, Event::Regroup);
        }
    }

    /// Those that are connected become a component, if they are a majority.
    pub(super) fn regroup(&mut self) {
        self.order.regroups = false;
        let all = (0..).zip(&self.nodes).filter(|(_, node)| node.is_connected());
        let members: Vec<Member> = all.map(|(place, node)| node.member(place)).collect();
        if 2 * members.len() <= self.nodes.len() || members == self.order.members {
            return;
        }
        let leader = match members.contains(&self.order.leader) {
            true => self.order.leader,
            false => members[0],
        };
        self.component(members, leader);
    }

    /// The primary of the book moves.
    pub(super) fn move_leader(&mut self) {
        let members = self.order.members.clone();
        if self.is_quorate() {
            let leader = self.faults.pick(&members);
            self.component(members, leader);
        }
    }

    fn component(&mut self, members: Vec<Member>, leader: Member) {
        let now = self.queue.now();
        self.trace.say(now, || format!("component {members:?}, the book's primary at {leader}"));
        self.order.entries.push(Entry::Component(members.clone(), leader));
        (self.order.members, self.order.leader) = (members, leader);
        for node in 0..self.nodes.len() {
            if !self.is_member(node) {
                continue;
            }
            let (book, applied) = (self.order.book.clone(), self.order.entries.len());
            let it = &mut self.nodes[node];
            // One that is new here gets the state. One that comes back sees what it has missed.
            let new = it.replica.is_none();
            it.replica.get_or_insert_with(|| Replica {
                book,
                applied,
                due: false,
                members: self.order.members.clone(),
                leader,
                alone: false,
            });
            if new {
                self.soon(node, At::Look);
                self.wake_watch(node);
            }
        }
        self.hurry();
        self.publish();
    }

    /// A node knows by now that it sees no majority.
    pub(super) fn alone(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        if let Some(replica) = it.replica.as_mut().filter(|_| it.cut.is_some()) {
            replica.alone = true;
        }
    }

    /// A node that was cut off for less than it takes to be excluded.
    pub(super) fn rejoin(&mut self, node: usize) {
        self.hurry();
        if !self.is_member(node) {
            return;
        }
        let it = &mut self.nodes[node];
        if let Some(replica) = &mut it.replica {
            (replica.alone, replica.due) = (false, true);
            self.soon(node, At::Deliver);
        }
    }

    /// Words that could not be ordered are, by those who now can.
    fn hurry(&mut self) {
        for node in (0..self.nodes.len()).filter(|node| self.is_member(*node)).collect::<Vec<_>>() {
            (0..self.nodes[node].out.len()).for_each(|_| self.soon(node, At::Send));
        }
    }

    /// The first of a node's words is ordered, if its node has a part in the order.
    pub(super) fn send(&mut self, node: usize) -> Verdict {
        if !self.is_member(node) || !self.is_quorate() {
            return Ok(());
        }
        let it = &mut self.nodes[node];
        let me = it.member(node);
        let Some(Said { command, from }) = it.out.pop_front() else { return Ok(()) };
        self.order(command, from.map(|(serial, attempt)| (me, serial, attempt)))
    }

    /// A node says something.
    pub(super) fn say(&mut self, node: usize, said: Said) {
        self.nodes[node].out.push_back(said);
        self.soon(node, At::Send);
    }

    /// A replica sees the order so far.
    pub(super) fn deliver(&mut self, node: usize) -> Verdict {
        let is_member = self.is_member(node);
        let it = &mut self.nodes[node];
        let me = it.member(node);
        let Some(replica) = &mut it.replica else { return Ok(()) };
        replica.due = false;
        if !is_member {
            return Ok(());
        }
        let mut answers = Vec::new();
        for entry in &self.order.entries[replica.applied..] {
            match entry {
                Entry::Word { at, command, from, answer } => {
                    let same = replica.book.take(*at, command) == *answer;
                    debug_assert!(same, "replicas agree");
                    if let Some((_, serial, attempt)) = from.filter(|(from, ..)| *from == me) {
                        answers.push(At::Answer(serial, attempt, answer.clone()));
                    }
                }
                Entry::Component(members, leader) => {
                    (replica.members, replica.leader) = (members.clone(), *leader);
                    replica.alone = !members.contains(&me);
                }
            }
        }
        replica.applied = self.order.entries.len();
        answers.into_iter().for_each(|answer| self.soon(node, answer));
        self.wake_watch(node);
        self.look(node);
        Ok(())
    }

    /// The director looks, if its node takes itself for the one that leads.
    pub(super) fn look(&mut self, node: usize) {
        let now = self.queue.now();
        let it = &mut self.nodes[node];
        let me = it.member(node);
        let leads = |it: &&Replica| !it.alone && it.leader == me;
        let Some(replica) = it.replica.as_ref().filter(leads) else {
            it.director = Director::default();
            return;
        };
        let drained = self.drained.clone();
        let sight = Sight { members: replica.members.clone(), drained, ..Sight::default() };
        let commands = it.director.look(now, &sight, &replica.book);
        let due = it.director.next_look(now, &replica.book).map_or(now + PERIOD, |at| at.max(now));
        let due = due.min(now + PERIOD).max(now + Duration::from_millis(1));
        if it.looks.is_none_or(|at| at <= now || at > due) {
            it.looks = Some(due);
            self.queue.push(due, Event::Node(node, At::Look));
        }
        for command in commands {
            if self.errs(self.options.repeated) {
                let later = self.faults.scale(Duration::from_millis(1), Duration::from_secs(3));
                self.queue.push(now + later, Event::Late(command.clone()));
            }
            if !self.errs(self.options.unheard) {
                self.say(node, Said { command, from: None });
            }
        }
    }

    /// All is ordered, and all know of it.
    pub(super) fn is_quiet(&self) -> Result<(), String> {
        let fits = |(place, node): (usize, &Node)| {
            let heard = |it: &Replica| it.applied == self.order.entries.len() && !it.alone;
            let quiet = node.out.is_empty() && node.hand.waits.is_none();
            self.is_member(place) && quiet && node.replica.as_ref().is_some_and(heard)
        };
        let late = (0..).zip(&self.nodes).find(|it| !fits(*it));
        late.map_or(Ok(()), |(place, _)| Err(format!("{} has not said or heard all", id(place))))
    }

    /// The present life of a node.
    pub(super) fn lives(&self, member: Member) -> bool {
        let node = &self.nodes[index(member.node)];
        node.up && node.member(index(member.node)) == member
    }
}

fn said(void: Option<&Void>) -> String {
    void.map_or(String::new(), |void| format!("VOID: {void}"))
}
