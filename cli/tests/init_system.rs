//! `steadfast init --system`: the cells of a system, each with an authority for its names alone.

mod daemon;
mod initiated;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use daemon::{Daemon, program};
use initiated::{config, contents, free_ports, made, plant, refused};
use tls::{Client, Credentials, Identity, Port, Reach, Records, Server, Visitor};
use wire::NodeId;

const THREE: [&str; 7] = [
    "--system",
    "porto",
    "--cells",
    "porto:4,line-a.porto:3,line-b.porto:3",
    "--local",
    "--grpc",
    "7443",
];

/// Shakes hands. Gives whom `near` lets in, or either side's refusal.
fn link(near: &Path, far: &Path, reach: Reach) -> Result<Identity, String> {
    let read = |folder: &Path| Credentials::from_dir(folder).unwrap();
    let server = Server::reaching(&read(near), Port::States, reach).unwrap();
    let client = Client::reaching(&read(far), Port::States, reach).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 7102));
    let (mut here, mut there) = (server.accept().unwrap(), client.connect(address));
    let carry = |from: &mut Records, to: &mut Records| {
        let mut bytes = Vec::new();
        while from.wants_to_write() {
            from.write(&mut bytes).unwrap();
        }
        to.receive(&bytes, |_| ()).map_err(|error| tls::explain(&error))
    };
    while here.wants_to_write() || there.wants_to_write() {
        carry(&mut there, &mut here)?;
        carry(&mut here, &mut there)?;
    }
    match server.admit(&here) {
        Visitor::Welcome(identity) => Ok(identity),
        Visitor::Refused(why) => Err(why),
    }
}

#[test]
fn a_system_on_one_machine_has_a_folder_for_each_cell() {
    let (_kept, out) = plant();
    let text = made(&THREE, &out);
    assert!(text.contains("made 4 nodes, client-app, admin-ops") && text.contains("root first"));
    let links = |cell: u8, nodes: u8| -> Vec<SocketAddr> {
        (1..=nodes).map(|node| SocketAddr::from(([127, 0, cell, node], 7102))).collect()
    };
    let cells =
        [("porto", 4, vec![]), ("line-a.porto", 3, links(1, 4)), ("line-b.porto", 3, links(1, 4))];
    for (number, (path, nodes, parent)) in (1..).zip(cells) {
        for node in 1..=nodes {
            let config = config(&out.join(path).join(format!("node-{node}")));
            assert_eq!((config.node, &config.cluster), (NodeId(node.into()), &tls::cell(path)));
            assert_eq!(config.nodes.len(), usize::from(nodes));
            let at = |port| Some(SocketAddr::from(([127, 0, number, node], port)));
            assert_eq!(
                (config.client, config.admin_tls, config.grpc),
                (at(7100), at(7101), at(7443))
            );
            let system = config.system.unwrap();
            assert_eq!((system.listen, &system.parent), (at(7102), &parent));
            let files = config.security.tls().unwrap();
            let read = Credentials::from_files(files.authority, files.certificate, files.key);
            let credentials = read.unwrap();
            assert_eq!(credentials.identity.path(), Some(path));
            assert!(Server::new(&credentials, Port::Client).is_ok(), "the authority made it");
        }
        assert!(out.join(path).join("context.toml").exists());
        assert!(steadfast::Tls::from_dir(out.join(path).join("client-app")).is_ok());
    }
    // Each has keys of its own.
    let secret = |file: &str| fs::read(out.join(file)).unwrap();
    assert!(secret("porto/node-1/cluster.key") != secret("line-a.porto/node-1/cluster.key"));
    assert!(secret("authority/authority.key") != secret("porto/authority/authority.key"));

    let node = |path: &str| out.join(path).join("node-1");
    let line = Identity::node("cell.line-a.porto", NodeId(1)).unwrap();
    assert_eq!(link(&node("porto"), &node("line-a.porto"), Reach::System), Ok(line));
    let why = link(&node("porto"), &node("line-a.porto"), Reach::Cluster).unwrap_err();
    assert!(why.contains("not that of a node of the cluster"), "{why}");
}

