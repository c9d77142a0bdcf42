//! The messages between clients and nodes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::client::{
    self, Access, Bind, Bound, Farewell, Frame, Hello, Outcome, Refusal, Reply, Watch, Welcome,
};
use wire::client::{Target, Targets};
use wire::limits::MAX_REPLICAS;
use wire::{ClientId, GroupId, MethodId, NodeId, ViewNumber};

use super::versions::{extension, versions};
use super::{address, bytes, name, numbers, style};

fn targets() -> impl Strategy<Value = Targets> {
    let target = (any::<u32>(), address())
        .prop_map(|(node, address)| Target { node: NodeId(node), address });
    (any::<u64>(), style(), vec(target, 0..=MAX_REPLICAS))
        .prop_map(|(view, style, nodes)| Targets { view: ViewNumber(view), style, nodes })
}

fn client_request() -> impl Strategy<Value = client::Request> {
    (any::<[u64; 3]>(), any::<[u32; 2]>(), any::<bool>(), access(), numbers(), bytes(64)).prop_map(
        |(
            [group, client, view],
            [method, timeout_us],
            json,
            access,
            (number, unanswered),
            body,
        )| {
            client::Request {
                group: GroupId(group),
                client: ClientId(client),
                number,
                unanswered,
                view: ViewNumber(view),
                method: MethodId(method),
                timeout_us,
                priority: number as u8,
                json,
                beside: view % 2 == 0,
                has_key: group % 2 == 0,
                access,
                body,
            }
        },
    )
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Change),
        Just(Access::Read),
        (1..u16::MAX).prop_map(|max_age_ms| Access::Stale { max_age_ms })
    ]
}

pub fn refusal() -> impl Strategy<Value = Refusal> {
    prop::sample::select(vec![
        Refusal::Window,
        Refusal::TooLarge,
        Refusal::NoSuchMethod,
        Refusal::BadArguments,
        Refusal::Failed,
        Refusal::Stale,
        Refusal::ReplyTooLarge,
        Refusal::Split,
        Refusal::NotReadOnly,
        Refusal::Poisoned,
        Refusal::Denied,
        Refusal::KeyReused,
    ])
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        bytes(64).prop_map(Outcome::Ok),
        bytes(64).prop_map(Outcome::Service),
        (refusal(), name()).prop_map(|(refusal, reason)| Outcome::Refused(refusal, reason)),
        (any::<u32>(), name())
            .prop_map(|(retry_after_us, reason)| Outcome::Busy { retry_after_us, reason }),
        (any::<u32>(), name()).prop_map(|(node, reason)| Outcome::Shed {
            instead: Some(NodeId(node)).filter(|node| node.0 != 0),
            reason
        }),
        Just(Outcome::NotPrimary),
        Just(Outcome::NoSuchGroup),
        Just(Outcome::NoReplica),
        Just(Outcome::Gone),
    ]
}

pub fn frame() -> impl Strategy<Value = Frame> {
    let reply = (any::<[u64; 3]>(), option::of(targets()), outcome()).prop_map(
        |([number, group, view], targets, outcome)| Reply {
            number,
            group: GroupId(group),
            view: ViewNumber(view),
            targets,
            outcome,
        },
    );
    prop_oneof![
        (any::<u64>(), versions(), extension()).prop_map(|(client, speaks, extension)| {
            Frame::Hello(Hello { speaks, extension, ..Hello::new(ClientId(client)) })
        }),
        (any::<(u8, u32)>(), name(), extension()).prop_map(
            |((version, node), cluster, extension)| {
                Frame::Welcome(Welcome { version, node: NodeId(node), cluster, extension })
            }
        ),
        name().prop_map(|name| Frame::Bind(Bind { name })),
        (any::<u64>(), option::of(targets()))
            .prop_map(|(group, targets)| Frame::Bound(Bound { group: GroupId(group), targets })),
        client_request().prop_map(Frame::Request),
        reply.prop_map(Frame::Reply),
        (versions(), name(), extension()).prop_map(|(speaks, reason, extension)| {
            Frame::Farewell(Farewell { speaks, reason, extension })
        }),
        any::<(u64, u64)>().prop_map(|(group, view)| Frame::Watch(Watch {
            group: GroupId(group),
            view: ViewNumber(view)
        })),
        (any::<u64>(), option::of(targets()))
            .prop_map(|(group, targets)| Frame::News(Bound { group: GroupId(group), targets })),
    ]
}
