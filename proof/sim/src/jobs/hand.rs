//! The driver of an agent: it does what the agent wants, and tells it what others report.

use std::collections::BTreeSet;

use job::{Agent, Assignment, Command, End, Host, Output, Taken, Task, Void, Word};
use wire::Duration;

use super::images;
use super::node::{Ending, Hand, Process, Said};
use super::{At, Exit, World};
use crate::check::{Verdict, demand};

/// A word that was not answered is said again after so long.
const PATIENCE: Duration = Duration::from_millis(200);

/// How often an agent tries again what it could not have.
const TICK: Duration = Duration::from_secs(1);

/// A rank without an agent ends after so long.
const ALONE: Duration = Duration::from_secs(10);

impl World {
    /// A node begins its agent.
    pub(super) fn begin_agent(&mut self, node: usize) -> Verdict {
        if !self.nodes[node].up || self.nodes[node].hand.agent.is_some() {
            return Ok(());
        }
        let serial = self.next();
        let it = &mut self.nodes[node];
        images::sweep(&mut it.disk);
        let disk = images::list(&mut it.disk);
        let begun = it.records.keys().map(|key| (*key, it.ranks.contains_key(key)));
        let kind = self.options.kinds[node].to_string();
        let host = Host { copies: node.to_string(), processors: 2, kind, ..Host::default() };
        let agent = Agent::new(it.member(node), host, disk, begun).planted(self.plant.job);
        it.hand = Hand { agent: Some(agent), serial, watches: true, ..Hand::default() };
        let processes: Vec<u64> = it.ranks.values().map(|process| process.number).collect();
        self.trace.say(self.queue.now(), || format!("node {node}: agent {serial} begins"));
        for process in processes {
            self.soon(node, At::Hello(process));
        }
        self.within(TICK, node, At::Tick(serial));
        self.wake_watch(node);
        Ok(())
    }

    /// An agent is killed, and begins again later.
    pub(super) fn kill_agent(&mut self, node: usize) {
        let serial = self.nodes[node].hand.serial;
        self.nodes[node].end_agent();
        let alone = self.queue.now() + ALONE;
        self.queue.push(alone, super::Event::Node(node, At::Orphaned(serial)));
        // Now and then nobody begins it for long.
        let long = self.faults.permille(20);
        let restart = if long { 2 * ALONE } else { self.options.restart };
        self.within(restart, node, At::Agent);
    }

    /// The agent waits for another version: it is there.
    pub(super) fn wake_watch(&mut self, node: usize) {
        let hand = &mut self.nodes[node].hand;
        if hand.agent.is_some() && std::mem::take(&mut hand.watches) {
            let serial = hand.serial;
            self.soon(node, At::Watch(serial));
        }
    }

    /// The wishes of the book for the node are read, and on their way to the agent.
    pub(super) fn watch(&mut self, node: usize, serial: u64) -> Verdict {
        let it = &mut self.nodes[node];
        if !it.has_agent(serial) {
            return Ok(());
        }
        let me = it.member(node);
        // A node that sees no majority gives none.
        let replica = it.replica.as_ref().filter(|replica| !replica.alone);
        let news = replica.filter(|replica| it.hand.told != Some(replica.book.version()));
        let Some(replica) = news else {
            it.hand.watches = true;
            return Ok(());
        };
        let wanted = replica.book.assignment(me);
        it.hand.told = Some(wanted.version);
        let after = self.draw.scale(Duration::from_micros(10), self.options.lag);
        let hand = &mut self.nodes[node].hand;
        hand.hears = (self.queue.now() + after).max(hand.hears);
        let hears = hand.hears;
        let assign = At::Assign(serial, Box::new(wanted));
        self.queue.push(hears, super::Event::Node(node, assign));
        self.soon(node, At::Watch(serial));
        Ok(())
    }