#[test]
fn seven_cells_are_a_tree() {
    let (_kept, out) = plant();
    let json = made(&["--system", "porto", "--cells", "7", "--local", "--json"], &out);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let paths: Vec<&str> = cells.iter().map(|cell| cell["path"].as_str().unwrap()).collect();
    let tree = ["porto", "a.porto", "b.porto", "a.a.porto", "b.a.porto", "a.b.porto", "b.b.porto"];
    assert_eq!(paths, tree);
    assert_eq!(cells[6]["nodes"][2]["links"], "127.0.7.3:7102");
    let below = config(&out.join("b.b.porto/node-1")).system.unwrap();
    assert_eq!(below.parent[0], "127.0.3.1:7102".parse().unwrap(), "b.porto is the third");
    let other = |path: &str| out.join(path).join("node-2");
    assert!(link(&other("porto"), &other("a.b.porto"), Reach::System).is_ok());
    assert!(link(&other("a.b.porto"), &other("b.a.porto"), Reach::System).is_ok());
}

#[test]
fn keys_are_for_their_owner_alone() {
    let (_kept, out) = plant();
    made(&THREE, &out);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut keys = 0;
    for (path, _) in contents(&out) {
        let is_key = path.extension().is_some_and(|it| it == "key");
        keys += usize::from(is_key);
        assert_eq!(mode(&path), if is_key { 0o600 } else { 0o644 }, "{}", path.display());
        assert_eq!(mode(path.parent().unwrap()) & 0o077, 0);
    }
    // The system's, and of each cell its authority's, two of each node, and two people's.
    assert_eq!(keys, 1 + 3 + 2 * 10 + 2 * 3);
    // No folder that is copied to a host has a key of an authority.
    let copied = |path: &Path| path.parent().unwrap().file_name().unwrap() != "authority";
    let copied = contents(&out).into_iter().filter(|(path, _)| copied(path));
    assert!(!copied.map(|(path, _)| path).any(|path| path.ends_with("authority.key")));
}

#[test]
fn cells_on_hosts_come_one_after_the_other_and_change_by_themselves() {
    let (_kept, out) = plant();
    let root = ["--cell", "porto", "1=10.0.0.1", "2=10.0.0.2", "3=10.0.0.3", "--link-port", "7000"];
    let text = made(&[&["--system", "porto"], &root[..]].concat(), &out);
    assert!(text.contains("that of the system, offline"), "{text}");
    let below = ["--cell", "line-a.porto", "1=10.1.0.1", "2=10.1.0.2", "3=10.1.0.3"];
    made(&[&below[..], &["--client", "hmi", "--admin", "night"]].concat(), &out);
    let line = out.join("line-a.porto");
    let system = config(&line.join("node-3")).system.unwrap();
    assert_eq!(system.listen, Some("10.1.0.3:7102".parse().unwrap()));
    assert_eq!(system.parent[2], "10.0.0.3:7000".parse().unwrap());
    assert!(line.join("client-hmi").exists() && !line.join("client-app").exists());

    // A cell's folder is used like a cluster's, without the system's key.
    let key = out.join("authority/authority.key");
    fs::rename(&key, out.join("elsewhere")).unwrap();
    made(&["--add", "4=10.1.0.4", "--client", "recorder"], &line);
    let four = config(&line.join("node-4"));
    assert_eq!((four.nodes.len(), four.system.unwrap().parent.len()), (4, 3));
    let node = |number: u8| line.join(format!("node-{number}"));
    assert!(link(&node(1), &node(4), Reach::Cluster).is_ok());
    let why = refused(&["--cell", "line-b.porto", "1=10.2.0.1", "2=10.2.0.2", "3=10.2.0.3"], &out);
    assert!(why.contains("bring the authority's key back"), "{why}");
    assert!(!out.join("line-b.porto").exists());
    fs::rename(out.join("elsewhere"), &key).unwrap();

    // A new authority, and all certificates by it. The ring's key stays.
    let before = contents(&line);
    made(&["--cell", "line-a.porto", "--renew"], &out);
    for ((path, old), (_, new)) in before.iter().zip(contents(&line)) {
        let label = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let own = path.file_stem().unwrap() == label && label.contains('-');
        let authoritys = path.ends_with("authority/authority.key") || path.ends_with("cell.pem");
        assert_eq!(*old != new, own || authoritys, "{}", path.display());
    }
    assert!(link(&node(1), &out.join("porto/node-1"), Reach::System).is_ok());
}

