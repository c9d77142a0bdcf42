//! `steadfast init`: its files are complete and private, and the nodes start as written.

mod daemon;
mod initiated;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use daemon::{Daemon, program};
use initiated::{config, contents, free_ports, made, plant, refused};
use steadfast::{Client, Invocation, MethodId, Tls};
use tls::{Credentials, Identity, Port, Server};
use wire::NodeId;

#[test]
fn a_cluster_on_hosts_gets_all_that_its_nodes_need_to_listen_there() {
    let (_kept, out) = plant();
    let text = made(&["--cluster", "plant", "1=10.0.0.1", "2=10.0.0.2", "3=10.0.0.3"], &out);
    assert!(text.contains("authority.key offline") && text.contains("scp -pr"), "{text}");
    for id in 1..=3u32 {
        let folder = out.join(format!("node-{id}"));
        let config = config(&folder);
        assert_eq!((config.node, config.cluster.as_str()), (NodeId(id), "plant"));
        assert!(!config.insecure && config.nodes.len() == 3);
        let at = |port| SocketAddr::from(([10, 0, 0, id as u8], port));
        assert_eq!((config.client, config.admin_tls), (Some(at(7100)), Some(at(7101))));
        let files = config.security.tls().unwrap();
        let credentials =
            Credentials::from_files(files.authority, files.certificate, files.key).unwrap();
        assert_eq!(credentials.identity, Identity::node("plant", NodeId(id)).unwrap());
        assert!(Server::new(&credentials, Port::Client).is_ok(), "the authority made it");
        assert!(config.security.cluster_key.unwrap().exists());
    }
    let key = |id| fs::read(out.join(format!("node-{id}/cluster.key"))).unwrap();
    assert!(key(1) == key(2) && key(2) == key(3), "one ring, one key");
    assert!(String::from_utf8(key(1)).unwrap().contains("\nkey 1 "));
    assert!(Tls::from_dir(out.join("client-app")).is_ok());
    assert!(Tls::from_dir(out.join("admin-ops")).is_ok());
}

