//! The other end of a node's admin socket or port.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::BytesMut;
use config::ProgramConfig;
use serde::de::DeserializeOwned;

use wire::NodeId;
use wire::ordered::Style;

use job::{Taken, Void};
use manager::cluster_state::Deployment;
use registry::{Address, Epoch, Terms};

use crate::bench::{Ask, Outcome, Progress};
use crate::cell::{CellAnswer, CellStatus, HandlerCall, HandlerCallEnd, Neighbour};
use crate::deployments::DeploymentsStatus;
use crate::events::EventRecord;
use crate::hex::from_hex;
use crate::jobs::{AssignmentAnswer, JobsAnswer, JobsStatus};
use crate::message::{
    BenchLine, DeployAnswer, DoneAnswer, KeyAnswer, KeyAsk, LevelAnswer, MoveAnswer, Refused,
    ReloadAnswer, Request, RestoreAnswer, RestyleAnswer, SaveAnswer, StateAnswer, StopAnswer,
};
use crate::poisoned::PoisonedAnswer;
use crate::registry::RegistryStatus;
use crate::status::{ProgramStatus, Status};
use crate::stream::{Distrusted, Stream, Tls};

mod growth;

/// Longer than a node waits for a program, or for a state.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(70);

/// Bytes of a file that are written at a time.
const PIECE: usize = 64 << 10;

/// A node's admin socket cannot be used, or refuses.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Nobody answers there.
    #[error("no node answers at {}: {source}; is it running, with this path as `admin`?", path.display())]
    Connect {
        /// The socket's path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Nobody answers at this port.
    #[error(
        "no node answers at {address}: {source}; is it running, with this address as listen.admin?"
    )]
    Dial {
        /// The port.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// TLS with the node failed: one side does not trust the other. The text says what to do.
    #[error("the node cannot be reached by TLS: {0}")]
    Distrusted(String),
    /// The connection broke.
    #[error("the admin connection failed: {0}; is the node still running?")]
    Io(io::Error),
    /// The answer is none of this version.
    #[error("the node's answer is not understood ({0}): use programs of the same version")]
    Answer(#[from] serde_json::Error),
    /// The node says no.
    #[error("the node refuses: {0}")]
    Refused(String),
}

impl From<io::Error> for AdminError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(Distrusted(words)) => AdminError::Distrusted(words.clone()),
            None => AdminError::Io(error),
        }
    }
}

/// A connection to a node's admin socket or port.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<Stream>,
}

impl Client {
    /// Connects to the node whose configuration says `admin = path`.
    ///
    /// # Errors
    /// Nobody answers there.
    pub fn connect(path: impl AsRef<Path>) -> Result<Client, AdminError> {
        let path = path.as_ref();
        let stream = UnixStream::connect(path)
            .map_err(|source| AdminError::Connect { path: path.into(), source })?;
        Ok(Client { stream: BufReader::new(Stream::Unix(stream)) })
    }

    /// Connects to the node whose configuration says `listen.admin = address`, from any host, with
    /// an administrator's certificate. `timeout` bounds the dial and each step of the handshake.
    ///
    /// # Errors
    /// Nobody answers there, or one side does not trust the other. That the node does not is found
    /// out with the first question.
    pub fn connect_tls(
        address: SocketAddr,
        tls: &tls::Client,
        timeout: Duration,
    ) -> Result<Client, AdminError> {
        let dial = |source| AdminError::Dial { address, source };
        let socket = TcpStream::connect_timeout(&address, timeout).map_err(dial)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_nodelay(true)?;
        let mut stream = Tls::new(socket, Box::new(tls.connect(address)), BytesMut::new())?;
        stream.shake()?;
        let stream = Stream::Tls(stream);
        stream.set_read_timeout(None)?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Bounds the wait for each answer.
    ///
    /// # Errors
    /// A zero time.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> Result<(), AdminError> {
        self.stream.get_ref().set_read_timeout(timeout)?;
        Ok(())
    }

    /// Returns the node's status.
    ///
    /// # Errors
    /// The connection broke.
    pub fn status(&mut self) -> Result<Status, AdminError> {
        self.ask(&Request::Status {})
    }

    /// The state of the node's replica of a group, and its digest.
    ///
    /// # Errors
    /// It has none, or the connection broke.
    pub fn state(&mut self, group: &str) -> Result<(StateAnswer, Vec<u8>), AdminError> {
        let mut answer: StateAnswer =
            self.ask(&Request::State { group: group.into(), bytes: true })?;
        let hex = answer.state_hex.take().unwrap_or_default();
        let state = from_hex(&hex)
            .ok_or_else(|| AdminError::Refused("the state is not in hexadecimal digits".into()))?;
        Ok((answer, state))
    }

