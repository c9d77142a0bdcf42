//! The handle: what other threads may do with links.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use wire::limits::MAX_LINK_MESSAGE;

use crate::carriers::{Carriers, Listening};
use crate::class::{Class, LinkId};
use crate::counters::Counters;
use crate::error::{LinksError, SendError};
use crate::event::Event;
use crate::options::{Options, Transports};
use crate::plane::Plane;
use crate::poller::{EventFlags, Poller, Source};
use crate::security::{Expect, InForce, Security, Trust};
use crate::shared::{Command, Gauge, Shared};

/// Links, and the thread that drives them. Clones are handles of the same.
///
/// Dropping the last one ends all links and the thread, and does not wait for it. When the thread
/// has told [`Down`](Event::Down) of each link and has closed its sockets, it drops `tell`. So the
/// end of a channel that `tell` sends into says that the port is free. A `tell` that holds a handle
/// itself must be told by other means to let it go.
#[derive(Clone, Debug)]
pub struct Links {
    owner: Arc<Owner>,
}

/// Its end is the end of the thread.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    address: Option<SocketAddr>,
    trust: Option<InForce>,
}

impl Links {
    /// Starts the thread. It calls `tell` with each event; while that takes long, no link goes on,
    /// and after 5 s the others take this side for dead.
    ///
    /// # Errors
    /// The port cannot be listened at, or the certificates cannot be used.
    pub fn start(
        options: Options,
        tell: impl FnMut(Event) + Send + 'static,
    ) -> Result<Links, LinksError> {
        let Options { listen, security, insecure, transports, limits } = options;
        let (trust, transports) = match (security, insecure, transports) {
            (Some(_), true, _) => return Err(LinksError::TwoMinds),
            (None, false, _) => return Err(LinksError::NoSecurity),
            (None, true, Transports::Quic) => return Err(LinksError::NeedsSecurity),
            (None, true, _) => (None, Transports::Tcp),
            (Some(security), false, _) => (Some(InForce::new(Trust::new(security)?)), transports),
        };
        let listening = match listen {
            Some(at) => Listening::new(at, transports)?,
            None => Listening::default(),
        };
        let address = listening.address;
        let shared = Arc::new(Shared::new()?);
        let poller = Poller::new().map_err(std::io::Error::from)?;
        let added = poller.add(&shared.waker, Source::Waker, EventFlags::IN);
        added.map_err(std::io::Error::from)?;
        let carriers = Carriers::new(listening, trust.clone(), poller)?;
        let plane = Plane::new(shared.clone(), carriers, transports, limits, Box::new(tell));
        thread::Builder::new().name("steadfast links".into()).spawn(move || plane.run())?;
        Ok(Links { owner: Arc::new(Owner { shared, address, trust }) })
    }

    /// Where others dial this side, with the port that the system chose.
    pub fn address(&self) -> Option<SocketAddr> {
        self.owner.address
    }

    /// Begins a link to the first of these addresses that takes it, in this order. Messages may be
    /// sent at once: they wait until it is up. Without an expectation, any node of this node's own
    /// cluster may be there.
    pub fn dial(&self, to: Vec<SocketAddr>, expect: Option<Expect>) -> LinkId {
        self.begin(to, expect, None)
    }

    /// As [`dial`](Links::dial), with a time for each address of your own instead of
    /// [`Limits::dial`](crate::Limits::dial).
    pub fn dial_within(
        &self,
        to: Vec<SocketAddr>,
        expect: Option<Expect>,
        patience: Duration,
    ) -> LinkId {
        self.begin(to, expect, Some(patience))
    }

    fn begin(
        &self,
        to: Vec<SocketAddr>,
        expect: Option<Expect>,
        patience: Option<Duration>,
    ) -> LinkId {
        let shared = &self.owner.shared;
        let link = shared.new_link();
        shared.open(link, Gauge::default());
        shared.command(Command::Dial { link, to, expect, patience });
        link
    }

    /// Sends a message. It arrives behind all others that were sent in its class, unless the link
    /// goes down before.
    ///
    /// # Errors
    /// Too much of this class waits, the link is not there, or the message is too long or empty.
    pub fn send(&self, link: LinkId, class: Class, message: Bytes) -> Result<(), SendError> {
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        if message.len() > MAX_LINK_MESSAGE {
            return Err(SendError::TooLarge);
        }
        let shared = &self.owner.shared;
        shared.reserve(link, class, message.len())?;
        shared.command(Command::Send { link, class, message });
        Ok(())
    }

    /// Bytes of a class of a link that wait here. 0: nothing waits, or the link is not there.
    pub fn waiting(&self, link: LinkId, class: Class) -> usize {
        let gauge = self.owner.shared.gauge(link);
        gauge.map_or(0, |gauge| gauge[class.index()].load(Ordering::Relaxed))
    }

    /// Ends a link. Messages that wait are lost.
    pub fn close(&self, link: LinkId) {
        self.owner.shared.command(Command::Close(link));
    }

    /// Links that begin later show and check this; those that are there go on. Insecure links stay
    /// so.
    ///
    /// # Errors
    /// The certificates cannot be used: those of before stay in force.
    pub fn renew(&self, security: Security) -> Result<(), LinksError> {
        let trust = Trust::new(security)?;
        if let Some(present) = &self.owner.trust {
            present.renew(trust);
        }
        Ok(())
    }

    /// Counts of what others did that was refused.
    pub fn counters(&self) -> Counters {
        self.owner.shared.tally.read()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close();
    }
}
