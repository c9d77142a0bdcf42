//! Images of an agent: saved, copied, found damaged, removed. None goes that is good.

use image::{Parent, Place, Root};
use job::Key;

use super::images::{self, Unread, Writing};
use super::node::index;
use super::{At, World};
use crate::check::{Verdict, demand};

impl World {
    /// A snapshot is written.
    pub(super) fn save(&mut self, node: usize, place: Place, parent: Option<Parent>) {
        let key = Key { job: place.job, rank: place.rank, start: place.start };
        let it = &mut self.nodes[node];
        let process = it.ranks.get_mut(&key);
        let snapshot = process.and_then(|it| Some((it.saving?, it.snapshot.take()?)));
        let Some((step, (state, parts))) = snapshot else {
            let agent = it.hand.agent.as_mut().expect("it wants this");
            return agent.handle_saved(place, parent, Err("the rank has ended".into()));
        };
        self.begin_write(node, Writing::of(place, parent, (step, &state), &parts));
    }

    fn begin_write(&mut self, node: usize, writing: Writing) {
        let number = self.next();
        let it = &mut self.nodes[node];
        it.harmed.remove(&writing.place);
        let hand = &mut it.hand;
        let serial = hand.serial;
        hand.writes.insert(number, writing);
        self.within(self.options.slowest, node, At::Write(serial, number));
    }

    pub(super) fn write(&mut self, node: usize, serial: u64, number: u64) -> Verdict {
        let it = &mut self.nodes[node];
        if !it.has_agent(serial) {
            return Ok(());
        }
        let Some(mut writing) = it.hand.writes.remove(&number) else { return Ok(()) };
        let done = writing.go_on(&mut it.disk);
        if done == Ok(false) {
            it.hand.writes.insert(number, writing);
            self.within(self.options.slowest, node, At::Write(serial, number));
            return Ok(());
        }
        let Writing { place, parent, root, is_copy, .. } = writing;
        if done.as_ref().is_err_and(|unwritten| unwritten.left) {
            it.harmed.insert(place);
        }
        let done = done.map_err(|unwritten| unwritten.why);
        let bytes = writing.bytes();
        self.agent(node, |agent| match is_copy {
            true => agent.handle_fetched(place, done.map(|_| root)),
            false => agent.handle_saved(place, parent, done.map(|_| (root, bytes))),
        })
    }

    /// A copy comes from the first of these agents that has the image whole.
    pub(super) fn fetch(
        &mut self,
        node: usize,
        serial: u64,
        (place, root, from): (Place, Root, Vec<String>),
    ) -> Verdict {
        if !self.nodes[node].has_agent(serial) {
            return Ok(());
        }
        for other in from.iter().filter_map(|name| name.parse::<usize>().ok()) {
            let reached = self.nodes[node].is_connected() && self.nodes[other].is_connected();
            let giver = &mut self.nodes[other];
            if !reached || giver.hand.agent.is_none() {
                continue;
            }
            match images::give(&mut giver.disk, place, &root) {
                Ok(writing) => {
                    self.begin_write(node, writing);
                    return Ok(());
                }
                Err(Unread::Refused) => {}
                Err(Unread::Damaged(_)) => {
                    let serial = giver.hand.serial;
                    self.soon(other, At::Damaged(serial, place));
                }
            }
        }
        self.agent(node, |agent| agent.handle_fetched(place, Err("it cannot be had".into())))
    }

    pub(super) fn damaged(&mut self, node: usize, serial: u64, place: Place) -> Verdict {
        match self.nodes[node].has_agent(serial) {
            true => self.agent(node, |agent| agent.handle_damaged(place)),
            false => Ok(()),
        }
    }

    /// No image goes that counts here, as the agent knows.
    pub(super) fn may_go(&self, node: usize, place: Place) -> Verdict {
        let it = &self.nodes[node];
        let holder = it.member(node);
        let counts = self.order.book.job(place.job).is_some_and(|job| {
            let mut images = job.ranks[place.rank as usize].images.generations();
            images.any(|image| {
                image.place == place
                    && image.holders.contains(&holder)
                    && images::is_there(&it.disk, place, &image.root)
            })
        });
        demand(!counts || !it.hand.committed.contains(&place), "images are kept", || {
            format!("node {node} removes {place}, which counts and is whole")
        })
    }

    /// No copy is said to be lost that is whole, but for one that could not be removed.
    pub(super) fn may_be_lost(&self, node: usize, place: Place) -> Verdict {
        let it = &self.nodes[node];
        let excused =
            it.harmed.contains(&place) || it.hand.writes.values().any(|it| it.place == place);
        let counted = self.order.book.job(place.job).and_then(|job| {
            let mut images = job.ranks[place.rank as usize].images.generations();
            images.find(|image| image.place == place)
        });
        let whole = counted.is_some_and(|image| images::is_there(&it.disk, place, &image.root));
        demand(!whole || excused, "images are kept", || {
            format!("node {node} says that {place} is lost, and it is whole")
        })
    }

    /// The copy of this node is whole.
    pub(super) fn is_whole(&self, node: wire::NodeId, place: Place, root: &Root) -> bool {
        images::is_there(&self.nodes[index(node)].disk, place, root)
    }
}
