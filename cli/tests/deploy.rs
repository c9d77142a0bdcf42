//! Deployments, as people use them: by the program's commands, on nodes in processes of their own,
//! of which one is killed and one is emptied while a client calls.

mod daemon;
mod plant;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fixture::Stops;
use plant::{CounterClient, PROGRAM, Plant, TIMEOUT, on, out, service};
use steadfast::Client;
use steadfast::status::{DeploymentStatus, DeploymentsStatus, Grant, Status};

fn rack(node: u32) -> u32 {
    (node - 1) / 2
}

fn all_is_told_and_can_be_ended(plant: &Plant) {
    // A node that lived all along has reported it. The one that died has not.
    let told = (1..=4).map(|id| out(&plant.ask(id, &["events"]))).max_by_key(String::len);
    let told = told.expect("there are nodes");
    for wanted in
        ["own: deployed, 2 replicas", "own: replicas are placed on n", " is being drained"]
    {
        assert!(told.contains(wanted), "{wanted} is not in\n{told}");
    }

    let text = out(&plant.ask(1, &["deployments"]));
    assert!(
        text.contains("drained: it is empty") && text.contains("own (semi-active): 2 wanted"),
        "{text}"
    );
    // One node is asked: another may not know yet that the first has returned a node.
    let status = plant.admin(1).deployments().expect("known");
    for node in status.nodes.iter().filter(|node| node.drained) {
        out(&plant.ask(1, &["return", &node.node.0.to_string()]));
    }
    out(&plant.ask(1, &["withdraw", "own"]));
    let deadline = Instant::now() + TIMEOUT;
    let idle = |id| plant.admin(id).status().expect("it answers").programs.is_empty();
    while !(1..=4).all(idle) {
        assert!(Instant::now() < deadline, "all programs end");
    }
}

#[test]
fn a_lost_replica_is_replaced_and_a_drained_node_is_emptied_while_a_client_calls() {
    let mut plant = Plant::start();
    plant.wait(1, |status| status.nodes.len() == 4);
    let file = service(
        plant.folder.path(),
        "replicas = 2\npriority = 7\n[distribution]\npolicy = \"spread\"\nover = \"rack\"",
    );
    let file = file.to_str().expect("text");
    let dry = out(&plant.ask(1, &["deploy", file, "--dry-run"]));
    assert!(dry.starts_with("own would be placed on "), "{dry}");
    assert!(plant.admin(1).deployments().expect("known").deployments.is_empty());
    out(&plant.ask(2, &["deploy", file]));
    let spread = |on: &[u32]| on.len() == 2 && rack(on[0]) != rack(on[1]);
    let placed = plant.settled(1, spread);
    let hosts = on(&placed);

    let done = AtomicBool::new(false);
    let (addresses, calls) = (plant.addresses(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (done, calls) = (&done, &calls);
        let _stops = Stops(done);
        let caller = scope.spawn(move || {
            let client = Client::connect(addresses).expect("nodes are there");
            let counter = CounterClient::new(&client, "own").within(TIMEOUT);
            let mut sum = 0;
            while !done.load(Ordering::Relaxed) {
                sum += 1;
                assert_eq!(counter.add(1), Ok(sum), "no call fails, none is lost or repeated");
                calls.store(true, Ordering::Relaxed);
            }
            sum
        });
        let called = || {
            calls.store(false, Ordering::Relaxed);
            let deadline = Instant::now() + TIMEOUT;
            while !calls.load(Ordering::Relaxed) {
                assert!(Instant::now() < deadline && !caller.is_finished(), "calls go on");
                std::thread::yield_now();
            }
        };
        called();
        // The client does not say how critical its calls are.
        let deadline = Instant::now() + TIMEOUT;
        let told = |status: Status| status.hosts.iter().any(|host| host.callers == [7]);
        while !told(plant.admin(1).status().expect("it answers")) {
            assert!(Instant::now() < deadline, "the deployment says it");
            std::thread::yield_now();
        }

        // A host dies: a third node gets a replica, with the state, in the rack that has none now.
        let dead = hosts[0];
        plant.kill(dead as usize);
        let other = hosts[1] as usize;
        let after = on(&plant.settled(other, |on| spread(on) && !on.contains(&dead)));
        called();

        // It returns, and there is nothing for it to do.
        plant.boot(dead as usize);
        plant.wait(dead as usize, |status| status.nodes.iter().all(|node| node.present));
        assert_eq!(on(&plant.settled(dead as usize, |_| true)), after);
        assert!(plant.admin(dead as usize).status().expect("it answers").programs.is_empty());

        // A host is emptied.
        let full = after[0];
        let text = out(&plant.ask(dead as usize, &["drain", &full.to_string()]));
        assert!(text.ends_with(&format!("n{full} is empty\n")), "{text}");
        called();
        plant.settled(full as usize, |on| spread(on) && !on.contains(&full));
        let deadline = Instant::now() + TIMEOUT;
        while !plant.admin(full as usize).status().expect("it answers").programs.is_empty() {
            assert!(Instant::now() < deadline, "its program ends");
        }
        called();
        done.store(true, Ordering::Relaxed);
        assert!(caller.join().expect("no call failed") > 0);
    });

    all_is_told_and_can_be_ended(&plant);
}

