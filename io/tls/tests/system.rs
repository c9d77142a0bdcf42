//! A system of cells: who is let in, and what a stolen cell's authority is good for.

mod porto;

use porto::{Cell, Porto, at_client, at_server, meet, node, with_name};
use steadfast_tls::issue::{Authority, IssueError, Issued, SystemAuthority, Validity};
use steadfast_tls::{Client, Denied, Identity, Peer, Port, Reach, Role, Server, Visitor, cell};
use wire::NodeId;

const REACHES: [Reach; 2] = [Reach::Cluster, Reach::System];

#[test]
fn nodes_and_clients_of_a_cell_know_each_other() {
    let porto = Porto::new();
    let line = porto.cell("line-a.porto");
    let hmi = Identity::client(&cell("line-a.porto"), "hmi").unwrap();
    for reach in REACHES {
        let server = porto.server(&line.node(), reach);
        let client = porto.client(&line.issue(&hmi), reach);
        let (near, far) = meet(&client.config(), client.server_name(), &server.config()).unwrap();
        assert_eq!(server.admit_connection(&far), Visitor::Welcome(hmi.clone()));
        assert_eq!(Peer::of(&near).unwrap().identity, node("line-a.porto"));
    }
}

#[test]
fn within_a_cell_other_cells_of_the_system_are_refused() {
    let porto = Porto::new();
    let honest = porto.cell("line-a.porto");
    for other in ["porto", "line-b.porto", "x.line-a.porto"].map(|path| porto.cell(path)) {
        let why = at_client(&porto, &honest, Reach::Cluster, &other.node());
        assert!(why.contains("not that of a node of the cluster"), "{why}");
        let why = at_server(&porto, &honest, Reach::Cluster, &other.node());
        assert!(why.contains("use a certificate of the cluster \"cell.line-a.porto\""), "{why}");
    }
}

#[test]
fn links_reach_all_cells_of_the_system_and_know_which() {
    let porto = Porto::new();
    let (root, line) = (porto.cell("porto"), porto.cell("x.line-a.porto"));
    for (up, down) in [(&root, &line), (&line, &root)] {
        let (client, server) =
            (porto.client(&down.node(), Reach::System), porto.server(&up.node(), Reach::System));
        let (near, far) = meet(&client.config(), client.server_name(), &server.config()).unwrap();
        assert_eq!(server.admit_connection(&far), Visitor::Welcome(down.identity()));
        // The side that connects checks the other one alike, with its own list of the denied.
        let own = porto.server(&down.node(), Reach::System);
        let chain = near.peer_certificates().unwrap();
        assert_eq!(own.admit_chain(chain), Visitor::Welcome(up.identity()));
        // It may demand the one cell that it dials.
        let path = up.identity().path().unwrap().to_owned();
        let name = client.server_name_of(&path).unwrap();
        assert!(meet(&client.config(), name, &server.config()).is_ok());
        let elsewhere = client.server_name_of("line-b.porto").unwrap();
        assert!(meet(&client.config(), elsewhere, &server.config()).is_err());
        assert!(client.server_name_of("line-b.lisboa").is_none());
        assert!(client.server_name_of("Porto").is_none());
    }
}

#[test]
fn a_short_handshake_is_checked_like_a_full_one() {
    let porto = Porto::new();
    let (root, line) = (porto.cell("porto"), porto.cell("line-a.porto"));
    let (client, server) =
        (porto.client(&line.node(), Reach::System), porto.server(&root.node(), Reach::System));
    let config = client.config();
    meet(&config, client.server_name(), &server.config()).unwrap();
    let (near, far) = meet(&config, client.server_name(), &server.config()).unwrap();
    assert_eq!(far.handshake_kind(), Some(rustls::HandshakeKind::Resumed));
    assert_eq!(server.admit_connection(&far), Visitor::Welcome(line.identity()));
    assert_eq!(Peer::of(&near).unwrap().identity, root.identity());
}

#[test]
fn a_client_of_another_cell_may_call_but_is_no_node() {
    let porto = Porto::new();
    let (root, line) = (porto.cell("porto"), porto.cell("line-a.porto"));
    let hmi = Identity::client(&cell("line-a.porto"), "hmi").unwrap();
    let (client, server) =
        (porto.client(&line.issue(&hmi), Reach::System), porto.server(&root.node(), Reach::System));
    let (_, far) = meet(&client.config(), client.server_name(), &server.config()).unwrap();
    assert_eq!(server.admit_connection(&far), Visitor::Welcome(hmi.clone()));
    assert_eq!(hmi.role, Role::Client);
    let why = at_client(&porto, &root, Reach::System, &line.issue(&hmi));
    assert!(why.contains("refused"), "{why}");
}

