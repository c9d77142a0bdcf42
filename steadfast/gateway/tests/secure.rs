//! Callers with certificates: who comes in, what each may call, and what renews while it runs.

mod support;

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use steadfast::{HostOptions, Node, NodeConfig, Rights, Rule};
use steadfast_gateway::Door;
use support::{CounterService, Gateway, Sum};
use tls::issue::{Authority, Issued};
use tls::{Credentials, Denied, Identity, Port, Server};
use tokio_rustls::TlsConnector;

/// An authority, a node with a counter, and its gateway.
struct Site {
    authority: Authority,
    pem: String,
    _folder: tempfile::TempDir,
    _node: Node,
    door: Door,
    gateway: Gateway,
}

impl Site {
    fn new(rules: Vec<Rule>) -> Site {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = NodeConfig::single();
        let (authority, own) = Authority::new(&config.cluster).expect("an authority");
        let identity = Identity::node(&config.cluster, config.node).expect("a name");
        let issued = authority.issue(&identity, &[]).expect("a certificate");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("it can be written");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&path, mode).expect("ours");
            path
        };
        config.security.authority = Some(write("authority.pem", &own.certificate));
        config.security.certificate = Some(write("node.pem", &issued.certificate));
        config.security.key = Some(write("node.key", &issued.key));
        config.rights = Rights { rule: rules, ..Rights::default() };
        let credentials = |issued: &Issued| credentials(&own.certificate, issued);
        let door = Door {
            server: Server::new(&credentials(&issued), Port::Gateway).expect("a server"),
            rights: Arc::new(RwLock::new(config.rights.clone())),
        };
        let tls = tls::Client::new(&credentials(&issued), Port::Client).expect("a client");
        let node = Node::start(config).expect("it starts");
        node.host("counter", HostOptions::default(), || CounterService::new(Sum::default()))
            .expect("it takes a replica");
        let gateway = Gateway::secure(&node, tls, door.clone());
        Site { authority, pem: own.certificate, _folder: folder, _node: node, door, gateway }
    }

    /// Calls with the certificate of this client: the status of HTTP and the answer.
    fn call(&self, issued: &Issued, method: &str) -> Result<(u16, String), String> {
        let mut config = tls::Client::new(&credentials(&self.pem, issued), Port::Gateway)
            .expect("a client")
            .config();
        // Stock clients name the server; every node's certificate has this name.
        let name = format!("node.{}.steadfast", self.authority.cluster());
        Arc::make_mut(&mut config).alpn_protocols = vec![b"h2".to_vec()];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let stream = tokio::net::TcpStream::connect(self.gateway.address).await;
            let name = name.try_into().expect("a name");
            let stream = TlsConnector::from(config).connect(name, stream.expect("it listens"));
            let stream = stream.await.map_err(|error| error.to_string())?;
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                    .await
                    .map_err(|error| error.to_string())?;
            let connection = tokio::spawn(connection);
            let request = http::Request::post(format!("https://x/v1/groups/counter/{method}"))
                .header("content-type", "application/json")
                .body(Full::new(Bytes::from_static(b"[1]")))
                .expect("a request");
            let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await.expect("it comes").to_bytes();
            drop(sender);
            connection.await.expect("it ends").map_err(|error| error.to_string())?;
            Ok((status, String::from_utf8_lossy(&body).into_owned()))
        })
    }

    fn client(&self, name: &str) -> Issued {
        let identity = Identity::client(self.authority.cluster(), name).expect("a name");
        self.authority.issue(&identity, &[]).expect("a certificate")
    }
}

fn credentials(authority: &str, issued: &Issued) -> Credentials {
    let Issued { certificate, key } = issued;
    Credentials::from_pem(authority.as_bytes(), certificate.as_bytes(), key.as_bytes())
        .expect("they fit")
}

fn rule(methods: &[&str], client: &str) -> Rule {
    Rule {
        name: "adders".into(),
        groups: vec!["counter".into()],
        methods: methods.iter().map(ToString::to_string).collect(),
        clients: vec![client.into()],
    }
}

#[test]
fn callers_with_a_certificate_have_the_rights_that_its_name_has() {
    let site = Site::new(vec![rule(&["add"], "desk")]);
    let (desk, hmi) = (site.client("desk"), site.client("hmi"));
    assert_eq!(site.call(&desk, "add"), Ok((200, "1".into())));
    let (status, refused) = site.call(&hmi, "add").expect("it comes in");
    assert_eq!(status, 403);
    assert!(refused.contains("not among the clients of rule \\\"adders\\\""), "{refused}");
    // Nobody governs this one.
    let (status, _) = site.call(&hmi, "take").expect("it comes in");
    assert_eq!(status, 200);
    *site.door.rights.write().unwrap_or_else(PoisonError::into_inner) =
        Rights { rule: vec![rule(&["add"], "hmi")], ..Rights::default() };
    assert_eq!(site.call(&hmi, "add"), Ok((200, "1".into())), "rights are taken anew");
    assert_eq!(site.call(&desk, "add").expect("it comes in").0, 403);
}

#[test]
fn certificates_of_another_authority_and_denied_ones_do_not_come_in() {
    let site = Site::new(Vec::new());
    let (stranger, _) = Authority::new(site.authority.cluster()).expect("an authority");
    let identity = Identity::client(site.authority.cluster(), "desk").expect("a name");
    let forged = stranger.issue(&identity, &[]).expect("a certificate");
    assert!(site.call(&forged, "add").is_err());
    let desk = site.client("desk");
    assert_eq!(site.call(&desk, "add"), Ok((200, "1".into())));
    let denied = Denied::parse("client-desk\n", site.authority.cluster()).expect("a list");
    site.door.server.deny(denied.into());
    assert!(site.call(&desk, "add").is_err());
    assert_eq!(site.call(&site.client("hmi"), "add"), Ok((200, "2".into())));
}
