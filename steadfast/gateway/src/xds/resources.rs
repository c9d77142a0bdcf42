//! A group's resources: how its callers find the gateways, best first, and what they may retry.

use std::net::SocketAddr;

use client::Followed;
use wire::NodeId;
use wire::ordered::Style;

use super::proto::*;
use crate::keys;

/// The kinds of resources, in the order in which a client asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Listener,
    Cluster,
    Endpoints,
}

const PREFIX: &str = "type.googleapis.com/";

impl Kind {
    pub(crate) fn of(type_url: &str) -> Option<Kind> {
        let name = type_url.strip_prefix(PREFIX)?;
        [Kind::Listener, Kind::Cluster, Kind::Endpoints].into_iter().find(|it| it.name() == name)
    }

    pub(crate) fn url(self) -> String {
        format!("{PREFIX}{}", self.name())
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Listener => "envoy.config.listener.v3.Listener",
            Kind::Cluster => "envoy.config.cluster.v3.Cluster",
            Kind::Endpoints => "envoy.config.endpoint.v3.ClusterLoadAssignment",
        }
    }
}

/// A gateway on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer {
    pub(crate) node: NodeId,
    pub(crate) address: SocketAddr,
    /// Where the node's clients connect.
    pub(crate) client: SocketAddr,
}

/// All that the resources of a group are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Knowledge {
    pub(crate) group: String,
    pub(crate) followed: Followed,
    /// Gateways of the cluster, by node.
    pub(crate) peers: Vec<Peer>,
    /// The paths of the methods that change nothing.
    pub(crate) reads: Vec<String>,
}

impl Knowledge {
    /// The group's resource of this kind.
    pub(crate) fn resource(&self, kind: Kind) -> Any {
        match kind {
            Kind::Listener => Any::pack(kind.name(), &self.listener()),
            Kind::Cluster => Any::pack(kind.name(), &self.cluster()),
            Kind::Endpoints => Any::pack(kind.name(), &self.endpoints()),
        }
    }

    /// The newest view that this knows.
    pub(crate) fn view(&self) -> u64 {
        match &self.followed {
            Followed::Known(targets) => targets.view.0,
            Followed::Unknown | Followed::Absent => 0,
        }
    }

    /// A call is retried if it reads, or has a key. Any other may have been executed by the attempt
    /// that failed. grpc-java obeys a retry policy on a route only.
    fn listener(&self) -> Listener {
        let prefix =
            |headers| RouteMatch { path: Some(PathSpecifier::Prefix(String::new())), headers };
        let keyed = HeaderMatcher { name: keys::CALL.into(), present: Some(true) };
        let route = |matches, retry_policy| Route {
            matches: Some(matches),
            action: Some(RouteAction { cluster: self.group.clone(), retry_policy }),
        };
        let read = |path: &String| {
            let path = Some(PathSpecifier::Path(path.clone()));
            route(RouteMatch { path, headers: Vec::new() }, Some(retry_policy()))
        };
        let mut routes: Vec<Route> = self.reads.iter().map(read).collect();
        routes.push(route(prefix(vec![keyed]), Some(retry_policy())));
        routes.push(route(prefix(Vec::new()), None));
        let host = VirtualHost { name: self.group.clone(), domains: vec!["*".into()], routes };
        let route_config =
            RouteConfiguration { name: self.group.clone(), virtual_hosts: vec![host] };
        let router = "envoy.extensions.filters.http.router.v3.Router";
        let filter =
            HttpFilter { name: "router".into(), typed_config: Some(Any::pack(router, &Empty {})) };
        let manager =
            HttpConnectionManager { route_config: Some(route_config), http_filters: vec![filter] };
        let name =
            "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
        let api_listener = ApiListener { api_listener: Some(Any::pack(name, &manager)) };
        Listener { name: self.group.clone(), api_listener: Some(api_listener) }
    }

    fn cluster(&self) -> Cluster {
        let ads = ConfigSource { ads: Some(Empty {}), resource_api_version: 2 };
        Cluster {
            name: self.group.clone(),
            discovery: DiscoveryType::Eds.into(),
            eds_cluster_config: Some(EdsClusterConfig { eds_config: Some(ads) }),
        }
    }

    fn endpoints(&self) -> ClusterLoadAssignment {
        let endpoint = |(priority, peer): (u32, &Peer)| LocalityEndpoints {
            // A replica's own, whatever its rank: clients keep a locality's connections.
            locality: Some(Locality {
                region: "steadfast".into(),
                zone: format!("node-{}", peer.node.0),
            }),
            endpoints: vec![LbEndpoint {
                endpoint: Some(Endpoint { address: Some(to_address(peer.address)) }),
                health_status: 1,
            }],
            weight: Some(UInt32 { value: 1 }),
            priority,
        };
        // Envoy alone heeds it: all of a rank must be lost before the next is used.
        let factor = UInt32 { value: 100_000 };
        ClusterLoadAssignment {
            cluster_name: self.group.clone(),
            endpoints: self.ranked().into_iter().map(endpoint).collect(),
            policy: Some(AssignmentPolicy { overprovisioning_factor: Some(factor) }),
        }
    }

