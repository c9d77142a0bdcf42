//! Groups whose state is taken out, and groups that begin with it.

use steadfast_engine::{DiscardError, Nodes, RestoreError, SaveError, Saved};
use wire::client::Outcome;
use wire::ordered::{Durability, Form, GroupOptions, Style};
use wire::{GroupId, NodeId};

use crate::base::Base;
use crate::harness::{Cluster, Connection, ms};

fn of(style: Style) -> GroupOptions {
    GroupOptions { style, ..GroupOptions::default() }
}

fn on_disk() -> GroupOptions {
    GroupOptions { durability: Durability::Disk, ..GroupOptions::default() }
}

/// The styles whose replicas have a state.
fn styles() -> impl Iterator<Item = Style> {
    Style::ALL.into_iter().filter(|style| *style != Style::Stateless)
}

fn answered<O: Base>(
    cluster: &mut Cluster<O>,
    client: Connection,
    (number, body): (u64, &str),
    answer: &str,
) {
    let call = cluster.call(client, "log", number, body);
    assert_eq!(cluster.reply(call), Outcome::Ok(answer.to_owned().into()));
}

fn end<O: Base>(cluster: &mut Cluster<O>, hosts: &[u32]) {
    for host in hosts {
        cluster.unhost("log", *host);
        cluster.run_for(ms(20));
    }
    assert!(!cluster.has_group(1, "log"), "the group has ended");
}

/// Three calls of one client, and the state after two of them.
fn two_of_three<O: Base>(cluster: &mut Cluster<O>, style: GroupOptions) -> (Connection, Saved) {
    cluster.host_on_with("log", &[1, 2, 3], style);
    let client = cluster.client(1);
    answered(cluster, client, (1, "a"), "1:a");
    answered(cluster, client, (2, "b"), "2:b");
    let saved = cluster.save(2, "log").expect("node 2 has the state");
    answered(cluster, client, (3, "c"), "3:c");
    (client, saved)
}

/// The group goes on from the saved state: a retry of a call from before gets the kept reply, the
/// call after it was never made.
fn goes_on<O: Base>(cluster: &mut Cluster<O>, client: Connection, hosts: &[u32]) {
    let primary = cluster.primary(hosts[0], "log").expect("it has begun");
    let again = cluster.connect_as(client, primary);
    answered(cluster, again, (2, "b"), "2:b");
    answered(cluster, again, (4, "d"), "3:d");
    cluster.run_for(ms(20));
    assert_eq!(cluster.state(primary, "log"), ["a", "b", "d"]);
}

pub fn a_saved_group_that_ended_goes_on_from_there<O: Base>(mut cluster: Cluster<O>) {
    let (client, saved) = two_of_three(&mut cluster, GroupOptions::default());
    assert_eq!((saved.form, &*saved.name), (Form::State, "log"));
    assert_eq!(saved.form.look(&saved.state).expect("it is whole").executed, 2);
    end(&mut cluster, &[3, 2, 1]);
    // By a node that hosts nothing.
    cluster.restore(4, &saved, false).expect("the group has ended");
    assert_eq!(cluster.depositor(2, "log"), Some(4));
    cluster.host_on("log", &[1]);
    assert_eq!(cluster.depositor(2, "log"), None);
    cluster.host_with("log", 2, GroupOptions::default());
    cluster.host_with("log", 3, GroupOptions::default());
    cluster.run_until_synced("log", 3);
    goes_on(&mut cluster, client, &[1, 2, 3]);
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a", "b", "d"]);
    }
    assert_eq!(cluster.executions(3), 3, "two before it left, and one since");
}

pub fn a_state_is_restored_in_another_cluster<O: Base>(mut cluster: Cluster<O>) {
    for style in styles() {
        let mut first = Cluster::in_process(5);
        let (client, saved) = two_of_three(&mut first, of(style));
        assert_eq!((saved.form, saved.options), (Form::of(style), of(style)));
        assert_eq!(saved.form.look(&saved.state).expect("it is whole").executed, 2, "{style}");
        // The replicas are there already, and were not called.
        cluster.host_on_with("log", &[1, 2, 3], of(style));
        cluster.restore(2, &saved, false).expect("the group was not called");
        cluster.run_until_synced("log", 3);
        goes_on(&mut cluster, client, &[1, 2, 3]);
        let running = if style == Style::ColdPassive { vec![] } else { vec![1, 2, 3] };
        for node in running {
            assert_eq!(cluster.state(node, "log"), ["a", "b", "d"], "{style} at {node}");
        }
        end(&mut cluster, &[3, 2, 1]);
    }
}

pub fn a_group_that_was_called_is_overwritten_on_demand_only<O: Base>(mut cluster: Cluster<O>) {
    let (client, saved) = two_of_three(&mut cluster, GroupOptions::default());
    assert_eq!(cluster.restore(2, &saved, false), Err(RestoreError::Lives));
    answered(&mut cluster, client, (3, "c"), "3:c");
    cluster.restore(2, &saved, true).expect("it was said to");
    cluster.run_until_synced("log", 3);
    goes_on(&mut cluster, client, &[1, 2, 3]);
    let system = Saved { name: "steadfast.manager".into(), ..saved };
    assert_eq!(cluster.restore(2, &system, true), Err(RestoreError::System));
}

