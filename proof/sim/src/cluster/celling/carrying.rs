//! The wishes of routers, and what they are told.

use cells::{Made, Output};
use wire::system::CELL_ID;
use wire::{Duration, Member, Time};

use super::seen::targets;
use super::{Celled, Desk, Letter, Life, Mail, Parcel};
use crate::check::{Verdict, Violation};
use crate::cluster::{Cluster, Extra};
use crate::fabric::node_id;
use crate::strike::Relief;

/// Corrections of the book that were not taken are given again after this time, and a timer that is
/// due again at once waits so long: as in `io/celld`.
const CORRECT_AGAIN: Duration = Duration::from_millis(250);
const BREATH: Duration = Duration::from_millis(1);

impl Cluster {
    /// The cluster is a cell: its trace says so, and its gateways are its nodes'.
    pub(in crate::cluster) fn begin_cell(&mut self, aloud: bool) {
        let celling = self.celling.as_ref().expect("it is a cell");
        if aloud {
            self.fabric.trace.set_place(celling.plan.path.to_string());
        }
        let gateways = self.gateways.as_mut().expect("calls are executed by gateways");
        gateways.be_at_each_node();
        self.watch.promise.called(CELL_ID);
    }

    /// Takes what leaves the cell.
    pub(crate) fn take_mail(&mut self) -> Vec<Mail> {
        self.celling.as_mut().map(|celling| std::mem::take(&mut celling.mail)).unwrap_or_default()
    }

    /// Something reaches a life of a node, at this true time.
    pub(super) fn send_parcel(&mut self, at: Time, node: usize, life: Life, parcel: Parcel) {
        self.fabric.deliver(at, node, Extra::Parcel(parcel, life));
    }

    /// A router is told something.
    pub(in crate::cluster) fn deliver_parcel(
        &mut self,
        node: usize,
        parcel: Parcel,
        life: Life,
    ) -> Verdict {
        if self.fabric.hosts[node].incarnation != life {
            return Ok(());
        }
        let (at, now, wall) = (self.fabric.now(), self.fabric.local(node), self.fabric.wall(node));
        let celling = self.celling.as_mut().expect("it has a router");
        let desk = &mut celling.desks[node];
        let parents_at = &celling.plan.parents_at;
        match parcel {
            Parcel::LinkUp(link, proven) => desk.touch(parents_at, wall, |router, sight| {
                router.handle_link_up(now, link, Some(proven), sight);
            }),
            Parcel::LinkDown(link) => desk.touch(parents_at, wall, |router, sight| {
                router.handle_link_down(now, link, sight);
            }),
            Parcel::Message(link, message) => desk.touch(parents_at, wall, |router, sight| {
                router.handle_message(now, link, message, sight);
            }),
            Parcel::Executed(call, end) => desk.touch(parents_at, wall, |router, sight| {
                router.handle_executed(call, end, sight);
            }),
            Parcel::Asked(asked) => {
                desk.next_caller += 1;
                let token = desk.next_caller;
                desk.callers.insert(token, (asked.cell, asked.serial));
                let caller = Some("client-sim".into());
                let made = Made { to: asked.to, call: asked.call, left: asked.left, caller };
                desk.touch(parents_at, wall, |router, sight| {
                    router.call(now, token, made, sight);
                });
            }
            Parcel::Due => {
                desk.is_touched |= desk.wake.take_if(|wake| *wake <= at).is_some();
            }
        }
        Ok(())
    }

    /// A router that was told something looks at the whole, and what it wants is done. True if the
    /// node was told something.
    pub(in crate::cluster) fn carry_on(&mut self, node: usize) -> Result<bool, Violation> {
        if self.celling.is_none() || self.fabric.hosts[node].process.is_none() {
            return Ok(false);
        }
        let (now, wall) = (self.fabric.local(node), self.fabric.wall(node));
        let me = self.fabric.member(node);
        let mut tells = false;
        loop {
            self.show(node);
            let celling = self.celling.as_mut().expect("it was there");
            let (at, plan) = (celling.links_at(node), &celling.plan);
            let desk = &mut celling.desks[node];
            if !desk.is_touched {
                return Ok(tells);
            }
            desk.touch(&plan.parents_at, wall, |router, sight| router.look(now, sight));
            let mut corrections = desk.seen.corrections(me, at, &plan.exports);
            if desk.correct_at > now {
                corrections.clear();
            } else if !corrections.is_empty() {
                desk.correct_at = now + CORRECT_AGAIN;
            }
            desk.is_touched = false;
            tells |= !corrections.is_empty();
            for command in corrections {
                self.order(node, None, &command);
            }
            tells |= self.act(node, me)?;
            self.set_timer(node);
        }
    }