#[test]
fn a_stolen_cell_makes_names_of_that_cell_alone() {
    let porto = Porto::new();
    // The thief has the key and the certificate of the authority of line-a.
    let line = porto.cell("line-a.porto");
    let stolen = Cell::stolen("line-a.porto", &line);
    assert!(meet_within(&porto, &line, &stolen.node()), "that cell is lost");
    for (honest, forged) in [
        ("line-b.porto", node("line-b.porto")),
        ("porto", node("porto")),
        ("x.line-a.porto", node("x.line-a.porto")),
        ("line-b.porto", node("x.line-a.porto")),
        ("x.line-a.porto", node("y.x.line-a.porto")),
        ("line-a.porto", node("porto")),
        ("line-a.porto", Identity::admin(&cell("porto"), "ops").unwrap()),
        ("line-b.porto", Identity::client(&cell("line-b.porto"), "hmi").unwrap()),
    ] {
        let (honest, forged) = (porto.cell(honest), stolen.issue(&forged));
        for reach in REACHES {
            let why = at_server(&porto, &honest, reach, &forged);
            assert!(why.contains("may not make this name"), "{why}");
            // The purpose of a client's certificate is refused first.
            let why = at_client(&porto, &honest, reach, &forged);
            assert!(why.contains("refused"), "{why}");
        }
    }
}

/// Whether a node of the cell takes this certificate, and is taken by its owner.
fn meet_within(porto: &Porto, honest: &Cell, other: &Issued) -> bool {
    let server = porto.server(&honest.node(), Reach::Cluster);
    let client = porto.client(other, Reach::Cluster);
    meet(&client.config(), client.server_name(), &server.config()).is_ok()
}

#[test]
fn a_second_name_in_a_certificate_must_be_permitted_too() {
    let porto = Porto::new();
    let (line, root) = (porto.cell("line-a.porto"), porto.cell("porto"));
    let own = "node-1.cell.line-a.porto.steadfast";
    let forged = with_name(&line, &[own, "node.cell.porto.steadfast"], None);
    for reach in REACHES {
        for why in
            [at_server(&porto, &root, reach, &forged), at_client(&porto, &root, reach, &forged)]
        {
            assert!(why.contains("may not make this name"), "{why}");
        }
    }
    // A name that stands for all of the cell is permitted, and is nobody's.
    let wild = with_name(&line, &["*.cell.line-a.porto.steadfast"], None);
    let why = at_server(&porto, &line, Reach::System, &wild);
    assert!(why.contains("names no node"), "{why}");
    let wider = with_name(&line, &["*.line-a.porto.steadfast"], None);
    let why = at_server(&porto, &line, Reach::System, &wider);
    assert!(why.contains("may not make this name"), "{why}");
}

#[test]
fn a_stolen_cell_makes_no_further_authorities() {
    let porto = Porto::new();
    let (line, other) = (porto.cell("line-a.porto"), porto.cell("line-b.porto"));
    for name in ["node-1.cell.line-b.porto.steadfast", "node-1.cell.line-a.porto.steadfast"] {
        let forged = porto::by_further_authority(&line, name);
        for reach in REACHES {
            let at_server = at_server(&porto, &other, reach, &forged);
            let at_client = at_client(&porto, &other, reach, &forged);
            for why in [at_server, at_client] {
                assert!(why.contains("PathLenConstraintViolated"), "{why}");
            }
        }
    }
}

#[test]
fn an_address_may_stand_beside_permitted_names() {
    let porto = Porto::new();
    let line = porto.cell("line-a.porto");
    // All certificates of these tests have one; this one stands for an address of others.
    let far = "203.0.113.9".parse().unwrap();
    let own = "node-1.cell.line-a.porto.steadfast";
    let issued = with_name(&line, &[own, "node.cell.line-a.porto.steadfast"], Some(far));
    assert!(meet_within(&porto, &line, &issued));
}

#[test]
fn what_is_not_by_the_systems_authority_is_refused() {
    let (porto, other) = (Porto::new(), Porto::new());
    let honest = porto.cell("line-a.porto");
    let mut alone = honest.node();
    alone.certificate.truncate(alone.certificate.find("-----END").unwrap());
    alone.certificate += "-----END CERTIFICATE-----\n";
    let (plain, _) = Authority::new("porto").unwrap();
    let plain = plain.issue(&Identity::node("porto", NodeId(1)).unwrap(), &[]).unwrap();
    for (forged, what) in [
        (alone, "a leaf without the certificate of its cell's authority"),
        (other.cell("line-a.porto").node(), "a cell of another system of the same name"),
        (plain, "a cluster of the same name"),
    ] {
        for reach in REACHES {
            let why = at_server(&porto, &honest, reach, &forged);
            assert!(why.contains("not by the authority"), "{what}: {why}");
            let why = at_client(&porto, &honest, reach, &forged);
            assert!(why.contains("not by the authority"), "{what}: {why}");
        }
    }
}

