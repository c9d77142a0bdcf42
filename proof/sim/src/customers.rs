//! Clients: sessions with a clock of their own, and their calls.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::{
    Balancing, CallError, CallId, Config, Invocation, Key, Link, Output, Policy, Reading, Refresh,
    RetryBudget, Session, Strategy,
};
use wire::client::{Access, Refusal};
use wire::{Caller, ClientId, Duration, GroupId, Time};

use crate::check::linearizable::Begun;
use crate::check::shedding::CLASSES;
use crate::check::{Verdict, liveness};
use crate::clock::Clock;
use crate::draft::{Draft, Drafts, as_executed};
use crate::draw::Draw;
use crate::identity::address;
use crate::options::{GroupPlan, Load};
use crate::service::RELAY;

/// A client has no more connections, and no more in each of its lives.
const CONNECTIONS: u64 = 1_000_000;
const CONNECTIONS_OF_LIFE: u64 = 10_000;

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
    /// How many sessions it has had before.
    pub life: u64,
    /// Until then its process was stopped, and ended no call.
    pub stopped: Time,
    under_way: BTreeMap<CallId, Pending>,
    drafts: Drafts,
}

/// The demands on a call, and its number by its caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// It must be answered by the service, whatever happens.
    pub must: bool,
    /// Its number, if its caller counts calls.
    pub key: Option<Key>,
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
        Customer::of(config, clock, Time::ZERO)
    }

    /// A gateway's part in the session of a caller that counts its calls. It turns to the nodes in
    /// this order.
    pub fn gateway(
        clock: Clock,
        now: Time,
        caller: ClientId,
        nodes: &[usize],
        draw: &mut Draw,
    ) -> Self {
        let addresses = nodes.iter().copied().map(address).collect();
        let mut config = Config::new(caller, addresses, draw.bits());
        (config.keyed, config.in_order) = (true, true);
        let one = draw.pick(&[Balancing::Random, Balancing::LeastLoaded, Balancing::TwoChoices]);
        config.policy = config
            .policy
            .strategy(draw.pick(&[Strategy::Proactive, Strategy::Proactive, Strategy::Reactive]))
            .refresh(draw.pick(&[Refresh::View, Refresh::View, Refresh::None]))
            .balancing(if draw.one_in(3) { one } else { Balancing::Primary });
        Customer::of(config, clock, now)
    }

    fn of(config: Config, clock: Clock, now: Time) -> Self {
        let Config { client, policy, retry_budget, .. } = config;
        Customer {
            session: Session::new(config, clock.local(now)),
            retry_budget,
            policy,
            demanding: policy.strategy != Strategy::Static
                && retry_budget == RetryBudget::default(),
            clock,
            wake: None,
            begun: 0,
            life: 0,
            stopped: Time::ZERO,
            under_way: BTreeMap::new(),
            drafts: Drafts::new(client),
        }
    }

    /// The name of a connection of this client's session, which is the one of this place.
    pub fn connection(&self, place: usize, link: Link) -> Caller {
        Caller(place as u64 * CONNECTIONS + self.life * CONNECTIONS_OF_LIFE + link.0)
    }

    /// Calls that have not ended.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Begins a call as the load says.
    pub fn call(&mut self, now: Time, groups: &[GroupPlan], load: &Load, draw: &mut Draw) -> Begun {
        let (draft, plan) = self.drafts.next(groups, load, draw);
        self.begun += 1;
        as_executed(self.begin(now, &draft, Terms::default()), plan)
    }

    /// Begins a call that need not succeed: a fault is about it.
    pub fn ask(&mut self, now: Time, group: &str, timeout: Duration) -> Begun {
        self.begin(now, &Draft::append(group, b"in the storm", timeout), Terms::default())
    }

    /// Begins calls that must succeed: all is healed. One of them reads this register.
    pub fn demand(
        &mut self,
        now: Time,
        group: &GroupPlan,
        key: u64,
        timeout: Duration,
    ) -> Vec<Begun> {
        let terms = Terms { must: true, key: None };
        let drafts = Draft::demanded(group, key, timeout);
        drafts.iter().map(|draft| as_executed(self.begin(now, draft, terms), group)).collect()
    }

    /// Begins a call.
    pub fn begin(&mut self, now: Time, draft: &Draft, Terms { must, key }: Terms) -> Begun {
        let Draft { group, method, body, access, timeout } = draft.clone();
        let local = self.clock.local(now);
        let deadline = local + timeout;
        let invocation = Invocation::new(&group, method).body(body.clone()).within(timeout);
        let invocation = key.into_iter().fold(invocation, Invocation::keyed);
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
        let group = GroupId::of(&group);
        let register = draft.register();
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

    /// This call is given up: nobody hears how it ends.
    pub fn cancel(&mut self, now: Time, call: CallId) {
        if self.under_way.remove(&call).is_some() {
            self.session.cancel(self.clock.local(now), call);
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
        self.drafts.saw(pending.register, result);
        let late: Verdict =
            liveness::ended(&pending.words, now.since(pending.deadline.max(self.stopped)));
        late?;
        // It may have been executed, so the refusal is not the end.
        let is_shed = self.session.stats().shed > pending.shed
            && !matches!(result, Err(CallError::Service(_)));
        let error = shortfall(result, pending.must && pending.relays).filter(|_| !is_shed);
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

/// Why the service has not answered a call. `relays`: it must have called another group.
pub fn shortfall(result: &Result<Bytes, CallError>, relays: bool) -> Option<String> {
    match result {
        Err(CallError::Service(_)) if relays => {
            Some("the call of the other group has no reply".into())
        }
        Ok(_) | Err(CallError::Service(_)) => None,
        // Whether it may be is for the checker of shedding to judge. That it may say `Split` is for
        // the checker of votes to judge. So is that it is poisonous, for theirs.
        Err(CallError::Refused {
            refusal: Refusal::Shed | Refusal::NoSuchMethod | Refusal::Split | Refusal::Poisoned,
            ..
        }) => None,
        Err(error) => Some(error.to_string()),
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
