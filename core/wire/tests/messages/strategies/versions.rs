//! Versions, programs and extensions.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::limits::MAX_EXTENSION;
use wire::{Extension, Program, Speaks, VersionRange};

use super::name;

pub fn versions() -> impl Strategy<Value = VersionRange> {
    (1..=u8::MAX, 1..=u8::MAX).prop_map(|(a, b)| VersionRange::new(a.min(b), a.max(b)))
}

pub fn program() -> impl Strategy<Value = Program> {
    let ranges = (versions(), versions(), versions(), versions(), versions());
    (name(), ranges).prop_map(|(release, (ring, rules, client, attach, rank))| Program {
        release: release.chars().take(16).collect(),
        ring,
        rules,
        client,
        attach,
        rank,
    })
}

pub fn speaks() -> impl Strategy<Value = Speaks> {
    (versions(), versions(), any::<u8>()).prop_map(|(ring, rules, level)| Speaks {
        ring,
        rules,
        level,
    })
}

pub fn extension() -> impl Strategy<Value = Extension> {
    vec(any::<u8>(), 0..=MAX_EXTENSION).prop_map(Extension)
}
