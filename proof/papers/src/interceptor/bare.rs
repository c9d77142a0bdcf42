//! A client without a session: it asks one node for a group once, sends requests, and waits for
//! their replies in `read(2)`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::{Bytes, BytesMut};
use wire::client::{Access, Bind, Frame, Hello, Outcome as Ended, Request};
use wire::{ClientId, GroupId, Random, ViewNumber};

use harness::Outcome;
use harness::cluster::wall;
use harness::echo::ECHO;

/// As long as a client's deadline by default, in microseconds: the node is told one.
const TIMEOUT: u32 = 10_000_000;

pub struct Bare {
    stream: TcpStream,
    inbox: BytesMut,
    scratch: Box<[u8]>,
    client: ClientId,
    group: GroupId,
    view: ViewNumber,
    number: u64,
}

impl Bare {
    /// Connects to the first target of a group, asked of this node.
    pub fn connect(node: SocketAddr, group: &str) -> Outcome<Bare> {
        let mut bare = Bare::greet(node)?;
        bare.send(&Frame::Bind(Bind { name: group.into() }))?;
        let Frame::Bound(bound) = bare.receive()? else { return Err("no targets".into()) };
        let targets = bound.targets.ok_or("no such group")?;
        let first = targets.nodes.first().ok_or("the group has no target")?.address;
        if first != node {
            bare = Bare::greet(first)?;
        }
        Ok(Bare { group: bound.group, view: targets.view, ..bare })
    }

    fn greet(node: SocketAddr) -> Outcome<Bare> {
        let stream = TcpStream::connect(node)?;
        stream.set_nodelay(true)?;
        let mut random = Random::new(wall() ^ u64::from(std::process::id()));
        let mut bare = Bare {
            stream,
            inbox: BytesMut::new(),
            scratch: vec![0; 64 << 10].into(),
            client: ClientId(random.below(u64::MAX)),
            group: GroupId(0),
            view: ViewNumber(0),
            number: 0,
        };
        bare.send(&Frame::Hello(Hello::new(bare.client)))?;
        match bare.receive()? {
            Frame::Welcome(_) => Ok(bare),
            other => Err(format!("no welcome: {other:?}").into()),
        }
    }

    fn send(&mut self, frame: &Frame) -> Outcome<()> {
        Ok(self.stream.write_all(&frame.encode())?)
    }

    fn receive(&mut self) -> Outcome<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.inbox)? {
                return Ok(frame);
            }
            let count = self.stream.read(&mut self.scratch)?;
            if count == 0 {
                return Err("the node has closed the connection".into());
            }
            self.inbox.extend_from_slice(&self.scratch[..count]);
        }
    }

    pub fn call(&mut self, body: Bytes) -> Outcome<Bytes> {
        self.number += 1;
        self.send(&Frame::Request(Request {
            group: self.group,
            client: self.client,
            number: self.number,
            unanswered: self.number,
            view: self.view,
            method: ECHO,
            timeout_us: TIMEOUT,
            json: false,
            beside: false,
            has_key: false,
            access: Access::Change,
            priority: 0,
            body,
        }))?;
        match self.receive()? {
            Frame::Reply(reply) if reply.number == self.number => match reply.outcome {
                Ended::Ok(bytes) => Ok(bytes),
                other => Err(format!("not answered: {other:?}").into()),
            },
            other => Err(format!("no reply: {other:?}").into()),
        }
    }
}