/// A deployment is saved under load, withdrawn, restored and deployed again: it resumes from the
/// saved state.
#[test]
fn a_withdrawn_deployment_goes_on_from_what_was_saved() {
    let plant = Plant::start();
    plant.wait(1, |status| status.nodes.len() == 4);
    let file = service(plant.folder.path(), "replicas = 3");
    let file = file.to_str().expect("text");
    out(&plant.ask(1, &["deploy", file]));
    let hosts = on(&plant.settled(1, |on| on.len() == 3));
    let (addresses, done) = (plant.addresses(), AtomicBool::new(false));
    let saved = plant.folder.path().join("own.state");
    let saved = saved.to_str().expect("text");
    let save = ["state", "save", "own", saved];
    let called = std::thread::scope(|scope| {
        let _stops = Stops(&done);
        let (addresses, done) = (addresses.clone(), &done);
        let caller = scope.spawn(move || {
            let client = Client::connect(addresses).expect("nodes are there");
            let counter = CounterClient::new(&client, "own").within(TIMEOUT);
            let mut sum = 0;
            while !done.load(Ordering::Relaxed) {
                sum = counter.add(1).expect("no call fails");
            }
            sum
        });
        out(&plant.ask(hosts[0] as usize, &save));
        done.store(true, Ordering::Relaxed);
        caller.join().expect("no call failed")
    });
    out(&plant.ask(2, &["withdraw", "own"]));
    let deadline = Instant::now() + TIMEOUT;
    let knows = |id| {
        let groups = plant.admin(id).status().expect("it answers").groups;
        groups.iter().any(|group| group.name == "own")
    };
    while (1..=4).any(knows) {
        assert!(Instant::now() < deadline, "the group ends");
    }
    let told = out(&plant.ask(3, &["state", "restore", "own", saved, "--json"]));
    let told: serde_json::Value = serde_json::from_str(&told).expect("one JSON object");
    out(&plant.ask(1, &["deploy", file]));
    let hosts = on(&plant.settled(4, |on| on.len() == 3));
    let digest = told["from"]["digest"].as_str().expect("it has a state");
    for host in hosts {
        let answer = plant.admin(host as usize).digest("own").expect("it has the state");
        assert_eq!(answer.digest, digest);
    }
    let client = Client::connect(addresses).expect("nodes are there");
    let counter = CounterClient::new(&client, "own").within(TIMEOUT);
    let executed = told["from"]["executed"].as_u64().expect("a number");
    assert!(executed <= called);
    assert_eq!(counter.get(), Ok(executed), "each call added one");
}

