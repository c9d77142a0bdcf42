//! The registry, as people and programs use it: nodes in processes of their own, of which some are
//! killed.

mod daemon;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use daemon::{Daemon, program};
use steadfast::registry::{Address, AsyncRegistry, Registry, RegistryError, Terms};
use steadfast::status::RegistryStatus;
use steadfast::{AsyncClient, Client, Node, NodeConfig, RegistryKnobs, admin};

/// Longer than anything here may take.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Plant {
    folder: tempfile::TempDir,
    daemons: Vec<Option<Daemon>>,
}

impl Plant {
    /// Three nodes, each with a replica of the counter, bound by this technique.
    fn start(technique: &str) -> Plant {
        let folder = tempfile::tempdir().expect("a folder");
        let rings = steadfast::free_ring_addresses(3);
        let mut plant = Plant { folder, daemons: Vec::new() };
        for id in 1..=3 {
            std::fs::write(plant.config(id), text(id, &rings, technique)).expect("written");
            plant.daemons.push(None);
            plant.boot(id);
        }
        plant
    }

    fn config(&self, id: usize) -> PathBuf {
        self.folder.path().join(format!("{id}.toml"))
    }

    fn boot(&mut self, id: usize) {
        self.daemons[id - 1] = Some(Daemon::of(&self.config(id)));
    }

    fn kill(&mut self, id: usize) {
        self.daemons[id - 1].take().expect("it runs").kill();
    }

    fn admin(&self, id: usize) -> admin::Client {
        admin_at(&self.folder.path().join(format!("{id}.sock")))
    }

    fn ask(&self, id: usize, arguments: &[&str]) -> Output {
        let mut all = program();
        all.arg("registry").args(arguments).arg("--config").arg(self.config(id));
        all.output().expect("the program can be run")
    }

    /// Returns a node's copy of the registry, once the counter is bound at these nodes. Waits at
    /// the node for each change.
    fn wait(&self, id: usize, nodes: &[u32]) -> RegistryStatus {
        let deadline = Instant::now() + TIMEOUT;
        let mut admin = self.admin(id);
        let mut since = None;
        let mut last = None;
        loop {
            let told = admin.registry(Some("counter"), since, Duration::from_secs(1));
            let told = told.expect("it answers");
            since = Some(told.epoch);
            let current = told.current;
            if told.bindings.is_some() {
                last = Some(told);
            }
            match &last {
                Some(it) if at(it) == nodes && current => {
                    return RegistryStatus { current, ..it.clone() };
                }
                last => assert!(Instant::now() < deadline, "{last:#?}"),
            }
        }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        (1..=3).filter_map(|id| self.admin(id).status().expect("it answers").client).collect()
    }
}

