//! The executor of one replica: commands in order, one at a time, each taking its time.

use std::collections::VecDeque;

use bytes::Bytes;
use engine::{
    Applied, Begun, Changes, Command, Executed, NestedCall, NestedError, ServiceOutcome, Ticket,
};
use wire::ordered::{StateDigest, Style};
use wire::{ClientId, Duration, Lane, RingId};

use crate::draw::Draw;
use crate::options::GroupPlan;
use crate::service::{APPEND, Call, Entry, Log, RELAY, arguments, came_of, extend};

/// A fault of a replica's service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Its next answer is not what it has executed.
    Answer,
    /// The next call that it executes is not the one that it was given.
    State,
    /// The next call that its handler makes to another group is not the right one.
    Ask,
    /// Its next handler that should call another group does not.
    Mute,
    /// It executes nothing any more, until it begins anew.
    Hang,
}

impl Lie {
    /// Those that any replica can tell.
    pub const ALL: [Lie; 3] = [Lie::Answer, Lie::State, Lie::Hang];
    /// Those of a replica whose handlers call another group.
    pub const OF_CALLERS: [Lie; 5] = [Lie::Answer, Lie::State, Lie::Hang, Lie::Ask, Lie::Mute];
}

/// How a service hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hang {
    /// It executes no call any more.
    ForGood,
    /// Its next call takes so long.
    Once(Duration),
}

/// The words of a service that cannot read a state for once.
pub const CLUMSY: &str = "not this time";

/// A service that now and then cannot read a state, and never for long.
#[derive(Clone, Debug)]
pub struct Clumsy {
    draw: Draw,
    /// It fails once in so many times.
    of: u64,
    row: u32,
}

impl Clumsy {
    /// It fails no more often than this in a row: who asks again waits twice as long each time.
    const ROW: u32 = 2;

    /// One that fails once in so many times.
    pub fn new(of: u64, seed: u64) -> Clumsy {
        Clumsy { draw: Draw::new(seed), of, row: 0 }
    }

    fn fails(&mut self) -> bool {
        let fails = self.row < Clumsy::ROW && self.draw.one_in(self.of);
        self.row = if fails { self.row + 1 } else { 0 };
        fails
    }
}

/// A replica's service with the commands that wait for it.
#[derive(Clone, Debug)]
pub struct Executor {
    /// The service.
    pub log: Log,
    /// For a passive group: the remembered part of the state.
    changes: Changes,
    /// How it behaves while its group is warm passive.
    passive: Passive,
    is_passive: bool,
    /// Its group orders nothing: urgent calls are executed before others.
    in_lanes: bool,
    /// The oldest call was passed by an urgent one, and is next: lanes have threads of their own, so
    /// none waits for others.
    passed: bool,
    /// Its group orders even what changes nothing: then it is in the history.
    counts_reads: bool,
    /// Its present fault.
    pub lie: Option<Lie>,
    /// How it hangs.
    pub hang: Option<Hang>,
    /// How its state differs from the others'.
    pub drift: Drift,
    /// It cannot always give or read its state.
    pub clumsy: Option<Clumsy>,
    /// That it stands still is known.
    still: bool,
    /// The last call that it began took long.
    pub stalled: bool,
    /// Its program has not come yet: what it is given waits.
    pub awaited: bool,
    /// It was told to run, and has answered nothing yet: it may still have to start, for all that
    /// its replica knows.
    starts: bool,
    queue: VecDeque<(Command, RingId)>,
    busy: bool,
    /// Which of the executors of this run.
    pub serial: u64,
    /// The group that its handlers call, and whether that group calls another in turn.
    callee: Option<(String, bool)>,
    calling: Calling,
}

/// How far the handler that runs is with its call of another group.
#[derive(Clone, Debug)]
enum Calling {
    /// It has made none.
    Not,
    /// It waits.
    Waits(Ticket),
    /// This came of it.
    Came(u64),
}

/// How the service of a passive group's replica behaves.
#[derive(Clone, Copy, Debug)]
pub struct Passive {
    /// Its handlers draw their random numbers here: no other replica draws the same.
    pub random: u64,
    /// It tells its changes by itself.
    pub tells: bool,
}

/// How a state differs from those of the other replicas.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift {
    /// It becomes another with the next call.
    pub due: bool,
    /// 0: it is as the others are.
    pub spot: u64,
}

