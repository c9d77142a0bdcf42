//! The search for a linearization of one object's history.
//!
//! The algorithm is that of Wing and Gong (*Testing and Verifying Concurrent Objects*, JPDC 1993):
//! try one operation that no other must precede as the next, and come back to try another if that
//! leads nowhere. Lowe (*Testing for linearizability*, 2017) adds a memory of the search. The
//! operations that have had their turn and the object's state decide the rest of a search. A pair
//! of these that was met before is not searched again. Four more rules keep it short:
//! - A read (or another call that changes nothing wherever it comes) that fits now has its turn at
//!   once, with no way back. In every linearization of the rest it can be moved to the front:
//!   nothing has to come before it, it fits there, and no other operation sees the difference.
//! - Among the others, the one answered first is tried first: it is most in need of a place.
//!   Operations of unknown end come last, and only where they change something.
//! - An operation of unknown end must be followed by one that needs it: one that would not fit, or
//!   lead elsewhere, if it had not happened. A linearization with as few of these operations as
//!   possible obeys this: any other could do with one less.
//! - Equal calls of unknown ends go in order of their calls: in any linearization the earliest can
//!   stand in for a later one.
//!
//! Which operations have had their turn is remembered as the exclusive or of a random number of 128
//! bits for each (Zobrist, *A new hashing method*, 1970): two different sets among 2^21 that meet
//! in one number have a chance below 2^-86.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::rc::Rc;

use wire::{Random, Time};

use crate::limits::Limits;
use crate::list::List;
use crate::model::{Model, Told};
use crate::record::{End, Operation};

/// One operation, as the search sees it.
pub(crate) struct Item<'a, M: Model> {
    pub(crate) call: &'a M::Call,
    /// `None`: nobody saw it.
    pub(crate) reply: Option<&'a M::Reply>,
    pub(crate) invoked: Time,
    /// `None`: never, as far as anybody knows.
    pub(crate) ended: Option<Time>,
    /// Its place in the history of its object.
    pub(crate) place: usize,
}

/// The operations of an object's history that must have a place, or may have one.
pub(crate) fn items<'a, M: Model>(model: &M, history: &[&'a Told<M>]) -> Vec<Item<'a, M>> {
    let item = |(place, operation): (usize, &&'a Told<M>)| {
        let Operation { call, invoked, end, .. } = operation;
        let invoked = *invoked;
        match end {
            End::Answered { at, reply } => {
                Some(Item { call, reply: Some(reply), invoked, ended: Some(*at), place })
            }
            // A read that nobody saw changes nothing.
            End::Unknown if model.is_read(call, None) => None,
            End::Unknown => Some(Item { call, reply: None, invoked, ended: None, place }),
            End::Failed => None,
        }
    };
    history.iter().enumerate().filter_map(item).collect()
}

impl<M: Model> Clone for Item<'_, M> {
    fn clone(&self) -> Self {
        Item { ..*self }
    }
}

/// The result of a search.
pub(crate) enum Found<S> {
    Linearization,
    /// There is none.
    Nothing(Stuck<S>),
    /// It would have taken more than the limit of this.
    Limit(&'static str),
}

/// The furthest that any attempt came.
pub(crate) struct Stuck<S> {
    /// Place of the operation that had no place in the order.
    pub(crate) blocked: usize,
    /// Some states in which the object may be when it would have to come.
    pub(crate) states: Vec<S>,
}

/// How the object may be after a history: its state, and places of operations that may still come.
pub(crate) type Final<S> = (S, Vec<usize>);

/// States of a stuck search that are told.
const TOLD_STATES: usize = 4;

/// States that were met, by number.
struct States<S> {
    all: Vec<Rc<S>>,
    numbers: HashMap<Rc<S>, usize>,
}

impl<S: Eq + Hash> States<S> {
    /// This one alone, as number 0.
    fn new(start: S) -> Self {
        let start = Rc::new(start);
        States { all: vec![start.clone()], numbers: HashMap::from([(start, 0)]) }
    }

