//! The parts that sensor and display processes share: many calls under way at a time, each due at a
//! moment of its own, each recorded when it is settled.

use std::cell::RefCell;
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use steadfast::{AsyncClient, Tls};
use tokio::sync::{Semaphore, oneshot};

use super::message::{Order, Progress, Tale};
use super::record::{Kind, Record, Writer};
use super::{child, clock};

/// A client gives a call up after this long. The operator demands [`SLA`].
pub const DEADLINE: Duration = Duration::from_secs(10);

/// "Any operation must be completed within 2 seconds": the paper's demand.
pub const SLA: Duration = Duration::from_secs(2);

/// Calls of one session that are under way at a time; more wait, and their latency counts on.
pub const WINDOW: usize = wire::limits::MAX_SESSION_WINDOW as usize;

/// How often the conductor is told.
const TELL: u64 = 100_000_000;

/// The command line that the conductor gives to a client process.
#[derive(Clone, Debug, clap::Args)]
pub struct Assignment {
    /// Nodes to connect to.
    #[arg(long, value_delimiter = ',')]
    pub nodes: Vec<SocketAddr>,
    /// The folder with this client's certificate, if it needs one.
    #[arg(long)]
    pub keys: Option<PathBuf>,
    /// How long calls are due.
    #[arg(long)]
    pub nanos: u64,
    /// Calls a second.
    #[arg(long)]
    pub rate: f64,
    /// Decides what is sent and when.
    #[arg(long)]
    pub seed: u64,
    /// Where calls are written down.
    #[arg(long)]
    pub records: PathBuf,
}

impl Assignment {
    /// A session with the cluster.
    pub async fn connect(&self) -> Result<AsyncClient, Failure> {
        let wrap = |error: &dyn Display| Failure::Connect(error.to_string());
        let mut builder = AsyncClient::builder();
        if let Some(folder) = &self.keys {
            builder = builder.tls(Tls::from_dir(folder).map_err(|error| wrap(&error))?);
        }
        let connecting = builder.connect_async(self.nodes.iter().copied());
        connecting.await.map_err(|error| wrap(&error))
    }
}

/// Runs a client process: on one thread, because all of them share two cores with five nodes.
pub fn run<T>(traffic: impl FnOnce(oneshot::Receiver<u64>) -> T) -> Result<(), Failure>
where
    T: Future<Output = Result<(), Failure>>,
{
    let (go, start) = oneshot::channel();
    let mut go = Some(go);
    child::attach(move |order| match (order, go.take()) {
        (Order::Go(moment), Some(go)) => drop(go.send(moment)),
        _ => std::process::exit(0),
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, traffic(start))?;
    child::tell(&Tale::Done);
    Ok(())
}

/// Why a client process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Files and pipes.
    #[error("clients cannot work: {0}")]
    Io(#[from] io::Error),
    /// No node answers.
    #[error("clients cannot connect: {0}")]
    Connect(String),
}

/// The calls of this process.
#[derive(Clone)]
pub struct Calls(Rc<RefCell<Inner>>);

struct Inner {
    writer: Option<Writer>,
    progress: Progress,
    told: u64,
    failure: Option<io::Error>,
}

/// The facts of a call before it is made.
#[derive(Clone, Copy)]
pub struct Intent {
    /// The session that makes it.
    pub session: u16,
    /// Its subject.
    pub kind: Kind,
    /// The sensor or station.
    pub subject: u16,
    /// When it is due.
    pub due: u64,
}

impl Calls {
    /// Written down in this file.
    pub fn new(path: &Path) -> io::Result<Calls> {
        Ok(Calls(Rc::new(RefCell::new(Inner {
            writer: Some(Writer::create(path)?),
            progress: Progress::default(),
            told: 0,
            failure: None,
        }))))
    }

    /// Makes a call in a task of its own as soon as the session's window has room. `call` gets the
    /// rest of the deadline and returns the number to record.
    pub fn make<F, E>(
        &self,
        window: &Arc<Semaphore>,
        intent: Intent,
        number: u64,
        call: impl FnOnce(Duration) -> F + 'static,
    ) where
        F: Future<Output = Result<u64, E>>,
        E: Display,
    {
        let (calls, window) = (self.clone(), window.clone());
        calls.0.borrow_mut().progress.sent += 1;
        tokio::task::spawn_local(async move {
            let _room = window.acquire().await.expect("the window is never closed");
            let sent = clock::now();
            let left = clock::until(intent.due + DEADLINE.as_nanos() as u64);
            let result = if left.is_zero() {
                Err("it waited for its session's other calls until its deadline".to_owned())
            } else {
                call(left).await.map_err(|error| error.to_string())
            };
            let (number, error) = match result {
                Ok(number) => (number, None),
                Err(error) => (number, Some(error)),
            };
            let Intent { session, kind, subject, due } = intent;
            let answered = clock::now();
            calls.settle(&Record { session, kind, subject, number, due, sent, answered, error });
        });
    }

    fn settle(&self, record: &Record) {
        let inner = &mut *self.0.borrow_mut();
        match &record.error {
            None => inner.progress.acknowledged += 1,
            Some(_) => inner.progress.failed += 1,
        }
        if let Some(Err(error)) = inner.writer.as_mut().map(|writer| writer.write(record)) {
            inner.failure.get_or_insert(error);
        }
    }

    /// Tells the conductor how far it is, now and then.
    pub fn tell(&self, now: u64) {
        let inner = &mut *self.0.borrow_mut();
        if now.saturating_sub(inner.told) >= TELL {
            inner.told = now;
            child::tell(&Tale::Progress(inner.progress));
        }
    }

    /// Waits until every call is settled, and ends the file.
    pub async fn settled(self) -> io::Result<()> {
        loop {
            self.tell(clock::now());
            let Progress { sent, acknowledged, failed } = self.0.borrow().progress;
            if sent == acknowledged + failed {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let inner = &mut *self.0.borrow_mut();
        child::tell(&Tale::Progress(inner.progress));
        if let Some(error) = inner.failure.take() {
            return Err(error);
        }
        inner.writer.take().map_or(Ok(()), Writer::finish)
    }
}
