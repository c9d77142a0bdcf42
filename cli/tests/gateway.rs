//! The gateway as people start it: beside a node, beside a client, and with wrong options.

mod daemon;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use daemon::{Daemon, program, run};

/// Longer than anything here may take.
const LONG: Duration = Duration::from_secs(30);

/// A free address on loopback, as long as nobody else takes it.
fn free() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has one")
}

/// A node with a counter and a gateway.
fn node(folder: &Path, client: SocketAddr, grpc: SocketAddr) -> Daemon {
    let admin = folder.join("node.sock");
    let config = folder.join("node.toml");
    let text = format!(
        "node = 1\nadmin = \"{}\"\nlisten.client = \"{client}\"\nlisten.grpc = \"{grpc}\"\n\
         nodes = [{{ id = 1, ring = \"127.0.0.1:0\" }}]\n\
         [[replica]]\ngroup = \"counter\"\nservice = \"counter\"\n",
        admin.display()
    );
    std::fs::write(&config, text).expect("written");
    let daemon = Daemon::of(&config);
    daemon.wait_for("READY=1");
    daemon.wait_for("STATUS=1 of 1 replicas have the state, 1 primary");
    daemon
}

/// One request by HTTP: the whole answer, if somebody listens.
fn ask(stream: std::io::Result<impl Read + Write>, request: &str) -> Option<String> {
    let mut stream = stream.ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    (!answer.is_empty()).then_some(answer)
}

fn post(method: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/groups/counter/{method} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Asks until it is so.
fn until<T>(what: &str, mut so: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(it) = so() {
            return it;
        }
        assert!(begun.elapsed() < LONG, "in vain: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_node_with_grpc_has_a_gateway_that_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (client, grpc) = (free(), free());
    let daemon = node(folder.path(), client, grpc);
    let call = |body: &str| ask(TcpStream::connect(grpc), &post("add", body));
    let answer = until("the gateway answers", || call("[5]"));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n5"), "{answer}");
    daemon.kill();
    until("it ends with its node", || TcpStream::connect(grpc).err());
}

/// A process that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_gateway_beside_a_client_serves_a_socket_and_stops_when_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = free();
    let _node = node(folder.path(), client, free());
    let socket = folder.path().join("gateway.sock");
    let mut command = program();
    command.args(["gateway", "--log", "warn", "--at", &client.to_string(), "--listen"]);
    command.arg(format!("unix:{}", socket.display()));
    let mut gateway = Killed(command.stderr(Stdio::inherit()).spawn().expect("it starts"));
    let answer = until("it answers", || ask(UnixStream::connect(&socket), &post("add", "[2]")));
    assert!(answer.ends_with("\r\n\r\n2"), "{answer}");
    let mode = std::fs::metadata(&socket).expect("it is there").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o660);
    let told = rustix::process::kill_process(
        rustix::process::Pid::from_child(&gateway.0),
        rustix::process::Signal::TERM,
    );
    told.expect("it runs");
    assert!(gateway.0.wait().expect("it is our child").success());
    assert!(!socket.exists(), "its socket goes with it");
}

#[test]
fn the_bootstrap_names_gateways_in_order() {
    let output = run(&["gateway", "--bootstrap", "10.0.0.1:7443,10.0.0.2:7443"]);
    assert!(output.status.success(), "{output:?}");
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let servers = read["xds_servers"].as_array().expect("a list");
    let names: Vec<_> = servers.iter().map(|it| it["server_uri"].as_str()).collect();
    assert_eq!(names, [Some("10.0.0.1:7443"), Some("10.0.0.2:7443")]);
    assert!(read["node"]["locality"].is_object(), "grpc-js wants one");
}

#[test]
fn wrong_options_are_refused_with_what_to_do() {
    for (arguments, why) in [
        (&["--listen", "0.0.0.0:7443", "--at", "127.0.0.1:1"][..], "--insecure"),
        (&["--listen", "unix:", "--at", "127.0.0.1:1"], "unix:/run/steadfast/gateway.sock"),
        (&["--listen", "localhost", "--at", "127.0.0.1:1"], "127.0.0.1:7443"),
        (&["--at", "nowhere"], "HOST:PORT"),
        (&["--listen", "127.0.0.1:0"], "--at"),
    ] {
        let output = run(&[&["gateway"], arguments].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(why), "{told}");
    }
}
