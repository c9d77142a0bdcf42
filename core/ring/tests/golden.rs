//! Traces of the wire, as text. Rewrite with `UPDATE_EXPECT=1 cargo test -p steadfast-ring`.
#![allow(missing_docs)]

mod cluster;

use cluster::{Cluster, Tune, millis};
use expect_test::expect;
use steadfast_ring::Level;
use wire::ring::Message;

/// The token rests with the last sender: its next message is ordered at once, and one round trip
/// later it knows that everybody has it.
#[test]
fn a_parked_sender_orders_at_once() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 hop=4 stable=1 ack!
        0    us  n0 -> n2 data #2 hop=4 stable=1 ack!
        0    us  n0 delivers r3943027@n0/2 n0.i1000#1
        50   us  n1 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n1 delivers r3943027@n0/2 n0.i1000#1
        50   us  n1 held r3943027@n0 majority=2 all=1
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 delivers r3943027@n0/2 n0.i1000#1
        50   us  n2 held r3943027@n0 majority=2 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 held r3943027@n0 majority=2 all=2
    "#]]);
}

/// Another member asks for the token and gets it; afterwards it rests there.
#[test]
fn the_token_comes_to_who_wants_it() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.multicast_at(Level::Held, 2, 0);
    cluster.run(millis(1));
    cluster.trace().check(expect![[r#"
        0    us  n2 -> n0 want
        0    us  n2 -> n1 want
        50   us  n0 -> n2 token hop=5 #1 arus=[1, 1, 1] wants=100 home=0 missing=[]
        100  us  n2 held r3943027@n0 majority=1 all=1
        100  us  n2 -> n0 data #2 hop=5 stable=1 ack!
        100  us  n2 -> n1 data #2 hop=5 stable=1 ack!
        100  us  n2 delivers r3943027@n0/2 n2.i3000#0
        150  us  n0 -> n2 ack hop=5 aru=2 missing=[]
        150  us  n0 delivers r3943027@n0/2 n2.i3000#0
        150  us  n0 held r3943027@n0 majority=2 all=1
        150  us  n1 -> n2 ack hop=5 aru=2 missing=[]
        150  us  n1 delivers r3943027@n0/2 n2.i3000#0
        150  us  n1 held r3943027@n0 majority=2 all=1
        200  us  n2 held r3943027@n0 majority=2 all=1
        200  us  n2 held r3943027@n0 majority=2 all=2
    "#]]);
}

/// A lost datagram is missed when the next one comes, asked for, and sent again.
#[test]
fn a_lost_message_is_sent_again() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.drop_next = Some(|message| matches!(message, Message::Data(_)));
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 hop=4 stable=1 ack!  LOST
        0    us  n0 -> n2 data #2 hop=4 stable=1 ack!
        0    us  n0 delivers r3943027@n0/2 n0.i1000#1
        0    us  n0 -> n1 data #3 hop=4 stable=1 ack!
        0    us  n0 -> n2 data #3 hop=4 stable=1 ack!
        0    us  n0 delivers r3943027@n0/3 n0.i1000#2
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 delivers r3943027@n0/2 n0.i1000#1
        50   us  n2 held r3943027@n0 majority=2 all=1
        50   us  n1 -> n0 ack hop=4 aru=1 missing=[2]
        50   us  n1 held r3943027@n0 majority=1 all=1
        50   us  n2 -> n0 ack hop=4 aru=3 missing=[]
        50   us  n2 delivers r3943027@n0/3 n0.i1000#2
        50   us  n2 held r3943027@n0 majority=3 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 -> n1 data #2 hop=4 stable=1 ack!
        100  us  n0 Retransmitted(1)
        100  us  n0 held r3943027@n0 majority=3 all=1
        150  us  n1 -> n0 ack hop=4 aru=3 missing=[]
        150  us  n1 delivers r3943027@n0/2 n0.i1000#1
        150  us  n1 delivers r3943027@n0/3 n0.i1000#2
        150  us  n1 held r3943027@n0 majority=3 all=1
        200  us  n0 held r3943027@n0 majority=3 all=3
    "#]]);
}

/// Nobody hears of a datagram whose acknowledgement is wanted: the token goes round to find out.
#[test]
fn a_lost_last_message_is_found_by_a_round_of_the_token() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.drop_next = Some(|message| matches!(message, Message::Data(_)));
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(2));
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 hop=4 stable=1 ack!  LOST
        0    us  n0 -> n2 data #2 hop=4 stable=1 ack!
        0    us  n0 delivers r3943027@n0/2 n0.i1000#1
        50   us  n2 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n2 delivers r3943027@n0/2 n0.i1000#1
        50   us  n2 held r3943027@n0 majority=2 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        1000 us  n0 -> n1 token hop=5 #2 arus=[2, 1, 2] wants=0 home=0 missing=[]
        1050 us  n1 held r3943027@n0 majority=2 all=1
        1050 us  n1 -> n2 token hop=6 #2 arus=[2, 1, 2] wants=0 home=0 missing=[2]
        1100 us  n2 -> n0 data #2 hop=4 stable=1
        1100 us  n2 -> n1 data #2 hop=4 stable=1
        1100 us  n2 Retransmitted(1)
        1100 us  n2 -> n0 token hop=7 #2 arus=[2, 1, 2] wants=0 home=0 missing=[]
        1150 us  n1 delivers r3943027@n0/2 n0.i1000#1
        1150 us  n1 held r3943027@n0 majority=2 all=2
        1150 us  n0 -> n1 token hop=8 #2 arus=[2, 1, 2] wants=0 home=0 missing=[]
        1200 us  n1 -> n0 token hop=9 #2 arus=[2, 2, 2] wants=0 home=0 missing=[]
        1250 us  n0 held r3943027@n0 majority=2 all=2
        1250 us  n0 -> n1 ack hop=9 aru=2 missing=[]
        1250 us  n0 -> n2 ack hop=9 aru=2 missing=[]
    "#]]);
}

