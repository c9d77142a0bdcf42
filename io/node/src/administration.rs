//! The node as its admin server asks it, and where administrators come in.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, PoisonError};

use admin::bench::{Ask, Progress};
use admin::cell::{CellStatus, HandlerCall, HandlerCallEnd, Neighbour};
use admin::deployments::{DeploymentsStatus, SeatStatus};
use admin::events::{Interest, Stamped};
use admin::growth::WelcomeAnswer;
use admin::jobs::JobsStatus;
use admin::registry::RegistryStatus;
use admin::server::{AuditEntry, AuditStep, Done, Entrance, Handler, Server, farewell};
use admin::status::{NoteStatus, ProgramStatus, Status};
use admin::{KeyAsk, PoisonedCall};
use cells::{Refusal, Verdict};
use config::{NodeAddress, ProgramConfig};
use engine::GrowthError;
use job::{Assignment, Jobs, Taken, Void};
use manager::cluster_state::{Answer, Command, Deployment};
use manager::placement::preview;
use os::clock::{monotonic, wall_clock};
use registry::{Ask as RegistryAsk, Epoch, Listing, Terms};
use store::backup::Backup;
use wire::ordered::Style;
use wire::roster::Motion;
use wire::{Duration, Member, NodeId, Time, ViewNumber};

use crate::control::{ANSWER_WITHIN, Control};
use crate::error::{GrowthRefused, StartError, Stopped};
use crate::order::{BenchOutcome, Order};
use crate::sockets::gate::{Gate, Guest, Manners};

/// This node cannot say anything of deployments.
const NO_BOOK: &str = "this node does not know what is deployed: set on = true in [manager] of every node; if it is, its replica of the manager's group \
                       has not got the state (`steadfast status` shows steadfast.manager, and whether there is a quorum)";

/// No answer came of a command.
const UNANSWERED: &str = "the manager's group did not answer in time, and whether it will do it nobody knows: look at `steadfast deployments`, and at \
                          `steadfast status` whether there is a quorum";

/// No answer came of what was said to the registry.
const UNREGISTERED: &str = "the registry did not answer in time, and whether it will do it nobody knows: look at `steadfast registry list`, and at \
                            `steadfast status` whether there is a quorum";

/// This node cannot say anything of jobs now.
const NO_JOBS: &str = "this node does not have the book of jobs now: its replica has not got the state, or there is no quorum \
                       (`steadfast status` shows steadfast.jobs)";

/// No answer came of what was said to the book of jobs.
const UNTOLD: &str = "the book of jobs did not answer in time, and whether it has the command nobody knows: look at `steadfast job list`, and at \
                      `steadfast status` whether there is a quorum";

/// This node does not know its cell now.
const NO_CELL_YET: &str = "this node does not have its cell's book yet: wait until it is started";

/// No answer came of what was said to the cell's book.
const UNSEATED: &str = "the cell's book did not answer in time, and whether it will do it nobody knows: look at `steadfast cell tree`, and at \
                        `steadfast status` whether there is a quorum";

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
        // The first and only time, too.
        let _ = control.renewal.connections.set(server.connections());
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
        let Guest { stream, records, input, peer } = guest;
        let identity = &peer.identity;
        tracing::info!(peer = ?stream.peer_addr().ok(), %identity, "somebody has come in to administrate");
        entrance.admit_tls(stream, records, input);
        true
    };
    let manners = Manners { admit: Box::new(admit), farewell };
    TcpListener::bind(address)
        .and_then(|listener| Gate::open(listener, tls, manners))
        .map_err(|source| StartError::Listen { what: "administrators (TCP)", address, source })
}

/// The target of lines about administrators in the node's log.
const AUDIT: &str = "steadfast_node::audit";

fn words(error: impl ToString) -> String {
    error.to_string()
}