    pub(super) fn assign(&mut self, node: usize, serial: u64, wanted: Assignment) -> Verdict {
        let now = self.queue.now();
        if !self.nodes[node].has_agent(serial) {
            return Ok(());
        }
        let keys: Vec<_> = wanted.tasks.iter().map(Task::key).collect();
        self.agent(node, |agent| agent.assign(now, wanted))?;
        // A start that is wanted no more ends now.
        let left =
            |(key, process): (&job::Key, &Process)| !keys.contains(key) && !process.end.known;
        let it = &self.nodes[node];
        let left = it.ranks.iter().find(|rank| left(*rank) && !it.ending.contains(&rank.1.number));
        demand(left.is_none(), "old starts end", || {
            format!("{:?} runs at node {node}, and its agent lets it", left.map(|(key, _)| key))
        })
    }

    pub(super) fn tick(&mut self, node: usize, serial: u64) -> Verdict {
        if !self.nodes[node].has_agent(serial) {
            return Ok(());
        }
        let next = self.queue.now() + TICK;
        self.queue.push(next, super::Event::Node(node, At::Tick(serial)));
        self.agent(node, Agent::handle_timeout)
    }

    /// Something is told to a node's agent, and what it then wants is done.
    pub(super) fn agent(&mut self, node: usize, tell: impl FnOnce(&mut Agent)) -> Verdict {
        let Some(agent) = &mut self.nodes[node].hand.agent else { return Ok(()) };
        tell(agent);
        loop {
            let agent = self.nodes[node].hand.agent.as_mut();
            let Some(output) = agent.and_then(Agent::poll_output) else { return Ok(()) };
            self.trace.say(self.queue.now(), || format!("node {node}: {output:?}"));
            self.act(node, output)?;
        }
    }

    fn act(&mut self, node: usize, output: Output) -> Verdict {
        let serial = self.nodes[node].hand.serial;
        match output {
            Output::Start(task) => return self.start(node, task),
            Output::Kill(key) => match self.nodes[node].ranks.get(&key) {
                None => {
                    let now = self.queue.now();
                    let agent = self.nodes[node].hand.agent.as_mut().expect("it wants this");
                    agent.handle_ended(key, End::Killed(0), now);
                }
                // It is about to end by itself.
                Some(process) if process.end.known => {}
                Some(process) => {
                    let number = process.number;
                    self.nodes[node].ending.insert(number);
                    self.soon(node, At::Exit(number, Exit::Killed));
                }
            },
            Output::Tell(key, word) => return self.tell(node, key, word),
            Output::Save(place, parent) => self.save(node, place, parent),
            Output::Remove(place) => {
                self.may_go(node, place)?;
                let it = &mut self.nodes[node];
                if !images::remove(&mut it.disk, place) {
                    it.harmed.insert(place);
                }
            }
            Output::Release(key) => {
                self.nodes[node].records.remove(&key);
            }
            Output::Fetch(place, root, from) => {
                self.soon(node, At::Fetch(serial, Box::new((place, root, from))));
            }
            Output::Say(command) => {
                if let Command::Lost { place, .. } = command {
                    self.may_be_lost(node, place)?;
                }
                self.nodes[node].hand.says.push_back(command);
                self.say_next(node);
            }
        }
        Ok(())
    }

    /// One command is said after the other.
    fn say_next(&mut self, node: usize) {
        let attempt = self.next();
        let hand = &mut self.nodes[node].hand;
        if hand.waits.is_some() {
            return;
        }
        let Some(command) = hand.says.pop_front() else { return };
        hand.waits = Some((command.clone(), attempt));
        let serial = hand.serial;
        self.attempt(node, command, (serial, attempt));
    }

    fn attempt(&mut self, node: usize, command: Command, from: (u64, u64)) {
        self.say(node, Said { command, from: Some(from) });
        let again = self.queue.now() + 10 * self.options.lag + PATIENCE;
        self.queue.push(again, super::Event::Node(node, At::Again(from.0, from.1)));
    }

