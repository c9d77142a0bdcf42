//! Depth first over all that may happen, with a set of the states that were seen.
//!
//! Every state has a usual next step. With a bound, a way may depart from the usual so many times:
//! an actor is *held back* until nothing else is left to do, or somebody is quicker than usual
//! (delay-bounded scheduling: M. Emmi, S. Qadeer, Z. Rakamarić, POPL 2011). What nodes learn of each
//! other they learn at once, unless that is held back. Without a bound, all orders are taken. Faults
//! have a budget of their own, and strike at any step.

use std::hash::Hasher;

use super::choice::{Actor, Choice};
use super::plan::Plan;
use super::world::World;
use crate::check::hashed::{HashMap, Mixed};
use crate::check::{Violation, demand};

/// States that may be kept; beyond that nothing more is explored.
const MOST_STATES: usize = 40_000_000;

/// No way has so many steps, unless something goes on for ever.
pub(super) const MOST_STEPS: usize = 3_000;

/// On ways without a branch, one state of so many is compared with those that were seen.
const COMPARED: u64 = 16;

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A way departs from the usual so many times at most.
    Delays(usize),
    /// All orders of all steps.
    All,
}

/// The extent of a search.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// States that it came to, but for those that are known to have been seen before.
    pub states: u64,
    /// Steps from one to another.
    pub transitions: u64,
    /// The longest way.
    pub depth: usize,
    /// States in which all was over, and well.
    pub ends: u64,
    /// Nothing within the bound was left out.
    pub whole: bool,
    /// Something beyond the bound was left out.
    pub bounded: bool,
}

/// A broken promise, and the way to it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The broken promise.
    pub violation: Violation,
    /// The steps.
    pub steps: Vec<Choice>,
}

/// A state, with what was held back on the way to it.
#[derive(Clone)]
struct State {
    world: World,
    held_back: Vec<Actor>,
    left: usize,
}

/// One way on from a state.
#[derive(Clone, Debug)]
enum Move {
    Take(Choice),
    /// This departs from the usual.
    TakeEarly(Choice),
    HoldBack(Actor),
}

struct Frame {
    state: State,
    moves: Vec<Move>,
    /// How many steps the way to it has.
    length: usize,
}

/// A search under way.
pub struct Search {
    bound: Bound,
    seen: HashMap<u64, u8>,
    coverage: Coverage,
    steps: Vec<Choice>,
}

/// Explores a world until `is_over`. Returns the first broken promise, if there is one.
///
/// # Errors
/// A promise is broken before any call has begun.
pub fn explore(
    plan: Plan,
    bound: Bound,
    is_over: &dyn Fn() -> bool,
) -> Result<(Coverage, Option<Finding>), Violation> {
    let world = World::new(plan)?;
    let mut search = Search {
        bound,
        seen: HashMap::default(),
        coverage: Coverage::default(),
        steps: Vec::new(),
    };
    let finding = search.run(world, is_over);
    Ok((search.coverage, finding))
}

impl Search {
    fn run(&mut self, world: World, is_over: &dyn Fn() -> bool) -> Option<Finding> {
        let left = match self.bound {
            Bound::Delays(delays) => delays,
            Bound::All => 0,
        };
        let first = State { world, held_back: Vec::new(), left };
        let mut frames = Vec::new();
        if let Err(violation) = self.enter(first, &mut frames) {
            return Some(self.finding(violation));
        }
        while let Some(frame) = frames.last_mut() {
            self.steps.truncate(frame.length);
            let Some(next) = frame.moves.pop() else {
                frames.pop();
                continue;
            };
            if self.coverage.transitions.is_multiple_of(256) && is_over()
                || self.seen.len() >= MOST_STATES
            {
                return None;
            }
            let state = match frame.moves.is_empty() {
                true => {
                    let length = frame.length;
                    let state = frames.pop().expect("the last").state;
                    self.steps.truncate(length);
                    state
                }
                false => frame.state.clone(),
            };
            let went = self.go(state, &next).and_then(|state| self.enter(state, &mut frames));
            if let Err(violation) = went {
                return Some(self.finding(violation));
            }
        }
        self.coverage.whole = true;
        None
    }

    fn finding(&self, violation: Violation) -> Finding {
        Finding { violation, steps: self.steps.clone() }
    }

