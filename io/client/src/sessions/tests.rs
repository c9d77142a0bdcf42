//! A client of one cell that calls groups of others.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wire::client::{Bound, Hello, Outcome, Reply, Request, Target, Welcome};
use wire::ordered::Style;
use wire::versions::CLIENT;
use wire::{Extension, GroupId, NodeId, ViewNumber};

use super::*;
use crate::Cause;
use crate::output::Event;

const FAR: &str = "line-a.porto:counter";

fn at(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7100))
}

fn targets(view: u64, hosts: &[u8]) -> Targets {
    let target = |host: &u8| Target { node: NodeId((*host).into()), address: at(*host) };
    let nodes = hosts.iter().map(target).collect();
    Targets { view: ViewNumber(view), style: Style::SemiActive, nodes }
}

/// The client, with one node of its cell at host 1.
struct Stage {
    sessions: Sessions,
    now: Time,
    dialled: Vec<(Link, SocketAddr)>,
    sent: Vec<(Link, Frame)>,
    done: Vec<(CallId, Result<Bytes, CallError>)>,
    events: Vec<Event>,
}

impl Stage {
    fn new() -> Stage {
        let config = Config::new(ClientId(7), vec![at(1)], 1);
        let sessions = Sessions::new(config, Time::ZERO);
        let (dialled, sent, done, events) = Default::default();
        Stage { sessions, now: Time(1_000_000), dialled, sent, done, events }
    }

    fn call(&mut self, group: &str) -> CallId {
        let id = self.sessions.call(self.now, Invocation::new(group, "add").body("1"));
        self.pump();
        id
    }

    fn pump(&mut self) {
        while let Some(output) = self.sessions.poll_output() {
            match output {
                Output::Connect { link, address } => self.dialled.push((link, address)),
                Output::Send { link, frame } => self.sent.push((link, frame)),
                Output::Done { call, result, .. } => self.done.push((call, result)),
                Output::Event(event) => self.events.push(event),
                Output::Disconnect { .. } => {}
            }
        }
    }

    fn say(&mut self, link: Link, frame: Frame) {
        self.sessions.handle_frame(self.now, link, frame);
        self.pump();
    }

    /// The node at this address takes the connection that was dialled last. What the client says.
    fn takes(&mut self, host: u8) -> (Link, Hello) {
        let dialled = self.dialled.iter().rev().find(|(_, address)| *address == at(host));
        let link = dialled.unwrap_or_else(|| panic!("{host} is not dialled")).0;
        self.sessions.handle_connected(self.now, link);
        self.pump();
        let hello = self.sent.iter().rev().find_map(|(to, frame)| match frame {
            Frame::Hello(hello) if *to == link => Some(hello.clone()),
            _ => None,
        });
        (link, hello.expect("it says who it is"))
    }

    fn welcomes(&mut self, link: Link, node: u32, cluster: &str) {
        let (version, node, cluster) = (CLIENT.greatest, NodeId(node), cluster.to_owned());
        let extension = Extension::default();
        self.say(link, Frame::Welcome(Welcome { version, node, cluster, extension }));
    }

    /// The group's name that was asked for last by this connection.
    fn asked(&self, link: Link) -> String {
        let asked = self.sent.iter().rev().find_map(|(to, frame)| match frame {
            Frame::Bind(bind) if *to == link => Some(bind.name.clone()),
            _ => None,
        });
        asked.expect("it asks for a group")
    }

    fn bound(&mut self, link: Link, name: &str, targets: Option<Targets>) {
        self.say(link, Frame::Bound(Bound { group: GroupId::of(name), targets }));
    }

    fn requested(&self, link: Link) -> Request {
        let requested = self.sent.iter().rev().find_map(|(to, frame)| match frame {
            Frame::Request(request) if *to == link => Some(request.clone()),
            _ => None,
        });
        requested.expect("it calls")
    }

    fn answers(&mut self, link: Link, result: &'static [u8]) {
        let Request { number, group, view, .. } = self.requested(link);
        let outcome = Outcome::Ok(Bytes::from_static(result));
        self.say(link, Frame::Reply(Reply { number, group, view, targets: None, outcome }));
    }

    /// Calls the group of the other cell by the carrier at host 3.
    fn carried(&mut self) -> (Link, CallId) {
        let id = self.call(FAR);
        let (home, hello) = self.takes(1);
        assert_eq!((hello.client, hello.cell()), (ClientId(7), Ok(None)));
        self.welcomes(home, 1, "cell.porto");
        assert_eq!(self.asked(home), "line-a.porto:");
        self.bound(home, "line-a.porto:", Some(targets(4, &[3, 4])));
        let (carrier, hello) = self.takes(3);
        assert_eq!(hello.cell(), Ok(Some("line-a.porto".parse().unwrap())));
        assert_ne!(hello.client, ClientId(7), "numbers of two cells' groups never meet");
        self.welcomes(carrier, 3, "cell.line-a.porto");
        assert_eq!(self.asked(carrier), "counter");
        self.bound(carrier, "counter", Some(targets(0, &[3, 4])));
        (carrier, id)
    }
}

