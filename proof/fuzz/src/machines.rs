//! Sequences of operations on the machines: their invariants hold for any messages in any order.

mod names;
mod rings;
mod stores;

use std::net::{Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use client::{Session, Trouble};
use engine::{Command, Executed, ServiceOutcome, Stack, Ticket};
use wire::client::{
    Access, Bind, Bound, Frame, Hello, Outcome, Refusal, Reply, Request, Target, Targets, Watch,
    Welcome,
};
use wire::ordered::{GroupOptions, Style};
use wire::versions::CLIENT;
use wire::{
    Caller, ClientId, Duration, Extension, GroupId, Incarnation, Member, MethodId, NodeId, Time,
    ViewNumber,
};

use crate::Source;
pub(crate) use names::registry;
pub(crate) use rings::{ring, schedule};
pub(crate) use stores::store;

/// More steps than that find nothing new, and take long.
const STEPS: usize = 400;

const GROUPS: [&str; 2] = ["counter", "echo"];

fn address(number: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 7_000 + number as u16))
}

fn group(source: &mut Source<'_>) -> GroupId {
    match source.below(9) {
        0 => GroupId(source.number()),
        n => GroupId::of(GROUPS[n % 2]),
    }
}

fn targets(source: &mut Source<'_>) -> Option<Targets> {
    let many = source.below(6).checked_sub(1)?;
    let view = ViewNumber(source.number());
    let target = |source: &mut Source<'_>| {
        let number = source.below(12);
        Target { node: NodeId(number as u32), address: address(number) }
    };
    let style = Style::ALL[source.below(Style::ALL.len())];
    Some(Targets { view, style, nodes: (0..many).map(|_| target(source)).collect() })
}

fn outcome(source: &mut Source<'_>) -> Outcome {
    match source.below(11) {
        0 => Outcome::Service(Bytes::from_static(b"no")),
        1 => Outcome::Busy { retry_after_us: source.number() as u32, reason: "later".into() },
        2 => Outcome::Refused(Refusal::Stale, String::new()),
        3 => Outcome::NotPrimary,
        8 => Outcome::Shed { instead: Some(NodeId(source.below(4) as u32)), reason: "much".into() },
        4 => Outcome::NoSuchGroup,
        5 => Outcome::NoReplica,
        6 => Outcome::Gone,
        _ => Outcome::Ok(Bytes::copy_from_slice(source.bytes(20))),
    }
}

/// A frame that a confused peer might send.
fn frame(source: &mut Source<'_>) -> Option<Frame> {
    Some(match source.below(10) {
        8 => Frame::Watch(Watch { group: group(source), view: ViewNumber(source.number()) }),
        9 => Frame::News(Bound { group: group(source), targets: targets(source) }),
        0 => Frame::Hello(Hello::new(ClientId(source.number()))),
        1 => Frame::Bind(Bind { name: GROUPS[source.below(2)].into() }),
        2 => {
            let version = if source.below(8) == 0 { source.byte() } else { CLIENT.greatest };
            let (node, extension) = (NodeId(1), Extension::default());
            Frame::Welcome(Welcome { version, node, cluster: "fuzz".into(), extension })
        }
        3 => Frame::Bound(Bound { group: group(source), targets: targets(source) }),
        4 => Frame::Reply(Reply {
            number: source.number(),
            group: group(source),
            view: ViewNumber(source.number()),
            targets: targets(source),
            outcome: outcome(source),
        }),
        5 | 6 => Frame::Request(Request {
            group: group(source),
            client: ClientId(source.number()),
            number: source.number(),
            unanswered: source.number(),
            view: ViewNumber(source.number()),
            method: MethodId(source.below(3) as u32),
            timeout_us: source.number() as u32,
            priority: 0,
            json: source.below(2) == 1,
            beside: false,
            has_key: false,
            access: match source.below(4) {
                0 => Access::Read,
                1 => Access::Stale { max_age_ms: 1 + u16::from(source.byte()) },
                _ => Access::Change,
            },
            body: Bytes::copy_from_slice(source.bytes(60)),
        }),
        _ => {
            let mut raw = BytesMut::from(source.bytes(200));
            return Frame::take(&mut raw).ok().flatten();
        }
    })
}

/// A step of time: often none, seldom long.
fn span(source: &mut Source<'_>) -> Duration {
    match source.below(6) {
        0 => Duration::from_secs(source.byte().into()),
        1 | 2 => Duration::from_millis(source.byte().into()),
        _ => Duration::from_micros(source.byte().into()),
    }
}

