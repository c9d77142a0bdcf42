//! Requests of people, programs and the manager to this node.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;
use manager::{Picture, Shape};
use wire::client::{Access, Request};
use wire::keys::{KeyStep, OfferedKey};
use wire::limits::{MAX_GROUPS, MAX_MOVES, MAX_NAME, MAX_RESTYLES};
use wire::ordered::{
    BackupStep, Deposit, Durability, GroupOptions, Ordered, Poison, Rank, Shedding, Style, Usage,
};
use wire::roster::Motion;
use wire::system::is_system;
use wire::versions::CLIENT;
use wire::{Duration, GroupId, Member, MethodId, NodeId, Time, ViewNumber};

use crate::api::{
    Begun, BenchError, BenchProgress, BenchRequest, Checkpoints, DiscardError, GroupStatus,
    GrowthError, HostError, KeyError, MoveError, ReplicaStatus, Restore, RestoreError,
    RestyleError, RingStatus, SaveError, Status, UpgradeError,
};
use crate::bug::Bug;
use crate::callers::OWN;
use crate::directory::{Group, State};
use crate::groups::moves::{Motive, Moving};
use crate::groups::restyle::Restyling;
use crate::keys::Nodes;
use crate::ordering::{Level, Ordering};
use crate::replicas::hosted::Hosted;
use crate::replicas::journal::Journal;
use crate::stack::Stack;
use crate::style::StyleRules;

impl<O: Ordering> Stack<O> {
    fn order_key_step(
        &mut self,
        now: Time,
        step: Result<KeyStep, KeyError>,
    ) -> Result<(), KeyError> {
        self.keys().order(now, step)?;
        self.settle(now);
        Ok(())
    }

    /// Begins a benchmark of the engine that orders messages, in the present configuration. It
    /// loads the cluster while it runs. The result follows as
    /// [`Output::Bench`](crate::Output::Bench).
    ///
    /// # Errors
    /// Why it is impossible now, and the remedy. Then nothing has happened.
    pub fn bench(&mut self, now: Time, request: BenchRequest) -> Result<(), BenchError> {
        self.benchmarks().ask(now, request)?;
        self.settle(now);
        Ok(())
    }

    /// Cancels the benchmark that was requested here.
    pub fn stop_bench(&mut self, now: Time) {
        self.benchmarks().stop(now);
        self.settle(now);
    }

    /// Returns the progress of the running benchmark.
    pub fn bench_progress(&self) -> Option<BenchProgress> {
        self.bench.progress()
    }

