//! A process of the demo as it sees itself: it obeys the conductor and never outlives it.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal};

use super::message::{Order, Tale};

/// Ties this process to the conductor, and hands its orders to `obey`, on a thread of their own.
///
/// Two bonds, because each has a hole: the kernel's signal is not sent if the conductor died
/// before it was asked for, and a stopped process does not read its pipe.
pub fn attach(mut obey: impl FnMut(Order) + Send + 'static) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if let Ok(order) = serde_json::from_str(&line) {
                obey(order);
            }
        }
        std::process::exit(0)
    })?;
    Ok(())
}

/// Tells the conductor. When it is gone there is nobody to tell and nothing to do any more.
pub fn tell(tale: &Tale) {
    let line = serde_json::to_string(tale).expect("a tale is plain data");
    if writeln!(std::io::stdout().lock(), "{line}").is_err() {
        std::process::exit(0);
    }
}

/// The end of a process of the demo.
pub fn end<E: std::fmt::Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&Tale::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Exit status of a run that found something wrong, or that could not be finished.
pub const FAILED: u8 = 1;

/// On standard error, if anybody listens: the processes must be ended all the same.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