pub fn nobody_begins_beside_a_deposit<O: Base>(mut cluster: Cluster<O>) {
    let (client, saved) = two_of_three(&mut cluster, GroupOptions::default());
    end(&mut cluster, &[3, 2, 1]);
    cluster.restore(4, &saved, false).expect("the group has ended");
    cluster.kill(4);
    cluster.run_for(ms(1_000));
    for node in [1, 2] {
        cluster.host_with("log", node, GroupOptions::default());
    }
    cluster.run_for(ms(1_000));
    assert_eq!(cluster.primary(1, "log"), None, "the state is lost, and nobody begins without");
    let call = cluster.call(client, "log", 4, "d");
    assert_eq!(cluster.reply(call), Outcome::NoReplica);
    // Neither does the node in its next life.
    cluster.restart(4);
    cluster.run_for(ms(1_000));
    assert_eq!((cluster.primary(1, "log"), cluster.depositor(1, "log")), (None, Some(4)));

    // Somebody else has the file, too.
    cluster.restore(5, &saved, false).expect("nothing has begun");
    cluster.run_until_synced("log", 2);
    goes_on(&mut cluster, client, &[1, 2]);
}

pub fn a_deposit_is_given_up_on_demand<O: Base>(mut cluster: Cluster<O>) {
    let (_, saved) = two_of_three(&mut cluster, GroupOptions::default());
    let log = GroupId::of("log");
    let nothing = cluster.ask(1, |stack, now| stack.discard(now, log));
    assert_eq!(nothing, Err(DiscardError::Nothing));
    end(&mut cluster, &[3, 2, 1]);
    for hosted in [false, true] {
        cluster.restore(4, &saved, false).expect("the group has ended");
        cluster.kill(4);
        if hosted {
            cluster.host_with("log", 5, GroupOptions::default());
        }
        cluster.run_for(ms(1_000));
        cluster.ask(1, |stack, now| stack.discard(now, log)).expect("it waits for a state");
        cluster.run_for(ms(20));
        assert_eq!(cluster.has_group(1, "log"), hosted);
        cluster.restart(4);
        cluster.run_for(ms(1_000));
    }
    let client = cluster.client(5);
    answered(&mut cluster, client, (1, "z"), "1:z");
}

/// Other nodes die or are cut off while it waits.
pub fn a_deposit_outlives_changes_of_the_component<O: Base>(mut cluster: Cluster<O>) {
    let (client, saved) = two_of_three(&mut cluster, GroupOptions::default());
    end(&mut cluster, &[3, 2, 1]);
    cluster.restore(4, &saved, false).expect("the group has ended");
    cluster.kill(5);
    cluster.run_for(ms(1_000));
    // The node with the state is cut off; the waiting nodes are not.
    cluster.partition(&[4]);
    cluster.host_with("log", 1, GroupOptions::default());
    cluster.host_with("log", 2, GroupOptions::default());
    cluster.run_for(ms(1_000));
    assert_eq!(cluster.primary(1, "log"), None);
    cluster.heal();
    cluster.run_until_synced("log", 2);
    goes_on(&mut cluster, client, &[1, 2]);
}

pub fn a_save_is_refused_with_what_to_do<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2]);
    let others = Nodes(vec![NodeId(1), NodeId(2)]);
    let refused = cluster.save(4, "log").expect_err("it has no replica");
    assert_eq!(refused.to_string().split(": ").last(), Some("ask a node that has, n1, n2"));
    assert_eq!(refused, SaveError::NotHere(others));
    assert_eq!(cluster.save(1, "none"), Err(SaveError::NoSuchGroup));
    cluster.host_on_with("flock", &[1], of(Style::Stateless));
    assert_eq!(cluster.save(1, "flock"), Err(SaveError::Stateless));
    cluster.begin_save(2, "log").expect("nothing is under way");
    assert_eq!(cluster.begin_save(2, "log"), Err(SaveError::UnderWay));
    cluster.saved(2).expect("it has the state");
    cluster.partition(&[1, 2]);
    cluster.run_for(ms(1_000));
    assert_eq!(cluster.save(2, "log"), Err(SaveError::NoQuorum));
}

/// A save is told when its place is held: by then the cluster cannot lose what is in it.
pub fn a_save_outlives_a_change_of_the_component<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    answered(&mut cluster, client, (1, "a"), "1:a");
    cluster.begin_save(2, "log").expect("nothing is under way");
    cluster.kill(1);
    let saved = cluster.saved(2).expect("it is taken anew");
    assert_eq!(saved.form.look(&saved.state).expect("it is whole").executed, 1);
}

