//! The bytes of what is said to the registry and of its answers: programs in other languages write
//! and read them (`docs/protocol/registry.md`).
//!
//! A failure here means that nodes and clients of the version before would misread them: raise
//! `wire::versions::RULES` if that is wanted, and let `UPDATE_EXPECT=1 cargo test -p
//! steadfast-registry` write the bytes anew.

use core::fmt::Debug;

use expect_test::expect;
use serde::{Deserialize, Serialize};
use steadfast_registry::{Binding, Listing, Verdict};

use super::*;

/// The written form of a value, after it was read again.
fn line<T>(name: &str, said: &T) -> String
where
    T: Serialize + for<'de> Deserialize<'de> + PartialEq + Debug,
{
    let bytes = postcard::to_allocvec(said).expect("plain data");
    assert_eq!(&postcard::from_bytes::<T>(&bytes).expect("it was just written"), said);
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}: {}\n", hex.join(" "))
}

#[test]
fn commands() {
    let bound = Command::Bind {
        name: "doors".into(),
        address: at("10.0.0.7:80"),
        keeper: Some(member(3, 300)),
        terms: Terms { technique: Technique::Both, lease_ms: 3_000, refresh_ms: 1_000 },
        seen: Epoch(5),
    };
    let replica = Address::Replica(member(2, 258));
    let unbind = |epoch| Command::Unbind { name: "x".into(), address: replica.clone(), epoch };
    let said = [
        ("bind", bound),
        ("bind by lease, without a keeper", bind(at("a"), None, Technique::Lease, 0)),
        ("unbind", unbind(None)),
        ("unbind one of an epoch", unbind(Some(Epoch(200)))),
        ("refresh", Command::Refresh(ended(at("a"), 7))),
        ("renew", Command::Renew { keeper: member(3, 300) }),
        ("dead", Command::Dead(vec![ended(at("a"), 7), ended(replica.clone(), 8)])),
        ("tick", Command::Tick),
    ];
    let text: String = said.iter().map(|(name, command)| line(name, command)).collect();
    expect![[r#"
        bind: 00 05 64 6f 6f 72 73 01 0b 31 30 2e 30 2e 30 2e 37 3a 38 30 01 03 ac 02 02 b8 17 e8 07 05
        bind by lease, without a keeper: 00 01 78 01 01 61 00 00 ac 02 64 00
        unbind: 01 01 78 00 02 82 02 00
        unbind one of an epoch: 01 01 78 00 02 82 02 01 c8 01
        refresh: 02 01 78 01 01 61 07
        renew: 03 03 ac 02
        dead: 04 02 01 78 01 01 61 07 01 78 00 02 82 02 08
        tick: 05
    "#]].assert_eq(&text);
}

#[test]
fn answers() {
    let verdicts = [Verdict::Bound(Epoch(7)), Verdict::Done, Verdict::Void, Verdict::Fenced];
    let mut text = String::new();
    for verdict in verdicts {
        text += &line(&format!("{verdict:?}"), &Answer { verdict, epoch: Epoch(300) });
    }
    expect![[r#"
        Bound(Epoch(7)): 00 07 ac 02
        Done: 01 ac 02
        Void: 02 ac 02
        Fenced: 03 ac 02
    "#]]
    .assert_eq(&text);
}

#[test]
fn questions_and_listings() {
    let one = Ask { name: Some("doors".into()), since: Some(Epoch(300)) };
    let leased = Binding {
        name: "doors".into(),
        address: at("10.0.0.7:80"),
        keeper: None,
        terms: terms(Technique::Lease),
        epoch: Epoch(7),
        until: Some(ms(1_500)),
    };
    let replica = Binding {
        address: Address::Replica(member(2, 258)),
        keeper: Some(member(2, 258)),
        terms: terms(Technique::Notification),
        until: None,
        ..leased.clone()
    };
    let all = Listing { epoch: Epoch(300), bindings: Some(vec![leased, replica]) };
    let text = [
        line("ask all", &Ask::default()),
        line("ask one, since", &one),
        line("listing", &all),
        line("nothing has changed", &Listing { epoch: Epoch(300), bindings: None }),
    ];
    expect![[r#"
        ask all: 00 00
        ask one, since: 01 05 64 6f 6f 72 73 01 ac 02
        listing: ac 02 01 02 05 64 6f 6f 72 73 01 0b 31 30 2e 30 2e 30 2e 37 3a 38 30 00 00 ac 02 64 07 01 80 de a0 cb 05 05 64 6f 6f 72 73 00 02 82 02 01 02 82 02 01 ac 02 64 07 00
        nothing has changed: ac 02 00
    "#]].assert_eq(&text.concat());
}
