//! Replicas in processes of their own. The programs are this test program, started again by a node,
//! and, where one misbehaves, the test itself with another's token.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::BytesMut;
use rustix::process::{Pid, Signal, kill_process};
use steadfast_node::{
    AttachError, Config, EventKind, Node, ProgramConfig, ProgramError, ProgramProblem,
    ProgramState, admin, attach,
};
use support::{Caller, Journal, PANIC, RELAY, TIMEOUT, synced, wait_for};
use tempfile::TempDir;
use wire::ClientId;
use wire::attach::{Frame, Hello, SOCKET_VARIABLE, TOKEN, TOKEN_VARIABLE};
use wire::client::{Outcome, Refusal};
use wire::ordered::{AckLevel, GroupOptions, Style};

/// By hand it says what is missing. Started by a node it serves a replica: the other tests have
/// that done.
#[test]
fn a_program_that_no_node_has_started_says_so() {
    if std::env::var_os(SOCKET_VARIABLE).is_some() {
        return attach(Journal::default).expect("it serves until the node is gone");
    }
    let error = attach(Journal::default).expect_err("there is no node");
    assert!(matches!(error, AttachError::NotStartedByNode(_)));
    assert!(error.to_string().contains("steadfast run --group"), "{error}");
}

/// This test program as one that serves the journal.
fn journal(group: &str) -> ProgramConfig {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let test = "a_program_that_no_node_has_started_says_so".to_owned();
    let command = vec![program, test, "--exact".into(), "--nocapture".into()];
    ProgramConfig { group: group.into(), command, ..ProgramConfig::default() }
}

fn shell(group: &str, script: &str) -> ProgramConfig {
    let command = ["/bin/sh", "-c", script].map(String::from).to_vec();
    ProgramConfig { group: group.into(), command, ..ProgramConfig::default() }
}

fn configured(folder: &Path) -> Config {
    let mut config = Config { admin: Some(folder.join("node.sock")), ..Config::single() };
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    config
}

/// The node `id` of a cluster, with a folder of its own.
fn member(id: u32, rings: &[SocketAddr], folder: &Path) -> Node {
    let own = folder.join(id.to_string());
    fs::create_dir(&own).unwrap();
    let member = Config::member(wire::NodeId(id), rings);
    let mut config = Config { nodes: member.nodes, node: member.node, ..configured(&own) };
    config.checkpoints.requests = 2;
    Node::start(config).unwrap()
}

/// The journal as a cold passive group.
fn cold() -> ProgramConfig {
    let options = GroupOptions { style: Style::ColdPassive, ..GroupOptions::default() };
    ProgramConfig { options, ..journal("journal") }
}

fn start() -> (TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::start(configured(folder.path())).unwrap();
    (folder, node)
}

fn control(folder: &Path) -> admin::Client {
    admin::Client::connect(folder.join("node.sock")).unwrap()
}

fn caller(node: &Node) -> Caller {
    Caller::connect(node.client_address().unwrap(), ClientId(7))
}

/// Whether a process is there and has not ended: one that nobody has waited for yet has.
fn runs(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let state = state.and_then(|stat| Some(stat.rsplit_once(") ")?.1.chars().next()));
    !matches!(state, None | Some(None | Some('Z' | 'X')))
}

/// A killed process takes a moment to be gone.
fn wait_for_end(pid: u32) {
    let deadline = Instant::now() + TIMEOUT;
    while runs(pid) {
        assert!(Instant::now() < deadline, "{pid} was left behind");
        std::thread::yield_now();
    }
}

/// Waits for one of the node's events, those of the past included.
fn wait_for_event(node: &Node, folder: &Path, wanted: impl Fn(&EventKind) -> bool) {
    let client = control(folder);
    client.set_timeout(Some(TIMEOUT)).unwrap();
    let mut events = client.events(true, false).unwrap();
    let found = events.any(|record| wanted(&record.expect("the events go on").kind));
    assert!(found, "{:#?}", node.status().programs);
}

#[test]
fn a_program_serves_as_a_thread_does() {
    let (_folder, node) = start();
    let status = node.run(journal("journal")).unwrap();
    assert_eq!((status.state, status.joined), (ProgramState::Attached, true));
    let mut caller = caller(&node);
    caller.expect("journal", 1, b"ab", "2");
    let reply = caller.call("journal", 2, PANIC, b"");
    assert!(matches!(reply.outcome, Outcome::Refused(Refusal::Failed, _)), "{reply:?}");
    caller.expect("journal", 3, b"c", "3");
    assert_eq!(node.state("journal").unwrap(), b"abc");
    assert_eq!(node.status().counters.handlers_panicked, 1);

    let pid = status.pid.unwrap();
    node.stop_program("journal").unwrap();
    assert!(!runs(pid), "it has ended");
    let again = node.stop_program("journal").unwrap_err();
    assert!(matches!(again, ProgramError::NotRunning(_)), "{again}");
    wait_for(&node, "no group", |status| status.groups.is_empty());
    node.run(journal("journal")).unwrap();
    caller.expect("journal", 4, b"d", "1");
}

