//! Groups on disk in every style, and in one style after the other.

use wire::client::{Access, Outcome};
use wire::ordered::{Durability, GroupOptions, Style};

use crate::harness::{Cluster, ms};

const NODES: [u32; 3] = [1, 2, 3];

/// Records after which a snapshot is taken: so few that there are several.
const SNAPSHOT_AFTER: u64 = 4;

fn stateful() -> impl Iterator<Item = Style> {
    Style::ALL.into_iter().filter(|style| style.has_state())
}

fn on_disk(style: Style) -> GroupOptions {
    GroupOptions { style, durability: Durability::Disk, ..GroupOptions::default() }
}

/// Three nodes with a group in this style, whose snapshots come soon.
fn cluster(style: Style) -> Cluster {
    let mut cluster = Cluster::new_on_disk(3);
    cluster.snapshot_after = SNAPSHOT_AFTER;
    for node in NODES {
        cluster.kill(node);
        cluster.restart(node);
    }
    cluster.host_on_with("log", &NODES, on_disk(style));
    cluster
}

/// Every node's process ends at once, and begins again with what its disk has.
fn lose_all(cluster: &mut Cluster, style: Style) {
    NODES.into_iter().for_each(|node| cluster.kill(node));
    NODES.into_iter().for_each(|node| cluster.restart(node));
    for node in NODES {
        cluster.host_with("log", node, on_disk(style));
    }
    cluster.run_until_synced("log", 3);
}

/// Somebody who puts entries into the log, one after the other, wherever the primary is.
struct Writer {
    client: Option<crate::harness::Connection>,
    written: Vec<String>,
}

impl Writer {
    fn new() -> Writer {
        Writer { client: None, written: Vec::new() }
    }

    fn connect(&mut self, cluster: &mut Cluster) -> crate::harness::Connection {
        let primary = cluster.primary(1, "log").expect("it serves");
        let connection = match self.client {
            None => cluster.client(primary),
            Some(client) => cluster.connect_as(client, primary),
        };
        self.client = Some(connection);
        connection
    }

    /// The last call once more: its answer is kept, and it is not executed again.
    fn again(&mut self, cluster: &mut Cluster, context: &str) {
        let number = self.written.len();
        let Some(last) = self.written.last().cloned() else { return };
        let connection = self.connect(cluster);
        let call = cluster.call(connection, "log", number as u64, &last);
        let answer = Outcome::Ok(format!("{number}:{last}").into());
        assert_eq!(cluster.reply(call), answer, "{context}");
    }

    fn write(&mut self, cluster: &mut Cluster, context: &str) {
        let number = self.written.len() + 1;
        let body = format!("entry {number}");
        let connection = self.connect(cluster);
        let call = cluster.call(connection, "log", number as u64, &body);
        let answer = Outcome::Ok(format!("{number}:{body}").into());
        assert_eq!(cluster.reply(call), answer, "{context}");
        self.written.push(body);
    }

    /// Checks that every running service has all answered requests.
    fn check(&self, cluster: &mut Cluster, style: Style, context: &str) {
        cluster.run_for(ms(50));
        let primary = cluster.primary(1, "log").expect("it serves");
        for node in NODES {
            if style != Style::ColdPassive || node == primary {
                assert_eq!(cluster.state(node, "log"), self.written, "{context}, node {node}");
            }
        }
        let mut replicas = cluster.replicas("log");
        replicas.sort_unstable();
        assert_eq!(replicas, NODES, "{context}");
    }
}

#[test]
fn in_every_style_a_snapshot_stands_for_the_log() {
    for style in stateful() {
        let mut cluster = cluster(style);
        let mut writer = Writer::new();
        for round in 0..4 {
            let context = format!("{style}, round {round}");
            for _ in 0..7 {
                writer.write(&mut cluster, &context);
            }
            lose_all(&mut cluster, style);
            writer.again(&mut cluster, &context);
            writer.write(&mut cluster, &context);
            writer.check(&mut cluster, style, &context);
        }
        cluster.run_for(ms(50));
        for node in NODES {
            let has = cluster.fake_disk(node).has_snapshot(Some(wire::GroupId::of("log")));
            assert!(has, "{style}, node {node}");
        }
    }
}

