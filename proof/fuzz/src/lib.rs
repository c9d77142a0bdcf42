//! Fuzz targets: each is a function of any bytes that must neither panic nor contradict itself.
//!
//! `cargo test -p steadfast-fuzz` runs every target over its corpus (`corpus/TARGET`), over
//! mutations of it and over inputs from a fixed seed. `cargo xtask fuzz --seconds 60` runs
//! libFuzzer on the same functions, where nightly and cargo-fuzz are installed (`fuzz/` wraps
//! them). Its finds become files of the corpus, and so tests for ever. Why so:
//! `docs/decisions/0015-oracle-and-fuzzing.md`.
#![forbid(unsafe_code)]

mod machines;
mod parsers;
mod source;
mod values;

pub use source::Source;

/// A target: its name, and its function of an input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As in `corpus/NAME` and `cargo fuzz run NAME`.
    pub name: &'static str,
    /// Panics if something is wrong with the code under test.
    pub run: fn(&[u8]),
}

/// All targets.
pub const ALL: [Target; 17] = [
    Target { name: "datagram", run: parsers::datagram },
    Target { name: "ordered", run: parsers::ordered },
    Target { name: "frame", run: parsers::frame },
    Target { name: "attach", run: parsers::attach },
    Target { name: "rank", run: parsers::rank },
    Target { name: "agents", run: parsers::agents },
    Target { name: "config", run: parsers::config },
    Target { name: "admin", run: parsers::admin },
    Target { name: "contract", run: parsers::contract },
    Target { name: "named", run: values::named },
    Target { name: "sealed", run: parsers::sealed },
    Target { name: "ring", run: machines::ring },
    Target { name: "schedule", run: machines::schedule },
    Target { name: "stack", run: machines::stack },
    Target { name: "session", run: machines::session },
    Target { name: "store", run: machines::store },
    Target { name: "registry", run: machines::registry },
];

/// The target of this name.
pub fn named(name: &str) -> Option<Target> {
    ALL.into_iter().find(|target| target.name == name)
}

/// Runs a target, for libFuzzer.
///
/// # Panics
/// If there is no such target, or it found something.
pub fn run(name: &str, bytes: &[u8]) {
    (named(name).expect("a target of this name").run)(bytes);
}
