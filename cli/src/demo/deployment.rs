//! The cluster's own decisions: where the replicas are, and which of them takes over.

use node::admin::Client as Admin;
use steadfast::cluster_state::Deployment;

use super::choice::Choice;
use super::conductor::{Run, TIMEOUT};
use super::message::Order;
use super::plan::{GROUP, Plan};
use super::stage::Failure;
use super::watch;

/// Other load on a busy node, in percent of a processor.
const BESIDE: u64 = 20;

impl Run<'_> {
    /// Has the service run on as many nodes as are wanted.
    pub fn deploy(&mut self) -> Result<(), Failure> {
        let Plan { nodes, replicas, .. } = *self.plan;
        self.wait("that all nodes can be deployed to", TIMEOUT, |run| {
            let known = watch::hosts(&run.stage.admin(1)).unwrap_or_default();
            Ok((known < nodes as usize).then(|| format!("{known} are known")))
        })?;
        let program = std::env::current_exe().map_err(Failure::io("this program has no path"))?;
        let program = program.into_os_string().into_string().map_err(|path| {
            Failure::Answer(format!("the path of this program is not UTF-8: {}", path.display()))
        })?;
        let command = vec![program, "demo".to_owned(), "replica".to_owned()];
        let deployment = Deployment::new(GROUP, command, replicas);
        let refused = "the service cannot be deployed";
        let admin = Admin::connect(self.stage.admin(1));
        let mut admin = admin.map_err(Failure::admin(refused))?;
        admin.deploy(&deployment, false).map_err(Failure::admin(refused))?;
        self.wait("the start of all replicas", TIMEOUT, |run| {
            Ok((!run.is_whole())
                .then(|| run.status(None).map_or_else(String::new, |it| watch::summary(&it))))
        })
    }

    /// All replicas that are wanted have the state, no other is there, and all nodes are in the
    /// ring.
    pub fn is_whole(&self) -> bool {
        let Plan { nodes, replicas, .. } = *self.plan;
        let Some(status) = self.status(None) else { return false };
        let group = status.groups.iter().find(|group| group.name == GROUP);
        let has_all = group.is_some_and(|group| {
            group.replicas.len() == replicas as usize && group.replicas.iter().all(|it| it.synced)
        });
        has_all && status.ring.members.len() == nodes as usize
    }

    /// Gives the host of the first backup something else to do, and waits until clients are told
    /// another target.
    pub fn choose(&mut self) -> Result<Option<Choice>, Failure> {
        let before = self.backups();
        let [busy, _, ..] = before[..] else { return Ok(None) };
        self.now(format!("node {busy}, the next target, gets something else to do"));
        let began = std::time::Instant::now();
        self.stage.order_node(busy, Order::Work(BESIDE))?;
        self.wait("another order of targets", TIMEOUT, |run| {
            let backups = run.backups();
            Ok((backups.last() != Some(&busy)).then(|| format!("the backups are {backups:?}")))
        })?;
        let after = self.backups();
        let used_percent = self.used(busy);
        let next = after.first().copied().unwrap_or_default();
        self.now(format!("clients are told to try node {next} next"));
        let took_ms = began.elapsed().as_millis() as u64;
        Ok(Some(Choice { busy, used_percent, before, after, took_ms }))
    }

    /// The load of a node, in percent of its part of its host.
    pub fn used(&self, node: u32) -> u64 {
        let status = self.status(None);
        let host = status.iter().flat_map(|it| &it.hosts).find(|host| host.node.0 == node);
        host.map_or(0, |host| 100 * host.used.0 / host.capacity.0.max(1))
    }

    /// The backups' nodes, the first target first.
    fn backups(&self) -> Vec<u32> {
        let status = self.status(None);
        let group = status.iter().flat_map(|it| &it.groups).find(|group| group.name == GROUP);
        let Some(group) = group else { return Vec::new() };
        let nodes = group.replicas.iter().map(|replica| replica.node);
        nodes
            .filter(|node| group.primary.is_none_or(|it| it.node != *node))
            .map(|it| it.0)
            .collect()
    }
}
