//! The data plane's reserved time follows its use, where the system permits reservations.

mod support;

use std::collections::BTreeMap;
use std::time::Instant;

use qos::host::{Capacity, Host};
use qosd::{Limiters, Server};
use steadfast_node::realtime::Grant;
use steadfast_node::{
    BoxError, Call, Config, Context, Event, HostOptions, Node, ReserveNews, Service, ServiceOutcome,
};
use support::{Caller, TIMEOUT, synced, wait_for};
use wire::{ClientId, Duration, Share};

/// Works for longer than the node has reserved.
struct Busy;

impl Service for Busy {
    fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(5) {}
        ServiceOutcome::Ok("done".into())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}

/// A node that has 200 us of 4 ms reserved, and may learn 2 ms.
fn config() -> Config {
    let mut config = Config::single();
    config.realtime.runtime = Duration::from_micros(200);
    config.realtime.runtime_most = Duration::from_micros(2_000);
    config
}

/// The first news of the reserve of a node that uses more than it has reserved, and how the reserve
/// stands then. `None`: this host permits no reservations.
fn news_of(config: Config, wanted: impl Fn(&ReserveNews) -> bool) -> Option<(ReserveNews, Grant)> {
    let node = Node::start(config).unwrap();
    let events = node.subscribe();
    node.host("busy", HostOptions::default().inline(), || Busy).unwrap();
    wait_for(&node, "a replica", |status| synced(status, "busy", 1));
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    if let Grant::Refused(why) = node.status().realtime.runtime_us {
        assert!(why.contains("CAP_SYS_NICE"), "{why}");
        return None;
    }
    let end = Instant::now() + TIMEOUT;
    (1..).find_map(|number| {
        assert!(
            Instant::now() < end,
            "{number} calls have used up the reserve, and it is not told"
        );
        caller.expect("busy", number, b"", "done");
        let standing = node.status().realtime.runtime_us;
        assert!(!matches!(standing, Grant::Refused(_)), "at call {number}: {standing:?}");
        events.try_iter().find_map(|(_, event)| match event {
            Event::Reserve { news, .. } if wanted(&news) => {
                Some((news, node.status().realtime.runtime_us))
            }
            _ => None,
        })
    })
}

#[test]
fn a_reserve_that_is_used_up_grows() {
    let overran = |news: &ReserveNews| matches!(news, ReserveNews::Overran { .. });
    if let Some((ReserveNews::Overran { runtime, .. }, standing)) = news_of(config(), overran) {
        assert!(runtime > Duration::from_micros(200), "{runtime:?}");
        assert_eq!(standing, Grant::InForce);
    }
}

#[test]
fn what_a_daemon_refuses_leaves_what_was_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("qos.sock");
    let (limiters, percent) = (Limiters::default(), Share::percent);
    let capacity = Capacity {
        processors: 1,
        taken: percent(5),
        most: percent(6),
        memory: 0,
        devices: BTreeMap::new(),
        networks: BTreeMap::new(),
    };
    let host = Host::new(capacity, qosd::platform::probe(&limiters));
    let server = Server::open(&socket, host, limiters).unwrap();
    std::thread::spawn(move || server.serve());
    let mut config = config();
    config.realtime.daemon = Some(socket.clone());
    let refused = |news: &ReserveNews| matches!(news, ReserveNews::Refused { .. });
    if let Some((ReserveNews::Refused { why }, _)) = news_of(config, refused) {
        assert!(why.contains("reserve less"), "{why}");
    }
}
