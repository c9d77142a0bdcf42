//! Writes random types, and values of each, for `tests/arrive.rs`.

mod draw;
mod form;

use std::fmt::Write;
use std::{env, fs, path::Path};

use draw::Draw;
use form::World;

/// Types in one function: rustc's time grows faster than a function does.
const TOGETHER: usize = 20;

fn main() {
    let number = |name: &str, default: u64| {
        println!("cargo::rerun-if-env-changed={name}");
        env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    println!("cargo::rerun-if-changed=build");
    let (count, seed) = (number("STEADFAST_TYPES", 60), number("STEADFAST_SEED", 1));
    let mut world = World::new(Draw::new(seed));
    let (mut code, mut calls) = (String::new(), Vec::new());
    for _ in 0..count {
        let made = world.make();
        code += &made.definition;
        let values = made.values.join(",\n        ");
        calls.push(format!(
            "    try_type::<{}>(\"{}\", {}, vec![\n        {values}\n    ], tally);\n",
            made.name, made.name, made.is_sure
        ));
    }
    for (i, calls) in calls.chunks(TOGETHER).enumerate() {
        let _ = write!(code, "\nfn try_{i}(tally: &mut Tally) {{\n{}}}\n", calls.concat());
    }
    let all: Vec<String> = (0..calls.chunks(TOGETHER).len()).map(|i| format!("try_{i}")).collect();
    let _ = write!(
        code,
        "\nconst SEED: u64 = {seed};\nconst ALL: &[fn(&mut Tally)] = &[{}];\n",
        all.join(", ")
    );
    let out = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("types.rs"), code).expect("cargo's folder is there");
}
