//! The smallest part of a history that shows that it is not linearizable.

use std::fmt;

use wire::Time;

use crate::limits::Limits;
use crate::model::{Model, Told};
use crate::picture::{Bar, draw};
use crate::search::{Final, Found, Item, Search, Stuck, items};

/// Limits of one attempt to leave something out: it is one of many.
const ATTEMPT: Limits = Limits { steps: 2_000_000, configurations: 200_000 };

/// Attempts to leave something out.
const ATTEMPTS: usize = 400;

/// In so many ways the object may be before the part that is shown.
const MOST_STARTS: usize = 6;

/// Operations before the failing part that are shown, to say where its start comes from.
const CONTEXT: usize = 6;

/// Why a history of one object is not linearizable.
///
/// [`fmt::Display`] draws it.
#[derive(Clone, Debug)]
pub struct Counterexample<M: Model> {
    /// Which object.
    pub key: M::Key,
    /// The operations of the failing part, in order of their calls.
    pub operations: Vec<Told<M>>,
    /// The states that the object may have when this part begins.
    pub starts: Vec<M::State>,
    /// The operation that has no place, when all operations answered before it have one.
    pub blocked: Told<M>,
    text: String,
}

impl<M: Model> fmt::Display for Counterexample<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// So many letters of a state are told.
const TOLD_LETTERS: usize = 80;

/// One object's history.
struct Part<'a, M: Model> {
    model: &'a M,
    key: M::Key,
    history: &'a [&'a Told<M>],
}

/// Makes the failing part of an object's history as small as it can.
pub(crate) fn explain<M: Model>(
    model: &M,
    key: M::Key,
    history: &[&Told<M>],
    stuck: &Stuck<M::State>,
    limits: Limits,
) -> Counterexample<M> {
    let part = Part { model, key, history };
    let blocked = stuck.blocked;
    let mut left = part.without_reads(part.until(blocked), blocked);
    let (mut starts, mut context) = (vec![model.initial(&part.key)], Vec::new());
    if let Some(cut) = part.cut(&left, blocked) {
        let (before, after) = split(&left, cut);
        let start = model.initial(&part.key);
        let finals = Search::new(model, start, before.clone(), limits).finals(MOST_STARTS);
        if let Some(finals) = finals {
            left = with_open(after, &before, &finals);
            starts = distinct(finals);
            context = before;
        }
    }
    part.counterexample(blocked, &left, &context, starts, &stuck.states)
}

