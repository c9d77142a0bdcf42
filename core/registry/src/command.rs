//! The registry's commands and queries, and its answers. All of it is postcard on the wire.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use wire::limits::{MAX_ADDRESS, MAX_BINDINGS, MAX_MEMBERS, MAX_NAME};
use wire::{Member, MethodId, Time};

/// A moment of the registry: grows with every binding that is made or ends. It starts at the
/// ordered time of the first command in microseconds, so that a registry that has to begin anew,
/// all its replicas lost, is newer than the one before.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Where somebody can be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// The replica that this life of a node has of the group of the binding's name.
    Replica(Member),
    /// Any address that its users understand: 1 to [`MAX_ADDRESS`] bytes.
    At(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Replica(member) => write!(f, "replica at {}", member.node),
            Address::At(text) => f.write_str(text),
        }
    }
}

/// How a binding ends when what it names is dead (`jgroup-arm.txt`, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technique {
    /// When it was not refreshed for the lease's time (4.1).
    Lease,
    /// When the group's view, or the cluster's membership, no longer has it: the registry's leader
    /// says so (4.2).
    Notification,
    /// As by notification while the name has another binding; the last one has a lease (4.3).
    #[default]
    Both,
}

/// The conditions of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// How it ends.
    pub technique: Technique,
    /// Milliseconds for which it stays without a refresh, 10 to 3,600,000. Without meaning by
    /// notification.
    pub lease_ms: u32,
    /// Milliseconds between two refreshes, 1 to less than the lease.
    pub refresh_ms: u32,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { technique: Technique::default(), lease_ms: 3_000, refresh_ms: 1_000 }
    }
}

impl Terms {
    /// A lease of so many milliseconds, refreshed every so many.
    pub const fn lease(lease_ms: u32, refresh_ms: u32) -> Terms {
        Terms { technique: Technique::Lease, lease_ms, refresh_ms }
    }

    /// Checks that the terms are possible.
    ///
    /// # Errors
    /// The terms are out of range.
    pub fn check(&self) -> Result<(), Refusal> {
        let lease = 10..=3_600_000;
        if !lease.contains(&self.lease_ms) || !(1..self.lease_ms).contains(&self.refresh_ms) {
            return Err(Refusal::Lease(self.lease_ms, self.refresh_ms));
        }
        Ok(())
    }
}

/// Which binding: not one of the same name and address that was made before or after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Address,
    /// The epoch at which it was made.
    pub epoch: Epoch,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// This name has this address, too.
    Bind {
        /// The name, 1 to [`MAX_NAME`] bytes.
        name: String,
        /// The address.
        address: Address,
        /// The life of a node that keeps it alive. Without one it has a lease, and the client that
        /// bound it refreshes it.
        keeper: Option<Member>,
        /// How it ends.
        terms: Terms,
        /// The newest epoch that the binder knows. If the same was unbound since, the binding is
        /// refused.
        seen: Epoch,
    },
    /// It has it no more.
    Unbind {
        /// The name.
        name: String,
        /// The address.
        address: Address,
        /// Only the binding of this epoch; whichever there is if none is said.
        epoch: Option<Epoch>,
    },
    /// One binding's lease begins anew.
    Refresh(Ended),
    /// So do the leases of all that this life of a node keeps.
    Renew {
        /// The keeper of the bindings.
        keeper: Member,
    },
    /// These are dead, as the registry's leader sees it. The last binding of a name under
    /// [`Technique::Both`] stays until its lease ends.
    Dead(Vec<Ended>),
    /// Time has gone on: what has not been refreshed ends.
    Tick,
}

impl Command {
    /// The method of the group that takes commands.
    pub const METHOD: MethodId = MethodId::of("command");

    /// The arguments of a call.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a command is plain data")
    }

    /// Decodes the bytes of [`encode`](Command::encode).
    ///
    /// # Errors
    /// The bytes are no command.
    pub fn decode(bytes: &[u8]) -> Result<Command, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}

/// The result of a command that is not refused, and the epoch after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// The registry's epoch then.
    pub epoch: Epoch,
}

/// The verdict on a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is bound, since this epoch.
    Bound(Epoch),
    /// It is so.
    Done,
    /// There was nothing to do.
    Void,
    /// It comes too late: its binding has ended, or belongs to another keeper by now. A repeat that
    /// carries the answer's epoch shows that its sender knows this.
    Fenced,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The bindings of this name; of all names if none is said.
    pub name: Option<String>,
    /// Nothing needs to be told if this is still the epoch.
    pub since: Option<Epoch>,
}

impl Ask {
    /// The method of the group that answers questions. It changes nothing.
    pub const METHOD: MethodId = MethodId::of("ask");
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The epoch of what is told.
    pub epoch: Epoch,
    /// The bindings, in order of name and address; `None` if nothing has changed since.
    pub bindings: Option<Vec<Binding>>,
}

/// A name's address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The name.
    pub name: String,
    /// The address.
    pub address: Address,
    /// The life of a node that keeps it alive.
    pub keeper: Option<Member>,
    /// How it ends.
    pub terms: Terms,
    /// When it was made.
    pub epoch: Epoch,
    /// The ordered time at which it ends if it is not refreshed, in nanoseconds since the Unix
    /// epoch. `None`: it has no lease now.
    pub until: Option<Time>,
}

impl Binding {
    /// The identity that distinguishes it from others.
    pub fn identity(&self) -> Ended {
        let (name, address) = (self.name.clone(), self.address.clone());
        Ended { name, address, epoch: self.epoch }
    }
}

/// Why a command is refused, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name.
    #[error("a name has 1 to {MAX_NAME} bytes; this one has {0}")]
    Name(usize),
    /// The address.
    #[error("an address has 1 to {MAX_ADDRESS} bytes; this one has {0}")]
    Address(usize),
    /// Times that cannot be.
    #[error(
        "a lease of {0} ms that is refreshed every {1} ms cannot be: give it 10 to 3600000 ms, and refresh it more often than that"
    )]
    Lease(u32, u32),
    /// Nobody would end it.
    #[error(
        "nobody would notice the end of what no node keeps: give it the technique lease, or bind it at a node's admin socket"
    )]
    Keeperless,
    /// A replica is bound by its own node.
    #[error("a replica is bound by the node that has it, and by none else")]
    NotTheReplicas,
    /// No room.
    #[error("{MAX_BINDINGS} bindings, the limit: unbind some")]
    TooMany,
    /// No room.
    #[error("{MAX_MEMBERS} nodes have bound names, the limit")]
    TooManyNodes,
    /// Too much at once.
    #[error("news of {0} deaths at once, the limit is {MAX_BINDINGS}")]
    TooManyDead(usize),
}
