//! In steady state a message costs no allocation in the machine: neither where it is sent nor where
//! it arrives. A token that is passed on costs one. Its own program, because every allocation of a
//! program is counted.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use steadfast_ring::{Config, ConfigurationKind, Level, Output, Ring};
use wire::{Arena, ClusterId, Incarnation, Member, NodeId, Time};

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// The system's memory, with every request counted.
struct Counting;

// SAFETY: every call is passed on as it came to the system's allocator, which keeps the promises of
// `GlobalAlloc`; the counter is a plain cell of this thread, needs no memory and cannot unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + 1);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const NODES: u32 = 4;
/// Where a datagram says what it is, and what a token says.
const KIND_AT: usize = 3;
const TOKEN: u8 = 2;
/// Messages that each sender has at a time: its queue is never short of a turn.
const EACH: usize = 400;

/// Rings that hear each other at once and lose nothing.
struct Nodes {
    rings: Vec<Ring>,
    /// To whom, and what, in the order in which it was sent.
    under_way: std::collections::VecDeque<(usize, Bytes)>,
    /// As a driver does, datagrams are read into memory that is used again.
    memory: Arena,
    now: Time,
    delivered: u64,
    /// Tokens passed on.
    passed: u64,
    whole: usize,
}

impl Nodes {
    fn new() -> Nodes {
        let nodes: Vec<NodeId> = (1..=NODES).map(NodeId).collect();
        let ring = |node: &NodeId| {
            let me = Member { node: *node, incarnation: Incarnation(1_000 + u64::from(node.0)) };
            Ring::new(Config::new(ClusterId(1), me, nodes.clone()), Time::ZERO).unwrap()
        };
        let rings = nodes.iter().map(ring).collect();
        let memory = Arena::new(1 << 16);
        Nodes {
            rings,
            under_way: Default::default(),
            memory,
            now: Time::ZERO,
            delivered: 0,
            passed: 0,
            whole: 0,
        }
    }

    /// Does all that is asked for until all is quiet.
    fn run(&mut self) {
        loop {
            for ring in &mut self.rings {
                while let Some(output) = ring.poll_output() {
                    match output {
                        Output::Send { to, datagram, .. } => {
                            let is_token = datagram[KIND_AT] == TOKEN;
                            self.passed += u64::from(is_token);
                            self.under_way.extend(to.iter().map(|place| (place, datagram.clone())));
                        }
                        Output::Deliver(_) => self.delivered += 1,
                        Output::Configuration(it) => {
                            let whole = it.members.len() == NODES as usize;
                            self.whole +=
                                usize::from(whole && it.kind == ConfigurationKind::Regular);
                        }
                        _ => {}
                    }
                }
            }
            let Some((place, datagram)) = self.under_way.pop_front() else { return };
            self.memory.room(datagram.len()).extend_from_slice(&datagram);
            let read = self.memory.take();
            self.rings[place].handle_datagram(self.now, &read).unwrap();
        }
    }

    fn form(&mut self) {
        while self.whole < NODES as usize {
            self.run();
            let due = self.rings.iter().filter_map(Ring::next_timeout).min().unwrap();
            self.now = self.now.max(due);
            for ring in &mut self.rings {
                if ring.next_timeout().is_some_and(|at| at <= self.now) {
                    ring.handle_timeout(self.now);
                }
            }
        }
        self.run();
    }

    fn order(&mut self, senders: &[usize], message: &Bytes, each: usize) {
        for _ in 0..each {
            for sender in senders {
                self.rings[*sender].multicast(self.now, message.clone(), Level::Agreed).unwrap();
            }
        }
        self.run();
    }
}

#[test]
fn a_message_in_steady_state_costs_no_allocation() {
    for senders in [&[0][..], &[0, 1, 2]] {
        for size in [64, 1_024] {
            let mut nodes = Nodes::new();
            nodes.form();
            let message = Bytes::from(vec![7; size]);
            for _ in 0..5 {
                nodes.order(senders, &message, EACH);
            }
            let (delivered, passed) = (nodes.delivered, nodes.passed);
            let before = ALLOCATED.get();
            for _ in 0..10 {
                nodes.order(senders, &message, EACH);
            }
            let allocated = ALLOCATED.get() - before;
            let delivered = nodes.delivered - delivered;
            assert_eq!(delivered, 10 * EACH as u64 * senders.len() as u64 * u64::from(NODES));
            let messages = delivered / u64::from(NODES);
            println!(
                "{} senders, {size} bytes: {allocated} for {messages} messages",
                senders.len()
            );
            // A token carries a list with an entry for every member.
            let tokens = nodes.passed - passed;
            assert!(
                allocated <= tokens + messages / 100,
                "{allocated} allocations for {messages} messages and {tokens} tokens"
            );
        }
    }
}