#[test]
fn in_a_cold_passive_group_the_primarys_program_alone_runs() {
    let rings = steadfast_node::free_ring_addresses(2);
    let folder = tempfile::tempdir().unwrap();
    let nodes: Vec<Node> = (1..=2).map(|id| member(id, &rings, folder.path())).collect();
    nodes[0].run(cold()).unwrap();
    wait_for(&nodes[0], "the primary's", |status| {
        status.programs[0].state == ProgramState::Attached
    });
    let status = nodes[1].run(cold()).unwrap();
    assert_eq!((status.state, status.joined, status.pid), (ProgramState::Standby, true, None));
    wait_for(&nodes[0], "both", |status| synced(status, "journal", 2));
    let mut first = caller(&nodes[0]);
    for number in 1..=5 {
        first.expect("journal", number, b"x", &number.to_string());
    }
    assert_eq!(nodes[1].status().programs[0].state, ProgramState::Standby);
    assert!(nodes[1].state("journal").unwrap_err().to_string().contains("primary alone"));

    let pid = nodes[0].status().programs[0].pid.unwrap();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_for(&nodes[1], "the next one's", |status| {
        status.programs[0].state == ProgramState::Attached
            && status.groups[0].primary.is_some_and(|primary| primary.node.0 == 2)
    });
    let mut second = caller(&nodes[1]);
    second.expect("journal", 5, b"x", "5");
    second.expect("journal", 6, b"y", "6");
    assert_eq!(nodes[1].state("journal").unwrap(), b"xxxxxy");
    wait_for(&nodes[0], "a backup", |status| {
        synced(status, "journal", 2) && status.programs[0].state == ProgramState::Standby
    });

    // A primary that moves ends its program, and the other has it started.
    let pid = nodes[1].status().programs[0].pid.unwrap();
    nodes[1].move_primary("journal", wire::NodeId(1)).unwrap();
    wait_for_end(pid);
    let mut again = caller(&nodes[0]);
    again.expect("journal", 7, b"z", "7");
    wait_for(&nodes[1], "released", |status| status.programs[0].state == ProgramState::Standby);
    assert_eq!(nodes[0].state("journal").unwrap(), b"xxxxxyz");
}

/// Found by `steadfast-lab poison --backup`: one that stood by became primary on its way out, and
/// its node waited for a program that was stopped; no later replica of the group could come there.
#[test]
fn programs_that_stop_at_once_make_room_for_the_next_ones() {
    let rings = steadfast_node::free_ring_addresses(3);
    let folder = tempfile::tempdir().unwrap();
    let nodes: Vec<Node> = (1..=3).map(|id| member(id, &rings, folder.path())).collect();
    for _ in 0..12 {
        for node in &nodes {
            node.run(cold()).unwrap();
        }
        let status = wait_for(&nodes[0], "all", |status| synced(status, "journal", 3));
        let primary = status.groups[0].primary.unwrap().node;
        wait_for(&nodes[primary.0 as usize - 1], "its view", |status| synced(status, "journal", 3));
        caller(&nodes[primary.0 as usize - 1]).expect("journal", 1, b"x", "1");
        std::thread::scope(|scope| {
            for id in 1..=3 {
                let own = folder.path().join(id.to_string());
                scope.spawn(move || control(&own).stop_program("journal").unwrap());
            }
        });
        for node in &nodes {
            wait_for(node, "the group's end", |status| {
                status.groups.iter().all(|group| group.replicas.is_empty())
            });
        }
    }
}

