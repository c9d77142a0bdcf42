//! The parts of a cluster, as `cluster.toml` keeps them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tls::{Identity, Role};
use wire::NodeId;
use wire::limits::MAX_MEMBERS;

use crate::commands::Failure;

/// Nodes of a cell: fewer lose a majority with one node, and more cost the ring its pace.
pub const CELL_NODES: RangeInclusive<usize> = 3..=32;

/// A node and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its id.
    pub id: NodeId,
    /// Its address for all purposes.
    pub address: IpAddr,
}

/// A whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its name.
    pub cluster: String,
    /// UDP and TCP.
    pub ring_port: u16,
    /// TCP, TLS.
    pub client_port: u16,
    /// TCP, TLS.
    pub admin_port: u16,
    /// TCP, TLS: for gRPC and HTTP, if the nodes have gateways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_port: Option<u16>,
    /// Links with other cells, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// In order of id.
    pub nodes: Vec<NodeSpec>,
    /// Nodes that were retired.
    #[serde(default)]
    pub retired: Vec<NodeId>,
}

/// The links of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// UDP and TCP, TLS.
    pub port: u16,
    /// Where nodes of the cell above take them.
    pub parent: Vec<SocketAddr>,
}

/// The ports that every node listens at.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub ring: u16,
    pub client: u16,
    pub admin: u16,
    /// Only nodes of cells.
    pub links: u16,
}

impl NodeSpec {
    /// One of several on one machine: Linux takes all of 127.0.0.0/8 for its own.
    pub fn local(number: u8) -> NodeSpec {
        NodeSpec { id: NodeId(number.into()), address: Ipv4Addr::new(127, 0, 0, number).into() }
    }

    /// One of a cell's on one machine, which has several.
    pub fn local_in(cell: u8, number: u8) -> NodeSpec {
        NodeSpec { id: NodeId(number.into()), address: Ipv4Addr::new(127, 0, cell, number).into() }
    }
}

impl FromStr for NodeSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write ID=ADDRESS, such as 1=10.0.0.1: names are not looked up".to_owned();
        let (id, address) = text.split_once('=').ok_or_else(wrong)?;
        let id = NodeId(id.parse().map_err(|_| wrong())?);
        Ok(NodeSpec { id, address: address.parse().map_err(|_| wrong())? })
    }
}

impl Plan {
    /// Checks that it can be.
    pub fn new(
        cluster: String,
        nodes: Vec<NodeSpec>,
        ports: Ports,
        grpc_port: Option<u16>,
    ) -> Result<Plan, Failure> {
        let (nodes_of, retired) = (Vec::new(), Vec::new());
        let Ports { ring: ring_port, client: client_port, admin: admin_port, .. } = ports;
        let mut plan = Plan {
            cluster,
            ring_port,
            client_port,
            admin_port,
            grpc_port,
            links: None,
            nodes: nodes_of,
            retired,
        };
        let ports = [ring_port, client_port, admin_port];
        if grpc_port.is_some_and(|port| port == 0 || ports.contains(&port)) {
            return Err(Failure::Usage("--grpc is a port of its own, and not 0".to_owned()));
        }
        if ports.contains(&0) || ring_port == client_port || ports[..2].contains(&admin_port) {
            return Err(Failure::Usage(
                "--ring-port, --client-port and --admin-port must be three ports, none of them 0"
                    .to_owned(),
            ));
        }
        plan.add(&nodes)?;
        Ok(plan)
    }

    /// The plan of a cell, below the cell whose nodes take links there.
    pub fn cell(
        path: &str,
        nodes: Vec<NodeSpec>,
        ports: Ports,
        grpc_port: Option<u16>,
        parent: Vec<SocketAddr>,
    ) -> Result<Plan, Failure> {
        if !CELL_NODES.contains(&nodes.len()) {
            return Err(Failure::Usage(format!(
                "{path} has {} nodes, and a cell has 3 to 32: name them, such as 1=10.1.0.1 \
                 2=10.1.0.2 3=10.1.0.3",
                nodes.len()
            )));
        }
        let mut plan = Plan::new(tls::cell(path), nodes, ports, grpc_port)?;
        let taken = [Some(ports.ring), Some(ports.client), Some(ports.admin), grpc_port];
        if ports.links == 0 || taken.contains(&Some(ports.links)) {
            return Err(Failure::Usage("--link-port is a port of its own, and not 0".to_owned()));
        }
        plan.links = Some(Links { port: ports.links, parent });
        Ok(plan)
    }

