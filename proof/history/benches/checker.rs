//! Seconds to check a history, by keys and clients: `cargo bench -p steadfast-history`.
#![allow(missing_docs)]

use std::time::Instant;

use steadfast_history::atomic::{Load, history};
use steadfast_history::models::{Counter, CounterCall, Register, RegisterCall};
use steadfast_history::{Limits, Model, check};
use wire::Random;

fn main() {
    println!("model      operations  clients    keys  unknown  seconds   steps  verdict");
    for (clients, keys, unknown) in [(64, 1_000, 5), (64, 100, 5), (64, 10, 5), (8, 1, 0)] {
        let load = Load { clients, operations: 100_000, unknown, failed: 5 };
        measure("register", &Register, load, keys, |random, key| match random.below(3) {
            0 => RegisterCall::Read(key),
            1 => RegisterCall::Write(key, 1 + random.below(1_000)),
            _ => RegisterCall::Swap { key, old: random.below(50), new: 1 + random.below(1_000) },
        });
        measure("counter", &Counter, load, keys, |random, key| match random.below(3) {
            0 => CounterCall::Read(key),
            _ => CounterCall::Add(key, 1),
        });
    }
}

fn measure<M: Model>(
    name: &str,
    model: &M,
    load: Load,
    keys: u64,
    call: impl Fn(&mut Random, u64) -> M::Call,
) {
    let mut random = Random::new(1);
    let all = history(model, &load, &mut random, |random, _| {
        let key = random.below(keys);
        call(random, key)
    });
    let began = Instant::now();
    let report = check(model, &all, Limits::default());
    let Load { operations, clients, unknown, .. } = load;
    println!(
        "{name:<10}{operations:11}{clients:9}{keys:8}{unknown:9}{:9.2}{:8.1}  {}",
        began.elapsed().as_secs_f64(),
        report.steps as f64 / operations as f64,
        match (&report.broken, report.undecided.len()) {
            (Some(_), _) => "wrong".into(),
            (None, 0) => "right".into(),
            (None, undecided) => format!("{undecided} keys undecided"),
        }
    );
}
