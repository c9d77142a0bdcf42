//! This node's own calls of the cluster's own groups, and its view of them.

use admin::cell::Ranks;
use bytes::Bytes;
use engine::Status;
use manager::cluster_state;
use os::clock::wall_clock;
use registry::{Hosted, Sight};
use wire::client::{Bound, Frame, Targets};
use wire::ordered::Usage;
use wire::path::Path;
use wire::system::{CELL, CELL_ID, JOBS, JOBS_ID, MANAGER_ID, REGISTRY, REGISTRY_ID};
use wire::{Caller, Duration, GroupId, Member, MethodId, Time};

use super::Plane;
use super::waiting::{NO_MANAGER, answer};
use crate::directing::View as JobsView;
use crate::managing::View;
use crate::order::{CellReply, CommandReply, JobsReply, RegistryReply};
use crate::registering::View as Sighted;

/// How long a command may take to be answered. Less than its asker waits.
const TIMEOUT: Duration = Duration::from_secs(4);

impl Plane {
    fn call(&mut self, now: Time, of: (GroupId, MethodId), body: Vec<u8>) -> u64 {
        self.stack.call(now, Time(wall_clock()), of, Bytes::from(body), TIMEOUT)
    }

    /// Says something to the cluster state.
    pub(super) fn command(
        &mut self,
        now: Time,
        command: &cluster_state::Command,
        reply: Option<CommandReply>,
    ) {
        if !self.profile.has_manager() {
            if let Some(reply) = reply {
                answer(&reply, Err(NO_MANAGER.into()));
            }
            return;
        }
        let number = self.call(now, (MANAGER_ID, cluster_state::Command::METHOD), command.encode());
        if let Some(reply) = reply {
            self.waiting.cluster_state.wait(number, reply);
        }
    }

    /// Says something to the registry.
    pub(super) fn register(
        &mut self,
        now: Time,
        command: &registry::Command,
        reply: Option<RegistryReply>,
    ) {
        let number = self.call(now, (REGISTRY_ID, registry::Command::METHOD), command.encode());
        if let Some(reply) = reply {
            self.waiting.registry.wait(number, reply);
        }
    }

    /// Says something to the book of jobs.
    pub(super) fn tell_jobs(
        &mut self,
        now: Time,
        command: &job::Command,
        reply: Option<JobsReply>,
    ) {
        let number = self.call(now, (JOBS_ID, job::Command::METHOD), command.encode());
        if let Some(reply) = reply {
            self.waiting.jobs.wait(number, reply);
        }
    }

    /// Says something to the cell's book.
    pub(super) fn tell_cell(&mut self, now: Time, command: &cells::Command, reply: CellReply) {
        let number = self.call(now, (CELL_ID, cells::Command::METHOD), command.encode());
        self.waiting.cell.wait(number, reply);
    }

    /// The carriers at this moment: if this node is with a majority and its replica of the book has
    /// the state.
    pub(super) fn cell_ranks(&self) -> Option<Ranks> {
        let status = self.stack.status();
        self.leader(&status, CELL)?;
        let group = status.groups.iter().find(|group| group.name == CELL)?;
        let synced = group.replicas.iter().filter(|it| it.synced);
        let order = synced.map(|it| it.member.node).collect();
        Some(Ranks { view: group.view, order, members: status.ring.members })
    }

    /// Tells a client where another cell of the system is called: at this cell's carriers.
    pub(super) fn tell_place(&mut self, caller: Caller, name: &str) {
        let targets = self.place(name);
        let bound = Frame::Bound(Bound { group: GroupId::of(name), targets });
        if let Some(callers) = &mut self.sockets.callers {
            callers.push(caller, &bound);
        }
    }

    fn place(&self, name: &str) -> Option<Targets> {
        let path: Path = name.strip_suffix(':')?.parse().ok()?;
        let book = self.changes.cell.as_ref()?.get();
        let book = Option::as_ref(&book)?;
        if !path.is_of_system(book.path()) {
            return None;
        }
        // Without a majority another node may know.
        let ranks = self.cell_ranks().unwrap_or_default();
        Some(book.doors(ranks.view, &ranks.order, &ranks.members))
    }

    /// The cluster at this moment, as the director of jobs sees it: if this node is with a majority
    /// and its replica of the book has the state.
    pub(super) fn jobs_view(&self) -> Option<JobsView> {
        let status = self.stack.status();
        let leads = self.leader(&status, JOBS)?;
        let View { picture, cluster_state, .. } = self.view();
        let loads = picture.nodes.iter().filter_map(|(node, usage)| {
            let Usage { used, capacity, .. } = usage.as_ref()?;
            let twentieths = (used.0 * 20).checked_div(capacity.0)?;
            Some((*node, u32::try_from(twentieths).unwrap_or(u32::MAX)))
        });
        let drained = cluster_state.iter().flat_map(|state| {
            let nodes = state.nodes().map(|(node, _)| node);
            nodes.filter(|node| state.is_drained(*node)).collect::<Vec<_>>()
        });
        let sight = job::Sight {
            drained: drained.collect(),
            loads: loads.collect(),
            members: status.ring.members,
        };
        Some(JobsView { leads: leads.map(|leader| leader.node), sight })
    }

    /// Where the primary of one of the cluster's own groups is, if this node is with a majority and
    /// its replica has the state: that was brought before the table said so.
    fn leader(&self, status: &Status, name: &str) -> Option<Option<Member>> {
        let me = self.profile.me;
        if status.ring.quorate != Some(true) {
            return None;
        }
        let group = status.groups.iter().find(|group| group.name == name)?;
        let has_state = group.replicas.iter().any(|it| it.member == me && it.synced);
        has_state.then_some(group.primary)
    }

    /// The table and the cluster state as they are at this moment. The cluster state counts if the
    /// table says that this node's replica has the state: that was brought before the table said
    /// so.
    pub(super) fn view(&self) -> View {
        let picture = self.stack.picture();
        let me = self.profile.me.node;
        let shape = picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        let here = shape.is_some_and(|it| it.primary == me || it.backups.contains(&me));
        let cluster_state = here.then(|| self.cluster_state.cluster_state());
        let groups = cluster_state.iter().flat_map(|state| state.placed());
        let notes = groups.map(|placed| {
            let group = &placed.deployment.group;
            (group.clone(), self.stack.state_notes(GroupId::of(group)))
        });
        View {
            notes: notes.filter(|(_, notes)| !notes.is_empty()).collect(),
            level: self.stack.level(),
            changes: self.stack.changes(),
            retired: self.stack.growth().retired,
            cluster_state,
            picture,
        }
    }

    /// The table at this moment, if this node is with a majority and its replica of the registry
    /// has the state.
    pub(super) fn sight(&self) -> Option<Sighted> {
        let me = self.profile.me;
        let status = self.stack.status();
        let leader = self.leader(&status, REGISTRY)?;
        let groups = status.groups.into_iter().map(|group| {
            let synced = group.replicas.iter().filter(|it| it.synced).map(|it| it.member);
            let hosted = Hosted {
                replicas: group.replicas.iter().map(|it| it.member).collect(),
                synced: synced.collect(),
                name: group.name,
            };
            (GroupId::of(&hosted.name), hosted)
        });
        let groups = groups.collect();
        let sight = Sight { leads: leader == Some(me), members: status.ring.members, groups };
        Some(Sighted { leads: leader.map(|leader| leader.node), sight })
    }
}
