//! The world of jobs: their book, its replicas and directors, agents, ranks, and images on disks.
//!
//! The machines are those of `core/job` and `core/image`. Around them are one total order of words
//! (`order`), which each node sees when it sees it, and what a driver does (`hand`, `ranks`,
//! `images`). Everything dies, is cut off, rots and fills up (`fate`); then all heals, and all
//! jobs must end with the results of undisturbed runs.

mod copies;
mod fate;
mod hand;
mod images;
mod judge;
mod node;
mod options;
mod order;
mod parts;
mod program;
mod ranks;

use std::collections::{BTreeMap, BTreeSet};

use image::{Place, Root};
use job::{Assignment, Command, Key, Taken, Void};
use wire::{Duration, NodeId, Time};

use crate::check::results::Results;
use crate::check::{Verdict, demand};
use crate::draw::Draw;
use crate::queue::Queue;
use crate::run::{Outcome, Plant, Summary};
use crate::trace::Trace;
use node::Node;
use options::{JobPlan, Options};
use parts::{Judge, Order};

/// After the faults, all jobs end and all is in order within this time.
const WITHIN: Duration = Duration::from_secs(60);

/// How often it is looked whether all is well.
const LOOK: Duration = Duration::from_millis(100);

/// Virtual time begins here. Numbers of jobs are times.
const BEGIN: Time = Time(1_000_000_000);

/// A happening at a node.
#[derive(Clone, Debug)]
enum At {
    /// The first of its words is ordered.
    Send,
    /// Its replica sees the order so far.
    Deliver,
    /// It knows by now that it is cut off.
    Alone,
    /// Its director looks.
    Look,
    /// The node begins.
    Boot,
    /// The node begins an agent.
    Agent,
    /// The agent hears what the book wants; the numbers are those of agents and attempts.
    Watch(u64),
    Assign(u64, Box<Assignment>),
    Answer(u64, u64, Result<Taken, Void>),
    /// The book has not answered.
    Again(u64, u64),
    Tick(u64),
    /// An image goes on its way to the disk.
    Write(u64, u64),
    Fetch(u64, Box<(Place, Root, Vec<String>)>),
    Damaged(u64, Place),
    /// A state is read for this start.
    Restored(u64, Key),
    /// A process comes to the agent, does a turn, or ends; it is known by its number.
    Hello(u64),
    Turn(u64),
    Exit(u64, Exit),
    /// Its agent has been away for long.
    Orphaned(u64),
    /// Its trouble is over.
    Joined(u64),
    Roomy,
    Returned,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Killed,
    Failed,
    Finished,
}

#[derive(Debug)]
enum Event {
    Node(usize, At),
    /// A director's word comes once more.
    Late(Command),
    /// Those that are connected become a component.
    Regroup,
    /// Users look at their jobs.
    User,
    Fault,
    Calm,
    Check,
}

struct World {
    options: Options,
    plant: Plant,
    queue: Queue<Event>,
    draw: Draw,
    faults: Draw,
    trace: Trace,
    order: Order,
    nodes: Vec<Node>,
    drained: BTreeSet<NodeId>,
    /// The jobs that were submitted, by number.
    jobs: BTreeMap<u64, JobPlan>,
    results: Results,
    judge: Judge,
    /// Numbers of agents and processes.
    serial: u64,
    calm: Option<Time>,
    deaths: u64,
    /// Images that were restored.
    restored: u64,
    /// Ranks that left a node that was being emptied.
    moved: u64,
    done: bool,
}

/// Runs one seed of this world.
pub fn run(draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let options = Options::draw(draw);
    let trace = Trace::new(aloud);
    trace.say(Time::ZERO, || format!("{options:#?}"));
    let nodes = (0..options.nodes).map(|_| Node::new(options.troubles, draw.fork())).collect();
    let mut world = World {
        plant,
        queue: Queue::default(),
        draw: draw.fork(),
        faults: draw.fork(),
        trace,
        order: Order::new(plant.job),
        nodes,
        drained: BTreeSet::new(),
        jobs: BTreeMap::new(),
        results: Results::default(),
        judge: Judge::default(),
        serial: 0,
        calm: None,
        deaths: 0,
        restored: 0,
        moved: 0,
        done: false,
        options,
    };
    let verdict = crate::run::guarded(|| world.run());
    let summary = Summary {
        virtual_time: world.queue.now(),
        steps: world.trace.steps(),
        answered: world.order.book.version(),
        deaths: world.deaths,
        transfers: world.restored,
        moves: world.moved,
        ..Summary::default()
    };
    Outcome { verdict, hash: world.trace.hash(), summary }
}