#[test]
fn nodes_start_as_written_and_clients_and_administrators_reach_them() {
    let (_kept, out) = plant();
    let [ring, client, admin, _] = free_ports();
    let ports = ["--ring-port", &ring, "--client-port", &client, "--admin-port", &admin];
    made(&[&["--cluster", "plant", "--local", "3"], &ports[..]].concat(), &out);
    let config = |id| out.join(format!("node-{id}/steadfast.toml"));
    let mut nodes: Vec<Daemon> = (1..=3).map(|id| Daemon::of(&config(id))).collect();
    for node in &nodes {
        node.wait_for("STATUS=3 of 3 replicas have the state");
    }
    let run = |arguments: &[&str], tls: &str| {
        program().args(arguments).arg("--tls").arg(out.join(tls)).output().unwrap()
    };
    let at = format!("127.0.0.1:{client},127.0.0.2:{client},127.0.0.3:{client}");
    let call = ["call", "counter", "add", "[5]", "--deadline", "20s", "--at", &at];
    let called = run(&call, "client-app");
    assert!(called.status.success(), "{called:?}");
    let connect = format!("127.0.0.2:{admin}");
    let status = run(&["status", "--json", "--connect", &connect], "admin-ops");
    assert!(status.status.success(), "{status:?}");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["tls"]["certificate"], "node-2.plant.steadfast");
    assert_eq!(status["ring"]["members"].as_array().unwrap().len(), 3);
    // The context names them all, so that commands need no addresses, also when one has ended.
    let context = out.join("my-context.toml");
    let short = |arguments: &[&str]| {
        let output = program().args(arguments).env("STEADFAST_CONTEXT", &context).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = short(&["context", "use", out.to_str().unwrap()]);
    assert!(shown.contains("node-1/node.sock") && shown.contains("client-app"), "{shown}");
    assert!(short(&["status"]).contains("cluster plant"));
    assert_eq!(short(&["call", "counter", "get", "--deadline", "20s"]), "5\n");

    let key = run(&["key", "status", "--json", "--connect", &connect], "admin-ops");
    let key: serde_json::Value = serde_json::from_slice(&key.stdout).unwrap();
    assert_eq!((&key["key"], &key["opens"]), (&1.into(), &serde_json::json!([1])));
    let rotated = run(&["key", "rotate", "--wait", "20", "--connect", &connect], "admin-ops");
    assert!(rotated.stdout.starts_with(b"key 2 ("), "{rotated:?}");
    let bench = ["bench", "ring", "--json", "--count", "20", "--size", "64", "--connect", &connect];
    let measured = run(&bench, "admin-ops");
    assert!(measured.status.success(), "{measured:?}");

    // A client goes on when the primary dies, over the connection that it has already.
    let tls = Tls::from_dir(out.join("client-app")).unwrap();
    let client = Client::builder().tls(tls).connect(at.split(',')).unwrap();
    let add = || {
        let deadline = std::time::Duration::from_secs(20);
        let answer = client.call(
            Invocation::new("counter", MethodId::of("add")).json().body("[5]").within(deadline),
        );
        String::from_utf8(answer.unwrap().to_vec()).unwrap()
    };
    assert_eq!(add(), "10");
    let primary = status["groups"][0]["primary"]["node"].as_u64().unwrap() as usize;
    nodes.remove(primary - 1).kill();
    assert_eq!(add(), "15");

    let connect = format!("127.0.0.{}:{admin}", if primary == 2 { 3 } else { 2 });
    let why = |output: Output| {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let plain = why(program().args(call).output().unwrap());
    assert!(plain.contains("takes TLS only"), "{plain}");
    let client = why(run(&["status", "--connect", &connect], "client-app"));
    assert!(client.contains("for administrators"), "{client}");
}

#[test]
fn keys_are_for_their_owner_alone_and_two_clusters_share_none() {
    let (_kept, out) = plant();
    let (_kept_too, other) = plant();
    for out in [&out, &other] {
        made(&["--cluster", "plant", "--local", "2"], out);
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut keys = 0;
    for (path, _) in contents(&out) {
        let is_key = path.extension().is_some_and(|it| it == "key");
        keys += usize::from(is_key);
        assert_eq!(mode(&path), if is_key { 0o600 } else { 0o644 }, "{}", path.display());
        assert_eq!(mode(path.parent().unwrap()) & 0o077, 0);
    }
    assert_eq!(keys, 1 + 2 * 2 + 2);
    let secrets = |out: &Path| -> Vec<Vec<u8>> {
        let is_key =
            |(path, _): &(PathBuf, Vec<u8>)| path.extension().is_some_and(|it| it == "key");
        contents(out).into_iter().filter(is_key).map(|(_, text)| text).collect()
    };
    assert!(secrets(&out).iter().all(|secret| !secrets(&other).contains(secret)));
}

#[test]
fn nothing_is_overwritten_but_by_force() {
    let (_kept, out) = plant();
    made(&["--cluster", "plant", "--local", "1"], &out);
    let before = contents(&out);
    for arguments in [
        &["--cluster", "plant", "--local", "1"][..],
        &["--client", "app"],
        &["--admin", "ops", "--client", "new"],
        &["--add", "1=127.0.0.9"],
        &["--add", "2=127.0.0.1"],
        &["--cluster", "mill", "--client", "new"],
    ] {
        refused(arguments, &out);
        assert!(contents(&out) == before, "{arguments:?} has changed something");
    }
    made(&["--cluster", "plant", "--local", "1", "--force"], &out);
    assert!(contents(&out) != before);
}

#[test]
fn nodes_clients_and_administrators_are_added_and_renewed_by_the_same_authority() {
    let (_kept, out) = plant();
    made(&["--cluster", "plant", "1=10.0.0.1", "2=10.0.0.2"], &out);
    let text = made(&["--add", "4=10.0.0.4", "--client", "hmi", "--admin", "night"], &out);
    assert!(text.contains("steadfast join --token @"), "{text}");
    let token = out.join("node-4.token");
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    let server = |label: &str| {
        let credentials = Credentials::from_dir(&out.join(label)).unwrap();
        Server::new(&credentials, Port::Client).map(|_| credentials.identity)
    };
    for label in ["node-1", "node-4", "client-hmi", "admin-night", "client-app"] {
        assert_eq!(server(label).unwrap().label(), label);
    }
    assert_eq!(config(&out.join("node-4")).nodes.len(), 3);
    let cluster_key = |id| fs::read(out.join(format!("node-{id}/cluster.key"))).unwrap();
    assert!(cluster_key(4) == cluster_key(1));

    // A retired node's address is free again, and its number is not.
    let again = refused(&["--add", "5=10.0.0.1"], &out);
    assert!(again.contains("--retired 1"), "{again}");
    made(&["--retired", "1", "--add", "5=10.0.0.1"], &out);
    let ids: Vec<u32> = config(&out.join("node-5")).nodes.iter().map(|it| it.id.0).collect();
    assert_eq!(ids, [2, 4, 5]);
    assert!(refused(&["--add", "1=10.0.0.7"], &out).contains("never used again"));

    let before = contents(&out);
    let json = made(&["--renew", "--json"], &out);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let renewed = report["renewed"].as_array().unwrap();
    assert_eq!(renewed.len(), 4 + 2 + 2, "{json}");
    for ((path, old), (_, new)) in before.iter().zip(contents(&out)) {
        let label = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let own = path.file_stem().unwrap() == label && label.contains('-');
        assert_eq!(*old != new, own, "{}", path.display());
    }
    assert_eq!(server("node-4").unwrap().label(), "node-4");

    fs::remove_file(out.join("authority/authority.key")).unwrap();
    let why = refused(&["--client", "late"], &out);
    assert!(why.contains("bring the authority's key back"), "{why}");
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    let (_kept, out) = plant();
    for (arguments, remedy) in [
        (&["--cluster", "Plant", "--local", "1"][..], "lower-case"),
        (&["--local", "1"], "--cluster NAME"),
        (&["--cluster", "plant"], "1=10.0.0.1"),
        (&["--cluster", "plant", "1=host"], "names are not looked up"),
        (&["--cluster", "plant", "1=10.0.0.1", "1=10.0.0.2"], "its own id"),
        (&["--cluster", "plant", "1=10.0.0.1", "2=10.0.0.1"], "--local N"),
        (&["--cluster", "plant", "1=10.0.0.1", "2=fd00::2"], "IPv4"),
        (&["--cluster", "plant", "--local", "1", "--client-port", "7201"], "three ports"),
        (&["--cluster", "plant", "--local", "1", "--client", "a b"], "hyphens"),
        (&["--client", "hmi"], "was not made by `steadfast init`"),
    ] {
        let why = refused(arguments, &out);
        assert!(why.contains(remedy), "{arguments:?}: {why}");
        assert!(!out.exists(), "{arguments:?} has left something");
    }
}
