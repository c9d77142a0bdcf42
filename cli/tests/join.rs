//! A cluster of one node gets a second by `steadfast join`, and `steadfast retire` takes the first.

mod daemon;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use daemon::{Daemon, program};
use wire::NodeId;

fn run(arguments: &[&str]) -> String {
    let output = program().args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_second_node_joins_by_its_token_and_the_first_is_retired() {
    let kept = tempfile::tempdir().unwrap();
    let out = kept.path().join("plant");
    let free = steadfast::free_ring_addresses(3);
    let [ring, client, admin] = [0, 1, 2].map(|index: usize| free[index].port().to_string());
    let ports = ["--ring-port", &ring, "--client-port", &client, "--admin-port", &admin];
    let found = ["init", "--cluster", "plant", "--local", "1", "--out", name(&out)];
    run(&[&found[..], &ports[..]].concat());
    let config = |id: u32| out.join(format!("node-{id}/steadfast.toml"));
    let first = Daemon::of(&config(1));
    first.wait_for("STATUS=3 of 3 replicas have the state");
    let (tls, at) = (out.join("client-app"), format!("127.0.0.1:{client},127.0.0.2:{client}"));
    let add = |expected: &str| {
        let call = ["call", "counter", "add", "[5]", "--deadline", "20s", "--at", &at];
        assert_eq!(run(&[&call[..], &["--tls", name(&tls)]].concat()), format!("{expected}\n"));
    };
    add("5");

    // The key changes after the token was made: the cluster gives the new one.
    run(&["init", "--out", name(&out), "--add", "2=127.0.0.2"]);
    run(&["key", "rotate", "--config", name(&config(1))]);
    let host = kept.path().join("etc");
    let token = format!("@{}", name(&out.join("node-2.token")));
    let join = ["join", "--token", &token, "--out", name(&host), "--within", "60", "--json"];
    let mut joining = program().args(join).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(joining.stdout.take().unwrap()).lines();
    let step = |line: Option<std::io::Result<String>>| {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        line["step"].as_str().unwrap().to_owned()
    };
    assert_eq!(step(lines.next()), "waits for its start");
    let second = Daemon::of(&host.join("steadfast.toml"));
    let rest: Vec<String> = lines.map(|line| step(Some(line))).collect();
    assert!(joining.wait().unwrap().success(), "{rest:?}");
    assert_eq!((rest[0].as_str(), rest.last().unwrap().as_str()), ("asked", "counts"));
    second.wait_for("STATUS=3 of 3 replicas have the state");
    add("10");

    // An interrupted command may be given again.
    assert!(run(&join).contains("counts"));
    // A node's certificate is for that.
    let status = ["status", "--connect", &format!("127.0.0.1:{admin}"), "--tls", name(&host)];
    let why = refused(&program().args(status).output().unwrap());
    assert!(why.contains("joining with that node alone"), "{why}");

    let second_config = host.join("steadfast.toml");
    assert!(run(&["retire", "1", "--config", name(&second_config)]).contains("n1 is retired\n"));
    let (code, log) = first.ended();
    assert_eq!(code, Some(2), "systemd does not start it again: {log}");
    assert!(log.contains("this node was retired"), "{log}");
    add("15");
    let status = run(&["status", "--json", "--config", name(&second_config)]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["nodes"]["counted"], serde_json::json!([NodeId(2)]));

    // The manager forgets it soon.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let told = run(&["deployments", "--json", "--config", name(&second_config)]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let nodes: Vec<u64> = told["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["node"].as_u64().unwrap())
            .collect();
        if nodes == [2] {
            break;
        }
        assert!(Instant::now() < deadline, "{told}");
    }

    // It starts again, with its old disk.
    let (code, log) = Daemon::of(&config(1)).ended();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("another number"), "{log}");
    add("20");
}
