//! A program's reserve at the host's daemon.

use std::path::PathBuf;

use engine::ReserveNews;
use os::realtime::Grant;
use qosd::{Enforced, Keeper, Standing, Wanted};
use wire::Duration;

/// The known needs of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Between two calls.
    pub period: Option<Duration>,
    /// The reserve of the replica's process at the host's daemon.
    pub reserve: Option<Wanted>,
}

/// A reserve that a program is to have, and the one that it has.
#[derive(Default)]
pub(crate) struct Reserve {
    /// The daemon's socket, and the request without the process.
    wanted: Option<(PathBuf, Wanted)>,
    /// The process that has one.
    held: Option<(u32, Keeper)>,
    /// How the last request stands, not told yet.
    news: Option<ReserveNews>,
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
        let (priority, degraded) = match keeper.standing() {
            Standing::Refused(why) => {
                self.news = Some(ReserveNews::Refused { why: why.clone() });
                return Err(format!("its reserve is refused: {why}"));
            }
            Standing::InForce(Enforced::Fifo(priority), degraded) => (priority, degraded),
            Standing::InForce(_, degraded) => (0, degraded),
            Standing::Absent(why) => (0, vec![why]),
        };
        self.held = Some((pid, keeper));
        let (grant, news) = match degraded.is_empty() {
            true => (Grant::InForce, ReserveNews::InForce { by: format!("SCHED_FIFO {priority}") }),
            false => {
                let why = degraded.join("; ");
                (Grant::Refused(why.clone()), ReserveNews::Degraded { why })
            }
        };
        self.news = Some(news);
        Ok(Some((priority, grant)))
    }

    /// How the last request stands, to be told once: the path, and the news.
    pub fn take_news(&mut self) -> Option<(String, ReserveNews)> {
        let (_, wanted) = self.wanted.as_ref()?;
        self.news.take().map(|news| (wanted.path.clone(), news))
    }

    /// The process has ended.
    pub fn end(&mut self) {
        self.held = None;
    }
}

fn of(wanted: &Wanted, pid: u32) -> Wanted {
    Wanted { process: i32::try_from(pid).ok(), ..wanted.clone() }
}
