//! The daemon and its clients, each in this process: reserves in force are read back from the
//! kernel.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use os::sched::{Class, class};
use qos::host::{Capacity, Host, Platform};
use rustix::thread::{Pid, gettid};
use steadfast_qosd::{
    Client, ClientError, Cpu, Enforced, Keeper, Limiters, Server, Standing, Wanted,
};
use wire::Share;

fn host(platform: Platform) -> Host {
    let capacity = Capacity {
        processors: 2,
        taken: Share::percent(5),
        most: Share::percent(60),
        memory: 1 << 30,
        devices: Default::default(),
        networks: Default::default(),
    };
    Host::new(capacity, platform)
}

fn permitted() -> Platform {
    steadfast_qosd::platform::probe(&Limiters::default())
}

fn serve(path: &Path, platform: Platform) {
    let server = Server::open(path, host(platform), Limiters::default()).unwrap();
    thread::spawn(move || server.serve());
}

/// A thread that sleeps until it is let go.
fn sleeper() -> (i32, Sender<()>) {
    let (sender, told): (Sender<()>, Receiver<()>) = channel();
    let (tell, id) = channel();
    thread::spawn(move || {
        tell.send(gettid().as_raw_nonzero().get()).unwrap();
        let _ = told.recv();
    });
    (id.recv().unwrap(), sender)
}

fn wanted(path: &str, thread: i32, percent: u64) -> Wanted {
    let cpu = Cpu { runtime_us: percent * 1_000, deadline_us: 100_000, period_us: 100_000 };
    Wanted { path: path.into(), thread: Some(thread), cpu: Some(cpu), ..Wanted::default() }
}

fn class_of(thread: i32) -> Class {
    class(Some(Pid::from_raw(thread).unwrap())).unwrap()
}

fn until(so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < end, "it is never so");
        thread::yield_now();
    }
}

/// Whether this user may reserve at all decides what is in force: never what is admitted.
fn is_in_force(thread: i32, enforced: Enforced) -> bool {
    match (enforced, class_of(thread)) {
        (Enforced::Deadline, Class::Deadline(_)) => true,
        (Enforced::Fifo(asked), Class::Fifo(has)) => asked == has,
        (Enforced::Degraded, Class::Ordinary) => true,
        _ => false,
    }
}

#[test]
fn a_reserve_lasts_as_long_as_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qos.sock");
    serve(&path, permitted());
    let (thread, _alive) = sleeper();
    let mut client = Client::connect(&path).unwrap();
    let (enforced, _) = client.reserve(wanted("n1/plane", thread, 10)).unwrap();
    assert!(is_in_force(thread, enforced), "{enforced:?} {:?}", class_of(thread));

    // It is changed, and refused as a whole where there is no room.
    client.reserve(wanted("n1/plane", thread, 20)).unwrap();
    let before = class_of(thread);
    let refused = client.reserve(wanted("n1/plane", thread, 96));
    assert!(matches!(refused, Err(ClientError::Refused { full: true, .. })), "{refused:?}");
    assert_eq!(class_of(thread), before);
    let tree = Client::connect(&path).unwrap().show().unwrap();
    assert_eq!(tree.reserves.len(), 1);
    assert_eq!(tree.reserves[0].wanted, wanted("n1/plane", thread, 20));

    drop(client);
    until(|| class_of(thread) == Class::Ordinary);
    assert_eq!(Client::connect(&path).unwrap().show().unwrap().reserves, []);
}

#[test]
fn a_peer_reserves_for_its_own_threads_only_and_bytes_are_no_requests() {
    use std::io::{BufRead, BufReader, Write};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qos.sock");
    serve(&path, permitted());
    let mut client = Client::connect(&path).unwrap();
    let refused = client.reserve(wanted("n1/plane", 1, 10)).unwrap_err().to_string();
    assert!(refused.contains("neither a thread of the asking process"), "{refused}");
    let refused = client.release("n1/plane").unwrap_err().to_string();
    assert!(refused.contains("holds no reserve"), "{refused}");
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    for bytes in [&b"what\n"[..], b"{\"reserve\":{\"path\":7}}\n", &[b'x'; 20_000]] {
        // The last one is too long: the daemon answers, and ends the connection.
        let _ = stream.write_all(bytes);
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("this is no request"), "{line}");
    }
}

#[test]
fn one_daemon_serves_a_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qos.sock");
    serve(&path, Platform::default());
    let error = Server::open(&path, host(Platform::default()), Limiters::default()).unwrap_err();
    assert!(error.to_string().contains("is served already"), "{error}");
}

#[test]
fn a_file_that_is_no_socket_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter");
    std::fs::write(&path, "dear reader").unwrap();
    let error = Server::open(&path, host(Platform::default()), Limiters::default()).unwrap_err();
    assert!(error.to_string().contains("no socket has this name"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear reader");
}

/// Without permission everything is admitted, and told to be degraded.
#[test]
fn what_is_not_permitted_is_degraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qos.sock");
    serve(&path, Platform::default());
    let (thread, _alive) = sleeper();
    let mut client = Client::connect(&path).unwrap();
    let (enforced, degraded) = client.reserve(wanted("n1/plane", thread, 10)).unwrap();
    assert_eq!((enforced, class_of(thread)), (Enforced::Degraded, Class::Ordinary));
    assert!(degraded[0].contains("CAP_SYS_NICE"), "{degraded:?}");
}

/// A daemon that takes connections and says nothing holds nobody up.
#[test]
fn a_daemon_that_hangs_is_absent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qos.sock");
    let _hangs = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (thread, _alive) = sleeper();
    let keeper = Keeper::start(&path, wanted("n1/plane", thread, 10)).unwrap();
    let Standing::Absent(why) = keeper.standing() else { panic!("nobody has answered") };
    assert!(why.contains("has not answered"), "{why}");
}

/// A keeper asks whichever daemon is there, and says how it stands.
#[test]
fn a_keeper_waits_for_a_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("qos.sock");
    let (thread, _alive) = sleeper();
    let keeper = Keeper::start(&path, wanted("n1/plane", thread, 10)).unwrap();
    let Standing::Absent(why) = keeper.standing() else { panic!("there is no daemon") };
    assert!(why.contains("steadfast qos serve"), "{why}");
    serve(&path, permitted());
    until(|| matches!(keeper.standing(), Standing::InForce(..)));
    let Standing::InForce(enforced, _) = keeper.standing() else { panic!("it stands") };
    assert!(is_in_force(thread, enforced));
    keeper.change(wanted("n1/plane", thread, 20));
    let shown = || Client::connect(&path).unwrap().show().unwrap().reserves;
    until(|| shown().iter().any(|it| it.wanted == wanted("n1/plane", thread, 20)));
    keeper.change(wanted("n1/plane", thread, 96));
    until(|| matches!(keeper.standing(), Standing::Refused(_)));
    assert_eq!(shown()[0].wanted, wanted("n1/plane", thread, 20), "what was in force stays");
    drop(keeper);
    until(|| class_of(thread) == Class::Ordinary);
}