/// Nobody waits to know who holds an agreed message: one pulse asks for all that were sent, when
/// `ack_wait` is over.
#[test]
fn nobody_is_asked_at_once_for_an_agreed_message() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.multicast(0, 0);
    cluster.run(millis(2));
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 hop=4 stable=1
        0    us  n0 -> n2 data #2 hop=4 stable=1
        0    us  n0 delivers r3943027@n0/2 n0.i1000#1
        50   us  n1 delivers r3943027@n0/2 n0.i1000#1
        50   us  n1 held r3943027@n0 majority=2 all=1
        50   us  n2 delivers r3943027@n0/2 n0.i1000#1
        50   us  n2 held r3943027@n0 majority=2 all=1
        1000 us  n0 -> n1 pulse 1 of n0 hop=4 #2 stable=1 next=5000us
        1050 us  n1 -> n2 pulse 1 of n0 hop=4 #2 stable=1 next=5000us
        1100 us  n2 -> n0 pulse 1 of n0 hop=4 #2 stable=1 next=5000us
        1150 us  n0 held r3943027@n0 majority=2 all=2
    "#]]);
}

/// An idle ring shows that it lives: one small datagram goes round, ever more rarely. One that does
/// not come back is followed by a round of the token, and what was learnt of the ring's quiet is
/// forgotten.
#[test]
fn a_pulse_goes_round_an_idle_ring() {
    let mut cluster = Cluster::traced(3, 0, Tune::default());
    cluster.run(millis(19));
    cluster.drop_next = Some(|message| matches!(message, Message::Pulse(_)));
    cluster.run(millis(23));
    cluster.trace().check(expect![[r#"
        4100 us  n0 -> n1 pulse 1 of n0 hop=4 #1 stable=1 next=10000us
        4150 us  n1 -> n2 pulse 1 of n0 hop=4 #1 stable=1 next=10000us
        4150 us  n1 held r3943027@n0 majority=1 all=1
        4200 us  n2 -> n0 pulse 1 of n0 hop=4 #1 stable=1 next=10000us
        4200 us  n2 held r3943027@n0 majority=1 all=1
        14100 us  n0 -> n1 pulse 2 of n0 hop=4 #1 stable=1 next=20000us
        14150 us  n1 -> n2 pulse 2 of n0 hop=4 #1 stable=1 next=20000us
        14200 us  n2 -> n0 pulse 2 of n0 hop=4 #1 stable=1 next=20000us
        34100 us  n0 -> n1 pulse 3 of n0 hop=4 #1 stable=1 next=25000us  LOST
        35475 us  n0 -> n1 token hop=5 #1 arus=[1, 1, 1] wants=110 home=0 missing=[]
        35525 us  n1 -> n2 token hop=6 #1 arus=[1, 1, 1] wants=100 home=0 missing=[]
        35575 us  n2 -> n0 token hop=7 #1 arus=[1, 1, 1] wants=0 home=0 missing=[]
        35625 us  n0 -> n1 ack hop=7 aru=1 missing=[]
        35625 us  n0 -> n2 ack hop=7 aru=1 missing=[]
        40625 us  n0 -> n1 pulse 1 of n0 hop=7 #1 stable=1 next=10000us
        40675 us  n1 -> n2 pulse 1 of n0 hop=7 #1 stable=1 next=10000us
        40725 us  n2 -> n0 pulse 1 of n0 hop=7 #1 stable=1 next=10000us
    "#]]);
}

/// A process dies; its host refuses the next datagram. From the refusal to the new ring it takes
/// the representative four one-way delays (joins there and back, commit there and back), and the
/// others one more.
#[test]
fn a_killed_process_is_left_out_without_a_timer() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    cluster.crash(2);
    cluster.start_trace();
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run_until(5, Cluster::is_one_ring);
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 data #2 hop=4 stable=1 ack!
        0    us  n0 -> n2 data #2 hop=4 stable=1 ack!
        0    us  n0 delivers r3943027@n0/2 n0.i1000#1
        50   us  n1 -> n0 ack hop=4 aru=2 missing=[]
        50   us  n1 delivers r3943027@n0/2 n0.i1000#1
        50   us  n1 held r3943027@n0 majority=2 all=1
        100  us  n0 held r3943027@n0 majority=2 all=1
        100  us  n0 Unreachable(n2.i3000)
        100  us  n0 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n2.i3000] }
        100  us  n0 -> n1 join [n0,n1,n2] failed [n2]
        100  us  n0 -> n2 join [n0,n1,n2] failed [n2]
        150  us  n1 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n2.i3000] }
        150  us  n1 -> n0 join [n0,n1,n2] failed [n2]
        200  us  n0 -> n1 commit r3943028@n0 call [n0,n1]
        250  us  n1 -> n0 commit r3943028@n0 entry [n1 r3943027@n0 1/2..2]
        300  us  n0 -> n1 commit r3943028@n0 entries [n0 r3943027@n0 1/2..2; n1 r3943027@n0 1/2..2]
        300  us  n0 Transitional r3943027@n0 [n0, n1]
        300  us  n0 Regular r3943028@n0 [n0, n1]
        300  us  n0 -> n1 token hop=2 #0 arus=[0, 0] wants=10 home=0 missing=[]
        350  us  n1 Transitional r3943027@n0 [n0, n1]
        350  us  n1 Regular r3943028@n0 [n0, n1]
    "#]]);
}