#[test]
fn programs_end_and_are_started_by_a_change_of_style() {
    let rings = steadfast_node::free_ring_addresses(2);
    let folder = tempfile::tempdir().unwrap();
    let nodes: Vec<Node> = (1..=2).map(|id| member(id, &rings, folder.path())).collect();
    for node in &nodes {
        node.run(journal("journal")).unwrap();
    }
    wait_for(&nodes[0], "both", |status| synced(status, "journal", 2));
    let mut first = caller(&nodes[0]);
    first.expect("journal", 1, b"a", "1");
    let pids: Vec<u32> = nodes.iter().map(|node| node.status().programs[0].pid.unwrap()).collect();

    nodes[1].restyle("journal", Style::ColdPassive).unwrap();
    wait_for_end(pids[1]);
    wait_for(&nodes[1], "standby", |status| status.programs[0].state == ProgramState::Standby);
    assert!(runs(pids[0]), "the primary's goes on");
    first.expect("journal", 2, b"b", "2");

    // The primary's process is lost: the other's is started, and has all. The restarted one stands
    // by.
    kill_process(Pid::from_raw(pids[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_for(&nodes[1], "the next one's", |status| {
        status.programs[0].state == ProgramState::Attached
            && status.groups[0].primary.is_some_and(|primary| primary.node.0 == 2)
    });
    let mut second = caller(&nodes[1]);
    second.expect("journal", 2, b"b", "2");
    second.expect("journal", 3, b"c", "3");
    wait_for(&nodes[0], "a backup", |status| {
        synced(status, "journal", 2) && status.programs[0].state == ProgramState::Standby
    });

    nodes[0].restyle("journal", Style::SemiActive).unwrap();
    wait_for(&nodes[0], "a program", |status| status.programs[0].state == ProgramState::Attached);
    second.expect("journal", 4, b"d", "4");
    for node in &nodes {
        wait_for(node, "four calls", |status| status.groups[0].executed == Some(4));
        assert_eq!(node.state("journal").unwrap(), b"abcd");
    }
    // A program that stands by is ended like others.
    nodes[0].restyle("journal", Style::ColdPassive).unwrap();
    wait_for(&nodes[0], "standby", |status| status.programs[0].state == ProgramState::Standby);
    nodes[0].stop_program("journal").unwrap();
    wait_for(&nodes[1], "it has left", |status| synced(status, "journal", 1));
}

#[test]
fn a_program_calls_another_group_and_one_that_is_none() {
    let (_folder, node) = start();
    node.run(journal("front")).unwrap();
    node.run(journal("back")).unwrap();
    let mut caller = caller(&node);
    let mut relay =
        |number, text: &str| caller.call("front", number, RELAY, text.as_bytes()).outcome;
    assert_eq!(relay(1, "back:abc"), Outcome::Ok("3".into()));
    assert_eq!(relay(2, "back:de"), Outcome::Ok("5".into()));
    assert_eq!(relay(3, "none:x"), Outcome::Service("NoSuchGroup".into()));
    assert_eq!(relay(4, "front:x"), Outcome::Service("Cycle".into()));
    assert_eq!(node.state("back").unwrap(), b"abcde");
    assert_eq!(node.state("front").unwrap(), b"35");
    assert_eq!(node.status().counters.nested_calls, 4);
}

#[test]
fn a_large_state_goes_over_in_pieces_and_a_killed_program_gets_it_back() {
    let rings = steadfast_node::free_ring_addresses(2);
    let folder = tempfile::tempdir().unwrap();
    let nodes: Vec<Node> = (1..=2)
        .map(|id| {
            let own = folder.path().join(id.to_string());
            fs::create_dir(&own).unwrap();
            let member = Config::member(wire::NodeId(id), &rings);
            Node::start(Config { nodes: member.nodes, node: member.node, ..configured(&own) })
                .unwrap()
        })
        .collect();
    for node in &nodes {
        node.run(journal("journal")).unwrap();
    }
    wait_for(&nodes[0], "both", |status| synced(status, "journal", 2));
    let mut caller = caller(&nodes[0]);
    let piece = vec![7; 300_000];
    for number in 1..=5 {
        caller.expect("journal", number, &piece, &(300_000 * number).to_string());
    }
    for node in &nodes {
        let pid = node.status().programs[0].pid.unwrap();
        kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
        wait_for(node, "another process that has the state", |status| {
            let program = &status.programs[0];
            program.restarts == 1 && program.joined && synced(status, "journal", 2)
        });
        assert!(!runs(pid));
    }
    for node in &nodes {
        wait_for(node, "five calls", |status| status.groups[0].executed == Some(5));
        assert_eq!(node.state("journal").unwrap().len(), 1_500_000);
        assert_eq!(node.status().counters.programs_lost, 1);
    }
}

#[test]
fn who_goes_on_ending_is_tried_ever_later_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        programs: vec![shell("broken", "echo no data; exit 3")],
        ..configured(folder.path())
    };
    let node = Node::start(config).unwrap();
    wait_for_event(
        &node,
        folder.path(),
        |event| matches!(event, EventKind::ProgramCrashLoop { group, ends: 5, .. } if group == "broken"),
    );
    let status = node.status().programs.remove(0);
    assert!(status.ends_in_a_row >= 5 && status.restarts >= 4, "{status:?}");
    assert_eq!(status.last_exit.as_deref(), Some("exit status: 3"));
    node.stop_program("broken").unwrap();
    assert!(node.status().programs.is_empty());
}

#[test]
fn who_never_serves_is_told_of_with_its_last_lines_and_not_kept() {
    let (_folder, node) = start();
    let error = node.run(shell("a", "echo one; echo two >&2; exit 3")).unwrap_err().to_string();
    for expected in ["exit status: 3", "\n  one", "\n  two"] {
        assert!(error.contains(expected), "{error}");
    }
    let error = node.run(shell("a", "exit 0")).unwrap_err().to_string();
    assert!(error.contains("steadfast::attach"), "{error}");
    let missing = ProgramConfig { command: vec!["/nowhere/a".into()], ..shell("a", "") };
    let error = node.run(missing).unwrap_err();
    assert!(matches!(error, ProgramError::NotStarted(_)), "{error}");
    let error = node.run(ProgramConfig { command: Vec::new(), ..shell("a", "") }).unwrap_err();
    assert!(matches!(error, ProgramError::Config(ProgramProblem::NoCommand)), "{error}");
    assert!(node.status().programs.is_empty());

    node.run(journal("journal")).unwrap();
    let error = node.run(journal("journal")).unwrap_err();
    assert!(matches!(error, ProgramError::Twice(_)), "{error}");
    let plain = Node::start(Config::single()).unwrap();
    let error = plain.run(journal("journal")).unwrap_err();
    assert!(matches!(error, ProgramError::NoPlace), "{error}");
}

#[test]
fn who_has_other_options_than_its_group_is_told_so() {
    let rings = steadfast_node::free_ring_addresses(2);
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::member(wire::NodeId(1), &rings);
    config.admin = Some(folder.path().join("node.sock"));
    config.ring.timing = configured(folder.path()).ring.timing;
    let second = Config { node: wire::NodeId(2), admin: None, ..config.clone() };
    let (node, other) = (Node::start(config).unwrap(), Node::start(second).unwrap());
    other.host("journal", Default::default(), Journal::default).unwrap();
    wait_for(&node, "the other's replica", |status| synced(status, "journal", 1));
    let options = GroupOptions { ack: AckLevel::All, ..GroupOptions::default() };
    let error = node.run(ProgramConfig { options, ..journal("journal") }).unwrap_err().to_string();
    assert!(error.contains("other options"), "{error}");
    node.run(journal("journal")).expect("with the right ones it serves");
    wait_for(&node, "both", |status| synced(status, "journal", 2));
}

#[test]
fn a_stopped_node_leaves_no_program_and_no_socket_behind() {
    let (folder, node) = start();
    // One that obeys, one that ignores the end of its connection and SIGTERM, with a child.
    let obeys = node.run(journal("journal")).unwrap().pid.unwrap();
    let place = folder.path().join("pids");
    let script = format!("trap '' TERM; sleep 1000 & echo $! $$ > {}; wait; wait", place.display());
    // It never attaches: the asker that has it run would wait.
    let (mut control, stubborn) = (control(folder.path()), shell("stubborn", &script));
    let pids = std::thread::scope(|scope| {
        scope.spawn(move || control.run(&stubborn).expect_err("the node stops"));
        let pids = read_when_there(&place);
        node.stop_program("stubborn").unwrap();
        pids
    });
    for pid in pids.split_whitespace() {
        wait_for_end(pid.parse().unwrap());
    }
    node.stop().unwrap();
    assert!(!runs(obeys));
    assert!(!folder.path().join("node.sock.d").exists());
}

/// The text of a file that another process is about to write whole lines to.
fn read_when_there(path: &Path) -> String {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => assert!(Instant::now() < deadline, "{} was not written", path.display()),
        }
        std::thread::yield_now();
    }
}

