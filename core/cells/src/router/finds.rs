//! Questions for groups of other cells: asked here, passing through, and answered here.
//!
//! A question goes up until a cell knows the name, and down to a cell that exports it (P3;
//! `stheno.txt`, 3.2, "The Discovery Service"). The way of an answer is kept for a while: a change
//! of what was answered goes the same way.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use wire::client::Targets;
use wire::path::{Name, Path, Scope};
use wire::{Duration, Time};

use super::asks::Asks;
use super::links::Links;
use super::sight::Sight;
use super::ways::{course_by, next_hops};
use crate::bug::{Bug, Planted};
use crate::command::{Command, Record};
use crate::limits::{MAX_CARRIED, MAX_HOPS};
use crate::message::{Course, Find, Message};
use crate::output::{LinkId, Output, Outputs};

/// A question of this cell's own that has no answer is asked again after this time.
const PATIENCE: Duration = Duration::from_millis(500);

/// Changes of an answer are told for so long.
const WATCHED: Duration = Duration::from_secs(10);

/// Where a question came from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    /// The book of this cell.
    Book,
    /// A caller of this cell, with this token.
    Here(u64),
    /// By this link, with this number.
    Link(LinkId, u64),
}

/// A question under way, or answered a while ago.
#[derive(Clone, Debug)]
struct Question {
    from: From,
    find: Find,
    began: Time,
    until: Time,
    /// Links that it was sent by.
    tried: Vec<LinkId>,
    by: Option<LinkId>,
    /// This cell's own group is the answer.
    is_here: bool,
    is_answered: bool,
}

/// All questions of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Finds {
    questions: BTreeMap<u64, Question>,
    /// Groups of this cell that somebody asks for, as they are now.
    located: BTreeMap<String, Option<Targets>>,
    next: u64,
    planted: Planted,
}

/// The fields that the handlers of questions may touch.
pub(super) struct FindHandler<'a, 'b> {
    pub(super) finds: &'a mut Finds,
    pub(super) links: &'a Links,
    pub(super) out: &'a mut Outputs,
    pub(super) asks: &'a mut Asks,
    pub(super) up: Option<LinkId>,
    pub(super) sight: &'a Sight<'b>,
}

impl Finds {
    pub(super) fn with_bug(planted: Planted) -> Finds {
        Finds { planted, ..Finds::default() }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.questions.values().map(|question| question.until).min()
    }

    fn is_asked(&self, name: &Name) -> bool {
        let own = self.questions.values().filter(|it| it.from == From::Book);
        own.into_iter().any(|it| it.find.name == *name && !it.is_answered)
    }
}

impl FindHandler<'_, '_> {
    /// Asks what the book wants to know, and forgets what is over.
    pub(super) fn look(&mut self, now: Time) {
        let over = |(_, question): &(&u64, &Question)| question.until <= now;
        let over: Vec<u64> = self.finds.questions.iter().filter(over).map(|(id, _)| *id).collect();
        for id in over {
            self.finds.questions.remove(&id);
        }
        self.forget();
        if !self.sight.is_seat() {
            return;
        }
        for name in self.sight.cell.wanted() {
            if !self.finds.is_asked(name) {
                let (name, hops, left) = (name.clone(), MAX_HOPS, PATIENCE);
                let find = Find { id: 0, name, left, hops, course: Course::default() };
                self.begin(now, From::Book, find);
            }
        }
    }

    /// A caller of this cell asks, or asks anew.
    pub(super) fn ask_here(&mut self, now: Time, token: u64, name: Name) {
        self.finds.questions.retain(|_, question| question.from != From::Here(token));
        let (hops, left, course) = (MAX_HOPS, PATIENCE, Course::default());
        self.begin(now, From::Here(token), Find { id: 0, name, left, hops, course });
    }

    /// A neighbour asks.
    pub(super) fn find(&mut self, now: Time, link: LinkId, mut find: Find) {
        // A cell above says so by being there.
        let own = self.sight.cell.path();
        find.course.is_down |= self.links.path_of(link).is_some_and(|from| own.is_below(from));
        self.begin(now, From::Link(link, find.id), find);
    }

    fn begin(&mut self, now: Time, from: From, find: Find) {
        if self.finds.questions.len() >= MAX_CARRIED || find.hops == 0 {
            return self.tell(&from, None);
        }
        self.finds.next += 1;
        let (id, until) = (self.finds.next, now + find.left);
        let is_here = self.is_here(&from, &find);
        let group = find.name.group.clone();
        let question = Question {
            from,
            find,
            began: now,
            until,
            tried: Vec::new(),
            by: None,
            is_here,
            is_answered: false,
        };
        self.finds.questions.insert(id, question);
        if !is_here {
            return self.ask(now, id);
        }
        match self.finds.located.get(&group) {
            Some(targets) => {
                let targets = targets.clone();
                self.answer(now, id, targets);
            }
            None => self.out.push(Output::Locate(group)),
        }
    }

    /// The answer is a group of this cell.
    fn is_here(&self, from: &From, find: &Find) -> bool {
        let (cell, group) = (self.sight.cell, &find.name.group);
        match &find.name.scope {
            Scope::Cell(path) => path == cell.path(),
            // An asker in this cell has found none here.
            Scope::Upwards => matches!(from, From::Link(..)) && cell.exports(group),
            Scope::Nearest => cell.exports(group),
        }
    }

