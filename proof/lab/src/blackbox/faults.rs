//! Faults of the nodes: drawn from a seed, within the limits of the promise.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use steadfast::NodeId;
use wire::Random;

use harness::Outcome;
use harness::cluster::Cluster;
use harness::hosts::Way;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    /// A process is killed, and starts again.
    Kill,
    /// A process is stopped for a while: it holds what it has, and says nothing.
    Stop,
    /// As many processes as the promise allows are killed at once, and start again together.
    Burst,
    /// One is stopped, and while it is another is killed.
    Pincer,
    /// Each node in turn leaves as it should, and starts again.
    Rolling,
    /// All processes are killed at once, and start again together. Only groups on disk are to bear
    /// it.
    Everybody,
    /// All cables of a host are cut.
    Cut,
    /// A host hears nothing.
    Deaf,
    /// A host is not heard.
    Mute,
    /// A host loses the other nodes, but not the clients.
    Apart,
    /// A host is not heard by the other nodes, but by the clients.
    ApartOut,
    /// A host does not hear the other nodes, but the clients.
    ApartIn,
}

impl Kind {
    /// Faults of processes alone, for groups of any durability.
    pub const OF_PROCESSES: [Kind; 5] =
        [Kind::Kill, Kind::Stop, Kind::Burst, Kind::Pincer, Kind::Rolling];
    /// Faults that need hosts of their own.
    pub const OF_HOSTS: [Kind; 6] =
        [Kind::Cut, Kind::Deaf, Kind::Mute, Kind::Apart, Kind::ApartOut, Kind::ApartIn];

    /// How often it is drawn: long faults are rare.
    fn weight(self) -> u64 {
        if self == Kind::Rolling { 1 } else { 6 }
    }
}

/// The nodes that a fault may strike.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Nodes of the cluster.
    pub nodes: u32,
    /// The first so many have a replica.
    pub replicas: u32,
}

/// A fault that is to strike.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: Kind,
    /// The nodes, in the order in which they are struck.
    pub nodes: Vec<NodeId>,
    /// For how long.
    pub span: Duration,
}

impl Reach {
    /// Draws a fault. A minority of the nodes may lose their lives at once, and of the replicas so
    /// many that half of them are left (docs/protocol/group.md, "Beyond the promise").
    pub fn draw(self, kinds: &[Kind], random: &mut Random) -> Fault {
        let total: u64 = kinds.iter().map(|kind| kind.weight()).sum();
        let mut drawn = random.below(total);
        let chosen = kinds.iter().find(|kind| {
            let here = drawn < kind.weight();
            drawn = drawn.saturating_sub(kind.weight());
            here
        });
        let kind = *chosen.expect("some kind has this weight");
        // Most faults befall replicas, and of these the first is the likeliest primary.
        let victim = |random: &mut Random| {
            let among = if random.one_in(4) { self.nodes } else { self.replicas };
            NodeId(1 + random.below(u64::from(among)) as u32)
        };
        let nodes = match kind {
            Kind::Burst => self.minority(random),
            Kind::Pincer => {
                let stopped = victim(random);
                let killed = (0..100).map(|_| victim(random)).find(|other| *other != stopped);
                std::iter::once(stopped).chain(killed).collect()
            }
            Kind::Rolling | Kind::Everybody => (1..=self.nodes).map(NodeId).collect(),
            _ => vec![victim(random)],
        };
        let spans = [5, 30, 80, 150, 400];
        let span = Duration::from_millis(spans[random.below(5) as usize] + random.below(20));
        Fault { kind, nodes, span }
    }

    /// As many as can be spared at once.
    fn minority(self, random: &mut Random) -> Vec<NodeId> {
        let mut all: Vec<NodeId> = (1..=self.nodes).map(NodeId).collect();
        for place in (1..all.len()).rev() {
            all.swap(place, random.below(place as u64 + 1) as usize);
        }
        let (mut replicas, mut chosen) = (self.replicas / 2, Vec::new());
        for node in all {
            let is_replica = node.0 <= self.replicas;
            if chosen.len() < (self.nodes as usize - 1) / 2 && (!is_replica || replicas > 0) {
                replicas -= u32::from(is_replica);
                chosen.push(node);
            }
        }
        chosen
    }
}

impl Fault {
    /// The fault strikes, lasts, and is over; killed processes run again.
    pub fn strike(&self, cluster: &mut Cluster) -> Outcome<()> {
        let first = self.nodes[0];
        match self.kind {
            Kind::Kill | Kind::Burst | Kind::Everybody => {
                cluster.kill_at_once(&self.nodes)?;
                thread::sleep(self.span);
                self.nodes.iter().try_for_each(|node| cluster.start_node(*node))
            }
            Kind::Stop => {
                cluster.signal(first, Signal::STOP)?;
                thread::sleep(self.span);
                cluster.signal(first, Signal::CONT).map(|_| ())
            }
            Kind::Pincer => {
                let second = *self.nodes.last().expect("two");
                cluster.signal(first, Signal::STOP)?;
                thread::sleep(self.span);
                cluster.signal(second, Signal::KILL)?;
                thread::sleep(self.span / 4);
                cluster.signal(first, Signal::CONT)?;
                cluster.start_node(second)
            }
            Kind::Rolling => {
                for &node in &self.nodes {
                    cluster.leave(node)?;
                    cluster.start_node(node)?;
                    cluster.wait_until_well()?;
                }
                Ok(())
            }
            Kind::Cut => self.cut(cluster, true, Way::Both),
            Kind::Deaf => self.cut(cluster, true, Way::In),
            Kind::Mute => self.cut(cluster, true, Way::Out),
            Kind::Apart => self.cut(cluster, false, Way::Both),
            Kind::ApartOut => self.cut(cluster, false, Way::Out),
            Kind::ApartIn => self.cut(cluster, false, Way::In),
        }
    }

    fn cut(&self, cluster: &mut Cluster, clients: bool, way: Way) -> Outcome<()> {
        let hosts = cluster.hosts()?;
        let place = self.nodes[0].0 as usize;
        if clients {
            hosts.isolate(place, way)?;
        } else {
            for link in 0..hosts.clients_link() {
                hosts.lose(place, link, way, 1_000)?;
            }
        }
        thread::sleep(self.span);
        hosts.heal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fault_takes_more_than_the_promise_covers() {
        let mut random = Random::new(1);
        for (nodes, replicas, most) in [(5, 3, 2), (3, 3, 1), (5, 5, 2), (4, 2, 1)] {
            let reach = Reach { nodes, replicas };
            for _ in 0..500 {
                let fault = reach.draw(&Kind::OF_PROCESSES, &mut random);
                let lives = match fault.kind {
                    Kind::Burst | Kind::Kill => &fault.nodes[..],
                    Kind::Pincer => &fault.nodes[1..],
                    _ => continue,
                };
                let of_replicas = lives.iter().filter(|node| node.0 <= replicas).count();
                assert!((1..=most).contains(&lives.len()), "{fault:?}");
                assert!(of_replicas <= replicas as usize / 2, "{fault:?}");
                assert!(fault.nodes.iter().all(|node| (1..=nodes).contains(&node.0)), "{fault:?}");
            }
        }
    }
}
