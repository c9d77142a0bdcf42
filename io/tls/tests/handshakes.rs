//! Two sides and no socket: who is let in, and what the other is told.

use std::io::IoSlice;
use std::net::SocketAddr;

use steadfast_tls::issue::{Authority, Issued, Validity};
use steadfast_tls::{Client, Credentials, Identity, Port, Records, Role, Server, Visitor, explain};
use wire::NodeId;

const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 7100);

struct Plant {
    authority: Authority,
    pem: String,
}

impl Plant {
    fn new(cluster: &str) -> Plant {
        let (authority, own) = Authority::new(cluster).unwrap();
        Plant { authority, pem: own.certificate }
    }

    fn credentials(&self, issued: &Issued) -> Credentials {
        let Issued { certificate, key } = issued;
        Credentials::from_pem(self.pem.as_bytes(), certificate.as_bytes(), key.as_bytes()).unwrap()
    }

    fn node(&self) -> Identity {
        Identity::node(self.authority.cluster(), NodeId(1)).unwrap()
    }

    fn server(&self, port: Port) -> Server {
        let issued = self.authority.issue(&self.node(), &[ADDRESS.ip()]).unwrap();
        Server::new(&self.credentials(&issued), port).unwrap()
    }

    fn client_identity(&self) -> Identity {
        Identity::client(self.authority.cluster(), "hmi").unwrap()
    }

    fn client(&self) -> Client {
        let issued = self.authority.issue(&self.client_identity(), &[]).unwrap();
        Client::new(&self.credentials(&issued), Port::Client).unwrap()
    }
}

/// Moves bytes until nobody has any. Gives what each side's reading came to.
fn shake(client: &mut Records, server: &mut Records) -> [Result<Vec<u8>, rustls::Error>; 2] {
    let (mut at_client, mut at_server) = (Ok(Vec::new()), Ok(Vec::new()));
    while client.wants_to_write() || server.wants_to_write() {
        carry(client, server, &mut at_server);
        carry(server, client, &mut at_client);
    }
    [at_client, at_server]
}

fn carry(from: &mut Records, to: &mut Records, read: &mut Result<Vec<u8>, rustls::Error>) {
    let mut bytes = Vec::new();
    while from.wants_to_write() {
        from.write(&mut bytes).unwrap();
    }
    if let Ok(plain) = read
        && let Err(error) = to.receive(&bytes, |piece| plain.extend_from_slice(piece))
    {
        *read = Err(error);
    }
}

fn meet(
    client: &Client,
    server: &Server,
) -> (Records, Records, [Result<Vec<u8>, rustls::Error>; 2]) {
    let (mut near, mut far) = (client.connect(ADDRESS), server.accept().unwrap());
    let ends = shake(&mut near, &mut far);
    (near, far, ends)
}

fn refusal(end: &Result<Vec<u8>, rustls::Error>) -> String {
    explain(end.as_ref().expect_err("the handshake should have failed"))
}

#[test]
fn a_node_and_a_client_of_one_cluster_know_each_other() {
    let plant = Plant::new("plant");
    let server = plant.server(Port::Client);
    let (near, far, ends) = meet(&plant.client(), &server);
    assert!(ends.iter().all(Result::is_ok) && near.is_open() && far.is_open());
    assert_eq!(near.identity(), Some(plant.node()));
    assert_eq!(server.admit(&far), Visitor::Welcome(plant.client_identity()));
    assert!(!far.was_resumed());
}

#[test]
fn the_second_connection_to_a_node_is_a_short_one() {
    let plant = Plant::new("plant");
    let (client, server) = (plant.client(), plant.server(Port::Client));
    let (first, ..) = meet(&client, &server);
    assert!(first.is_open());
    let (near, far, _) = meet(&client, &server);
    assert!(far.was_resumed());
    assert_eq!(near.identity(), Some(plant.node()), "a ticket keeps whom it was given by");
    assert_eq!(server.admit(&far), Visitor::Welcome(plant.client_identity()));
    let elsewhere = SocketAddr::new(ADDRESS.ip(), 7102);
    let (mut near, mut far) = (client.connect(elsewhere), server.accept().unwrap());
    assert!(shake(&mut near, &mut far).iter().all(Result::is_ok));
    assert!(far.is_open() && !far.was_resumed(), "another node has not given this ticket");
}

