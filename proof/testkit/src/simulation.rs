//! How a test's cluster runs.

use wire::{Duration, Time};

use crate::network::Place;
use crate::world::{Machine, Step, World};

/// A cluster of a test: a world, and somebody who carries out what its machines ask for.
pub trait Simulation {
    /// The machine that runs on each host.
    type Machine: Machine;
    /// An event beside datagrams and timers.
    type Event;

    /// The hosts, the network and the time.
    fn world(&mut self) -> &mut World<Self::Machine, Self::Event>;

    /// Carries out what the machine at this place asks for.
    fn drain(&mut self, place: Place);

    /// Something happens that the cluster has scheduled itself.
    fn happen(&mut self, event: Self::Event);

    /// The next thing that happens until `end`; false if nothing does.
    fn step(&mut self, end: Time) -> bool {
        match self.world().step(end) {
            Some(Step::Ran(place)) => self.drain(place),
            Some(Step::Event(event)) => self.happen(event),
            None => return false,
        }
        true
    }

    /// Runs for so long.
    fn run(&mut self, span: Duration) {
        let end = self.world().now + span;
        while self.step(end) {}
        self.world().now = end;
    }

    /// Runs until `done`; false if that has not come within `span`.
    fn run_until(&mut self, span: Duration, done: impl Fn(&Self) -> bool) -> bool
    where
        Self: Sized,
    {
        let end = self.world().now + span;
        while !done(self) {
            if !self.step(end) {
                return false;
            }
        }
        true
    }

    /// Gives something to the machine at this place, and carries out what follows.
    fn ask<T>(&mut self, place: Place, ask: impl FnOnce(&mut Self::Machine, Time) -> T) -> T {
        let now = self.world().now;
        let answer = ask(self.world().machine_mut(place), now);
        self.drain(place);
        answer
    }
}
