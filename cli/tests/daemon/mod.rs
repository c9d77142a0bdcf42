//! The program's node as a child process, for tests.
// Each test file takes what it needs.
#![allow(dead_code)]

use std::fmt::Write;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longer than anything here may take: a test that waits so long has failed.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The program, to be given arguments.
pub fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    program.env_remove("RUST_LOG").env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
    // Not a cluster that runs beside the tests.
    program.env("STEADFAST_CONTEXT", "/nowhere/context.toml");
    for name in ["CLIENTS", "CLIENT_TLS", "ADMINS", "ADMIN_TLS"] {
        program.env_remove(format!("STEADFAST_{name}"));
    }
    program
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program can be run")
}

/// A node in a process of its own.
pub struct Daemon {
    child: Child,
    notify: UnixDatagram,
    directory: TempDir,
}

impl Daemon {
    /// Starts one of a cluster of its own, with a counter and an echo, and waits until it serves.
    pub fn start() -> Daemon {
        let daemon = Daemon::with(|directory| configuration(directory, "127.0.0.1:0"));
        daemon.wait_for("READY=1");
        daemon.wait_for("STATUS=2 of 2 replicas have the state, 2 primary");
        daemon
    }

    /// Starts one of several, with a replica of one counter.
    pub fn member(id: usize, rings: &[SocketAddr]) -> Daemon {
        let node = |(id, ring)| format!("[[nodes]]\nid = {id}\nring = \"{ring}\"\n");
        let nodes: String = (1..).zip(rings).map(node).collect();
        Daemon::with(|directory| {
            let admin = directory.join("node.sock");
            format!(
                "node = {id}\nadmin = \"{}\"\nlisten.client = \"127.0.0.1:0\"\n{nodes}\
                 [[replica]]\ngroup = \"counter\"\nservice = \"counter\"\n",
                admin.display()
            )
        })
    }

    /// Starts one of several, without replicas, for tests that are not about time-outs.
    pub fn plain_member(id: usize, rings: &[SocketAddr]) -> Daemon {
        let node = |(id, ring)| format!("[[nodes]]\nid = {id}\nring = \"{ring}\"\n");
        let nodes: String = (1..).zip(rings).map(node).collect();
        Daemon::with(|directory| {
            let admin = directory.join("node.sock");
            format!(
                "node = {id}\nadmin = \"{}\"\nlisten.client = \"127.0.0.1:0\"\n{nodes}\
                 [ring]\ntoken_timeout_ms = 40000\ntoken_timeout_max_ms = 40000\n",
                admin.display()
            )
        })
    }

    /// Starts one of a cluster of its own, of this name, without replicas, and waits until it
    /// serves.
    pub fn of_cluster(name: &str) -> Daemon {
        let daemon = Daemon::with(|directory| {
            let admin = directory.join("node.sock");
            format!(
                "node = 1\ncluster = \"{name}\"\nadmin = \"{}\"\nlisten.client = \"127.0.0.1:0\"\n\
                 nodes = [{{ id = 1, ring = \"127.0.0.1:0\" }}]\n",
                admin.display()
            )
        });
        daemon.wait_for("READY=1");
        daemon.wait_for("STATUS=0 of 0 replicas have the state, 0 primary");
        daemon
    }

    /// Starts one with a configuration that is there already.
    pub fn of(config: &Path) -> Daemon {
        Daemon::run(config, tempfile::tempdir().expect("a directory"))
    }

    /// Starts one with the configuration that this makes for its folder.
    pub fn with(configuration: impl FnOnce(&Path) -> String) -> Daemon {
        let directory = tempfile::tempdir().expect("a directory");
        let config = directory.path().join("node.toml");
        std::fs::write(&config, configuration(directory.path())).expect("written");
        Daemon::run(&config, directory)
    }

    fn run(config: &Path, directory: TempDir) -> Daemon {
        let socket = directory.path().join("notify");
        let notify = UnixDatagram::bind(&socket).expect("a free name");
        notify.set_read_timeout(Some(TIMEOUT)).expect("a time-out");
        // By a relative path, as people type it.
        let folder = config.parent().and_then(Path::parent).expect("a folder above the file's");
        let relative = config.strip_prefix(folder).expect("it is below");
        let mut command = program();
        command.current_dir(folder).args(["node", "--config"]).arg(relative);
        command.args(["--log", "warn"]);
        let child = command.env("NOTIFY_SOCKET", &socket).stderr(Stdio::piped()).spawn();
        Daemon { child: child.expect("the program can be run"), notify, directory }
    }

    /// Kills it as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
    }

    /// Waits for its own end: exit code and standard error.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        let mut log = self.child.stderr.take().expect("it is a pipe");
        log.read_to_string(&mut text).expect("text");
        (self.child.wait().expect("it is our child").code(), text)
    }

    /// Waits until it tells systemd something that begins like this.
    pub fn wait_for(&self, message: &str) {
        let mut buffer = [0; 256];
        loop {
            let length = match self.notify.recv(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                told => told.expect("it goes on telling how it fares"),
            };
            if buffer[..length].starts_with(message.as_bytes()) {
                return;
            }
        }
    }

    /// Its configuration file.
    pub fn config(&self) -> PathBuf {
        self.directory.path().join("node.toml")
    }

    /// Its admin socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("node.sock")
    }

    /// Its status as JSON.
    pub fn status(&self) -> serde_json::Value {
        let output = program().args(["status", "--json", "--config"]).arg(self.config()).output();
        let output = output.expect("the program can be run");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Where its clients connect.
    pub fn address(&self) -> String {
        self.status()["client"].as_str().expect("it takes clients").to_owned()
    }

    /// Calls a method by hand.
    pub fn call(&self, arguments: &[&str]) -> Output {
        let address = self.address();
        let mut all = vec!["call", "--deadline", "20s", "--at", &address];
        all.extend(arguments);
        run(&all)
    }

    /// Sends it a signal, and waits for its end: exit code and standard error.
    pub fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
        self.wait_for("STOPPING=1");
        let status = self.child.wait().expect("it is our child");
        let mut text = String::new();
        let mut log = self.child.stderr.take().expect("it is a pipe");
        log.read_to_string(&mut text).expect("text");
        (status.code(), text)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only for a child that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration for a node that keeps its files in this directory.
pub fn configuration(directory: &Path, client: &str) -> String {
    let mut text = format!(
        "node = 1\nadmin = \"{}\"\nlisten.client = \"{client}\"\n\
         nodes = [{{ id = 1, ring = \"127.0.0.1:0\" }}]\n",
        directory.join("node.sock").display()
    );
    for service in ["counter", "echo"] {
        writeln!(text, "[[replica]]\ngroup = \"{service}\"\nservice = \"{service}\"")
            .expect("a String takes everything");
    }
    text
}
