//! A cluster whose hosts are parted and meet again: each node in a network namespace of its own.
//!
//! Namespaces need root, and the program `ip`; without them there is nothing to try.

mod daemon;

use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use daemon::program;
use tempfile::TempDir;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The namespace with two bridges, to one of which each host's cable is plugged.
const SWITCH: u32 = 0;

/// Hosts that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

const STYLES: [&str; 6] =
    ["stateless", "cold-passive", "warm-passive", "semi-active", "active", "voting"];

fn ip(arguments: &[&str]) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Hosts on one machine, with a node each.
struct Hosts {
    folder: TempDir,
    nodes: Vec<Child>,
    count: u32,
    /// Which of this process: its namespaces are named by that.
    serial: u32,
}

impl Hosts {
    /// So many nodes with this configuration beside their own. `None`: namespaces cannot be made.
    fn start(count: u32, configuration: &str) -> Option<Hosts> {
        let folder = tempfile::tempdir().expect("a folder");
        let serial = MADE.fetch_add(1, Ordering::Relaxed);
        let mut hosts = Hosts { folder, nodes: Vec::new(), count, serial };
        if !ip(&["netns", "add", &hosts.space(SWITCH)]) {
            eprintln!("not tried: network namespaces need root and the program `ip`");
            return None;
        }
        assert!(hosts.plug(), "hosts in namespaces");
        for node in 1..=count {
            let config = hosts.config(node);
            std::fs::write(&config, hosts.configuration(node, configuration)).expect("written");
            let log = std::fs::File::create(hosts.file(node, "log")).expect("a log");
            let mut command = hosts.within(node);
            command.args(["node", "--log", "info", "--config"]).arg(&config).stderr(log);
            hosts.nodes.push(command.spawn().expect("the program can be run"));
        }
        Some(hosts)
    }

    fn plug(&self) -> bool {
        let switch = self.space(SWITCH);
        let made = ["br0", "br1"].iter().all(|bridge| {
            ip(&["-n", &switch, "link", "add", bridge, "type", "bridge", "forward_delay", "0"])
                && ip(&["-n", &switch, "link", "set", bridge, "up"])
        });
        made && (1..=self.count).all(|node| {
            let (host, port) = (self.space(node), format!("p{node}"));
            let address = format!("10.98.0.{node}/24");
            let far = ["type", "veth", "peer", "name", "eth0", "netns", &host];
            ip(&["netns", "add", &host])
                && ip(&["-n", &host, "link", "set", "lo", "up"])
                && ip(&[&["-n", &switch, "link", "add", &port], &far[..]].concat())
                && ip(&["-n", &switch, "link", "set", &port, "master", "br0", "up"])
                && ip(&["-n", &host, "address", "add", &address, "dev", "eth0"])
                && ip(&["-n", &host, "link", "set", "eth0", "up"])
        })
    }

    fn space(&self, place: u32) -> String {
        format!("sfp{}x{}-{place}", process::id(), self.serial)
    }

    fn file(&self, node: u32, kind: &str) -> PathBuf {
        self.folder.path().join(format!("{node}.{kind}"))
    }

    fn config(&self, node: u32) -> PathBuf {
        self.file(node, "toml")
    }

    fn configuration(&self, node: u32, more: &str) -> String {
        let all = (1..=self.count)
            .map(|id| format!("[[nodes]]\nid = {id}\nring = \"10.98.0.{id}:7201\"\n"));
        format!(
            "node = {node}\ncluster = \"parting\"\nadmin = \"{}\"\ninsecure = true\n{more}\n\
             [listen]\nclient = \"10.98.0.{node}:7100\"\n{}",
            self.file(node, "sock").display(),
            all.collect::<String>()
        )
    }

