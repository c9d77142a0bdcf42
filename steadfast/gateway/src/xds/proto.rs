//! The messages of xDS that gRPC clients read, and their fields that we write.
//!
//! Names and numbers are those of Envoy's API, version 3. The whole API is some 8 MB of generated
//! code: decision 0070 says why it is not used.

use prost::{Enumeration, Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

impl Any {
    pub(crate) fn pack(name: &str, message: &impl Message) -> Any {
        Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec() }
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct UInt32 {
    #[prost(uint32, tag = "1")]
    pub(crate) value: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Client {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "6")]
    pub(crate) user_agent: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Refused {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DiscoveryRequest {
    #[prost(string, tag = "1")]
    pub(crate) version_info: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) node: Option<Client>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) resource_names: Vec<String>,
    #[prost(string, tag = "4")]
    pub(crate) type_url: String,
    #[prost(string, tag = "5")]
    pub(crate) response_nonce: String,
    #[prost(message, optional, tag = "6")]
    pub(crate) error_detail: Option<Refused>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DiscoveryResponse {
    #[prost(string, tag = "1")]
    pub(crate) version_info: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) resources: Vec<Any>,
    #[prost(string, tag = "4")]
    pub(crate) type_url: String,
    #[prost(string, tag = "5")]
    pub(crate) nonce: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Listener {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "19")]
    pub(crate) api_listener: Option<ApiListener>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ApiListener {
    #[prost(message, optional, tag = "1")]
    pub(crate) api_listener: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpConnectionManager {
    #[prost(message, optional, tag = "4")]
    pub(crate) route_config: Option<RouteConfiguration>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) http_filters: Vec<HttpFilter>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpFilter {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) typed_config: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RouteConfiguration {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) virtual_hosts: Vec<VirtualHost>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VirtualHost {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) domains: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) routes: Vec<Route>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Route {
    #[prost(message, optional, tag = "1")]
    pub(crate) matches: Option<RouteMatch>,
    #[prost(message, optional, tag = "2")]
    pub(crate) action: Option<RouteAction>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RouteMatch {
    #[prost(oneof = "PathSpecifier", tags = "1, 2")]
    pub(crate) path: Option<PathSpecifier>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) headers: Vec<HeaderMatcher>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum PathSpecifier {
    #[prost(string, tag = "1")]
    Prefix(String),
    #[prost(string, tag = "2")]
    Path(String),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderMatcher {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(bool, optional, tag = "7")]
    pub(crate) present: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RouteAction {
    #[prost(string, tag = "1")]
    pub(crate) cluster: String,
    #[prost(message, optional, tag = "9")]
    pub(crate) retry_policy: Option<RetryPolicy>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RetryPolicy {
    #[prost(string, tag = "1")]
    pub(crate) retry_on: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) num_retries: Option<UInt32>,
    #[prost(message, optional, tag = "8")]
    pub(crate) retry_back_off: Option<RetryBackOff>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct RetryBackOff {
    #[prost(message, optional, tag = "1")]
    pub(crate) base_interval: Option<Span>,
    #[prost(message, optional, tag = "2")]
    pub(crate) max_interval: Option<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Cluster {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(enumeration = "DiscoveryType", tag = "2")]
    pub(crate) discovery: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) eds_cluster_config: Option<EdsClusterConfig>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Enumeration)]
#[repr(i32)]
pub(crate) enum DiscoveryType {
    Static = 0,
    Eds = 3,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct EdsClusterConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) eds_config: Option<ConfigSource>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ConfigSource {
    #[prost(message, optional, tag = "3")]
    pub(crate) ads: Option<Empty>,
    /// 2: version 3 of the API.
    #[prost(int32, tag = "6")]
    pub(crate) resource_api_version: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClusterLoadAssignment {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) endpoints: Vec<LocalityEndpoints>,
    #[prost(message, optional, tag = "4")]
    pub(crate) policy: Option<AssignmentPolicy>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct AssignmentPolicy {
    #[prost(message, optional, tag = "3")]
    pub(crate) overprovisioning_factor: Option<UInt32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LocalityEndpoints {
    #[prost(message, optional, tag = "1")]
    pub(crate) locality: Option<Locality>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) endpoints: Vec<LbEndpoint>,
    #[prost(message, optional, tag = "3")]
    pub(crate) weight: Option<UInt32>,
    #[prost(uint32, tag = "5")]
    pub(crate) priority: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Locality {
    #[prost(string, tag = "1")]
    pub(crate) region: String,
    #[prost(string, tag = "2")]
    pub(crate) zone: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LbEndpoint {
    #[prost(message, optional, tag = "1")]
    pub(crate) endpoint: Option<Endpoint>,
    /// 1: healthy.
    #[prost(int32, tag = "2")]
    pub(crate) health_status: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Endpoint {
    #[prost(message, optional, tag = "1")]
    pub(crate) address: Option<Address>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Address {
    #[prost(message, optional, tag = "1")]
    pub(crate) socket_address: Option<SocketAddress>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SocketAddress {
    #[prost(string, tag = "2")]
    pub(crate) address: String,
    #[prost(uint32, tag = "3")]
    pub(crate) port: u32,
}