impl Drift {
    /// A call is executed. True if the state becomes another.
    fn strike(&mut self, digest: u64) -> bool {
        let strikes = std::mem::take(&mut self.due);
        if strikes {
            self.spot = digest | 1;
        }
        strikes
    }
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct Done {
    /// The result and its ticket; a reset has none.
    pub answer: Option<(Ticket, Executed)>,
    /// The effect, for checkers.
    pub effect: Effect,
}

/// The effect of a command on the history.
#[derive(Clone, Debug)]
pub enum Effect {
    /// It went on by one.
    Executed {
        /// The executed call.
        entry: Entry,
        /// In which component.
        component: RingId,
        /// The hash before.
        before: u64,
        /// The fault in this execution.
        lie: Option<Lie>,
        /// The state has become another.
        drifted: bool,
    },
    /// It was asked for a digest, by this number.
    Digest(u64, StateDigest),
    /// It went on by these, as the primary says, in this component, each from this hash.
    Updated(Vec<(Entry, u64)>, RingId),
    /// The primary's update does not continue this history.
    Broken(String),
    /// It was replaced.
    Replaced,
    /// It continues when this call has ended. The second field is the call's fault.
    Asks(NestedCall, Option<Lie>),
    /// Nothing.
    None,
}

/// It is not answered: the replica does not know by it that its service runs (seed 60001892).
fn is_silent(command: &Command) -> bool {
    matches!(command, Command::Style(_) | Command::View(_) | Command::Digest { .. })
}

impl Executor {
    /// An executor with an empty history.
    pub fn new(plan: &GroupPlan, passive: Passive, serial: u64) -> Self {
        let (log, changes) = (Log::new(plan.padding), Changes::default());
        Executor {
            log,
            changes,
            passive,
            is_passive: plan.options.style == Style::WarmPassive,
            // Here a passed lane waits for the other's nested call: it would look hung (60054765).
            in_lanes: plan.options.style == Style::Stateless && plan.callee.is_none(),
            passed: false,
            counts_reads: plan.orders_reads(),
            lie: None,
            hang: None,
            drift: Drift::default(),
            clumsy: None,
            still: false,
            stalled: false,
            awaited: false,
            starts: false,
            queue: VecDeque::new(),
            busy: false,
            serial,
            callee: plan.callee.clone(),
            calling: Calling::Not,
        }
    }

    /// Returns the nested call that a handler makes before it does anything else, if it makes one.
    fn ask(&self) -> Option<NestedCall> {
        let Some((Command::Execute { ticket, method, body, json, .. }, _)) = self.queue.front()
        else {
            return None;
        };
        let (callee, relays) = self.callee.clone()?;
        if *method != RELAY || !matches!(self.calling, Calling::Not) {
            return None;
        }
        let odd = body.last().is_some_and(|byte| byte & 1 == 1);
        let method = if relays && odd { RELAY } else { APPEND };
        let filling = if self.lie == Some(Lie::Ask) { 6 } else { 5 };
        let body = arguments(filling, &body[body.len().saturating_sub(40)..]);
        let timeout = Duration::from_secs(60);
        Some(NestedCall { ticket: *ticket, callee, method, json: *json, body, timeout })
    }

    /// The call that a handler waits for has ended, in this component. True if the handler goes on.
    pub fn resume(
        &mut self,
        ticket: Ticket,
        outcome: &Result<Bytes, NestedError>,
        component: RingId,
    ) -> bool {
        if !matches!(self.calling, Calling::Waits(asked) if asked == ticket) {
            return false;
        }
        if *outcome == Err(NestedError::Void) {
            // Nothing of what was given before the replica is told to begin anew has an effect, but
            // that its group's style is another.
            let anew = |(command, _): &(Command, RingId)| {
                matches!(command, Command::Reset | Command::Stop)
            };
            let until = self.queue.iter().position(anew).unwrap_or(self.queue.len());
            let rest = self.queue.split_off(until);
            self.queue.retain(|(command, _)| matches!(command, Command::Style(_)));
            self.queue.extend(rest);
            self.calling = Calling::Not;
            self.busy = false;
            return false;
        }
        self.calling = Calling::Came(came_of(outcome));
        // How it ended is an input as its request is, and may be another one in another component,
        // where the callee has gone another way: what is executed from here on rests on this
        // component's order.
        self.queue.iter_mut().for_each(|(_, given)| *given = component);
        true
    }

    /// A command comes, given in this component.
    pub fn push(&mut self, command: Command, component: RingId) {
        if self.lie == Some(Lie::Hang) && matches!(command, Command::Reset | Command::Stop) {
            // Another process takes its place.
            (self.lie, self.busy) = (None, false);
            self.queue.clear();
        }
        self.queue.push_back((command, component));
    }

