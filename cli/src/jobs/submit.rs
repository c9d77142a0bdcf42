//! A job as the command line describes it.

use std::env;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::time::Duration;

use agent::program;
use job::Spec;
use wire::rank::Every;

use crate::commands::Failure;

/// Variables of the caller that ranks get: what finds programs and libraries.
const PASSED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "LD_LIBRARY_PATH",
];

/// The command's words, as any node of this machine finds them.
pub fn command(words: &[String], here: &Path) -> Vec<String> {
    let mut command = words.to_vec();
    if command[0].contains(MAIN_SEPARATOR) {
        let path: PathBuf = here.join(&command[0]).components().collect();
        command[0] = path.to_string_lossy().into_owned();
    }
    command
}

/// The environment of ranks: what finds programs, and what is said.
pub fn environment(said: &[(String, Option<String>)]) -> Result<Vec<(String, String)>, Failure> {
    let mut all: Vec<(String, String)> = Vec::new();
    for name in PASSED {
        if let Ok(value) = env::var(name) {
            all.push((name.into(), value));
        }
    }
    for (name, value) in said {
        let value = match value {
            Some(value) => value.clone(),
            None => env::var(name).map_err(|_| {
                Failure::Usage(format!("--env {name}: there is no such variable here"))
            })?,
        };
        all.retain(|(other, _)| other != name);
        all.push((name.clone(), value));
    }
    Ok(all)
}

/// A name for a job that nobody has named: that of its script or program.
pub fn name(command: &[String], taken: impl Fn(&str) -> bool) -> String {
    let stem = |word: &String| {
        let stem = Path::new(word).file_stem()?.to_str()?;
        (!word.starts_with('-')).then(|| stem.to_owned())
    };
    // `python x.py` is about x.
    let script = command.iter().skip(1).find(|word| Path::new(word).extension().is_some());
    let base = script.and_then(stem).or_else(|| stem(&command[0])).unwrap_or_else(|| "job".into());
    let base: String = base.chars().take(100).collect();
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or(base)
}

/// The digest of what the job computes, as it is now.
pub fn program(spec: &Spec) -> Result<Option<[u8; 32]>, Failure> {
    let Some(file) = program::file_of(spec) else { return Ok(None) };
    let digest = program::digest(&file);
    digest.map(Some).map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))
}

/// When ranks save: `auto`, `never`, a time, or turns.
pub fn every(text: &str) -> Result<Every, String> {
    match text {
        "auto" => Ok(Every::Auto),
        "never" => Ok(Every::Never),
        _ if text.ends_with("turns") => match text.trim_end_matches("turns").trim().parse() {
            Ok(turns) if turns > 0 => Ok(Every::Turns(turns)),
            _ => Err(format!("`{text}` is no number of turns: write one such as 50turns")),
        },
        _ => {
            let micros =
                span(text).map_err(|why| format!("{why}, 50turns; or auto, or never"))?.as_micros();
            Ok(Every::Micros(u64::try_from(micros).unwrap_or(u64::MAX)))
        }
    }
}

/// A time, with its unit.
pub fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time: write one such as 20s, 500ms or 2min");
    let units = [("ms", 1_000), ("min", 60_000_000), ("h", 3_600_000_000), ("s", 1_000_000_u64)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(end, unit)| Some((text.strip_suffix(end)?, unit)))
        .ok_or_else(wrong)?;
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let micros = number * unit as f64;
    if !(1_000.0..1e16).contains(&micros) {
        return Err(format!("`{text}`: a millisecond is the least"));
    }
    Ok(Duration::from_micros(micros as u64))
}

/// `NAME=VALUE`, or NAME: the caller's.
pub fn variable(text: &str) -> Result<(String, Option<String>), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("write NAME=VALUE, or NAME for the value that it has here".into()),
        Some((name, value)) => Ok((name.into(), Some(value.into()))),
        None => Ok((text.into(), None)),
    }
}

/// Whether a job can be, before a cluster is started for it.
pub fn check(spec: &Spec) -> Result<(), Failure> {
    spec.check().map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_its_script() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(name(&words("python3 -u examples/matmul.py 100"), |_| false), "matmul");
        assert_eq!(name(&words("/usr/bin/sleep 5"), |_| false), "sleep");
        assert_eq!(name(&words("python matmul.py"), |name| name == "matmul"), "matmul-2");
    }

    #[test]
    fn an_interval_has_a_unit() {
        assert_eq!(every("auto"), Ok(Every::Auto));
        assert_eq!(every("never"), Ok(Every::Never));
        assert_eq!(every("50turns"), Ok(Every::Turns(50)));
        assert_eq!(every("20s"), Ok(Every::Micros(20_000_000)));
        assert_eq!(every("1.5 min"), Ok(Every::Micros(90_000_000)));
        assert_eq!(every("500ms"), Ok(Every::Micros(500_000)));
        for wrong in ["", "20", "soon", "-1s", "0s", "1us", "turns", "0turns", "-5turns"] {
            every(wrong).expect_err(wrong);
        }
    }
}
