//! Reserves of deployed services, as the daemons of two hosts grant or refuse them.

mod daemon;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use daemon::{Daemon, program};
use qosd::{Client, Shown};
use steadfast::admin;

/// Longer than anything here may take.
const TIMEOUT: Duration = Duration::from_secs(60);

const PROGRAM: &str = env!("CARGO_BIN_EXE_steadfast");

/// A host's daemon of reserves, ended when this is dropped.
struct Qos {
    child: Child,
    socket: PathBuf,
}

impl Qos {
    /// Starts one that gives away so many percent of each processor.
    fn start(folder: &Path, name: &str, most: u32) -> Qos {
        let socket = folder.join(name);
        let mut serve = program();
        serve.args(["qos", "serve", "--most", &most.to_string(), "--socket"]).arg(&socket);
        let child = serve.stderr(Stdio::null()).spawn().expect("the program can be run");
        until("the daemon serves", || Client::connect(&socket).ok());
        Qos { child, socket }
    }

    fn reserves(&self) -> Vec<Shown> {
        let shown = Client::connect(&self.socket).and_then(|mut client| client.show());
        shown.expect("the daemon answers").reserves
    }
}

impl Drop for Qos {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not in {TIMEOUT:?}");
        std::thread::yield_now();
    }
}

/// A node that asks the daemon at this socket.
fn node(folder: &Path, id: usize, rings: &[SocketAddr], qos: &Qos) -> Daemon {
    let member = |(id, ring)| format!("[[nodes]]\nid = {id}\nring = \"{ring}\"\n");
    let nodes: String = (1..).zip(rings).map(member).collect();
    let rack = if id == 1 { "a" } else { "b" };
    let text = format!(
        "node = {id}\ncluster = \"plant\"\nadmin = \"{id}.sock\"\nlisten.client = \"127.0.0.1:0\"\n{nodes}\
         [ring]\ntoken_timeout_ms = 40000\ntoken_timeout_max_ms = 40000\n\
         [manager]\non = true\nsample_ms = 10\nwindow_ms = 200\nperiod_ms = 200\n\
         [labels]\nrack = \"{rack}\"\n[realtime]\ndaemon = \"{}\"\n",
        qos.socket.display()
    );
    let config = folder.join(format!("{id}.toml"));
    std::fs::write(&config, text).expect("written");
    Daemon::of(&config)
}

fn ask(folder: &Path, id: usize, arguments: &[&str]) -> String {
    let config = folder.join(format!("{id}.toml"));
    let output = program().args(arguments).arg("--config").arg(config).output();
    let output = output.expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn deploy(folder: &Path, memory_most_mb: u64) {
    let file = folder.join("service.toml");
    let text = format!(
        "group = \"own\"\ncommand = [\"{PROGRAM}\", \"replica\", \"counter\"]\nreplicas = 2\n\
         need = {{ cost_us = 3000, period_ms = 10 }}\nreserve = {{ memory_most_mb = {memory_most_mb} }}\n\
         distribution = {{ policy = \"spread\", over = \"rack\" }}\n"
    );
    std::fs::write(&file, text).expect("written");
    ask(folder, 2, &["deploy", file.to_str().expect("text")]);
}

/// One replica is to be in each rack, but the host of rack a has no room. The program ends there
/// again and again, with the daemon's reason, until the manager takes the other host of rack b.
/// Reserves are changed with the deployment, while the programs run on, and end with it.
#[test]
fn a_host_without_room_sends_a_replica_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let full = Qos::start(folder, "full.sock", 5);
    let free = Qos::start(folder, "free.sock", 90);
    let rings = steadfast::free_ring_addresses(3);
    let _nodes =
        [(1, &full), (2, &free), (3, &free)].map(|(id, qos)| node(folder, id, &rings, qos));
    let admin = |id| admin::Client::connect(folder.join(format!("{id}.sock"))).ok();
    until("all nodes are known", || {
        let status = admin(2)?.deployments().ok()?;
        (status.nodes.len() == 3).then_some(())
    });
    deploy(folder, 400);
    let shown = until("nodes 2 and 3 have a reserve", || {
        let [two, three] = free.reserves().try_into().ok()?;
        let paths = [&two, &three].map(|it: &Shown| it.wanted.path.clone());
        assert_eq!(paths, ["plant/n2/own", "plant/n3/own"]);
        Some(two)
    });
    assert_eq!(full.reserves(), []);
    let told = ask(folder, 1, &["events"]);
    let refused = "plant/n1/own: refused: 30.0% of a processor does not fit";
    assert!(told.contains(refused), "{told}");
    let told = ask(folder, 2, &["events"]);
    let stands = ["plant/n2/own: reserved, by", "plant/n2/own: degraded: "];
    assert!(stands.iter().any(|it| told.contains(it)), "{told}");
    let process = shown.wanted.process;
    assert_eq!(
        (shown.wanted.memory_most, shown.wanted.cpu.map(|it| it.runtime_us)),
        (400_000_000, Some(3_000))
    );

    deploy(folder, 500);
    until("the reserve is changed", || {
        let now = free.reserves();
        let is_it = |it: &&Shown| it.wanted.path == "plant/n2/own";
        let changed = now.iter().find(is_it).filter(|it| it.wanted.memory_most == 500_000_000)?;
        assert_eq!(changed.wanted.process, process, "the program runs on");
        Some(())
    });
    let tree = program().args(["qos", "--socket"]).arg(&free.socket).output().expect("it runs");
    let tree = String::from_utf8(tree.stdout).expect("text");
    assert!(tree.contains("plant/n2\n") && tree.contains("at most 500000000 bytes"), "{tree}");

    ask(folder, 1, &["withdraw", "own"]);
    until("the reserve ends with the program", || free.reserves().is_empty().then_some(()));
}
