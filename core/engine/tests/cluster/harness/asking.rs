//! Requests of tests to nodes and their disks.

use steadfast_engine::{
    BenchError, BenchRequest, BenchResult, Event, KeyCommand, KeyError, Quorum, Stack,
};
use testkit::Simulation;
use wire::attach::View;
use wire::keys::OfferedKey;
use wire::{GroupId, Time};

use super::{Cluster, place};
use crate::base::Base;
use crate::vault::key_name;
use crate::voting::Fault;

impl<O: Base> Cluster<O> {
    /// Nodes in one component, each side of which goes on when it is parted.
    pub fn forking(size: u32) -> Cluster<O> {
        Cluster::begin_by(Quorum::Off, size, false, usize::MAX).form()
    }

    /// The group's service merges histories that part.
    pub fn merge(&mut self, group: &str, nodes: &[u32]) {
        for node in nodes {
            self.ask(*node, |stack, _| stack.handle_merges(GroupId::of(group), true));
        }
    }

    /// The views that the service of this node was told of, each behind so many entries.
    pub fn views(&self, node: u32, group: &str) -> &[(usize, View)] {
        self.at(node).views.get(&GroupId::of(group)).map_or(&[], Vec::as_slice)
    }

    pub fn bench(&mut self, node: u32, request: BenchRequest) -> Result<(), BenchError> {
        self.ask(node, |stack, now| stack.bench(now, request))
    }

    pub fn stop_bench(&mut self, node: u32) {
        self.ask(node, |stack, now| stack.stop_bench(now));
    }

    /// Returns the outcome of the benchmark that the node was asked for.
    pub fn bench_outcome(&mut self, node: u32) -> Result<BenchResult, BenchError> {
        self.run_until("the end of a benchmark", |cluster| !cluster.at(node).benches.is_empty());
        self.at_mut(node).benches.remove(0)
    }

    pub(super) fn keep(&mut self, id: u32, command: KeyCommand) {
        let vault = self.vault(id);
        if vault.held {
            return vault.waiting.push(command);
        }
        if let Some((name, sealing)) = vault.carry_out(command) {
            let now = self.world.now;
            self.at_mut(id).stack.handle_key_kept(now, name, sealing);
        }
    }

    /// The disk of a node does all that it was told while it was held.
    pub fn release_disk(&mut self, id: u32) {
        let vault = self.vault(id);
        vault.held = false;
        for command in std::mem::take(&mut vault.waiting) {
            self.keep(id, command);
        }
        self.drain(place(id));
    }

    /// Asks a node to change the key, and returns its answer.
    pub fn change_key(&mut self, node: u32, number: u8) -> Result<(), KeyError> {
        let secret = wire::Secret::new([number; 32]);
        let key = OfferedKey { name: key_name(number), secret };
        self.ask(node, |stack, now| stack.change_key(now, key))
    }

    pub fn ask<T>(&mut self, node: u32, what: impl FnOnce(&mut Stack<O>, Time) -> T) -> T {
        Simulation::ask(self, place(node), |node, now| what(&mut node.stack, now))
    }

    /// All streams end: with the states, or broken.
    pub fn end_streams(&mut self, whole: bool) {
        for (node, transfer, from) in std::mem::take(&mut self.streams) {
            let gives = whole && self.is_alive(from.0);
            let state = gives.then(|| self.node(from.0).offered(transfer)).flatten();
            assert_eq!(state.is_some(), gives, "a node that offers a state has it");
            let state = state.map(wire::Payload::whole);
            self.ask(node, |stack, now| stack.handle_fetched(now, transfer, state));
        }
    }

    /// The numbers of the keys that a node has.
    pub fn keys(&self, node: u32) -> Vec<u8> {
        self.at(node).vault.keys.iter().map(|key| key.number).collect()
    }

    /// The services of a node become faulty.
    pub fn spoil(&mut self, node: u32, fault: Fault) {
        self.at_mut(node).fault = Some(fault);
    }

    /// The services of a node are as they should be.
    pub fn mend(&mut self, node: u32) {
        self.at_mut(node).fault = None;
    }

    /// The events that a node has told.
    pub fn events(&self, node: u32) -> impl Iterator<Item = &Event> {
        self.at(node).events.iter()
    }

    /// How often a node has told such an event.
    pub fn times(&self, node: u32, is: impl Fn(&Event) -> bool) -> usize {
        self.at(node).events.iter().filter(|event| is(event)).count()
    }

    pub fn saw(&self, node: u32, event: &Event) -> bool {
        self.at(node).events.contains(event)
    }
}
