//! An authority, and nodes and clients with certificates, for tests of what is let in.
#![allow(dead_code)]

use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use steadfast::{BoxError, Client, ClientBuilder};
use steadfast::{HostOptions, MethodId, Node, NodeConfig, Tls};
use tempfile::TempDir;
use tls::issue::{Authority, Issued, Validity};
use tls::{Identity, Port};
use wire::NodeId;

pub const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const LONG: Duration = Duration::from_secs(20);
pub const ECHO: MethodId = MethodId::of("echo");

/// A cluster's authority, with a folder for its files.
pub struct Plant {
    pub authority: Authority,
    pub pem: String,
    pub folder: TempDir,
}

impl Plant {
    pub fn new() -> Plant {
        let (authority, own) = Authority::new(&NodeConfig::default().cluster).unwrap();
        let plant = Plant { authority, pem: own.certificate, folder: tempfile::tempdir().unwrap() };
        plant.write("authority.pem", &plant.pem);
        plant
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
    }

    /// A single node's configuration, with its certificate.
    pub fn config(&self) -> NodeConfig {
        let mut config = NodeConfig::single();
        let identity = Identity::node(&config.cluster, config.node).unwrap();
        let issued = self.authority.issue(&identity, &[LOCALHOST]).unwrap();
        self.write("node.pem", &issued.certificate);
        self.write("node.key", &issued.key);
        config.security.authority = Some(self.path("authority.pem"));
        config.security.certificate = Some(self.path("node.pem"));
        config.security.key = Some(self.path("node.key"));
        config
    }

    /// A node with a replica that echoes.
    pub fn node(&self) -> Node {
        start(self.config())
    }

    pub fn client_identity(&self) -> Identity {
        Identity::client(self.authority.cluster(), "hmi").unwrap()
    }

    pub fn admin_identity(&self) -> Identity {
        Identity::admin(self.authority.cluster(), "ops").unwrap()
    }

    pub fn tls(&self) -> Tls {
        self.tls_of(&self.authority.issue(&self.client_identity(), &[]).unwrap())
    }

    pub fn tls_of(&self, issued: &Issued) -> Tls {
        let Issued { certificate, key } = issued;
        Tls::from_pem(self.pem.as_bytes(), certificate.as_bytes(), key.as_bytes()).unwrap()
    }

    pub fn admin_tls(&self, identity: &Identity) -> Tls {
        let Issued { certificate, key } = self.authority.issue(identity, &[]).unwrap();
        let credentials =
            tls::Credentials::from_pem(self.pem.as_bytes(), certificate.as_bytes(), key.as_bytes());
        Tls::new(&credentials.unwrap(), Port::Admin).unwrap()
    }

    pub fn expired(&self, identity: &Identity) -> Issued {
        self.authority.issue_for(identity, &[], Validity { from: -20, to: -10 }).unwrap()
    }
}

pub fn start(config: NodeConfig) -> Node {
    let node = Node::start(config).unwrap();
    node.host("echo", HostOptions::default(), || Echo).unwrap();
    node
}

pub fn builder(tls: &Tls) -> ClientBuilder {
    Client::builder().tls(tls.clone())
}

pub fn address(node: &Node) -> SocketAddr {
    node.client_address().unwrap()
}

/// Asks again until it is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// Answers with what it is given.
pub struct Echo;

impl steadfast::Service for Echo {
    fn call(
        &mut self,
        _: &steadfast::Context,
        call: steadfast::Call<'_>,
    ) -> steadfast::ServiceOutcome {
        steadfast::ServiceOutcome::Ok(call.body.to_vec().into())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}

pub fn node_id(number: u32) -> NodeId {
    NodeId(number)
}
