//! Calls by gRPC, as experiments make them: the called service, the stub that
//! `steadfast describe work --proto` stands for, and the processes that serve it. These are
//! gateways, and an echo that is tonic alone.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use gateway::{Listen, Options, Place, bind};
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadfast::{Node, NodeId};
use tokio::runtime::{Builder, Runtime};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::server::UnaryService;
use tonic::transport::Endpoint;
use tonic::transport::server::{Server as Transport, TcpIncoming};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use wire::Random;

use crate::Outcome;
use crate::child::hosted;
use crate::cluster::wall;
use crate::process::{Process, Role};

/// The group.
pub const GROUP: &str = "work";

/// How its replicas are hosted: semi-active, and a majority holds each call.
const HOSTED: &str = "inline";

/// The methods that change something, by the group's name and by its contract.
const SWAP: &str = "/work.Work/swap";
const PUT: &str = "/work.Work/put";

/// Threads of a process that serves: as many as `steadfast gateway` has.
const WORKERS: usize = 2;

/// The address at which processes serve: nobody connects from there, so its ports stay free.
const HOST: [u8; 4] = [127, 0, 2, 1];

/// The called service.
#[steadfast::service]
pub trait Work {
    /// Keeps `text`, and returns the one that it kept before.
    fn swap(&mut self, text: String) -> String;
    /// The same, but what it kept before is of no use; returns `text`.
    fn put(&mut self, text: String) -> String;
    /// The number of swaps and puts.
    fn swaps(&self) -> u64;
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    text: String,
    swaps: u64,
}

impl Work for Kept {
    fn swap(&mut self, text: String) -> String {
        self.swaps += 1;
        std::mem::replace(&mut self.text, text)
    }

    fn put(&mut self, text: String) -> String {
        self.swap(text.clone());
        text
    }

    fn swaps(&self) -> u64 {
        self.swaps
    }
}

/// Hosts a replica of the group. False: this is another group.
pub fn host(node: &Node, group: &str) -> Outcome<bool> {
    if group == GROUP {
        node.host(group, hosted(HOSTED)?, || WorkService::new(Kept::default()))?;
    }
    Ok(group == GROUP)
}

#[derive(Clone, PartialEq, Message)]
struct SwapRequest {
    #[prost(string, tag = "1")]
    text: String,
}

#[derive(Clone, PartialEq, Message)]
struct SwapReply {
    #[prost(string, tag = "1")]
    result: String,
}

/// A stub over any channel, as tonic generates them.
#[derive(Clone)]
pub struct Stub<T> {
    grpc: tonic::client::Grpc<T>,
    deadline: Duration,
    keys: Option<Keys>,
}

/// Keys, as an interceptor gives them to calls that follow each other.
#[derive(Clone)]
struct Keys {
    session: MetadataValue<Ascii>,
    last: u64,
}

impl<T: GrpcService<Body, ResponseBody = Body>> Stub<T> {
    /// A stub whose calls each have this deadline.
    pub fn new(channel: T, deadline: Duration) -> Stub<T> {
        Stub { grpc: tonic::client::Grpc::new(channel), deadline, keys: None }
    }

    /// The same, with a key for each call: it is executed exactly once.
    pub fn with_keys(self) -> Outcome<Stub<T>> {
        let session = format!("{:x}", Random::new(wall()).next_u64()).parse()?;
        Ok(Stub { keys: Some(Keys { session, last: 0 }), ..self })
    }

    /// Makes one call.
    pub async fn swap(&mut self, text: String) -> Result<String, Status> {
        let key = self.keys.as_mut().map(|Keys { session, last }| {
            *last += 1;
            (session.clone(), *last)
        });
        self.call(SWAP, text, key).await
    }

    /// Makes a call with this session and number, whichever calls had them before.
    pub async fn swap_as(
        &mut self,
        key: (MetadataValue<Ascii>, u64),
        text: String,
    ) -> Result<String, Status> {
        self.call(SWAP, text, Some(key)).await
    }

    /// The same of the other method.
    pub async fn put_as(
        &mut self,
        key: (MetadataValue<Ascii>, u64),
        text: String,
    ) -> Result<String, Status> {
        self.call(PUT, text, Some(key)).await
    }

