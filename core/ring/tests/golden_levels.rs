//! Levels, overlapping turns and the handover of a parked token, as text. Rewrite with
//! `UPDATE_EXPECT=1 cargo test -p steadfast-ring`.
#![allow(missing_docs)]

mod cluster;

use cluster::{Cluster, Tune, micros, millis};
use expect_test::expect;
use steadfast_ring::Level;
use wire::ring::Message;

/// Safe delivery when nothing goes wrong: the sender knows after one round trip that all have its
/// message, delivers it, and tells the others, who need half a round trip more.
#[test]
fn a_safe_message_is_delivered_when_all_are_known_to_have_it() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.multicast_safe(0);
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 safe hop=4 stable=1 ack!
        0    us  n0 -> n2 data #2 safe hop=4 stable=1 ack!
        0    us  n0 -> n1 data #3 hop=4 stable=1 ack!
        0    us  n0 -> n2 data #3 hop=4 stable=1 ack!
        50   us  n1 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n1 held r3943027@n0 majority=2 all=1
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 held r3943027@n0 majority=2 all=1
        50   us  n1 -> n0 ack hop=4 aru=3 missing=[]
        50   us  n1 held r3943027@n0 majority=3 all=1
        50   us  n2 -> n0 ack hop=4 aru=3 missing=[]
        50   us  n2 held r3943027@n0 majority=3 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 delivers safe r3943027@n0/2 n0.i1000#1
        100  us  n0 delivers r3943027@n0/3 n0.i1000#2
        100  us  n0 held r3943027@n0 majority=2 all=2
        100  us  n0 -> n1 stable #2 hop=4
        100  us  n0 -> n2 stable #2 hop=4
        100  us  n0 held r3943027@n0 majority=3 all=2
        100  us  n0 held r3943027@n0 majority=3 all=3
        150  us  n1 delivers safe r3943027@n0/2 n0.i1000#1
        150  us  n1 delivers r3943027@n0/3 n0.i1000#2
        150  us  n1 held r3943027@n0 majority=3 all=2
        150  us  n2 delivers safe r3943027@n0/2 n0.i1000#1
        150  us  n2 delivers r3943027@n0/3 n0.i1000#2
        150  us  n2 held r3943027@n0 majority=3 all=2
    "#]]);
}

/// The same with a lost datagram: who misses it says so with the acknowledgement of the next, and
/// nobody delivers anything before it is there.
#[test]
fn a_safe_message_waits_for_the_last_one_who_misses_it() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.drop_next = Some(|message| matches!(message, Message::Data(_)));
    cluster.multicast_safe(0);
    cluster.multicast_safe(0);
    cluster.run(millis(1));
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 safe hop=4 stable=1 ack!  LOST
        0    us  n0 -> n2 data #2 safe hop=4 stable=1 ack!
        0    us  n0 -> n1 data #3 safe hop=4 stable=1 ack!
        0    us  n0 -> n2 data #3 safe hop=4 stable=1 ack!
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 held r3943027@n0 majority=2 all=1
        50   us  n1 -> n0 ack hop=4 aru=1 missing=[2]
        50   us  n1 held r3943027@n0 majority=1 all=1
        50   us  n2 -> n0 ack hop=4 aru=3 missing=[]
        50   us  n2 held r3943027@n0 majority=3 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 -> n1 data #2 safe hop=4 stable=1 ack!
        100  us  n0 Retransmitted(1)
        100  us  n0 held r3943027@n0 majority=3 all=1
        150  us  n1 -> n0 ack hop=4 aru=3 missing=[]
        150  us  n1 held r3943027@n0 majority=3 all=1
        200  us  n0 delivers safe r3943027@n0/2 n0.i1000#1
        200  us  n0 delivers safe r3943027@n0/3 n0.i1000#2
        200  us  n0 held r3943027@n0 majority=3 all=3
        200  us  n0 -> n1 stable #3 hop=4
        200  us  n0 -> n2 stable #3 hop=4
        250  us  n1 delivers safe r3943027@n0/2 n0.i1000#1
        250  us  n1 delivers safe r3943027@n0/3 n0.i1000#2
        250  us  n1 held r3943027@n0 majority=3 all=3
        250  us  n2 delivers safe r3943027@n0/2 n0.i1000#1
        250  us  n2 delivers safe r3943027@n0/3 n0.i1000#2
        250  us  n2 held r3943027@n0 majority=3 all=3
    "#]]);
}