/// A member that missed a message gets it in the recovery, from one that has it: its sender is
/// gone.
#[test]
fn a_message_of_a_dead_sender_is_recovered() {
    let mut cluster = Cluster::traced(3, 2, Tune::default());
    cluster.drop_next = Some(|message| matches!(message, Message::Data(_)));
    cluster.multicast_at(Level::Held, 2, 0);
    cluster.run(cluster.delay());
    cluster.crash(2);
    cluster.multicast_at(Level::Held, 1, 0);
    cluster.run_until(5, |cluster| cluster.ring(0).members().len() == 2 && cluster.is_quiet());
    cluster.trace().check(expect![[r#"
        0    us  n2 -> n0 data #2 hop=5 stable=1 ack!  LOST
        0    us  n2 -> n1 data #2 hop=5 stable=1 ack!
        0    us  n2 delivers r3943027@n0/2 n2.i3000#1
        50   us  n1 -> n2 ack hop=5 aru=2 missing=[]
        50   us  n1 delivers r3943027@n0/2 n2.i3000#1
        50   us  n1 held r3943027@n0 majority=2 all=1
        50   us  n2 crashes
        50   us  n1 -> n0 want
        50   us  n1 -> n2 want
        150  us  n1 Unreachable(n2.i3000)
        150  us  n1 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n2.i3000] }
        150  us  n1 -> n0 join [n0,n1,n2] failed [n2]
        150  us  n1 -> n2 join [n0,n1,n2] failed [n2]
        200  us  n0 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n2.i3000] }
        200  us  n0 -> n1 join [n0,n1,n2] failed [n2]
        200  us  n0 -> n1 commit r3943028@n0 call [n0,n1]
        250  us  n1 -> n0 commit r3943028@n0 entry [n1 r3943027@n0 1/2..2]
        300  us  n0 -> n1 commit r3943028@n0 entries [n0 r3943027@n0 0/1..1; n1 r3943027@n0 1/2..2]
        300  us  n0 -> n1 token hop=2 #0 arus=[0, 0] wants=0 home=0 missing=[] done=1 received=0
        350  us  n1 -> n0 data #1 hop=2 stable=0 was r3943027@n0/2 of n2
        350  us  n1 -> n0 token hop=3 #1 arus=[0, 1] wants=0 home=1 missing=[] done=11 received=10
        400  us  n0 delivers r3943027@n0/2 n2.i3000#1
        400  us  n0 Transitional r3943027@n0 [n0, n1]
        400  us  n0 Regular r3943028@n0 [n0, n1]
        400  us  n0 held r3943028@n0 majority=1 all=1
        400  us  n0 -> n1 token hop=4 #1 arus=[1, 1] wants=10 home=1 missing=[]
        400  us  n0 -> n2 beacon r3943028@n0
        450  us  n1 Transitional r3943027@n0 [n0, n1]
        450  us  n1 Regular r3943028@n0 [n0, n1]
        450  us  n1 held r3943028@n0 majority=1 all=1
        450  us  n1 -> n0 data #2 hop=4 stable=1 ack!
        450  us  n1 delivers r3943028@n0/2 n1.i2000#0
        500  us  n0 -> n1 ack hop=4 aru=2 missing=[]
        500  us  n0 delivers r3943028@n0/2 n1.i2000#0
        500  us  n0 held r3943028@n0 majority=2 all=2
    "#]]);
}