    /// The digest alone of the state of the node's replica of a group.
    ///
    /// # Errors
    /// It has none, or the connection broke.
    pub fn digest(&mut self, group: &str) -> Result<StateAnswer, AdminError> {
        self.ask(&Request::State { group: group.into(), bytes: false })
    }

    /// The calls that services of a group died of, as the node's replica has them.
    ///
    /// # Errors
    /// It has none, or the connection broke.
    pub fn poisoned(&mut self, group: &str) -> Result<PoisonedAnswer, AdminError> {
        self.ask(&Request::Poisoned { group: group.into() })
    }

    /// Has the node run a program, and waits until it serves or has failed to: up to some forty
    /// seconds, whatever [`set_timeout`](Client::set_timeout) says.
    ///
    /// # Errors
    /// Why it does not serve, or the connection broke.
    pub fn run(&mut self, program: &ProgramConfig) -> Result<ProgramStatus, AdminError> {
        self.patiently(&Request::Run(program.clone()))
    }

    /// Has the program that serves this group at the node ended, and waits for that.
    ///
    /// # Errors
    /// There is none, or the connection broke.
    pub fn stop_program(&mut self, group: &str) -> Result<StopAnswer, AdminError> {
        self.patiently(&Request::StopProgram { group: group.into() })
    }

    /// Has a service deployed, or only asks where it would go.
    ///
    /// # Errors
    /// The manager refuses, or the connection broke.
    pub fn deploy(
        &mut self,
        deployment: &Deployment,
        dry: bool,
    ) -> Result<DeployAnswer, AdminError> {
        self.ask(&Request::Deploy { deployment: Box::new(deployment.clone()), dry })
    }

    /// Has a deployment end.
    ///
    /// # Errors
    /// The manager refuses, or the connection broke.
    pub fn withdraw(&mut self, group: &str) -> Result<DoneAnswer, AdminError> {
        self.ask(&Request::Withdraw { group: group.into() })
    }

    /// Has a node emptied. It has begun when this returns; [`deployments`](Client::deployments)
    /// tells how far it is.
    ///
    /// # Errors
    /// The manager refuses, or the connection broke.
    pub fn drain(&mut self, node: NodeId) -> Result<DoneAnswer, AdminError> {
        self.ask(&Request::Drain { node })
    }

    /// Lets a node have replicas again.
    ///
    /// # Errors
    /// The manager refuses, or the connection broke.
    pub fn give_back(&mut self, node: NodeId) -> Result<DoneAnswer, AdminError> {
        self.ask(&Request::Return { node })
    }

    /// Returns the deployments and their places.
    ///
    /// # Errors
    /// The node has no such state, or the connection broke.
    pub fn deployments(&mut self) -> Result<DeploymentsStatus, AdminError> {
        self.ask(&Request::Deployments {})
    }

    /// Returns the names and their bindings: at once, or once the epoch differs from `since`, or
    /// after `timeout` (at most a minute).
    ///
    /// # Errors
    /// The node has no part in the registry, or the connection broke.
    pub fn registry(
        &mut self,
        name: Option<&str>,
        since: Option<Epoch>,
        timeout: Duration,
    ) -> Result<RegistryStatus, AdminError> {
        let wait_ms = timeout.as_millis().try_into().unwrap_or(u32::MAX);
        self.patiently(&Request::Registry { name: name.map(String::from), since, wait_ms })
    }

    /// Returns the book of jobs: at once, or once it has another version than `since`, or after
    /// `timeout` (at most a minute).
    ///
    /// # Errors
    /// The node has no part in it, or the connection broke.
    pub fn jobs(
        &mut self,
        since: Option<u64>,
        timeout: Duration,
    ) -> Result<JobsStatus, AdminError> {
        let wait_ms = timeout.as_millis().try_into().unwrap_or(u32::MAX);
        self.patiently(&Request::Jobs { since, wait_ms })
    }

    /// Returns the node's copy of its cell's book: at once, or once it has another version than
    /// `since`, or after `timeout` (at most a minute).
    ///
    /// # Errors
    /// The node is of no cell, or the connection broke.
    pub fn cell(
        &mut self,
        since: Option<u64>,
        timeout: Duration,
    ) -> Result<CellStatus, AdminError> {
        let wait_ms = timeout.as_millis().try_into().unwrap_or(u32::MAX);
        self.patiently(&Request::Cell { since, wait_ms })
    }

