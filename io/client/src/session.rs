//! The machine: what goes in, and which part deals with it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use bytes::Bytes;
use wire::client::{Farewell, Frame, Refusal, Targets, Welcome};
use wire::limits::{
    MAX_ADDRESSES, MAX_BODY, MAX_CALL_BYTES, MAX_DEADLINE, MAX_GROUPS, MAX_NAME, MAX_QUEUED_CALLS,
};
use wire::ordered::call_digest;
use wire::path::Path;
use wire::versions::{CLIENT, VersionRange};
use wire::{ClientId, GroupId, Time, ViewNumber};

use crate::bug::{Bug, Planted};
use crate::call::{Call, Phase};
use crate::hedge::Hedging;
use crate::invocation::{DEFAULT_DEADLINE, Invocation, Key};
use crate::links::{Links, Overdue};
use crate::output::{CallId, Effects, Link, Output, Stats, Timer, Trouble};
use crate::policy::Policy;
use crate::retry_budget::{Credit, RetryBudget};
use crate::spread::Spread;
use crate::targets::{Asking, Group, Inquiry};
use crate::{CallError, ConnectError};

/// The settings of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The name of the session, drawn at random. No other session may ever have it.
    pub client: ClientId,
    /// The callers count the session's calls: each invocation has a key.
    pub keyed: bool,
    /// The addresses are tried in their order, and not from a random one on.
    pub in_order: bool,
    /// The client addresses of nodes: one that answers is enough, [`MAX_ADDRESSES`] the maximum.
    pub addresses: Vec<SocketAddr>,
    /// The seed of the jitter, and of all that the session draws.
    pub seed: u64,
    /// When the session asks a second replica of an active group.
    pub hedging: Hedging,
    /// The session's use of targets.
    pub policy: Policy,
    /// The policies of single groups, by name.
    pub group_policies: BTreeMap<String, Policy>,
    /// How often the session sends calls again.
    pub retry_budget: RetryBudget,
    /// The cell that is called, if it is another than that of the nodes at these addresses.
    pub cell: Option<Path>,
}

impl Config {
    /// The default settings, for the session of this name.
    pub fn new(client: ClientId, addresses: Vec<SocketAddr>, seed: u64) -> Config {
        Config {
            client,
            keyed: false,
            in_order: false,
            addresses,
            seed,
            hedging: Hedging::default(),
            policy: Policy::default(),
            group_policies: BTreeMap::new(),
            retry_budget: RetryBudget::default(),
            cell: None,
        }
    }
}

/// The first of these addresses, each once.
fn distinct(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut given = Vec::new();
    for address in addresses {
        if given.len() < MAX_ADDRESSES && !given.contains(&address) {
            given.push(address);
        }
    }
    given
}

/// Whether a session can reach any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A node has welcomed the session.
    Connected,
    /// Dials are under way, or the session had nothing to do yet.
    Trying,
    /// All addresses have failed. The session goes on trying while calls are under way.
    Failed(ConnectError),
}

/// A client's conversation with all the groups that it calls, without sockets and clock.
///
/// After every step, the driver does what [`poll_output`](Session::poll_output) says. It calls
/// [`handle_timeout`](Session::handle_timeout) at [`next_timeout`](Session::next_timeout).
#[derive(Debug)]
pub struct Session {
    pub(crate) client: ClientId,
    keyed: bool,
    pub(crate) hedging: Hedging,
    policy: Policy,
    group_policies: BTreeMap<String, Policy>,
    pub(crate) credit: Credit,
    pub(crate) links: Links,
    pub(crate) groups: BTreeMap<GroupId, Group>,
    pub(crate) calls: BTreeMap<CallId, Call>,
    pub(crate) effects: Effects,
    /// The search for any node at all, before there are calls.
    pub(crate) opening: Inquiry,
    next_call: u64,
    /// Calls without a number.
    pub(crate) queued: usize,
    /// Bytes of all calls' arguments.
    bytes: usize,
    pub(crate) planted: Planted,
}

impl Session {
    /// Makes a session that knows only addresses.
    pub fn new(config: Config, now: Time) -> Session {
        Session::numbered(config, now, 0)
    }

