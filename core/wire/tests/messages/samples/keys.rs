//! Keys, and benchmarks.

use bytes::Bytes;
use wire::bench::{Load, Word};
use wire::keys::{KeyChange, KeyName, KeyStep, KeyTable, OfferedKey};
use wire::ordered::Ordered;
use wire::{NodeId, Secret};

use super::bench::{plan, report};

pub fn keys_and_benchmarks() -> Vec<(&'static str, Ordered)> {
    vec![
        ("key offer", Ordered::Key(KeyStep::Offer(offered_key()))),
        ("key stored", Ordered::Key(KeyStep::Stored(offered_key().name))),
        ("key sealing", Ordered::Key(KeyStep::Sealing(offered_key().name))),
        ("key force", Ordered::Key(KeyStep::Force(offered_key().name))),
        ("key abort", Ordered::Key(KeyStep::Abort(offered_key().name))),
        ("bench plan", Ordered::Bench(Box::new(Word::Plan(plan())))),
        ("bench done", Ordered::Bench(Box::new(Word::Done { id: 0xb5, sent: 300 }))),
        ("bench report", Ordered::Bench(Box::new(Word::Report(report())))),
        ("bench stop", Ordered::Bench(Box::new(Word::Stop { id: 0xb5 }))),
        (
            "load",
            Ordered::Load(Load {
                id: 0xb5,
                place: 1,
                number: 0x12,
                echo: false,
                content: Bytes::from_static(b"content"),
            }),
        ),
    ]
}

fn offered_key() -> OfferedKey {
    let name = KeyName { number: 2, fingerprint: [0xf2; 8] };
    OfferedKey { name, secret: Secret::new([0x5e; 32]) }
}

pub fn key_table() -> KeyTable {
    KeyTable {
        sealing: KeyName { number: 1, fingerprint: [0xf1; 8] },
        change: Some(KeyChange {
            key: offered_key(),
            switched: false,
            forced: true,
            confirmed: vec![NodeId(1), NodeId(3)],
        }),
    }
}
