//! The client for asyncio. A thread runs all calls of a client and never takes the interpreter's
//! lock. It leaves what has ended in a list, and writes one byte into a pipe that the event loop
//! watches; until the loop has taken the list, further ends need no byte.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::mem::take;
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use client::{CallError, Invocation};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::errors::{Unconnected, raised};
use crate::options::{Home, How, Options, invocation};

/// The number under which it is told that the client has connected. Calls have numbers from 1.
const CONNECTED: u64 = 0;

/// The number under which it is told that the thread ends, so that no call waits for ever.
const OVER: u64 = u64::MAX;

/// A node that has not welcomed the client after this long will not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const POISONED: &str = "nothing panics with the list of ended calls in hand";

/// A session, for the tasks of one event loop.
#[pyclass(frozen)]
pub struct AsyncClient {
    home: Home,
    /// Its end ends the thread.
    orders: UnboundedSender<Order>,
    ended: Arc<Ended>,
    reader: PipeReader,
    numbers: AtomicU64,
}

/// An order of Python's to the thread.
enum Order {
    Call(u64, Invocation<'static>),
    GiveUp(u64),
}

enum End {
    Connected(Result<(), Unconnected>),
    Called(Result<Bytes, CallError>),
}

/// Calls that have ended, until the event loop takes them.
struct Ended {
    list: Mutex<Vec<(u64, End)>>,
    writer: PipeWriter,
}

#[pymethods]
impl AsyncClient {
    /// Begins to connect to the first address that answers. Its end has the number 0.
    #[new]
    fn new(addresses: Vec<String>, tls: Option<PathBuf>, priority: u8) -> PyResult<AsyncClient> {
        let options = Options { addresses, tls, priority };
        let (reader, writer) = pipe()?;
        let ended = Arc::new(Ended { list: Mutex::default(), writer });
        let (orders, received) = unbounded_channel();
        let over = Over(ended.clone());
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        std::thread::Builder::new()
            .name("steadfast".into())
            .spawn(move || runtime.block_on(run(&options, received, &over.0)))?;
        Ok(AsyncClient { home: Home::here(), orders, ended, reader, numbers: AtomicU64::new(1) })
    }

    /// Begins a call: its number.
    fn begin(
        &self,
        group: Cow<'_, str>,
        method: Cow<'_, str>,
        body: &[u8],
        how: How,
    ) -> PyResult<u64> {
        self.home.check()?;
        let group = Cow::Owned(group.into_owned());
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let order = Order::Call(number, invocation(group, &method, body, how)?);
        // The thread ends before its client only if it could not connect, which is told.
        let _ = self.orders.send(order);
        Ok(number)
    }

    /// Gives a call up. A replica may still execute it.
    fn give_up(&self, number: u64) {
        let _ = self.orders.send(Order::GiveUp(number));
    }

    /// The descriptor that can be read when calls have ended.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Takes the calls that have ended since the last time: number, result, exception.
    #[expect(clippy::type_complexity, reason = "a list of tuples for Python")]
    fn ended<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(u64, Option<Bound<'py, PyBytes>>, Option<PyErr>)>> {
        self.home.check()?;
        let list = {
            let mut list = self.ended.list.lock().expect(POISONED);
            if !list.is_empty() {
                // The byte is there: it was written when the list got its first entry.
                (&self.reader).read_exact(&mut [0])?;
            }
            take(&mut *list)
        };
        let told = |end| match end {
            End::Connected(Ok(())) => (None, None),
            End::Connected(Err(error)) => (None, Some(error.raised(py))),
            End::Called(Ok(result)) => (Some(PyBytes::new(py, &result)), None),
            End::Called(Err(error)) => (None, Some(raised(py, &error))),
        };
        Ok(list
            .into_iter()
            .map(|(number, end)| {
                let (result, error) = told(end);
                (number, result, error)
            })
            .collect())
    }
}

/// The thread ends: also by a bug that it finds.
struct Over(Arc<Ended>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.put(OVER, End::Called(Err(CallError::Closed)));
    }
}

impl Ended {
    fn put(&self, number: u64, end: End) {
        let mut list = self.list.lock().expect(POISONED);
        if list.is_empty() {
            // It fails only when the client is gone, and nobody waits.
            let _ = (&self.writer).write_all(&[0]);
        }
        list.push((number, end));
    }
}

async fn connect(options: &Options) -> Result<client::AsyncClient, Unconnected> {
    let connected = options.builder()?.connect_async(&options.addresses);
    match timeout(CONNECT_TIMEOUT, connected).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(Unconnected(format!(
            "no node has answered within {CONNECT_TIMEOUT:?} at {}: check the addresses, and that \
             nodes run there",
            options.addresses.join(", ")
        ))),
    }
}

/// Connects, and makes calls until the client is gone.
async fn run(options: &Options, mut orders: UnboundedReceiver<Order>, ended: &Ended) {
    let client = match connect(options).await {
        Ok(client) => client,
        Err(error) => return ended.put(CONNECTED, End::Connected(Err(error))),
    };
    ended.put(CONNECTED, End::Connected(Ok(())));
    let mut calls = JoinSet::new();
    let mut under_way: HashMap<u64, AbortHandle> = HashMap::new();
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                None => return,
                Some(Order::Call(number, invocation)) => {
                    let client = client.clone();
                    let call = async move { (number, client.call(invocation).await) };
                    under_way.insert(number, calls.spawn(call));
                }
                Some(Order::GiveUp(number)) => {
                    if let Some(call) = under_way.remove(&number) {
                        call.abort();
                    }
                }
            },
            Some(call) = calls.join_next() => match call {
                Ok((number, result)) => {
                    under_way.remove(&number);
                    ended.put(number, End::Called(result));
                }
                Err(bug) if bug.is_panic() => resume_unwind(bug.into_panic()),
                // It was given up, and nobody waits for it.
                Err(_) => {}
            },
        }
    }
}
