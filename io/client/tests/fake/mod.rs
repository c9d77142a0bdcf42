//! A node on a loopback port that does as it is told: a thread that accepts, one for each stream.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use wire::client::{Bound, Farewell, Frame, Outcome, Reply, Request, Target, Targets, Welcome};
use wire::ordered::Style;
use wire::versions::CLIENT;
use wire::{Extension, GroupId, MethodId, NodeId, VersionRange, ViewNumber};

pub const GROUP: &str = "counter";
pub const METHOD: MethodId = MethodId::of("add");
pub const SECOND: Duration = Duration::from_secs(1);

/// A node's treatment of a request.
#[derive(Clone, Debug)]
pub enum Manner {
    /// Answers with the request's own bytes.
    Echo,
    Answer(Outcome, Option<Targets>),
    /// Answers nothing.
    AckLevel,
    /// Closes the stream.
    Close,
    /// Sends bytes that are no frame.
    Garbage,
}

struct State {
    manner: Manner,
    script: VecDeque<Manner>,
    bound: Option<Targets>,
    speaks: VersionRange,
    requests: Vec<Request>,
    streams: Vec<TcpStream>,
    /// Streams whose client has not closed them.
    serving: usize,
    up: bool,
}

pub struct FakeNode {
    pub address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

/// The targets of this view, first to last.
pub fn targets(view: u64, nodes: &[&FakeNode]) -> Targets {
    let target = |node: &&FakeNode| Target { node: NodeId(1), address: node.address };
    Targets {
        view: ViewNumber(view),
        style: Style::SemiActive,
        nodes: nodes.iter().map(target).collect(),
    }
}

/// Nodes that all know the group at all of them, the first its primary.
pub fn cluster(count: usize) -> Vec<FakeNode> {
    let nodes: Vec<FakeNode> = (0..count).map(|_| FakeNode::start()).collect();
    let bound = targets(1, &nodes.iter().collect::<Vec<_>>());
    nodes.iter().for_each(|node| node.bind(Some(bound.clone())));
    nodes
}

/// An address that refuses connections.
pub fn closed_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl FakeNode {
    pub fn start() -> FakeNode {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            manner: Manner::Echo,
            script: VecDeque::new(),
            bound: None,
            speaks: CLIENT,
            requests: Vec::new(),
            streams: Vec::new(),
            serving: 0,
            up: true,
        };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = state.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let mut state = shared.0.lock().unwrap();
                if !state.up {
                    return;
                }
                state.streams.push(stream.try_clone().unwrap());
                state.serving += 1;
                drop(state);
                let shared = shared.clone();
                std::thread::spawn(move || {
                    serve(stream, &shared);
                    shared.0.lock().unwrap().serving -= 1;
                    shared.1.notify_all();
                });
            }
        });
        FakeNode { address, state }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.0.lock().unwrap())
    }

    pub fn bind(&self, bound: Option<Targets>) {
        self.with(|state| state.bound = bound);
    }

    pub fn behave(&self, manner: Manner) {
        self.with(|state| state.manner = manner);
    }

    /// The treatment of the next request.
    pub fn once(&self, manner: Manner) {
        self.with(|state| state.script.push_back(manner));
    }

    /// It speaks only this version.
    pub fn speak(&self, version: u8) {
        self.with(|state| state.speaks = VersionRange::new(version, version));
    }

    pub fn requests(&self) -> Vec<Request> {
        self.with(|state| state.requests.clone())
    }

    /// Waits until so many requests have come.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait(|state| state.requests.len() >= count);
    }

    /// Waits until all clients have closed their connections.
    pub fn wait_for_no_stream(&self) {
        self.wait(|state| state.serving == 0);
    }

    fn wait(&self, enough: impl Fn(&State) -> bool) {
        let (lock, changed) = &*self.state;
        let state = lock.lock().unwrap();
        let limit = Duration::from_secs(20);
        let waited = changed.wait_timeout_while(state, limit, |state| !enough(state)).unwrap();
        assert!(!waited.1.timed_out(), "the client does not do what is waited for");
    }

    /// Ends as a killed process does: all its sockets close.
    pub fn kill(&self) {
        let was_up = self.with(|state| {
            state.streams.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
            std::mem::replace(&mut state.up, false)
        });
        if was_up {
            // Wakes the thread that accepts, so that the port is closed.
            drop(TcpStream::connect(self.address));
        }
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve(mut stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    let mut buffer = BytesMut::new();
    let mut chunk = [0; 4_096];
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        buffer.extend_from_slice(&chunk[..count]);
        while let Some(frame) = Frame::take(&mut buffer).expect("a client sends whole frames") {
            let answer = answer(frame, shared);
            let Some(bytes) = answer else {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            };
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    }
}

/// The bytes to write; `None`: close.
fn answer(frame: Frame, (state, changed): &(Mutex<State>, Condvar)) -> Option<Bytes> {
    let mut state = state.lock().unwrap();
    let frame = match frame {
        Frame::Hello(hello) if state.speaks.common(hello.speaks).is_none() => {
            Frame::Farewell(Farewell { speaks: state.speaks, ..Farewell::new("upgrade") })
        }
        Frame::Hello(_) => Frame::Welcome(Welcome {
            version: CLIENT.greatest,
            node: NodeId(1),
            cluster: "test".into(),
            extension: Extension::default(),
        }),
        Frame::Watch(_) => return Some(Bytes::new()),
        Frame::Bind(bind) => {
            let targets = state.bound.clone().filter(|_| bind.name == GROUP);
            Frame::Bound(Bound { group: GroupId::of(&bind.name), targets })
        }
        Frame::Request(request) => {
            state.requests.push(request.clone());
            changed.notify_all();
            let (outcome, targets) = match state.script.pop_front().unwrap_or(state.manner.clone())
            {
                Manner::Echo => (Outcome::Ok(request.body), None),
                Manner::Answer(outcome, targets) => (outcome, targets),
                Manner::AckLevel => return Some(Bytes::new()),
                Manner::Close => return None,
                Manner::Garbage => return Some(Bytes::from_static(&[0x99; 64])),
            };
            let view = targets.as_ref().map_or(request.view, |targets| targets.view);
            let (number, group) = (request.number, request.group);
            Frame::Reply(Reply { number, group, view, targets, outcome })
        }
        other => panic!("a client never sends {other:?}"),
    };
    Some(frame.encode())
}
