//! Faults that the conductor injects into nodes while events flow, and how it restarts the nodes.
//! Replicas are the cluster's business.

use std::time::Duration;

use rustix::process::Signal;

use super::conductor::{POLL, Run, TIMEOUT};
use super::fault::{Fault, Means, Role};
use super::plan::{GROUP, Plan};
use super::stage::Failure;
use super::{clock, watch};

/// How long a node is away.
const AWAY: u64 = 2_000_000_000;

/// The first and second fault come after these shares of the run.
const PLACES: [f64; 2] = [0.25, 0.60];

/// All replicas have the state again within this time, and all nodes are back, or the fault is not
/// survived.
const RETURN: Duration = Duration::from_secs(10);

/// Times that a process is started again when its port is taken for a moment.
const TRIES: u32 = 5;

impl Run<'_> {
    /// Makes the faults of the plan, one after the other.
    pub fn play_faults(&mut self) -> Result<Vec<Fault>, Failure> {
        let Plan { seconds, ref faults, means, .. } = *self.plan;
        let mut made: Vec<Fault> = Vec::new();
        for (&role, place) in faults.iter().zip(PLACES) {
            let moment = self.started + (seconds * place * 1e9) as u64;
            self.wait_until(moment)?;
            // On a machine with too much to do, somebody may be away already: the only one that has
            // the state must not be hit.
            self.wait("that all replicas have the state", RETURN, |run| {
                let known = || run.status(None).map_or_else(String::new, |it| watch::summary(&it));
                Ok((!run.is_whole()).then(known))
            })?;
            let spared = made.last().map(|fault| fault.node);
            let fault = self.play(means, role, spared)?;
            made.push(fault);
        }
        Ok(made)
    }

    fn play(&mut self, means: Means, role: Role, spared: Option<u32>) -> Result<Fault, Failure> {
        let node = self.victim(role, spared)?;
        let process = self.stage.process(node).expect("a replica's node runs");
        let signal = match means {
            Means::Kill => Signal::KILL,
            Means::Stop => Signal::STOP,
        };
        let at = clock::now();
        process.signal(signal).map_err(Failure::io(format!("node {node} cannot be hit")))?;
        let (name, role_name) = (means.name(), role.name());
        let dead = (means == Means::Kill).then(|| {
            self.stage.bury(node);
            clock::now()
        });
        self.now(format!("{name} of node {node}, the {role_name}"));
        self.wait_until(at + AWAY)?;
        let excluded = !self.in_view(node);

        let undone = clock::now();
        match means {
            Means::Kill => self.restart(node)?,
            Means::Stop => {
                let process = self.stage.process(node).expect("it is only stopped");
                let told = process.signal(Signal::CONT);
                told.map_err(Failure::io(format!("node {node} cannot be continued")))?;
            }
        }
        let back = if excluded { self.restored(node)? } else { None };
        Ok(Fault { means, role, node, at, dead, undone, back })
    }

    /// The node whose turn it is: another one than the last time, if there is a choice.
    fn victim(&self, role: Role, spared: Option<u32>) -> Result<u32, Failure> {
        let unknown = || Failure::Answer("no node knows who the primary is".to_owned());
        let status = self.status(None).ok_or_else(unknown)?;
        let group = status.groups.iter().find(|group| group.name == GROUP).ok_or_else(unknown)?;
        let primary = group.primary.ok_or_else(unknown)?.node.0;
        if role == Role::Primary {
            return Ok(primary);
        }
        let backups = || group.replicas.iter().map(|r| r.node.0).filter(|&node| node != primary);
        let other = backups().find(|&node| Some(node) != spared);
        other.or_else(|| backups().next()).ok_or_else(unknown)
    }

    fn in_view(&self, node: u32) -> bool {
        let Some(status) = self.status(Some(node)) else { return false };
        let group = status.groups.iter().find(|group| group.name == GROUP);
        group.is_some_and(|group| group.replicas.iter().any(|r| r.node.0 == node))
    }

    fn restart(&mut self, node: u32) -> Result<(), Failure> {
        self.now(format!("node {node} is started again"));
        for attempt in 1.. {
            let who = self.stage.start_node(node)?;
            let started = self.wait("the start of a node", TIMEOUT, |run| {
                Ok((!run.stage.ready(who)).then(|| format!("node {node} is not ready")))
            });
            match started {
                Err(Failure::Ended { .. }) if attempt < TRIES => {
                    self.stage.bury(node);
                    self.wait_until(clock::now() + POLL.as_nanos() as u64 * 10)?;
                }
                result => return result,
            }
        }
        unreachable!("the last attempt returns")
    }

    /// When all nodes are back, and all replicas that are wanted have the state.
    fn restored(&mut self, node: u32) -> Result<Option<u64>, Failure> {
        let waited = self.wait("the return of a node", RETURN, |run| {
            let known = || run.status(None).map_or_else(String::new, |it| watch::summary(&it));
            Ok((!run.is_whole()).then(known))
        });
        match waited {
            Ok(()) => {
                let back = clock::now();
                self.now(format!("node {node} is back, and all replicas have the state"));
                Ok(Some(back))
            }
            Err(Failure::Late { known, .. }) => {
                self.now(format!("not all was well again within {RETURN:?}: {known}"));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}