fn admin_at(path: &Path) -> admin::Client {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match admin::Client::connect(path) {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}

fn text(id: usize, rings: &[SocketAddr], technique: &str) -> String {
    let node = |(id, ring)| format!("[[nodes]]\nid = {id}\nring = \"{ring}\"\n");
    let nodes: String = (1..).zip(rings).map(node).collect();
    format!(
        "node = {id}\nadmin = \"{id}.sock\"\nlisten.client = \"127.0.0.1:0\"\n{nodes}\
         [ring]\ntoken_timeout_ms = 40000\ntoken_timeout_max_ms = 40000\n\
         [registry]\non = true\nbind = \"{technique}\"\nlease_ms = 1500\nrefresh_ms = 300\n\
         [[replica]]\ngroup = \"counter\"\nservice = \"counter\"\n"
    )
}

fn at(it: &RegistryStatus) -> Vec<u32> {
    let bindings = it.bindings.iter().flatten();
    let node = |address: &Address| match address {
        Address::Replica(member) => Some(member.node.0),
        Address::At(_) => None,
    };
    bindings.filter_map(|binding| node(&binding.address)).collect()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn a_killed_node_is_unbound_by_notification_and_its_next_life_is_bound() {
    let mut plant = Plant::start("notification");
    let first = plant.wait(2, &[1, 2, 3]);
    // Its keeper may be the registry's leader, too.
    let leader = first.leads.expect("there is one").0 as usize;
    let other = 1 + leader % 3;
    // It may not have heard of the last one yet: then it lists who is left without any death.
    plant.wait(other, &[1, 2, 3]);
    plant.kill(leader);
    let left: Vec<u32> = (1..=3).filter(|id| *id != leader as u32).collect();
    let second = plant.wait(other, &left);
    assert!(second.epoch > first.epoch && second.current);
    plant.boot(leader);
    let third = plant.wait(leader, &[1, 2, 3]);
    let life = |it: &RegistryStatus| {
        let bindings = it.bindings.clone().expect("there are some");
        bindings.into_iter().find(|it| it.keeper.is_some_and(|it| it.node.0 == leader as u32))
    };
    assert_ne!(life(&first), life(&third), "it is another life");
    for id in 1..=3 {
        assert_eq!(at(&plant.wait(id, &[1, 2, 3])), [1, 2, 3], "at every node");
    }
}

#[test]
fn a_killed_node_is_unbound_when_its_lease_ends_and_the_living_stay() {
    let mut plant = Plant::start("lease");
    plant.wait(2, &[1, 2, 3]);
    plant.kill(3);
    plant.wait(2, &[1, 2]);
    // Those who live go on being refreshed: nothing else has ended meanwhile, and does not for some
    // leases more.
    let mut admin = plant.admin(1);
    let epoch = admin.registry(None, None, Duration::ZERO).expect("it answers").epoch;
    let later = admin.registry(None, Some(epoch), Duration::from_secs(4)).expect("it answers");
    assert_eq!(later.bindings, None, "nothing has changed");
}

#[test]
fn names_of_ones_own_are_bound_found_followed_and_kept_in_mind() {
    let mut plant = Plant::start("both");
    plant.wait(1, &[1, 2, 3]);
    let bound = plant.ask(1, &["bind", "printer", "10.0.0.7:631", "--technique", "notification"]);
    assert!(out(&bound).starts_with("printer is bound to 10.0.0.7:631"), "{bound:?}");
    let found = plant.ask(1, &["look-up", "printer"]);
    assert!(out(&found).contains("by notification"), "{found:?}");
    let list = out(&plant.ask(1, &["list", "--json"]));
    let list: RegistryStatus = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list.bindings.expect("all").len(), 4);

    let client = Client::connect(plant.addresses()).expect("they answer");
    let mut registry = Registry::new(&client).within(Duration::from_secs(1), TIMEOUT);
    let mine = registry.look_up("printer").expect("it is there");
    assert_eq!((mine.bindings.len(), mine.stale), (1, None));
    let since = registry.list().expect("it answers").epoch;

    // The binding ends when its keeper dies.
    plant.kill(1);
    let changed = registry.watch(since, TIMEOUT).expect("it answers").expect("something changes");
    assert!(changed.epoch > since);
    let deadline = Instant::now() + TIMEOUT;
    while !registry.look_up("printer").expect("it answers").bindings.is_empty() {
        assert!(Instant::now() < deadline, "it stays");
    }
    let lost = plant.ask(2, &["look-up", "printer"]);
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
    assert!(String::from_utf8_lossy(&lost.stderr).contains("printer has no binding"));

    let known = registry.look_up("counter").expect("it answers");
    plant.kill(2);
    plant.kill(3);
    let mut registry = registry.within(Duration::from_millis(1), Duration::from_millis(300));
    let kept = registry.look_up("counter").expect("it is kept in mind");
    assert_eq!(kept.bindings, known.bindings);
    assert!(kept.stale.is_some(), "and it is said how old it is");
    assert!(registry.look_up("never asked").is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_async_code_it_is_the_same() {
    let knobs = RegistryKnobs { on: true, ..RegistryKnobs::default() };
    let node = Node::start(NodeConfig { registry: knobs, ..NodeConfig::single() }).expect("starts");
    let address = node.client_address().expect("it takes clients");
    let client = AsyncClient::connect([address]).await.expect("it answers");
    let mut registry = AsyncRegistry::new(&client).within(Duration::ZERO, TIMEOUT);
    let since = registry.list().await.expect("it answers").epoch;
    let mut other = AsyncRegistry::new(&client);
    let (changed, lease) = tokio::join!(
        other.watch(since, TIMEOUT),
        registry.bind("printer", "10.0.0.7:631", Terms::lease(60_000, 20_000))
    );
    let (changed, lease) = (changed.expect("it answers").expect("a change"), lease.expect("bound"));
    assert_eq!(changed.bindings.len(), 1);
    assert_eq!(registry.look_up("printer").await.expect("it answers").bindings, changed.bindings);
    registry.refresh(&lease).await.expect("it lives");
    registry.unbind(&lease).await.expect("it ends");
    let late = registry.refresh(&lease).await;
    assert!(matches!(late, Err(RegistryError::Fenced(_))), "{late:?}");
    assert!(registry.look_up("printer").await.expect("it answers").bindings.is_empty());
    tokio::task::spawn_blocking(|| node.stop()).await.expect("it runs").expect("it stops");
}

#[test]
fn a_node_without_a_registry_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let rings = steadfast::free_ring_addresses(1);
    let config = folder.path().join("1.toml");
    let text = format!(
        "node = 1\nadmin = \"1.sock\"\nlisten.client = \"127.0.0.1:0\"\n[[nodes]]\nid = 1\nring = \"{}\"\n",
        rings[0]
    );
    std::fs::write(&config, text).expect("written");
    let _node = Daemon::of(&config);
    admin_at(&folder.path().join("1.sock"));
    let output = program().args(["registry", "list", "--config"]).arg(&config).output();
    let output = output.expect("it can be run");
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("set on = true in [registry]"), "{words}");
}
