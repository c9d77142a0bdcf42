//! Processes of ranks: they come to the agent, compute, save, and end.

use job::{End, Key, Moments};
use wire::Duration;

use super::images::{self, Unread};
use super::node::Process;
use super::{At, Event, Exit, World, program};
use crate::check::Verdict;

/// A rank whose results could not be saved so often ends with an error.
const TRIES: u32 = 3;

/// How often a rank that waits looks whether it may go on.
const WAITS: Duration = Duration::from_millis(20);

impl Process {
    /// The snapshot under way is saved, or not. True: the rank gives up.
    pub fn saved(&mut self, well: bool, full: bool) -> bool {
        let Some(step) = self.saving.take() else { return false };
        (self.full, self.snapshot) = (full, None);
        if well {
            (self.last, self.end.tries) = (step, 0);
            return false;
        }
        // All that it had is part of the next one.
        self.changed.extend(0..self.state.as_ref().map_or(0, Vec::len));
        self.end.tries += u32::from(self.end.saved);
        self.end.tries > TRIES
    }
}

impl World {
    /// A start's state is read. If it is damaged, another one is to be used.
    pub(super) fn restored(&mut self, node: usize, serial: u64, key: Key) -> Verdict {
        let now = self.queue.now();
        let it = &mut self.nodes[node];
        let process =
            it.ranks.get_mut(&key).filter(|process| process.reads && process.of == serial);
        let Some(process) = process.filter(|_| it.hand.agent.is_some() && it.hand.serial == serial)
        else {
            return Ok(());
        };
        process.reads = false;
        let Some(from) = process.from else { return Ok(()) };
        let number = process.number;
        match images::restore(&mut it.disk, from, self.plant.image) {
            Ok((step, state)) => {
                self.restored += 1;
                self.results.restored((key.job, key.rank), step, &state)?;
                process.handed = Some((step, state));
                if process.linked {
                    self.welcome(node, number);
                }
                Ok(())
            }
            Err(unread) => {
                it.ending.insert(number);
                self.trace.say(now, || format!("node {node}: {key:?} is not read: {unread:?}"));
                self.soon(node, At::Exit(number, Exit::Killed));
                self.agent(node, |agent| {
                    let end = match unread {
                        Unread::Damaged(damage) => {
                            agent.handle_damaged(damage.place().unwrap_or(from.0));
                            End::Damaged
                        }
                        Unread::Refused => End::NotStarted("input/output error".into()),
                    };
                    agent.handle_ended(key, end, now);
                })
            }
        }
    }

    /// A process comes to the agent that is there.
    pub(super) fn hello(&mut self, node: usize, number: u64) -> Verdict {
        let it = &mut self.nodes[node];
        let serial = it.hand.serial;
        if it.hand.agent.is_none() {
            return Ok(());
        }
        let records = it.records.clone();
        let Some((key, process)) = it.process(number) else { return Ok(()) };
        let let_in = records.get(&key).copied().unwrap_or(false);
        if process.of != serial && !let_in {
            // An earlier agent had its state, and this one does not: it begins once more.
            it.ending.insert(number);
            self.soon(node, At::Exit(number, Exit::Killed));
            return Ok(());
        }
        process.linked = true;
        if !process.reads {
            self.welcome(node, number);
        }
        Ok(())
    }

    /// A process is let in, with its state if it has none.
    fn welcome(&mut self, node: usize, number: u64) {
        let plan_of = |job: u64| self.jobs.get(&job).cloned();
        let Some((key, process)) = self.nodes[node].process(number) else { return };
        let Some(plan) = plan_of(key.job) else { return };
        process.saving = None;
        process.snapshot = None;
        process.end.said = false;
        if process.state.is_some() {
            // Another agent is there: it knows of no image below.
            process.full = true;
            return;
        }
        let begin = || (0, program::begin(&plan, (key.job, key.rank)));
        let (step, state) = process.handed.take().unwrap_or_else(begin);
        (process.step, process.last, process.state) = (step, step, Some(state));
        self.nodes[node].records.insert(key, true);
        self.within(plan.turn, node, At::Turn(number));
    }

