//! Which target a call goes to.

use std::net::SocketAddr;

use wire::{GroupId, Time};

use crate::output::{CallId, Timer};
use crate::policy::{Balancing, any_answers};
use crate::session::Session;
use crate::targets::Group;

impl Session {
    /// The target that a call goes to next, if one is left that it has not tried in this round.
    pub(crate) fn choose(&mut self, now: Time, id: CallId) -> Option<SocketAddr> {
        let call = &self.calls[&id];
        let group = &self.groups[&call.group];
        let best = || group.best(now, &self.links, call.trail.tried());
        if let Some(instead) = self.instead(now, id).filter(|_| call.trail.last().is_none()) {
            return Some(instead);
        }
        // A target that declined may decline each time: in some groups only the primary answers
        // reads, and clients do not know which.
        let Some(balancing) = self.one_of(id).filter(|_| call.trail.last().is_none()) else {
            return best();
        };
        let mut fit = group.fit(now, &self.links, call.trail.tried());
        if fit.is_empty() {
            return best();
        }
        let mut draw = |fit: &mut Vec<SocketAddr>| {
            let place = self.effects.random.below(fit.len() as u64) as usize;
            fit.swap_remove(place)
        };
        if balancing == Balancing::Random {
            return Some(draw(&mut fit));
        }
        let candidates = match balancing {
            Balancing::TwoChoices if fit.len() > 2 => vec![draw(&mut fit), draw(&mut fit)],
            _ => fit,
        };
        let load = |address: &SocketAddr| self.load(now, group, *address);
        // Among equals the first wins, by rank or as drawn.
        candidates.into_iter().min_by_key(load)
    }

    /// The rule by which this call goes to one of several replicas that may answer it.
    fn one_of(&self, id: CallId) -> Option<Balancing> {
        let call = &self.calls[&id];
        let style = self.groups[&call.group].targets.style;
        let spreads = call.balancing == Balancing::Primary || call.balancing.replies().is_some();
        (!spreads && any_answers(style, call.access.reads())).then_some(call.balancing)
    }

    /// This client's own estimate of a target's load: nanoseconds until one more call would be
    /// answered. No node reports it, so it costs nothing, is never old, and includes the way there.
    /// Load from other clients shows in how long the target takes to answer.
    fn load(&self, now: Time, group: &Group, address: SocketAddr) -> u64 {
        let there = |call: &&CallId| self.calls[*call].trail.is_at(address);
        let under_way = group.active.values().filter(there).count() as u64;
        group.answer_time(now, address).saturating_mul(under_way + 1)
    }

    /// Returns the better target of a call after a change of targets; `None` if its present one is
    /// as good as any.
    pub(crate) fn better_place(&self, now: Time, id: CallId) -> Option<SocketAddr> {
        let call = &self.calls[&id];
        let group = &self.groups[&call.group];
        let known = |address| group.targets.nodes.iter().any(|target| target.address == address);
        let stays = self.one_of(id).is_some() || call.sent_on || self.instead(now, id).is_some();
        if stays && call.trail.attempts().iter().any(|a| known(a.address)) {
            return None;
        }
        let best = group.best(now, &self.links, &[])?;
        (!call.trail.is_at(best)).then_some(best)
    }

    /// The time has come to ask for newer targets, of any connected node.
    pub(crate) fn refresh_due(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.groups.get(&id) else { return };
        let Some(period) = group.refresh_period() else { return };
        let ready = self.links.ready();
        if !ready.is_empty() {
            let place = self.effects.random.below(ready.len() as u64) as usize;
            let name = group.name.clone();
            self.effects.stats.refreshes += 1;
            self.effects.ask(ready[place].0, name);
        } else if group.followed {
            self.inquire(now, id);
        }
        self.effects.timers.set(Timer::Refresh(id), now + period);
    }
}
