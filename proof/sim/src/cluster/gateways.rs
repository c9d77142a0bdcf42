//! Programs that count their calls and make each by several gateways, one after the other or at
//! once: a gRPC client with an interceptor does so (`examples/grpc/python/steadfast_keys.py`).
//!
//! A gateway is a client of the cluster with a session of the caller's name for each caller. It is
//! part of a node, and dies, hangs and comes back empty with it, or it runs beside its caller.

mod plan;
mod programs;
mod serving;
mod stray;
mod strays;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use client::{CallError, CallId, Key};
use wire::limits::MAX_SESSION_WINDOW;
use wire::{ClientId, Duration, GroupId, Time};

use crate::draft::{Draft, Drafts};
use crate::draw::Draw;
pub use plan::GatewayPlan;
use stray::Stray;

/// A caller waits no longer for an attempt before it makes another.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);

/// Happenings between callers and gateways. Attempts are counted over all callers.
pub(super) enum Passing {
    /// An attempt reaches its gateway.
    Presented(usize),
    /// The caller learns how an attempt has ended. `None`: its connection is gone.
    Told(usize, Option<Result<Bytes, CallError>>),
    /// The caller has waited long enough for an attempt.
    Impatient(usize),
    /// The gateway learns that its caller has cancelled an attempt.
    Cancelled(usize),
    /// The caller makes this call once more.
    Again { caller: usize, number: u64 },
    /// The caller gives this call up.
    GivenUp { caller: usize, number: u64 },
    /// A caller may use a key once more.
    Stray(usize),
    /// Such a call reaches its gateway.
    Strayed(usize),
    /// More than a day passes at once.
    Leap,
}

/// A program that counts its calls.
pub(super) struct Program {
    pub(super) name: ClientId,
    /// The place of its first gateway among the clients.
    pub(super) first: usize,
    /// Calls begun while faults happen.
    begun: usize,
    next: u64,
    pub(super) calls: BTreeMap<u64, Counted>,
    /// The numbers of its calls that have not ended for it.
    pub(super) open: BTreeSet<u64>,
    drafts: Drafts,
}

impl Program {
    /// The lowest number under way, as an interceptor tells it.
    fn oldest(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.next)
    }

    /// So many calls more may be begun.
    fn room(&self) -> usize {
        (MAX_SESSION_WINDOW - (self.next - self.oldest())) as usize
    }

    /// A call begins.
    fn begin(&mut self, draft: Draft, deadline: Time, turn: usize) -> Key {
        let number = self.next;
        self.next += 1;
        self.open.insert(number);
        let key = Key { number, unanswered: self.oldest() };
        let call = Counted {
            group: GroupId::of(&draft.group),
            draft,
            key,
            deadline,
            must: false,
            strayed: false,
            leaves: false,
            turn,
            tries: 0,
            newest: 0,
            pending: 0,
            unsure: false,
            answered: false,
        };
        self.calls.insert(number, call);
        key
    }
}

/// A call that its caller has counted.
pub(super) struct Counted {
    pub(super) draft: Draft,
    pub(super) group: GroupId,
    pub(super) key: Key,
    pub(super) deadline: Time,
    /// It must be answered by the service.
    must: bool,
    /// Its key was used for another call, too, or its session may be forgotten.
    strayed: bool,
    /// It is given up before its deadline.
    leaves: bool,
    /// The gateway of the next attempt.
    pub(super) turn: usize,
    pub(super) tries: u32,
    /// The last attempt. The caller goes on when it fails, or takes long.
    pub(super) newest: usize,
    /// Attempts of which nobody knows how they end.
    pub(super) pending: usize,
    /// An attempt may have been executed.
    unsure: bool,
    /// A gateway has the answer.
    answered: bool,
}

/// A call on its way by one gateway.
pub(super) struct Attempt {
    pub(super) caller: usize,
    pub(super) number: u64,
    /// The place of the gateway among the clients.
    pub(super) gateway: usize,
    /// The gateway's own name for it while it makes the call.
    pub(super) call: Option<CallId>,
}

/// A gateway's present life, for one caller.
pub(super) struct Desk {
    /// The node that it is a part of. `None`: it is beside its caller.
    home: Option<usize>,
    runs: bool,
    /// The attempts that came last, by their numbers.
    newest: BTreeMap<u64, usize>,
    /// Numbers that other calls had as well.
    strayed: BTreeSet<u64>,
    /// The largest number below which the caller wants no reply, as the gateway was told of each
    /// group.
    given_up: BTreeMap<GroupId, u64>,
}

impl Desk {
    fn new(home: Option<usize>) -> Desk {
        let (newest, strayed, given_up) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Desk { home, runs: home.is_none(), newest, strayed, given_up }
    }

    /// An attempt comes.
    pub(super) fn take(&mut self, attempt: usize, group: GroupId, key: Key) {
        self.newest.insert(key.number, attempt);
        let given_up = self.given_up.entry(group).or_default();
        *given_up = key.unanswered.max(*given_up);
    }

    /// Another call of this number came: it may end a former attempt.
    fn strayed(&mut self, group: GroupId, key: Key) {
        self.strayed.insert(key.number);
        let given_up = self.given_up.entry(group).or_default();
        *given_up = key.unanswered.max(*given_up);
    }

