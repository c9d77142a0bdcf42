//! `cargo xtask fuzz`: libFuzzer on every target of `proof/fuzz`, one after the other.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The wrappers for libFuzzer, and what it has learnt.
const FOLDER: &str = "proof/libfuzzer";

/// How a target ended.
enum Ended {
    Nothing(u64),
    Found,
}

/// Runs each target for so many seconds, or those that are named. True if none found anything.
///
/// # Errors
/// In words, what keeps libFuzzer from running here, and the remedy.
pub fn run(root: &Path, seconds: u64, named: &[String]) -> Result<bool, String> {
    let has = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !has("cargo", &["+nightly", "--version"]) {
        return Err("libFuzzer needs nightly: rustup toolchain install nightly".into());
    }
    if !has("cargo", &["fuzz", "--version"]) {
        return Err("cargo-fuzz is not installed: cargo install cargo-fuzz --locked".into());
    }
    let all = targets(root).map_err(|error| format!("{FOLDER}/fuzz_targets: {error}"))?;
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        return Err(format!("{unknown} is no target; there are {}", all.join(", ")));
    }
    let chosen: Vec<&String> =
        all.iter().filter(|name| named.is_empty() || named.contains(name)).collect();
    println!("== building {} targets, with the address sanitizer: minutes", chosen.len());
    // All of them are one build, a single one is much less.
    match named {
        [] => build(root, None)?,
        some => some.iter().try_for_each(|name| build(root, Some(name)))?,
    }
    let mut summary = Vec::new();
    for name in chosen {
        println!("== {name}: {seconds} s");
        let started = Instant::now();
        let ended = one(root, name, seconds)?;
        let took = started.elapsed().as_secs();
        summary.push(match ended {
            Ended::Nothing(runs) => format!("{name:10} {runs:>12} inputs in {took} s, nothing found"),
            Ended::Found => format!(
                "{name:10} FOUND SOMETHING after {took} s: see above; the input is in {FOLDER}/artifacts/{name}, and belongs into \
                 proof/fuzz/corpus/{name} once it is mended"
            ),
        });
    }
    let well = summary.iter().all(|line| !line.contains("FOUND"));
    println!("\n{}", summary.join("\n"));
    Ok(well)
}

fn targets(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(root.join(FOLDER).join("fuzz_targets"))? {
        let name = file?.file_name().into_string().unwrap_or_default();
        names.extend(name.strip_suffix(".rs").map(String::from));
    }
    names.sort();
    Ok(names)
}

/// One target or all, before any runs, so that a build that fails is not taken for a find.
fn build(root: &Path, target: Option<&str>) -> Result<(), String> {
    let output = Command::new("cargo")
        .args(["+nightly", "fuzz", "build", "--fuzz-dir", FOLDER])
        .args(target)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cargo fuzz: {error}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    output
        .status
        .success()
        .then_some(())
        .ok_or_else(|| format!("the targets were not built ({}):\n{}", output.status, end(&words)))
}

fn one(root: &Path, name: &str, seconds: u64) -> Result<Ended, String> {
    // libFuzzer writes its finds to the first folder, which is not committed; the second one is.
    let own = root.join(FOLDER).join("corpus").join(name);
    fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    let output = Command::new("cargo")
        .args(["+nightly", "fuzz", "run", "--fuzz-dir", FOLDER, name])
        .arg(&own)
        .arg(root.join("proof/fuzz/corpus").join(name))
        .args(["--", "-max_len=4096", "-print_final_stats=1", "-timeout=20"])
        .arg(format!("-max_total_time={seconds}"))
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cargo fuzz: {error}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    let runs = words
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok());
    match runs {
        Some(runs) if output.status.success() => Ok(Ended::Nothing(runs)),
        _ => {
            eprintln!("{}", end(&words));
            let ran = words.contains("SUMMARY: libFuzzer") || words.contains("artifact_prefix");
            let status = output.status;
            if ran { Ok(Ended::Found) } else { Err(format!("{name} did not run ({status})")) }
        }
    }
}

/// The last lines of what cargo and libFuzzer said: there is what went wrong, and logs of CI are
/// cut.
fn end(words: &str) -> String {
    const LINES: usize = 60;
    let told: Vec<&str> = words.lines().filter(|line| !line.contains("Compiling ")).collect();
    told[told.len().saturating_sub(LINES)..].join("\n")
}