#[test]
fn another_system_or_cluster_that_is_trusted_too_stays_another() {
    let mut porto = Porto::new();
    let honest = porto.cell("line-a.porto");
    let (lisboa, own) = SystemAuthority::new("lisboa").unwrap();
    let (mill, mill_own) = Authority::new("mill").unwrap();
    // As while an authority is replaced.
    porto.pem = [porto.pem, own.certificate.clone(), mill_own.certificate].concat();
    let theirs = lisboa.cell("line-a.lisboa").unwrap().0.issue(&node("line-a.lisboa"), &[]);
    let plain = mill.issue(&Identity::node("mill", NodeId(1)).unwrap(), &[]);
    for forged in [theirs.unwrap(), plain.unwrap()] {
        let why = at_server(&porto, &honest, Reach::System, &forged);
        assert!(why.contains("use a certificate of the system \"porto\""), "{why}");
        let why = at_client(&porto, &honest, Reach::System, &forged);
        assert!(why.contains("not that of a node of"), "{why}");
    }
    // Its authority may make no names of this system: that stands in its certificate.
    let stolen = porto::cell_by("lisboa", &own.key, "line-a.porto");
    for reach in REACHES {
        let why = at_server(&porto, &honest, reach, &stolen);
        assert!(why.contains("may not make this name"), "{why}");
        let why = at_client(&porto, &honest, reach, &stolen);
        assert!(why.contains("may not make this name"), "{why}");
    }
}

#[test]
fn a_cells_authority_has_its_time() {
    let porto = Porto::new();
    let honest = porto.cell("line-a.porto");
    for (from, to) in [(-20, -10), (10, 20)] {
        let validity = Validity { from, to };
        let (authority, own) = porto.authority.cell_for("line-a.porto", validity).unwrap();
        let issued = Cell { authority, own }.node();
        for reach in REACHES {
            for why in [
                at_server(&porto, &honest, reach, &issued),
                at_client(&porto, &honest, reach, &issued),
            ] {
                assert!(why.contains("expired") || why.contains("not valid yet"), "{why}");
            }
        }
        let error = Server::new(&porto.credentials(&issued), Port::Client).unwrap_err().to_string();
        assert!(error.contains("clock"), "a node finds out by itself: {error}");
    }
    let soon = Validity { from: -1, to: 30 };
    let (authority, own) = porto.authority.cell_for("line-a.porto", soon).unwrap();
    let credentials = porto.credentials(&Cell { authority, own }.node());
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    assert!(Server::expires_within(&credentials, days(60)), "it ends with its authority");
    assert!(!Server::expires_within(&credentials, days(10)));
}

#[test]
fn a_chain_begins_with_the_leaf_and_has_the_rest_in_any_order() {
    let porto = Porto::new();
    let line = porto.cell("line-a.porto");
    let between = line.own.certificate.clone();
    // The same leaf, with the root's certificate before its authority's.
    let mut long = line.node();
    let at = long.certificate.find(&between).unwrap();
    long.certificate.insert_str(at, &porto.pem);
    assert!(meet_within(&porto, &line, &long));
    let mut turned = line.node();
    let own = turned.certificate.replace(&between, "");
    turned.certificate = [between, own].concat();
    let error = porto.read(&turned).unwrap_err().to_string();
    assert!(error.contains("names no node, client or admin"), "{error}");
}

#[test]
fn the_constraint_stands_in_the_certificate() {
    let porto = Porto::new();
    for path in ["porto", "line-a.porto"] {
        let der = porto.cell(path).der();
        let has = |bytes: &[u8]| der.windows(bytes.len()).any(|window| window == bytes);
        let name = format!("cell.{path}.steadfast");
        // Critical (RFC 5280, 4.2.1.10): one permitted subtree, a dNSName, and none excluded.
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let subtree = wrap(0x30, &wrap(0x82, name.as_bytes()));
        let constraints = wrap(0x04, &wrap(0x30, &wrap(0xa0, &subtree)));
        let oid = [0x06, 0x03, 0x55, 0x1d, 0x1e, 0x01, 0x01, 0xff];
        assert!(has(&wrap(0x30, &[&oid[..], &constraints].concat())), "{path}");
        // Critical, an authority, and the path's length 0 (4.2.1.9).
        let basic = [0x55, 0x1d, 0x13, 0x01, 0x01, 0xff, 0x04, 0x08, 0x30, 0x06, 0x01, 0x01, 0xff];
        assert!(has(&[&basic[..], &[0x02, 0x01, 0x00]].concat()), "{path}");
    }
}