    /// The gateways with their priorities, 0 the best. Those of nodes without a replica come last:
    /// they pass calls on.
    fn ranked(&self) -> Vec<(u32, &Peer)> {
        let (style, targets) = match &self.followed {
            Followed::Known(targets) => (Some(targets.style), &targets.nodes[..]),
            Followed::Unknown | Followed::Absent => (None, &[][..]),
        };
        let at = |node: NodeId| self.peers.iter().find(move |peer| peer.node == node);
        let first: Vec<&Peer> = targets.iter().filter_map(|target| at(target.node)).collect();
        let others = self.peers.iter().filter(|peer| !first.contains(peer));
        let mut ranked = Vec::new();
        let mut next = 0;
        for peer in &first {
            ranked.push((next, *peer));
            // Every replica of a stateless group is as good as another.
            next += u32::from(style != Some(Style::Stateless));
        }
        next += u32::from(style == Some(Style::Stateless) && !first.is_empty());
        ranked.extend(others.zip(next..).map(|(peer, priority)| (priority, peer)));
        ranked
    }
}

/// grpcio hangs with a back-off of 1 ms, and never does from 2 ms on.
fn retry_policy() -> RetryPolicy {
    let ms = |count: i32| Some(Span { seconds: 0, nanos: count * 1_000_000 });
    RetryPolicy {
        retry_on: "unavailable".into(),
        num_retries: Some(UInt32 { value: 4 }),
        retry_back_off: Some(RetryBackOff { base_interval: ms(5), max_interval: ms(50) }),
    }
}

fn to_address(address: SocketAddr) -> Address {
    let (address, port) = (address.ip().to_string(), address.port().into());
    Address { socket_address: Some(SocketAddress { address, port }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use wire::ViewNumber;
    use wire::client::{Target, Targets};

    fn peer(node: u32) -> Peer {
        let address = SocketAddr::from(([10, 0, 0, node as u8], 7443));
        Peer { node: NodeId(node), address, client: address }
    }

    fn knowledge(style: Style, targets: &[u32], peers: &[u32]) -> Knowledge {
        let target = |node: &u32| Target { node: NodeId(*node), address: peer(*node).address };
        let nodes = targets.iter().map(target).collect();
        Knowledge {
            group: "counter".into(),
            followed: Followed::Known(Targets { view: ViewNumber(7), style, nodes }),
            peers: peers.iter().map(|node| peer(*node)).collect(),
            reads: vec!["/counter.Counter/get".into()],
        }
    }

    /// Priority and node of each endpoint.
    fn ranks(knowledge: &Knowledge) -> Vec<(u32, String)> {
        let zone = |it: &LocalityEndpoints| it.locality.clone().expect("it has one").zone;
        knowledge.endpoints().endpoints.iter().map(|it| (it.priority, zone(it))).collect()
    }

    fn at(priority: u32, node: u32) -> (u32, String) {
        (priority, format!("node-{node}"))
    }

    #[test]
    fn gateways_stand_in_the_order_of_the_targets_and_others_behind() {
        let all = knowledge(Style::SemiActive, &[3, 1], &[1, 2, 3, 4]);
        assert_eq!(ranks(&all), [at(0, 3), at(1, 1), at(2, 2), at(3, 4)]);
        // A target whose node has no gateway leaves no gap: gRPC refuses one.
        let some = knowledge(Style::SemiActive, &[3, 1, 2], &[1, 2]);
        assert_eq!(ranks(&some), [at(0, 1), at(1, 2)]);
        let nobody = knowledge(Style::SemiActive, &[], &[1, 2]);
        assert_eq!(ranks(&nobody), [at(0, 1), at(1, 2)]);
    }

    #[test]
    fn replicas_of_a_stateless_group_share_the_first_rank() {
        let all = knowledge(Style::Stateless, &[3, 1], &[1, 2, 3]);
        assert_eq!(ranks(&all), [at(0, 3), at(0, 1), at(1, 2)]);
    }

    #[test]
    fn reads_and_calls_with_a_key_are_retried_and_no_others() {
        let listener = knowledge(Style::SemiActive, &[1], &[1]).listener();
        let manager = listener.api_listener.and_then(|it| it.api_listener).expect("a manager");
        let manager = HttpConnectionManager::decode(&*manager.value).expect("ours");
        let host = &manager.route_config.expect("a table").virtual_hosts[0];
        let retried = |route: &Route| {
            let matches = route.matches.clone().expect("a match");
            let headers: Vec<String> = matches.headers.into_iter().map(|it| it.name).collect();
            let action = route.action.clone().expect("an action");
            (matches.path.expect("a path"), headers, action.retry_policy.is_some())
        };
        let routes: Vec<_> = host.routes.iter().map(retried).collect();
        let prefix = || PathSpecifier::Prefix(String::new());
        let read = PathSpecifier::Path("/counter.Counter/get".into());
        let expected = [
            (read, vec![], true),
            (prefix(), vec!["steadfast-call".to_owned()], true),
            (prefix(), vec![], false),
        ];
        assert_eq!(routes, expected);
    }

    #[test]
    fn kinds_are_known_by_their_urls() {
        for kind in [Kind::Listener, Kind::Cluster, Kind::Endpoints] {
            assert_eq!(Kind::of(&kind.url()), Some(kind));
        }
        assert_eq!(Kind::of("type.googleapis.com/envoy.config.route.v3.RouteConfiguration"), None);
    }
}