    /// The book has not answered. The word may have been ordered all the same.
    pub(super) fn say_again(&mut self, node: usize, serial: u64, attempt: u64) {
        let next = self.next();
        let it = &mut self.nodes[node];
        let is_it = it.hand.waits.as_ref().is_some_and(|(_, waits)| *waits == attempt);
        if it.has_agent(serial)
            && is_it
            && let Some((command, waits)) = &mut it.hand.waits
        {
            *waits = next;
            let command = command.clone();
            self.attempt(node, command, (serial, next));
        }
    }

    pub(super) fn answered(
        &mut self,
        node: usize,
        serial: u64,
        attempt: u64,
        answer: &Result<Taken, Void>,
    ) -> Verdict {
        let it = &mut self.nodes[node];
        let waits = it.hand.waits.take_if(|(_, waits)| *waits == attempt);
        let Some((command, _)) = waits.filter(|_| it.hand.serial == serial) else { return Ok(()) };
        if let (Command::Commit { place, .. }, Ok(_)) = (&command, answer) {
            it.hand.committed.insert(*place);
        }
        self.agent(node, |agent| agent.handle_answer(&command, answer))?;
        self.say_next(node);
        Ok(())
    }

    fn start(&mut self, node: usize, task: Task) -> Verdict {
        let (key, now) = (task.key(), self.queue.now());
        let twice = self.nodes[node].records.insert(key, false).is_some();
        demand(!twice, "no start begins twice", || format!("{key:?} begins again at node {node}"))?;
        if self.errs(self.options.unstarted) {
            let agent = self.nodes[node].hand.agent.as_mut().expect("it wants this");
            agent.handle_ended(key, End::NotStarted("no such program".into()), now);
            return Ok(());
        }
        let number = self.next();
        let hand = &self.nodes[node].hand;
        let reads = task.from.is_some();
        let process = Process {
            number,
            of: hand.serial,
            linked: false,
            reads,
            full: task.from.is_none() || task.spec.full,
            from: task.from,
            handed: None,
            state: None,
            step: 0,
            changed: BTreeSet::new(),
            last: 0,
            saving: None,
            snapshot: None,
            end: Ending::default(),
            moments: None,
        };
        let serial = hand.serial;
        if reads {
            self.within(4 * self.options.slowest, node, At::Restored(serial, key));
        }
        self.nodes[node].ranks.insert(key, process);
        self.soon(node, At::Hello(number));
        Ok(())
    }

    /// Something is told to a rank.
    fn tell(&mut self, node: usize, key: job::Key, word: Word) -> Verdict {
        let rank = (key.job, key.rank);
        let Some(process) = self.nodes[node].ranks.get_mut(&key) else { return Ok(()) };
        if !process.linked {
            return Ok(());
        }
        let number = process.number;
        match word {
            Word::Saved(outcome, full) => {
                if process.saved(outcome.is_ok(), full) {
                    self.soon(node, At::Exit(number, Exit::Failed));
                }
            }
            Word::Save => process.end.asked = true,
            Word::Oldest(_) => {}
            Word::Finished => {
                process.end.known = true;
                let (step, state) = (process.step, process.state.clone().unwrap_or_default());
                let it = self.order.book.job(key.job).map(|job| &job.ranks[key.rank as usize]);
                let counts = it.is_some_and(|it| {
                    it.state == job::RankState::Finished && it.start == key.start
                });
                if counts {
                    self.results.delivered(rank, key.start, step, &state)?;
                }
                self.soon(node, At::Exit(number, Exit::Finished));
            }
        }
        Ok(())
    }

    /// Nothing is under way at an agent.
    pub(super) fn is_idle(&self) -> bool {
        let idle = |hand: &Hand| hand.agent.is_some() && hand.writes.is_empty();
        let says = |hand: &Hand| hand.says.is_empty() && hand.waits.is_none();
        self.nodes.iter().all(|node| idle(&node.hand) && says(&node.hand) && node.ranks.is_empty())
    }
}