#[test]
fn a_group_on_disk_goes_through_its_styles_and_loses_nothing_with_all_lives() {
    for from in stateful() {
        for to in stateful().filter(|to| *to != from) {
            let mut cluster = cluster(from);
            let mut writer = Writer::new();
            for (round, style) in [to, from, to].into_iter().enumerate() {
                let context = format!("{from} and {to}, round {round}");
                for _ in 0..3 {
                    writer.write(&mut cluster, &context);
                }
                cluster.restyle(2, "log", style).expect("begun");
                cluster.restyled(2).expect("changed");
                for _ in 0..round {
                    writer.write(&mut cluster, &context);
                }
                // Each is configured as it was.
                lose_all(&mut cluster, from);
                writer.again(&mut cluster, &context);
                writer.write(&mut cluster, &context);
                writer.check(&mut cluster, style, &context);
            }
        }
    }
}

/// All replicas execute a request that was not answered before the loss, and its answer is the one
/// of all.
#[test]
fn what_a_voting_group_had_not_answered_is_voted_on_when_it_is_back() {
    let mut cluster = cluster(Style::Voting);
    let mut writer = Writer::new();
    writer.write(&mut cluster, "before");
    let connection = writer.connect(&mut cluster);
    let call = cluster.call(connection, "log", 2, "entry 2");
    while !cluster.is_answered(call) {
        cluster.run_for(ms(1));
        if (1..=3).all(|node| cluster.state(node, "log").len() == 2) {
            break;
        }
    }
    writer.written.push("entry 2".to_owned());
    lose_all(&mut cluster, Style::Voting);
    writer.again(&mut cluster, "after");
    writer.write(&mut cluster, "after");
    writer.check(&mut cluster, Style::Voting, "after");
}

#[test]
fn a_stateless_group_that_gets_a_state_begins_with_the_initial_one() {
    for to in stateful() {
        let mut cluster: Cluster = Cluster::new(3);
        let options = GroupOptions { style: Style::Stateless, ..GroupOptions::default() };
        cluster.host_on_with("log", &NODES, options);
        let (at_2, at_3) = (cluster.client(2), cluster.client(3));
        for connection in [at_2, at_3] {
            let call = cluster.call(connection, "log", 1, "alone");
            assert_eq!(cluster.reply(call), Outcome::Ok("1:alone".into()), "{to}");
        }
        cluster.restyle(1, "log", to).expect("begun");
        cluster.restyled(1).expect("changed");
        assert_eq!(cluster.replicas("log"), NODES, "{to}: nobody waits for a state");
        let primary = cluster.primary(1, "log").expect("it serves");
        let client = cluster.client(primary);
        let call = cluster.call(client, "log", 1, "together");
        assert_eq!(cluster.reply(call), Outcome::Ok("1:together".into()), "{to}");
        cluster.run_for(ms(50));
        let runs = |node: &u32| to != Style::ColdPassive || *node == primary;
        for node in NODES.into_iter().filter(runs) {
            assert_eq!(cluster.state(node, "log"), ["together"], "{to}, node {node}");
        }
        // One that was configured before, and one that comes only now.
        cluster.kill(3);
        cluster.restart(3);
        cluster.host_with("log", 3, options);
        cluster.run_until_synced("log", 3);
        let call = cluster.call(client, "log", 2, "still");
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)), "{to}");
    }
}

/// The simulator's seed 1285 of the world of disks: what waited for a place of which no disk has
/// anything waited for ever.
#[test]
fn an_answer_without_a_record_of_its_own_waits_for_the_last_record() {
    for style in stateful() {
        let mut cluster = cluster(style);
        cluster.host_on("beside", &NODES);
        let mut writer = Writer::new();
        writer.write(&mut cluster, "first");
        for node in NODES {
            // Messages for another group advance the order, and write to no disk.
            let other = cluster.client(node);
            let call = cluster.call(other, "beside", 1, "x");
            assert!(matches!(cluster.reply(call), Outcome::Ok(_)), "{style}");
            let client = cluster.client(node);
            let call = cluster.call(client, "log", 1, "y");
            assert!(matches!(cluster.reply(call), Outcome::Ok(_)), "{style}, call at {node}");
            let reader = cluster.client(cluster.primary(1, "log").expect("it serves"));
            let read = cluster.call_with(reader, "log", 1, "", Access::Read);
            assert!(matches!(cluster.reply(read), Outcome::Ok(_)), "{style}, read at {node}");
        }
    }
}