    /// Asks the next cell that may know.
    fn ask(&mut self, now: Time, id: u64) {
        let Some(question) = self.finds.questions.get(&id) else { return };
        let back = match question.from {
            From::Link(link, _) => Some(link),
            From::Book | From::Here(_) => None,
        };
        let ways = self.ways(&question.find, back);
        let Some(question) = self.finds.questions.get_mut(&id) else { return };
        let next = ways.into_iter().find(|link| !question.tried.contains(link));
        let Some(link) = next else { return self.conclude(now, id, None) };
        question.tried.push(link);
        question.by = Some(link);
        let find = Find {
            id,
            left: question.until.since(now),
            hops: question.find.hops - 1,
            course: course_by(question.find.course, link, self.sight, self.links),
            ..question.find.clone()
        };
        self.out.control(link, Message::Find(find));
    }

    /// The links by which somebody may know, in order.
    fn ways(&self, find: &Find, back: Option<LinkId>) -> Vec<LinkId> {
        if let Scope::Cell(path) = &find.name.scope {
            let ways = next_hops(path, find.course, self.sight, self.links, self.up);
            return ways.into_iter().filter(|link| Some(*link) != back).collect();
        }
        let from = back.and_then(|link| self.links.path_of(link));
        let below = self.sight.cell.exporters(&find.name.group);
        let below = below.into_iter().filter(|path| Some(*path) != from);
        let mut ways: Vec<LinkId> = below.filter_map(|path| self.links.to(path).next()).collect();
        let course = find.course;
        ways.extend(self.up.filter(|_| !course.is_down));
        ways.extend(self.links.to(self.sight.cell.path()).filter(|_| course.may_go_beside()));
        ways.retain(|link| Some(*link) != back);
        ways
    }

    /// A neighbour has answered.
    pub(super) fn found(&mut self, now: Time, link: LinkId, id: u64, found: Option<Record>) {
        let Some(question) = self.finds.questions.get(&id) else { return };
        if question.by != Some(link) {
            return;
        }
        if found.is_none() && !question.is_answered {
            return self.ask(now, id);
        }
        let is_within = |path: &Path| self.sight.cell.path().is_of_system(path);
        if found.as_ref().is_some_and(|record| !is_within(&record.cell)) {
            return;
        }
        self.conclude(now, id, found);
    }

    /// The targets of a group of this cell, as they are now.
    pub(super) fn located(&mut self, now: Time, group: &str, targets: Option<Targets>) {
        let is_asked = |question: &Question| question.is_here && question.find.name.group == group;
        let asked: Vec<u64> = self
            .finds
            .questions
            .iter()
            .filter(|(_, question)| is_asked(question))
            .map(|(id, _)| *id)
            .collect();
        if self.finds.planted.is(Bug::KeepLocated) && self.finds.located.contains_key(group) {
            return;
        }
        if !asked.is_empty() {
            self.finds.located.insert(group.into(), targets.clone());
        }
        for id in asked {
            self.answer(now, id, targets.clone());
        }
    }

    fn answer(&mut self, now: Time, id: u64, targets: Option<Targets>) {
        let cell = self.sight.cell.path().clone();
        let found = targets.map(|targets| Record { cell, targets });
        self.conclude(now, id, found);
    }

    /// Tells the answer. Its changes go the same way, for a while.
    fn conclude(&mut self, now: Time, id: u64, found: Option<Record>) {
        let Some(question) = self.finds.questions.get_mut(&id) else { return };
        let (from, find, was_answered) =
            (question.from.clone(), question.find.clone(), question.is_answered);
        // It was so when it was asked, or later: no clock of another cell is needed for that.
        let age = now.since(question.began);
        if found.is_some() && (from != From::Book || !was_answered) {
            question.is_answered = true;
            question.until = question.until.max(now + WATCHED);
        } else {
            self.finds.questions.remove(&id);
        }
        match from {
            // It has changed: only a new question tells how old the answer is.
            From::Book if was_answered => {
                self.begin(now, From::Book, Find { left: PATIENCE, ..find })
            }
            From::Book => {
                let hides = self.finds.planted.is(Bug::HideAge);
                let age = if hides { Duration::ZERO } else { age };
                let as_of = Time(self.sight.wall.0.saturating_sub(nanos(age)));
                self.asks.order(self.out, Command::Learn { name: find.name, found, as_of }, None);
            }
            asker => self.tell(&asker, found),
        }
    }

    fn tell(&mut self, to: &From, found: Option<Record>) {
        match *to {
            From::Here(token) => self.out.push(Output::Found { token, found }),
            From::Link(link, id) if self.links.get(link).is_some() => {
                self.out.control(link, Message::Found { id, found });
            }
            From::Link(..) | From::Book => {}
        }
    }

    /// A link is gone: what was asked by it is asked elsewhere.
    pub(super) fn lost(&mut self, now: Time, link: LinkId) {
        let from = |question: &Question| matches!(question.from, From::Link(it, _) if it == link);
        self.finds.questions.retain(|_, question| !from(question));
        let by = |(_, it): &(&u64, &Question)| it.by == Some(link);
        let by: Vec<(u64, bool)> = self
            .finds
            .questions
            .iter()
            .filter(by)
            .map(|(id, question)| (*id, question.is_answered))
            .collect();
        for (id, is_answered) in by {
            if is_answered {
                self.finds.questions.remove(&id);
            } else {
                self.ask(now, id);
            }
        }
        self.forget();
    }

    /// Nobody asks for these groups any more.
    fn forget(&mut self) {
        let Finds { questions, located, .. } = &mut *self.finds;
        let is_asked = |group: &str| {
            questions.values().any(|question| question.is_here && question.find.name.group == group)
        };
        let over: Vec<String> = located.keys().filter(|group| !is_asked(group)).cloned().collect();
        for group in over {
            located.remove(&group);
            self.out.push(Output::Forget(group));
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
