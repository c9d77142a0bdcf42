//! Versions and programs.

use wire::{Program, Speaks, VersionRange};

/// A program.
pub fn program() -> Program {
    let range = VersionRange::new(1, 2);
    Program {
        release: "0.2".into(),
        rules: VersionRange::new(2, 3),
        ring: range,
        client: range,
        attach: range,
        rank: range,
    }
}

/// The versions of a node.
pub const SPEAKS: Speaks =
    Speaks { ring: VersionRange::new(1, 2), rules: VersionRange::new(2, 3), level: 2 };