/// A node that is alone, with clients that send anything.
pub(crate) fn stack(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
    let nodes = vec![NodeId(1)];
    let mut now = Time(1_000_000);
    let config = ring::Config::new(wire::ClusterId::of("fuzz"), me, nodes.clone());
    let ring = ring::Ring::new(config, now).expect("default knobs are in range");
    let mut config = engine::Config::new(me, nodes, "fuzz".into());
    config.address = Some(address(1));
    let mut stack = Stack::new(config, ring, now);
    let mut waiting: Vec<(GroupId, Command)> = Vec::new();
    for _ in 0..STEPS {
        if source.is_empty() {
            break;
        }
        let caller = Caller(source.below(4) as u64);
        match source.below(10) {
            0 => {
                let _ = stack.host(now, GROUPS[source.below(2)], GroupOptions::default());
            }
            1 => stack.unhost(now, group(&mut source)),
            2 => stack.handle_disconnect(now, caller),
            3 => stack.handle_datagram(now, &Bytes::copy_from_slice(source.bytes(200))),
            4 | 5 => {
                if !waiting.is_empty() {
                    let (group, command) = waiting.remove(0);
                    if let Some((ticket, executed)) = execute(&mut source, command) {
                        stack.handle_executed(now, group, ticket, executed);
                    }
                }
            }
            6 => now += span(&mut source),
            _ => {
                let wall = Time(now.0 + u64::from(source.byte()));
                if let Some(frame) = frame(&mut source) {
                    stack.handle_frame(now, wall, caller, frame);
                }
            }
        }
        for _ in 0..50 {
            if stack.next_timeout().is_none_or(|due| due > now) {
                break;
            }
            stack.handle_timeout(now);
        }
        while let Some(output) = stack.poll_output() {
            match output {
                engine::Output::Run { group, command } => waiting.push((group, command)),
                engine::Output::Frame { frame, .. } => {
                    let mut bytes = BytesMut::from(&frame.encode()[..]);
                    assert_eq!(Frame::take(&mut bytes), Ok(Some(frame)), "it can be read");
                }
                _ => {}
            }
        }
        stack.check_invariants();
    }
}

/// The answers of a careless service.
fn execute(source: &mut Source<'_>, command: Command) -> Option<(Ticket, Executed)> {
    let state = Bytes::copy_from_slice(source.bytes(10));
    match command {
        Command::Execute { ticket, .. } => {
            let outcome = match source.below(3) {
                0 => ServiceOutcome::Error(state),
                1 => ServiceOutcome::Refused(Refusal::NoSuchMethod, "none".into()),
                _ => ServiceOutcome::Ok(state),
            };
            Some((ticket, Executed::Reply(outcome)))
        }
        Command::Snapshot { ticket } => Some((ticket, Executed::Snapshot(Ok(state)))),
        Command::Restore { ticket, .. } => Some((ticket, Executed::Restored(Ok(())))),
        Command::Change { ticket } => {
            let change = if source.below(8) == 0 { Err("none".into()) } else { Ok(state) };
            Some((ticket, Executed::Change(change)))
        }
        Command::Apply { ticket, .. } => {
            let applied = if source.below(8) == 0 { Err("none".into()) } else { Ok(()) };
            Some((ticket, Executed::Applied(applied)))
        }
        Command::Digest { .. }
        | Command::View(_)
        | Command::Start(_)
        | Command::Style(_)
        | Command::Reset
        | Command::Stop => None,
    }
}

/// A client's session with nodes that send anything.
pub(crate) fn session(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut now = Time(1_000_000);
    let addresses = (1..=1 + source.below(4)).map(address).collect();
    let config = client::Config::new(ClientId(7), addresses, u64::from(source.byte()));
    let mut session = Session::new(config, now);
    let mut links = Vec::new();
    let mut calls = Vec::new();
    for _ in 0..STEPS {
        if source.is_empty() {
            break;
        }
        let link = (!links.is_empty()).then(|| links[source.below(256) % links.len()]);
        match (source.below(10), link) {
            (0, _) => {
                let name = GROUPS[source.below(2)];
                let body = Bytes::copy_from_slice(source.bytes(30));
                let invocation = client::Invocation::new(name, MethodId(1)).body(body);
                calls.push(session.call(now, invocation.within(span(&mut source))));
            }
            (1, _) => {
                if let Some(call) = calls.pop() {
                    session.cancel(now, call);
                }
            }
            (2, Some(link)) => session.handle_connected(now, link),
            (3, Some(link)) => session.handle_disconnected(now, link),
            (4, Some(link)) => session.handle_failed(now, link, Trouble::Silent),
            (5, _) => now += span(&mut source),
            (6, _) => session.connect(now),
            (_, Some(link)) => {
                if let Some(frame) = frame(&mut source) {
                    session.handle_frame(now, link, frame);
                }
            }
            _ => {}
        }
        let mut timers = 0;
        while session.next_timeout().is_some_and(|due| due <= now) {
            session.handle_timeout(now);
            timers += 1;
            assert!(timers < 10_000, "a timer that is due again at once, for ever");
        }
        while let Some(output) = session.poll_output() {
            match output {
                client::Output::Connect { link, .. } => links.push(link),
                client::Output::Disconnect { link } => links.retain(|&other| other != link),
                _ => {}
            }
        }
        session.check_invariants();
    }
}
