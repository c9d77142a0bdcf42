//! Keys.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::keys::{KeyChange, KeyName, KeyTable, OfferedKey};
use wire::limits::MAX_MEMBERS;
use wire::{NodeId, Secret};

pub fn key_name() -> impl Strategy<Value = KeyName> {
    (1..=u8::MAX, any::<[u8; 8]>())
        .prop_map(|(number, fingerprint)| KeyName { number, fingerprint })
}

pub fn offered_key() -> impl Strategy<Value = OfferedKey> {
    (key_name(), any::<[u8; 32]>())
        .prop_map(|(name, secret)| OfferedKey { name, secret: Secret::new(secret) })
}

pub fn key_table() -> impl Strategy<Value = KeyTable> {
    let confirmed = vec(any::<u32>().prop_map(NodeId), 0..=MAX_MEMBERS);
    let change = (offered_key(), any::<bool>(), any::<bool>(), confirmed).prop_map(
        |(key, switched, forced, confirmed)| KeyChange { key, switched, forced, confirmed },
    );
    (key_name(), option::of(change)).prop_map(|(sealing, change)| KeyTable { sealing, change })
}