#[test]
fn what_is_put_in_comes_out_whatever_its_length() {
    let plant = Plant::new("plant");
    let (mut near, mut far, _) = meet(&plant.client(), &plant.server(Port::Client));
    let sent: Vec<u8> = (0..300_000u32).map(|n| (n * 7) as u8).collect();
    let (mut left, mut got) = (&sent[..], Vec::new());
    while !left.is_empty() {
        let (first, second) = left.split_at(left.len().min(1_000));
        let taken = near.seal(&[IoSlice::new(first), IoSlice::new(second)]);
        assert!(taken > 0, "there is room again");
        assert!(taken <= 64 << 10, "what waits is bounded");
        left = &left[taken..];
        let [_, read] = shake(&mut near, &mut far);
        got.extend(read.unwrap());
    }
    assert!(got == sent);
}

#[test]
fn nothing_is_sealed_before_the_handshake_is_over() {
    let plant = Plant::new("plant");
    let mut near = plant.client().connect(ADDRESS);
    assert_eq!(near.seal(&[IoSlice::new(b"too early")]), 0);
}

#[test]
fn a_node_of_another_authority_is_refused_by_the_client() {
    let (plant, other) = (Plant::new("plant"), Plant::new("plant"));
    let (_, _, [at_client, at_server]) = meet(&plant.client(), &other.server(Port::Client));
    assert!(refusal(&at_client).contains("not by the authority that this client was given"));
    assert!(at_server.is_err(), "the node is told");
}

#[test]
fn a_client_of_another_authority_is_refused_by_the_node() {
    let (plant, other) = (Plant::new("plant"), Plant::new("plant"));
    let issued = other.authority.issue(&other.client_identity(), &[]).unwrap();
    // It trusts the node, but the node does not trust it.
    let credentials = plant.credentials(&issued);
    let client = Client::new(&credentials, Port::Client).unwrap();
    let (_, _, [at_client, at_server]) = meet(&client, &plant.server(Port::Client));
    assert!(at_server.is_err());
    assert!(refusal(&at_client).contains("steadfast init"), "{}", refusal(&at_client));
}

#[test]
fn certificates_out_of_their_time_are_refused_and_the_words_say_so() {
    let plant = Plant::new("plant");
    for (from, to) in [(-20, -10), (10, 20)] {
        let validity = Validity { from, to };
        let client = plant.authority.issue_for(&plant.client_identity(), &[], validity).unwrap();
        let client = Client::new(&plant.credentials(&client), Port::Client).unwrap();
        let (_, _, [at_client, _]) = meet(&client, &plant.server(Port::Client));
        assert!(refusal(&at_client).contains("expired, or is not valid yet"));
        let node = plant.authority.issue_for(&plant.node(), &[], validity).unwrap();
        let error = Server::new(&plant.credentials(&node), Port::Client).unwrap_err().to_string();
        assert!(error.contains("clock"), "a node finds out by itself: {error}");
    }
    let soon = Validity { from: -1, to: 30 };
    let node = plant.authority.issue_for(&plant.node(), &[], soon).unwrap();
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    assert!(Server::expires_within(&plant.credentials(&node), days(60)));
    assert!(!Server::expires_within(&plant.credentials(&node), days(10)));
}

#[test]
fn a_client_is_no_node() {
    let plant = Plant::new("plant");
    // With a node's name, but the client's certificate: nobody can pose as a node by it.
    let issued = plant.authority.issue(&plant.client_identity(), &[]).unwrap();
    let impostor = Server::new(&plant.credentials(&issued), Port::Client).unwrap();
    let (_, _, [at_client, _]) = meet(&plant.client(), &impostor);
    assert!(refusal(&at_client).contains("refused"));
}