fn unless_hung(stopped: Stopped, unanswered: &str) -> String {
    if stopped == Stopped::Hung { unanswered.into() } else { stopped.to_string() }
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

    fn audit(&self, entry: &AuditEntry) {
        let AuditEntry { connection, who, step, .. } = entry;
        match step {
            AuditStep::Asked(asked) => {
                tracing::info!(target: AUDIT, connection, who, %asked, "an administrator");
            }
            AuditStep::Done => {
                tracing::info!(target: AUDIT, connection, who, "an administrator, done");
            }
            AuditStep::Refused(why) => {
                tracing::warn!(target: AUDIT, connection, who, why, "an administrator, refused");
            }
        }
        if let Some(Err(error)) = self.audit_log.as_ref().map(|log| log.add(entry)) {
            tracing::error!(%error, "the audit log cannot be written, or begun anew");
        }
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
        let done = self.ask(ANSWER_WITHIN, |reply| Order::Key { ask, reply });
        done.map_err(words)?
    }

    fn reload(&self) -> Done<Vec<String>> {
        Control::reload(self).map_err(words)
    }

    fn finish_upgrade(&self) -> Done<u8> {
        let done = self.ask(ANSWER_WITHIN, |reply| Order::FinishUpgrade { reply });
        done.map_err(words)?.map_err(words)
    }

    fn welcome(&self, asks: Option<NodeId>) -> Done<WelcomeAnswer> {
        if let Some(asks) = asks.filter(|asks| Control::status(self).nodes.retired.contains(asks)) {
            return Err(GrowthRefused::from(GrowthError::Retired(asks)).to_string());
        }
        let nodes = self.ask(ANSWER_WITHIN, |reply| Order::Nodes { reply }).map_err(words)?;
        let read = |path: &PathBuf| {
            let text = std::fs::read_to_string(path);
            text.map_err(|error| format!("the cluster's key {}: {error}", path.display()))
        };
        let cluster_key = self.cluster_key.as_ref().map(read).transpose()?;
        Ok(WelcomeAnswer { cluster: self.cluster.clone(), nodes, cluster_key })
    }

    fn admit(&self, node: NodeAddress) -> Done<()> {
        Control::admit(self, node).map_err(words)
    }

    fn retire(&self, node: NodeId) -> Done<()> {
        self.move_node(Motion::Retire(node)).map_err(words)
    }

    fn give_up_move(&self) -> Done<()> {
        let done = self.ask(ANSWER_WITHIN, |reply| Order::WithdrawMove { reply });
        done.map_err(words)?.map_err(words)
    }

    fn run_program(&self, program: ProgramConfig) -> Done<ProgramStatus> {
        self.programs().and_then(|programs| programs.run(program)).map_err(words)
    }

    fn stop_program(&self, group: &str) -> Done<()> {
        self.programs().and_then(|programs| programs.stop(group)).map_err(words)
    }

    fn deployments(&self) -> Done<DeploymentsStatus> {
        let view = self.view().map_err(words)?;
        let Some(cluster_state) = &view.cluster_state else { return Err(NO_BOOK.into()) };
        let notes = |group: &str| {
            let notes = view.notes.get(group).cloned().unwrap_or_default();
            notes.into_iter().map(NoteStatus::from).collect()
        };
        Ok(DeploymentsStatus::new(Time(wall_clock()), &view.picture, cluster_state, notes))
    }

    fn preview(&self, deployment: Deployment) -> Done<Vec<SeatStatus>> {
        let view = self.view().map_err(words)?;
        let Some(cluster_state) = &view.cluster_state else { return Err(NO_BOOK.into()) };
        let seats = preview(Time(wall_clock()), &view.picture, cluster_state, deployment);
        let seats = seats.map_err(words)?;
        Ok(seats.into_iter().map(SeatStatus::from).collect())
    }

    fn command(&self, command: Command) -> Done<Answer> {
        let ask = |reply| Order::Command { command, reply: Some(reply) };
        self.ask(ANSWER_WITHIN, ask).map_err(|stopped| unless_hung(stopped, UNANSWERED))?
    }

    fn registry_terms(&self) -> Terms {
        self.terms
    }

    fn registry_epoch(&self) -> Done<Epoch> {
        Ok(self.registry()?.get().epoch())
    }

    fn wait_for_registry(&self, since: Epoch, timeout: Duration) -> bool {
        self.registry().is_ok_and(|shared| shared.wait_while(timeout, |it| it.epoch() == since))
    }

    fn look_up(&self, ask: &RegistryAsk) -> Done<RegistryStatus> {
        let shared = self.registry()?;
        let view = self.sight().map_err(words)?;
        let Listing { epoch, bindings } = shared.get().answer(ask);
        Ok(RegistryStatus {
            node: self.me.node,
            leads: view.as_ref().and_then(|view| view.leads),
            current: view.is_some(),
            epoch,
            bindings,
        })
    }

    fn register(&self, command: registry::Command) -> Done<registry::Answer> {
        self.registry()?;
        let ask = |reply| Order::Register { command, reply: Some(reply) };
        self.ask(ANSWER_WITHIN, ask).map_err(|stopped| unless_hung(stopped, UNREGISTERED))?
    }

    fn jobs(&self, since: Option<u64>) -> Done<JobsStatus> {
        let shared = self.jobs_book()?;
        let view = self.jobs_view().map_err(words)?;
        let jobs = shared.get();
        let version = jobs.version();
        Ok(JobsStatus {
            node: self.me.node,
            leads: view.as_ref().and_then(|view| view.leads),
            current: view.is_some(),
            version,
            jobs: (since != Some(version)).then(|| Jobs::clone(&jobs)),
        })
    }

    fn wait_for_jobs(&self, since: u64, timeout: Duration) -> bool {
        self.jobs_book().is_ok_and(|shared| shared.wait_while(timeout, |it| it.version() == since))
    }

    fn assignment(&self) -> Done<Assignment> {
        let shared = self.jobs_book()?;
        // An empty book, of a replica that has yet to get the state, would have images removed.
        match self.jobs_view().map_err(words)? {
            Some(_) => Ok(shared.get().assignment(self.me)),
            None => Err(NO_JOBS.into()),
        }
    }

    fn tell_jobs(&self, command: job::Command) -> Done<Result<Taken, Void>> {
        self.jobs_book()?;
        let ask = |reply| Order::Jobs { command, reply: Some(reply) };
        self.ask(ANSWER_WITHIN, ask).map_err(|stopped| unless_hung(stopped, UNTOLD))?
    }

    fn cell(&self) -> Done<CellStatus> {
        let shared = self.cell_book()?;
        // A change after this makes another version.
        let version = shared.nudges();
        let ranks = self.cell_ranks().map_err(words)?;
        let book = shared.get();
        let book = book.as_ref().as_ref().ok_or(NO_CELL_YET)?;
        let neighbours = self.neighbours.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(CellStatus { neighbours, ..CellStatus::new(self.me, version, ranks, book) })
    }

    fn wait_for_cell(&self, since: u64, timeout: Duration) -> bool {
        self.cell_book().is_ok_and(|shared| shared.wait(since, timeout) == Some(since))
    }

    fn tell_cell(&self, command: cells::Command) -> Done<Result<Verdict, Refusal>> {
        self.cell_book()?;
        let ask = |reply| Order::Cell { command, reply };
        self.ask(ANSWER_WITHIN, ask).map_err(|stopped| unless_hung(stopped, UNSEATED))?
    }

    fn handler_calls(&self, since: u64) -> Vec<HandlerCall> {
        self.away.get().beyond(monotonic(), since)
    }

    fn wait_for_handler_calls(&self, since: u64, timeout: Duration) -> bool {
        self.away.wait_while(timeout, |calls| !calls.has_beyond(since))
    }

    fn end_handler_call(&self, ended: HandlerCallEnd) -> Done<()> {
        let end = ended.end().ok_or("the end is none of this version")?;
        match self.away.change(|calls| calls.ended(ended.number, end)) {
            Some((wait, end)) => self.order(Order::AwayEnded(wait, end)).map_err(words),
            None => Ok(()),
        }
    }

    fn keep_neighbours(&self, neighbours: Vec<Neighbour>) {
        *self.neighbours.lock().unwrap_or_else(PoisonError::into_inner) = neighbours;
    }

    fn bench(&self, ask: &Ask) -> Done<Receiver<BenchOutcome>> {
        let (reply, outcome) = sync_channel(1);
        self.order(Order::Bench { request: ask.request(), reply }).map_err(words)?;
        Ok(outcome)
    }

    fn bench_progress(&self) -> Option<Progress> {
        let progress = self.ask(ANSWER_WITHIN, |reply| Order::BenchProgress { reply });
        progress.ok().flatten().map(Progress::from)
    }

    fn stop_bench(&self) {
        // A node that has stopped carries no load either.
        let _ = self.order(Order::StopBench);
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
