//! The comparisons when all is over.

use wire::ordered::Style;
use wire::system::{CELL, MANAGER};
use wire::{GroupId, Member, Time};

use crate::check::{Verdict, bounded, hedging, nested, retries};
use crate::cluster::Cluster;
use crate::network::Place;
use crate::service::Entry;

impl Cluster {
    /// All is over: replicas, replies and acknowledgements are compared.
    pub(crate) fn finish(&mut self) -> Verdict {
        for group in &self.options.groups {
            let id = GroupId::of(&group.name);
            let end = |&node: &Place| -> (Member, &[Entry], u64) {
                let log = &self.executors.at(node, id).log;
                (self.fabric.member(node), &log.entries, log.digest)
            };
            let members: Vec<Member> =
                group.hosts.iter().map(|node| self.fabric.member(*node)).collect();
            self.watch.cold.finish(id, &members)?;
            let runs = |node: &&Place| self.watch.cold.runs(self.fabric.member(**node), id);
            let ends: Vec<_> = group.hosts.iter().filter(runs).map(end).collect();
            self.watch.finish(id, &ends)?;
            if group.options.style != Style::Stateless && !self.options.loose().contains(&id) {
                self.finish_poisons(group)?;
            }
        }
        self.finish_journals()?;
        self.watch.restyles.finish(self.fabric.now())?;
        self.finish_deployments()?;
        for customer in &self.customers {
            let stats = customer.session.stats();
            let client = customer.session.client();
            hedging::budget(client, stats, self.options.groups.len())?;
            let span = customer.clock.local(self.fabric.now());
            let span = span.since(customer.clock.local(Time::ZERO));
            retries::budget(client, stats, customer.retry_budget, span)?;
            self.summary.retries += stats.retries;
            self.summary.hedges += stats.hedges;
            self.summary.copies += stats.copies;
        }
        for group in &self.options.groups {
            let Some((callee, _)) = &group.callee else { continue };
            // Those without a state each have a history of their own.
            let styles =
                self.options.groups.iter().filter(|g| g.name == group.name || g.name == *callee);
            if styles.clone().any(|g| g.options.style == Style::Stateless) {
                continue;
            }
            let (caller, callee) = (GroupId::of(&group.name), GroupId::of(callee));
            let loose = self.options.loose();
            if loose.contains(&caller) || loose.contains(&callee) {
                continue;
            }
            // In a cold passive group only the primary's service has a history.
            let history = |id: GroupId| {
                let executors = self.executors.of_group(id);
                let histories = executors.map(|executor| &executor.log.entries[..]);
                histories.max_by_key(|history| history.len()).unwrap_or_default()
            };
            nested::finish((caller, history(caller)), (callee, history(callee)))?;
        }
        let undecided = self.watch.linearizable.undecided();
        self.summary.undecided = undecided.len() as u64;
        for history in undecided {
            self.fabric.say(|| format!("UNDECIDED {history}"));
        }
        for node in 0..self.options.nodes {
            let Some(process) = &self.fabric.hosts[node].process else { continue };
            let groups = process.status().groups;
            // Lives of nodes call the cluster state.
            for group in groups.into_iter().filter(|group| ![MANAGER, CELL].contains(&&*group.name))
            {
                let kept = group.sessions.unwrap_or(0);
                // Each group that calls makes them its own, and each merge has one.
                let clients = self.customers.len() * self.options.groups.len();
                let merges = self.watch.merged(GroupId::of(&group.name));
                bounded::sessions(self.fabric.member(node), kept, clients + merges)?;
            }
        }
        Ok(())
    }
}
