//! A stateless group in lanes: an alarm waits behind no normal call.

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

use bytes::Bytes;
use client::Invocation;
use steadfast_node::{
    AttachError, BoxError, Call, Config, Context, HostError, HostOptions, Node, ProgramConfig,
    Service, ServiceOutcome, attach_in_lanes,
};
use support::{APPEND, Caller, Journal, RELAY, TIMEOUT, synced, wait_for};
use tempfile::TempDir;
use wire::ClientId;
use wire::attach::SOCKET_VARIABLE;
use wire::client::{Frame, Outcome};
use wire::ordered::{GroupOptions, Style};

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

/// Started by a node this test program serves a replica in lanes.
#[test]
fn a_program_that_no_node_has_started_says_so() {
    let ended = attach_in_lanes(|| Latch);
    if std::env::var_os(SOCKET_VARIABLE).is_none() {
        assert!(matches!(ended, Err(AttachError::NotStartedByNode(_))));
    } else if let Err(error) = ended {
        println!("{error}");
        std::process::exit(4);
    }
}

/// This test program as one that serves in lanes.
fn program() -> ProgramConfig {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let test = "a_program_that_no_node_has_started_says_so".to_owned();
    let command = vec![program, test, "--exact".into(), "--nocapture".into()];
    ProgramConfig { group: "lanes".into(), command, ..ProgramConfig::default() }
}

fn with_programs() -> (TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let admin = Some(folder.path().join("node.sock"));
    (folder, Node::start(Config { admin, ..Config::single() }).unwrap())
}

/// A call without arguments waits until one with some has had them appended in the store.
struct Latch;

static OPEN: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

impl Service for Latch {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        let mut open = OPEN.0.lock().unwrap();
        if call.body.is_empty() {
            let waited = OPEN.1.wait_timeout_while(open, TIMEOUT, |open| !*open).unwrap();
            return match waited.1.timed_out() {
                true => ServiceOutcome::Error("nobody has opened it".into()),
                false => ServiceOutcome::Ok("opened".into()),
            };
        }
        let call = Invocation::new("store", APPEND).body(Bytes::copy_from_slice(call.body));
        let stored = context.call(call).unwrap();
        *open = true;
        OPEN.1.notify_all();
        ServiceOutcome::Ok(stored)
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(b"latch".into())
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn a_program_in_lanes_answers_an_alarm_while_a_normal_call_waits() {
    let (_folder, node) = with_programs();
    node.host("store", HostOptions::default(), Journal::default).unwrap();
    let stateless = GroupOptions { style: Style::Stateless, ..GroupOptions::default() };
    node.run(ProgramConfig { options: stateless, ..program() }).expect("it attaches");
    for group in ["store", "lanes"] {
        wait_for(&node, "a replica", |status| synced(status, group, 1));
    }
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    let normal = caller.request("lanes", 1, APPEND, b"");
    caller.send(&wire::client::Frame::Request(normal));
    let mut alarm = caller.request("lanes", 2, APPEND, b"abc");
    (alarm.priority, alarm.unanswered) = (200, 1);
    caller.send(&wire::client::Frame::Request(alarm));
    let mut replies = [caller.reply(), caller.reply()];
    // Both may come at once: only the alarm ends the other's wait.
    replies.sort_by_key(|reply| reply.number);
    let outcomes = replies.map(|reply| reply.outcome);
    assert_eq!(outcomes, ["opened", "3"].map(|text| Outcome::Ok(text.into())));
    assert_eq!(node.state("lanes").unwrap(), b"latch");
}

#[test]
fn a_program_in_lanes_does_not_serve_a_group_that_orders_its_calls() {
    let (_folder, node) = with_programs();
    let error = node.run(program()).unwrap_err().to_string();
    assert!(error.contains("only stateless groups have lanes"), "{error}");
}
