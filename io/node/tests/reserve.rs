//! The data plane's reserved time follows its use, where the system permits reservations.

mod support;

use std::time::Instant;

use steadfast_node::realtime::Grant;
use steadfast_node::{
    BoxError, Call, Config, Context, Event, HostOptions, Node, ReserveNews, Service, ServiceOutcome,
};
use support::{Caller, TIMEOUT, synced, wait_for};
use wire::{ClientId, Duration};

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

#[test]
fn a_reserve_that_is_used_up_grows() {
    let mut config = Config::single();
    config.realtime.runtime = Duration::from_micros(200);
    config.realtime.runtime_most = Duration::from_micros(2_000);
    let node = Node::start(config).unwrap();
    let events = node.subscribe();
    node.host("busy", HostOptions::default().inline(), || Busy).unwrap();
    wait_for(&node, "a replica", |status| synced(status, "busy", 1));
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    if let Grant::Refused(why) = node.status().realtime.runtime_us {
        assert!(why.contains("CAP_SYS_NICE"), "{why}");
        return;
    }
    let end = Instant::now() + TIMEOUT;
    for number in 1.. {
        assert!(
            Instant::now() < end,
            "{number} calls have used up the reserve, and nothing is told"
        );
        caller.expect("busy", number, b"", "done");
        let grown = events.try_iter().find_map(|(_, event)| match event {
            Event::Reserve { news: ReserveNews::Overran { runtime, .. }, .. } => Some(runtime),
            _ => None,
        });
        if let Some(runtime) = grown {
            assert!(runtime > Duration::from_micros(200), "{runtime:?}");
            assert_eq!(node.status().realtime.runtime_us, Grant::InForce);
            return;
        }
    }
}