#[test]
fn the_denied_are_refused_across_cells() {
    let porto = Porto::new();
    let (root, line) = (porto.cell("porto"), porto.cell("line-a.porto"));
    let server = porto.server(&root.node(), Reach::System);
    let client = porto.client(&line.node(), Reach::System);
    let admit = |list: &str| {
        server.deny(Denied::parse(list, &cell("porto")).unwrap().into());
        let (_, far) = meet(&client.config(), client.server_name(), &server.config()).unwrap();
        (server.admit_connection(&far), server.admit_chain(far.peer_certificates().unwrap()))
    };
    let welcome = Visitor::Welcome(line.identity());
    // A node of this number of one's own cell is another one.
    assert_eq!(admit("node-1\ncell.line-b.porto\n"), (welcome.clone(), welcome));
    for list in ["node-1.cell.line-a.porto.steadfast\n", "cell.line-a.porto\n"] {
        let (Visitor::Refused(why), Visitor::Refused(_)) = admit(list) else { panic!("{list}") };
        assert!(why.contains("denied here"), "{why}");
    }
}

/// The owner of a certificate can write its signature in another form.
#[test]
fn a_denied_certificate_is_denied_in_each_form() {
    let porto = Porto::new();
    let line = porto.cell("line-a.porto");
    let server = porto.server(&line.node(), Reach::Cluster);
    let own = porto::shown(&line.node()).0;
    let mut other = own.clone();
    other[0] = porto::turned(&own[0]);
    assert!(other[0] != own[0]);
    let welcome = Visitor::Welcome(line.identity());
    assert_eq!(
        [&own, &other].map(|chain| server.admit_chain(chain)),
        [&welcome; 2].map(Clone::clone)
    );
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &own[0]);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    server.deny(Denied::parse(&hex, line.authority.cluster()).unwrap().into());
    for chain in [&own, &other] {
        let Visitor::Refused(why) = server.admit_chain(chain) else { panic!("it was let in") };
        assert!(why.contains("denied here"), "{why}");
    }
}

#[test]
fn a_systems_name_may_be_a_number() {
    let (authority, own) = SystemAuthority::new("127").unwrap();
    let porto = Porto { authority, pem: own.certificate };
    let (root, line) = (porto.cell("127"), porto.cell("1.127"));
    let (client, server) =
        (porto.client(&line.node(), Reach::System), porto.server(&root.node(), Reach::System));
    let (_, far) = meet(&client.config(), client.server_name(), &server.config()).unwrap();
    assert_eq!(server.admit_connection(&far), Visitor::Welcome(line.identity()));
}

#[test]
fn only_cells_reach_a_system() {
    let (mill, own) = Authority::new("mill").unwrap();
    let issued = mill.issue(&Identity::node("mill", NodeId(1)).unwrap(), &[]).unwrap();
    let porto = Porto { pem: own.certificate, ..Porto::new() };
    let credentials = porto.credentials(&issued);
    for error in [
        Server::reaching(&credentials, Port::States, Reach::System).unwrap_err(),
        Client::reaching(&credentials, Port::States, Reach::System).unwrap_err(),
    ] {
        assert!(error.to_string().contains("steadfast init --system"), "{error}");
    }
}

#[test]
fn authorities_are_made_for_what_they_are() {
    assert!(matches!(Authority::new("cell.porto"), Err(IssueError::Cell(_))));
    assert!(SystemAuthority::new("line-a.porto").is_err(), "a system's name is a label");
    let (system, own) = SystemAuthority::new("porto").unwrap();
    assert!(matches!(system.cell("line-a.lisboa"), Err(IssueError::OtherSystem { .. })));
    assert!(system.cell("cell.porto").is_err() && system.cell("").is_err());
    // By the keys alone, later.
    let again = SystemAuthority::from_key("porto", &own.key).unwrap();
    assert_eq!(again.system(), "porto");
    let porto = Porto { authority: again, pem: own.certificate };
    let (line, other) = (porto.cell("line-a.porto"), porto.cell("line-a.porto"));
    assert!(meet_within(&porto, &line, &Cell::stolen("line-a.porto", &line).node()));
    let wrong = Authority::of_cell("line-a.porto", &line.own.key, &other.own.certificate);
    assert!(matches!(wrong, Err(IssueError::Pair)));
}