#[test]
fn nothing_is_overwritten_but_by_force() {
    let (_kept, out) = plant();
    made(&THREE, &out);
    let before = contents(&out);
    let line = ["--cell", "line-a.porto", "1=127.0.2.1", "2=127.0.2.2", "3=127.0.2.3"];
    for arguments in [&THREE[..], &line, &["--system", "porto", "--cells", "1", "--local"]] {
        let why = refused(arguments, &out);
        assert!(why.contains("--force"), "{why}");
        assert!(contents(&out) == before, "{arguments:?} has changed something");
    }
    // One cell's force leaves the others, and the system's authority.
    made(&[&line[..], &["--force"]].concat(), &out);
    let changed = |(path, text): &(std::path::PathBuf, Vec<u8>)| fs::read(path).unwrap() != *text;
    assert!(before.iter().any(changed));
    let of_cell = |path: &Path| path.starts_with(out.join("line-a.porto"));
    assert!(before.iter().filter(|it| changed(it)).all(|(path, _)| of_cell(path)));
    made(&[&THREE[..], &["--force"]].concat(), &out);
    assert!(fs::read(out.join("authority/authority.key")).unwrap() != before[0].1);
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    let (_kept, out) = plant();
    let hosts = ["1=10.0.0.1", "2=10.0.0.2", "3=10.0.0.3"];
    let cell = |arguments: &[&'static str]| [arguments, &hosts[..]].concat();
    for (arguments, remedy) in [
        (vec!["--system", "porto"], "--cells porto:4,line-a.porto:3 --local"),
        (vec!["--system", "Porto", "--cells", "3", "--local"], "lower-case"),
        (vec!["--system", "a.porto", "--cells", "3", "--local"], "one label"),
        (vec!["--system", "authority", "--cells", "3", "--local"], "one label, and not"),
        (vec!["--system", "cell", "--cells", "3", "--local"], "no label may be \"cell\""),
        (vec!["--system", "porto", "--cells", "3"], "--local"),
        (vec!["--system", "porto", "--cells", "3", "--local", "3"], "leave the number"),
        (vec!["--system", "porto", "--cells", "porto:2", "--local"], "a cell has 3 to 32"),
        (vec!["--system", "porto", "--cells", "porto", "--local"], "PATH:NODES"),
        (vec!["--system", "porto", "--cells", "porto:3,cell.porto:3", "--local"], "\"cell\""),
        (vec!["--system", "porto", "--cells", "porto:3,x.a.porto:3", "--local"], "add a.porto:3"),
        (vec!["--cells", "3", "--local"], "--system"),
        (vec!["--system", "porto", "--cells", "1", "--local", "--link-port", "7100"], "of its own"),
        (cell(&["--cell", "porto"]), "steadfast cell found porto --out"),
        (cell(&["--system", "porto", "--cell", "a.lisboa"]), "no cell of the system porto"),
        (
            cell(&["--system", "porto", "--cell", "a.porto"]),
            "make it first, by `steadfast cell found porto",
        ),
        (vec!["--system", "porto", "--cell", "porto"], "a cell has 3 to 32"),
        (cell(&["--cluster", "cell.porto"]), "--system NAME --cell PATH"),
        (vec!["--cluster", "porto", "--local"], "--local 3"),
    ] {
        let why = refused(&arguments, &out);
        assert!(why.contains(remedy), "{arguments:?}: {why}");
        assert!(!out.exists(), "{arguments:?} has left something");
    }
    made(&cell(&["--system", "porto", "--cell", "porto"]), &out);
    for (arguments, remedy) in [
        (cell(&["--system", "lisboa", "--cell", "a.lisboa"]), "that of the system porto"),
        (cell(&["--cell", "a.porto"]), "other ports (--ring-port"),
        (cell(&["--cell", "x.a.porto"]), "make it first, by `steadfast cell found a.porto"),
        (vec!["--cell", "a.porto", "--renew"], "was not made by"),
    ] {
        let why = refused(&arguments, &out);
        assert!(why.contains(remedy), "{arguments:?}: {why}");
    }
}

/// Runs `steadfast cell`; its output, or why it refused.
fn grow(command: &str, out: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut program = program();
    program.args(["cell", command, "--out"]).arg(out).args(arguments);
    let output = program.output().expect("the program can be run");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn a_system_grows_by_cells_and_by_hosts_that_are_given_a_place() {
    let (_kept, out) = plant();
    let why = grow("join", &out, &["10.0.0.4"]).unwrap_err();
    assert!(why.contains("steadfast cell found porto"), "{why}");
    let text = grow("found", &out, &["porto", "1=10.0.0.1", "2=10.0.0.2", "3=10.0.0.3"]).unwrap();
    assert!(text.contains("made 3 nodes, client-app, admin-ops"), "{text}");
    let line = ["line-a.porto", "1=10.1.0.1", "2=10.1.0.2", "3=10.1.0.3", "4=10.1.0.4"];
    grow("found", &out, &line).unwrap();
    let below = config(&out.join("line-a.porto/node-4")).system.unwrap();
    assert_eq!(below.parent[2], "10.0.0.3:7102".parse().unwrap());

    // The smallest cell first; where it is said, below another one.
    let text = grow("join", &out, &["10.9.0.1"]).unwrap();
    assert!(text.contains("made node-4:") && text.contains("porto/node-4.token"), "{text}");
    assert_eq!(config(&out.join("porto/node-4")).nodes.len(), 4);
    grow("join", &out, &["10.9.0.2", "--under", "line-a.porto"]).unwrap();
    assert!(out.join("line-a.porto/node-5.token").exists());

    // Where no cell has room, three found another.
    let fives = ["10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6", "--room", "5"];
    let why = grow("join", &out, &[&fives[..3], &fives[4..]].concat()).unwrap_err();
    assert!(why.contains("no cell has room for 10.9.0.4, 10.9.0.5"), "{why}");
    assert!(!out.join("porto/node-5").exists(), "nothing is made");
    let json = grow("join", &out, &[&fives[..], &["--json"]].concat()).unwrap();
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["cells"][0]["path"], "cell-1.line-a.porto");
    assert_eq!(report["cells"][0]["nodes"][2]["links"], "10.9.0.6:7102");
    assert_eq!(report["cells"][1]["path"], "porto");
    let founded = config(&out.join("cell-1.line-a.porto/node-1"));
    assert_eq!(founded.system.unwrap().parent.len(), 5);
}

#[test]
fn a_cells_nodes_start_as_written_and_take_its_own_clients_alone() {
    let (_kept, out) = plant();
    let [ring, client, admin, links] = free_ports();
    let ports = ["--ring-port", &ring, "--client-port", &client, "--admin-port", &admin];
    let cells = ["--system", "porto", "--cells", "porto:3,line-a.porto:3", "--local"];
    made(&[&cells[..], &ports, &["--link-port", &links]].concat(), &out);
    let config = |id| out.join(format!("line-a.porto/node-{id}/steadfast.toml"));
    let nodes: Vec<Daemon> = (1..=3).map(|id| Daemon::of(&config(id))).collect();
    for node in &nodes {
        // Counter, manager, registry, and the book of the cell.
        node.wait_for("STATUS=4 of 4 replicas have the state");
    }
    let at = format!("127.0.2.1:{client},127.0.2.2:{client},127.0.2.3:{client}");
    let call = |tls: &str, within: &str| {
        let words = ["call", "counter", "add", "[5]", "--deadline", within, "--at", &at];
        program().args(words).arg("--tls").arg(out.join(tls)).output().unwrap()
    };
    let called = call("line-a.porto/client-app", "20s");
    assert!(called.status.success() && called.stdout == b"5\n", "{called:?}");
    let other = call("porto/client-app", "2s");
    let why = String::from_utf8(other.stderr).unwrap();
    assert!(why.contains("not that of a node of the cluster"), "{why}");
}
