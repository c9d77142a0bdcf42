//! A world: three nodes above an ideal order, clients, and the checkers that see all of it.
//!
//! A copy of a world is cheap: its parts are shared until they change.

mod enabled;
mod outputs;
mod steps;

use std::hash::Hasher;
use std::rc::Rc;

use wire::client::Outcome;
use wire::{Caller, ClientId, RingId, Time, ViewNumber};

use super::choice::Choice;
use super::node::{Node, START};
use super::order::{NODES, Order};
use super::plan::Plan;
use crate::check::hashed::Mixed;
use crate::check::{Verdict, Violation};
use crate::trace::mix;
use crate::watch::Watch;

/// The state of a world.
#[derive(Clone)]
pub struct World {
    plan: Rc<Plan>,
    nodes: [Rc<Node>; NODES],
    order: Rc<Order>,
    watch: Rc<Watch>,
    calls: Vec<Call>,
    /// The newest view of the group that any node has installed.
    view: View,
    /// Deaths that may still happen, and times that a node may be cut off, or a replica given up.
    deaths: usize,
    cuts: usize,
    leaves: usize,
    /// The node that is cut off.
    away: Option<usize>,
    /// All calls are answered, and something that was lost has come back since.
    over: bool,
    /// Deaths of programs by the deadly call.
    kills: u64,
    /// Connections of clients so far.
    callers: u64,
    steps: u64,
    /// Timers that were due so far.
    ticks: u64,
    /// A hash of all facts that checkers were told, in whatever order.
    facts: u64,
    /// Words about what happens, if somebody wants them.
    words: Option<Vec<String>>,
}

/// A call, and its client.
#[derive(Clone, Debug)]
struct Call {
    client: ClientId,
    /// Attempts that may still bring an answer.
    asked: Vec<Attempt>,
    /// Times that it was asked for.
    times: usize,
    /// The rank of whom it asks next, as long as this is the newest view; else the first.
    turn: usize,
    viewed: (RingId, ViewNumber),
    /// It was declined, and asks again when something has changed.
    waits: bool,
    answer: Option<Outcome>,
}

/// A node that was asked for a call.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    node: usize,
    /// The connection.
    caller: Caller,
    /// The node's clock when the client gives the attempt up.
    until: Time,
}

#[derive(Clone, Debug, Default)]
struct View {
    at: (RingId, ViewNumber),
    /// Nodes with replicas in order of rank.
    targets: Vec<usize>,
}

impl World {
    /// The world of a plan, in which all is well and no call has begun.
    ///
    /// # Errors
    /// A promise is broken before anything has happened to it.
    pub fn new(plan: Plan) -> Result<World, Violation> {
        let calls = (0..plan.calls).map(|call| Call {
            client: ClientId(call as u64 + 101),
            asked: Vec::new(),
            times: 0,
            turn: 0,
            viewed: Default::default(),
            waits: false,
            answer: None,
        });
        let mut world = World {
            watch: Rc::new(Watch::new(&plan.options())),
            calls: Vec::new(),
            plan: Rc::new(plan),
            nodes: std::array::from_fn(|node| Rc::new(Node::new(node))),
            order: Rc::default(),
            view: View::default(),
            deaths: 0,
            cuts: 0,
            leaves: 0,
            away: None,
            over: false,
            kills: 0,
            callers: 0,
            steps: 0,
            ticks: 0,
            facts: 0,
            words: None,
        };
        for node in 0..NODES {
            world.apply(&Choice::Boot(node))?;
        }
        world.calm_down()?;
        world.calls = calls.collect();
        (world.deaths, world.cuts, world.leaves) = (plan.deaths, plan.cuts, plan.leaves);
        (world.steps, world.ticks, world.over) = (0, 0, false);
        Ok(world)
    }

    /// From here on there are words about what happens.
    pub fn speak(&mut self) {
        self.words = Some(Vec::new());
    }

    /// Returns the words since this was asked last.
    pub fn spoken(&mut self) -> Vec<String> {
        self.words.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Steps since all was well.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn say(&mut self, words: impl FnOnce() -> String) {
        if let Some(said) = &mut self.words {
            said.push(words());
        }
    }

    /// All that goes on by itself happens, until all is well and nothing is left to do.
    fn calm_down(&mut self) -> Verdict {
        while let Some(choice) = self.enabled().into_iter().next() {
            self.apply(&choice)?;
            self.hear_all()?;
        }
        self.finish()
    }

    /// Every node learns at once what the others have.
    fn hear_all(&mut self) -> Verdict {
        while let Some(choice) = self.ears().into_iter().next() {
            self.apply(&choice)?;
        }
        Ok(())
    }

    fn node(&mut self, node: usize) -> &mut Node {
        Rc::make_mut(&mut self.nodes[node])
    }

    fn watch(&mut self) -> &mut Watch {
        Rc::make_mut(&mut self.watch)
    }

    fn order(&mut self) -> &mut Order {
        Rc::make_mut(&mut self.order)
    }

    /// Checkers have been told this.
    fn fact(&mut self, words: [u64; 4]) {
        self.facts = self.facts.wrapping_add(words.into_iter().fold(0x5eed, mix));
    }

    /// The time of checkers: they compare what happened before with what happened after.
    fn time(&self) -> Time {
        Time(START.0 + self.steps)
    }

    /// The fastest clock.
    fn latest(&self) -> Time {
        self.nodes.iter().map(|node| node.now).max().unwrap_or(START)
    }

    /// A hash of all that decides what can happen from here on, and whether that is right.
    pub fn key(&mut self) -> u64 {
        for node in 0..NODES {
            if self.nodes[node].stale {
                self.node(node).rehash();
            }
        }
        let mut mixed = Mixed::default();
        self.nodes.iter().for_each(|node| mixed.write_u64(node.hash));
        mixed.write_u64(self.order.hash());
        mixed.write_u64(self.facts);
        for call in &self.calls {
            let asked = call.asked.iter().map(|it| (it.node as u64) << 32 | it.caller.0);
            asked.for_each(|word| mixed.write_u64(word));
            let answered = u64::from(call.answer.is_some());
            mixed.write_u64((call.times as u64) << 2 | u64::from(call.waits) << 1 | answered);
            mixed.write_u64((call.turn as u64) << 32 | call.viewed.1.0);
        }
        let over = u64::from(self.over);
        let away = over << 8 | self.away.map_or(0, |node| node as u64 + 1);
        mixed.write_u64(
            (self.leaves as u64) << 48 | away << 32 | (self.deaths as u64) << 16 | self.cuts as u64,
        );
        mixed.write_u64(self.view.at.0.sequence << 32 | self.view.at.1.0);
        mixed.finish()
    }
}