    /// A command of the program on this host.
    fn within(&self, node: u32) -> Command {
        let program = program();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(node)]).arg(program.get_program());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null());
        command
    }

    /// These hosts are on their own from now on.
    fn part(&self, island: &[u32]) {
        for node in 1..=self.count {
            let bridge = if island.contains(&node) { "br1" } else { "br0" };
            let port = format!("p{node}");
            assert!(ip(&["-n", &self.space(SWITCH), "link", "set", &port, "master", bridge]));
        }
    }

    fn call(&self, node: u32, arguments: &[&str]) -> Output {
        let at = format!("10.98.0.{node}:7100");
        let mut command = self.within(node);
        command.arg("call").args(arguments).args(["--at", &at, "--deadline", "5s"]);
        command.output().expect("the program can be run")
    }

    /// The answer to a call at this node, as soon as there is one.
    fn answer(&self, node: u32, arguments: &[&str]) -> String {
        let mut last = None;
        self.until(&format!("an answer to {arguments:?} at {node}"), || {
            let output = self.call(node, arguments);
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let answered = output.status.success();
            last = Some(output);
            answered.then_some(text)
        })
    }

    fn status(&self, node: u32) -> String {
        let mut command = self.within(node);
        let output = command.arg("status").arg("--config").arg(self.config(node)).output();
        String::from_utf8_lossy(&output.expect("the program can be run").stdout).into_owned()
    }

    /// Looks again and again: each look is a process of the program, which takes its time.
    fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}\n{}", self.all());
        }
    }

    fn all(&self) -> String {
        (1..=self.count).map(|node| self.status(node)).collect()
    }

    /// So many nodes are in this node's ring. If they are all, each has a replica of each group, with
    /// the state.
    fn wait_for_ring(&self, node: u32, size: usize, groups: &[&str]) {
        self.until(&format!("{size} nodes in the ring of {node}"), || {
            let status = self.status(node);
            let whole = status.contains(&format!("{size} of {} nodes", self.count))
                || status.contains(&format!("nodes   {size} of {}", self.count));
            let row = |group: &&str| {
                let row = status.lines().find(|line| line.starts_with(&format!("{group} ")));
                // Behind the view and the primary. One that gets the state is "(n1)".
                let replicas = row.map(|row| row.split_whitespace().skip(3).collect::<Vec<_>>());
                let has = |node: String| replicas.iter().flatten().any(|it| *it == node);
                (1..=self.count).all(|node| has(format!("n{node}")))
            };
            (whole && (size < self.count as usize || groups.iter().all(row))).then_some(())
        });
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
        for place in SWITCH..=self.count {
            ip(&["netns", "del", &self.space(place)]);
        }
    }
}

fn counters(groups: &[(&str, &str)]) -> String {
    let replica = |(group, style): &(&str, &str)| {
        format!("[[replica]]\ngroup = \"{group}\"\nservice = \"counter\"\nstyle = \"{style}\"\n")
    };
    groups.iter().map(replica).collect()
}

#[test]
fn a_minority_answers_stale_reads_in_every_style() {
    let groups: Vec<(&str, &str)> = STYLES.iter().map(|style| (*style, *style)).collect();
    let Some(hosts) = Hosts::start(3, &counters(&groups)) else { return };
    hosts.wait_for_ring(1, 3, &STYLES);
    // Cut off are a backup of all groups, and then their primary: that of a cold passive one is
    // the only replica whose service runs.
    let primary: u32 = hosts.until("a primary", || {
        let status = hosts.status(1);
        let row = status.lines().find(|line| line.starts_with("cold-passive "))?;
        row.split_whitespace().nth(2)?.strip_prefix('n')?.parse().ok()
    });
    for style in &STYLES[1..] {
        assert_eq!(hosts.answer(1, &[style, "add", "[5]"]), "5", "{style}");
    }
    let backup = primary % 3 + 1;
    for (node, styles) in [(backup, &STYLES[2..]), (primary, &STYLES[1..])] {
        hosts.part(&[node]);
        hosts.until("the node to know that it is alone", || {
            hosts.status(node).contains("no quorum").then_some(())
        });
        for style in styles {
            let read = [*style, "get", "--stale", "60s"];
            assert_eq!(hosts.answer(node, &read), "5", "{style} at {node}");
        }
        assert!(hosts.call(node, &["stateless", "get"]).status.success());
        let fresh = hosts.call(node, &["semi-active", "get", "--read"]);
        assert!(!fresh.status.success(), "a read that is no stale one has to be refused");
        hosts.part(&[]);
        hosts.wait_for_ring(1, 3, &STYLES);
    }
}