    /// The ports of all nodes.
    pub fn ports(&self) -> Ports {
        Ports {
            ring: self.ring_port,
            client: self.client_port,
            admin: self.admin_port,
            links: self.links.as_ref().map_or(0, |links| links.port),
        }
    }

    /// All nodes are on this machine.
    pub fn is_local(&self) -> bool {
        self.nodes.iter().all(|node| node.address.is_loopback())
    }

    /// These nodes were retired.
    pub fn retire(&mut self, retired: &[u32]) -> Result<(), Failure> {
        for id in retired.iter().copied().map(NodeId) {
            let Some(at) = self.nodes.iter().position(|node| node.id == id) else {
                return Err(Failure::Usage(format!("{id} is none of the nodes here")));
            };
            self.nodes.remove(at);
            self.retired.push(id);
        }
        Ok(())
    }

    /// Adds nodes. The configuration's own check finds wrong addresses.
    pub fn add(&mut self, nodes: &[NodeSpec]) -> Result<(), Failure> {
        for node in nodes {
            if self.retired.contains(&node.id) {
                return Err(Failure::Usage(format!(
                    "{} was retired, and its number is never used again: give another",
                    node.id
                )));
            }
            if let Some(other) = self.nodes.iter().find(|it| it.id == node.id) {
                return Err(Failure::Usage(format!(
                    "node {} is there already, at {}: give each its own id",
                    node.id.0, other.address
                )));
            }
            if let Some(other) = self.nodes.iter().find(|it| it.address == node.address) {
                return Err(Failure::Usage(format!(
                    "{} is the address of node {} already: one node on each host; if that was retired, \
                     --retired {}; for several on this machine, to try, --local N",
                    node.address, other.id.0, other.id.0
                )));
            }
            self.nodes.push(node.clone());
        }
        let (what, most) = match self.links {
            Some(_) => ("cell", *CELL_NODES.end()),
            None => ("cluster", MAX_MEMBERS),
        };
        if self.nodes.len() > most {
            return Err(Failure::Usage(format!("a {what} has at most {most} nodes")));
        }
        self.nodes.sort_unstable_by_key(|node| node.id);
        Ok(())
    }

    /// A node's name in its certificate.
    pub fn identity(&self, node: NodeId) -> Identity {
        Identity::node(&self.cluster, node).expect("the cluster's name was checked")
    }

    /// The addresses that a certificate names beside its owner.
    pub fn addresses(&self, owner: &Identity) -> Vec<IpAddr> {
        let is = |node: &&NodeSpec| owner.role == Role::Node(node.id);
        self.nodes.iter().filter(is).map(|node| node.address).collect()
    }

    /// Where a node listens.
    pub fn sockets(&self, node: NodeId) -> Sockets {
        let node = self.nodes.iter().find(|it| it.id == node).expect("it is one of the plan's");
        let at = |port| SocketAddr::new(node.address, port);
        Sockets {
            ring: at(self.ring_port),
            client: at(self.client_port),
            admin: at(self.admin_port),
            grpc: self.grpc_port.map(at),
            links: self.links.as_ref().map(|links| at(links.port)),
        }
    }
}

/// Where a node listens.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sockets {
    /// For the ring.
    pub ring: SocketAddr,
    /// For clients.
    pub client: SocketAddr,
    /// For administrators.
    pub admin: SocketAddr,
    /// For gRPC and HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc: Option<SocketAddr>,
    /// For links from other cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<SocketAddr>,
}

impl Sockets {
    /// All of them.
    pub fn all(self) -> impl Iterator<Item = SocketAddr> {
        let Sockets { ring, client, admin, grpc, links } = self;
        [ring, client, admin].into_iter().chain(grpc).chain(links)
    }
}
