//! What this node does for the book: it tells of itself, has the programs run that the book says, tells of those that end again and again;
//! and, where it leads the manager's group, says where replicas are to be.

use std::sync::Arc;

use manager::book::{Book, Command, Deployment, Labels};
use manager::placement::{Placer, Why};
use wire::system::MANAGER_ID;
use wire::{Duration, Share, Time};

use super::View;
use crate::control::Control;
use crate::error::Stopped;
use crate::programs::{CRASH_LOOP, ProgramConfig, Programs};
use crate::timer::wall_clock;

/// What is said to the book and does not show there is said again after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// How often all is looked at when nothing has changed: some of what is to be done is a matter of time.
pub(super) const PERIOD: Duration = Duration::from_millis(500);

pub(super) struct Steward {
    control: Arc<Control>,
    labels: Labels,
    placer: Placer,
    /// When this node told of itself, and of a program.
    introduced: Option<Time>,
    told: Option<Time>,
}

impl Steward {
    pub fn new(control: Arc<Control>, labels: Labels) -> Steward {
        let placer = Placer::default();
        Steward { control, labels, placer, introduced: None, told: None }
    }

    /// Looks at the book, if this node's replica has it. `capacity`: what the host can do.
    pub fn look(&mut self, now: Time, view: &View, capacity: Share) -> Result<(), Stopped> {
        let Some(book) = &view.book else { return Ok(()) };
        // A node without an admin socket can run no programs: it gets none.
        let control = self.control.clone();
        if let Some(programs) = &control.programs {
            self.introduce(now, book, capacity)?;
            programs.deploy(book.at(control.me.node).map(program).collect());
            self.tell_failing(now, book, programs)?;
        }
        let shape = view.picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        if shape.is_some_and(|shape| shape.primary == control.me.node) {
            let wall = Time(wall_clock());
            for (step, command) in self.placer.look(now, wall, &view.picture, book) {
                if let (Command::Place { group, on, .. }, true) =
                    (&command, step.why != Why::Filled)
                {
                    tracing::info!(group, ?on, why = ?step.why, "replicas are to be on these nodes");
                }
                control.tell_book(command)?;
            }
        } else {
            self.placer = Placer::default();
        }
        Ok(())
    }

    fn introduce(&mut self, now: Time, book: &Book, capacity: Share) -> Result<(), Stopped> {
        let node = self.control.me.node;
        let known = book.node(node);
        let same = known.is_some_and(|it| it.labels == self.labels && it.capacity == capacity);
        let waits = self.introduced.is_some_and(|at| now < at + AGAIN);
        if same || waits || capacity == Share::ZERO {
            return Ok(());
        }
        self.introduced = Some(now);
        let labels = self.labels.clone();
        self.control.tell_book(Command::Introduce { node, labels, capacity })
    }

    /// Programs that end again and again are tried elsewhere.
    fn tell_failing(&mut self, now: Time, book: &Book, programs: &Programs) -> Result<(), Stopped> {
        if self.told.is_some_and(|at| now < at + AGAIN) {
            return Ok(());
        }
        self.told = Some(now);
        let (node, wall) = (self.control.me.node, Time(wall_clock()));
        let loops = programs.status().into_iter().filter(|it| it.ends_in_a_row >= CRASH_LOOP);
        for program in loops {
            let Some(placed) = book.of(&program.group) else { continue };
            let known = placed.failing.get(&node).is_some_and(|failing| wall < failing.until);
            if placed.on.contains(&node) && !known {
                self.control.tell_book(Command::Failing { group: program.group, node })?;
            }
        }
        Ok(())
    }
}

fn program(deployment: &Deployment) -> ProgramConfig {
    let Deployment { group, program, options, .. } = deployment;
    ProgramConfig {
        group: group.clone(),
        command: program.command.clone(),
        folder: program.folder.as_ref().map(Into::into),
        environment: program.environment.clone(),
        options: *options,
    }
}