#[test]
fn another_program_is_taken_over_while_a_client_calls_and_one_that_fails_is_taken_back() {
    let plant = Plant::start();
    plant.wait(1, |status| status.nodes.len() == 4);
    let deploy = |version: &str, command: &str| {
        let path = plant.folder.path().join("service.toml");
        let text = format!(
            "group = \"own\"\ncommand = {command}\nack = \"majority\"\nreplicas = 3\n\
             [environment]\nVERSION = \"{version}\"\n"
        );
        std::fs::write(&path, text).expect("written");
        out(&plant.ask(1, &["deploy", path.to_str().expect("text")]));
    };
    let counter = format!("[\"{PROGRAM}\", \"replica\", \"counter\"]");
    deploy("1", &counter);
    plant.settled(1, |on| on.len() == 3);
    let pids = || -> std::collections::BTreeSet<(u32, u32)> {
        let at = |id: u32| {
            let status = plant.admin(id as usize).status().expect("it answers");
            status.programs.into_iter().filter_map(move |it| Some((id, it.pid?)))
        };
        (1..=4).flat_map(at).collect()
    };
    let first = pids();
    assert_eq!(first.len(), 3);

    let done = AtomicBool::new(false);
    let addresses = plant.addresses();
    std::thread::scope(|scope| {
        let done = &done;
        let _stops = Stops(done);
        let caller = scope.spawn(move || {
            let client = Client::connect(addresses).expect("nodes are there");
            let counter = CounterClient::new(&client, "own").within(TIMEOUT);
            let mut sum = 0;
            while !done.load(Ordering::Relaxed) {
                sum += 1;
                assert_eq!(counter.add(1), Ok(sum), "no call fails, none is lost or repeated");
            }
            sum
        });
        deploy("2", &counter);
        // A node that was not asked may not know of it at once.
        let is_second = |it: &DeploymentStatus| {
            let version = &it.deployment.program.environment["VERSION"];
            it.settled && on(it).len() == 3 && version == "2"
        };
        plant.wait(2, |status| status.deployments.iter().any(is_second));
        let second = pids();
        assert_eq!(second.len(), 3);
        assert!(first.is_disjoint(&second), "all have changed over: {first:?}, {second:?}");

        // One that ends at once.
        deploy("3", "[\"/bin/false\"]");
        let undone = |status: &DeploymentsStatus| {
            status.deployments.iter().any(|it| it.settled && it.undone.is_some())
        };
        let placed = plant.wait(3, undone).deployments.remove(0);
        assert_eq!(placed.deployment.program.environment["VERSION"], "2");
        let text = out(&plant.ask(3, &["deployments"]));
        assert!(text.contains("an upgrade was rolled back: `/bin/false` at n"), "{text}");
        plant.wait(4, undone);
        let told = out(&plant.ask(4, &["events"]));
        for wanted in
            ["changes to `", "own: all replicas run `", "own: the upgrade is rolled back: at n"]
        {
            assert!(told.contains(wanted), "{wanted} is not in\n{told}");
        }
        assert!(second.intersection(&pids()).count() >= 2, "only one has tried it");
        done.store(true, Ordering::Relaxed);
        assert!(caller.join().expect("no call failed") > 0);
    });
}

/// The SCHED_FIFO priority of a process, 0 if it is an ordinary one: columns 40 and 41 of its line,
/// of which the second is in brackets.
fn fifo(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let columns: Vec<&str> =
        stat.rsplit_once(')').expect("its name").1.split_whitespace().collect();
    let number = |column: usize| columns[column - 3].parse::<u32>().expect("a number");
    if number(41) == 1 { number(40) } else { 0 }
}

