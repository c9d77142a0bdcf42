//! Callers that use keys wrongly, or late: another call under the number of one that was made, and
//! the same call once more when it has been answered long ago, also after more than a day.

use bytes::Bytes;
use client::{CallError, CallId};
use wire::Duration;
use wire::client::Access;

use super::Passing;
use super::stray::Stray;
use crate::check::Verdict;
use crate::check::linearizable::Begun;
use crate::cluster::{Cluster, Extra};
use crate::customers::Terms;
use crate::draft::Draft;
use crate::service::{APPEND, arguments, identity};

/// Between two calls of this kind of one caller, on average.
const BETWEEN: Duration = Duration::from_millis(40);

/// Longer than any session lives.
const LEAP_MS: i64 = 25 * 3_600 * 1_000;

/// For the checkers: apart from all numbers of callers' own calls.
const FIRST: u64 = 1 << 40;

impl Cluster {
    /// When callers use keys wrongly, and when all clocks leap.
    pub(in crate::cluster) fn plan_strays(&mut self) {
        // Where handlers call, more calls would be more than they can do in time. And their calls
        // have no keys: they may be executed again after a leap.
        let nested = self.options.groups.iter().any(|plan| plan.callee.is_some());
        let Some(gateways) = &mut self.gateways else { return };
        if self.celling.is_some() || gateways.plan.strays == 0 || nested {
            return;
        }
        for caller in 0..gateways.callers() {
            let wait = gateways.draw.scale(Duration::from_millis(1), BETWEEN);
            self.fabric.later(wait, Extra::Passing(Passing::Stray(caller)));
        }
        if gateways.plan.leaps {
            let at = gateways.draw.scale(Duration::from_millis(100), self.options.faults.phase);
            self.fabric.later(at, Extra::Passing(Passing::Leap));
        }
    }

    /// A day and more passes at once on all wall clocks. Calls that are under way may be refused.
    pub(super) fn leap(&mut self) {
        if self.course.is_calm() {
            return;
        }
        for node in 0..self.options.nodes {
            self.fabric.jump(node, LEAP_MS);
        }
        let gateways = self.gateways.as_mut().expect("callers are there");
        for program in &mut gateways.programs {
            let name = program.name;
            let open: Vec<u64> = program.open.iter().copied().collect();
            for number in open {
                let call = program.calls.get_mut(&number).expect("an open call is kept");
                (call.strayed, call.must) = (true, false);
                let call = (call.group, name, number);
                self.watch.numbers.keys.disturbed(call);
            }
        }
        self.fabric.say(|| "a day and an hour pass at once".into());
    }

