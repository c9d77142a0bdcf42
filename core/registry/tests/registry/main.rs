//! The registry beside a dumb twin, and in a small world whose nodes die: what is promised, and
//! that mistakes are found.

mod golden;
mod twin;
mod world;

use steadfast_registry::{
    Address, Answer, Ask, Command, Ended, Epoch, Refusal, Registry, Technique, Terms, Verdict,
};
use wire::limits::{MAX_ADDRESS, MAX_BINDINGS, MAX_FENCES};
use wire::{Incarnation, Member, NodeId, Time};

const fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn member(node: u32, incarnation: u64) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(incarnation) }
}

fn at(text: &str) -> Address {
    Address::At(text.into())
}

fn terms(technique: Technique) -> Terms {
    Terms { technique, lease_ms: 300, refresh_ms: 100 }
}

fn bind(address: Address, keeper: Option<Member>, technique: Technique, seen: u64) -> Command {
    Command::Bind { name: "x".into(), address, keeper, terms: terms(technique), seen: Epoch(seen) }
}

fn ended(address: Address, epoch: u64) -> Ended {
    Ended { name: "x".into(), address, epoch: Epoch(epoch) }
}

fn say(registry: &mut Registry, now: Time, command: Command) -> Answer {
    let answer = registry.apply(now, command).expect("it is possible");
    registry.check_invariants();
    answer
}

/// Its epochs count from 1.
fn begun() -> Registry {
    let mut registry = Registry::default();
    say(&mut registry, Time(1), Command::Tick);
    registry
}

fn addresses(registry: &Registry) -> Vec<Address> {
    registry.bindings().map(|binding| binding.address).collect()
}

#[test]
fn a_lease_ends_unless_it_is_refreshed() {
    let mut registry = begun();
    let made = say(&mut registry, ms(1_000), bind(at("a"), None, Technique::Lease, 0));
    assert_eq!(made, Answer { verdict: Verdict::Bound(Epoch(1)), epoch: Epoch(1) });
    let refreshed = say(&mut registry, ms(1_200), Command::Refresh(ended(at("a"), 1)));
    assert_eq!(refreshed.verdict, Verdict::Done);
    assert_eq!(registry.next_end(), Some(ms(1_500)));
    say(&mut registry, ms(1_499), Command::Tick);
    assert_eq!(addresses(&registry), [at("a")]);
    assert_eq!(say(&mut registry, ms(1_500), Command::Tick).epoch, Epoch(2));
    assert!(addresses(&registry).is_empty());
    let late = say(&mut registry, ms(1_501), Command::Refresh(ended(at("a"), 1)));
    assert_eq!(late, Answer { verdict: Verdict::Fenced, epoch: Epoch(2) });
    assert!(addresses(&registry).is_empty(), "a late comer revives nothing");
}

#[test]
fn who_was_unbound_is_bound_again_only_by_who_knows_it() {
    let mut registry = begun();
    say(&mut registry, ms(1), bind(at("a"), None, Technique::Lease, 0));
    let unbind = Command::Unbind { name: "x".into(), address: at("a"), epoch: None };
    assert_eq!(say(&mut registry, ms(2), unbind.clone()).verdict, Verdict::Done);
    assert_eq!(say(&mut registry, ms(2), unbind).verdict, Verdict::Void);
    let late = say(&mut registry, ms(3), bind(at("a"), None, Technique::Lease, 1));
    assert_eq!(late, Answer { verdict: Verdict::Fenced, epoch: Epoch(2) });
    let knowing = say(&mut registry, ms(4), bind(at("a"), None, Technique::Lease, 2));
    assert_eq!(knowing.verdict, Verdict::Bound(Epoch(3)));
    let old = Command::Unbind { name: "x".into(), address: at("a"), epoch: Some(Epoch(1)) };
    assert_eq!(say(&mut registry, ms(5), old).verdict, Verdict::Fenced);
    assert_eq!(addresses(&registry), [at("a")]);
}

#[test]
fn a_new_life_of_a_node_ends_what_the_former_one_had() {
    let mut registry = begun();
    let (old, new) = (member(1, 5), member(1, 6));
    say(&mut registry, ms(1), bind(Address::Replica(old), Some(old), Technique::Notification, 0));
    say(&mut registry, ms(2), bind(Address::Replica(new), Some(new), Technique::Notification, 0));
    assert_eq!(addresses(&registry), [Address::Replica(new)]);
    let epoch = registry.epoch().0;
    let late = bind(at("y"), Some(old), Technique::Notification, epoch);
    assert_eq!(say(&mut registry, ms(3), late).verdict, Verdict::Fenced, "whatever it has seen");
    assert_eq!(say(&mut registry, ms(3), Command::Renew { keeper: old }).verdict, Verdict::Void);
}

