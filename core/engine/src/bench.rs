//! A benchmark of the ordering layer, run by the nodes themselves while they serve.
//!
//! One node is asked and orders a [`Plan`]. From its delivery on all nodes follow it, so a
//! benchmark needs nothing but the order that it measures. It is no part of the groups' history: no
//! position moves, no message is kept for a component, and a new configuration ends it.
//!
//! - this file: the benchmark's course
//! - `bench/sending.rs`: a sender's pace and measurements
//! - `bench/receiving.rs`: the checks at every node

mod receiving;
mod sending;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::bench::{Load, Plan, Report, Until, Word};
use wire::ring::Level;
use wire::{Duration, Member, RingId, Time};

use crate::api::{BenchError, BenchProgress, BenchResult, Event};
use receiving::Receiving;
use sending::Sending;

/// The time that a sender has for its measurements after the end of its span. Only a broken node
/// needs longer; its report then contains less.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Requests of this room to its owner.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Order this.
    Order(Word),
    /// Report the result to the local asker.
    Outcome(Result<BenchResult, BenchError>),
    /// Report the event to everybody.
    Event(Event),
}

/// The configuration in which a word is delivered.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    pub ring: RingId,
    /// Its members, if groups act in it.
    pub members: Option<&'a [Member]>,
}

/// This node's part in benchmarks.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    me: Member,
    /// The plan that this node was asked for and that has not been delivered yet.
    asked: Option<u32>,
    run: Option<Run>,
}

/// The benchmark that is under way.
#[derive(Clone, Debug)]
struct Run {
    plan: Plan,
    asker: Member,
    began: Time,
    members: Vec<Member>,
    receiving: Receiving,
    sending: Option<Sending>,
    /// The places whose messages this node answers.
    answers: Vec<bool>,
    echoes: VecDeque<(u16, u64)>,
    /// The number of messages that each sender reports as sent.
    done: Vec<Option<u64>>,
    /// This node has announced that it sends no more.
    said_done: bool,
    reported: bool,
    /// Members whose reports were delivered, with the reports where they are wanted.
    reports: Vec<(Member, Option<Report>)>,
}

impl Bench {
    pub fn new(me: Member) -> Bench {
        Bench { me, asked: None, run: None }
    }

    /// The member that asked for the current benchmark.
    pub fn asker(&self) -> Option<Member> {
        self.run.as_ref().map(|run| run.asker)
    }