    fn number(&mut self, state: S) -> usize {
        if let Some(&number) = self.numbers.get(&state) {
            return number;
        }
        let state = Rc::new(state);
        self.all.push(state.clone());
        self.numbers.insert(state, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// The furthest item that no attempt found a place for, and some states in which the object was
/// then.
#[derive(Default)]
struct Furthest {
    item: usize,
    states: Vec<usize>,
}

impl Furthest {
    fn note(&mut self, item: usize, state: usize) {
        if item > self.item || self.states.is_empty() {
            *self = Furthest { item, states: vec![state] };
        } else if item == self.item
            && self.states.len() < TOLD_STATES
            && !self.states.contains(&state)
        {
            self.states.push(state);
        }
    }
}

/// A choice that can be taken back.
struct Frame {
    item: usize,
    state: usize,
    owed: Option<usize>,
    trail: usize,
}

pub(crate) struct Search<'a, M: Model> {
    model: &'a M,
    limits: Limits,
    pub(crate) steps: u64,
    /// The answered ones in order of their answers, then the others in order of their calls.
    items: Vec<Item<'a, M>>,
    answered: usize,
    /// Answered ones that change nothing.
    reads: Vec<bool>,
    /// For equal calls of unknown ends: the one before.
    equal_before: Vec<Option<usize>>,
    taken: Vec<bool>,
    /// The operations left: each item's call, then each answered item's answer.
    list: List,
    trail: Vec<usize>,
    names: Vec<u128>,
    /// Which have had their turn.
    set: u128,
    states: States<M::State>,
    state: usize,
    /// The state before an operation of unknown end that has just had its turn, and that the next
    /// one has to need.
    owed: Option<usize>,
    met: HashSet<(u128, usize, Option<usize>)>,
    /// The items that may be next, as of the last look.
    candidates: Vec<usize>,
    /// The item that has to be next at the latest.
    frontier: Option<usize>,
    furthest: Furthest,
}

impl<'a, M: Model> Search<'a, M> {
    pub(crate) fn new(
        model: &'a M,
        start: M::State,
        mut items: Vec<Item<'a, M>>,
        limits: Limits,
    ) -> Self {
        items.sort_by_key(|item| {
            (item.ended.is_none(), item.ended.unwrap_or(item.invoked), item.place)
        });
        let answered = items.iter().take_while(|item| item.ended.is_some()).count();
        let equal_before = (0..items.len())
            .map(|item| {
                let same =
                    |a: &Item<'_, M>, b: &Item<'_, M>| (a.call, a.reply) == (b.call, b.reply);
                (answered..item).rev().find(|&earlier| same(&items[earlier], &items[item]))
            })
            .collect();
        let is_read = |(place, item): (usize, &Item<'_, M>)| {
            place < answered && model.is_read(item.call, item.reply)
        };
        let reads = items.iter().enumerate().map(is_read).collect();
        let mut random = Random::new(0x5eed);
        let mut word = || u128::from(random.next_u64());
        let names = items.iter().map(|_| word() << 64 | word()).collect();
        let list = linked(&items, answered);
        Search {
            model,
            limits,
            steps: 0,
            taken: vec![false; items.len()],
            items,
            answered,
            reads,
            equal_before,
            list,
            trail: Vec::new(),
            names,
            set: 0,
            states: States::new(start),
            state: 0,
            owed: None,
            met: HashSet::new(),
            candidates: Vec::new(),
            frontier: None,
            furthest: Furthest::default(),
        }
    }

    /// Looks for a linearization.
    pub(crate) fn run(&mut self) -> Found<M::State> {
        let mut found = false;
        let limit = self.visit(|_| {
            found = true;
            false
        });
        match limit {
            Some(limit) => Found::Limit(limit),
            None if found => Found::Linearization,
            None => Found::Nothing(Stuck {
                blocked: self.items[self.furthest.item].place,
                states: self.furthest.states.iter().map(|&state| self.state(state)).collect(),
            }),
        }
    }

    /// All ways in which the object may be afterwards, if there are no more than `most`.
    pub(crate) fn finals(&mut self, most: usize) -> Option<Vec<Final<M::State>>> {
        let mut all = Vec::new();
        let limit = self.visit(|search| {
            let open = search.answered..search.items.len();
            let open = open.filter(|&item| !search.taken[item]);
            let open = open.map(|item| search.items[item].place).collect();
            all.push((search.state(search.state), open));
            all.len() <= most
        });
        (limit.is_none() && all.len() <= most).then_some(all)
    }

    /// Goes through all that may have happened. `whole` is told when all answered operations have
    /// their places, and says whether to go on. Returns the limit that was reached, if any.
    fn visit(&mut self, mut whole: impl FnMut(&Self) -> bool) -> Option<&'static str> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut from = 0;
        self.settle();
        if self.frontier.is_none() && !whole(self) {
            return None;
        }
        loop {
            if self.steps > self.limits.steps {
                return Some("steps");
            }
            if self.met.len() > self.limits.configurations {
                return Some("configurations");
            }
            let next = self.frontier.and_then(|_| self.choice(from));
            let Some((item, state)) = next else {
                let frame = frames.pop()?;
                from = frame.item + 1;
                self.take_back(&frame);
                continue;
            };
            let (before, owed, trail) = (self.state, self.owed, self.trail.len());
            let frame = Frame { item, state: before, owed, trail };
            self.take(item);
            self.state = state;
            self.owed = (item >= self.answered).then_some(before);
            self.settle();
            if !self.met.insert((self.set, self.state, self.owed)) {
                from = frame.item + 1;
                self.take_back(&frame);
                continue;
            }
            if self.frontier.is_none() && !whole(self) {
                return None;
            }
            frames.push(frame);
            from = 0;
        }
    }

    /// Reads that fit have their turn.
    fn settle(&mut self) {
        loop {
            self.look();
            let before = self.trail.len();
            for place in 0..self.candidates.len() {
                let item = self.candidates[place];
                if self.reads[item] && self.step(item, self.state).is_some() {
                    self.take(item);
                    self.owed = None;
                }
            }
            if self.trail.len() == before {
                break;
            }
        }
        if let Some(frontier) = self.frontier {
            self.furthest.note(frontier, self.state);
        }
    }

    fn state(&self, number: usize) -> M::State {
        (*self.states.all[number]).clone()
    }

    /// Finds the items that may be next: all that were called before the first answer that is left.
    fn look(&mut self) {
        self.candidates.clear();
        self.frontier = None;
        let mut at = self.list.after(0);
        while at != 0 {
            let item = at - 1;
            if item >= self.items.len() {
                self.frontier = Some(item - self.items.len());
                break;
            }
            self.candidates.push(item);
            at = self.list.after(at);
        }
        self.candidates.sort_unstable();
    }

    /// The first candidate from `from` on that fits, and the state after it.
    fn choice(&mut self, from: usize) -> Option<(usize, usize)> {
        for place in 0..self.candidates.len() {
            let item = self.candidates[place];
            let waits = self.equal_before[item].is_some_and(|earlier| !self.taken[earlier]);
            if item < from || self.reads[item] || waits {
                continue;
            }
            let Some(state) = self.step(item, self.state) else { continue };
            let useless = item >= self.answered && state == self.state;
            let needless = self.owed.is_some_and(|before| self.step(item, before) == Some(state));
            if !useless && !needless {
                return Some((item, state));
            }
        }
        None
    }

    /// The number of the state after this item, if it fits in this state.
    fn step(&mut self, item: usize, state: usize) -> Option<usize> {
        self.steps += 1;
        let Item { call, reply, .. } = self.items[item];
        let now = &self.states.all[state];
        let next = self.model.step(now, call, reply)?;
        Some(if next == **now { state } else { self.states.number(next) })
    }

    fn take(&mut self, item: usize) {
        self.list.unlink(1 + item);
        if item < self.answered {
            self.list.unlink(1 + self.items.len() + item);
        }
        self.taken[item] = true;
        self.set ^= self.names[item];
        self.trail.push(item);
    }

    /// As it was before a choice.
    fn take_back(&mut self, frame: &Frame) {
        while self.trail.len() > frame.trail {
            let item = self.trail.pop().expect("it is longer");
            self.set ^= self.names[item];
            self.taken[item] = false;
            if item < self.answered {
                self.list.relink(1 + self.items.len() + item);
            }
            self.list.relink(1 + item);
        }
        self.state = frame.state;
        self.owed = frame.owed;
        self.look();
    }
}

/// Calls and answers in order of time. At one time the calls come first: it is not known which was
/// earlier, and so the two operations may come in either order.
fn linked<M: Model>(items: &[Item<'_, M>], answered: usize) -> List {
    let calls = items.iter().enumerate().map(|(item, its)| (its.invoked, 1 + item));
    let ends = items[..answered]
        .iter()
        .enumerate()
        .map(|(item, its)| (its.ended.expect("answered"), 1 + items.len() + item));
    List::new(calls.chain(ends).collect())
}
