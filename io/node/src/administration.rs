//! The node as its admin server asks it, and where administrators come in.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use admin::bench::{Ask, Progress};
use admin::deployments::{DeploymentsStatus, SeatStatus};
use admin::events::{Interest, Stamped};
use admin::registry::RegistryStatus;
use admin::server::{Done, Entrance, Handler, Server, farewell};
use admin::status::{ProgramStatus, Status};
use admin::{KeyAsk, PoisonedCall};
use config::ProgramConfig;
use engine::{BenchError, BenchResult};
use manager::book::{Answer, Command, Deployment};
use registry::{Ask as RegistryAsk, Epoch, Terms};
use store::backup::Backup;
use wire::ordered::Style;
use wire::{Duration, Member, NodeId, ViewNumber};

use crate::control::Control;
use crate::error::StartError;
use crate::sockets::gate::{Gate, Guest, Manners};

/// The running server, and its gate for other hosts. The gate closes first.
#[derive(Debug)]
pub(crate) struct Admin {
    gate: Option<Gate>,
    _server: Server,
}

impl Admin {
    /// Serves at a Unix socket, at a TCP port, at both, or nowhere.
    pub fn start(
        path: Option<&Path>,
        port: Option<(SocketAddr, tls::Server)>,
        control: Arc<Control>,
    ) -> Result<Admin, StartError> {
        let mut server = Server::new(control.clone());
        let gate = match (port, server.entrance()) {
            (Some((address, tls)), Some(entrance)) => Some(open_gate(address, tls, entrance)?),
            _ => None,
        };
        if let Some(gate) = &gate {
            // The first and only time.
            let _ = control.admin_tally.set(gate.tally());
        }
        if let Some(path) = path {
            server.listen(path)?;
        }
        Ok(Admin { gate, _server: server })
    }

    /// Where the port is, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.gate.as_ref().map(Gate::address)
    }
}

/// Takes in, from other hosts too, those whose certificate is an administrator's.
fn open_gate(
    address: SocketAddr,
    tls: tls::Server,
    entrance: Entrance,
) -> Result<Gate, StartError> {
    let admit = move |guest: Guest| {
        let Guest { stream, records, input, identity } = guest;
        tracing::info!(peer = ?stream.peer_addr().ok(), %identity, "an administrator has come in");
        entrance.admit_tls(stream, records, input);
        true
    };
    let manners = Manners { admit: Box::new(admit), farewell };
    TcpListener::bind(address)
        .and_then(|listener| Gate::open(listener, tls, manners))
        .map_err(|source| StartError::Listen { what: "administrators (TCP)", address, source })
}

fn words(error: impl ToString) -> String {
    error.to_string()
}

impl Handler for Control {
    fn me(&self) -> Member {
        self.me
    }

    fn count_request(&self) {
        self.admin_requests.fetch_add(1, Ordering::Relaxed);
    }

    fn count_malformed(&self) {
        self.admin_malformed.fetch_add(1, Ordering::Relaxed);
    }

    fn status(&self) -> Status {
        Control::status(self)
    }

    fn state(&self, group: &str) -> Done<Vec<u8>> {
        Control::state(self, group).map_err(words)
    }

    fn poisoned(&self, group: &str) -> Done<Vec<PoisonedCall>> {
        Control::poisoned(self, group).map_err(words)
    }

    fn subscribe(&self, interest: Interest) -> (Vec<Stamped>, Receiver<Stamped>) {
        Control::subscribe(self, interest)
    }

    fn move_primary(&self, group: &str, to: NodeId) -> Done<ViewNumber> {
        Control::move_primary(self, group, to).map_err(words)
    }

    fn restyle(&self, group: &str, style: Style) -> Done<ViewNumber> {
        Control::restyle(self, group, style).map_err(words)
    }

    fn save(&self, group: &str) -> Done<Backup> {
        Control::save(self, group).map_err(words)
    }

    fn restore(&self, backup: Backup, replace: bool) -> Done<ViewNumber> {
        Control::restore(self, backup, replace).map_err(words)
    }

    fn discard(&self, group: &str) -> Done<()> {
        Control::discard(self, group).map_err(words)
    }

    fn key(&self, ask: KeyAsk) -> Done<u8> {
        Control::key(self, ask)
    }

    fn run_program(&self, program: ProgramConfig) -> Done<ProgramStatus> {
        self.programs().and_then(|programs| programs.run(program)).map_err(words)
    }

    fn stop_program(&self, group: &str) -> Done<()> {
        self.programs().and_then(|programs| programs.stop(group)).map_err(words)
    }

    fn deployments(&self) -> Done<DeploymentsStatus> {
        Control::deployments(self)
    }

    fn preview(&self, deployment: Deployment) -> Done<Vec<SeatStatus>> {
        Control::preview(self, deployment)
    }

    fn command(&self, command: Command) -> Done<Answer> {
        Control::command(self, command)
    }

    fn registry_terms(&self) -> Terms {
        self.terms
    }

    fn registry_epoch(&self) -> Done<Epoch> {
        Ok(self.registry()?.registry().epoch())
    }

    fn wait_for_registry(&self, since: Epoch, patience: Duration) -> bool {
        self.registry().is_ok_and(|shelf| shelf.wait_since(since, patience))
    }

    fn look_up(&self, ask: &RegistryAsk) -> Done<RegistryStatus> {
        Control::look_up(self, ask)
    }

    fn register(&self, command: registry::Command) -> Done<registry::Answer> {
        Control::register(self, command)
    }

    fn bench(&self, ask: &Ask) -> Done<Receiver<Result<BenchResult, BenchError>>> {
        Control::bench(self, ask).map_err(words)
    }

    fn bench_progress(&self) -> Option<Progress> {
        Control::bench_progress(self)
    }

    fn stop_bench(&self) {
        Control::stop_bench(self);
    }

    fn why_stopped(&self) -> String {
        self.stopped().to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_server_that_is_dropped_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.sock");
        for _ in 0..2 {
            let (control, _orders) = Control::without_a_plane();
            let admin = Admin::start(Some(&path), None, Arc::new(control)).unwrap();
            assert!(UnixStream::connect(&path).is_ok());
            drop(admin);
            assert!(!path.exists(), "the next one finds its place free");
        }
    }
}
