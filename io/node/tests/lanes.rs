//! A stateless group in lanes: an alarm waits behind no normal call.

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use steadfast_node::{
    BoxError, Call, Config, Context, HostError, HostOptions, Node, Service, ServiceOutcome,
};
use support::{APPEND, Caller, Journal, RELAY, TIMEOUT, synced, wait_for};
use wire::ClientId;
use wire::client::{Frame, Outcome};
use wire::ordered::Style;

/// Tells that its handler runs, and then waits until it is let go on.
#[derive(Clone)]
struct Gate {
    runs: Sender<()>,
    open: Arc<Mutex<Receiver<()>>>,
}

impl Service for Gate {
    fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
        self.runs.send(()).unwrap();
        self.open.lock().unwrap().recv_timeout(TIMEOUT).unwrap();
        ServiceOutcome::Ok("opened".into())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn an_alarm_is_answered_while_a_normal_call_waits_for_another_group() {
    let node = Node::start(Config::single()).unwrap();
    let (runs, running) = channel();
    let (open, opened) = channel();
    let gate = Gate { runs, open: Arc::new(Mutex::new(opened)) };
    node.host("gate", HostOptions::default(), move || gate.clone()).unwrap();
    node.host("store", HostOptions::default(), Journal::default).unwrap();
    let lanes = HostOptions::default().style(Style::Stateless).in_lanes();
    node.host("desk", lanes, Journal::default).unwrap();
    for group in ["gate", "store", "desk"] {
        wait_for(&node, "a replica", |status| synced(status, group, 1));
    }
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    let normal = caller.request("desk", 1, RELAY, b"gate:x");
    caller.send(&Frame::Request(normal));
    running.recv_timeout(TIMEOUT).expect("the normal call's handler has asked the gate");

    let mut alarm = caller.request("desk", 2, RELAY, b"store:abc");
    (alarm.priority, alarm.unanswered) = (200, 1);
    caller.send(&Frame::Request(alarm));
    let reply = caller.reply();
    assert_eq!((reply.number, reply.outcome), (2, Outcome::Ok(Bytes::from_static(b"3"))));

    open.send(()).unwrap();
    let reply = caller.reply();
    assert_eq!((reply.number, reply.outcome), (1, Outcome::Ok(Bytes::from_static(b"opened"))));
    assert_eq!(node.status().counters.handlers_panicked, 0);
}

#[test]
fn calls_of_one_lane_are_executed_by_one_service_in_their_order() {
    let node = Node::start(Config::single()).unwrap();
    let lanes = HostOptions::default().style(Style::Stateless).in_lanes();
    node.host("desk", lanes, Journal::default).unwrap();
    wait_for(&node, "a replica", |status| synced(status, "desk", 1));
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    for (number, priority, bytes) in
        [(1, 0, "1"), (2, 100, "1"), (3, 99, "2"), (4, 255, "1"), (5, 200, "2"), (6, 199, "2")]
    {
        let mut request = caller.request("desk", number, APPEND, b"x");
        request.priority = priority;
        caller.send(&Frame::Request(request));
        let expected = Outcome::Ok(Bytes::copy_from_slice(bytes.as_bytes()));
        assert_eq!(caller.reply().outcome, expected, "priority {priority}");
    }
}

#[test]
fn an_ordered_group_has_no_lanes() {
    let node = Node::start(Config::single()).unwrap();
    let refused = node.host("journal", HostOptions::default().in_lanes(), Journal::default);
    assert!(matches!(refused, Err(HostError::Lanes(group)) if group == "journal"));
}
