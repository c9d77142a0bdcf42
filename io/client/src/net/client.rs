//! The blocking client: whoever waits for an answer runs the input and output meanwhile.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use wire::{ClientId, MethodId, Time};

use super::driver::Driver;
use crate::buffers::{Ended, listed};
use crate::session::What;
use crate::{
    Answer, Builder, CallError, CallId, ConnectError, Event, Reach, Reading, Replies, Stats,
};

/// A node that has not welcomed the client after this long will not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After this long without a look at the sockets a call looks at them before it trusts them.
const NEGLECTED: Duration = Duration::from_millis(10);

/// A blocking client, for any number of threads; its clones share one session.
///
/// There is no thread behind it: of the threads that wait for answers one at a time polls the
/// sockets for all. Between calls nothing runs.
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
    /// Connects to the first of these addresses that answers. One node's is enough; with several,
    /// the client can also start while a node is down.
    ///
    /// # Errors
    /// If none answers: what each did.
    pub fn connect<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Client, ConnectError> {
        Client::connect_by(addresses, Builder::default())
    }

    /// To say more of the client than addresses.
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
        driver.session.connect(now);
        let end = now + CONNECT_TIMEOUT;
        loop {
            driver.pump();
            match driver.session.reach() {
                Reach::Connected => return Ok(Client { shared: Arc::new(Mutex::new(driver)) }),
                Reach::Failed(error) => return Err(error),
                Reach::Trying if driver.now() >= end => {
                    return Err(ConnectError::Unreachable(driver.session.links.describe()));
                }
                Reach::Trying => {}
            }
            let seen = driver.watch(end).wait();
            driver.serve(&seen);
        }
    }

    /// Calls a group's method and waits for the answer, for `deadline` at most.
    ///
    /// # Errors
    /// [`CallError`] says what became of the call.
    pub fn call(
        &self,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        self.begin(group, What::call(method, json), body, deadline).0
    }

    /// Asks all replicas of a group at once, and waits for so many `replies`, for `deadline` at most: what each of them says. Replicas
    /// of a group that orders its calls say the same: there it is a call, and the list has one answer.
    ///
    /// # Errors
    /// If no replica says anything else. Of one of several that does not answer the list has the error.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a plain fact of a call, none is optional"
    )]
    pub fn gather(
        &self,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        replies: Replies,
        deadline: Duration,
    ) -> Result<Vec<Answer>, CallError> {
        let what = What { replies: Some(replies), ..What::call(method, json) };
        listed(self.begin(group, what, body, deadline))
    }

    /// The same of a method that changes nothing (`&self` in its service's trait): one replica answers it, without ordering.
    ///
    /// # Errors
    /// [`CallError`] says what became of it; of a method that may change something that it is none ([`Refusal::NotReadOnly`]).
    ///
    /// [`Refusal::NotReadOnly`]: wire::client::Refusal::NotReadOnly
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a plain fact of a call, none is optional"
    )]
    pub fn read(
        &self,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        reading: Reading,
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        let what = What { access: reading.into(), ..What::call(method, json) };
        self.begin(group, what, body, deadline).0
    }

    fn begin(&self, group: &str, what: What, body: Bytes, deadline: Duration) -> Ended {
        let _wake = WakeOnPanic(&self.shared);
        let mut driver = self.lock();
        if !driver.led && driver.neglected() > NEGLECTED {
            // Connections may have died meanwhile; that is found out before one is used.
            let now = driver.now();
            let seen = driver.watch(now).wait();
            driver.serve(&seen);
        }
        let now = driver.now();
        let id = driver.session.begin(now, group, what, body, now + deadline);
        driver.pump();
        self.wait(driver, id)
    }

    fn wait<'a>(&'a self, mut driver: MutexGuard<'a, Driver>, id: CallId) -> Ended {
        loop {
            if let Some(result) = driver.results.remove(&id) {
                driver.waiting.remove(&id);
                // Whoever waits still needs somebody who polls.
                if !driver.led
                    && let Some(next) = driver.waiting.values().next()
                {
                    next.notify_one();
                }
                return result;
            }
            if driver.led {
                let thread = Arc::new(Condvar::new());
                driver.waiting.insert(id, thread.clone());
                driver = thread.wait(driver).expect(POISONED);
                driver.waiting.remove(&id);
            } else {
                driver = self.lead(driver, id);
            }
        }
    }

    /// Polls for all until this thread's own answer is there.
    fn lead<'a>(
        &'a self,
        mut driver: MutexGuard<'a, Driver>,
        id: CallId,
    ) -> MutexGuard<'a, Driver> {
        driver.led = true;
        while !driver.results.contains_key(&id) {
            let watch = driver.watch(Time::FAR);
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

    /// The session's name, as nodes and handlers see it.
    pub fn id(&self) -> ClientId {
        self.lock().session.client()
    }

    /// Counters since the client was made.
    pub fn stats(&self) -> Stats {
        self.lock().session.stats()
    }

    /// Takes the events since the last time, with the moments at which they were noticed. The
    /// last `MAX_CLIENT_EVENTS` are kept.
    pub fn take_events(&self) -> Vec<(SystemTime, Event)> {
        self.lock().events.take()
    }

    fn lock(&self) -> MutexGuard<'_, Driver> {
        self.shared.lock().expect(POISONED)
    }
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
    /// Connects to the first of these addresses that answers. One node's is enough; with several,
    /// the client can also start while a node is down.
    ///
    /// # Errors
    /// If none answers: what each did.
    pub fn connect<A: ToSocketAddrs>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Client, ConnectError> {
        Client::connect_by(addresses, self)
    }
}

const POISONED: &str = "another thread has found a bug in the client and panicked";