    /// This node was asked, and its plan is on its way or being carried out.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some() || self.asker() == Some(self.me)
    }

    /// Orders the plan.
    pub fn ask(&mut self, plan: Plan, effects: &mut Vec<Effect>) {
        self.asked = Some(plan.id);
        effects.push(Effect::Order(Word::Plan(plan)));
    }

    /// The local asker wants no more.
    pub fn stop(&mut self, effects: &mut Vec<Effect>) {
        let running = self.run.as_ref().filter(|run| run.asker == self.me).map(|run| run.plan.id);
        if let Some(id) = running.or(self.asked) {
            effects.push(Effect::Order(Word::Stop { id }));
        }
    }

    pub fn progress(&self) -> Option<BenchProgress> {
        let run = self.run.as_ref()?;
        Some(BenchProgress {
            delivered: run.receiving.total(),
            expected: run.plan.count.saturating_mul(run.plan.senders.len() as u64),
        })
    }

    /// A word is delivered.
    pub fn word(
        &mut self,
        now: Time,
        here: Here<'_>,
        sender: Member,
        word: Word,
        effects: &mut Vec<Effect>,
    ) {
        match word {
            Word::Plan(plan) => self.begin(now, here, sender, plan, effects),
            Word::Done { id, sent } => {
                let Some(run) = self.run_of(id) else { return };
                if let Some(place) = run.place_of(sender) {
                    run.done[place] = Some(sent);
                }
            }
            Word::Report(report) => {
                let me = self.me;
                let Some(run) = self.run_of(report.id) else { return };
                if run.members.contains(&sender) && run.reports.iter().all(|it| it.0 != sender) {
                    let wanted = run.asker == me;
                    run.reports.push((sender, wanted.then_some(report)));
                }
                if run.reports.len() == run.members.len() {
                    self.conclude(effects);
                }
            }
            Word::Stop { id } => {
                if self.run_of(id).is_some_and(|run| run.asker == sender) {
                    self.give_up(BenchError::Stopped, effects);
                }
            }
        }
    }

    fn run_of(&mut self, id: u32) -> Option<&mut Run> {
        self.run.as_mut().filter(|run| run.plan.id == id)
    }

    fn begin(
        &mut self,
        now: Time,
        here: Here<'_>,
        asker: Member,
        plan: Plan,
        effects: &mut Vec<Effect>,
    ) {
        let mine = asker == self.me && self.asked.take_if(|id| *id == plan.id).is_some();
        // All nodes decide alike: they know the same configuration and the same running benchmark.
        let refused = match (here.members, &self.run) {
            (_, Some(run)) => Some(BenchError::Running { by: run.asker.node }),
            (None, _) => Some(BenchError::NoQuorum),
            (Some(_), _) if plan.ring != here.ring => Some(BenchError::Interrupted),
            (Some(members), None) => {
                let is_there = |node| members.iter().any(|member| member.node == node);
                let missing = plan.senders.iter().find(|node| !is_there(**node));
                missing.map(|node| BenchError::NotAMember(*node))
            }
        };
        if let Some(error) = refused {
            if mine {
                effects.push(Effect::Outcome(Err(error)));
            }
            return;
        }
        effects.push(Effect::Event(Event::BenchBegan {
            by: asker,
            senders: plan.senders.clone(),
            size: plan.size,
        }));
        let members = here.members.unwrap_or_default().to_vec();
        self.run = Some(Run::new(now, self.me, asker, plan, members));
    }

    /// A message of the load is delivered.
    pub fn load(&mut self, now: Time, sender: Member, sequence: u64, load: &Load) {
        let me = self.me;
        let Some(run) = self.run_of(load.id) else { return };
        let place = usize::from(load.place);
        if load.echo {
            if run.plan.senders.get(place) == Some(&me.node)
                && let Some(sending) = &mut run.sending
            {
                sending.answered(now, load.number);
            }
            return;
        }
        let from = run.place_of(sender);
        run.receiving.take(now, from, load);
        if sender == me
            && let Some(sending) = &mut run.sending
        {
            sending.delivered(now, load.number, sequence);
        }
        if run.answers.get(place) == Some(&true) {
            run.echoes.push_back((load.place, load.number));
        }
    }

    /// Every member holds the messages ordered up to `all`.
    pub fn held(&mut self, now: Time, all: u64) {
        if let Some(sending) = self.run.as_mut().and_then(|run| run.sending.as_mut()) {
            sending.held(now, all);
        }
    }

    /// The first `upto` messages that this node ever handed in have a place in the order.
    pub fn left(&mut self, now: Time, upto: u64) {
        if let Some(sending) = self.run.as_mut().and_then(|run| run.sending.as_mut()) {
            sending.left(now, upto);
        }
    }

    /// The node's loop begins a new turn: a sender may fill its window again.
    pub fn new_turn(&mut self) {
        if let Some(sending) = self.run.as_mut().and_then(|run| run.sending.as_mut()) {
            sending.new_turn();
        }
    }

    /// The next message to hand in. [`handed`](Bench::handed) must follow if it was taken.
    pub fn next(&self, now: Time) -> Option<(Bytes, Level)> {
        let run = self.run.as_ref()?;
        if let Some((place, number)) = run.echoes.front() {
            return Some((Load::echo(run.plan.id, *place, *number), run.plan.level));
        }
        // A sender that measures until all hold a message must learn that they do.
        let waits = run.plan.until == Until::All && run.plan.level == Level::Agreed;
        let level = if waits { Level::Held } else { run.plan.level };
        Some((run.sending.as_ref()?.next(now)?, level))
    }

    /// The message from [`next`](Bench::next) was taken. `count`: messages that this node ever
    /// handed in, with this one.
    pub fn handed(&mut self, now: Time, count: u64) {
        let Some(run) = &mut self.run else { return };
        if run.echoes.pop_front().is_none()
            && let Some(sending) = &mut run.sending
        {
            sending.handed(now, count);
        }
    }

    /// Orders the words that are due from this node.
    pub fn speak(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let Some(run) = &mut self.run else { return };
        let id = run.plan.id;
        if let Some(sending) = &run.sending
            && !run.said_done
            && sending.is_over(now)
        {
            run.said_done = true;
            effects.push(Effect::Order(Word::Done { id, sent: sending.sent() }));
        }
        let measured = run.sending.as_ref().is_none_or(Sending::has_measured);
        let late = now >= run.began + run.plan.span + TIMEOUT;
        if !run.reported && run.is_done() && (measured || late) {
            run.reported = true;
            let measured = run.sending.as_ref().map(Sending::measured);
            let report = run.receiving.report(id, measured);
            effects.push(Effect::Order(Word::Report(report)));
        }
    }

    /// The time of the next action here without an input.
    pub fn next_timeout(&self) -> Option<Time> {
        let run = self.run.as_ref()?;
        // No time-out runs while other nodes still send.
        let waits = !run.reported && run.is_done();
        let timeout = waits.then(|| run.began + run.plan.span + TIMEOUT);
        let sending = run.sending.as_ref().filter(|_| !run.said_done);
        sending.and_then(Sending::next_timeout).into_iter().chain(timeout).min()
    }

    /// There is another configuration.
    pub fn interrupted(&mut self, effects: &mut Vec<Effect>) {
        self.give_up(BenchError::Interrupted, effects);
        if self.asked.take().is_some() {
            effects.push(Effect::Outcome(Err(BenchError::Interrupted)));
        }
    }

    fn give_up(&mut self, error: BenchError, effects: &mut Vec<Effect>) {
        let Some(run) = self.run.take() else { return };
        effects.push(Effect::Event(Event::BenchEnded { by: run.asker, whole: false }));
        if run.asker == self.me {
            effects.push(Effect::Outcome(Err(error)));
        }
    }

    /// Every member has reported.
    fn conclude(&mut self, effects: &mut Vec<Effect>) {
        let Some(run) = self.run.take() else { return };
        effects.push(Effect::Event(Event::BenchEnded { by: run.asker, whole: true }));
        if run.asker == self.me {
            let mut reports: Vec<(Member, Report)> = run
                .reports
                .into_iter()
                .filter_map(|(member, report)| Some((member, report?)))
                .collect();
            reports.sort_by_key(|(member, _)| *member);
            let sent = run.done.iter().map(|sent| sent.unwrap_or_default()).collect();
            effects.push(Effect::Outcome(Ok(BenchResult { plan: run.plan, sent, reports })));
        }
    }
}

impl Run {
    fn new(now: Time, me: Member, asker: Member, plan: Plan, members: Vec<Member>) -> Run {
        let place_of = |node| plan.senders.iter().position(|sender| *sender == node);
        let sending = place_of(me.node).map(|place| Sending::new(now, &plan, place as u16));
        let answers = plan.senders.iter().map(|sender| {
            let at = members.iter().position(|member| member.node == *sender);
            let farthest = at.map(|at| members[(at + members.len() - 1) % members.len()]);
            plan.until == Until::Echo && farthest == Some(me)
        });
        Run {
            asker,
            began: now,
            receiving: Receiving::new(&plan),
            sending,
            answers: answers.collect(),
            echoes: VecDeque::new(),
            done: vec![None; plan.senders.len()],
            said_done: false,
            reported: false,
            reports: Vec::new(),
            members,
            plan,
        }
    }

    /// All senders have finished.
    fn is_done(&self) -> bool {
        self.done.iter().all(Option::is_some)
    }

    fn place_of(&self, sender: Member) -> Option<usize> {
        self.plan.senders.iter().position(|node| *node == sender.node)
    }
}
