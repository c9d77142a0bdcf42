//! The client's machine alone, without sockets: the time that each step of a call takes when
//! nothing else is measured.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{Config, Invocation, Output, Session};
use serde::Serialize;
use wire::client::{Bound, Frame, Outcome, Reply, Target, Targets, Welcome};
use wire::ordered::Style;
use wire::versions::CLIENT;
use wire::{ClientId, Extension, GroupId, NodeId, Time, ViewNumber};

use super::kind::{Kind, NODES, SIZE};
use harness::echo::ECHO;
use harness::figures::median_and_worst;

/// The machine's time between two steps, in nanoseconds.
const STEP: u64 = 20_000;

/// Calls of one kind before it is the other's turn.
const BLOCK: u64 = 1_000;

const NAME: &str = "group";

/// The life of a process that only steps: its instructions are counted from outside.
pub fn step(kind: Kind, calls: u64) {
    World::new(kind).calls(calls);
}

/// A session, and nodes that answer whatever it asks at once.
struct World {
    session: Session,
    now: Time,
    targets: Targets,
    body: Bytes,
}

impl World {
    fn new(kind: Kind) -> World {
        let count = if kind == Kind::Proactive { NODES } else { 1 };
        let nodes = (1..=count).map(|id| Target { node: NodeId(id), address: address(id) });
        let nodes: Vec<Target> = nodes.collect();
        let addresses = nodes.iter().map(|target| target.address).collect();
        let now = Time(1_000_000_000);
        let mut config = Config::new(ClientId(7), addresses, 1);
        config.policy = kind.policy();
        World {
            session: Session::new(config, now),
            now,
            targets: Targets { view: ViewNumber(1), style: Style::Stateless, nodes },
            body: Bytes::from(vec![7; SIZE]),
        }
    }

    /// So many calls, one after the other.
    fn calls(&mut self, count: u64) {
        for _ in 0..count {
            let invocation = Invocation::new(NAME, ECHO).body(self.body.clone());
            self.session.call(self.now, invocation.within(Duration::from_secs(10)));
            let mut done = false;
            while let Some(output) = self.session.poll_output() {
                done |= matches!(output, Output::Done { result: Ok(_), .. });
                self.perform(output);
            }
            assert!(done, "a call has no end although all was answered");
        }
    }

    fn perform(&mut self, output: Output) {
        self.now = Time(self.now.0 + STEP);
        let (link, answer) = match output {
            Output::Connect { link, .. } => return self.session.handle_connected(self.now, link),
            Output::Send { link, frame } => match self.answer(frame) {
                Some(answer) => (link, answer),
                None => return,
            },
            Output::Disconnect { .. } | Output::Done { .. } | Output::Event(_) => return,
        };
        self.session.handle_frame(self.now, link, answer);
    }

    fn answer(&self, frame: Frame) -> Option<Frame> {
        Some(match frame {
            Frame::Hello(_) => Frame::Welcome(Welcome {
                version: CLIENT.greatest,
                node: NodeId(1),
                cluster: "lab".into(),
                extension: Extension::default(),
            }),
            Frame::Bind(_) => {
                let targets = Some(self.targets.clone());
                Frame::Bound(Bound { group: GroupId::of(NAME), targets })
            }
            Frame::Request(request) => Frame::Reply(Reply {
                group: request.group,
                number: request.number,
                view: request.view,
                outcome: Outcome::Ok(request.body),
                targets: None,
            }),
            _ => return None,
        })
    }
}

fn address(node: u32) -> SocketAddr {
    ([192, 0, 2, node as u8], 7_100).into()
}

/// Nanoseconds a call of each kind, in turns: the medians of blocks.
#[derive(Serialize)]
pub struct Taken {
    #[serde(rename = "static")]
    pub fixed: f64,
    pub proactive: f64,
}

/// So many calls of each kind.
pub fn measure(calls: u64) -> Taken {
    let mut worlds = [Kind::Static, Kind::Proactive].map(World::new);
    let mut taken = [Vec::new(), Vec::new()];
    for block in 0..=calls.div_ceil(BLOCK) {
        for (world, taken) in worlds.iter_mut().zip(&mut taken) {
            let begun = Instant::now();
            world.calls(BLOCK);
            // The first connects, and finds the group.
            if block > 0 {
                taken.push(begun.elapsed().as_nanos() as f64 / BLOCK as f64);
            }
        }
    }
    let [fixed, proactive] = taken.map(|blocks| median_and_worst(blocks).unwrap_or_default().0);
    Taken { fixed, proactive }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_answered_and_none_goes_twice() {
        for kind in [Kind::Static, Kind::Proactive] {
            let mut world = World::new(kind);
            world.calls(500);
            world.session.check_invariants();
            let stats = world.session.stats();
            assert_eq!((stats.calls, stats.attempts, stats.fail_overs), (500, 500, 0), "{kind:?}");
            let warm = if kind == Kind::Proactive { 2 } else { 1 };
            assert_eq!(stats.connects, warm, "{kind:?}");
        }
    }
}
