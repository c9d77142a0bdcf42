//! Chores of the house: `cargo xtask tidy` checks what neither the compiler nor clippy can see,
//! `cargo xtask fuzz` lets libFuzzer look for what nobody thought of.

mod fuzz;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy                              check the directions and habits of the house
       cargo xtask circles core/ring                 tell who uses whom in a crate's circles of files
       cargo xtask fuzz [--seconds 60] [TARGET ...]  run each fuzz target so long (needs nightly and cargo-fuzz)

Exit status: 0 well, 1 something was found, 2 it could not run.";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    // Cargo says where this package is, so that the command works from any folder of the project.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let done = match arguments.split_first() {
        Some((verb, [])) if verb == "tidy" => {
            tidy::run(root).map_err(|error| format!("tidy: cannot read the project: {error}"))
        }
        Some((verb, [folder])) if verb == "circles" => tidy::run_circles(root, folder)
            .map_err(|error| format!("circles: cannot read the project: {error}")),
        Some((verb, rest)) if verb == "fuzz" => match seconds(rest) {
            Some((seconds, named)) => fuzz::run(root, seconds, named),
            None => Err(USAGE.into()),
        },
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::from(2)
        }
    }
}

/// How long, and which targets.
fn seconds(arguments: &[String]) -> Option<(u64, &[String])> {
    let (seconds, named) = match arguments {
        [option, seconds, named @ ..] if option == "--seconds" => (seconds.parse().ok()?, named),
        named => (60, named),
    };
    let options = named.iter().any(|name| name.starts_with('-'));
    (!options && seconds > 0).then_some((seconds, named))
}