#[test]
fn a_full_name_is_called_by_the_nodes_that_carry_there() {
    let mut stage = Stage::new();
    let (carrier, far) = stage.carried();
    assert_eq!(stage.requested(carrier).group, GroupId::of("counter"));
    assert_eq!(stage.sessions.cell_of(carrier).unwrap().as_str(), "line-a.porto");

    // The same name in the own cell is another group, with numbers of its own.
    let near = stage.call("counter");
    let home = stage.dialled[0].0;
    assert_eq!((stage.asked(home), stage.sessions.cell_of(home)), ("counter".into(), None));
    stage.bound(home, "counter", Some(targets(9, &[1])));
    assert_eq!(stage.requested(home).number, 1);
    stage.answers(home, b"near");
    stage.answers(carrier, b"far");
    let done = |id, result: &'static [u8]| (id, Ok(Bytes::from_static(result)));
    assert_eq!(stage.done, [done(near, b"near"), done(far, b"far")]);
    assert_eq!(stage.sessions.stats().calls, 2);
}

#[test]
fn a_call_goes_directly_once_the_carrier_knows_the_way_and_back_when_that_fails() {
    let mut stage = Stage::new();
    let (carrier, _) = stage.carried();
    stage.answers(carrier, b"1");
    let direct =
        Frame::News(Bound { group: GroupId::of("counter"), targets: Some(targets(7, &[8, 3])) });
    stage.say(carrier, direct);
    let (node, _) = stage.takes(8);
    stage.welcomes(node, 1, "cell.line-a.porto");
    stage.call(FAR);
    let request = stage.requested(node);
    assert_eq!((request.number, request.view), (2, ViewNumber(7)));
    let client = request.client;
    stage.sessions.handle_disconnected(stage.now, node);
    stage.pump();
    let again = stage.requested(carrier);
    assert_eq!((again.number, again.client), (2, client), "it is the same call");
    let moved = |event: &Event| matches!(event, Event::FailedOver { cause: Cause::Lost, to, .. } if *to == at(3));
    assert!(stage.events.iter().any(moved));
}

#[test]
fn a_node_that_does_not_carry_there_gets_no_call() {
    let mut stage = Stage::new();
    stage.call(FAR);
    let (home, _) = stage.takes(1);
    stage.welcomes(home, 1, "cell.porto");
    stage.bound(home, "line-a.porto:", Some(targets(4, &[3])));
    let (other, _) = stage.takes(3);
    stage.welcomes(other, 3, "cell.porto");
    let lost = |event: &Event| matches!(event, Event::Lost { trouble: Trouble::Elsewhere(of), .. } if of == "cell.porto");
    assert!(stage.events.iter().any(lost) && stage.done.is_empty());
    let calls = stage.sent.iter().filter(|(_, frame)| matches!(frame, Frame::Request(_)));
    assert_eq!(calls.count(), 0);
}

#[test]
fn a_cell_that_nobody_knows_has_no_groups() {
    let mut stage = Stage::new();
    let id = stage.call(FAR);
    let (home, _) = stage.takes(1);
    stage.welcomes(home, 1, "plant");
    stage.bound(home, "line-a.porto:", None);
    assert_eq!(stage.done, [(id, Err(CallError::NoSuchGroup(FAR.into())))]);
}

#[test]
fn a_cell_whose_carriers_are_lost_is_asked_for_anew() {
    let mut stage = Stage::new();
    let (carrier, _) = stage.carried();
    stage.answers(carrier, b"1");
    stage.sessions.handle_disconnected(stage.now, carrier);
    stage.pump();
    let second = stage.dialled.iter().find(|(_, address)| *address == at(4)).unwrap().0;
    stage.sessions.handle_disconnected(stage.now, second);
    stage.call(FAR);
    stage.now += Duration::from_millis(200);
    stage.sessions.handle_timeout(stage.now);
    stage.pump();
    let home = stage.dialled[0].0;
    stage.bound(home, "line-a.porto:", Some(targets(5, &[6])));
    // Those of before are asked first, and do not answer.
    let end = stage.now + Duration::from_millis(500);
    while stage.dialled.iter().all(|(_, address)| *address != at(6)) {
        assert!(stage.now < end, "it is not asked where carriers are now");
        stage.now = stage.sessions.next_timeout().expect("a call is under way");
        stage.sessions.handle_timeout(stage.now);
        stage.pump();
    }
    stage.takes(6);
}

#[test]
fn there_is_a_limit_of_cells() {
    let mut stage = Stage::new();
    (0..MAX_CELLS).for_each(|it| _ = stage.call(&format!("line-{it}.porto:counter")));
    assert_eq!(stage.done, []);
    let id = stage.call("one-more.porto:counter");
    assert_eq!(stage.done, [(id, Err(CallError::TooManyCalls))]);
    stage.call("line-1.porto:other");
    assert_eq!(stage.done.len(), 1, "a known cell has room");
}
