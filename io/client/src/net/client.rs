//! The blocking client: a thread that waits for an answer runs the input and output meanwhile.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use wire::{ClientId, Time};

use super::driver::Driver;
use crate::buffers::{Ended, listed};
use crate::{Answer, Builder, CallError, CallId, ConnectError, Event, Invocation, Reach, Stats};

/// A node that has not welcomed the client after this long will not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After this long without a look at the sockets a call looks at them before it trusts them.
const NEGLECTED: Duration = Duration::from_millis(10);

/// A blocking client, for any number of threads. Its clones share one session.
///
/// The client has no thread of its own. One of the threads that wait for answers polls the sockets
/// for all. Between calls nothing runs.
///
/// ```no_run
/// use std::time::Duration;
/// use steadfast_client::{Client, Invocation, Reading};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::connect(["192.0.2.1:7100", "192.0.2.2:7100"])?;
/// let add = Invocation::new("counter", "add").json().body("[5]");
/// let sum = client.call(add.within(Duration::from_secs(5)))?;
///
/// let get = Invocation::new("counter", "get").json().body("[]");
/// assert_eq!(client.call(get.reading(Reading::Linearizable))?, sum);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Mutex<Driver>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the first of these addresses that answers.
    ///
    /// The address of one node is enough. With several, the client can start while a node is down.
    ///
    /// # Errors
    /// [`ConnectError`] tells what each address did, if none answered.
    pub fn connect<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Client, ConnectError> {
        Client::connect_by(addresses, Builder::default())
    }

    /// Makes a builder, for a client that needs more than addresses.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn connect_by<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
        builder: Builder,
    ) -> Result<Client, ConnectError> {
        let mut resolved: Vec<SocketAddr> = Vec::new();
        for address in addresses {
            let found = address.to_socket_addrs();
            resolved.extend(found.map_err(|error| ConnectError::Resolve(error.to_string()))?);
        }
        let mut driver = Driver::new(builder.config(resolved)?, builder.tls)?;
        let now = driver.now();
        driver.sessions.connect(now);
        let end = now + CONNECT_TIMEOUT;
        loop {
            driver.pump();
            match driver.sessions.home().reach() {
                Reach::Connected => return Ok(Client { shared: Arc::new(Mutex::new(driver)) }),
                Reach::Failed(error) => return Err(error),
                Reach::Trying if driver.now() >= end => {
                    return Err(ConnectError::Unreachable(driver.sessions.describe()));
                }
                Reach::Trying => {}
            }
            let seen = driver.watch(end).wait();
            driver.serve(&seen);
        }
    }

    /// Makes a call, or a read, and waits for its answer until the deadline.
    ///
    /// # Errors
    /// [`CallError`] tells why the call has no result, and whether it was executed.
    pub fn call(&self, invocation: Invocation<'_>) -> Result<Bytes, CallError> {
        self.wait_for(invocation).0
    }

    /// Makes a call that its caller may give up: `None` then.
    ///
    /// While the call waits, `wanted` is asked once in each `period`, without a lock. A replica may
    /// still execute a call that was given up. This is for callers that must look after something
    /// else meanwhile, such as a signal that a language's runtime has to handle.
    pub fn call_while(
        &self,
        invocation: Invocation<'_>,
        period: Duration,
        mut wanted: impl FnMut() -> bool,
    ) -> Option<Result<Bytes, CallError>> {
        let _wake = WakeOnPanic(&self.shared);
        let (driver, id) = self.begin(invocation);
        self.wait(driver, id, Some(Doubt { period, wanted: &mut wanted })).map(|ended| ended.0)
    }

    /// Makes a call to all replicas at once, and tells what each of them says.
    ///
    /// It waits for all replicas, or for as many replies as [`Invocation::balancing()`] says. The
    /// replicas of a group that orders its calls say the same, so its list has one answer.
    ///
    /// # Errors
    /// [`CallError`], if no replica says anything else. If only some replicas do not answer, the
    /// list has their errors.
    pub fn gather(&self, invocation: Invocation<'_>) -> Result<Vec<Answer>, CallError> {
        listed(self.wait_for(invocation.for_all()))
    }

    fn wait_for(&self, invocation: Invocation<'_>) -> Ended {
        let _wake = WakeOnPanic(&self.shared);
        let (driver, id) = self.begin(invocation);
        self.wait(driver, id, None).expect("only a doubt ends a call before its deadline")
    }

    fn begin(&self, invocation: Invocation<'_>) -> (MutexGuard<'_, Driver>, CallId) {
        let mut driver = self.lock();
        if !driver.led && driver.neglected() > NEGLECTED {
            // Connections may have died meanwhile; that is found out before one is used.
            let now = driver.now();
            let seen = driver.watch(now).wait();
            driver.serve(&seen);
        }
        let now = driver.now();
        let id = driver.sessions.call(now, invocation);
        driver.pump();
        (driver, id)
    }

    fn wait<'a>(
        &'a self,
        mut driver: MutexGuard<'a, Driver>,
        id: CallId,
        mut doubt: Option<Doubt<'_>>,
    ) -> Option<Ended> {
        let mut limit = doubt.as_ref().map_or(Time::FAR, |doubt| driver.now() + doubt.period);
        loop {
            if let Some(result) = driver.results.remove(&id) {
                driver.waiting.remove(&id);
                driver.hand_over();
                return Some(result);
            }
            if let Some(doubt) = doubt.as_mut().filter(|_| driver.now() >= limit) {
                driver.hand_over();
                drop(driver);
                let wanted = (doubt.wanted)();
                driver = self.lock();
                if !wanted {
                    driver.give_up(id);
                    return None;
                }
                limit = driver.now() + doubt.period;
            } else if driver.led {
                driver = self.follow(driver, id, limit);
            } else {
                driver = self.lead(driver, id, limit);
            }
        }
    }

    /// Waits for this thread's own answer, or until it has to poll, at most until `limit`.
    fn follow<'a>(
        &'a self,
        mut driver: MutexGuard<'a, Driver>,
        id: CallId,
        limit: Time,
    ) -> MutexGuard<'a, Driver> {
        let thread = Arc::new(Condvar::new());
        driver.waiting.insert(id, thread.clone());
        driver = if limit == Time::FAR {
            thread.wait(driver).expect(POISONED)
        } else {
            let longest = limit.since(driver.now());
            thread.wait_timeout(driver, longest).expect(POISONED).0
        };
        driver.waiting.remove(&id);
        driver
    }

    /// Polls for all until this thread's own answer is there, at most until `limit`.
    fn lead<'a>(
        &'a self,
        mut driver: MutexGuard<'a, Driver>,
        id: CallId,
        limit: Time,
    ) -> MutexGuard<'a, Driver> {
        driver.led = true;
        while !driver.results.contains_key(&id) && driver.now() < limit {
            let watch = driver.watch(limit);
            driver.polling = true;
            drop(driver);
            let seen = watch.wait();
            driver = self.lock();
            driver.polling = false;
            driver.serve(&seen);
        }
        driver.led = false;
        driver
    }

    /// The name of the session, as nodes and handlers see it.
    pub fn id(&self) -> ClientId {
        self.lock().sessions.home().client()
    }

    /// The counters since the client was made.
    pub fn stats(&self) -> Stats {
        self.lock().sessions.stats()
    }

    /// Takes the events since the last time, with the moments at which the client noticed them.
    ///
    /// The client keeps the last [`MAX_CLIENT_EVENTS`](wire::limits::MAX_CLIENT_EVENTS).
    pub fn take_events(&self) -> Vec<(SystemTime, Event)> {
        self.lock().events.take()
    }

    fn lock(&self) -> MutexGuard<'_, Driver> {
        self.shared.lock().expect(POISONED)
    }
}

/// A caller's question to itself, whether it still wants the answer.
struct Doubt<'a> {
    period: Duration,
    wanted: &'a mut dyn FnMut() -> bool,
}

/// A thread that finds a bug while it polls for others must not leave them asleep.
struct WakeOnPanic<'a>(&'a Mutex<Driver>);

impl Drop for WakeOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            driver.waiting.values().for_each(|thread| thread.notify_one());
        }
    }
}

impl Builder {
    /// Connects to the first of these addresses that answers.
    ///
    /// The address of one node is enough. With several, the client can start while a node is down.
    ///
    /// # Errors
    /// [`ConnectError`] tells what each address did, if none answered.
    pub fn connect<A: ToSocketAddrs>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Client, ConnectError> {
        Client::connect_by(addresses, self)
    }
}

const POISONED: &str = "another thread has found a bug in the client and panicked";
