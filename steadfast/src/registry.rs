//! Names and their addresses: the cluster's registry, as a client has it
//! (`docs/protocol/registry.md`).
//!
//! The registry is a group of the cluster's own, where its nodes have it on (`[registry]`). A
//! [`Registry`] binds names and looks them up over a [`Client`]. It keeps the bindings that it has
//! seen, for times when it reaches no node.
//!
//! ```
//! use steadfast::registry::{Registry, Terms};
//! use steadfast::{Client, Node, NodeConfig, RegistryKnobs};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = RegistryKnobs { on: true, ..RegistryKnobs::default() };
//! let node = Node::start(NodeConfig { registry, ..NodeConfig::single() })?;
//! let client = Client::connect([node.client_address().expect("it takes clients")])?;
//!
//! let mut registry = Registry::new(&client);
//! let lease = registry.bind("printer", "10.0.0.7:631", Terms::lease(3_000, 1_000))?;
//! assert_eq!(registry.look_up("printer")?.bindings.len(), 1);
//! registry.refresh(&lease)?; // every second, or it is gone three seconds later
//! registry.unbind(&lease)?;
//! assert!(registry.refresh(&lease).is_err(), "it has ended: a late refresh does not revive it");
//! # node.stop()?;
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ::registry::{Ask, Command, Listing};
use bytes::Bytes;
#[cfg(feature = "async")]
use client::AsyncClient;
use client::{CallError, Client, DEFAULT_DEADLINE, Invocation, Reading};
use wire::system::REGISTRY;

pub use ::registry::{Address, Answer, Binding, Ended as Lease, Epoch, Technique, Terms, Verdict};

mod calls;

/// How old a look-up may be, unless [`Registry::within`] says another age.
pub const AGE: Duration = Duration::from_millis(100);

/// How often [`Registry::watch`] asks the nearest node's copy.
pub const WATCH_PERIOD: Duration = Duration::from_millis(100);

/// The registry of a cluster, over a [`Client`], or over an [`AsyncClient`]: [`AsyncRegistry`] has
/// the same methods.
#[derive(Debug)]
pub struct Registry<C = Client> {
    client: C,
    age: Duration,
    deadline: Duration,
    /// The newest epoch that was heard of.
    seen: Epoch,
    /// The last answer about each name, and its time.
    known: BTreeMap<Option<String>, Known>,
}

/// The same in async code.
#[cfg(feature = "async")]
pub type AsyncRegistry = Registry<AsyncClient>;

#[derive(Debug)]
struct Known {
    epoch: Epoch,
    bindings: Vec<Binding>,
    at: Instant,
}

/// Names kept for times when no node can be reached.
const MOST_KNOWN: usize = 256;

/// Bindings, and their age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The registry's epoch when it was so.
    pub epoch: Epoch,
    /// The bindings, in order of name and address.
    pub bindings: Vec<Binding>,
    /// `None`: at most as old as was asked for. Else nobody could be reached, and this is what was
    /// heard so long ago.
    pub stale: Option<Duration>,
}

/// Why something could not be had of the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It comes too late.
    #[error("the binding has ended or was replaced (epoch {0}): bind it again if necessary")]
    Fenced(Epoch),
    /// It cannot be.
    #[error("the registry refuses: {0}")]
    Refused(String),
    /// Nobody answers, or there is no registry.
    #[error("{0}; check that [registry] is on at the cluster's nodes")]
    Call(CallError),
    /// Another version.
    #[error("the registry's answer is not understood ({0}): use programs of the same version")]
    Answer(#[from] postcard::Error),
}

impl<C: Clone> Registry<C> {
    /// The registry of the cluster that this client calls.
    pub fn new(client: &C) -> Registry<C> {
        Registry {
            client: client.clone(),
            age: AGE,
            deadline: DEFAULT_DEADLINE,
            seen: Epoch::default(),
            known: BTreeMap::new(),
        }
    }

    /// The same, with look-ups that may be so old, and so long for each call.
    pub fn within(mut self, age: Duration, deadline: Duration) -> Registry<C> {
        (self.age, self.deadline) = (age, deadline);
        self
    }

    fn to_bind(&self, name: &str, address: &str, terms: Terms) -> Command {
        let (name, address) = (name.to_owned(), Address::At(address.to_owned()));
        Command::Bind { name, address, keeper: None, terms, seen: self.seen }
    }

    fn answered(&mut self, answer: Result<Bytes, CallError>) -> Result<Answer, RegistryError> {
        let answer: Answer = postcard::from_bytes(&answer.map_err(error)?)?;
        self.seen = self.seen.max(answer.epoch);
        Ok(answer)
    }

    fn to_say(&self, command: &Command) -> Invocation<'static> {
        Invocation::new(REGISTRY, Command::METHOD).body(command.encode()).within(self.deadline)
    }

    fn to_ask(&self, name: &Option<String>) -> Result<Invocation<'static>, RegistryError> {
        let since = self.known.get(name).map(|known| known.epoch);
        let body = postcard::to_allocvec(&Ask { name: name.clone(), since })?;
        let ask = Invocation::new(REGISTRY, Ask::METHOD).body(body).within(self.deadline);
        Ok(ask.reading(Reading::Stale(self.age)))
    }

    /// A question has this answer, or none.
    fn heard(
        &mut self,
        name: Option<String>,
        answer: Result<Bytes, CallError>,
    ) -> Result<Found, RegistryError> {
        let answer = match (answer, self.known.get(&name)) {
            (Ok(bytes), _) => postcard::from_bytes::<Listing>(&bytes)?,
            (Err(_), Some(known)) => {
                let stale = Some(known.at.elapsed());
                let (epoch, bindings) = (known.epoch, known.bindings.clone());
                return Ok(Found { epoch, bindings, stale });
            }
            (Err(failed), None) => return Err(error(failed)),
        };
        let before = self.known.remove(&name);
        let (epoch, at) = (answer.epoch, Instant::now());
        // Another node's copy may be older than what was heard, within the age that was asked for:
        // the newer stays.
        let (epoch, bindings) = match (answer.bindings, before) {
            (None, Some(before)) => (epoch, before.bindings),
            (Some(_), Some(before)) if epoch < before.epoch => (before.epoch, before.bindings),
            (bindings, _) => (epoch, bindings.unwrap_or_default()),
        };
        if self.known.len() >= MOST_KNOWN {
            self.known.pop_last();
        }
        self.seen = self.seen.max(epoch);
        self.known.insert(name, Known { epoch, bindings: bindings.clone(), at });
        Ok(Found { epoch, bindings, stale: None })
    }
}

fn bound(name: &str, address: &str, answer: &Answer) -> Result<Lease, RegistryError> {
    match answer.verdict {
        Verdict::Bound(epoch) => {
            let (name, address) = (name.to_owned(), Address::At(address.to_owned()));
            Ok(Lease { name, address, epoch })
        }
        _ => Err(RegistryError::Fenced(answer.epoch)),
    }
}

fn to_unbind(lease: &Lease) -> Command {
    let Lease { name, address, epoch } = lease.clone();
    Command::Unbind { name, address, epoch: Some(epoch) }
}

fn done(answer: &Answer) -> Result<(), RegistryError> {
    match answer.verdict {
        Verdict::Fenced => Err(RegistryError::Fenced(answer.epoch)),
        _ => Ok(()),
    }
}

fn error(error: CallError) -> RegistryError {
    match error {
        CallError::Service(text) => RegistryError::Refused(String::from_utf8_lossy(&text).into()),
        other => RegistryError::Call(other),
    }
}