/// The announcement to all is lost on the way to one: it asks.
#[test]
fn who_hears_nothing_of_stability_asks() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.drop_next = Some(|message| matches!(message, Message::Stable(_)));
    cluster.multicast_safe(0);
    cluster.run(millis(3));
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 safe hop=4 stable=1 ack!
        0    us  n0 -> n2 data #2 safe hop=4 stable=1 ack!
        50   us  n1 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n1 held r3943027@n0 majority=2 all=1
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 held r3943027@n0 majority=2 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 delivers safe r3943027@n0/2 n0.i1000#1
        100  us  n0 held r3943027@n0 majority=2 all=2
        100  us  n0 -> n1 stable #2 hop=4  LOST
        100  us  n0 -> n2 stable #2 hop=4
        150  us  n2 delivers safe r3943027@n0/2 n0.i1000#1
        150  us  n2 held r3943027@n0 majority=2 all=2
        2050 us  n1 -> n0 stable #1 hop=4
        2100 us  n0 -> n1 stable #2 hop=4
        2150 us  n1 delivers safe r3943027@n0/2 n0.i1000#1
        2150 us  n1 held r3943027@n0 majority=2 all=2
    "#]]);
}

/// The holder dies when it has delivered a safe message, and nobody was told that it could. Its
/// knowledge died with it. The others deliver the message in the transitional configuration, all of
/// whose members have it.
#[test]
fn a_safe_message_that_only_its_dead_sender_delivered() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.filter = |_, _, message| matches!(message, Message::Stable(_));
    cluster.multicast_safe(0);
    cluster.run(cluster.delay() * 2);
    cluster.crash(0);
    cluster.multicast_at(Level::Held, 1, 0);
    cluster.run_until(5, |cluster| cluster.ring(1).members().len() == 2 && cluster.is_quiet());
    cluster::check::all(&cluster);
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 safe hop=4 stable=1 ack!
        0    us  n0 -> n2 data #2 safe hop=4 stable=1 ack!
        50   us  n1 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n1 held r3943027@n0 majority=2 all=1
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 held r3943027@n0 majority=2 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 delivers safe r3943027@n0/2 n0.i1000#1
        100  us  n0 held r3943027@n0 majority=2 all=2
        100  us  n0 -> n1 stable #2 hop=4  LOST
        100  us  n0 -> n2 stable #2 hop=4  LOST
        100  us  n0 crashes
        100  us  n1 -> n0 want
        100  us  n1 -> n2 want
        200  us  n1 Unreachable(n0.i1000)
        200  us  n1 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n0.i1000] }
        200  us  n1 -> n0 join [n0,n1,n2] failed [n0]
        200  us  n1 -> n2 join [n0,n1,n2] failed [n0]
        250  us  n2 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n0.i1000] }
        250  us  n2 -> n1 join [n0,n1,n2] failed [n0]
        300  us  n1 -> n2 commit r3943028@n1 call [n1,n2]
        350  us  n2 -> n1 commit r3943028@n1 entry [n2 r3943027@n0 1/2..2]
        400  us  n1 -> n2 commit r3943028@n1 entries [n1 r3943027@n0 1/2..2; n2 r3943027@n0 1/2..2]
        400  us  n1 Transitional r3943027@n0 [n1, n2]
        400  us  n1 delivers safe r3943027@n0/2 n0.i1000#1
        400  us  n1 Regular r3943028@n1 [n1, n2]
        400  us  n1 -> n2 token hop=2 #1 arus=[1, 0] wants=10 home=0 missing=[] following=1
        400  us  n1 -> n2 data #1 hop=1 stable=0 ack!
        400  us  n1 delivers r3943028@n1/1 n1.i2000#0
        450  us  n2 Transitional r3943027@n0 [n1, n2]
        450  us  n2 delivers safe r3943027@n0/2 n0.i1000#1
        450  us  n2 Regular r3943028@n1 [n1, n2]
        450  us  n2 held r3943028@n1 majority=0 all=0
        450  us  n2 -> n1 token hop=3 #1 arus=[1, 0] wants=0 home=0 missing=[]
        450  us  n2 -> n1 ack hop=2 aru=1 missing=[]
        450  us  n2 delivers r3943028@n1/1 n1.i2000#0
        450  us  n2 held r3943028@n1 majority=1 all=1
    "#]]);
}

