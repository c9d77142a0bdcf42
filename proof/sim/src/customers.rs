//! Clients: sessions with a clock of their own, and their calls.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use client::{
    Balancing, CallError, CallId, Config, Invocation, Output, Policy, Reading, Refresh,
    RetryBudget, Session, Strategy,
};
use history::Model;
use history::models::{Register, RegisterCall};
use wire::client::{Access, Refusal};
use wire::{ClientId, Duration, GroupId, MethodId, Time};

use crate::check::linearizable::Begun;
use crate::check::shedding::CLASSES;
use crate::check::{Verdict, liveness};
use crate::clock::Clock;
use crate::draw::Draw;
use crate::options::{GroupPlan, Load};
use crate::registers::{KEYS, READ, VALUES, pack, unpack};
use crate::service::{APPEND, FAIL, MISSING, RELAY, arguments};

/// The port of node 1 is one higher.
const PORT: u16 = 7_000;

/// Where clients reach this node.
pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT + 1 + node as u16))
}

/// Which node has this address.
pub fn node_at(address: SocketAddr) -> usize {
    usize::from(address.port() - PORT - 1)
}

/// One client.
pub struct Customer {
    /// Its session.
    pub session: Session,
    /// Its budget of retries.
    pub retry_budget: RetryBudget,
    /// Its calls must be answered when all is well. Not if it never learns where its groups go on,
    /// or may hardly ask again.
    pub demanding: bool,
    /// Its use of targets, and the priority of its calls.
    pub policy: Policy,
    /// Its clock.
    pub clock: Clock,
    /// When its session is looked at next.
    pub wake: Option<Time>,
    /// Calls begun while faults happen.
    pub begun: usize,
    under_way: BTreeMap<CallId, Pending>,
    /// The word that it wrote last.
    written: u64,
    /// The values that it saw last in each group's registers.
    seen: BTreeMap<(GroupId, u64), u64>,
}

struct Pending {
    group: GroupId,
    words: String,
    deadline: Time,
    /// It changes nothing.
    reads: bool,
    /// It must be answered by the service, whatever happens.
    must: bool,
    /// Refusals of this client's calls when it began, for they are less critical than others.
    shed: u64,
    /// It calls another group.
    relays: bool,
    /// Its reply says what this register held.
    register: Option<(GroupId, u64)>,
}

impl Customer {
    /// A client that is given the addresses of some nodes.
    pub fn new(clock: Clock, nodes: usize, all: bool, draw: &mut Draw) -> Self {
        let given = if all { nodes } else { draw.count(1, nodes) };
        let client = ClientId(draw.bits());
        let addresses = draw.distinct(given, nodes).into_iter().map(address).collect();
        let mut config = Config::new(client, addresses, draw.bits());
        let any = draw.one_in(2);
        let (policy, retry_budget) = manners(any, &mut Draw::new(client.0));
        (config.policy, config.retry_budget) = (policy, retry_budget);
        let now = clock.local(Time::ZERO);
        let session = Session::new(config, now);
        Customer {
            session,
            retry_budget,
            policy,
            demanding: policy.strategy != Strategy::Static
                && retry_budget == RetryBudget::default(),
            clock,
            wake: None,
            begun: 0,
            under_way: BTreeMap::new(),
            written: 0,
            seen: BTreeMap::new(),
        }
    }

    /// Calls that have not ended.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Begins a call as the load says.
    pub fn call(&mut self, now: Time, groups: &[GroupPlan], load: &Load, draw: &mut Draw) -> Begun {
        let plan = draw.pick(groups);
        let group = plan.name.clone();
        let reads = plan.reads();
        let long = if draw.one_in(8) { load.body } else { load.body.min(64) };
        let filling = draw.between(0, long as u64) as u32;
        let rest = vec![draw.bits() as u8; draw.count(0, long)];
        let method = draw.pick(&[APPEND, APPEND, APPEND, APPEND, APPEND, APPEND, FAIL, MISSING]);
        let timeout = draw.pick(&[load.timeout, load.timeout * 4, load.longest]);
        self.begun += 1;
        let (method, body) = match draw.one_in(2) {
            true => self.register(GroupId::of(&group), draw),
            false => (method, arguments(filling, &rest)),
        };
        let relays = plan.callee.is_some() && draw.one_in(2);
        let (method, body) = match relays {
            true => (RELAY, arguments(filling, &rest)),
            false => (method, body),
        };
        let stale = Access::Stale { max_age_ms: draw.pick(&[1, 10, 50, 200]) };
        let ways = [Access::Change, Access::Read, Access::Read, stale, stale];
        let access = if method == READ && reads { draw.pick(&ways) } else { Access::Change };
        let begun = self.begin(now, &group, (method, body, access), (timeout, false));
        as_executed(begun, &plan)
    }