    /// How long the next command takes, if one waits and none is under way. It begins now.
    pub fn begin(&mut self, longest: Duration, draw: &mut Draw) -> Option<Duration> {
        if self.busy || self.queue.is_empty() || self.lie == Some(Lie::Hang) {
            return None;
        }
        if self.awaited || self.stands_still() {
            return None;
        }
        if self.in_lanes {
            self.turn_to_the_most_urgent();
        }
        self.busy = true;
        let is_call = matches!(self.queue.front(), Some((Command::Execute { .. }, _)));
        let stall = self.hang.take_if(|_| is_call);
        if is_call {
            self.stalled = stall.is_some();
        }
        if let Some(Hang::Once(span)) = stall {
            return Some(span);
        }
        Some(draw.span(Duration::from_micros(1), longest))
    }

    /// Has the first call of the most urgent lane executed next, among those that it may pass.
    fn turn_to_the_most_urgent(&mut self) {
        let lane = |(command, _): &(Command, RingId)| match command {
            Command::Execute { lane, .. } => Some(*lane),
            _ => None,
        };
        let lanes: Vec<Lane> = self.queue.iter().map_while(lane).collect();
        let Some(most) = lanes.iter().max() else { return };
        let first = lanes.iter().position(|lane| lane == most).filter(|at| *at > 0);
        self.passed = first.is_some() && !self.passed;
        if let Some(next) = first.filter(|_| self.passed).and_then(|at| self.queue.remove(at)) {
            self.queue.push_front(next);
        }
    }

    /// It hangs, with a call.
    pub fn stands_still(&self) -> bool {
        let next = self.queue.front().map(|(command, _)| command);
        !self.busy
            && self.hang == Some(Hang::ForGood)
            && matches!(next, Some(Command::Execute { .. }))
    }

    /// It does, and that was not known.
    pub fn begins_to_stand_still(&mut self) -> bool {
        self.stands_still() && !self.starts && !std::mem::replace(&mut self.still, true)
    }

    /// Returns the number of nested calls in the history that it has.
    pub fn asks(&self) -> u64 {
        self.log.entries.iter().filter(|entry| entry.came > 0).count() as u64
    }

    /// A call waits or is under way.
    pub fn has_calls(&self) -> bool {
        self.queue.iter().any(|(command, _)| matches!(command, Command::Execute { .. }))
    }

    /// Its group is warm passive: what it executes is in no order before.
    pub fn is_passive(&self) -> bool {
        self.is_passive
    }

    /// The call that is being executed, if it changes something and its handler has asked nobody
    /// yet.
    pub fn changes_by(&self) -> Option<(ClientId, u64)> {
        match self.running() {
            Some(Command::Execute { client, number, read: false, .. })
                if matches!(self.calling, Calling::Not) =>
            {
                Some((*client, *number))
            }
            _ => None,
        }
    }

    /// The command that is being executed.
    pub fn running(&self) -> Option<&Command> {
        self.queue.front().map(|(command, _)| command).filter(|_| self.busy)
    }

    /// Returns the work that it has begun, as its node knows it when it dies.
    pub fn begun(&self) -> Begun {
        let waiting = self.queue.iter().skip(usize::from(self.busy));
        let first = waiting.filter_map(|(command, _)| command.ticket()).next();
        first.map_or(Begun::Any, Begun::Before)
    }

    fn take_view(&mut self, number: u64) -> Done {
        self.log.viewed = number;
        Done { answer: None, effect: Effect::None }
    }

    /// Nothing waits and nothing is under way.
    pub fn is_idle(&self) -> bool {
        !self.busy && self.queue.is_empty()
    }

