//! Where helpers have a priority, no thread of a node is an ordinary one, whoever has started it.

mod support;

use steadfast_node::realtime::Grant;
use steadfast_node::threads::{ordinary, set_helper_priority};
use steadfast_node::{Config, HostOptions, Node, founder};
use support::{APPEND, Caller, Journal, synced, wait_for};
use wire::{ClientId, Duration};

/// A test of its own program: the priority is the process's.
#[test]
fn no_thread_of_a_node_with_prioritized_helpers_is_ordinary() {
    let folder = tempfile::tempdir().unwrap();
    founder::mark(&folder.path().join("data")).unwrap();
    // Those of the test itself.
    let before = ordinary(None).unwrap();
    let node = std::thread::spawn({
        let folder = folder.path().to_owned();
        move || {
            // As the daemon does before its first thread.
            let grant = set_helper_priority(2);
            let mut config = Config { admin: Some(folder.join("node.sock")), ..Config::single() };
            config.data_dir = Some(folder.join("data"));
            config.storage = Some(folder.join("store"));
            config.manager.on = true;
            config.registry.on = true;
            config.realtime.helper_priority = 2;
            config.realtime.executor_priority = 2;
            config.realtime.priority = 3;
            config.realtime.runtime = Duration::from_micros(200);
            (grant, Node::start(config).unwrap())
        }
    });
    let (grant, node) = node.join().unwrap();
    node.host("journal", HostOptions::default(), Journal::default).unwrap();
    wait_for(&node, "a replica", |status| synced(status, "journal", 1));
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    caller.call("journal", 1, APPEND, b"one");
    let names = ordinary(None).unwrap();
    let status = node.status();
    if let Grant::Refused(why) = grant {
        assert!(why.contains("CAP_SYS_NICE"), "{why}");
        eprintln!("without CAP_SYS_NICE all are ordinary, and the node says so: {why}");
        assert!(matches!(status.realtime.helper_priority, Grant::Refused(_)));
        return;
    }
    assert_eq!(status.realtime.helper_priority, Grant::InForce);
    let more: Vec<_> = names.iter().filter(|name| !before.contains(name)).collect();
    assert!(more.is_empty(), "ordinary threads: {more:?}");
    node.stop().unwrap();
}