#[test]
fn a_node_of_another_cluster_with_the_same_authority_is_refused() {
    let plant = Plant::new("plant");
    let elsewhere = Identity::node("mill", NodeId(1)).unwrap();
    let issued = plant.authority.issue(&elsewhere, &[]).unwrap();
    let mill = Server::new(&plant.credentials(&issued), Port::Client).unwrap();
    let (_, _, [at_client, _]) = meet(&plant.client(), &mill);
    assert!(refusal(&at_client).contains("not that of a node of the cluster"));
    // And the other way round the node says it.
    let client = plant.authority.issue(&Identity::client("mill", "hmi").unwrap(), &[]).unwrap();
    let records = {
        let server = plant.server(Port::Client);
        // The other cluster's client looks for its own nodes: it is given one of both names.
        let client = Client::new(&plant.credentials(&client), Port::Client).unwrap();
        let (_, far, ends) = meet(&client, &server);
        assert!(ends[0].is_err(), "the client does not want this node either");
        far
    };
    assert!(!records.is_open());
}

#[test]
fn the_admin_port_is_for_administrators() {
    let plant = Plant::new("plant");
    let server = plant.server(Port::Admin);
    let with = |identity: &Identity, port| {
        let issued = plant.authority.issue(identity, &[]).unwrap();
        Client::new(&plant.credentials(&issued), port).unwrap()
    };
    let (_, far, _) = meet(&with(&plant.client_identity(), Port::Admin), &server);
    let Visitor::Refused(why) = server.admit(&far) else { panic!("a client was let in") };
    assert!(why.contains("client-hmi.plant.steadfast") && why.contains("administrators"), "{why}");
    let ops = Identity::admin("plant", "ops").unwrap();
    let (_, far, _) = meet(&with(&ops, Port::Admin), &server);
    assert_eq!(server.admit(&far), Visitor::Welcome(ops.clone()));
    assert_eq!(ops.role, Role::Admin);
    // A client that dials the wrong port gets a clear error.
    let (_, _, [at_client, _]) = meet(&plant.client(), &server);
    assert!(refusal(&at_client).contains("this port is for something else"));
}

#[test]
fn bytes_that_are_no_tls_are_refused_with_words() {
    let plant = Plant::new("plant");
    let mut near = plant.client().connect(ADDRESS);
    let error = near.receive(&[7, 0, 0, 0, 1, 0, 0, 0, 83, 70], |_| ()).unwrap_err();
    assert!(explain(&error).contains("does not speak TLS here"), "{error}");
    let mut far = plant.server(Port::Client).accept().unwrap();
    assert!(far.receive(b"GET / HTTP/1.1\r\n\r\n", |_| ()).is_err());
}

#[test]
fn keys_that_others_may_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let plant = Plant::new("plant");
    let issued = plant.authority.issue(&plant.client_identity(), &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("authority.pem"), &plant.pem).unwrap();
    std::fs::write(path("client-hmi.pem"), &issued.certificate).unwrap();
    std::fs::write(path("client-hmi.key"), &issued.key).unwrap();
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path("client-hmi.key"), mode).unwrap();
    };
    mode(0o644);
    let error = Client::from_dir(folder.path()).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    mode(0o600);
    assert_eq!(*Client::from_dir(folder.path()).unwrap().identity(), plant.client_identity());
    std::fs::write(path("client-hmi.pem"), "nothing").unwrap();
    let error = Client::from_dir(folder.path()).unwrap_err().to_string();
    assert!(error.contains("client-hmi.pem is no PEM"), "{error}");
}

#[test]
fn more_certificates_are_made_with_the_authoritys_key_alone() {
    let (authority, own) = Authority::new("plant").unwrap();
    drop(authority);
    let again = Authority::from_key("plant", &own.key).unwrap();
    let plant = Plant { authority: again, pem: own.certificate };
    let (near, _, _) = meet(&plant.client(), &plant.server(Port::Client));
    assert!(near.is_open());
}