    /// A caller uses a key once more.
    pub(super) fn stray(&mut self, caller: usize) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        let gateways = self.gateways.as_mut().expect("a caller strays");
        let wait = gateways.draw.scale(BETWEEN / 8, BETWEEN);
        self.fabric.later(wait, Extra::Passing(Passing::Stray(caller)));
        let gateways = self.gateways.as_mut().expect("a caller strays");
        if !gateways.draw.one_in(gateways.plan.strays) {
            return Ok(());
        }
        let Some(stray) = gateways.draw_stray(caller) else { return Ok(()) };
        let program = &mut gateways.programs[caller];
        let (name, first) = (program.name, program.first);
        let call = program.calls.get_mut(&stray.number).expect("it was drawn");
        let key = (call.group, name, stray.number);
        let number = gateways.strays.len() as u64;
        if !stray.same {
            call.strayed = true;
            let what = (stray.draft.method, identity(stray.draft.method, &stray.draft.body));
            self.watch.numbers.keys.strayed(key, what);
            let Draft { method, body, .. } = stray.draft.clone();
            let (call, access) = (CallId(FIRST + number), Access::Change);
            let begun = Begun { call, group: key.0, method, body, access, binding: true };
            self.watch.begun(self.fabric.now(), first, &begun);
        }
        let serial = gateways.strays.len();
        gateways.strays.push(stray);
        let way = self.fabric.network.passage();
        self.fabric.later(way, Extra::Passing(Passing::Strayed(serial)));
        Ok(())
    }

    /// Such a call reaches its gateway.
    pub(super) fn strayed(&mut self, serial: usize) -> Verdict {
        let now = self.fabric.now();
        let Stray { caller, number, gateway, .. } = self.gateways().strays[serial];
        if self.is_stopped(gateway) || self.course.is_calm() {
            return Ok(()); // nobody misses it
        }
        let gateways = self.gateways();
        if !gateways.desks[gateway].runs {
            return Ok(());
        }
        let draft = gateways.strays[serial].draft.clone();
        let call = &gateways.programs[caller].calls[&number];
        let (group, key) = (call.group, call.key);
        let terms = Terms { must: false, key: Some(key) };
        gateways.desks[gateway].strayed(group, key);
        let begun = self.customers[gateway].begin(now, &draft, terms);
        self.gateways().stray_calls.insert((gateway, begun.call), serial);
        self.customer_ran(gateway)
    }

    /// A gateway has ended a call. True if it was one that had used a key once more.
    pub(super) fn stray_ended(
        &mut self,
        gateway: usize,
        call: CallId,
        result: &Result<Bytes, CallError>,
    ) -> Result<bool, crate::check::Violation> {
        let now = self.fabric.now();
        let gateways = self.gateways.as_mut().expect("a gateway has ended a call");
        let Some(serial) = gateways.stray_calls.remove(&(gateway, call)) else {
            return Ok(false);
        };
        let Stray { caller, number, ref draft, same, .. } = gateways.strays[serial];
        let program = &gateways.programs[caller];
        let (key, first) = ((program.calls[&number].group, program.name, number), program.first);
        let what = (draft.method, identity(draft.method, &draft.body));
        if !same {
            let call = CallId(FIRST + serial as u64);
            self.watch.linearizable.ended(now, first, call, result);
        }
        self.customers[gateway].done(now, call, result)?;
        self.watch.stray_ended(key, (!same).then_some(what), result)?;
        Ok(true)
    }
}

impl super::Gateways {
    /// Another call under a number that was used, or the same when it was answered long ago.
    fn draw_stray(&mut self, caller: usize) -> Option<Stray> {
        let same = self.draw.one_in(2);
        let program = &mut self.programs[caller];
        let fits = |call: &super::Counted| match same {
            true => call.answered && !call.draft.access.reads(),
            false => !call.must && !call.draft.access.reads(),
        };
        let last = program.next;
        let first = last.saturating_sub(wire::limits::MAX_SESSION_WINDOW);
        let numbers: Vec<u64> = program
            .calls
            .range(first..)
            .filter(|(_, call)| fits(call))
            .map(|(number, _)| *number)
            .collect();
        let number = *numbers.get(self.draw.count(0, numbers.len().max(1) - 1))?;
        let call = &program.calls[&number];
        let gateway = program.first + self.draw.count(0, self.plan.each - 1);
        let mut draft = call.draft.clone();
        if !same {
            let serial = self.strays.len().to_le_bytes();
            draft.method = APPEND;
            draft.body = arguments(9, &[&b"astray "[..], &serial[..]].concat());
        }
        draft.timeout = self.draw.scale(Duration::from_millis(5), Duration::from_millis(500));
        Some(Stray { caller, number, gateway, draft, same })
    }

    /// A gateway's life is over, and with it what it did.
    pub(super) fn forget_strays(&mut self, gateway: usize) -> Vec<CallId> {
        let of = (gateway, CallId(0))..=(gateway, CallId(u64::MAX));
        let calls: Vec<CallId> =
            self.stray_calls.range(of.clone()).map(|((_, call), _)| *call).collect();
        for call in &calls {
            self.stray_calls.remove(&(gateway, *call));
        }
        calls
    }
}
