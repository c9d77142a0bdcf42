//! Every experiment in its smallest size, one after the other: none can rot unseen.

use std::fs::File;
use std::io::{Read, Seek, Write, stdout};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::{Entry, Outcome};

/// The exit status of an experiment that this machine does not permit, as test suites have it.
pub(crate) const SKIPPED: u8 = 77;

/// So long none may take, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(120);

/// How often it is looked whether one has ended.
const LOOK: Duration = Duration::from_millis(10);

/// How one has ended.
enum End {
    Worked,
    Skipped(String),
    Failed(String),
}

/// Runs all of them, with a line for each.
pub fn run(experiments: &[Entry]) -> Outcome<()> {
    let (began, mut failed) = (Instant::now(), Vec::new());
    for entry in experiments {
        print!("{:12}", entry.name);
        stdout().flush()?;
        let start = Instant::now();
        let end = one(entry.name)?;
        let seconds = start.elapsed().as_secs_f64();
        match end {
            End::Worked => println!("{seconds:6.1} s"),
            End::Skipped(why) => println!("{seconds:6.1} s  skipped: {why}"),
            End::Failed(why) => {
                println!("{seconds:6.1} s  FAILED\n{why}");
                failed.push(entry.name);
            }
        }
    }
    println!("{:12}{:6.1} s", "all", began.elapsed().as_secs_f64());
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

/// Runs one in a process of its own.
fn one(name: &str) -> Outcome<End> {
    let said = tempfile::tempfile()?;
    let mut process = Command::new(env::current_exe()?)
        .args(["--smoke", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone()?)
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        match process.try_wait()? {
            Some(status) => break status,
            None if start.elapsed() > LIMIT => {
                process.kill()?;
                process.wait()?;
                return Ok(End::Failed(format!("{}it runs after {LIMIT:?}", text(said)?)));
            }
            None => thread::sleep(LOOK),
        }
    };
    let said = text(said)?;
    Ok(match status.code() {
        Some(0) => End::Worked,
        Some(code) if code == i32::from(SKIPPED) => {
            let why = said.lines().find_map(|line| line.strip_prefix("SKIPPED: "));
            End::Skipped(why.unwrap_or("it does not say why").into())
        }
        _ => End::Failed(format!("{said}{status}")),
    })
}

fn text(mut file: File) -> Outcome<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