#[test]
fn what_is_saved_is_what_was_ordered_before_its_place() {
    for style in styles() {
        let mut cluster = Cluster::new(5);
        cluster.host_on_with("log", &[1, 2, 3], of(style));
        let clients = [1; 8].map(|node| cluster.client(node));
        for number in 1..=10 {
            let calls = clients.map(|client| cluster.call(client, "log", number, "a"));
            let (node, before) = (1 + number as u32 % 3, (number - 1) * 8);
            let saved = cluster.save(node, "log").expect("it has the state");
            let content = saved.form.look(&saved.state).expect("it is whole");
            assert!((before..=before + 8).contains(&content.executed), "{style}: {content:?}");
            assert_eq!(saved.place.epoch, cluster.node(node).status().ring.epoch);
            if saved.form == Form::State {
                let lines = content.service.expect("it has one");
                let lines = std::str::from_utf8(&lines).unwrap().lines().count() as u64;
                assert_eq!(lines, content.executed, "{style}: the head tells of the state");
            }
            calls.iter().for_each(|call| assert!(matches!(cluster.reply(*call), Outcome::Ok(_))));
        }
    }
}

#[test]
fn a_log_is_no_state_and_a_state_is_a_checkpoint() {
    let mut cluster = Cluster::new(5);
    let (client, log) = two_of_three(&mut cluster, of(Style::ColdPassive));
    end(&mut cluster, &[3, 2, 1]);
    cluster.host_on("log", &[1]);
    let refused = cluster.restore(2, &log, false).expect_err("it has a log");
    assert_eq!(refused, RestoreError::Apart { form: Form::Log, style: Style::SemiActive });
    end(&mut cluster, &[1]);

    let (_, state) = two_of_three(&mut Cluster::new(5), GroupOptions::default());
    cluster.host_on_with("log", &[1, 2], of(Style::ColdPassive));
    cluster.restore(2, &state, false).expect("a checkpoint");
    cluster.run_until_synced("log", 2);
    goes_on(&mut cluster, client, &[1, 2]);
}

#[test]
fn whoever_comes_first_says_how_the_group_is_kept() {
    let mut cluster = Cluster::new_on_disk(3);
    let (client, saved) = two_of_three(&mut Cluster::new(3), GroupOptions::default());
    cluster.restore(3, &saved, false).expect("there is no such group");
    cluster.host_on_with("log", &[1, 2], on_disk());
    goes_on(&mut cluster, client, &[1, 2]);
}

#[test]
fn a_restored_group_on_disk_is_there_after_the_loss_of_all() {
    for early in [true, false] {
        let mut cluster = Cluster::new_on_disk(3);
        let (client, saved) = two_of_three(&mut Cluster::new_on_disk(3), on_disk());
        if !early {
            cluster.host_on_with("log", &[1, 2, 3], on_disk());
        }
        cluster.restore(3, &saved, false).expect("it was not called");
        if !early {
            cluster.run_until_synced("log", 3);
        }
        for node in [1, 2, 3] {
            cluster.kill(node);
        }
        for node in [1, 2, 3] {
            cluster.restart(node);
            cluster.host_with("log", node, on_disk());
        }
        if early {
            cluster.run_for(ms(2_000));
            assert_eq!(cluster.primary(1, "log"), None, "nobody begins without the state");
            cluster.restore(1, &saved, false).expect("nothing has begun");
        }
        cluster.run_until_synced("log", 3);
        goes_on(&mut cluster, client, &[1, 2, 3]);
    }
}

/// A replica that was away when the group began anew has nothing that counts.
#[test]
fn who_comes_back_with_what_was_replaced_gets_the_new_state() {
    let mut cluster = Cluster::new_on_disk(3);
    let (client, saved) = two_of_three(&mut cluster, on_disk());
    cluster.kill(3);
    cluster.run_for(ms(1_000));
    cluster.restore(1, &saved, true).expect("it was said to");
    cluster.run_until_synced("log", 2);
    cluster.restart(3);
    cluster.host_with("log", 3, on_disk());
    cluster.run_until_synced("log", 3);
    goes_on(&mut cluster, client, &[1, 2, 3]);
    assert_eq!(cluster.state(3, "log"), ["a", "b", "d"]);
}

/// A group that has ended does not begin with a disk's old state, and that state is no obstacle.
#[test]
fn who_comes_back_from_its_disk_while_a_deposit_waits_takes_that() {
    let mut cluster = Cluster::new_on_disk(3);
    let (client, saved) = two_of_three(&mut cluster, on_disk());
    cluster.kill(3);
    cluster.run_for(ms(1_000));
    end(&mut cluster, &[2, 1]);
    cluster.restore(1, &saved, false).expect("the group has ended");
    cluster.restart(3);
    cluster.host_with("log", 3, on_disk());
    cluster.run_until_synced("log", 1);
    assert_eq!(cluster.state(3, "log"), ["a", "b"]);
    cluster.host_with("log", 2, on_disk());
    cluster.run_until_synced("log", 2);
    goes_on(&mut cluster, client, &[3, 2]);
}