/// The same, but one of the others was told: its entry in the commit tells the rest, and both
/// deliver the message in the regular configuration.
#[test]
fn a_safe_message_that_one_survivor_knows_to_be_stable() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.filter = |_, to, message| to == 2 && matches!(message, Message::Stable(_));
    cluster.multicast_safe(0);
    cluster.run(cluster.delay() * 3);
    cluster.crash(0);
    cluster.multicast_at(Level::Held, 1, 0);
    cluster.run_until(5, |cluster| cluster.ring(1).members().len() == 2 && cluster.is_quiet());
    cluster::check::all(&cluster);
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 safe hop=4 stable=1 ack!
        0    us  n0 -> n2 data #2 safe hop=4 stable=1 ack!
        50   us  n1 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n1 held r3943027@n0 majority=2 all=1
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 held r3943027@n0 majority=2 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 delivers safe r3943027@n0/2 n0.i1000#1
        100  us  n0 held r3943027@n0 majority=2 all=2
        100  us  n0 -> n1 stable #2 hop=4
        100  us  n0 -> n2 stable #2 hop=4  LOST
        150  us  n1 delivers safe r3943027@n0/2 n0.i1000#1
        150  us  n1 held r3943027@n0 majority=2 all=2
        150  us  n0 crashes
        150  us  n1 -> n0 want
        150  us  n1 -> n2 want
        250  us  n1 Unreachable(n0.i1000)
        250  us  n1 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n0.i1000] }
        250  us  n1 -> n0 join [n0,n1,n2] failed [n0]
        250  us  n1 -> n2 join [n0,n1,n2] failed [n0]
        300  us  n2 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n0.i1000] }
        300  us  n2 -> n1 join [n0,n1,n2] failed [n0]
        350  us  n1 -> n2 commit r3943028@n1 call [n1,n2]
        400  us  n2 -> n1 commit r3943028@n1 entry [n2 r3943027@n0 1/2..2]
        450  us  n1 -> n2 commit r3943028@n1 entries [n1 r3943027@n0 2/2..2; n2 r3943027@n0 1/2..2]
        450  us  n1 Transitional r3943027@n0 [n1, n2]
        450  us  n1 Regular r3943028@n1 [n1, n2]
        450  us  n1 -> n2 token hop=2 #1 arus=[1, 0] wants=10 home=0 missing=[] following=1
        450  us  n1 -> n2 data #1 hop=1 stable=0 ack!
        450  us  n1 delivers r3943028@n1/1 n1.i2000#0
        500  us  n2 delivers safe r3943027@n0/2 n0.i1000#1
        500  us  n2 Transitional r3943027@n0 [n1, n2]
        500  us  n2 Regular r3943028@n1 [n1, n2]
        500  us  n2 held r3943028@n1 majority=0 all=0
        500  us  n2 -> n1 token hop=3 #1 arus=[1, 0] wants=0 home=0 missing=[]
        500  us  n2 -> n1 ack hop=2 aru=1 missing=[]
        500  us  n2 delivers r3943028@n1/1 n1.i2000#0
        500  us  n2 held r3943028@n1 majority=1 all=1
    "#]]);
}