    /// A call of a register. No two clients write the same value, and each writes it once.
    fn register(&mut self, group: GroupId, draw: &mut Draw) -> (MethodId, Bytes) {
        let key = draw.between(0, KEYS - 1);
        let old = self.seen.get(&(group, key)).copied().unwrap_or_default();
        let mine = self.session.client().0 % (VALUES >> 10);
        self.written = (self.written % (1 << 10) + 1) | mine << 10;
        let call = match draw.between(0, 4) {
            0 | 1 => RegisterCall::Read(key),
            2 | 3 => RegisterCall::Write(key, self.written),
            _ => RegisterCall::Swap { key, old, new: self.written },
        };
        let (method, word) = pack(&call);
        (method, Bytes::copy_from_slice(&word.to_le_bytes()))
    }

    /// Begins a call that need not succeed: a fault is about it.
    pub fn ask(&mut self, now: Time, group: &str, timeout: Duration) -> Begun {
        let append = (APPEND, arguments(7, b"in the storm"), Access::Change);
        self.begin(now, group, append, (timeout, false))
    }

    /// Begins calls that must succeed: all is healed. One of them reads this register.
    pub fn demand(
        &mut self,
        now: Time,
        group: &GroupPlan,
        key: u64,
        timeout: Duration,
    ) -> Vec<Begun> {
        let access = if group.reads() { Access::Read } else { Access::Change };
        let (read, word) = pack(&RegisterCall::Read(key));
        let word = Bytes::copy_from_slice(&word.to_le_bytes());
        let rest = arguments(7, b"after the storm");
        let relay = group.callee.as_ref().map(|_| (RELAY, rest.clone(), Access::Change));
        let calls = [(APPEND, rest, Access::Change), (read, word, access)].into_iter().chain(relay);
        let begin = |call: (MethodId, Bytes, Access)| {
            // It waits for other groups, with less than its own time, or behind calls that do:
            // where a round takes long, the plain timeout is too short.
            let timeout = if group.callee.is_some() { timeout * 3 } else { timeout };
            as_executed(self.begin(now, &group.name, call, (timeout, true)), group)
        };
        calls.map(begin).collect()
    }

    fn begin(
        &mut self,
        now: Time,
        group: &str,
        (method, body, access): (MethodId, Bytes, Access),
        (timeout, must): (Duration, bool),
    ) -> Begun {
        let local = self.clock.local(now);
        let deadline = local + timeout;
        let invocation = Invocation::new(group, method).body(body.clone()).within(timeout);
        let invocation = match access {
            Access::Change => invocation,
            Access::Read => invocation.reading(Reading::Linearizable),
            Access::Stale { max_age_ms } => {
                invocation.reading(Reading::Stale(Duration::from_millis(max_age_ms.into())))
            }
        };
        let id = self.session.call(local, invocation);
        let words = format!("{id:?} of {} to {group}, begun at {now}", self.session.client());
        let deadline = self.clock.truth(deadline);
        let group = GroupId::of(group);
        let register = <[u8; 8]>::try_from(&body[..])
            .ok()
            .and_then(|word| unpack(method, u64::from_le_bytes(word)))
            .filter(|call| !matches!(call, RegisterCall::Write(..)))
            .map(|call| (group, Register.key(&call)));
        let relays = method == RELAY;
        let (must, shed) = (must && self.demanding, self.session.stats().shed);
        let reads = access.reads();
        let pending = Pending { group, words, deadline, reads, must, shed, relays, register };
        self.under_way.insert(id, pending);
        Begun { call: id, group, method, body, access, binding: !access.reads() }
    }