    /// The same. Its calls and connections have numbers from `first` on.
    pub(crate) fn numbered(config: Config, now: Time, first: u64) -> Session {
        let mut effects = Effects::new(config.seed);
        let mut given = distinct(config.addresses);
        // Clients that are given the same list do not all turn to the same node.
        if !given.is_empty() && !config.in_order {
            let first = effects.random.below(given.len() as u64) as usize;
            given.rotate_left(first);
        }
        Session {
            client: config.client,
            keyed: config.keyed,
            hedging: config.hedging,
            policy: config.policy,
            group_policies: config.group_policies,
            credit: Credit::new(config.retry_budget, now),
            links: Links::new(config.client, config.cell, given, first),
            groups: BTreeMap::new(),
            calls: BTreeMap::new(),
            effects,
            opening: Inquiry::default(),
            next_call: first + 1,
            queued: 0,
            bytes: 0,
            planted: Planted::default(),
        }
    }

    /// Plants a mistake that the simulator must find.
    pub fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    #[cfg(test)]
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    #[cfg(test)]
    pub(crate) fn set_policy_of(&mut self, group: &str, policy: Policy) {
        self.group_policies.insert(group.into(), policy);
    }

    /// The name of the session.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// Looks for a node before the first call.
    pub fn connect(&mut self, now: Time) {
        if self.opening.state == Asking::Settled && !self.links.any_ready() {
            self.ask_next(now, None);
        }
    }

    /// Whether the session can reach any node.
    pub fn reach(&self) -> Reach {
        if self.links.any_ready() {
            return Reach::Connected;
        }
        if !self.links.all_failed() {
            return Reach::Trying;
        }
        Reach::Failed(match self.links.other_version() {
            _ if self.links.given.is_empty() => ConnectError::NoAddress,
            Some(theirs) => ConnectError::Version { theirs },
            None => ConnectError::Unreachable(self.links.describe()),
        })
    }

    /// Begins a call. [`Output::Done`] tells how it ends, also if it could not be begun.
    pub fn call(&mut self, now: Time, mut invocation: Invocation<'_>) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.effects.stats.calls += 1;
        let deadline = now + invocation.deadline.unwrap_or(DEFAULT_DEADLINE);
        if let Err(error) = self.check_call(now, &invocation, deadline) {
            return self.refuse(id, error);
        }
        let name: &str = &invocation.group;
        let group = GroupId::of(name);
        let policy = self.policy_of(name);
        let record = self.groups.entry(group).or_insert_with(|| Group::new(name, policy));
        if self.planted.is(Bug::SendOtherCall) {
            record.asked.clear();
        }
        let digest = || call_digest(invocation.method, invocation.json, &invocation.body);
        let over = match invocation.key.map(|key| record.take_key(key, digest())) {
            Some(Err(error)) => return self.refuse(id, error),
            over => over.and_then(Result::ok).unwrap_or_default(),
        };
        if let Some(key) = &mut invocation.key
            && self.planted.is(Bug::GatewayRenumbers)
            && !over.is_empty()
        {
            key.number = record.next_number.max(key.number);
        }
        record.queue.insert(id, invocation.key);
        let balancing = invocation.balancing.unwrap_or(record.policy.balancing);
        self.credit.earn();
        self.queued += 1;
        self.bytes += invocation.body.len();
        self.calls.insert(id, Call::new(group, invocation, balancing, deadline));
        self.effects.timers.set(Timer::Call(id), deadline);
        for call in over {
            self.done(call, Err(CallError::Repeated));
            if self.planted.is(Bug::RepeatedEndsBoth) {
                self.done(id, Err(CallError::Repeated));
                return id;
            }
        }
        self.admit(now, group);
        if self.calls[&id].phase == Phase::Queued {
            if self.queued > MAX_QUEUED_CALLS {
                self.done(id, Err(CallError::TooManyCalls));
            } else if self.groups[&group].targets.nodes.is_empty() {
                self.inquire(now, group);
            }
        }
        id
    }

