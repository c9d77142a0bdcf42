//! The node's part in the book of jobs (`docs/protocol/jobs.md`): a thread that says, where it leads,
//! what is to start where. It sleeps until the cluster or the book changes, or something is due.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use job::{Command, Director, Jobs};
use os::clock::monotonic;
use os::threads;
use wire::{Duration, Time};

use crate::control::Control;
use crate::error::{StartError, Stopped};
use crate::order::Order;
use crate::shared::Shared;

mod service;
mod view;

pub(crate) use service::JobsService;
pub(crate) use view::View;

/// How often all is looked at when nothing has changed.
const PERIOD: Duration = Duration::from_millis(500);

/// The thread's other end. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Directing {
    shared: Shared<Jobs>,
}

impl Directing {
    /// Begins to look and to say. `running` is dropped when the thread ends.
    pub fn start(
        shared: Shared<Jobs>,
        control: Arc<Control>,
        running: Sender<()>,
    ) -> Result<Directing, StartError> {
        let director = Director::default();
        let worker = Worker { control, director, shared: shared.clone(), _running: running };
        threads::spawn("steadfast direct", move || worker.run())
            .map_err(|source| StartError::System { what: "a thread", source })?;
        Ok(Directing { shared })
    }
}

impl Drop for Directing {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

struct Worker {
    control: Arc<Control>,
    director: Director,
    shared: Shared<Jobs>,
    _running: Sender<()>,
}

impl Worker {
    /// Until the node stops.
    fn run(mut self) {
        let mut seen = 0;
        let mut due = monotonic();
        while let Some(nudges) = self.shared.wait(seen, due.since(monotonic())) {
            seen = nudges;
            match self.look() {
                Ok(at) => due = at,
                Err(_) => return,
            }
        }
    }

    /// Says what is to be said. When to look again.
    fn look(&mut self) -> Result<Time, Stopped> {
        let view = self.control.jobs_view()?;
        let now = monotonic();
        let latest = now + PERIOD;
        let Some(View { sight, leads }) = view else { return Ok(latest) };
        if leads != Some(self.control.me.node) {
            self.director = Director::default();
            return Ok(latest);
        }
        let jobs = self.shared.get();
        for command in self.director.look(now, &sight, &jobs) {
            match &command {
                Command::Gone { node } => tracing::info!(%node, "its ranks are to start elsewhere"),
                Command::Start { job, rank, start, node } => {
                    tracing::info!(job, rank, start, %node, "a rank is to start");
                }
                _ => {}
            }
            self.control.order(Order::Jobs { command, reply: None })?;
        }
        let next = self.director.next_look(now, &jobs);
        Ok(next.map_or(latest, |at| at.min(latest)))
    }
}