    /// Since this attempt came, its caller has repeated or given up the call here.
    fn is_over(&self, attempt: usize, group: GroupId, number: u64) -> bool {
        let given_up = self.given_up.get(&group).is_some_and(|given_up| number < *given_up);
        given_up || self.strayed.contains(&number) || self.newest.get(&number) != Some(&attempt)
    }
}

/// The callers and their gateways.
pub(super) struct Gateways {
    plan: GatewayPlan,
    pub(super) programs: Vec<Program>,
    pub(super) attempts: Vec<Attempt>,
    /// One for each client of the cluster.
    pub(super) desks: Vec<Desk>,
    /// The attempts that gateways make, by the gateway's own names.
    pub(super) served: BTreeMap<(usize, CallId), usize>,
    /// Calls that use a key once more, and those that gateways make.
    strays: Vec<Stray>,
    stray_calls: BTreeMap<(usize, CallId), usize>,
    draw: Draw,
}

impl Gateways {
    pub(super) fn new(plan: GatewayPlan, clients: usize, nodes: usize, mut draw: Draw) -> Gateways {
        let program = |first| {
            let name = ClientId(draw.bits());
            Program {
                name,
                first,
                begun: 0,
                next: 1,
                calls: BTreeMap::new(),
                open: BTreeSet::new(),
                drafts: Drafts::new(name),
            }
        };
        let programs = (0..clients).step_by(plan.each).map(program).collect();
        let desk = |_| {
            let beside = plan.beside > 0 && draw.one_in(plan.beside);
            Desk::new((!beside).then(|| draw.count(0, nodes - 1)))
        };
        let desks = (0..clients).map(desk).collect();
        let (attempts, served) = (Vec::new(), BTreeMap::new());
        let (strays, stray_calls) = (Vec::new(), BTreeMap::new());
        Gateways { plan, programs, attempts, desks, served, strays, stray_calls, draw }
    }

    /// Each node has a gateway for each caller: a node's router makes calls by it.
    pub(super) fn be_at_each_node(&mut self) {
        let each = self.plan.each;
        for (client, desk) in self.desks.iter_mut().enumerate() {
            *desk = Desk::new(Some(client % each));
        }
    }

    /// How long a caller waits for an attempt of a call that it has made so often.
    pub(super) fn patience(&self, tries: u32) -> Duration {
        (self.plan.patience * (1 << tries.min(16))).min(LONGEST_PATIENCE)
    }

    /// How many programs call.
    pub(super) fn callers(&self) -> usize {
        self.programs.len()
    }

    /// So many calls has the caller begun of which this client is a gateway.
    pub(super) fn begun(&self, client: usize) -> u64 {
        self.programs[client / self.plan.each].next - 1
    }

    /// The node that this client is a part of, or the first gateway of its caller, beside which it
    /// is.
    pub(super) fn home(&self, client: usize) -> Result<usize, usize> {
        let caller = client / self.plan.each;
        self.desks[client].home.ok_or(self.programs[caller].first)
    }

    /// Calls that have not ended for their callers.
    pub(super) fn open(&self) -> usize {
        self.programs.iter().map(|program| program.open.len()).sum()
    }

    /// Each caller may begin so many calls more.
    pub(super) fn have_room(&self, calls: usize) -> bool {
        self.programs.iter().all(|program| program.room() >= calls)
    }

    /// All has healed: calls whose deadline is at this time or later must be answered, but for
    /// those of groups that may be `gone`.
    pub(super) fn calm(&mut self, deadline: Time, gone: &[GroupId]) {
        for program in &mut self.programs {
            for number in &program.open {
                let call = program.calls.get_mut(number).expect("an open call is kept");
                call.must |= call.deadline >= deadline
                    && !call.leaves
                    && !call.strayed
                    && !gone.contains(&call.group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_the_lowest_number_under_way_and_has_a_window() {
        let plan = GatewayPlan {
            each: 2,
            beside: 0,
            patience: Duration::ZERO,
            cancels: 0,
            leaves: 0,
            delays: 0,
            strays: 0,
            leaps: false,
        };
        let mut gateways = Gateways::new(plan, 4, 3, Draw::new(1));
        assert_eq!((gateways.callers(), gateways.begun(3)), (2, 0));
        let program = &mut gateways.programs[1];
        let mut begin = || {
            program.begin(Draft::append("group-0", b"", Duration::ZERO), Time::ZERO, 0).unanswered
        };
        assert_eq!([begin(), begin(), begin()], [1, 1, 1]);
        program.open.remove(&1);
        assert_eq!(program.oldest(), 2);
        assert_eq!(program.room() as u64, MAX_SESSION_WINDOW - 2);
        assert_eq!((gateways.begun(2), gateways.open()), (3, 2));
    }

    #[test]
    fn an_attempt_is_over_when_its_call_is_repeated_or_given_up_there() {
        let group = GroupId(5);
        let mut desk = Desk::new(Some(1));
        desk.take(0, group, Key { number: 3, unanswered: 3 });
        assert!(!desk.is_over(0, group, 3));
        desk.take(1, group, Key { number: 3, unanswered: 3 });
        assert!(desk.is_over(0, group, 3) && !desk.is_over(1, group, 3));
        desk.take(2, GroupId(6), Key { number: 4, unanswered: 4 });
        assert!(!desk.is_over(1, group, 3), "a gateway knows of each group what it was told of it");
        desk.take(3, group, Key { number: 5, unanswered: 4 });
        assert!(desk.is_over(1, group, 3));
    }
}