    async fn call(
        &mut self,
        path: &'static str,
        text: String,
        key: Option<(MetadataValue<Ascii>, u64)>,
    ) -> Result<String, Status> {
        let mut request = Request::new(SwapRequest { text });
        request.set_timeout(self.deadline);
        if let Some((session, number)) = key {
            let metadata = request.metadata_mut();
            metadata.insert("steadfast-session", session);
            metadata.insert("steadfast-call", number.into());
            metadata.insert("steadfast-unanswered", number.into());
        }
        let ready = self.grpc.ready().await;
        ready.map_err(|error| Status::unavailable(error.into().to_string()))?;
        let codec = ProstCodec::<SwapRequest, SwapReply>::default();
        let path = http::uri::PathAndQuery::from_static(path);
        Ok(self.grpc.unary(request, path, codec).await?.into_inner().result)
    }
}

/// Where a process serves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum At {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl At {
    /// A TCP address that is free.
    pub fn free() -> Outcome<At> {
        Ok(At::Tcp(TcpListener::bind(SocketAddr::from((HOST, 0)))?.local_addr()?))
    }

    /// The same place, for clients of tonic.
    pub fn endpoint(&self) -> Outcome<Endpoint> {
        Ok(Endpoint::from_shared(match self {
            At::Tcp(address) => format!("http://{address}"),
            At::Unix(path) => format!("unix:{}", path.display()),
        })?)
    }
}

/// The service of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Serves {
    /// Tonic alone: it gives back what it gets.
    Echo,
    /// A gateway that knows these nodes.
    Gateway {
        /// Their addresses for clients.
        nodes: Vec<SocketAddr>,
        /// The node to which the gateway belongs. `None`: it is beside a client.
        of: Option<NodeId>,
    },
}

/// A process that serves, killed when it is dropped.
pub struct Server {
    _process: Process,
    /// Its place.
    pub at: At,
}

impl Server {
    /// Starts one, of this experiment, and waits until its port is open.
    pub fn start(experiment: &str, at: At, serves: &Serves) -> Outcome<Server> {
        let mut process = Process::start(&Role::own(experiment, (&at, serves))?)?;
        match process.line()?.is_empty() {
            true => Err("a process that was to serve gRPC has ended: it said why".into()),
            false => Ok(Server { _process: process, at }),
        }
    }
}

/// The life of such a process.
pub fn live(orders: Value) -> Outcome<()> {
    let (at, serves) = serde_json::from_value(orders)?;
    runtime(WORKERS)?.block_on(async {
        match (serves, at) {
            (Serves::Gateway { nodes, of }, at) => serve_gateway(at, nodes, of).await,
            (Serves::Echo, At::Tcp(at)) => {
                let incoming = TcpIncoming::bind(at)?.with_nodelay(Some(true));
                println!("{{}}");
                Ok(Transport::builder().serve_with_incoming(Echo, incoming).await?)
            }
            (Serves::Echo, At::Unix(_)) => Err("the echo serves by TCP".into()),
        }
    })
}

async fn serve_gateway(at: At, nodes: Vec<SocketAddr>, of: Option<NodeId>) -> Outcome<()> {
    let place = match (of, &at) {
        (Some(node), At::Tcp(address)) => Some(Place { node, address: *address, client: nodes[0] }),
        _ => None,
    };
    let listen = match at {
        At::Tcp(address) => Listen::Tcp(address),
        At::Unix(path) => Listen::Unix(path),
    };
    let options = Options { listen, nodes, tls: None, door: None, place, insecure: false };
    let bound = bind(options).await?;
    println!("{{}}");
    Ok(bound.serve(std::future::pending()).await?)
}

/// A runtime of tokio with so many threads of its own; 0: that of its caller.
pub fn runtime(workers: usize) -> Outcome<Runtime> {
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if workers > 0 {
        builder.worker_threads(workers);
    }
    Ok(builder.enable_all().build()?)
}

/// The server of tonic alone, as tonic generates them.
#[derive(Clone)]
struct Echo;

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let codec = ProstCodec::<SwapReply, SwapRequest>::default();
        let mut grpc = tonic::server::Grpc::new(codec);
        Box::pin(async move { Ok(grpc.unary(Echo, request).await) })
    }
}

impl UnaryService<SwapRequest> for Echo {
    type Response = SwapReply;
    type Future = Ready<Result<Response<SwapReply>, Status>>;

    fn call(&mut self, request: Request<SwapRequest>) -> Self::Future {
        ready(Ok(Response::new(SwapReply { result: request.into_inner().text })))
    }
}
