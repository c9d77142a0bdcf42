//! The cluster changes its key while faults happen.

use engine::{KeyCommand, Quorum, Status};
use wire::Duration;
use wire::keys::KeyName;

use super::{Cluster, Extra};
use crate::check::Verdict;
use crate::fabric::next_key;

/// The longest that a disk takes to keep a key.
const DISK: Duration = Duration::from_millis(20);

impl Cluster {
    /// The key is changed now and then, where there is one. (Without a quorum each part of a split
    /// would change its own.)
    pub(super) fn plan_key_change(&mut self) {
        if self.options.outsider.is_some() && self.options.quorum == Quorum::Majority {
            let wait = self.load.span(Duration::from_millis(50), self.options.faults.phase);
            self.fabric.later(wait, Extra::Rotate);
        }
    }

    /// Some node is asked for another key. It may refuse: then it is asked some other time.
    pub(super) fn rotate(&mut self) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        self.plan_key_change();
        let node = self.load.count(0, self.options.nodes - 1);
        let now = self.fabric.local(node);
        let Some(last) = self.fabric.key(node).filter(|_| self.fabric.hosts[node].runs()) else {
            return Ok(());
        };
        let key = next_key(last, &mut self.load);
        let name = key.name;
        let process = self.fabric.hosts[node].process.as_mut().expect("it runs");
        let asked = process.change_key(now, key);
        self.fabric
            .say(|| format!("node {} is asked for key {}: {asked:?}", node + 1, name.number));
        self.drain(node)
    }

    /// A node's keys are to be changed; what is on its disk is confirmed a little later.
    pub(super) fn key_command(&mut self, node: usize, command: KeyCommand) {
        let Some((name, seals)) = self.fabric.keep_key(node, command) else { return };
        let life = self.fabric.hosts[node].incarnation;
        let at = self.fabric.now() + self.load.span(Duration::from_micros(50), DISK);
        self.fabric.deliver(at, node, Extra::Kept(name, seals, life));
    }

    /// Returns a difference from the goal: all nodes seal with one key, and no change is under way.
    pub(super) fn missing_key(&self, statuses: &[Option<Status>]) -> Option<String> {
        let first = self.fabric.key(0)?;
        for (node, status) in statuses.iter().enumerate() {
            let keys = status.as_ref().and_then(|status| status.keys.as_ref());
            let well = |name: KeyName| name == first && self.fabric.key(node) == Some(first);
            if !keys.is_some_and(|keys| keys.change.is_none() && well(keys.sealing)) {
                return Some(format!(
                    "node {} is at {keys:?}, node 1 seals with {first:?}",
                    node + 1
                ));
            }
        }
        None
    }
}
