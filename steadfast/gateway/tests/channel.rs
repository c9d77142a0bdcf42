//! Stubs of tonic over a channel of ours, in protobuf, while replicas end.

mod support;

use prost::Message;
use steadfast::{AsyncClient, HostOptions};
use steadfast_gateway::Channel;
use support::{CounterService, LONG, Sum, nodes};
use tonic::Code;
use tonic_prost::ProstCodec;

/// As `steadfast describe counter --proto` has it.
#[derive(Clone, PartialEq, Message)]
struct AddRequest {
    #[prost(uint64, tag = "1")]
    n: u64,
}

#[derive(Clone, PartialEq, Message)]
struct AddReply {
    #[prost(uint64, tag = "1")]
    result: u64,
}

/// Calls as tonic's generated stubs do.
async fn call(channel: &Channel, method: &str, n: u64) -> Result<u64, tonic::Status> {
    let mut stub = tonic::client::Grpc::new(channel.clone());
    stub.ready().await.expect("it is always ready");
    let path = format!("/counter.Counter/{method}").parse().expect("a path");
    let request = tonic::Request::new(AddRequest { n });
    let codec = ProstCodec::<AddRequest, AddReply>::default();
    stub.unary(request, path, codec).await.map(|reply| reply.into_inner().result)
}

#[test]
fn a_stub_goes_on_while_the_primary_moves_and_ends() {
    let mut nodes = nodes(3);
    let addresses = fixture::cluster::addresses(&nodes);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let client = AsyncClient::connect(addresses).await.expect("nodes are there");
        let channel = Channel::new(&client, "counter").expect("a plain name");
        assert_eq!(call(&channel, "add", 0).await.expect("executed"), 0);
        let callers = (0..4).map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move {
                for _ in 0..500 {
                    call(&channel, "add", 1).await.expect("no call fails");
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        let ending = tokio::task::spawn_blocking(move || {
            // In order: its callers are told, and go on elsewhere.
            nodes.remove(0).stop().expect("it stops");
            nodes
        });
        for caller in callers {
            tokio::time::timeout(LONG, caller).await.expect("it ends").expect("it did not panic");
        }
        let nodes = ending.await.expect("it did not panic");
        assert_eq!(call(&channel, "get", 0).await.expect("executed"), 2000);
        drop(nodes);
    });
}

#[test]
fn errors_are_those_of_a_gateway() {
    let nodes = nodes(1);
    let addresses = fixture::cluster::addresses(&nodes);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let client = AsyncClient::connect(addresses).await.expect("nodes are there");
        let channel = Channel::new(&client, "counter").expect("a plain name");
        let missing = call(&channel, "take", 5).await.expect_err("there are none");
        assert_eq!((missing.code(), missing.message()), (Code::FailedPrecondition, "{\"by\":5}"));
        let unknown = call(&channel, "multiply", 5).await.expect_err("there is none");
        assert_eq!(unknown.code(), Code::Unimplemented);
        assert!(unknown.message().contains("add, take, get"), "{}", unknown.message());
        let other = Channel::new(&client, "nothing").expect("a plain name");
        let absent = call(&other, "add", 5).await.expect_err("there is none");
        assert_eq!(absent.code(), Code::NotFound);
        assert!(Channel::new(&client, "größe\n").is_err());
    });
}

#[test]
fn a_group_is_called_as_soon_as_it_is_there() {
    let nodes = nodes(1);
    let addresses = fixture::cluster::addresses(&nodes);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let client = AsyncClient::connect(addresses).await.expect("nodes are there");
        let channel = Channel::new(&client, "later").expect("a plain name");
        let absent = call(&channel, "add", 5).await.expect_err("there is none yet");
        assert_eq!(absent.code(), Code::NotFound);
        nodes[0]
            .host("later", HostOptions::default(), || CounterService::new(Sum::default()))
            .expect("it takes replicas");
        fixture::cluster::wait_for_replicas(&nodes[0], "later", 1);
        assert_eq!(call(&channel, "add", 5).await.expect("executed"), 5);
    });
}