#[test]
fn under_both_techniques_the_last_one_has_a_lease_and_no_other() {
    let mut registry = begun();
    let nodes = [member(1, 1), member(2, 1)];
    for node in nodes {
        say(&mut registry, ms(1), bind(Address::Replica(node), Some(node), Technique::Both, 0));
    }
    assert_eq!(registry.next_end(), None, "there are two");
    let dead = nodes.iter().zip(1..).map(|(node, epoch)| ended(Address::Replica(*node), epoch));
    say(&mut registry, ms(100), Command::Dead(dead.collect()));
    assert_eq!(addresses(&registry), [Address::Replica(nodes[1])], "nobody notifies of the last");
    assert_eq!(registry.next_end(), Some(ms(400)), "its lease begins when it is alone");
    say(&mut registry, ms(200), Command::Renew { keeper: nodes[1] });
    assert_eq!(registry.next_end(), Some(ms(500)));
    say(&mut registry, ms(500), Command::Tick);
    assert!(addresses(&registry).is_empty());
}

#[test]
fn one_that_begins_anew_is_newer_than_the_one_before() {
    let epoch_at = |now| {
        let mut registry = Registry::default();
        say(&mut registry, now, bind(at("a"), None, Technique::Lease, 0));
        say(&mut registry, now, bind(at("b"), None, Technique::Lease, 0)).epoch
    };
    assert!(epoch_at(ms(1_001)) > epoch_at(ms(1_000)));
}

#[test]
fn a_question_about_what_has_not_changed_is_answered_in_a_word() {
    let mut registry = begun();
    say(&mut registry, ms(1), bind(at("a"), None, Technique::Lease, 0));
    let ask = |name: Option<&str>, since| Ask { name: name.map(String::from), since };
    let all = registry.answer(&ask(None, None));
    assert_eq!((all.epoch, all.bindings.expect("all").len()), (Epoch(1), 1));
    assert_eq!(registry.answer(&ask(None, Some(Epoch(1)))).bindings, None);
    assert_eq!(registry.answer(&ask(Some("y"), Some(Epoch(0)))).bindings, Some(Vec::new()));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut registry = begun();
    let mut refused = |command: Command| registry.apply(ms(1), command).expect_err("impossible");
    let long = at(&"a".repeat(MAX_ADDRESS + 1));
    assert_eq!(refused(bind(at(""), None, Technique::Lease, 0)), Refusal::Address(0));
    assert_eq!(refused(bind(long, None, Technique::Lease, 0)), Refusal::Address(MAX_ADDRESS + 1));
    assert_eq!(refused(bind(at("a"), None, Technique::Both, 0)), Refusal::Keeperless);
    let other = Address::Replica(member(2, 1));
    assert_eq!(
        refused(bind(other, Some(member(1, 1)), Technique::Both, 0)),
        Refusal::NotTheReplicas
    );
    let Command::Bind { address, keeper, seen, .. } = bind(at("a"), None, Technique::Lease, 0)
    else {
        unreachable!("it is one")
    };
    let terms = Terms { technique: Technique::Lease, lease_ms: 100, refresh_ms: 100 };
    let lazy = Command::Bind { name: "x".into(), address, keeper, terms, seen };
    assert_eq!(refused(lazy), Refusal::Lease(100, 100));
}

#[test]
fn bindings_and_fences_are_bounded_and_an_old_comer_is_refused_all_the_same() {
    let mut registry = begun();
    let one = |i: usize, seen| bind(at(&format!("a{i}")), None, Technique::Lease, seen);
    for i in 0..MAX_BINDINGS {
        registry.apply(ms(1), one(i, 0)).expect("there is room");
    }
    registry.check_invariants();
    let full = registry.apply(ms(1), one(MAX_BINDINGS, 0));
    assert_eq!(full, Err(Refusal::TooMany));
    let listed = registry.answer(&Ask::default());
    assert!(postcard::to_allocvec(&listed).expect("data").len() < wire::limits::MAX_BODY);
    registry.apply(ms(302), Command::Tick).expect("they end");
    let seen = registry.epoch().0;
    for i in 0..MAX_FENCES {
        registry.apply(ms(303), one(MAX_BINDINGS + i, seen)).expect("there is room");
    }
    registry.apply(ms(1_000), Command::Tick).expect("they end");
    registry.check_invariants();
    let late = say(&mut registry, ms(1_001), one(0, MAX_BINDINGS as u64));
    assert_eq!(late.verdict, Verdict::Fenced, "its fence is forgotten, but not that there was one");
    let state = registry.encode();
    assert_eq!(Registry::decode(&state).expect("it is one"), registry);
}
