//! Programs that cannot serve a group's state, as people see it who deploy them: the reason is told,
//! and no replica ends for them.

mod daemon;
mod plant;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use plant::{CounterClient, Plant, TIMEOUT, out};
use steadfast::Client;
use steadfast::cluster_state::Fault;
use steadfast::status::Status;

/// A refusal comes long before the time after which an upgrade is rolled back in any case, even on a
/// busy machine.
const SOON: Duration = Duration::from_secs(30);

/// Deploys the counter that does this, and waits.
fn deploy(plant: &Plant, group: &str, how: &str, wait: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("tests/upgrades/tried.py");
    let examples = root.join("../examples/attach");
    let file = plant.folder.path().join(format!("{group}.toml"));
    let text = format!(
        "group = \"{group}\"\ncommand = [\"python3\", \"{}\", \"{}\", \"{how}\"]\nreplicas = 3\n\
         [environment]\nLOG = \"{}\"\n",
        script.display(),
        examples.display(),
        plant.folder.path().join("log").display()
    );
    std::fs::write(&file, text).expect("written");
    plant.ask(2, &["deploy", file.to_str().expect("text"), "--wait", wait])
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The processes that serve, each with its node.
fn pids(plant: &Plant) -> BTreeSet<(u32, u32)> {
    let at = |id: u32| {
        let status = plant.admin(id as usize).status().expect("it answers");
        status.programs.into_iter().filter_map(move |it| Some((id, it.pid?)))
    };
    (1..=4).flat_map(at).collect()
}

#[test]
fn a_program_that_cannot_serve_is_refused_with_the_reason_before_any_replica_ends() {
    let plant = Plant::start();
    plant.wait(2, |status| status.nodes.len() == 4);
    out(&deploy(&plant, "own", "well", "60s"));
    let client = Client::connect(plant.addresses()).expect("nodes are there");
    let counter = CounterClient::new(&client, "own").within(TIMEOUT);
    assert_eq!(counter.add(5), Ok(5));
    let serving = pids(&plant);
    assert_eq!(serving.len(), 3);

    for (sum, (how, reason)) in (6..).zip([
        ("strict", "cannot read the state: not a state of this service: missing field `credit`"),
        ("mute", "cannot give the state that it has read: surrogates not allowed"),
        ("dies", "error: the state of this service has an attribute that no state may have"),
    ]) {
        let began = Instant::now();
        let text = refused(&deploy(&plant, "own", how, "2m"));
        assert!(text.contains("refused: n") && text.contains(reason), "{how}: {text}");
        assert!(began.elapsed() < SOON, "{how}: after {:?}", began.elapsed());
        assert_eq!(pids(&plant), serving, "{how}: no replica has ended");
        assert_eq!(counter.add(1), Ok(sum), "{how}: the group serves on");
        let told = out(&plant.ask(2, &["deployments"]));
        assert!(told.contains("an upgrade was rolled back") && told.contains(reason), "{told}");
    }
    let deployments = plant.admin(2).deployments().expect("known").deployments;
    let undone = deployments[0].undone.as_ref().expect("it was refused");
    assert!(
        matches!(&undone.fault, Fault::Refused(reason) if reason.contains("no state may have"))
    );
    let events = out(&plant.ask(2, &["events"]));
    assert!(events.contains("missing field `credit`"), "{events}");

    let told = out(&deploy(&plant, "own", "drops", "60s"));
    assert!(told.contains("dropped fields of the state: `credit`"), "{told}");
    assert!(serving.is_disjoint(&pids(&plant)), "all have changed over");
    assert_eq!(counter.get(), Ok(8));
    let log = std::fs::read_to_string(plant.folder.path().join("log")).expect("programs write it");
    let tried = |how: &str| log.lines().filter(|line| *line == format!("{how} 1")).count();
    assert_eq!((tried("well"), tried("strict"), tried("drops")), (0, 1, 3), "{log}");
    assert!(!log.contains("strict serves"), "{log}");
}

#[test]
fn a_state_that_cannot_be_given_is_told_at_every_node() {
    let plant = Plant::start();
    plant.wait(2, |status| status.nodes.len() == 4);
    let began = Instant::now();
    let text = refused(&deploy(&plant, "mute", "mute", "2m"));
    let reason = ": surrogates not allowed (n";
    assert!(
        text.contains("mute: its state cannot be given to n") && text.contains(reason),
        "{text}"
    );
    assert!(began.elapsed() < SOON, "after {:?}", began.elapsed());
    for id in 1..=4 {
        // A node that was not asked may hear of it a moment later.
        let deadline = Instant::now() + TIMEOUT;
        let is_told =
            |status: &Status| status.groups.iter().any(|it| it.state_troubles().count() == 1);
        while !is_told(&plant.admin(id).status().expect("it answers")) {
            assert!(Instant::now() < deadline, "n{id} tells it");
        }
        let told = out(&plant.ask(id, &["status"]));
        assert!(
            told.contains("! mute: its state cannot be given to n") && told.contains(reason),
            "{told}"
        );
        let told = out(&plant.ask(id, &["explain", "mute"]));
        assert!(told.contains("! mute: its state cannot be given to n"), "{told}");
    }
    let json = out(&plant.ask(3, &["status", "--json"]));
    assert!(
        json.contains("\"about\": \"give\"") && json.contains("surrogates not allowed"),
        "{json}"
    );
    let told = out(&plant.ask(4, &["deployments"]));
    assert!(told.contains("cannot give the state: surrogates not allowed"), "{told}");
}