/// Two rings meet by a beacon.
#[test]
fn two_halves_of_a_split_ring_merge() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.world.refusals = false;
    cluster.split(&[0, 0, 1]);
    cluster.run_until(100, |c| c.ring(0).members().len() == 2 && c.ring(2).members().len() == 1);
    cluster.run(millis(1));
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.multicast_at(Level::Held, 2, 0);
    cluster.run(millis(1));
    cluster.heal();
    cluster.start_trace();
    cluster.run_until(50, Cluster::is_one_ring);
    // The datagrams before the first beacon are the two rings' heartbeats.
    cluster.trace().check_from("beacon", expect![[r#"
        13525 us  n0 -> n2 beacon r3943028@n0
        13575 us  n2 -> n0 beacon r3943028@n2
        13575 us  n2 -> n1 beacon r3943028@n2
        14025 us  n0 -> n2 beacon r3943028@n0
        14075 us  n1 -> n2 beacon r3943028@n0
        14075 us  n2 -> n0 beacon r3943028@n2
        14075 us  n2 -> n1 beacon r3943028@n2
        14100 us  n0 -> n1 pulse 3 of n0 hop=3 #1 stable=1 next=20000us
        14150 us  n1 -> n0 pulse 3 of n0 hop=3 #1 stable=1 next=20000us
        14575 us  n2 -> n0 beacon r3943028@n2
        14575 us  n2 -> n1 beacon r3943028@n2
        14625 us  n0 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [] }
        14625 us  n0 -> n1 join [n0,n1,n2] failed []
        14625 us  n0 -> n2 join [n0,n1,n2] failed []
        14625 us  n1 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [] }
        14625 us  n1 -> n0 join [n0,n1,n2] failed []
        14625 us  n1 -> n2 join [n0,n1,n2] failed []
        14675 us  n1 -> n0 join [n0,n1,n2] failed []
        14675 us  n2 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [] }
        14675 us  n2 -> n0 join [n0,n1,n2] failed []
        14675 us  n0 -> n1 join [n0,n1,n2] failed []
        14675 us  n2 -> n1 join [n0,n1,n2] failed []
        14725 us  n0 -> n1 commit r3943029@n0 call [n0,n1,n2]
        14725 us  n0 -> n2 commit r3943029@n0 call [n0,n1,n2]
        14775 us  n1 -> n0 commit r3943029@n0 entry [n1 r3943028@n0 1/1..1]
        14775 us  n2 -> n0 commit r3943029@n0 entry [n2 r3943028@n2 1/1..1]
        14825 us  n0 -> n1 commit r3943029@n0 entries [n0 r3943028@n0 1/1..1; n1 r3943028@n0 1/1..1; n2 r3943028@n2 1/1..1]
        14825 us  n0 -> n2 commit r3943029@n0 entries [n0 r3943028@n0 1/1..1; n1 r3943028@n0 1/1..1; n2 r3943028@n2 1/1..1]
        14825 us  n0 Transitional r3943028@n0 [n0, n1]
        14825 us  n0 Regular r3943029@n0 [n0, n1, n2]
        14825 us  n0 -> n1 token hop=2 #0 arus=[0, 0, 0] wants=110 home=0 missing=[]
        14875 us  n1 Transitional r3943028@n0 [n0, n1]
        14875 us  n1 Regular r3943029@n0 [n0, n1, n2]
        14875 us  n2 Transitional r3943028@n2 [n2]
        14875 us  n2 Regular r3943029@n0 [n0, n1, n2]
    "#]]);
}

