//! Whether a cluster is well, a node that leaves as it should, and what the nodes told.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast::status::Status;
use steadfast::{Member, NodeId, RingId};

use super::{Cluster, TIMEOUT};
use crate::Outcome;
use crate::process::Question;
use crate::wait::{until, until_so};

/// How often a cluster is asked whether it is well.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// A node that lives answers within this.
const ANSWER: Duration = Duration::from_secs(5);

impl Cluster {
    /// Waits until all nodes, in the lives that they have now, say that they are in one ring with
    /// the quorum, and that every group has all its replicas with the state.
    pub fn wait_until_well(&mut self) -> Outcome<()> {
        until(TIMEOUT, LOOK, || {
            let missing = self.missing();
            Ok(missing.map_or(Ok(()), |it| Err(format!("not well after {TIMEOUT:?}: {it}"))))
        })
    }

    /// The first thing that is not right, in words.
    fn missing(&self) -> Option<String> {
        let mut statuses = Vec::new();
        for id in self.nodes() {
            match self.status(id) {
                Ok(status) => statuses.push(status),
                Err(error) => return Some(format!("{id} does not tell its status: {error}")),
            }
        }
        let life = |status: &Status| Member { node: status.node, incarnation: status.incarnation };
        let lives: Vec<Member> = statuses.iter().map(life).collect();
        statuses.iter().find_map(|status| self.missing_at(status, statuses[0].ring.id, &lives))
    }

    fn missing_at(&self, status: &Status, id: RingId, lives: &[Member]) -> Option<String> {
        let (node, ring) = (status.node, &status.ring);
        let whole = ring.state == "operational" && ring.id == id && ring.members == lives;
        if !whole || ring.quorate != Some(true) {
            let (state, members, quorate) = (&ring.state, &ring.members, ring.quorate);
            return Some(format!("{node} is {state} with {members:?}, quorate: {quorate:?}"));
        }
        self.plan.groups.iter().find_map(|name| {
            let group = status.groups.iter().find(|group| group.name == *name);
            let synced = group.into_iter().flat_map(|group| &group.replicas).filter(|replica| {
                let life = Member { node: replica.node, incarnation: replica.incarnation };
                replica.synced && lives.contains(&life)
            });
            let count = synced.count();
            let wanted = self.nodes().filter(|id| id.0 <= self.plan.replicas).count();
            (count != wanted).then(|| {
                format!("{node} knows {count} of {wanted} replicas of {name} with the state")
            })
        })
    }

    fn status(&self, id: NodeId) -> Outcome<Status> {
        let mut admin = self.node(id)?;
        admin.set_timeout(Some(ANSWER))?;
        Ok(admin.status()?)
    }

    /// A node hands over its state, leaves, and ends.
    pub fn leave(&mut self, id: NodeId) -> Outcome<()> {
        self.running(id)?.ask(&Question::Leave)?;
        let mut process = self.processes.remove(&id).ok_or("this node does not run")?;
        self.members.remove(&id);
        let missing = format!("{id} was to leave, and runs after {TIMEOUT:?}");
        let ended = until_so(TIMEOUT, LOOK, &missing, || Ok(process.has_ended()?));
        if ended.is_err() {
            self.processes.insert(id, process);
        }
        ended
    }

    /// Kills these nodes, each before any of the others is seen to have ended.
    pub fn kill_at_once(&mut self, nodes: &[NodeId]) -> Outcome<()> {
        for id in nodes {
            self.running(*id)?.kill()?;
        }
        for id in nodes {
            self.processes.remove(id).ok_or("it was killed twice")?.wait()?;
            self.members.remove(id);
        }
        Ok(())
    }

    /// Where what a node tells is kept, if it is.
    pub(super) fn log(&self, id: NodeId) -> Outcome<Option<File>> {
        let open = |path| File::options().create(true).append(true).open(path);
        Ok(self.plan.keep_logs.then(|| open(self.log_path(id))).transpose()?)
    }

    fn log_path(&self, id: NodeId) -> PathBuf {
        self.folder.path().join(format!("node-{}.jsonl", id.0))
    }

    /// Leaves what the nodes told in a folder, one file for each, one JSON object a line, and what
    /// their programs said.
    pub fn copy_logs(&self, folder: &Path) -> Outcome<()> {
        let nodes = (1..=self.plan.nodes).map(NodeId);
        for path in nodes.flat_map(|id| [self.log_path(id), self.program_log(id)]) {
            if let Some(name) = path.file_name().filter(|_| path.exists()) {
                fs::copy(&path, folder.join(name))?;
            }
        }
        Ok(())
    }
}
