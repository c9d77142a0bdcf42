//! The node's part in the registry (`docs/protocol/registry.md`): a thread that sees to what this
//! node has bound and, where it leads, to what is dead. It sleeps until the cluster or the registry
//! changes, or something is due.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use config::RegistryKnobs;
use os::clock::{monotonic, wall_clock};
use os::threads;
use registry::{Registrar, Terms};
use wire::{Duration, Time};

use crate::control::Control;
use crate::error::{StartError, Stopped};
use crate::order::Order;

mod service;
mod view;

pub(crate) use service::{RegistryService, SharedRegistry};
pub(crate) use view::View;

/// How often all is looked at when nothing has changed.
const PERIOD: Duration = Duration::from_millis(500);

/// The thread's other end. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Registering {
    shared: SharedRegistry,
}

impl Registering {
    /// Begins to look and to ask. `running` is dropped when the thread ends.
    pub fn start(
        knobs: RegistryKnobs,
        shared: SharedRegistry,
        control: Arc<Control>,
        running: Sender<()>,
    ) -> Result<Registering, StartError> {
        let terms = knobs.groups.map(|technique| Terms { technique, ..knobs.terms });
        let registrar = Registrar::new(control.me, terms);
        let worker = Worker { control, registrar, shared: shared.clone(), _running: running };
        threads::spawn("steadfast registry", move || worker.run())
            .map_err(|source| StartError::System { what: "a thread", source })?;
        Ok(Registering { shared })
    }
}

impl Drop for Registering {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

struct Worker {
    control: Arc<Control>,
    registrar: Registrar,
    shared: SharedRegistry,
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
        let view = self.control.sight()?;
        let (now, wall) = (monotonic(), Time(wall_clock()));
        let latest = now + PERIOD;
        let Some(View { sight, .. }) = view else { return Ok(latest) };
        let registry = self.shared.get();
        for command in self.registrar.look(now, wall, &sight, &registry) {
            if let registry::Command::Dead(dead) = &command {
                for it in dead {
                    tracing::info!(name = it.name, address = %it.address, "it is dead: its name is to be free of it");
                }
            }
            self.control.order(Order::Register { command, reply: None })?;
        }
        let next = self.registrar.next_look(now, wall, &sight, &registry);
        Ok(next.map_or(latest, |at| at.min(latest)))
    }
}
