//! The machine: what goes in, and which part deals with it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use bytes::Bytes;
use wire::client::{Access, Farewell, Frame, Refusal, Targets, Welcome};
use wire::limits::{
    MAX_ADDRESSES, MAX_BODY, MAX_CALL_BYTES, MAX_DEADLINE, MAX_GROUPS, MAX_NAME, MAX_QUEUED_CALLS,
};
use wire::{ClientId, GroupId, MethodId, PROTOCOL_VERSION, Time, ViewNumber};

use crate::bug::Planted;
use crate::call::{Call, Phase};
use crate::hedge::Hedging;
use crate::links::{Links, Overdue};
use crate::output::{CallId, Effects, Link, Output, Reading, Stats, Timer, Trouble};
use crate::policy::{Budget, Choice, Policy, Replies, Retries};
use crate::spread::Spread;
use crate::targets::{Asking, Group, Inquiry};
use crate::{CallError, ConnectError};

/// What a session begins with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The session's name, drawn at random: no other session may ever have it.
    pub client: ClientId,
    /// Where nodes take clients. One that answers is enough. At most [`MAX_ADDRESSES`] are used.
    pub addresses: Vec<SocketAddr>,
    /// Decides the jitter, and which address is asked first.
    pub seed: u64,
    /// When a second replica of an active group is asked.
    pub hedging: Hedging,
    /// What is done with targets.
    pub policy: Policy,
    /// The same of single groups, by name.
    pub of_groups: BTreeMap<String, Policy>,
    /// How often calls are sent again.
    pub retries: Retries,
}

impl Config {
    /// Default knobs for the session of this name.
    pub fn new(client: ClientId, addresses: Vec<SocketAddr>, seed: u64) -> Config {
        Config {
            client,
            addresses,
            seed,
            hedging: Hedging::default(),
            policy: Policy::default(),
            of_groups: BTreeMap::new(),
            retries: Retries::default(),
        }
    }
}

/// What is called, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct What {
    pub(crate) method: MethodId,
    /// The arguments and the result are JSON.
    pub(crate) json: bool,
    pub(crate) access: Access,
    /// All replicas are asked, whatever the policy says, and so many are waited for.
    pub(crate) replies: Option<Replies>,
}

impl What {
    /// A call that may change something, as the policy says.
    pub(crate) fn call(method: MethodId, json: bool) -> What {
        What { method, json, access: Access::Change, replies: None }
    }
}

/// Whether the session can reach any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A node has welcomed it.
    Connected,
    /// Dials are under way, or nothing was asked of the session yet.
    Trying,
    /// Each address that was given has failed. It goes on trying while calls are under way.
    Failed(ConnectError),
}

/// A client's conversation with all groups that it calls, without sockets and clock.
///
/// Whoever drives it does what [`poll_output`](Session::poll_output) says after every step, and
/// calls [`handle_timeout`](Session::handle_timeout) at [`next_timeout`](Session::next_timeout).
#[derive(Debug)]
pub struct Session {
    pub(crate) client: ClientId,
    pub(crate) hedging: Hedging,
    policy: Policy,
    of_groups: BTreeMap<String, Policy>,
    pub(crate) budget: Budget,
    pub(crate) links: Links,
    pub(crate) groups: BTreeMap<GroupId, Group>,
    pub(crate) calls: BTreeMap<CallId, Call>,
    pub(crate) effects: Effects,
    /// The search for any node at all, before there are calls.
    pub(crate) opening: Inquiry,
    next_call: u64,
    /// Calls without a number.
    pub(crate) queued: usize,
    /// Of all calls' arguments.
    bytes: usize,
    pub(crate) planted: Planted,
}

impl Session {
    /// A session that knows nothing but its addresses.
    pub fn new(config: Config, now: Time) -> Session {
        let mut effects = Effects::new(config.seed);
        let mut given = Vec::new();
        for address in config.addresses {
            if given.len() < MAX_ADDRESSES && !given.contains(&address) {
                given.push(address);
            }
        }
        // Clients that are given the same list do not all turn to the same node.
        if !given.is_empty() {
            let first = effects.random.below(given.len() as u64) as usize;
            given.rotate_left(first);
        }
        Session {
            client: config.client,
            hedging: config.hedging,
            policy: config.policy,
            of_groups: config.of_groups,
            budget: Budget::new(config.retries, now),
            links: Links::new(config.client, given),
            groups: BTreeMap::new(),
            calls: BTreeMap::new(),
            effects,
            opening: Inquiry::default(),
            next_call: 1,
            queued: 0,
            bytes: 0,
            planted: Planted::default(),
        }
    }

    /// Plants a mistake.
    pub fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    #[cfg(test)]
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    #[cfg(test)]
    pub(crate) fn set_policy_of(&mut self, group: &str, policy: Policy) {
        self.of_groups.insert(group.into(), policy);
    }

    /// The session's name.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// Looks for a node before there is a call to make.
    pub fn connect(&mut self, now: Time) {
        if self.opening.state == Asking::Settled && !self.links.any_ready() {
            self.ask_next(now, None);
        }
    }

    /// Whether any node can be reached.
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

