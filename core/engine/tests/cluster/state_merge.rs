//! From one component to the next when members die on the way.

use wire::Duration;
use wire::client::Outcome;

use crate::harness::{Cluster, DELAY, ms};

const STEP: Duration = Duration::from_micros(10);

/// Replica 3 alone has taken a request, which nobody was told, and dies while a component is
/// installed in which 2, which lacks it, would be given the state of 3. Unless all hold the
/// installation, 2 keeps its own and goes on with that as soon as the node of 3 is back (simulator
/// seed 79461).
#[test]
fn who_would_have_been_given_another_state_keeps_its_own_if_the_giver_dies() {
    let (mut own, mut given, mut asleep) = (0, 0, 0);
    for moment in 0..60 {
        let mut cluster = Cluster::new(3);
        cluster.host_on("log", &[3, 2]);
        let client = cluster.client(3);
        let call = cluster.call(client, "log", 1, "a");
        assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
        cluster.run_for(ms(5));
        cluster.partition(&[3]);
        cluster.call(client, "log", 2, "b");
        cluster.kill(1);
        cluster.run_for(ms(10));
        cluster.restart(1);
        cluster.run_for(ms(600));
        assert_eq!((cluster.state(2, "log").len(), cluster.state(3, "log").len()), (1, 2));
        cluster.heal();
        let apart = |cluster: &Cluster| cluster.node(3).status().ring.members.len() < 3;
        while apart(&cluster) {
            cluster.run_for(STEP);
        }
        cluster.run_for(STEP * moment);
        cluster.kill(3);
        cluster.run_for(ms(600));
        cluster.restart(3);
        cluster.host_on_later("log", 3);
        cluster.run_for(ms(1_000));
        let client = cluster.client(2);
        let next = cluster.call(client, "log", 1, "c");
        match cluster.reply(next) {
            Outcome::Ok(reply) if reply == "2:c" => own += 1,
            Outcome::Ok(reply) if reply == "3:c" => given += 1,
            Outcome::NoReplica => asleep += 1,
            other => panic!("{moment}: {other:?}"),
        }
    }
    assert!(own > 10 && given > 10, "{own} and {given} of the moments");
    // From the moment at which all hold the installation, and 3 may have answered alone, until 2
    // has its state.
    assert!(STEP * asleep <= DELAY * 3, "{asleep} of the moments");
}
