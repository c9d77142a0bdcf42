//! A client by hand, a tiny service, and waiting for conditions without sleeping.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use client::Invocation;
use steadfast_node::{BoxError, Call, Context, Node, Service, ServiceOutcome, Status};
use wire::client::{Bind, Bound, Frame, Hello, Outcome, Refusal, Reply, Request, Targets};
use wire::{ClientId, GroupId, MethodId, ViewNumber};

/// Everything must have happened within this time, on the slowest machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub const APPEND: MethodId = MethodId::of("append");
pub const PANIC: MethodId = MethodId::of("panic");
pub const HUGE: MethodId = MethodId::of("huge");
pub const CONTEXT: MethodId = MethodId::of("context");
/// Has the rest of its arguments, after a colon, appended by the group that they name first.
pub const RELAY: MethodId = MethodId::of("relay");

/// Keeps all that was appended; answers with how much that is.
#[derive(Default)]
pub struct Journal(Vec<u8>);

impl Service for Journal {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        match call.method {
            APPEND => {
                self.0.extend_from_slice(call.body);
                ServiceOutcome::Ok(self.0.len().to_string().into())
            }
            RELAY => {
                let text = std::str::from_utf8(call.body).expect("a test writes text");
                let (group, rest) = text.split_once(':').expect("a group is named");
                let rest = Bytes::copy_from_slice(rest.as_bytes());
                match context.call(Invocation::new(group, APPEND).body(rest).within(TIMEOUT)) {
                    Ok(reply) => {
                        self.0.extend_from_slice(&reply);
                        ServiceOutcome::Ok(reply)
                    }
                    Err(error) => ServiceOutcome::Error(format!("{error:?}").into()),
                }
            }
            PANIC => panic!("as it was asked to"),
            HUGE => ServiceOutcome::Ok(vec![0; wire::limits::MAX_BODY + 1].into()),
            CONTEXT => {
                let drawn = (context.random().next_u64(), context.random().next_u64());
                assert_ne!(drawn.0, drawn.1);
                let text = format!("{} {} {}", context.now().0, context.client(), context.number());
                ServiceOutcome::Ok(text.into())
            }
            _ => ServiceOutcome::Refused(Refusal::NoSuchMethod, "append, panic or huge".into()),
        }
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.clone())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.0 = state.to_vec();
        Ok(())
    }
}

/// Waits until the node's status is as wanted; looks again whenever something happens.
pub fn wait_for(node: &Node, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
    let events = node.subscribe();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let status = node.status();
        if wanted(&status) {
            return status;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(
            events.recv_timeout(left).is_ok(),
            "node {} never came to: {what}; it has {status:#?}",
            node.id()
        );
        while events.try_recv().is_ok() {}
    }
}

/// The group has a primary here, and so many replicas with the state.
pub fn synced(status: &Status, group: &str, replicas: usize) -> bool {
    let synced =
        |group: &steadfast_node::GroupStatus| group.replicas.iter().filter(|r| r.synced).count();
    status.groups.iter().any(|g| g.name == group && synced(g) == replicas && g.primary.is_some())
}

/// One connection of one client.
pub struct Caller {
    stream: TcpStream,
    input: BytesMut,
    client: ClientId,
}

impl Caller {
    pub fn connect(address: SocketAddr, client: ClientId) -> Caller {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut caller = Caller { stream, input: BytesMut::new(), client };
        caller.send(&Frame::Hello(Hello::new(client)));
        let Some(Frame::Welcome(_)) = caller.receive() else { panic!("no welcome") };
        caller
    }

    pub fn send(&mut self, frame: &Frame) {
        self.stream.write_all(&frame.encode()).unwrap();
    }

    /// The next frame; `None` when the node has closed the connection.
    pub fn receive(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.input).unwrap() {
                return Some(frame);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(length) => self.input.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    pub fn bind(&mut self, name: &str) -> Option<Targets> {
        self.send(&Frame::Bind(Bind { name: name.into() }));
        match self.receive() {
            Some(Frame::Bound(Bound { targets, .. })) => targets,
            other => panic!("{other:?}"),
        }
    }

    pub fn call(&mut self, group: &str, number: u64, method: MethodId, body: &[u8]) -> Reply {
        let request = self.request(group, number, method, body);
        self.send(&Frame::Request(request));
        self.reply()
    }

    pub fn request(&self, group: &str, number: u64, method: MethodId, body: &[u8]) -> Request {
        Request {
            group: GroupId::of(group),
            client: self.client,
            number,
            unanswered: number,
            view: ViewNumber(0),
            method,
            timeout_us: 20_000_000,
            priority: 0,
            json: false,
            beside: false,
            has_key: false,
            access: wire::client::Access::Change,
            body: Bytes::copy_from_slice(body),
        }
    }

    pub fn reply(&mut self) -> Reply {
        match self.receive() {
            Some(Frame::Reply(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Calls and expects the result.
    pub fn expect(&mut self, group: &str, number: u64, body: &[u8], result: &str) {
        let reply = self.call(group, number, APPEND, body);
        assert_eq!(reply.outcome, Outcome::Ok(Bytes::copy_from_slice(result.as_bytes())));
        assert_eq!(reply.number, number);
    }
}