impl World {
    fn run(&mut self) -> Verdict {
        for node in 0..self.options.nodes {
            let at = BEGIN + self.draw.span(Duration::ZERO, self.options.restart);
            self.queue.push(at, Event::Node(node, At::Boot));
        }
        self.queue.push(BEGIN, Event::User);
        let first = self.pause();
        self.queue.push(BEGIN + first, Event::Fault);
        self.queue.push(BEGIN + self.options.phase, Event::Calm);
        while !self.done {
            let Some(event) = self.queue.pop() else {
                return demand(false, "liveness", || "nothing is left to happen".into());
            };
            match event {
                Event::Node(node, at) => self.at(node, at)?,
                Event::Late(command) if self.is_quorate() => self.order(command, None)?,
                Event::Late(_) => {}
                Event::Regroup => self.regroup(),
                Event::User => self.user()?,
                Event::Fault => self.fault()?,
                Event::Calm => self.calm(),
                Event::Check => self.check()?,
            }
        }
        Ok(())
    }

    fn at(&mut self, node: usize, at: At) -> Verdict {
        let kind = at.kind();
        self.trace.note(self.queue.now(), kind, node, [self.order.book.version(), 0]);
        match at {
            At::Send => self.send(node),
            At::Deliver => self.deliver(node),
            At::Alone => {
                self.alone(node);
                Ok(())
            }
            At::Look => {
                self.look(node);
                Ok(())
            }
            At::Boot => {
                self.boot(node);
                Ok(())
            }
            At::Agent => self.begin_agent(node),
            At::Watch(serial) => self.watch(node, serial),
            At::Assign(serial, wanted) => self.assign(node, serial, *wanted),
            At::Answer(serial, attempt, answer) => self.answered(node, serial, attempt, &answer),
            At::Again(serial, attempt) => {
                self.say_again(node, serial, attempt);
                Ok(())
            }
            At::Tick(serial) => self.tick(node, serial),
            At::Write(serial, writing) => self.write(node, serial, writing),
            At::Fetch(serial, wanted) => self.fetch(node, serial, *wanted),
            At::Damaged(serial, place) => self.damaged(node, serial, place),
            At::Restored(serial, key) => self.restored(node, serial, key),
            At::Hello(process) => self.hello(node, process),
            At::Turn(process) => self.turn(node, process),
            At::Exit(process, exit) => self.exit(node, process, exit),
            At::Orphaned(serial) => self.orphaned(node, serial),
            At::Joined(cut) => {
                self.join(node, cut);
                Ok(())
            }
            At::Roomy => {
                self.nodes[node].disk.capacity = node::ROOM;
                Ok(())
            }
            At::Returned => {
                self.drained.remove(&node::id(node));
                Ok(())
            }
        }
    }

    /// This happens at a node after so long at most.
    fn within(&mut self, longest: Duration, node: usize, at: At) {
        let when = self.queue.now() + self.draw.scale(Duration::from_micros(10), longest);
        self.queue.push(when, Event::Node(node, at));
    }

    /// This happens at a node soon: as soon as words travel here.
    fn soon(&mut self, node: usize, at: At) {
        self.within(self.options.lag, node, at);
    }

    /// Faults may happen, of so many in 1,000 cases.
    fn errs(&mut self, permille: u64) -> bool {
        self.calm.is_none() && self.faults.permille(permille)
    }

    fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

impl At {
    fn kind(&self) -> u8 {
        match self {
            At::Send => 1,
            At::Deliver => 2,
            At::Alone => 3,
            At::Look => 4,
            At::Boot => 5,
            At::Agent => 6,
            At::Watch(_) => 7,
            At::Assign(..) => 8,
            At::Answer(..) => 9,
            At::Again(..) => 10,
            At::Tick(_) => 11,
            At::Write(..) => 12,
            At::Fetch(..) => 13,
            At::Damaged(..) => 14,
            At::Restored(..) => 15,
            At::Hello(_) => 16,
            At::Turn(_) => 17,
            At::Exit(..) => 18,
            At::Orphaned(_) => 19,
            At::Joined(_) => 20,
            At::Roomy => 21,
            At::Returned => 22,
        }
    }
}