    /// Makes the move.
    fn go(&mut self, mut state: State, next: &Move) -> Result<State, Violation> {
        self.coverage.transitions += 1;
        match next {
            Move::HoldBack(actor) => {
                state.held_back.push(*actor);
                state.left -= 1;
            }
            Move::Take(choice) => {
                let actor = choice.actor();
                state.held_back.retain(|held| *held != actor);
                self.take(&mut state, choice)?;
            }
            Move::TakeEarly(choice) => {
                state.left -= 1;
                self.take(&mut state, choice)?;
            }
        }
        Ok(state)
    }

    fn take(&mut self, state: &mut State, choice: &Choice) -> Result<(), Violation> {
        self.steps.push(choice.clone());
        state.world.apply(choice)?;
        if self.bound == Bound::All {
            return Ok(());
        }
        loop {
            let ears = state.world.ears();
            let next = ears.into_iter().find(|ear| !state.held_back.contains(&ear.actor()));
            let Some(next) = next else { return Ok(()) };
            self.steps.push(next.clone());
            state.world.apply(&next)?;
        }
    }

    /// Comes to a state: if it was not seen before, what may happen there is to be tried. Where there
    /// is but one way on, that a state was seen is found out a little later: to compare costs more
    /// than to go on.
    fn enter(&mut self, mut state: State, frames: &mut Vec<Frame>) -> Result<(), Violation> {
        let moves = self.moves(&state);
        self.coverage.states += 1;
        if (moves.len() != 1 || self.coverage.states.is_multiple_of(COMPARED))
            && self.was_seen(&mut state)
        {
            self.coverage.states -= 1;
            return Ok(());
        }
        let length = self.steps.len();
        self.coverage.depth = self.coverage.depth.max(length);
        demand(length < MOST_STEPS, "progress", || {
            format!("{length} steps, and something goes on for ever: {:?}", state.world.missing())
        })?;
        if !moves.iter().any(|next| matches!(next, Move::Take(choice) if !choice.is_fault())) {
            self.coverage.ends += 1;
            state.world.end()?;
        }
        frames.push(Frame { state, moves, length });
        Ok(())
    }

    fn was_seen(&mut self, state: &mut State) -> bool {
        let mut mixed = Mixed::default();
        mixed.write_u64(state.world.key());
        state.held_back.iter().for_each(|actor| std::hash::Hash::hash(actor, &mut mixed));
        let left = u8::try_from(state.left).unwrap_or(u8::MAX - 1);
        let seen = self.seen.entry(mixed.finish()).or_insert(u8::MAX);
        if *seen != u8::MAX && *seen >= left {
            return true;
        }
        *seen = left;
        false
    }

    /// The ways on from a state; the last is tried first.
    fn moves(&mut self, state: &State) -> Vec<Move> {
        let world = &state.world;
        let enabled = world.enabled();
        let mut moves: Vec<Move> = world.faults().into_iter().map(Move::Take).collect();
        moves.reverse();
        if self.bound == Bound::All {
            moves.extend(enabled.into_iter().rev().map(Move::Take));
            return moves;
        }
        let rank = |choice: &Choice| state.held_back.iter().position(|it| *it == choice.actor());
        let usual = enabled.iter().min_by_key(|choice| rank(choice).map_or(0, |at| at + 1));
        let departs = self.departures(state, usual);
        self.coverage.bounded |= state.left == 0 && !departs.is_empty();
        if state.left > 0 {
            moves.extend(departs);
        }
        moves.extend(usual.cloned().map(Move::Take));
        moves
    }

    /// The ways on that depart from the usual.
    fn departures(&self, state: &State, usual: Option<&Choice>) -> Vec<Move> {
        let Some(usual) = usual else { return Vec::new() };
        let mut moves: Vec<Move> = state
            .world
            .unusual()
            .into_iter()
            .filter(|choice| choice != usual)
            .map(Move::TakeEarly)
            .collect();
        let mut actors = Vec::new();
        if let Choice::Receive(node) | Choice::Write(node) = *usual {
            let others = (0..super::order::NODES).filter(|other| *other != node);
            actors.extend(others.map(|other| Actor::Ear(other, node)));
        }
        if usual.actor() != Actor::Clock {
            actors.push(usual.actor());
        }
        actors.retain(|actor| !state.held_back.contains(actor));
        moves.extend(actors.into_iter().map(Move::HoldBack));
        moves
    }
}