#[test]
fn replicas_run_by_the_rate_of_their_calls_or_it_is_said_why_not() {
    let mut plant = Plant { folder: tempfile::tempdir().expect("a folder"), daemons: vec![None] };
    let rings = steadfast::free_ring_addresses(1);
    let text = plant.text(1, &rings) + "[realtime]\nexecutor_priority = 20\n";
    std::fs::write(plant.config(1), text).expect("written");
    plant.boot(1);
    plant.wait(1, |status| status.nodes.len() == 1);
    // 100 ms are 13 half doublings of a millisecond, 1 ms is none.
    for (group, need, priority) in [
        ("slow", "need = { cost_us = 1000, period_ms = 100 }", 7),
        ("quick", "need = { cost_us = 100, period_ms = 1 }", 20),
        ("any", "", 0),
    ] {
        let file = service(plant.folder.path(), &format!("replicas = 1\n{need}"));
        let text = std::fs::read_to_string(&file).expect("it was written");
        std::fs::write(&file, text.replace("\"own\"", &format!("\"{group}\""))).expect("written");
        out(&plant.ask(1, &["deploy", file.to_str().expect("text")]));
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            let programs = plant.admin(1).status().expect("it answers").programs;
            match programs.into_iter().find(|it| it.group == group && it.joined) {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "{group} joins"),
            }
        };
        let is = fifo(status.pid.expect("it runs"));
        let said = out(&plant.ask(1, &["programs"]));
        match status.priority_grant {
            Grant::NotAsked => assert_eq!((priority, is), (0, 0), "{said}"),
            Grant::InForce => {
                assert_eq!((status.priority, u32::from(status.priority)), (priority, is), "{said}")
            }
            Grant::Refused(why) => {
                assert_eq!((status.priority, is), (priority, 0));
                assert!(why.contains("CAP_SYS_NICE") && said.contains(&why), "{said}");
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    let plant = Plant::start();
    plant.wait(1, |status| status.nodes.len() == 4);
    let refused = |arguments: &[&str]| {
        let output = plant.ask(1, arguments);
        assert!(!output.status.success(), "{output:?}");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let folder = plant.folder.path();
    let deploy = |rest: &str| {
        let file = service(folder, rest);
        refused(&["deploy", file.to_str().expect("text")])
    };
    let (code, text) = deploy("replicas = 5");
    assert!(code == Some(1) && text.contains("4 of 5 replicas have a place"), "{text}");
    let (code, text) = deploy("replicas = 1\nlabels = { rack = \"c\" }");
    assert!(code == Some(1) && text.contains("n1: its label rack is a, not c"), "{text}");
    let (code, text) = deploy("replicas = 0");
    assert!(code == Some(2) && text.contains("service.toml, line 4: 0 replicas"), "{text}");
    let (code, text) = refused(&["withdraw", "own"]);
    assert!(code == Some(1) && text.contains("`steadfast deployments` lists what is"), "{text}");
    let (code, text) = refused(&["drain", "9"]);
    assert!(code == Some(1) && text.contains("n9 has never told of itself"), "{text}");
    let (code, text) = refused(&["run", "--group", "steadfast.manager", "--admin", "x"]);
    assert_eq!(code, Some(2), "{text}");

    // The manager's group does not exist for clients: a client that could call it could start
    // programs.
    let client = Client::connect(plant.addresses()).expect("nodes are there");
    let counter = CounterClient::new(&client, "steadfast.manager").within(Duration::from_secs(5));
    let refusal = counter.get().expect_err("there is no such group").to_string();
    assert!(refusal.contains("steadfast.manager"), "{refusal}");
    assert_eq!(
        plant.admin(2).deployments().expect("known").leads.map(|node| node.0 > 0),
        Some(true)
    );
}

#[test]
fn what_people_said_survives_the_end_of_all_nodes_where_they_have_disks() {
    let mut plant = Plant { folder: tempfile::tempdir().expect("a folder"), daemons: vec![None] };
    let rings = steadfast::free_ring_addresses(1);
    let disks = "data_dir = \"data\"\nstorage.folder = \"disk\"\n";
    std::fs::write(plant.config(1), format!("{disks}{}", plant.text(1, &rings))).expect("written");
    let data = plant.config(1).with_file_name("data");
    steadfast::founder::mark(&data).expect("an empty folder");
    plant.boot(1);
    plant.wait(1, |status| status.nodes.len() == 1);
    let file = service(plant.folder.path(), "replicas = 1\ndurability = \"disk\"");
    out(&plant.ask(1, &["deploy", file.to_str().expect("text")]));
    plant.settled(1, |on| on == [1]);
    let call = |plant: &Plant| {
        let address =
            plant.admin(1).status().expect("it answers").client.expect("it takes clients");
        let client = Client::connect([address]).expect("the node is there");
        CounterClient::new(&client, "own").within(TIMEOUT).add(5)
    };
    assert_eq!(call(&plant), Ok(5));
    plant.kill(1);
    plant.boot(1);
    plant.settled(1, |on| on == [1]);
    assert_eq!(call(&plant), Ok(10), "the program runs again, with its state");
}
