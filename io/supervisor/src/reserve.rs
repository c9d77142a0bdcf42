//! A program's reserve at the host's daemon.

use std::path::PathBuf;

use os::realtime::Grant;
use qosd::{Enforced, Keeper, Standing, Wanted};
use wire::Duration;

/// What is known of a group's needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Between two calls.
    pub period: Option<Duration>,
    /// What the host's daemon is to reserve for the replica's process.
    pub reserve: Option<Wanted>,
}

/// A reserve that a program is to have, and the one that it has.
#[derive(Default)]
pub(crate) struct Reserve {
    /// The daemon's socket, and the request without the process.
    wanted: Option<(PathBuf, Wanted)>,
    /// The process that has one.
    held: Option<(u32, Keeper)>,
}

impl Reserve {
    /// The program is to have this from now on. A running one is changed.
    pub fn set(&mut self, wanted: Option<(PathBuf, Wanted)>) {
        if self.wanted == wanted {
            return;
        }
        match (&wanted, &self.held) {
            (Some((_, wanted)), Some((pid, keeper))) => keeper.change(of(wanted, *pid)),
            (None, _) => self.held = None,
            (Some(_), None) => {}
        }
        self.wanted = wanted;
    }

    /// The daemon is asked for one at a start.
    pub fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Asks for a process that has just been started. Gives its priority, and how that stands.
    ///
    /// # Errors
    /// The daemon refuses: there is no room here.
    pub fn begin(&mut self, pid: u32) -> Result<Option<(u8, Grant)>, String> {
        let Some((daemon, wanted)) = &self.wanted else { return Ok(None) };
        let keeper = Keeper::start(daemon, of(wanted, pid))
            .map_err(|error| format!("no thread holds its reserve: {error}"))?;
        let granted = match keeper.standing() {
            Standing::Refused(why) => return Err(format!("its reserve is refused: {why}")),
            Standing::InForce(enforced, degraded) => {
                let priority = if let Enforced::Fifo(priority) = enforced { priority } else { 0 };
                match degraded.is_empty() {
                    true => (priority, Grant::InForce),
                    false => (priority, Grant::Refused(degraded.join("; "))),
                }
            }
            Standing::Absent(why) => (0, Grant::Refused(why)),
        };
        self.held = Some((pid, keeper));
        Ok(Some(granted))
    }

    /// The process has ended.
    pub fn end(&mut self) {
        self.held = None;
    }
}

fn of(wanted: &Wanted, pid: u32) -> Wanted {
    Wanted { process: i32::try_from(pid).ok(), ..wanted.clone() }
}