    /// A process computes, and saves now and then.
    pub(super) fn turn(&mut self, node: usize, number: u64) -> Verdict {
        let Some((key, process)) = self.nodes[node].process(number) else { return Ok(()) };
        let Some(plan) = self.jobs.get(&key.job) else { return Ok(()) };
        let blocked = plan.spec.blocking && process.saving.is_some();
        if process.step < plan.turns
            && !blocked
            && let Some(state) = &mut process.state
        {
            let array = program::turn(state, process.step);
            process.changed.insert(array);
            process.step += 1;
        }
        self.trace.note(self.queue.now(), 40, node, [number, process.step]);
        // One that waits looks more often.
        let waits = blocked || process.step == plan.turns;
        let turn = if waits { plan.turn.min(WAITS) } else { plan.turn };
        let after = self.draw.span(turn / 4, turn);
        self.queue.push(self.queue.now() + after, Event::Node(node, At::Turn(number)));
        if !process.linked {
            return Ok(());
        }
        let computes = process.moments.is_none();
        let moments = Moments { computes: self.queue.now(), ..Moments::default() };
        process.moments.get_or_insert(moments);
        let is_over = process.step == plan.turns;
        let due = process.step >= process.last + plan.every || process.end.asked;
        // Its results are saved, whatever was saved before.
        let unsaved = is_over && !(process.end.saved && process.last == process.step);
        let word = if process.saving.is_some() {
            None
        } else if due || unsaved {
            process.end.saved = is_over;
            process.end.asked = false;
            Some(process.snapshot())
        } else if is_over && !process.end.said {
            process.end.said = true;
            None
        } else {
            return self.computes(node, key, computes.then_some(moments));
        };
        let now = self.queue.now();
        let finishes = is_over && process.end.said && word.is_none();
        self.computes(node, key, computes.then_some(moments))?;
        self.agent(node, |agent| match word {
            Some((step, full)) => {
                if together(key.job) {
                    agent.handle_talk(key, Vec::new());
                }
                agent.handle_snapshot(key, step, full);
            }
            None if finishes => agent.handle_finish(key, now, together(key.job)),
            None => {}
        })
    }

    fn computes(&mut self, node: usize, key: Key, moments: Option<Moments>) -> Verdict {
        match moments {
            Some(moments) => self.agent(node, |agent| agent.handle_computes(key, moments)),
            None => Ok(()),
        }
    }

    /// A process ends.
    pub(super) fn exit(&mut self, node: usize, number: u64, exit: Exit) -> Verdict {
        let now = self.queue.now();
        let it = &mut self.nodes[node];
        it.ending.remove(&number);
        let Some((key, _)) = it.process(number) else { return Ok(()) };
        it.ranks.remove(&key);
        self.trace.say(now, || format!("node {node}: {key:?} ends: {exit:?}"));
        self.agent(node, |agent| match exit {
            Exit::Killed => agent.handle_ended(key, End::Killed(9), now),
            Exit::Failed => agent.handle_ended(key, End::Failed(1), now),
            Exit::Finished => {
                agent.handle_finish(key, now, false);
                agent.handle_ended(key, End::Finished, now);
            }
        })
    }

    /// Ranks whose agent has been away for long end.
    pub(super) fn orphaned(&mut self, node: usize, serial: u64) -> Verdict {
        let it = &self.nodes[node];
        if it.hand.agent.is_some() || it.hand.serial != serial {
            return Ok(());
        }
        let processes: Vec<u64> = it.ranks.values().map(|process| process.number).collect();
        for process in processes {
            self.within(Duration::from_millis(5), node, At::Exit(process, Exit::Failed));
        }
        Ok(())
    }
}

/// Ranks of every other job wait for each other at their end, as ranks that talk do.
pub(super) fn together(job: u64) -> bool {
    job.is_multiple_of(2)
}

impl Process {
    /// A copy of the arrays: all, or those that have changed. Returns how far it is, and whether it
    /// is a full one.
    fn snapshot(&mut self) -> (u64, bool) {
        let state = self.state.clone().expect("it computes");
        let all = (0..state.len()).collect();
        let changed = std::mem::take(&mut self.changed).into_iter().collect();
        self.snapshot = Some((state, if self.full { all } else { changed }));
        self.saving = Some(self.step);
        (self.step, self.full)
    }
}