#[test]
fn calls_of_the_side_that_gives_up_are_counted_or_merged_and_views_come_at_one_place() {
    let crew = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/partition/crew.py");
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/client");
    let program = |(group, style): &(&str, &str)| {
        format!(
            "[[program]]\ngroup = \"{group}\"\nstyle = \"{style}\"\ncommand = [\"env\", \
             \"PYTHONPATH={}\", \"python3\", \"{}\"]\n",
            client.display(),
            crew.display()
        )
    };
    // The primary alone runs the service, or alone executes.
    let passive = [("warm", "warm-passive"), ("cold", "cold-passive")];
    let programs: String = [("crew", "semi-active")].iter().chain(&passive).map(program).collect();
    let counters = counters(&[("counter", "semi-active")]);
    let configuration = format!("quorum = \"off\"\n{counters}{programs}");
    let Some(hosts) = Hosts::start(5, &configuration) else { return };
    let groups = ["counter", "crew", "warm", "cold"];
    (1..=5).for_each(|node| hosts.wait_for_ring(node, 5, &groups));
    assert_eq!(hosts.answer(1, &["counter", "add", "[20]"]), "20");
    hosts.answer(1, &["crew", "note", "[\"whole\"]"]);
    hosts.part(&[1, 2]);
    hosts.wait_for_ring(1, 2, &groups);
    hosts.wait_for_ring(3, 3, &groups);
    for sum in ["120", "220", "320"] {
        assert_eq!(hosts.answer(1, &["counter", "add", "[100]"]), sum);
    }
    for sum in ["1020", "2020"] {
        assert_eq!(hosts.answer(3, &["counter", "add", "[1000]"]), sum);
    }
    for group in &groups[1..] {
        hosts.answer(1, &[group, "note", "[\"two\"]"]);
        hosts.answer(3, &[group, "note", "[\"three\"]"]);
    }
    hosts.part(&[]);
    (1..=5).for_each(|node| hosts.wait_for_ring(node, 5, &groups));
    assert_eq!(hosts.answer(1, &["counter", "get", "--read"]), "2020", "one history stays");
    for node in 1..=5 {
        let told = |node| format!("! counter: n{node} gave up a history of 3 acknowledged calls");
        hosts.until(&format!("the line at {node}"), || {
            let status = hosts.status(node);
            (status.contains(&told(1)) && status.contains(&told(2))).then_some(())
        });
        let status = hosts.status(node);
        assert!(!status.contains("! counter: n3 gave up"), "{status}");
    }
    for node in [1, 2] {
        let log = std::fs::read_to_string(hosts.file(node, "log")).expect("a log");
        let told = |line: &str| line.contains("calls=3") && line.contains("group=\"counter\"");
        assert!(log.lines().any(|line| told(line) && line.contains("ERROR")), "{log}");
    }
    for node in [1, 2] {
        hosts.until(&format!("the merge at {node}"), || {
            let log = std::fs::read_to_string(hosts.file(node, "log")).expect("a log");
            let merged = |line: &str| line.contains("group=\"crew\"") && line.contains("merged");
            log.lines().any(merged).then_some(())
        });
    }
    for (group, style) in passive {
        hosts.until(&format!("the union of {style}"), || {
            let told = hosts.answer(1, &[group, "notes", "--read"]);
            ["two", "three"].iter().all(|note| told.contains(note)).then_some(())
        });
    }
    for node in [1, 2] {
        let status = hosts.status(node);
        assert!(!status.contains("! crew:") && !status.contains("! warm:"), "{status}");
    }
    // Each replica saw the same members at each call, and has those of both sides.
    hosts.answer(1, &["crew", "note", "[\"again\"]"]);
    for node in 1..=5 {
        // Alone, each answers by its own replica.
        hosts.part(&[node]);
        hosts.wait_for_ring(node, 1, &groups);
        let told = hosts.answer(node, &["crew", "notes", "--read"]);
        let whole = ["whole 5: [1, 2, 3, 4, 5]", "again 5: [1, 2, 3, 4, 5]"];
        for note in whole.into_iter().chain(["two 2: [1, 2]", "three 3: [3, 4, 5]"]) {
            assert!(told.contains(note), "{note} at {node}: {told}");
        }
    }
}
