//! Finding a group's targets, and what is done with the news.

use std::collections::BTreeSet;
use std::time::Duration;

use wire::client::{Bound, Frame, Targets, Watch};
use wire::{GroupId, Time};

use crate::CallError;
use crate::attempts::PAUSE;
use crate::bug::Bug;
use crate::call::{Call, Phase};
use crate::hedge::Hedging;
use crate::links::backoff;
use crate::output::{CallId, Cause, Event, Link, Timer};
use crate::policy::{News, Strategy};
use crate::session::Session;
use crate::targets::{Asking, Group, Inquiry, Source};

/// A node that is asked for a group's targets has this long before the next is asked as well.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_millis(100);

impl Session {
    /// A node has welcomed the client: what waited for that goes out.
    pub(crate) fn use_link(&mut self, now: Time, link: Link) {
        let connected = self.links.get(link).expect("a welcomed link is open").address;
        self.send_waiting(now, link);
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        ids.into_iter().for_each(|id| self.watch(now, id));
        for (id, group) in &mut self.groups {
            if group.inquiry.state == (Asking::Asked { address: connected, sent: false }) {
                group.inquiry.state = Asking::Asked { address: connected, sent: true };
                self.effects.timers.set(Timer::Inquiry(Some(*id)), now + ASK_TIMEOUT);
                self.effects.ask(link, group.name.clone());
            }
        }
        self.opening = Inquiry::default();
        self.effects.timers.clear(Timer::Inquiry(None));
    }

    /// Finds out a group's targets, if that is not under way.
    pub(crate) fn inquire(&mut self, now: Time, id: GroupId) {
        if self.groups[&id].inquiry.state == Asking::Settled {
            self.ask_next(now, Some(id));
        }
    }

    pub(crate) fn ask_next(&mut self, now: Time, topic: Option<GroupId>) {
        let nobody = Targets::default();
        let (inquiry, targets, name) = match topic {
            Some(id) => {
                let group = self.groups.get_mut(&id).expect("only known groups are asked for");
                let targets = if group.is_place() { &nobody } else { &group.targets };
                (&mut group.inquiry, targets, Some(&group.name))
            }
            None => (&mut self.opening, &nobody, None),
        };
        let timer = Timer::Inquiry(topic);
        while let Some(source) = inquiry.next_source(now, &self.links, targets) {
            let (address, sent) = match source {
                Source::Connected(link, address) => {
                    if let Some(name) = name {
                        self.effects.ask(link, name.clone());
                    }
                    (address, true)
                }
                Source::ToDial(address) => {
                    if self.links.open(now, address, &mut self.effects).is_none() {
                        continue;
                    }
                    (address, false)
                }
            };
            inquiry.state = Asking::Asked { address, sent };
            self.effects.timers.set(timer, now + ASK_TIMEOUT);
            return;
        }
        inquiry.asked.clear();
        inquiry.state = Asking::Pausing;
        let pause = backoff(inquiry.rounds, PAUSE, &mut self.effects);
        inquiry.rounds = inquiry.rounds.saturating_add(1);
        self.effects.timers.set(timer, now + pause);
        if let Some(id) = topic {
            self.groups.get_mut(&id).expect("it was asked for").doubt = true;
            self.give_up_on_version(now, id);
            self.resume(now, id);
        }
    }

    pub(crate) fn inquiry_due(&mut self, now: Time, topic: Option<GroupId>) {
        let Some(id) = topic else {
            return self.ask_next(now, None);
        };
        let Some(group) = self.groups.get_mut(&id) else { return };
        if let Asking::Asked { address, sent: true } = group.inquiry.state
            && let Some(link) = self.links.ready_at(address)
        {
            // The question doubles as the one after the node's life.
            self.links.suspect(now, link, &mut self.effects);
        }
        let known = !group.targets.nodes.is_empty() && !group.doubt;
        if group.is_idle() || known {
            group.inquiry.state = Asking::Settled;
        } else {
            self.ask_next(now, topic);
        }
    }

    pub(crate) fn handle_bound(&mut self, now: Time, link: Link, bound: Bound) {
        let id = bound.group;
        let Some(group) = self.groups.get_mut(&id) else { return };
        let address = self.links.get(link).expect("frames come on open links").address;
        let asked = group.inquiry.state == (Asking::Asked { address, sent: true });
        if asked {
            self.links.served(link);
        }
        match bound.targets {
            Some(targets) => {
                self.learn(now, id, targets, News::Asked);
                if asked {
                    self.resume(now, id);
                    self.settle(now, id);
                }
                self.admit(now, id);
            }
            None if asked => {
                if group.deny() {
                    self.settle(now, id);
                    self.give_up(now, id);
                } else {
                    self.ask_next(now, Some(id));
                }
            }
            // Nothing is under way that the node's word could end.
            None if group.followed && group.is_idle() => _ = group.deny(),
            // The answer to a question after a node's life: that it came is all.
            None => {}
        }
    }

    /// A question was answered. Without a target to go to, others are asked after a pause.
    fn settle(&mut self, now: Time, id: GroupId) {
        let group = self.groups.get_mut(&id).expect("only known groups are asked for");
        if group.targets.nodes.is_empty() && !group.is_idle() {
            group.inquiry.state = Asking::Pausing;
            let pause = backoff(group.inquiry.rounds, PAUSE, &mut self.effects);
            group.inquiry.rounds = group.inquiry.rounds.saturating_add(1);
            self.effects.timers.set(Timer::Inquiry(Some(id)), now + pause);
        } else {
            group.inquiry.state = Asking::Settled;
            self.effects.timers.clear(Timer::Inquiry(Some(id)));
        }
    }

