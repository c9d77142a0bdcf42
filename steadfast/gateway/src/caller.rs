//! The other side of a connection, and what it may call.

use std::sync::{Arc, PoisonError};

use tls::Peer;
use wire::{GroupId, MethodId};

use crate::budget::Share;
use crate::options::Door;
use crate::refusals::Kind;
use crate::status::Failure;

/// One caller, for as long as its connection lasts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Its certificate, and the door that it came in by. `None`: it needs no certificate here.
    known: Option<(Arc<Peer>, Arc<Door>)>,
    /// The gateway's memory that its calls hold.
    pub(crate) share: Share,
}

impl Caller {
    /// A caller with a certificate.
    pub(crate) fn new(peer: Peer, door: Arc<Door>) -> Caller {
        Caller { known: Some((Arc::new(peer), door)), share: Share::default() }
    }

    /// Refuses a call that the caller has no right to make. Rights and the list of denied
    /// certificates may have changed since it came.
    pub(crate) fn check(&self, group: &str, method: MethodId) -> Result<(), Failure> {
        let Some((peer, door)) = &self.known else { return Ok(()) };
        let denied = |reason: String| Err(Failure::new(Kind::Denied, reason));
        if door.server.denies_peer(peer) {
            return denied(format!("{} is denied here: ask for a new certificate", peer.identity));
        }
        let rights = door.rights.read().unwrap_or_else(PoisonError::into_inner);
        match rights.refuse(Some(peer.identity.label()), GroupId::of(group), method) {
            Some(reason) => denied(reason),
            None => Ok(()),
        }
    }
}