    /// The router sees what its node has to show.
    fn show(&mut self, node: usize) {
        let (now, wall) = (self.fabric.local(node), self.fabric.wall(node));
        let celling = self.celling.as_mut().expect("it has a router");
        let desk = &mut celling.desks[node];
        let stack = self.fabric.hosts[node].process.as_ref().expect("it runs");
        if !std::mem::take(&mut desk.is_news) {
            return;
        }
        let status = stack.status();
        let Desk { seen, book, .. } = desk;
        seen.see(&status, book);
        desk.is_touched = true;
        let groups: Vec<String> = desk.located.keys().cloned().collect();
        for group in groups {
            let Some(found) = targets(&status, &group) else { continue };
            let known = desk.located.get_mut(&group).expect("it was there");
            if known.as_ref() != Some(&found) {
                *known = Some(found.clone());
                desk.touch(&celling.plan.parents_at, wall, |router, sight| {
                    router.handle_located(now, &group, found, sight);
                });
            }
        }
    }

    /// Does what the router wants done. True if the node was told something.
    fn act(&mut self, node: usize, me: Member) -> Result<bool, Violation> {
        let (at, mut tells) = (self.fabric.now(), false);
        loop {
            let celling = self.celling.as_mut().expect("it has a router");
            let desk = &mut celling.desks[node];
            let Some(output) = desk.router.poll_output() else { return Ok(tells) };
            match output {
                Output::Dial { link, to, .. } => celling.post(at, me, Letter::Dial { link, to }),
                Output::Close(link) => celling.post(at, me, Letter::Close(link)),
                Output::Send { link, message, .. } => {
                    celling.post(at, me, Letter::Send { link, message });
                }
                Output::Order { ask, command } => {
                    tells = true;
                    self.order(node, Some(ask), &command);
                }
                Output::Locate(group) => {
                    desk.located.insert(group, None);
                    desk.is_news = true;
                }
                Output::Forget(group) => _ = desk.located.remove(&group),
                Output::Execute { call, request, left, .. } => {
                    self.execute_carried(node, call, request, left)?;
                }
                Output::Ended { token, end } => {
                    if let Some((cell, serial)) = desk.callers.remove(&token) {
                        celling.post(at, me, Letter::Told { cell, serial, end: Some(end) });
                    }
                }
                // Nobody asks here for other cells' groups.
                Output::Found { .. } => {}
                Output::Event(event) => {
                    self.fabric.note(21, node, [0, 0]);
                    self.fabric.say(|| format!("the router of {} says {event:?}", node_id(node)));
                }
            }
        }
    }

    fn set_timer(&mut self, node: usize) {
        let (at, now, wall) = (self.fabric.now(), self.fabric.local(node), self.fabric.wall(node));
        let me = self.fabric.member(node);
        let celling = self.celling.as_mut().expect("it has a router");
        let (links_at, plan) = (celling.links_at(node), &celling.plan);
        let desk = &mut celling.desks[node];
        let sight = desk.seen.sight(&plan.parents_at, wall);
        let corrects = !desk.seen.corrections(me, links_at, &plan.exports).is_empty();
        let correct = corrects.then_some(desk.correct_at);
        let due = desk.router.next_timeout(now, &sight).into_iter().chain(correct).min();
        let Some(due) = due else { return };
        let due = self.fabric.hosts[node].clock.truth(due).max(at + BREATH);
        if desk.wake.is_none_or(|wake| wake <= at || due < wake) {
            desk.wake = Some(due);
            self.send_parcel(due, node, me.incarnation, Parcel::Due);
        }
    }

    /// A life ends, and its router with it.
    pub(in crate::cluster) fn end_carrying(&mut self, node: usize, power: bool) {
        let (at, me) = (self.fabric.now(), self.fabric.member(node));
        let Some(celling) = &mut self.celling else { return };
        let callers = std::mem::take(&mut celling.desks[node].callers);
        for (cell, serial) in callers.into_values().filter(|_| !power) {
            celling.post(at, me, Letter::Told { cell, serial, end: None });
        }
        celling.post(at, me, Letter::Ended { power });
        celling.desks[node] = Desk::new(&celling.plan, node, celling.plant);
    }

    /// The system does something to its cell.
    pub(in crate::cluster) fn celled(&mut self, celled: Celled) -> Verdict {
        match celled {
            Celled::Told(serial, end) => return self.told_by_door(serial, end),
            Celled::Stop(span) => {
                self.disturb_gap();
                for node in 0..self.options.nodes {
                    if !self.course.is_calm() && self.fabric.hosts[node].runs() {
                        self.fabric.pause(node);
                        self.fabric.later(span, Extra::Relief(Relief::Resume(node)));
                    }
                }
            }
            Celled::Lose if !self.course.is_calm() && self.options.keeps_all() => {
                return self.black_out();
            }
            Celled::Lose => {}
        }
        Ok(())
    }
}
