//! A node's knowledge of another as a sender: which of its lives, and which of its datagrams have
//! come.

use alloc::boxed::Box;

use aws_lc_rs::aead::{LessSafeKey, Nonce};
use wire::{ClusterId, Incarnation, Member, NodeId};

use crate::Refused;
use crate::bug::{Bug, Planted};
use crate::derive::LifeKey;
use crate::envelope::Envelope;
use crate::keys::Keys;
use crate::window::{Fresh, Window};

/// One life of a node: two lives may share an incarnation (a clock that was set back), but not the
/// salt too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) incarnation: Incarnation,
    pub(crate) salt: u64,
}

impl Life {
    pub(crate) fn of(envelope: &Envelope) -> Life {
        Life { incarnation: envelope.sender.incarnation, salt: envelope.salt }
    }
}

/// Opens what one other node has sealed.
pub struct Opener {
    cluster: ClusterId,
    node: NodeId,
    /// The life that has proved to be going on.
    met: Option<Met>,
    /// The last other life of which something authentic came: it may be going on, or recorded. Its
    /// key is kept so that it need not be derived for every datagram.
    unmet: Option<(Life, LifeKey)>,
    /// The largest incarnation of such a life: only a larger one is somebody new. Recordings of
    /// several lives, sent in turn, are not.
    newest_unmet: Option<Incarnation>,
    pub(crate) planted: Planted,
}

struct Met {
    life: Life,
    window: Box<Window>,
    /// Its keys under the cluster keys used last: two while the cluster changes its key.
    keys: [Option<LifeKey>; 2],
}

/// The standing of the life that sealed an authentic datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has proved to be going on, and this datagram is new.
    Met,
    /// It has not; `first` if nothing of it, nor of a later life, was known until now.
    Unmet { first: bool },
}

impl Opener {
    /// Nothing is known of the node yet.
    pub fn new(cluster: ClusterId, node: NodeId) -> Opener {
        Opener {
            cluster,
            node,
            met: None,
            unmet: None,
            newest_unmet: None,
            planted: Planted::default(),
        }
    }

    /// The life of the node that has proved to be going on.
    pub fn met(&self) -> Option<Member> {
        let node = self.node;
        self.met.as_ref().map(|met| Member { node, incarnation: met.life.incarnation })
    }

    pub(crate) fn life(&self) -> Option<Life> {
        self.met.as_ref().map(|met| met.life)
    }

    /// Opens a datagram with this envelope by `decrypt`, unless what is known of its sender says
    /// already that it is worth nothing.
    pub(crate) fn open<T>(
        &mut self,
        envelope: &Envelope,
        keys: &Keys,
        decrypt: impl FnOnce(&LessSafeKey, Nonce) -> Option<T>,
    ) -> Result<(Standing, T), Refused> {
        let life = Life::of(envelope);
        let nonce = Nonce::assume_unique_for_key(envelope.nonce());
        if let Some(met) = &mut self.met {
            if met.life == life {
                if self.planted.is(Bug::ForgetWindow) {
                    *met.window = Window::starting_at(1);
                }
                let opened = met.open(envelope, self.cluster, keys, |key| decrypt(key, nonce))?;
                return Ok((Standing::Met, opened));
            }
            if life.incarnation < met.life.incarnation {
                return Err(Refused::Stale);
            }
        }
        if let Some((known, key)) = &self.unmet
            && *known == life
            && key.number == envelope.key
            && keys.get(envelope.key).is_some()
        {
            let opened = decrypt(&key.aead, nonce).ok_or(Refused::Forged)?;
            return Ok((Standing::Unmet { first: false }, opened));
        }
        let cluster_key = keys.get(envelope.key).ok_or(Refused::UnknownKey)?;
        let key = cluster_key.life(self.cluster, envelope.sender, envelope.salt);
        let opened = decrypt(&key.aead, nonce).ok_or(Refused::Forged)?;
        // Only what is authentic is remembered: lives can be invented without end.
        self.unmet = Some((life, key));
        let first = self.newest_unmet < Some(life.incarnation);
        self.newest_unmet = self.newest_unmet.max(Some(life.incarnation));
        Ok((Standing::Unmet { first }, opened))
    }

    /// The life that sealed this has proved to be going on. Datagrams that it sealed earlier may be
    /// recordings; those that it seals from here on are new.
    pub(crate) fn meet(&mut self, envelope: &Envelope) {
        let life = Life::of(envelope);
        let key = self.unmet.take().filter(|(known, _)| *known == life).map(|(_, key)| key);
        let window = Box::new(Window::starting_at(envelope.counter));
        self.met = Some(Met { life, window, keys: [key, None] });
    }

    /// Forgets what was derived from cluster keys that are not here any more.
    pub(crate) fn keep_only(&mut self, keys: &Keys) {
        let is_kept = |key: &LifeKey| keys.get(key.number).is_some();
        if let Some(met) = &mut self.met {
            for place in &mut met.keys {
                *place = place.take().filter(is_kept);
            }
        }
        self.unmet = self.unmet.take().filter(|(_, key)| is_kept(key));
    }

    /// Forgets what was derived from the cluster key of this number: another has it now.
    pub(crate) fn forget(&mut self, number: u8) {
        if let Some(met) = &mut self.met {
            for place in &mut met.keys {
                *place = place.take().filter(|key| key.number != number);
            }
        }
        self.unmet = self.unmet.take().filter(|(_, key)| key.number != number);
    }
}

impl Met {
    fn open<T>(
        &mut self,
        envelope: &Envelope,
        cluster: ClusterId,
        keys: &Keys,
        decrypt: impl FnOnce(&LessSafeKey) -> Option<T>,
    ) -> Result<T, Refused> {
        // Before any cryptography: the second link's copies are half of all datagrams.
        match self.window.check(envelope.counter) {
            Fresh::Yes => {}
            Fresh::Seen => return Err(Refused::Duplicate),
            Fresh::TooOld => return Err(Refused::Replayed),
            Fresh::BeforeStart => return Err(Refused::Stale),
        }
        let opened = match self.keys.iter().flatten().find(|key| key.number == envelope.key) {
            Some(key) => decrypt(&key.aead).ok_or(Refused::Forged)?,
            None => {
                let cluster_key = keys.get(envelope.key).ok_or(Refused::UnknownKey)?;
                let key = cluster_key.life(cluster, envelope.sender, envelope.salt);
                let opened = decrypt(&key.aead).ok_or(Refused::Forged)?;
                self.keys.swap(0, 1);
                self.keys[0] = Some(key);
                opened
            }
        };
        self.window.take(envelope.counter);
        Ok(opened)
    }
}