    /// Returns the calls that handlers at the node make of groups of other cells, beyond this number:
    /// once there is one, or after `timeout` (at most a minute).
    ///
    /// # Errors
    /// The connection broke.
    pub fn handler_calls(
        &mut self,
        since: u64,
        timeout: Duration,
    ) -> Result<Vec<HandlerCall>, AdminError> {
        let wait_ms = timeout.as_millis().try_into().unwrap_or(u32::MAX);
        self.patiently(&Request::HandlerCalls { since, wait_ms })
    }

    /// Tells the node how one of them has ended.
    ///
    /// # Errors
    /// The end cannot be read, or the connection broke.
    pub fn end_handler_call(&mut self, end: HandlerCallEnd) -> Result<(), AdminError> {
        self.ask(&Request::EndHandlerCall(end)).map(|DoneAnswer { .. }| ())
    }

    /// Tells the node which links the process beside it has.
    ///
    /// # Errors
    /// They are too many, or the connection broke.
    pub fn tell_neighbours(&mut self, neighbours: Vec<Neighbour>) -> Result<(), AdminError> {
        self.ask(&Request::TellNeighbours(neighbours)).map(|DoneAnswer { .. }| ())
    }

    /// Says something to the cell's book, and tells its answer. At another host's node only what
    /// people say.
    ///
    /// # Errors
    /// The node is of no cell, the book does not answer, or the connection broke.
    pub fn tell_cell(
        &mut self,
        command: &cells::Command,
    ) -> Result<Result<cells::Verdict, cells::Refusal>, AdminError> {
        let answer: CellAnswer = self.ask(&Request::TellCell(Box::new(command.clone())))?;
        Ok(answer.into())
    }

    /// Returns the book's wishes for the node, as above.
    ///
    /// # Errors
    /// The node does not have the book now, or the connection broke.
    pub fn assignment(
        &mut self,
        since: Option<u64>,
        timeout: Duration,
    ) -> Result<AssignmentAnswer, AdminError> {
        let wait_ms = timeout.as_millis().try_into().unwrap_or(u32::MAX);
        self.patiently(&Request::Assignment { since, wait_ms })
    }

    /// Says something to the book of jobs, and tells its answer.
    ///
    /// # Errors
    /// Nobody answers for it now, or the connection broke.
    pub fn tell_jobs(&mut self, command: &job::Command) -> Result<Result<Taken, Void>, AdminError> {
        match self.ask(&Request::TellJobs(Box::new(command.clone())))? {
            JobsAnswer::Taken(taken) => Ok(Ok(taken)),
            JobsAnswer::Void(void) => Ok(Err(void)),
        }
    }

    /// Binds a name for as long as this node lives, and tells the registry's answer.
    ///
    /// # Errors
    /// The registry refuses, or the connection broke.
    pub fn bind(
        &mut self,
        name: &str,
        address: &str,
        terms: Option<Terms>,
    ) -> Result<registry::Answer, AdminError> {
        self.ask(&Request::Bind { name: name.into(), address: address.into(), terms })
    }

    /// Ends a binding, even if another client made it.
    ///
    /// # Errors
    /// The registry refuses, or the connection broke.
    pub fn unbind(&mut self, name: &str, address: Address) -> Result<registry::Answer, AdminError> {
        self.ask(&Request::Unbind { name: name.into(), address })
    }

    /// Asks what is not answered at once. The node itself gives up before this does.
    fn patiently<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, AdminError> {
        let before = self.stream.get_ref().read_timeout()?;
        self.set_timeout(Some(PROGRAM_TIMEOUT))?;
        let answer = self.ask(request);
        self.set_timeout(before)?;
        answer
    }

    /// Has the cluster's key changed, or something done about the change that is under way. It has
    /// begun when this returns; the status tells how far it is.
    ///
    /// # Errors
    /// The node refuses, or the connection broke.
    pub fn key(&mut self, ask: KeyAsk) -> Result<KeyAnswer, AdminError> {
        self.ask(&Request::Key { ask })
    }

    /// Has the newest rules come into force that every configured node knows: then there is no way
    /// back to the program before. It has begun when this returns; the status tells the level.
    ///
    /// # Errors
    /// The cluster refuses, or the connection broke.
    pub fn finish_upgrade(&mut self) -> Result<LevelAnswer, AdminError> {
        self.ask(&Request::FinishUpgrade {})
    }

