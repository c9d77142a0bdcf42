//! Four nodes with managers, in processes of their own, and what people ask them.
// Each test file takes what it needs.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use steadfast::admin;
use steadfast::status::{DeploymentStatus, DeploymentsStatus};

use crate::daemon::{Daemon, program};

/// Longer than anything here may take.
pub const TIMEOUT: Duration = Duration::from_secs(60);

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_steadfast");

/// The built-in counter, as its clients know it.
#[steadfast::service]
pub trait Counter {
    fn add(&mut self, n: u64) -> Result<u64, String>;
    fn get(&self) -> u64;
}

/// Four nodes with managers, and labels: n1 and n2 are in rack a, n3 and n4 in rack b.
pub struct Plant {
    pub folder: tempfile::TempDir,
    pub daemons: Vec<Option<Daemon>>,
}

impl Plant {
    pub fn start() -> Plant {
        let folder = tempfile::tempdir().expect("a folder");
        let rings = steadfast::free_ring_addresses(4);
        let mut plant = Plant { folder, daemons: Vec::new() };
        for id in 1..=4 {
            std::fs::write(plant.config(id), plant.text(id, &rings)).expect("written");
            plant.daemons.push(None);
            plant.boot(id);
        }
        plant
    }

    pub fn text(&self, id: usize, rings: &[SocketAddr]) -> String {
        let node = |(id, ring)| format!("[[nodes]]\nid = {id}\nring = \"{ring}\"\n");
        let nodes: String = (1..).zip(rings).map(node).collect();
        let rack = if id <= 2 { "a" } else { "b" };
        format!(
            "node = {id}\nadmin = \"{id}.sock\"\nlisten.client = \"127.0.0.1:0\"\n{nodes}\
             [ring]\ntoken_timeout_ms = 40000\ntoken_timeout_max_ms = 40000\n\
             [manager]\non = true\nsample_ms = 10\nwindow_ms = 200\nperiod_ms = 200\n[labels]\nrack = \"{rack}\"\n"
        )
    }

    pub fn config(&self, id: usize) -> PathBuf {
        self.folder.path().join(format!("{id}.toml"))
    }

    pub fn boot(&mut self, id: usize) {
        self.daemons[id - 1] = Some(Daemon::of(&self.config(id)));
    }

    pub fn kill(&mut self, id: usize) {
        self.daemons[id - 1].take().expect("it runs").kill();
    }

    pub fn admin(&self, id: usize) -> admin::Client {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match admin::Client::connect(self.folder.path().join(format!("{id}.sock"))) {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }

    pub fn ask(&self, id: usize, arguments: &[&str]) -> Output {
        let mut all = program();
        all.args(arguments).arg("--config").arg(self.config(id));
        all.output().expect("the program can be run")
    }

    /// Waits until a node's deployments are as wanted, and returns them.
    pub fn wait(
        &self,
        id: usize,
        wanted: impl Fn(&DeploymentsStatus) -> bool,
    ) -> DeploymentsStatus {
        let deadline = Instant::now() + TIMEOUT;
        let mut admin = self.admin(id);
        loop {
            let last = admin.deployments();
            match last {
                Ok(status) if wanted(&status) => return status,
                last => assert!(Instant::now() < deadline, "{last:#?}"),
            }
        }
    }

    /// The deployment, once it has settled.
    pub fn settled(&self, id: usize, wanted: impl Fn(&[u32]) -> bool) -> DeploymentStatus {
        let is_so = |it: &DeploymentStatus| it.settled && wanted(&on(it));
        let mut status = self.wait(id, |status| status.deployments.iter().any(is_so));
        status.deployments.remove(0)
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        let address = |id| self.admin(id).status().expect("it answers").client;
        (1..=4).filter_map(address).collect()
    }
}

pub fn on(it: &DeploymentStatus) -> Vec<u32> {
    it.seats.iter().filter(|place| place.on).map(|place| place.node.0).collect()
}

pub fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

pub fn service(folder: &Path, rest: &str) -> PathBuf {
    let path = folder.join("service.toml");
    let text = format!(
        "group = \"own\"\ncommand = [\"{PROGRAM}\", \"replica\", \"counter\"]\nack = \"majority\"\n{rest}\n"
    );
    std::fs::write(&path, text).expect("written");
    path
}
