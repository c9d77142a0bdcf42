//! A call costs a node the same, however many wait for a slow service: a count of these at each call
//! held the ring up.

use std::time::{Duration, Instant};

use bytes::Bytes;
use engine::{Command, Config, Output, Stack};
use ring::Ring;
use wire::client::{Access, Frame, Hello, Request};
use wire::ordered::GroupOptions;
use wire::{
    Caller, ClientId, ClusterId, GroupId, Incarnation, Member, MethodId, NodeId, Time, ViewNumber,
};

/// Calls that are timed together, and the number of such runs.
const TIMED: u64 = 250;
const RUNS: usize = 24;

struct Node {
    now: Time,
    stack: Stack,
    given: u64,
}

impl Node {
    fn start() -> Node {
        let now = Time(1_000_000_000);
        let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let mut config = Config::new(me, vec![me.node], "backlog".into());
        config.first_life = true;
        let ring = ring::Config::new(ClusterId::of("backlog"), me, vec![me.node]);
        let ring = Ring::new(ring, now).expect("default knobs are right");
        let mut node = Node { now, stack: Stack::new(config, ring, now), given: 0 };
        node.pass_until(|node| node.stack.status().ring.quorate == Some(true));
        node.stack.host(node.now, "slow", GroupOptions::default()).expect("hosted");
        node.pass_until(|node| node.stack.status().groups.iter().any(|it| it.primary.is_some()));
        node
    }

    /// The service answers nothing.
    fn pass_until(&mut self, done: impl Fn(&Node) -> bool) {
        loop {
            while let Some(output) = self.stack.poll_output() {
                if let Output::Run { command: Command::Execute { .. }, .. } = output {
                    self.given += 1;
                }
            }
            if done(self) {
                return;
            }
            self.now = self.stack.next_timeout().expect("something is due").max(self.now);
            self.stack.handle_timeout(self.now);
        }
    }

    fn call(&mut self, client: u64) {
        let (caller, now) = (Caller(client), self.now);
        let hello = Frame::Hello(Hello::new(ClientId(client)));
        self.stack.handle_frame(now, now, caller, hello);
        let request = Request {
            group: GroupId::of("slow"),
            client: ClientId(client),
            number: 1,
            unanswered: 1,
            view: ViewNumber(u64::MAX),
            method: MethodId(1),
            timeout_us: 60_000_000,
            json: false,
            beside: false,
            has_key: false,
            access: Access::Change,
            priority: 0,
            body: Bytes::new(),
        };
        self.stack.handle_frame(now, now, caller, Frame::Request(request));
        let given = self.given;
        self.pass_until(|node| node.given > given);
    }
}

#[test]
fn a_call_is_given_as_quickly_however_many_wait_for_the_service() {
    let mut node = Node::start();
    let mut clients = 1..;
    let mut timed = || {
        let begun = Instant::now();
        clients.by_ref().take(TIMED as usize).for_each(|client| node.call(client));
        begun.elapsed()
    };
    // The quickest of each: whatever else the machine does strikes both.
    let runs: Vec<Duration> = (0..RUNS).map(|_| timed()).collect();
    let quickest = |runs: &[Duration]| *runs.iter().min().expect("there are some");
    let (few, many) = (quickest(&runs[..4]), quickest(&runs[RUNS - 4..]));
    assert!(many < few * 4, "{few:?} with few, {many:?} with many");
}
