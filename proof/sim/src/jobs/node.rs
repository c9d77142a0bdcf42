//! A node, its agent and its ranks, beside what the machines have of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use image::{Place, Root};
use job::{Agent, Command, Director, Jobs, Key, Moments};
use wire::{Incarnation, Member, NodeId, Time};

use super::images::Writing;
use crate::check::results::State;
use crate::disk::{Disk, Troubles};
use crate::draw::Draw;

/// Bytes of a disk with room for everything.
pub const ROOM: usize = 64 << 20;

pub fn id(node: usize) -> NodeId {
    NodeId(node as u32 + 1)
}

/// The node's place among all.
pub fn index(node: NodeId) -> usize {
    node.0 as usize - 1
}

/// A node.
pub struct Node {
    pub life: u64,
    pub up: bool,
    /// It is cut off; which cut that is.
    pub cut: Option<u64>,
    /// Its replica of the book, since it was in a component in this life.
    pub replica: Option<Replica>,
    /// Words on their way to the order.
    pub out: VecDeque<Said>,
    pub director: Director,
    /// When its director looks next.
    pub looks: Option<Time>,
    pub hand: Hand,
    /// Processes, by their starts.
    pub ranks: BTreeMap<Key, Process>,
    /// Processes that were told to end.
    pub ending: BTreeSet<u64>,
    /// Starts that agents of this life have begun, and whether they were let in.
    pub records: BTreeMap<Key, bool>,
    pub disk: Disk,
    /// Images of which a file was damaged here, or could not be removed.
    pub harmed: BTreeSet<Place>,
}

/// A replica of the book, and what its node knows of the others.
pub struct Replica {
    pub book: Jobs,
    /// How much of the order it has.
    pub applied: usize,
    /// It is to see more.
    pub due: bool,
    pub members: Vec<Member>,
    pub leader: Member,
    /// It knows of no majority.
    pub alone: bool,
}

/// A word on its way to the order: an agent's has the agent's number, and the attempt's.
pub struct Said {
    pub command: Command,
    pub from: Option<(u64, u64)>,
}

/// The agent of a node, and its driver.
#[derive(Default)]
pub struct Hand {
    pub agent: Option<Agent>,
    /// Which of the world's agents it is.
    pub serial: u64,
    /// Commands that it has to say, one after the other; and the attempt that waits for an answer.
    pub says: VecDeque<Command>,
    pub waits: Option<(Command, u64)>,
    /// The version of which it was told, and whether it waits for another one.
    pub told: Option<u64>,
    pub watches: bool,
    /// When it hears what it was told last: one after the other.
    pub hears: Time,
    pub writes: BTreeMap<u64, Writing>,
    /// Images of which it has heard that they count.
    pub committed: BTreeSet<Place>,
}

/// A process.
pub struct Process {
    pub number: u64,
    /// The agent that has started it, and the one that it is connected to.
    pub of: u64,
    pub linked: bool,
    /// The image from which it goes on.
    pub from: Option<(Place, Root)>,
    /// It waits for its state, which is still being read.
    pub reads: bool,
    pub handed: Option<(u64, State)>,
    /// Its arrays, since it was let in.
    pub state: Option<State>,
    pub step: u64,
    pub changed: BTreeSet<usize>,
    /// The next snapshot is to be a full one; how far the last one was, and the one being saved.
    pub full: bool,
    pub last: u64,
    pub saving: Option<u64>,
    /// The snapshot that is not yet written: its arrays, and those that have changed.
    pub snapshot: Option<(State, Vec<usize>)>,
    pub end: Ending,
    pub moments: Option<Moments>,
}

/// How far a process is with its end.
#[derive(Default)]
pub struct Ending {
    /// Its results are saved.
    pub saved: bool,
    pub tries: u32,
    /// It has said that it has finished, and the book knows.
    pub said: bool,
    pub known: bool,
    /// A user wants a checkpoint.
    pub asked: bool,
}

impl Node {
    pub fn new(troubles: Troubles, draw: Draw) -> Node {
        Node {
            life: 0,
            up: false,
            cut: None,
            replica: None,
            out: VecDeque::new(),
            director: Director::default(),
            looks: None,
            hand: Hand::default(),
            ranks: BTreeMap::new(),
            ending: BTreeSet::new(),
            records: BTreeMap::new(),
            disk: Disk::new(ROOM, troubles, draw),
            harmed: BTreeSet::new(),
        }
    }

    pub fn is_connected(&self) -> bool {
        self.up && self.cut.is_none()
    }

    /// The node in its present life.
    pub fn member(&self, node: usize) -> Member {
        Member { node: id(node), incarnation: Incarnation(self.life) }
    }

    /// This agent is at work.
    pub fn has_agent(&self, serial: u64) -> bool {
        self.hand.agent.is_some() && self.hand.serial == serial
    }

    /// The agent is killed. Its ranks stay.
    pub fn end_agent(&mut self) {
        self.hand = Hand { serial: self.hand.serial, ..Hand::default() };
        for process in self.ranks.values_mut() {
            process.linked = false;
        }
    }

    /// The node dies, with all that is there. Words that were handed over may have been ordered.
    pub fn end(&mut self) {
        self.end_agent();
        self.up = false;
        self.replica = None;
        self.out.clear();
        self.director = Director::default();
        self.ranks.clear();
        self.records.clear();
    }

    pub fn process(&mut self, number: u64) -> Option<(Key, &mut Process)> {
        let mut found = self.ranks.iter_mut().filter(|(_, it)| it.number == number);
        found.next().map(|(key, process)| (*key, process))
    }
}
