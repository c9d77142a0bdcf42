//! Chores of the house: `cargo xtask tidy` checks what neither the compiler nor clippy can see.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy    check the directions and habits of the house";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    // Cargo says where this package is, so that the command works from any folder of the project.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    match tidy::run(root) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tidy: cannot read the project: {error}");
            ExitCode::from(2)
        }
    }
}