/// A process that the node has started and that does nothing; the test has its token.
struct Stolen {
    socket: PathBuf,
    token: [u8; TOKEN],
}

impl Stolen {
    fn script(place: &Path) -> String {
        format!("echo ${SOCKET_VARIABLE} ${TOKEN_VARIABLE} > {}; sleep 1000", place.display())
    }

    fn read(place: &Path) -> Stolen {
        let text = read_when_there(place);
        let (socket, digits) = text.trim().split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        Stolen { socket: socket.into(), token: std::array::from_fn(byte) }
    }

    fn connect(&self) -> Line {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Line { stream, input: BytesMut::new() }
    }

    fn attach(&self, group: &str) -> Line {
        let mut line = self.connect();
        line.send(&Frame::Hello(Hello::new(1, self.token, group)));
        line
    }
}

struct Line {
    stream: UnixStream,
    input: BytesMut,
}

impl Line {
    fn send(&mut self, frame: &Frame) {
        self.stream.write_all(&frame.encode()).unwrap();
    }

    fn receive(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.input).unwrap() {
                return Some(frame);
            }
            let mut room = [0; 4_096];
            match self.stream.read(&mut room) {
                Ok(length) if length > 0 => self.input.extend_from_slice(&room[..length]),
                _ => return None,
            }
        }
    }
}

