//! Calls through three nodes' machines, without sockets, threads or clocks: what the machine itself
//! costs. Three stacks above three rings, a group with a replica at each, one client at a time.
//!
//! ```sh
//! cargo build --release -p steadfast-engine --example calls
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/calls 10000
//! ```
//!
//! The instructions of 20,000 calls less those of 10,000, divided by 10,000, are those of a call.

use std::collections::VecDeque;

use bytes::Bytes;
use ring::Ring;
use steadfast_engine::{Command, Config, Executed, Output, ServiceOutcome, Stack};
use wire::client::{Access, Frame, Hello, Request};
use wire::ordered::{GroupOptions, Style};
use wire::{
    Caller, ClientId, ClusterId, Duration, GroupId, Incarnation, Member, MethodId, NodeId, Time,
    ViewNumber,
};

const NODES: u32 = 3;
const CLIENT: ClientId = ClientId(7);
const CALLER: Caller = Caller(1);

struct Cluster {
    now: Time,
    stacks: Vec<Stack>,
    /// Datagrams on their way: to whom, and what.
    flights: VecDeque<(usize, Bytes)>,
    replies: u64,
}

impl Cluster {
    fn new() -> Cluster {
        let now = Time(1_000_000_000);
        let nodes: Vec<NodeId> = (1..=NODES).map(NodeId).collect();
        let start = |node: &NodeId| {
            let me = Member { node: *node, incarnation: Incarnation(1) };
            let mut config = Config::new(me, nodes.clone(), "calls".into());
            config.first_life = true;
            config.address = Some(([127, 0, 0, 1], 7000).into());
            let ring = ring::Config::new(ClusterId::of("calls"), me, nodes.clone());
            Stack::new(config, Ring::new(ring, now).expect("default knobs are right"), now)
        };
        let stacks = nodes.iter().map(start).collect();
        Cluster { now, stacks, flights: VecDeque::new(), replies: 0 }
    }

    /// Does all that there is to do now.
    fn settle(&mut self) {
        loop {
            for place in 0..self.stacks.len() {
                while let Some(output) = self.stacks[place].poll_output() {
                    self.act(place, output);
                }
            }
            let Some((to, datagram)) = self.flights.pop_front() else { return };
            self.stacks[to].handle_datagram(self.now, &datagram);
        }
    }

    fn act(&mut self, place: usize, output: Output) {
        match output {
            Output::Send { to, datagram, .. } => {
                self.flights.extend(to.iter().map(|place| (place, datagram.clone())));
            }
            Output::Run { group, command: Command::Execute { ticket, body, .. } } => {
                let executed = Executed::Reply(ServiceOutcome::Ok(body));
                self.stacks[place].handle_executed(self.now, group, ticket, executed);
            }
            Output::Run { group, command: Command::Change { ticket } } => {
                let executed = Executed::Change(Ok(Bytes::from_static(&[0; 16])));
                self.stacks[place].handle_executed(self.now, group, ticket, executed);
            }
            Output::Run { group, command: Command::Snapshot { ticket } } => {
                let executed = Executed::Snapshot(Ok(Bytes::new()));
                self.stacks[place].handle_executed(self.now, group, ticket, executed);
            }
            Output::Run { group, command: Command::Restore { ticket, .. } } => {
                self.stacks[place].handle_executed(
                    self.now,
                    group,
                    ticket,
                    Executed::Restored(Ok(())),
                );
            }
            Output::Frame { frame: Frame::Reply(_), .. } => self.replies += 1,
            _ => {}
        }
    }

    /// Lets time pass until it is so.
    fn run_until(&mut self, done: impl Fn(&Cluster) -> bool) {
        let end = self.now + Duration::from_secs(60);
        self.settle();
        while !done(self) {
            let next = self.stacks.iter().filter_map(Stack::next_timeout).min();
            self.now = next.expect("something is due").max(self.now);
            assert!(self.now < end, "not within a minute");
            let now = self.now;
            for stack in &mut self.stacks {
                if stack.next_timeout().is_some_and(|due| due <= now) {
                    stack.handle_timeout(now);
                }
            }
            self.settle();
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let calls: u64 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let size: usize = arguments.next().and_then(|size| size.parse().ok()).unwrap_or(16);
    let style = match arguments.next().as_deref() {
        None | Some("semi-active") => Style::SemiActive,
        Some("active") => Style::Active,
        Some(other) => panic!("the style is semi-active or active, not {other}"),
    };
    let mut cluster = Cluster::new();
    cluster.run_until(|cluster| {
        let whole = |stack: &Stack| stack.status().ring.members.len() == NODES as usize;
        cluster.stacks.iter().all(whole)
            && cluster.stacks.iter().all(|it| it.status().ring.quorate == Some(true))
    });
    let group = GroupId::of("echo");
    for (place, count) in (0..NODES as usize).zip(1..) {
        let options = GroupOptions { style, ..GroupOptions::default() };
        cluster.stacks[place].host(cluster.now, "echo", options).expect("hosted");
        cluster.run_until(|cluster| {
            let groups = cluster.stacks[0].status().groups;
            groups
                .first()
                .is_some_and(|it| it.replicas.iter().filter(|it| it.synced).count() == count)
        });
    }
    let hello = Frame::Hello(Hello::new(CLIENT));
    cluster.stacks[0].handle_frame(cluster.now, cluster.now, CALLER, hello);
    for number in 1..=calls {
        let request = Request {
            group,
            client: CLIENT,
            number,
            unanswered: number,
            view: ViewNumber(u64::MAX),
            method: MethodId(1),
            timeout_us: 1_000_000,
            json: false,
            beside: false,
            has_key: false,
            access: Access::Change,
            priority: 0,
            body: vec![7; size].into(),
        };
        let now = cluster.now;
        cluster.stacks[0].handle_frame(now, now, CALLER, Frame::Request(request));
        cluster.run_until(|cluster| cluster.replies == number);
    }
    println!("{calls} calls of {size} bytes, {style:?}, three nodes: {} replies", cluster.replies);
}