    /// The command under way ends.
    pub fn end(&mut self) -> Option<Done> {
        if !self.busy {
            return None; // it was replaced meanwhile
        }
        let call = self.ask();
        let is_mute = call.is_some() && self.lie.take_if(|lie| *lie == Lie::Mute).is_some();
        if let Some(call) = call.filter(|_| !is_mute) {
            self.calling = Calling::Waits(call.ticket);
            let lie = self.lie.take_if(|lie| *lie == Lie::Ask);
            return Some(Done { answer: None, effect: Effect::Asks(call, lie) });
        }
        self.busy = false;
        let came = match std::mem::replace(&mut self.calling, Calling::Not) {
            Calling::Came(came) => came,
            Calling::Not | Calling::Waits(_) => 0,
        };
        let (command, component) = self.queue.pop_front()?;
        self.starts &= is_silent(&command);
        Some(match command {
            Command::Execute { ticket, method, body, now, seed, client, number, read, .. } => {
                let seed = if self.is_passive { seed ^ self.passive.random } else { seed };
                if read && !self.counts_reads {
                    let call = Call { client, number, now, seed, method, body: &body, came };
                    let answer = Some((ticket, Executed::Reply(self.log.look(&call))));
                    return Some(Done { answer, effect: Effect::None });
                }
                self.changes.executed();
                let now_lies = |lie: &mut Lie| matches!(lie, Lie::Answer | Lie::State);
                let lie = self.lie.take_if(now_lies).or(is_mute.then_some(Lie::Mute));
                let seed = if lie == Some(Lie::State) { !seed } else { seed };
                let call = Call { client, number, now, seed, method, body: &body, came };
                let before = self.log.digest;
                let mut outcome = self.log.execute(&call);
                if lie == Some(Lie::Answer) {
                    outcome =
                        ServiceOutcome::Ok(Bytes::from_static(b"a lie of some length, as replies"));
                }
                let entry = call.entry();
                let drifted = self.drift.strike(self.log.digest);
                let effect = Effect::Executed { entry, component, before, lie, drifted };
                Done { answer: Some((ticket, Executed::Reply(outcome))), effect }
            }
            Command::Restore { ticket, .. } if self.fails() => {
                let answer = Some((ticket, Executed::Restored(Err(CLUMSY.into()))));
                Done { answer, effect: Effect::None }
            }
            Command::Snapshot { ticket } => {
                let current = self.changes.current().filter(|_| self.is_passive).cloned();
                let state = current.unwrap_or_else(|| self.log.snapshot());
                let executed = Executed::Snapshot(Ok(state));
                Done { answer: Some((ticket, executed)), effect: Effect::None }
            }
            Command::Change { ticket } => {
                let own = self.passive.tells.then(|| self.log.told());
                let change = self.changes.take(own, || Ok(self.log.snapshot().to_vec()));
                let change = change.and_then(|change| self.only_if_passive(change));
                Done { answer: Some((ticket, Executed::Change(change))), effect: Effect::None }
            }
            Command::Apply { ticket, change } => {
                let effect = match self.update(&change) {
                    Ok(new) => Effect::Updated(new, component),
                    Err(reason) => Effect::Broken(reason),
                };
                Done { answer: Some((ticket, Executed::Applied(Ok(())))), effect }
            }
            Command::Restore { ticket, state } => {
                let restored = self.log.restore(&state);
                self.changes.restored(state);
                assert!(restored.is_ok(), "a transfer brought a broken state: {restored:?}");
                let answer = Some((ticket, Executed::Restored(restored)));
                Done { answer, effect: Effect::Replaced }
            }
            Command::Digest { number } => {
                let value = self.log.digest ^ self.drift.spot;
                let effect = Effect::Digest(number, StateDigest { form: 1, value });
                Done { answer: None, effect }
            }
            Command::View(view) => self.take_view(view.number),
            Command::Style(style) => {
                self.is_passive = style == Style::WarmPassive;
                self.changes.reset();
                self.log.told();
                Done { answer: None, effect: Effect::None }
            }
            Command::Start(style) => {
                self.starts = true;
                self.is_passive = style == Style::WarmPassive;
                self.log.reset();
                self.changes.reset();
                Done { answer: None, effect: Effect::Replaced }
            }
            Command::Reset | Command::Stop => {
                self.log.reset();
                self.changes.reset();
                Done { answer: None, effect: Effect::Replaced }
            }
        })
    }

    fn fails(&mut self) -> bool {
        self.clumsy.as_mut().is_some_and(Clumsy::fails)
    }

    /// A replica that does not know that its group is warm passive has no base for a change.
    fn only_if_passive<T>(&self, change: T) -> Result<T, String> {
        if self.is_passive { Ok(change) } else { Err("the group is not passive".into()) }
    }

    /// Does what the primary says has changed. The new entries, each with the hash before it.
    fn update(&mut self, change: &Bytes) -> Result<Vec<(Entry, u64)>, String> {
        let (known, mut hash) = (self.log.entries.clone(), self.log.digest);
        self.only_if_passive(())?;
        match self.changes.apply(change)? {
            Applied::State(state) => self.log.restore(&state)?,
            Applied::Own(words) => self.log.apply(&words)?,
        }
        let Some(new) = self.log.entries.strip_prefix(&known[..]) else {
            return Err(format!("a history of {} is no beginning of the primary's", known.len()));
        };
        let step = |entry: &Entry| {
            let before = hash;
            hash = extend(hash, entry);
            (*entry, before)
        };
        Ok(new.iter().map(step).collect())
    }
}

#[cfg(test)]
mod tests;