    /// Targets were told. If they are news, all calls of the group go where they should be.
    pub(crate) fn learn(&mut self, now: Time, id: GroupId, targets: Targets, news: News) {
        let group = self.groups.get_mut(&id).expect("targets are told of known groups");
        let (view, known) = (group.view(), group.targets.nodes.clone());
        if !group.learn(targets, news) {
            return;
        }
        if group.view() > view {
            // A node that comes back lives. Calls to a new primary would else wait for half a second.
            let come = group.targets.nodes.iter().filter(|target| !known.contains(target));
            come.for_each(|target| self.links.forgive(now, target.address));
        }
        let group = &self.groups[&id];
        if let Some(period) = group.policy.period()
            && !self.effects.timers.is_set(Timer::Refresh(id))
        {
            let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
            let first = Duration::from_nanos(self.effects.random.below(nanos));
            self.effects.timers.set(Timer::Refresh(id), now + first);
        }
        let group = &self.groups[&id];
        let first = group.targets.nodes.first().map(|target| target.address);
        self.effects.event(Event::View { group: id, view: group.view(), first });
        let calls: Vec<CallId> = group.active.values().copied().collect();
        for call in calls {
            self.reroute(now, call);
        }
        self.keep_warm(now, id);
        let group = &self.groups[&id];
        if group.targets.nodes.is_empty() && !group.queue.is_empty() {
            self.inquire(now, id);
        }
    }

    /// A proactive client asks the targets that it keeps connected to tell it of newer views: one
    /// that lives when another fails will know.
    fn watch(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        if group.policy.strategy != Strategy::Proactive {
            return;
        }
        for address in group.warm(now, &self.links) {
            let Some(link) = self.links.ready_at(address) else { continue };
            if group.watched.insert(link) {
                let watch = Watch { group: id, view: group.view() };
                self.effects.send(link, Frame::Watch(watch));
            }
        }
    }

    /// A node that was asked to tells of a newer view.
    pub(crate) fn handle_news(&mut self, now: Time, bound: Bound) {
        if let Some(targets) = bound.targets
            && self.groups.contains_key(&bound.group)
        {
            self.learn(now, bound.group, targets, News::Pushed);
            self.admit(now, bound.group);
        }
    }

    /// A question has been answered: calls that waited for that before they go on do so, by what is
    /// known now.
    fn resume(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.groups.get(&id) else { return };
        let calls: Vec<CallId> = group.active.values().copied().collect();
        for call in calls {
            let asks = |call: &Call| call.phase == Phase::Pausing && call.asks;
            if self.calls.get(&call).is_some_and(asks) {
                self.call_due(now, call);
            }
        }
    }

    /// Numbers and sends what waits, as far as targets are known and the window permits.
    pub(crate) fn admit(&mut self, now: Time, id: GroupId) {
        let without_end = self.planted.is(Bug::HedgeWithoutEnd);
        let per_thousand = if without_end { 1_000 } else { self.hedging.per_thousand };
        let hedging = Hedging { per_thousand, ..self.hedging };
        let admit = |group: &mut Group| group.admit(&hedging);
        while let Some((call, number)) = self.groups.get_mut(&id).and_then(admit) {
            self.queued -= 1;
            self.calls.get_mut(&call).expect("a queued call is kept").number = number;
            self.attempt(now, call, Cause::Redirected);
        }
    }

    /// Connects the first targets before they are needed.
    pub(crate) fn keep_warm(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.groups.get(&id) else { return };
        for address in group.warm(now, &self.links) {
            // At the limit of connections the target is dialled when it is needed.
            let _ = self.links.open(now, address, &mut self.effects);
        }
        self.watch(now, id);
        let Some(group) = self.groups.get(&id) else { return };
        let first = group.targets.nodes.iter().take(group.warm_places());
        let again = first.filter_map(|t| self.links.avoided_until(t.address, now)).min();
        match again {
            Some(at) => self.effects.timers.set(Timer::Warm(id), at),
            None => self.effects.timers.clear(Timer::Warm(id)),
        }
    }

    /// The group does not exist: its calls end, except those that may have been executed.
    pub(crate) fn give_up(&mut self, now: Time, id: GroupId) {
        let group = &self.groups[&id];
        let error = CallError::NoSuchGroup(group.name.clone());
        let calls: BTreeSet<CallId> =
            group.active.values().chain(group.queue.keys()).copied().collect();
        for call in calls {
            if !self.calls[&call].may_be_executed() {
                self.done(call, Err(error.clone()));
            }
        }
        self.forget_if_unused(id);
        self.admit(now, id);
    }

    /// Waiting does not help if every node speaks another version.
    fn give_up_on_version(&mut self, now: Time, id: GroupId) {
        let Some(theirs) = self.links.only_other_versions() else { return };
        let queue: Vec<CallId> = self.groups[&id].queue.keys().copied().collect();
        for call in queue {
            self.done(call, Err(CallError::Version { theirs }));
        }
        self.admit(now, id);
    }
}
