//! The registry's methods, for threads and for tasks: what is said and what is kept is the same.

use std::time::{Duration, Instant};

use ::registry::{Answer, Command, Epoch, Terms};
#[cfg(feature = "async")]
use client::AsyncClient;
use client::Client;

use super::{Found, Lease, Registry, RegistryError, WATCH_PERIOD, bound, done, to_unbind};

impl Registry<Client> {
    /// Binds a name to an address, beside others that it has, under a lease: it has to be
    /// [refreshed](Registry::refresh).
    ///
    /// # Errors
    /// [`RegistryError::Fenced`] if it was unbound, or has ended, since the last answer of this
    /// registry here. To bind it anyway, repeat the call.
    pub fn bind(
        &mut self,
        name: &str,
        address: &str,
        terms: Terms,
    ) -> Result<Lease, RegistryError> {
        let answer = self.say(&self.to_bind(name, address, terms))?;
        bound(name, address, &answer)
    }

    /// Begins a binding's lease anew.
    ///
    /// # Errors
    /// [`RegistryError::Fenced`] if the binding has ended.
    pub fn refresh(&mut self, lease: &Lease) -> Result<(), RegistryError> {
        done(&self.say(&Command::Refresh(lease.clone()))?)
    }

    /// Ends a binding; one that has ended already is no error.
    ///
    /// # Errors
    /// [`RegistryError::Fenced`] if it was made anew since.
    pub fn unbind(&mut self, lease: &Lease) -> Result<(), RegistryError> {
        done(&self.say(&to_unbind(lease))?)
    }

    /// Looks up the bindings of this name, in any node's copy. If no node answers: the last known
    /// ones, marked as stale.
    ///
    /// # Errors
    /// No node answers, and this name was never looked up before; or the answer is not understood.
    pub fn look_up(&mut self, name: &str) -> Result<Found, RegistryError> {
        self.ask(Some(name.to_owned()))
    }

    /// All bindings.
    ///
    /// # Errors
    /// As [`look_up`](Registry::look_up).
    pub fn list(&mut self) -> Result<Found, RegistryError> {
        self.ask(None)
    }

    /// Waits until the epoch is another one than `since`, or `timeout` has passed (`None`). A
    /// node's copy is asked every [`WATCH_PERIOD`], which costs the ring nothing while it is recent
    /// enough; `steadfast registry watch` waits at the node instead.
    ///
    /// # Errors
    /// As [`list`](Registry::list).
    pub fn watch(
        &mut self,
        since: Epoch,
        timeout: Duration,
    ) -> Result<Option<Found>, RegistryError> {
        let until = Instant::now() + timeout;
        loop {
            let found = self.list()?;
            if found.epoch != since {
                return Ok(Some(found));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(WATCH_PERIOD.min(left));
        }
    }

    fn say(&mut self, command: &Command) -> Result<Answer, RegistryError> {
        let answer = self.client.call(self.to_say(command));
        self.answered(answer)
    }

    fn ask(&mut self, name: Option<String>) -> Result<Found, RegistryError> {
        let answer = self.client.call(self.to_ask(&name)?);
        self.heard(name, answer)
    }
}

#[cfg(feature = "async")]
impl Registry<AsyncClient> {
    /// Binds a name to an address, beside others that it has, under a lease: it has to be
    /// [refreshed](Registry::refresh).
    ///
    /// # Errors
    /// [`RegistryError::Fenced`] if it was unbound, or has ended, since the last answer of this
    /// registry here. To bind it anyway, repeat the call.
    pub async fn bind(
        &mut self,
        name: &str,
        address: &str,
        terms: Terms,
    ) -> Result<Lease, RegistryError> {
        let answer = self.say(&self.to_bind(name, address, terms)).await?;
        bound(name, address, &answer)
    }

    /// Begins a binding's lease anew.
    ///
    /// # Errors
    /// [`RegistryError::Fenced`] if the binding has ended.
    pub async fn refresh(&mut self, lease: &Lease) -> Result<(), RegistryError> {
        done(&self.say(&Command::Refresh(lease.clone())).await?)
    }

    /// Ends a binding; one that has ended already is no error.
    ///
    /// # Errors
    /// [`RegistryError::Fenced`] if it was made anew since.
    pub async fn unbind(&mut self, lease: &Lease) -> Result<(), RegistryError> {
        done(&self.say(&to_unbind(lease)).await?)
    }

    /// Looks up the bindings of this name, in any node's copy. If no node answers: the last known
    /// ones, marked as stale.
    ///
    /// # Errors
    /// No node answers, and this name was never looked up before; or the answer is not understood.
    pub async fn look_up(&mut self, name: &str) -> Result<Found, RegistryError> {
        self.ask(Some(name.to_owned())).await
    }

    /// All bindings.
    ///
    /// # Errors
    /// As [`look_up`](Registry::look_up).
    pub async fn list(&mut self) -> Result<Found, RegistryError> {
        self.ask(None).await
    }

    /// Waits until the epoch is another one than `since`, or `timeout` has passed (`None`). A
    /// node's copy is asked every [`WATCH_PERIOD`], which costs the ring nothing while it is recent
    /// enough; `steadfast registry watch` waits at the node instead.
    ///
    /// # Errors
    /// As [`list`](Registry::list).
    pub async fn watch(
        &mut self,
        since: Epoch,
        timeout: Duration,
    ) -> Result<Option<Found>, RegistryError> {
        let until = Instant::now() + timeout;
        loop {
            let found = self.list().await?;
            if found.epoch != since {
                return Ok(Some(found));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            tokio::time::sleep(WATCH_PERIOD.min(left)).await;
        }
    }

    async fn say(&mut self, command: &Command) -> Result<Answer, RegistryError> {
        let answer = self.client.call(self.to_say(command)).await;
        self.answered(answer)
    }

    async fn ask(&mut self, name: Option<String>) -> Result<Found, RegistryError> {
        let answer = self.client.call(self.to_ask(&name)?).await;
        self.heard(name, answer)
    }
}