    pub(crate) fn policy_of(&self, group: &str) -> Policy {
        self.group_policies.get(group).copied().unwrap_or(self.policy)
    }

    /// These are the nodes to ask from now on.
    pub(crate) fn give(&mut self, now: Time, addresses: impl IntoIterator<Item = SocketAddr>) {
        let given = distinct(addresses);
        if self.links.given == given {
            return;
        }
        self.links.given = given;
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            if self.groups[&id].inquiry.state == Asking::Pausing {
                self.ask_next(now, Some(id));
            }
        }
    }

    /// There is no such cell: calls end that cannot have been executed.
    pub(crate) fn give_up_all(&mut self, now: Time) {
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            if self.groups.contains_key(&id) {
                self.give_up(now, id);
            }
        }
    }

    /// A call that cannot be begun, before it has a name.
    pub(crate) fn refuse_call(&mut self, error: CallError) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.effects.stats.calls += 1;
        self.refuse(id, error)
    }

    /// A call that cannot be begun.
    fn refuse(&mut self, id: CallId, error: CallError) -> CallId {
        let (result, answers) = (Err(error), Vec::new());
        self.effects.outputs.push_back(Output::Done { call: id, result, answers });
        id
    }

    /// Begins a call that goes to all replicas, whatever its group's policy says.
    ///
    /// It waits for all of them, or for as many as the invocation's [`Balancing`](crate::Balancing)
    /// says. [`Output::Done`] tells what each has said.
    pub fn gather(&mut self, now: Time, invocation: Invocation<'_>) -> CallId {
        self.call(now, invocation.for_all())
    }

    fn check_call(
        &mut self,
        now: Time,
        invocation: &Invocation<'_>,
        deadline: Time,
    ) -> Result<(), CallError> {
        let (name, body): (&str, &Bytes) = (&invocation.group, &invocation.body);
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(CallError::NoSuchGroup(name.into()));
        }
        if invocation.key.is_some() != self.keyed {
            let reason = "a session takes either calls with a key or calls without: \
                          `Builder::session` makes a client for those with one";
            let (refusal, reason) = (Refusal::BadArguments, reason.into());
            return Err(CallError::Refused { refusal, reason });
        }
        if let Some(Err(reason)) = invocation.key.map(Key::check) {
            return Err(CallError::Refused { refusal: Refusal::Window, reason });
        }
        if body.len() > MAX_BODY {
            let reason = format!(
                "{} bytes of arguments, the limit is {MAX_BODY}: send them in parts",
                body.len()
            );
            return Err(CallError::Refused { refusal: Refusal::TooLarge, reason });
        }
        if deadline <= now {
            return Err(CallError::DeadlineExceeded);
        }
        if deadline.since(now) > MAX_DEADLINE {
            return Err(CallError::DeadlineTooLong(deadline.since(now)));
        }
        match self.groups.get(&GroupId::of(name)) {
            // Two names with one hash: the group that the cluster has is the other one, or none.
            Some(group) if group.name != name => {
                return Err(CallError::NoSuchGroup(name.into()));
            }
            None if self.groups.len() >= MAX_GROUPS => return Err(CallError::TooManyCalls),
            _ => {}
        }
        if self.bytes + body.len() > MAX_CALL_BYTES {
            return Err(CallError::TooManyCalls);
        }
        Ok(())
    }

    /// Gives a call up: it ends without [`Output::Done`]. A replica may still execute it.
    pub fn cancel(&mut self, now: Time, call: CallId) {
        if let Some(group) = self.calls.get(&call).map(|call| call.group) {
            self.remove(call);
            self.admit(now, group);
        }
    }

    /// The driver made a connection that the session asked for.
    pub fn handle_connected(&mut self, _now: Time, link: Link) {
        self.links.connected(link, &mut self.effects);
    }

    /// A connection failed, or ended.
    pub fn handle_disconnected(&mut self, now: Time, link: Link) {
        let trouble = self.links.trouble_of_loss(link);
        self.lose(now, link, trouble);
    }

    /// A connection is of no use, for a reason that only the driver knows.
    pub fn handle_failed(&mut self, now: Time, link: Link, trouble: Trouble) {
        self.lose(now, link, trouble);
    }

    /// A frame came. If it makes no sense, its node counts as lost.
    pub fn handle_frame(&mut self, now: Time, link: Link, frame: Frame) {
        if self.links.get(link).is_none() {
            return;
        }
        self.links.heard(now, link, &mut self.effects);
        let ready = self.links.is_ready(link);
        match frame {
            Frame::Welcome(Welcome { version, .. }) if !CLIENT.contains(version) => {
                let theirs = VersionRange { least: version, greatest: version };
                self.drop_link(now, link, Trouble::Version(theirs));
            }
            Frame::Welcome(Welcome { cluster, .. }) if !self.links.is_meant(&cluster) => {
                self.drop_link(now, link, Trouble::Elsewhere(cluster));
            }
            Frame::Welcome(Welcome { node, version, .. }) => {
                if self.links.welcomed(now, link, (node, version), &mut self.effects) {
                    self.use_link(now, link);
                } else {
                    self.drop_link(now, link, Trouble::Confused);
                }
            }
            Frame::Farewell(Farewell { speaks, .. }) if CLIENT.common(speaks).is_none() => {
                self.drop_link(now, link, Trouble::Version(speaks));
            }
            Frame::Farewell(Farewell { reason, .. }) => {
                self.drop_link(now, link, Trouble::TurnedAway(reason));
            }
            Frame::Bound(bound) if ready => self.handle_bound(now, link, bound),
            Frame::News(bound) if ready => self.handle_news(now, bound),
            Frame::Reply(reply) if ready => self.handle_reply(now, link, reply),
            _ => self.drop_link(now, link, Trouble::Confused),
        }
    }

    /// Does what is due at this time.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.effects.timers.take_due(now) {
            match timer {
                Timer::Call(id) => self.call_due(now, id),
                Timer::Hedge(id) => self.hedge_due(now, id),
                Timer::Link(link) => self.link_due(now, link),
                Timer::Inquiry(topic) => self.inquiry_due(now, topic),
                Timer::Warm(group) => self.keep_warm(now, group),
                Timer::Refresh(group) => self.refresh_due(now, group),
            }
        }
    }

    /// The next time at which the driver must call `handle_timeout`.
    pub fn next_timeout(&self) -> Option<Time> {
        self.effects.timers.next()
    }

    /// Takes the next thing that the driver must do or know.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.effects.outputs.pop_front()
    }

    /// Counters since the session began.
    pub fn stats(&self) -> Stats {
        self.effects.stats
    }

    /// The view of a group, and the connections whose nodes tell of newer ones.
    ///
    /// `None` means that the session does not call the group.
    pub fn watched(&self, group: GroupId) -> Option<(ViewNumber, &BTreeSet<Link>)> {
        self.groups.get(&group).map(|group| (group.view(), &group.watched))
    }

    /// The targets of a group that the session calls.
    pub fn targets(&self, group: GroupId) -> Option<&Targets> {
        self.groups.get(&group).map(|group| &group.targets)
    }

    /// The number of calls that have not ended.
    pub fn under_way(&self) -> usize {
        self.calls.len()
    }

    fn link_due(&mut self, now: Time, link: Link) {
        let needed = self.is_needed(now, link);
        match self.links.overdue(now, link, needed, &mut self.effects) {
            Overdue::Not => {}
            Overdue::Silent => self.drop_link(now, link, Trouble::Silent),
            Overdue::Idle => {
                self.links.close(now, link, None, &mut self.effects);
                self.unwatch(link);
                self.effects.outputs.push_back(Output::Disconnect { link });
            }
        }
    }

    fn is_needed(&self, now: Time, link: Link) -> bool {
        let Some(address) = self.links.get(link).map(|connection| connection.address) else {
            return false;
        };
        let asked =
            |asking: Asking| matches!(asking, Asking::Asked { address: a, .. } if a == address);
        self.calls.values().any(|call| call.trail.attempts().iter().any(|a| a.link == link))
            || self.groups.values().any(|group| {
                asked(group.inquiry.state) || group.warm(now, &self.links).contains(&address)
            })
    }

    /// Closes a connection that is of no use, and turns elsewhere.
    fn drop_link(&mut self, now: Time, link: Link, trouble: Trouble) {
        self.effects.outputs.push_back(Output::Disconnect { link });
        self.lose(now, link, trouble);
    }

    fn lose(&mut self, now: Time, link: Link, trouble: Trouble) {
        let Some(lost) = self.links.close(now, link, Some(trouble), &mut self.effects) else {
            return;
        };
        self.unwatch(link);
        // Calls first: they have no time to lose; dials for those to come may wait.
        self.lose_attempts(now, link);
        let asked = |asking: Asking| matches!(asking, Asking::Asked { address, .. } if address == lost.address);
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            if asked(self.groups[&id].inquiry.state) {
                self.ask_next(now, Some(id));
            }
            self.keep_warm(now, id);
        }
        if asked(self.opening.state) {
            self.ask_next(now, None);
        }
    }

    /// A connection is closed: nobody tells of newer views there.
    fn unwatch(&mut self, link: Link) {
        for group in self.groups.values_mut() {
            group.watched.remove(&link);
        }
    }

    /// Takes a call out of all tables. False if it has ended before.
    pub(crate) fn remove(&mut self, id: CallId) -> bool {
        let Some(call) = self.calls.remove(&id) else { return false };
        self.effects.timers.clear(Timer::Call(id));
        self.effects.timers.clear(Timer::Hedge(id));
        self.bytes -= call.content.body.len();
        let group = self.groups.get_mut(&call.group).expect("a call's group is kept");
        if call.phase == Phase::Queued {
            group.queue.remove(&id);
            self.queued -= 1;
        } else {
            group.active.remove(&call.number);
        }
        self.forget_if_unused(call.group);
        true
    }

    /// Names that no cluster knows leave nothing behind.
    pub(crate) fn forget_if_unused(&mut self, id: GroupId) {
        let unused = |group: &Group| !group.bound && group.is_forgettable();
        if self.groups.get(&id).is_some_and(unused) {
            self.groups.remove(&id);
            self.effects.timers.clear(Timer::Inquiry(Some(id)));
            self.effects.timers.clear(Timer::Warm(id));
            self.effects.timers.clear(Timer::Refresh(id));
        }
    }

    /// Asserts what must hold between any two steps, for tests and simulation.
    ///
    /// # Panics
    /// If it does not hold. That is a bug of the session.
    pub fn check_invariants(&self) {
        self.links.check_invariants(&self.effects);
        assert!(self.groups.len() <= MAX_GROUPS && self.queued <= MAX_QUEUED_CALLS);
        assert_eq!(
            self.bytes,
            self.calls.values().map(|call| call.content.body.len()).sum::<usize>()
        );
        let listed: usize = self.groups.values().map(|g| g.active.len() + g.queue.len()).sum();
        assert_eq!(listed, self.calls.len());
        for (id, group) in &self.groups {
            group.check_invariants(*id);
            let open = |link: &Link| self.links.is_ready(*link);
            assert!(group.watched.iter().all(open), "{id} is watched nowhere");
            let asking = group.inquiry.state != Asking::Settled;
            assert_eq!(asking, self.effects.timers.is_set(Timer::Inquiry(Some(*id))));
            let lost = !group.queue.is_empty() && group.targets.nodes.is_empty();
            assert!(!lost || asking, "queued calls of {id} are forgotten");
        }
        for (id, call) in &self.calls {
            assert!(self.effects.timers.is_set(Timer::Call(*id)), "{id:?} can hang");
            let mut links = call.trail.links();
            assert!(links.iter().all(|link| self.links.get(*link).is_some()));
            links.sort_unstable();
            links.dedup();
            assert_eq!(
                links.len(),
                call.trail.attempts().len(),
                "{id:?} is twice on one connection"
            );
            assert_eq!(call.phase == Phase::Queued, call.number == 0);
            call.spread.iter().for_each(Spread::check_invariants);
        }
    }
}