    /// Which group a call that has not ended is of, and whether it reads.
    pub fn of_call(&self, call: CallId) -> Option<(GroupId, bool)> {
        self.under_way.get(&call).map(|pending| (pending.group, pending.reads))
    }

    /// All has healed at `calm`: calls whose deadline is far enough must be answered, but for those
    /// of groups that may be `gone`.
    pub fn calm(&mut self, calm: Time, gone: &[GroupId]) {
        for pending in self.under_way.values_mut() {
            let stays = !gone.contains(&pending.group) && self.demanding;
            pending.must |= stays && pending.deadline >= calm + liveness::WITHIN;
        }
    }

    /// Nobody demands that this call is answered.
    pub fn excuse(&mut self, call: CallId) {
        if let Some(pending) = self.under_way.get_mut(&call) {
            pending.must = false;
        }
    }

    /// A call ended. True if the service answered.
    pub fn done(
        &mut self,
        now: Time,
        call: CallId,
        result: &Result<Bytes, CallError>,
    ) -> Result<bool, crate::check::Violation> {
        let Some(pending) = self.under_way.remove(&call) else {
            panic!("{call:?} ended, which is not under way: twice?");
        };
        if let (Some(register), Ok(bytes)) = (pending.register, result)
            && let Some(held) = bytes.last_chunk::<8>()
        {
            self.seen.insert(register, u64::from_le_bytes(*held));
        }
        let late: Verdict = liveness::ended(&pending.words, now.since(pending.deadline));
        late?;
        let error = match result {
            Err(CallError::Service(_)) if pending.must && pending.relays => {
                Some("the call of the other group has no reply".into())
            }
            Ok(_) | Err(CallError::Service(_)) => None,
            // Whether it may be is for the checker of shedding to judge.
            Err(CallError::Refused { refusal: Refusal::Shed, .. }) => None,
            // It may have been executed, so the refusal is not the end.
            Err(_) if self.session.stats().shed > pending.shed => None,
            // That it may say `Split` here is for the checker of votes to judge.
            // So is that it is poisonous, for theirs.
            Err(CallError::Refused {
                refusal: Refusal::NoSuchMethod | Refusal::Split | Refusal::Poisoned,
                ..
            }) => None,
            Err(error) => Some(error.to_string()),
        };
        let answered = error.is_none();
        if pending.must {
            liveness::answered(&pending.words, error)?;
        }
        Ok(answered)
    }

    /// The next thing that the session wants.
    pub fn poll(&mut self) -> Option<Output> {
        self.session.poll_output()
    }
}

/// A client's use of targets: backups are asked as well if `any` replica may be.
fn manners(any: bool, draw: &mut Draw) -> (Policy, RetryBudget) {
    use Balancing::{All, FirstReply, LeastLoaded, Majority, Random, TwoChoices};
    use Strategy::{Proactive, Reactive, Static};
    let period = Refresh::Periodic(draw.scale(Duration::from_millis(5), Duration::from_secs(2)));
    let one = draw.pick(&[Random, LeastLoaded, TwoChoices]);
    let policy = Policy::default()
        .strategy(draw.pick(&[Proactive, Proactive, Proactive, Reactive, Reactive, Static]))
        .refresh(draw.pick(&[Refresh::View, Refresh::View, Refresh::None, period]))
        .fail_back(draw.scale(Duration::from_millis(1), Duration::from_secs(1)));
    let few = RetryBudget::default().per_thousand(10).per_second(1).burst(1);
    let retry_budget = draw.pick(&[RetryBudget::default(), few]);
    let policy = policy.priority(draw.pick(&CLASSES));
    let every = draw.pick(&[FirstReply, Majority, All]);
    let balancing = match any {
        true if draw.one_in(3) => every,
        true => one,
        false => Balancing::Primary,
    };
    (policy.balancing(balancing), retry_budget)
}

/// A read that its group orders is in the history, like any other call.
fn as_executed(begun: Begun, group: &GroupPlan) -> Begun {
    let access = if group.orders_reads() { Access::Change } else { begun.access };
    Begun { access, ..begun }
}