#[test]
fn strangers_are_turned_away_and_a_token_serves_once() {
    let (folder, _node) = start();
    let place = folder.path().join("token");
    let program = shell("stolen", &Stolen::script(&place));
    std::thread::scope(|scope| {
        let mut control = control(folder.path());
        let run = scope.spawn(move || control.run(&program));
        let stolen = Stolen::read(&place);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(stolen.socket.parent().unwrap()), 0o700);

        // Nonsense, silence, a crowd of both.
        for _ in 0..100 {
            let mut line = stolen.connect();
            line.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            drop(stolen.connect());
        }
        let mut wrong =
            Stolen { token: [0; TOKEN], socket: stolen.socket.clone() }.attach("stolen");
        assert!(matches!(wrong.receive(), Some(Frame::Farewell(_))));
        assert_eq!(wrong.receive(), None);
        let mut other = stolen.attach("another");
        assert!(matches!(other.receive(), Some(Frame::Farewell(_))));
        let mut old = stolen.connect();
        let speaks = wire::VersionRange::new(98, 99);
        let hello = Hello { speaks, ..Hello::new(1, stolen.token, "stolen") };
        old.send(&Frame::Hello(hello));
        let Some(Frame::Farewell(reason)) = old.receive() else { panic!("no word") };
        assert!(reason.contains("version 98 to 99"), "{reason}");

        let mut right = stolen.attach("stolen");
        assert!(matches!(right.receive(), Some(Frame::Welcome(_))));
        let mut second = stolen.attach("stolen");
        assert!(matches!(second.receive(), Some(Frame::Farewell(_))), "a token serves once");
        let status = run.join().unwrap().expect("it has attached");
        assert_eq!(status.state, ProgramState::Attached);
    });
}

#[test]
fn a_program_that_breaks_the_protocol_is_lost_and_the_node_goes_on() {
    let (folder, node) = start();
    let nonsense: [&[Frame]; 4] = [
        &[Frame::Restored(1)],
        &[Frame::Reset],
        &[Frame::Answer(wire::attach::Answer {
            number: 7,
            panicked: false,
            outcome: wire::attach::Outcome::Ok("x".into()),
        })],
        &[],
    ];
    for (number, frames) in nonsense.into_iter().enumerate() {
        let group = format!("stolen-{number}");
        let place = folder.path().join(&group);
        let program = shell(&group, &Stolen::script(&place));
        std::thread::scope(|scope| {
            let mut control = control(folder.path());
            let run = scope.spawn(move || control.run(&program));
            let mut line = Stolen::read(&place).attach(&group);
            assert!(matches!(line.receive(), Some(Frame::Welcome(_))));
            run.join().unwrap().expect("it has attached");
            match frames {
                [] => line.stream.write_all(&[0xff; 64]).unwrap(),
                frames => frames.iter().for_each(|frame| line.send(frame)),
            }
            while line.receive().is_some() {}
        });
        node.stop_program(&group).unwrap();
    }
    assert_eq!(node.status().counters.programs_lost, 4);
    node.run(journal("journal")).unwrap();
    caller(&node).expect("journal", 1, b"abc", "3");
}

#[test]
fn a_flood_of_output_is_dropped_and_holds_nobody_up() {
    let (_folder, node) = start();
    let ProgramConfig { command, .. } = journal("journal");
    let script = format!("yes flood & yes more >&2 & exec {}", command.join(" "));
    let status = node.run(shell("journal", &script)).unwrap();
    let mut caller = caller(&node);
    let mut number = 0;
    while node.status().programs[0].lines_dropped < 10_000 {
        number += 1;
        caller.expect("journal", number, b"x", &number.to_string());
    }
    node.stop_program("journal").unwrap();
    assert!(!runs(status.pid.unwrap()));
}
