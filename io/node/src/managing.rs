//! The node's manager: a thread that looks at its host, tells what it sees, and asks for what
//! follows from what all have told (`docs/protocol/manager.md`). It may take its time: the data
//! plane waits for nothing here.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use config::ManagerKnobs;

use manager::{Manager, Proposal};
use os::clock::monotonic;
use os::threads;
use wire::{RingId, Time};

use crate::control::Control;
use crate::error::{StartError, Stopped};
use crate::order::Order;

mod clocks;
mod diff;
mod own;
mod reconciler;
mod sampler;
mod service;
mod terms;
mod trials;
mod view;

pub(crate) use clocks::Clocks;
pub(crate) use service::{ManagerService, SharedState};
pub(crate) use view::View;

use reconciler::Reconciler;
use sampler::Sampler;

/// The thread's other end. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Managing {
    _stop: Sender<()>,
}

impl Managing {
    /// Begins to look, tell and ask. `running` is dropped when the thread ends.
    pub fn start(
        knobs: ManagerKnobs,
        shared: SharedState,
        control: Arc<Control>,
        clocks: Clocks,
        running: Sender<()>,
    ) -> Result<Managing, StartError> {
        let sampler = Sampler::open(&knobs, clocks)?;
        let (stop, stopped) = channel();
        let manager = Manager::new(knobs.manager());
        let reconciler = Reconciler::new(control.clone());
        let worker = Worker {
            knobs,
            reconciler,
            shared,
            version: 0,
            looked: None,
            control,
            sampler,
            manager,
            due: false,
            seen: None,
            ring: RingId::default(),
            _running: running,
        };
        threads::spawn("steadfast manage", move || worker.run(&stopped))
            .map_err(|source| StartError::System { what: "a thread", source })?;
        Ok(Managing { _stop: stop })
    }
}

struct Worker {
    knobs: ManagerKnobs,
    control: Arc<Control>,
    sampler: Sampler,
    manager: Manager,
    reconciler: Reconciler,
    shared: SharedState,
    /// The cluster state that was looked at last.
    version: u64,
    /// When it looked last at all there is.
    looked: Option<Time>,
    /// The others have yet to be told.
    due: bool,
    /// How many changes there had been at the last look.
    seen: Option<u64>,
    /// The configuration in which the others were told.
    ring: RingId,
    _running: Sender<()>,
}

impl Worker {
    /// Until the node stops.
    fn run(mut self, stopped: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(self.knobs.sample) {
            if self.step().is_err() {
                return;
            }
        }
    }

    fn step(&mut self) -> Result<(), Stopped> {
        let now = monotonic();
        match self.sampler.look(now, self.control.programs.as_ref()) {
            Ok(due) => self.due |= due,
            // The next one may be better; what was told last gets old meanwhile, and people see
            // that.
            Err(error) => tracing::debug!(%error, "the host's use cannot be seen"),
        }
        if self.due {
            self.due = !self.control.tell_usage(self.sampler.usage())?;
        }
        let rests = self.looked.is_some_and(|at| now < at + reconciler::PERIOD);
        let version = self.shared.cluster_state().version();
        let same = std::mem::replace(&mut self.version, version) == version;
        if rests && same && self.seen == Some(self.control.changes()) {
            return Ok(());
        }
        let view = self.control.view()?;
        self.looked = Some(now);
        let capacity = self.sampler.usage().capacity;
        self.reconciler.look(now, &view, capacity)?;
        if self.seen.replace(view.changes) == Some(view.changes) {
            return Ok(());
        }
        let picture = view.picture;
        if picture.ring != self.ring {
            // Somebody may be there who has not heard it.
            self.ring = picture.ring;
            self.due = true;
        }
        for proposal in self.manager.look(now, picture) {
            if let Proposal::Move { group, from, to } = &proposal {
                tracing::info!(%group, %from, %to, "a primary is to leave a host that has too much to do");
            }
            self.control.order(Order::Proposal(proposal))?;
        }
        Ok(())
    }
}