    /// Has the node read its configuration again.
    ///
    /// # Errors
    /// The configuration is of no use, and nothing has changed; or the connection broke.
    pub fn reload(&mut self) -> Result<ReloadAnswer, AdminError> {
        self.ask(&Request::Reload {})
    }

    /// Makes the replica at node `to` the primary of a group; returns when it is.
    ///
    /// # Errors
    /// The cluster refuses, the other node does not take over, or the connection broke.
    pub fn move_primary(&mut self, group: &str, to: NodeId) -> Result<MoveAnswer, AdminError> {
        self.ask(&Request::Move { group: group.into(), to })
    }

    /// Gives a group another style; returns when it has it.
    ///
    /// # Errors
    /// The cluster refuses, or the connection broke.
    pub fn restyle(&mut self, group: &str, style: Style) -> Result<RestyleAnswer, AdminError> {
        self.ask(&Request::Restyle { group: group.into(), style })
    }

    /// The state of a group with its sessions, as a file; the node's replica must have it. A large
    /// one takes a while, whatever
    /// [`set_timeout`](Client::set_timeout) says.
    ///
    /// # Errors
    /// The node refuses, or the connection broke.
    pub fn save(&mut self, group: &str) -> Result<Vec<u8>, AdminError> {
        let SaveAnswer { bytes, .. } = self.patiently(&Request::Save { group: group.into() })?;
        let mut file = Vec::new();
        (&mut self.stream).take(bytes as u64).read_to_end(&mut file)?;
        if file.len() < bytes {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(file)
    }

    /// Has a group begin with the state in a file; returns when that is so. With `replace` what it
    /// has executed is given up for it.
    ///
    /// # Errors
    /// The node or the cluster refuses, or the connection broke.
    pub fn restore(
        &mut self,
        group: &str,
        file: &[u8],
        replace: bool,
    ) -> Result<RestoreAnswer, AdminError> {
        let before = self.stream.get_ref().read_timeout()?;
        self.set_timeout(Some(PROGRAM_TIMEOUT))?;
        self.send(&Request::Restore { group: group.into(), bytes: file.len(), replace })?;
        file.chunks(PIECE).try_for_each(|piece| self.stream.get_mut().write_all(piece))?;
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let answer = self.receive()?.ok_or_else(|| ended().into());
        self.set_timeout(before)?;
        answer
    }

    /// Has a group begin without the state that it waits for.
    ///
    /// # Errors
    /// The node refuses, or the connection broke.
    pub fn discard(&mut self, group: &str) -> Result<DoneAnswer, AdminError> {
        self.ask(&Request::Discard { group: group.into() })
    }

    /// The node's last events and, if `follow`, all from here on; `calls` adds to these those that
    /// every call makes.
    ///
    /// # Errors
    /// The connection broke.
    pub fn events(mut self, follow: bool, calls: bool) -> Result<Events, AdminError> {
        self.send(&Request::Events { follow, calls })?;
        Ok(Events { client: self })
    }

    /// Measures the ring, and waits for what comes of it. `progress` is told now and then how far
    /// it is. Dropping the connection ends the benchmark.
    ///
    /// # Errors
    /// The node refuses, the configuration changed meanwhile, or the connection broke.
    pub fn bench(
        &mut self,
        ask: &Ask,
        mut progress: impl FnMut(Progress),
    ) -> Result<Outcome, AdminError> {
        self.send(&Request::Bench(ask.clone()))?;
        loop {
            let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
            match self.receive::<BenchLine>()?.ok_or_else(ended)? {
                BenchLine::Progress(how_far) => progress(how_far),
                BenchLine::Outcome(outcome) => return Ok(*outcome),
            }
        }
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, AdminError> {
        self.send(request)?;
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        self.receive()?.ok_or_else(|| ended().into())
    }

    fn send(&mut self, request: &Request) -> Result<(), AdminError> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        Ok(self.stream.get_mut().write_all(&line)?)
    }

    /// The next answer, or `None` at the end.
    fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, AdminError> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if let Ok(Refused { error }) = serde_json::from_str(&line) {
            return Err(AdminError::Refused(error));
        }
        Ok(Some(serde_json::from_str(&line)?))
    }
}

/// A node's events, as they come.
#[derive(Debug)]
pub struct Events {
    client: Client,
}

impl Iterator for Events {
    type Item = Result<EventRecord, AdminError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.client.receive().transpose()
    }
}