    /// Sets when this node's replica takes checkpoints while it is primary of a cold passive group.
    /// Other nodes may have other settings.
    pub fn set_checkpoints(&mut self, now: Time, group: GroupId, checkpoints: Checkpoints) {
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            hosted.cold.checkpoints = checkpoints;
            self.settle(now);
        }
    }

    /// Hosts a replica of the group `name` from now on. The replica joins as soon as there is a
    /// quorum. Until then, and during its state transfer, it waits.
    ///
    /// # Errors
    /// If the name is impossible, or this node hosts the group or too many groups already.
    pub fn host(
        &mut self,
        now: Time,
        name: &str,
        options: GroupOptions,
    ) -> Result<GroupId, HostError> {
        self.host_served(now, name, options, None)
    }

    /// Hosts a replica that a program serves. The program may die while the node lives, and is
    /// started again ([`Stack::service_lost`]).
    ///
    /// # Errors
    /// As [`Stack::host`].
    pub fn host_program(
        &mut self,
        now: Time,
        name: &str,
        options: GroupOptions,
    ) -> Result<GroupId, HostError> {
        self.host_served(now, name, options, Some(Journal::default()))
    }

    fn host_served(
        &mut self,
        now: Time,
        name: &str,
        options: GroupOptions,
        journal: Option<Journal>,
    ) -> Result<GroupId, HostError> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(HostError::Name(name.len()));
        }
        if name.contains(':') {
            return Err(HostError::Colon);
        }
        let id = GroupId::of(name);
        if self.replicas.hosted.contains_key(&id) {
            return Err(HostError::Twice);
        }
        if self.replicas.hosted.len() >= MAX_GROUPS {
            return Err(HostError::TooMany);
        }
        let on_disk = options.durability == Durability::Disk;
        if on_disk && !options.style.has_state() {
            return Err(HostError::DiskOfStateless);
        }
        if on_disk && !self.base.records.has_disk() {
            return Err(HostError::NoStorage);
        }
        let logs = on_disk || journal.is_some();
        let mut hosted = Hosted::new((id, name), options, (journal, logs), self.base.planted);
        hosted.replica.stream_from(self.base.streamed);
        self.replicas.hosted.insert(id, hosted);
        if on_disk {
            self.replicas().recall_replica(now, id);
        }
        // The state on the disk may be of another style than the configured one.
        if self.replicas.hosted.get(&id).is_some_and(|hosted| hosted.replica.style().logs()) {
            self.groups.cold.insert(id);
        }
        self.settle(now);
        Ok(id)
    }

    /// Gives up this node's replica of the group. Requests that were ordered before are still
    /// answered.
    pub fn unhost(&mut self, now: Time, group: GroupId) {
        self.go(now, group, false);
    }

    /// Gives up this node's replica once another replica has the state: until then it serves. This
    /// is for services that go on, wherever their replicas are.
    pub fn part(&mut self, now: Time, group: GroupId) {
        self.go(now, group, true);
    }

    fn go(&mut self, now: Time, group: GroupId, spares: bool) {
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            (hosted.departure.spares, hosted.program.unbegun) = (spares, false);
            self.groups().begin_to_go(now, group);
            self.groups().drop_if_done(group);
            self.settle(now);
        }
    }

    /// Whether this node's replica leaves as soon as another has the state.
    pub fn is_parting(&self, group: GroupId) -> bool {
        self.replicas
            .hosted
            .get(&group)
            .is_some_and(|hosted| hosted.departure.begun && hosted.departure.spares)
    }

    /// Whether this node still has a replica of the group, even one that is leaving.
    pub fn is_hosting(&self, group: GroupId) -> bool {
        self.replicas.hosted.contains_key(&group)
    }

    /// Whether the group goes on without this node's replica, which still has requests to execute.
    pub fn has_left(&self, group: GroupId) -> bool {
        let there = self.base.directory.get(group).is_some_and(|known| known.knows(self.base.me));
        !there && self.replicas.hosted.get(&group).is_some_and(|hosted| hosted.departure.begun)
    }

    /// Takes the loss of this node's replica. Its service executes nothing more and returns no
    /// outcome of earlier commands. The replica leaves, and other replicas answer the calls that
    /// waited for it here.
    pub fn abandon(&mut self, now: Time, group: GroupId) {
        let died = self.replicas.reach(group, Begun::Any);
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            hosted.departure.abandoned = true;
            hosted.program.died = Some(died);
            self.replicas().with_replica(now, group, |replica, effects| replica.idle(effects));
            self.replicas().take_back(now);
            self.replies().send_on(group);
            self.unhost(now, group);
        }
    }

    /// Takes the death of the program that serves this node's replica, maybe by a call that it had
    /// begun. Another replica takes over. If none has the group's state, the program is to be
    /// started again, and goes on from this node's journal.
    pub fn service_lost(&mut self, now: Time, group: GroupId, begun: Begun) {
        self.replicas().lose_parted(group);
        let Some(hosted) = self.replicas.hosted.get(&group) else { return };
        let whole = hosted.replica.has_log()
            || hosted.program.journal.as_ref().is_some_and(Journal::is_whole);
        let goes = hosted.departure.abandoned
            || hosted.departure.begun && !self.replicas.is_needed(&self.base, group);
        let has_state = hosted.replica.has_state();
        if !whole || !has_state || goes {
            self.abandon(now, group);
            if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
                hosted.program.unbegun = !has_state && !goes && hosted.options.style.has_state();
            }
            return;
        }
        let died = self.replicas.reach(group, begun);
        self.replicas().with_replica(now, group, |replica, effects| replica.fall(effects));
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            (hosted.program.died, hosted.program.fallen, hosted.admission.asked) =
                (Some(died), true, None);
            // It will not hand out the state that was requested.
            hosted.program.journal.iter_mut().for_each(Journal::stop_taking);
        }
        let alone =
            self.base.directory.get(group).is_none_or(|known| known.synced().eq([self.base.me]));
        if !alone {
            self.replies().send_on(group);
        } else if !self.base.planted.is(Bug::AwaitDeadProgram) {
            self.replies().lose_unplaced(group);
        }
        self.settle(now);
    }

    /// Changes the cluster's key. Every node stores the new one, then all seal with it, then the
    /// old one is forgotten. Each step waits for every configured node.
    ///
    /// # Errors
    /// Why the change cannot begin now. Then nothing has happened.
    pub fn change_key(&mut self, now: Time, key: OfferedKey) -> Result<(), KeyError> {
        let step = self.keys.offer(key);
        self.order_key_step(now, step)
    }

    /// Lets the change under way wait for present nodes only. An absent node needs the new key file
    /// to rejoin.
    ///
    /// # Errors
    /// There is none.
    pub fn force_key_change(&mut self, now: Time) -> Result<(), KeyError> {
        let step = self.keys.force();
        self.order_key_step(now, step)
    }

    /// Cancels the change under way, unless a node seals with the new key already.
    ///
    /// # Errors
    /// There is none, or it is too late.
    pub fn abort_key_change(&mut self, now: Time) -> Result<(), KeyError> {
        let step = self.keys.abort();
        self.order_key_step(now, step)
    }

    /// Whether this node's replica of the group holds nothing back from its service.
    pub fn has_followed(&self, group: GroupId) -> bool {
        self.replicas.hosted.get(&group).is_none_or(|hosted| hosted.replica.has_followed())
    }

    /// Returns the calls of the group's history that services died of, the oldest first, as this
    /// node's replica knows them.
    pub fn poisoned(&self, group: GroupId) -> Option<&[Poison]> {
        Some(self.replicas.hosted.get(&group)?.replica.poisons())
    }

    /// Describes, for debugging, which replica executes first by the knowledge of this node's
    /// replica.
    pub fn explain_lead(&self, group: GroupId) -> Option<String> {
        Some(self.replicas.hosted.get(&group)?.replica.lead_for_people())
    }

    /// Reports this host's load and its classes of callers to all nodes. False if the ring takes
    /// nothing now: the caller is to report again later, with the load of that moment.
    pub fn tell_usage(&mut self, now: Time, usage: Usage) -> bool {
        let (classes, refused) = self.groups().callers_told(now);
        let usage = Usage { classes, refused, ..usage };
        // Messages that others wait for go first.
        if !self.base.membership.is_active() || !self.base.outbox.is_clear() {
            return false;
        }
        let told = self.base.outbox.hand_in(now, Ordered::Usage(usage), Level::Agreed);
        self.settle(now);
        told
    }

    /// Proposes this order of a group's backups for its view `view`.
    /// [`Event::Ranked`](crate::Event::Ranked) reports the outcome. If the view changes before, the
    /// proposal is void. False if it is void already, or changes nothing.
    pub fn rank(
        &mut self,
        now: Time,
        group: GroupId,
        view: ViewNumber,
        order: Vec<NodeId>,
    ) -> bool {
        let active = self.base.membership.is_active();
        if !active || self.base.directory.ranked(group, view, &order, self.base.planted).is_none() {
            return false;
        }
        self.base.order(now, Ordered::Rank(Rank { group, view, order }));
        self.settle(now);
        true
    }

    /// Returns a manager's view of the cluster.
    pub fn picture(&self) -> Picture {
        let active = self.base.membership.is_active();
        let nodes = self.base.present();
        let leads = active && nodes.iter().min() == Some(&self.base.me.node);
        let nodes = self.base.membership.members().map(|member| {
            let told = self.groups.load.told_by(member).map(|told| told.usage.clone());
            (member.node, told)
        });
        let shapes = self.base.directory.iter().filter_map(|(id, group)| {
            let mut synced = group.synced().map(|member| member.node);
            let primary = synced.next()?;
            Some(Shape { id, view: group.view, primary, backups: synced.collect() })
        });
        Picture {
            ring: self.base.membership.ring(),
            leads,
            nodes: nodes.collect(),
            groups: shapes.collect(),
            sheds: self.sheds().map(|(node, level, until)| (node, (level, until))).collect(),
            brings: self
                .base
                .directory
                .iter()
                .filter_map(|(id, group)| self.replicas.brings(&self.base, id, group))
                .collect(),
        }
    }

    /// Returns a number that grows whenever the [picture](Stack::picture) may have changed.
    pub fn changes(&self) -> u64 {
        self.groups.load.changes()
    }

    /// Returns a number that grows whenever the [picture](Stack::picture) may have changed in more
    /// than the load of hosts, which tell of it several times a second.
    pub fn turns(&self) -> u64 {
        self.groups.load.turns()
    }

    /// Returns each member's last load report, and when it came.
    pub fn usages(&self) -> impl Iterator<Item = (Member, &Usage, Time)> + '_ {
        self.groups.load.told().map(|(member, told)| (member, &told.usage, told.at))
    }

    /// Makes the replica at node `to` the group's primary, without a gap for its clients. The
    /// outcome follows as [`Output::Moved`](crate::Output::Moved), at once or within some seconds.
    ///
    /// # Errors
    /// This node already has another move of this group, or too many of others, under way.
    pub fn move_primary(&mut self, now: Time, group: GroupId, to: NodeId) -> Result<(), MoveError> {
        if let Some(under_way) = self.groups.moves.get(&(group, Motive::Asked)) {
            return Err(MoveError::UnderWay(under_way.to()));
        }
        let asked = self.groups.moves.keys().filter(|(_, motive)| *motive == Motive::Asked).count();
        if asked >= MAX_MOVES {
            return Err(MoveError::TooMany);
        }
        let moving = Moving::asked(to, now);
        self.groups.moves.insert((group, Motive::Asked), moving);
        self.settle(now);
        Ok(())
    }

    /// Calls a group in this node's own name and returns the call's number. Its outcome within
    /// `timeout` follows as [`Output::Own`](crate::Output::Own) with that number. Without an
    /// outcome, nobody knows whether the call was executed.
    pub fn call(
        &mut self,
        now: Time,
        wall: Time,
        (group, method): (GroupId, MethodId),
        body: Bytes,
        timeout: Duration,
    ) -> u64 {
        let (client, is_first) = self.replies.own.session(self.base.me);
        if is_first {
            self.replies.clients.callers.welcome(OWN, client, CLIENT.greatest);
        }
        let (number, unanswered) = self.replies.own.begin(now, timeout);
        let view = self.base.directory.get(group).map_or(ViewNumber(0), |group| group.view);
        let timeout_us = u32::try_from(timeout.as_micros()).unwrap_or(u32::MAX);
        let request = Request {
            group,
            client,
            number,
            unanswered,
            view,
            method,
            timeout_us,
            json: false,
            beside: false,
            has_key: false,
            access: Access::Change,
            priority: u8::MAX,
            body,
        };
        self.groups().request(now, wall, OWN, request);
        self.base.outputs.crowd(now);
        number
    }

    /// Has a group begin with a state. The outcome follows as
    /// [`Output::Restored`](crate::Output::Restored), at once or within some seconds.
    ///
    /// # Errors
    /// No group can have that name; or this node has another restore of this group, or too many of
    /// others, under way.
    pub fn restore(&mut self, now: Time, restore: Restore) -> Result<(), RestoreError> {
        let name = &restore.name;
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(RestoreError::Name(name.len()));
        }
        if is_system(name) {
            return Err(RestoreError::System);
        }
        let number = self.base.random.next_u64();
        self.replicas.backups.restore(now, restore, number)?;
        self.settle(now);
        Ok(())
    }

    /// Has a group that waits for a deposited state begin without it. A replica that is there
    /// begins with its service's initial state. A group without replicas is gone.
    ///
    /// # Errors
    /// Groups do not act here, or this one waits for no state.
    pub fn discard(&mut self, now: Time, group: GroupId) -> Result<(), DiscardError> {
        if !self.base.membership.is_active() {
            return Err(DiscardError::NoQuorum);
        }
        let waits = self.base.directory.get(group).and_then(Group::depositor);
        let Deposit { number, .. } = waits.ok_or(DiscardError::Nothing)?;
        self.base.order(now, Ordered::Backup(BackupStep::Discard { group, number }));
        self.settle(now);
        Ok(())
    }

    /// Changes the style of a group while it serves. The outcome follows as
    /// [`Output::Restyled`](crate::Output::Restyled), at once or within some seconds.
    ///
    /// # Errors
    /// This node already has another change of this group, or too many of others, under way.
    pub fn restyle(&mut self, now: Time, group: GroupId, style: Style) -> Result<(), RestyleError> {
        if let Some(under_way) = self.groups.restyles.get(&group) {
            return Err(RestyleError::UnderWay(under_way.style()));
        }
        if self.groups.restyles.len() >= MAX_RESTYLES {
            return Err(RestyleError::TooMany);
        }
        self.groups.restyles.insert(group, Restyling::asked(style, now));
        self.settle(now);
        Ok(())
    }

    /// Takes the state of this node's replica at one place of the order. It follows as
    /// [`Output::Saved`](crate::Output::Saved).
    ///
    /// # Errors
    /// This node already has another save of this group, or too many of others, under way.
    pub fn save(&mut self, now: Time, group: GroupId) -> Result<(), SaveError> {
        self.replicas.backups.save(now, group)?;
        self.settle(now);
        Ok(())
    }

    /// Orders that a host sheds calls. False if nothing is ordered now.
    pub fn shed(&mut self, now: Time, shedding: Shedding) -> bool {
        let active = self.base.membership.is_active();
        if active {
            self.base.order(now, Ordered::Shedding(shedding));
            self.settle(now);
        }
        active
    }

    /// Returns below which priority hosts refuse calls, and until when unless the order is
    /// repeated.
    pub fn sheds(&self) -> impl Iterator<Item = (NodeId, u8, Time)> + '_ {
        self.groups.load.sheds.orders()
    }

    /// Sets each group's priority for calls whose clients set none.
    pub fn set_criticalities(&mut self, of: BTreeMap<GroupId, u8>) {
        self.groups.load.sheds.set_unsaid(of);
    }

    /// Returns this node's knowledge, for people.
    pub fn status(&self) -> Status {
        let groups = self.base.directory.iter().map(|(id, group)| {
            let hosted = self.replicas.hosted.get(&id).filter(|hosted| hosted.replica.has_state());
            GroupStatus {
                name: group.name.clone(),
                options: group.options,
                view: group.view,
                primary: group.primary(),
                replicas: group
                    .replicas
                    .iter()
                    .map(|replica| ReplicaStatus {
                        member: replica.member,
                        synced: replica.state == State::Synced,
                    })
                    .collect(),
                notes: self.state_notes(id),
                sessions: hosted.and_then(|hosted| hosted.replica.sessions()),
                executed: hosted.and_then(|hosted| hosted.replica.executed()),
                hung: self.replicas.hangs.is_hung(id),
                depositor: group.depositor().map(|deposit| deposit.holder),
                log: hosted.and_then(Hosted::log_status),
                journal: hosted.and_then(|hosted| Some(hosted.program.journal.as_ref()?.status())),
            }
        });
        let mut groups: Vec<GroupStatus> = groups.collect();
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        Status {
            me: self.base.me,
            ring: self.ring_status(),
            groups,
            keys: self
                .keys
                .status(Nodes { all: self.base.membership.nodes(), present: &self.base.present() }),
            nested: self.replicas.nested.status(),
            versions: self.base.versions(),
            growth: self.base.growth(),
        }
    }

    /// Has the rules come into force that all configured nodes know: there is no way back to the
    /// program before. Returns their level. [`Event::Level`](crate::Event::Level) follows.
    ///
    /// # Errors
    /// Why that is impossible now, and the remedy. Then nothing has happened.
    pub fn finish_upgrade(&mut self, now: Time) -> Result<u8, UpgradeError> {
        let level = self.base.finish_upgrade(now)?;
        self.settle(now);
        Ok(level)
    }

    /// Has a node come or go ([`Motion`]). [`Event::Roster`](crate::Event::Roster) follows when it is
    /// known to all, and again when it is in force. `at` tells where a configured node is reached, for
    /// those that do not have it in their configuration.
    ///
    /// # Errors
    /// Why that is impossible now, and the remedy. Then nothing has happened.
    pub fn move_node(
        &mut self,
        now: Time,
        motion: Motion,
        at: impl Fn(NodeId) -> Vec<SocketAddr>,
    ) -> Result<(), GrowthError> {
        self.base.move_node(now, motion, at)?;
        self.settle(now);
        Ok(())
    }

    /// Gives up the change of the nodes that is under way.
    ///
    /// # Errors
    /// There is none, or nothing can be ordered.
    pub fn withdraw_move(&mut self, now: Time) -> Result<(), GrowthError> {
        self.base.withdraw_move(now)?;
        self.settle(now);
        Ok(())
    }

    /// Returns the ring's part of [`status`](Stack::status).
    pub fn ring_status(&self) -> RingStatus {
        RingStatus {
            state: self.base.outbox.ordering.state_name(),
            id: self.base.outbox.ordering.id(),
            members: self.base.outbox.ordering.members().to_vec(),
            quorate: self.base.membership.quorate(),
            epoch: self.base.membership.epoch(),
            delivered: self.base.progress.delivered(),
            buffers: self.base.outbox.ordering.buffers(),
            rotations: self.base.outbox.ordering.rotations(),
        }
    }
}