    /// Begins a call that must end by `deadline`. Its end is told by [`Output::Done`], which also
    /// tells if it could not be begun.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a plain fact of a call, none is optional"
    )]
    pub fn call(
        &mut self,
        now: Time,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        deadline: Time,
    ) -> CallId {
        self.begin(now, group, What::call(method, json), body, deadline)
    }

    /// Begins a call that all replicas of the group are asked, whatever its policy says: until there are so many `replies`. [`Output::Done`] tells what each has
    /// said.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a plain fact of a call, none is optional"
    )]
    pub fn gather(
        &mut self,
        now: Time,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        replies: Replies,
        deadline: Time,
    ) -> CallId {
        let what = What { replies: Some(replies), ..What::call(method, json) };
        self.begin(now, group, what, body, deadline)
    }

    /// The same of a method that changes nothing (`&self` in its service's trait): it is answered without ordering. A method
    /// that may change something is refused ([`Refusal::NotReadOnly`]).
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a plain fact of a call, none is optional"
    )]
    pub fn read(
        &mut self,
        now: Time,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        reading: Reading,
        deadline: Time,
    ) -> CallId {
        let what = What { access: reading.into(), ..What::call(method, json) };
        self.begin(now, group, what, body, deadline)
    }

    pub(crate) fn begin(
        &mut self,
        now: Time,
        group: &str,
        what: What,
        body: Bytes,
        deadline: Time,
    ) -> CallId {
        let What { method, json, access, replies } = what;
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.effects.stats.calls += 1;
        if let Err(error) = self.check_call(now, group, &body, deadline) {
            let (result, answers) = (Err(error), Vec::new());
            self.effects.outputs.push_back(Output::Done { call: id, result, answers });
            return id;
        }
        let group_id = GroupId::of(group);
        let bytes = body.len();
        let policy = self.of_groups.get(group).copied().unwrap_or(self.policy);
        let record = self.groups.entry(group_id).or_insert_with(|| Group::new(group, policy));
        record.queue.insert(id);
        self.budget.earn();
        self.queued += 1;
        self.bytes += bytes;
        let replies = replies.or(match record.policy.choice {
            Choice::Multicast(replies) => Some(replies),
            Choice::Primary | Choice::Anycast(_) => None,
        });
        let mut call = Call::new(group_id, method, json, access, body, deadline);
        call.spread = replies.map(Spread::new);
        self.calls.insert(id, call);
        self.effects.timers.set(Timer::Call(id), deadline);
        self.admit(now, group_id);
        if self.calls[&id].phase == Phase::Queued {
            if self.queued > MAX_QUEUED_CALLS {
                self.done(id, Err(CallError::TooManyCalls));
            } else if self.groups[&group_id].targets.nodes.is_empty() {
                self.inquire(now, group_id);
            }
        }
        id
    }

    fn check_call(
        &mut self,
        now: Time,
        name: &str,
        body: &Bytes,
        deadline: Time,
    ) -> Result<(), CallError> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(CallError::NoSuchGroup(name.into()));
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

    /// Nobody waits for this call any more: it ends without [`Output::Done`]. It may be executed
    /// all the same.
    pub fn cancel(&mut self, now: Time, call: CallId) {
        if let Some(group) = self.calls.get(&call).map(|call| call.group) {
            self.remove(call);
            self.admit(now, group);
        }
    }

    /// A connection that was asked for is there.
    pub fn handle_connected(&mut self, _now: Time, link: Link) {
        self.links.connected(link, &mut self.effects);
    }

    /// A connection that was asked for failed, or is gone.
    pub fn handle_disconnected(&mut self, now: Time, link: Link) {
        let trouble = self.links.trouble_of_loss(link);
        self.lose(now, link, trouble);
    }

    /// A connection that was asked for is of no use: for a reason that only its driver knows.
    pub fn handle_failed(&mut self, now: Time, link: Link, trouble: Trouble) {
        self.lose(now, link, trouble);
    }

    /// A frame came. Whatever it says, nothing worse happens than that its node counts as lost.
    pub fn handle_frame(&mut self, now: Time, link: Link, frame: Frame) {
        if self.links.get(link).is_none() {
            return;
        }
        self.links.heard(now, link, &mut self.effects);
        let ready = self.links.is_ready(link);
        match frame {
            Frame::Welcome(Welcome { version, .. }) if version != PROTOCOL_VERSION => {
                self.drop_link(now, link, Trouble::Version(version));
            }
            Frame::Welcome(Welcome { node, .. }) => {
                if self.links.welcomed(now, link, node, &mut self.effects) {
                    self.use_link(now, link);
                } else {
                    self.drop_link(now, link, Trouble::Confused);
                }
            }
            Frame::Farewell(Farewell { version, .. }) if version != PROTOCOL_VERSION => {
                self.drop_link(now, link, Trouble::Version(version));
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

    /// Does what is due.
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

    /// When `handle_timeout` is to be called next.
    pub fn next_timeout(&self) -> Option<Time> {
        self.effects.timers.next()
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.effects.outputs.pop_front()
    }

    /// Counters since the session began.
    pub fn stats(&self) -> Stats {
        self.effects.stats
    }

    /// The view that it knows of a group, and the connections on which a node was asked to tell of newer ones. `None` of a group that it does not call.
    pub fn watched(&self, group: GroupId) -> Option<(ViewNumber, &BTreeSet<Link>)> {
        self.groups.get(&group).map(|group| (group.view(), &group.watched))
    }

    /// The targets that it knows of a group that it calls.
    pub fn targets(&self, group: GroupId) -> Option<&Targets> {
        self.groups.get(&group).map(|group| &group.targets)
    }

    /// Calls that have not ended.
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
        self.bytes -= call.body.len();
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

    /// Asserts what must hold between any two steps. For tests and simulation.
    ///
    /// # Panics
    /// If it does not hold: that is a bug here.
    pub fn check_invariants(&self) {
        self.links.check_invariants(&self.effects);
        assert!(self.groups.len() <= MAX_GROUPS && self.queued <= MAX_QUEUED_CALLS);
        assert_eq!(self.bytes, self.calls.values().map(|call| call.body.len()).sum::<usize>());
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