impl<M: Model> Part<'_, M> {
    /// The operations that were called before the blocked one was answered. Operations answered
    /// later may have had no turn yet.
    fn until(&self, blocked: usize) -> Vec<Item<'_, M>> {
        let (end, _) = self.history[blocked].answer().expect("only what was answered has no place");
        items(self.model, self.history)
            .into_iter()
            .filter(|item| item.invoked <= end)
            .map(|item| Item { ended: item.ended.filter(|ended| *ended <= end), ..item })
            .filter(|item| item.ended.is_some() || !self.model.is_read(item.call, item.reply))
            .collect()
    }

    fn is_broken(&self, items: &[Item<'_, M>]) -> bool {
        let start = self.model.initial(&self.key);
        let found = Search::new(self.model, start, items.to_vec(), ATTEMPT).run();
        matches!(found, Found::Nothing(_))
    }

    /// Reads that are not needed for it are left out, many at a time at first (Zeller and
    /// Hildebrandt, *Simplifying and Isolating Failure-Inducing Input*, 2002). Only reads can be:
    /// without a write, other reads would seem wrong.
    fn without_reads<'b>(&self, mut left: Vec<Item<'b, M>>, blocked: usize) -> Vec<Item<'b, M>> {
        let is_spare =
            |item: &Item<'_, M>| item.place != blocked && self.model.is_read(item.call, item.reply);
        let mut attempts = 0;
        let mut size = left.len();
        while size > 0 && attempts < ATTEMPTS {
            let spare: Vec<usize> =
                left.iter().filter(|item| is_spare(item)).map(|item| item.place).collect();
            for chunk in spare.chunks(size) {
                let fewer: Vec<_> =
                    left.iter().filter(|item| !chunk.contains(&item.place)).cloned().collect();
                attempts += 1;
                if attempts <= ATTEMPTS && self.is_broken(&fewer) {
                    left = fewer;
                }
            }
            size /= 2;
        }
        left
    }

    /// The last moment up to the blocked one's call at which nothing that was answered was under
    /// way.
    fn cut(&self, left: &[Item<'_, M>], blocked: usize) -> Option<Time> {
        let mut calls: Vec<_> = left.iter().filter(|item| item.ended.is_some()).collect();
        calls.sort_by_key(|item| item.invoked);
        let (mut busy_until, mut cut) = (Time::ZERO, None);
        for (count, item) in calls.iter().enumerate() {
            if count > 0 && item.invoked > busy_until {
                cut = Some(item.invoked);
            }
            if item.place == blocked {
                break;
            }
            busy_until = busy_until.max(item.ended.expect("answered"));
        }
        cut
    }

    fn counterexample(
        &self,
        blocked: usize,
        left: &[Item<'_, M>],
        context: &[Item<'_, M>],
        starts: Vec<M::State>,
        stuck: &[M::State],
    ) -> Counterexample<M> {
        let mut places: Vec<usize> = left.iter().map(|item| item.place).collect();
        places.sort_by_key(|&place| self.history[place].invoked);
        let mut before: Vec<usize> =
            context.iter().map(|item| item.place).filter(|place| !places.contains(place)).collect();
        before.sort_by_key(|&place| self.history[place].invoked);
        let hidden = before.len().saturating_sub(CONTEXT);
        let shown = before[hidden..].iter().chain(&places);
        let bars: Vec<Bar> = shown.map(|&place| self.bar(place, blocked)).collect();
        let its = self.history[blocked];
        let (at, reply) = its.answer().expect("only what was answered has no place");
        let text = format!(
            "key {:?} is not linearizable: c{}'s `{}`, called at {} and answered at {at}, has no place\n\
             before this part ({} operations earlier) it holds {}; when this one must come at the latest, {}\n{}",
            self.key,
            its.client,
            self.model.tell(&its.call, Some(reply)),
            its.invoked,
            before.len(),
            either(&starts),
            either(stuck),
            draw(&bars, hidden),
        );
        let operations = places.iter().map(|&place| self.history[place].clone()).collect();
        Counterexample { key: self.key.clone(), operations, starts, blocked: its.clone(), text }
    }

    fn bar(&self, place: usize, blocked: usize) -> Bar {
        let operation = self.history[place];
        let answer = operation.answer();
        Bar {
            client: operation.client,
            begin: operation.invoked,
            end: answer.map(|(at, _)| at),
            words: self.model.tell(&operation.call, answer.map(|(_, reply)| reply)),
            marked: place == blocked,
        }
    }
}

/// The operations called before the cut, and the rest.
fn split<'a, M: Model>(left: &[Item<'a, M>], cut: Time) -> (Vec<Item<'a, M>>, Vec<Item<'a, M>>) {
    left.iter().cloned().partition(|item| item.invoked < cut)
}

/// The rest, with earlier operations that may still come.
fn with_open<'a, M: Model>(
    mut after: Vec<Item<'a, M>>,
    before: &[Item<'a, M>],
    finals: &[Final<M::State>],
) -> Vec<Item<'a, M>> {
    let open = |item: &&Item<'a, M>| finals.iter().any(|(_, open)| open.contains(&item.place));
    after.extend(before.iter().filter(open).cloned());
    after
}

fn distinct<S: PartialEq>(finals: Vec<Final<S>>) -> Vec<S> {
    let mut states = Vec::new();
    for (state, _) in finals {
        if !states.contains(&state) {
            states.push(state);
        }
    }
    states
}

/// States in words, of long ones the end: it is what differs.
fn either<S: fmt::Debug>(states: &[S]) -> String {
    let word = |state: &S| {
        let word = format!("{state:?}");
        let hidden = word.chars().count().saturating_sub(TOLD_LETTERS);
        match word.char_indices().nth(hidden) {
            Some((from, _)) if hidden > 0 => format!("..{}", &word[from..]),
            _ => word,
        }
    };
    let words: Vec<String> = states.iter().map(word).collect();
    words.join(" or ")
}
