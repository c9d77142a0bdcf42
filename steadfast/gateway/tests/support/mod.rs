//! A cluster with gateways in the test's own process, and callers that know nothing of it.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use fixture::cluster;
use serde::{Deserialize, Serialize};
use steadfast::{HostOptions, Node, RegistryKnobs};
use steadfast_gateway::{Door, Listen, Options, Place, bind};
use tokio::sync::oneshot;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Response, Status};

/// Nothing here may take so long: a test that waits so long has failed.
pub const LONG: Duration = Duration::from_secs(20);

#[steadfast::service]
pub trait Counter {
    /// Adds `n` and returns the sum.
    fn add(&mut self, n: u64) -> u64;
    /// Takes `n` away, if the sum is as large.
    fn take(&mut self, n: u64) -> Result<u64, Missing>;
    fn get(&self) -> u64;
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Missing {
    pub by: u64,
}

#[derive(Default, Serialize, Deserialize)]
pub struct Sum(u64);

impl Counter for Sum {
    fn add(&mut self, n: u64) -> u64 {
        self.0 += n;
        self.0
    }

    fn take(&mut self, n: u64) -> Result<u64, Missing> {
        self.0 = self.0.checked_sub(n).ok_or(Missing { by: n.wrapping_sub(self.0) })?;
        Ok(self.0)
    }

    fn get(&self) -> u64 {
        self.0
    }
}

/// So many nodes, each with a replica of the group `counter`.
pub fn nodes(count: usize) -> Vec<Node> {
    nodes_in(count, HostOptions::default())
}

/// The same in a style of its own.
pub fn nodes_in(count: usize, options: HostOptions) -> Vec<Node> {
    let on = |config: &mut steadfast::NodeConfig| {
        config.registry = RegistryKnobs { on: true, ..RegistryKnobs::default() };
    };
    let nodes = cluster::start_with(count, on);
    for node in &nodes {
        node.host("counter", options, || CounterService::new(Sum::default()))
            .expect("it takes replicas");
    }
    cluster::wait_for_replicas(&nodes[0], "counter", count);
    nodes
}

/// A gateway that runs, until this is dropped.
pub struct Gateway {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// A gateway beside a client.
    pub fn beside(nodes: &[Node]) -> Gateway {
        Gateway::start(options(nodes), None)
    }

    /// The gateway of a node.
    pub fn on(node: &Node) -> Gateway {
        Gateway::start(options(std::slice::from_ref(node)), Some(node))
    }

    pub fn secure(node: &Node, tls: tls::Client, door: Door) -> Gateway {
        let options = options(std::slice::from_ref(node));
        Gateway::start(Options { tls: Some(tls), door: Some(door), ..options }, Some(node))
    }

    fn start(mut options: Options, on: Option<&Node>) -> Gateway {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = port.local_addr().expect("it has one");
        drop(port);
        options.listen = Listen::Tcp(address);
        options.place = on.map(|node| Place {
            node: node.id(),
            address,
            client: node.client_address().expect("it takes clients"),
        });
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let body = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let bound = bind(options).await.expect("a free port");
                ready.send(()).expect("the test waits");
                bound.serve(async { _ = stopped.await }).await.expect("nodes are there");
            });
        };
        let thread = std::thread::spawn(body);
        is_ready.recv_timeout(LONG).expect("it listens");
        Gateway { address, stop: Some(stop), thread: Some(thread) }
    }

    pub fn caller(&self) -> Caller {
        Caller::connect(self.address)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().expect("it runs").join();
        assert!(ended.is_ok() || std::thread::panicking(), "the gateway panicked");
    }
}

fn options(nodes: &[Node]) -> Options {
    Options {
        listen: Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0))),
        nodes: cluster::addresses(nodes),
        tls: None,
        door: None,
        place: None,
        insecure: false,
    }
}

/// A stock gRPC client.
pub struct Caller {
    pub runtime: tokio::runtime::Runtime,
    pub channel: Channel,
}

impl Caller {
    pub fn connect(address: SocketAddr) -> Caller {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let endpoint = Channel::from_shared(format!("http://{address}")).expect("an address");
        let channel = runtime.block_on(endpoint.connect()).expect("the gateway listens");
        Caller { runtime, channel }
    }

    /// Calls with JSON and these metadata.
    pub fn call(
        &self,
        path: &str,
        message: &str,
        metadata: &[(&'static str, &str)],
    ) -> Result<Response<String>, Status> {
        let mut request = tonic::Request::new(Bytes::copy_from_slice(message.as_bytes()));
        let all: &mut MetadataMap = request.metadata_mut();
        all.insert("steadfast-encoding", "json".parse().expect("a word"));
        for (name, value) in metadata {
            all.insert(*name, value.parse().expect("metadata"));
        }
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        let path = path.parse().expect("a path");
        let answer = self.runtime.block_on(async {
            client.ready().await.expect("it is connected");
            tokio::time::timeout(LONG, client.unary(request, path, Raw)).await.expect("an answer")
        });
        answer.map(|answer| {
            answer.map(|bytes| String::from_utf8(bytes.to_vec()).expect("an answer in JSON"))
        })
    }

    pub fn result(&self, path: &str, message: &str, metadata: &[(&'static str, &str)]) -> String {
        self.call(path, message, metadata).expect("it is executed").into_inner()
    }
}

/// One request by HTTP/1: the status and the answer.
pub fn http(address: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let answer = answer(address, head, body);
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status, body.expect("a body"))
}

/// One request by HTTP/1: all of the answer.
pub fn answer(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the gateway listens");
    stream.set_read_timeout(Some(LONG)).expect("a time-out");
    let length = body.len();
    let text = format!(
        "{head}\r\nhost: gateway\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).expect("it reads all, also of what it refuses");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    answer
}

/// Messages as they are.
#[derive(Clone, Copy, Default)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
