//! The other side of a connection, and what it may call.

use std::sync::{Arc, PoisonError};

use tls::Peer;
use tonic::Code;
use wire::{GroupId, MethodId};

use crate::options::Door;
use crate::status::Failure;

/// One caller, for as long as its connection lasts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Its certificate, and the door that it came in by. `None`: it needs no certificate here.
    known: Option<(Arc<Peer>, Arc<Door>)>,
}

impl Caller {
    /// A caller with a certificate.
    pub(crate) fn new(peer: Peer, door: Arc<Door>) -> Caller {
        Caller { known: Some((Arc::new(peer), door)) }
    }

    /// Refuses a call that the caller has no right to make. Rights and the list of denied
    /// certificates may have changed since it came.
    pub(crate) fn check(&self, group: &str, method: MethodId) -> Result<(), Failure> {
        let Some((peer, door)) = &self.known else { return Ok(()) };
        let denied = |reason: String| Err(Failure::new(Code::PermissionDenied, reason));
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