/// A node leaves on purpose: the others form their ring without having to find out.
#[test]
fn a_leaving_node_says_so() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.start_trace();
    cluster.leave(0);
    cluster.run(cluster.delay() * 6);
    cluster.trace().check(expect![[r#"
        0    us  n0 -> n1 join [n0,n1,n2] failed [n0]
        0    us  n0 -> n2 join [n0,n1,n2] failed [n0]
        0    us  n0 Left
        50   us  n1 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n0.i1000] }
        50   us  n1 -> n0 join [n0,n1,n2] failed [n0]
        50   us  n2 Gathering { proposed: [n0.i1000, n1.i2000, n2.i3000], failed: [n0.i1000] }
        50   us  n2 -> n0 join [n0,n1,n2] failed [n0]
        50   us  n2 -> n1 join [n0,n1,n2] failed [n0]
        100  us  n0 -> n1 join [n0,n1,n2] failed [n0]
        100  us  n0 -> n2 join [n0,n1,n2] failed [n0]
        100  us  n0 -> n1 join [n0,n1,n2] failed [n0]
        100  us  n0 -> n2 join [n0,n1,n2] failed [n0]
        100  us  n1 -> n2 join [n0,n1,n2] failed [n0]
        100  us  n1 -> n2 commit r3943028@n1 call [n1,n2]
        150  us  n2 -> n1 commit r3943028@n1 entry [n2 r3943027@n0 0/0..0]
        200  us  n1 -> n2 commit r3943028@n1 entries [n1 r3943027@n0 0/0..0; n2 r3943027@n0 0/0..0]
        200  us  n1 Transitional r3943027@n0 [n1, n2]
        200  us  n1 Regular r3943028@n1 [n1, n2]
        200  us  n1 -> n2 token hop=2 #0 arus=[0, 0] wants=10 home=0 missing=[]
        250  us  n2 Transitional r3943027@n0 [n1, n2]
        250  us  n2 Regular r3943028@n1 [n1, n2]
        250  us  n2 -> n1 token hop=3 #0 arus=[0, 0] wants=0 home=0 missing=[]
        300  us  n1 -> n2 ack hop=3 aru=0 missing=[]
    "#]]);
}