/// A partition with a safe message under way, that all have but node 3. Neither half can know that
/// the other has it: each delivers it, and the agreed one behind it, to its own members, in its own
/// transitional configuration, when node 2 has sent both again to node 3.
#[test]
fn a_partition_with_a_safe_message_pending() {
    let mut cluster = Cluster::traced(4, 0, Tune::default());
    cluster.world.refusals = false;
    cluster.filter = |_, to, message| to == 3 && matches!(message, Message::Data(_));
    cluster.multicast_safe(0);
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(cluster.delay());
    cluster.split(&[0, 0, 1, 1]);
    cluster.filter = |_, _, _| false;
    cluster.run_until(100, |c| (0..4).all(|node| c.ring(node).members().len() == 2));
    cluster::check::all(&cluster);
    let told = ["delivers", "Regular", "Transitional"];
    cluster.trace().check_only(
        &told,
        expect![[r#"
        35200 us  n0 Transitional r3944027@n0 [n0, n1]
        35200 us  n0 delivers safe r3944027@n0/2 n0.i1000#1
        35200 us  n0 delivers r3944027@n0/3 n0.i1000#2
        35200 us  n0 Regular r3944028@n0 [n0, n1]
        35250 us  n1 Transitional r3944027@n0 [n0, n1]
        35250 us  n1 delivers safe r3944027@n0/2 n0.i1000#1
        35250 us  n1 delivers r3944027@n0/3 n0.i1000#2
        35250 us  n1 Regular r3944028@n0 [n0, n1]
        38300 us  n2 Transitional r3944027@n0 [n2, n3]
        38300 us  n2 delivers safe r3944027@n0/2 n0.i1000#1
        38300 us  n2 delivers r3944027@n0/3 n0.i1000#2
        38300 us  n2 Regular r3944028@n2 [n2, n3]
        38350 us  n3 Transitional r3944027@n0 [n2, n3]
        38350 us  n3 delivers safe r3944027@n0/2 n0.i1000#1
        38350 us  n3 delivers r3944027@n0/3 n0.i1000#2
        38350 us  n3 Regular r3944028@n2 [n2, n3]
    "#]],
    );
}

/// The accelerated ring: three members have something to send, a datagram takes 10 us to leave.
/// Each passes the token on ahead of its last two datagrams, and the next one's turn begins while
/// they travel. Nobody asks for them: the token says that they follow.
#[test]
fn the_token_overtakes_the_last_datagrams_of_a_turn() {
    let mut cluster = Cluster::traced(3, 0, Tune { turn: 3, accelerated: 2, ..Tune::default() });
    cluster.weather().pace = micros(10);
    for node in [1, 2, 0] {
        for _ in 0..3 {
            cluster.multicast(node, 1_000);
        }
    }
    cluster.run(millis(1));
    cluster.trace().check(expect![[r#"
        0    us  n1 -> n0 want
        0    us  n1 -> n2 want
        0    us  n2 -> n0 want
        0    us  n2 -> n1 want
        0    us  n0 -> n1 data #2 hop=4 stable=1
        0    us  n0 -> n2 data #2 hop=4 stable=1
        0    us  n0 delivers r3943027@n0/2 n0.i1000#1
        0    us  n0 -> n1 data #3 hop=4 stable=1
        0    us  n0 -> n2 data #3 hop=4 stable=1
        0    us  n0 delivers r3943027@n0/3 n0.i1000#2
        0    us  n0 -> n1 data #4 hop=4 stable=1
        0    us  n0 -> n2 data #4 hop=4 stable=1
        0    us  n0 delivers r3943027@n0/4 n0.i1000#3
        60   us  n0 -> n1 token hop=5 #4 arus=[4, 1, 1] wants=10 home=0 missing=[]
        60   us  n1 delivers r3943027@n0/2 n0.i1000#1
        60   us  n1 held r3943027@n0 majority=2 all=1
        70   us  n2 delivers r3943027@n0/2 n0.i1000#1
        70   us  n2 held r3943027@n0 majority=2 all=1
        80   us  n1 delivers r3943027@n0/3 n0.i1000#2
        80   us  n1 held r3943027@n0 majority=3 all=1
        90   us  n2 delivers r3943027@n0/3 n0.i1000#2
        90   us  n2 held r3943027@n0 majority=3 all=1
        100  us  n1 delivers r3943027@n0/4 n0.i1000#3
        100  us  n1 held r3943027@n0 majority=4 all=1
        110  us  n2 delivers r3943027@n0/4 n0.i1000#3
        110  us  n2 held r3943027@n0 majority=4 all=1
        120  us  n1 -> n0 data #5 hop=5 stable=1
        120  us  n1 -> n2 data #5 hop=5 stable=1
        120  us  n1 -> n2 token hop=6 #7 arus=[4, 7, 1] wants=100 home=1 missing=[] following=2
        120  us  n1 -> n0 data #6 hop=5 stable=1
        120  us  n1 -> n2 data #6 hop=5 stable=1
        120  us  n1 -> n0 data #7 hop=5 stable=1 ack!
        120  us  n1 -> n2 data #7 hop=5 stable=1 ack!
        120  us  n1 delivers r3943027@n0/5 n1.i2000#0
        120  us  n1 delivers r3943027@n0/6 n1.i2000#1
        120  us  n1 delivers r3943027@n0/7 n1.i2000#2
        180  us  n0 delivers r3943027@n0/5 n1.i2000#0
        180  us  n0 held r3943027@n0 majority=5 all=1
        190  us  n2 delivers r3943027@n0/5 n1.i2000#0
        190  us  n2 held r3943027@n0 majority=5 all=4
        200  us  n2 held r3943027@n0 majority=5 all=4
        200  us  n2 -> n0 data #8 hop=6 stable=4 incomplete
        200  us  n2 -> n1 data #8 hop=6 stable=4 incomplete
        200  us  n2 -> n0 data #9 hop=6 stable=4 incomplete
        200  us  n2 -> n1 data #9 hop=6 stable=4 incomplete
        200  us  n2 -> n0 data #10 hop=6 stable=4 incomplete
        200  us  n2 -> n1 data #10 hop=6 stable=4 incomplete
        210  us  n0 delivers r3943027@n0/6 n1.i2000#1
        210  us  n0 held r3943027@n0 majority=6 all=1
        220  us  n2 delivers r3943027@n0/6 n1.i2000#1
        220  us  n2 held r3943027@n0 majority=6 all=4
        230  us  n0 -> n1 ack hop=5 aru=7 missing=[]
        230  us  n0 delivers r3943027@n0/7 n1.i2000#2
        230  us  n0 held r3943027@n0 majority=7 all=1
        240  us  n2 -> n1 ack hop=6 aru=10 missing=[]
        240  us  n2 delivers r3943027@n0/7 n1.i2000#2
        240  us  n2 delivers r3943027@n0/8 n2.i3000#0
        240  us  n2 delivers r3943027@n0/9 n2.i3000#1
        240  us  n2 delivers r3943027@n0/10 n2.i3000#2
        240  us  n2 held r3943027@n0 majority=7 all=4
        260  us  n0 delivers r3943027@n0/8 n2.i3000#0
        260  us  n0 held r3943027@n0 majority=7 all=4
        270  us  n1 delivers r3943027@n0/8 n2.i3000#0
        270  us  n1 held r3943027@n0 majority=4 all=4
        280  us  n0 delivers r3943027@n0/9 n2.i3000#1
        290  us  n1 delivers r3943027@n0/9 n2.i3000#1
        290  us  n1 held r3943027@n0 majority=7 all=4
        300  us  n0 delivers r3943027@n0/10 n2.i3000#2
        310  us  n1 delivers r3943027@n0/10 n2.i3000#2
        320  us  n1 held r3943027@n0 majority=10 all=7
    "#]]);
}

/// Parking with two members that take turns: the token goes where it is asked for, and stays.
#[test]
fn a_parked_token_is_handed_over() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.multicast_at(Level::Held, 1, 0);
    cluster.run(millis(1));
    cluster.multicast_at(Level::Held, 1, 0);
    cluster.run(millis(1));
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    cluster.trace().check(expect![[r#"
        0    us  n1 -> n0 want
        0    us  n1 -> n2 want
        50   us  n0 -> n1 token hop=5 #1 arus=[1, 1, 1] wants=10 home=0 missing=[]
        100  us  n1 held r3943027@n0 majority=1 all=1
        100  us  n1 -> n0 data #2 hop=5 stable=1 ack!
        100  us  n1 -> n2 data #2 hop=5 stable=1 ack!
        100  us  n1 delivers r3943027@n0/2 n1.i2000#0
        150  us  n0 -> n1 ack hop=5 aru=2 missing=[]
        150  us  n0 delivers r3943027@n0/2 n1.i2000#0
        150  us  n0 held r3943027@n0 majority=2 all=1
        150  us  n2 -> n1 ack hop=5 aru=2 missing=[]
        150  us  n2 delivers r3943027@n0/2 n1.i2000#0
        150  us  n2 held r3943027@n0 majority=2 all=1
        200  us  n1 held r3943027@n0 majority=2 all=1
        200  us  n1 held r3943027@n0 majority=2 all=2
        1000 us  n1 -> n0 data #3 hop=5 stable=2 ack!
        1000 us  n1 -> n2 data #3 hop=5 stable=2 ack!
        1000 us  n1 delivers r3943027@n0/3 n1.i2000#1
        1050 us  n0 -> n1 ack hop=5 aru=3 missing=[]
        1050 us  n0 delivers r3943027@n0/3 n1.i2000#1
        1050 us  n0 held r3943027@n0 majority=3 all=2
        1050 us  n2 -> n1 ack hop=5 aru=3 missing=[]
        1050 us  n2 delivers r3943027@n0/3 n1.i2000#1
        1050 us  n2 held r3943027@n0 majority=3 all=2
        1100 us  n1 held r3943027@n0 majority=3 all=2
        1100 us  n1 held r3943027@n0 majority=3 all=3
        2000 us  n0 -> n1 want
        2000 us  n0 -> n2 want
        2050 us  n1 -> n0 token hop=6 #3 arus=[3, 3, 3] wants=1 home=1 missing=[]
        2100 us  n0 held r3943027@n0 majority=3 all=3
        2100 us  n0 -> n1 data #4 hop=6 stable=3 ack!
        2100 us  n0 -> n2 data #4 hop=6 stable=3 ack!
        2100 us  n0 delivers r3943027@n0/4 n0.i1000#1
        2150 us  n1 -> n0 ack hop=6 aru=4 missing=[]
        2150 us  n1 delivers r3943027@n0/4 n0.i1000#1
        2150 us  n1 held r3943027@n0 majority=4 all=3
        2150 us  n2 -> n0 ack hop=6 aru=4 missing=[]
        2150 us  n2 delivers r3943027@n0/4 n0.i1000#1
        2150 us  n2 held r3943027@n0 majority=4 all=3
        2200 us  n0 held r3943027@n0 majority=4 all=3
        2200 us  n0 held r3943027@n0 majority=4 all=4
    "#]]);
}
