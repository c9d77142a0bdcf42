//! All connections, whatever carries them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Instant;

use wire::limits::MAX_LINK_VISITORS;

use crate::class::{Class, Pipe, Transport, Way};
use crate::datagrams::Datagrams;
use crate::error::LinksError;
use crate::event::Down;
use crate::flow::Flow;
use crate::news::News;
use crate::options::Transports;
use crate::poller::{EventFlags, Poller, Source};
use crate::quic::Quic;
use crate::refusal::Refusal;
use crate::security::{Expect, InForce, Trust};
use crate::tcp::Tcp;

/// Ports that are tried until one is free for both UDP and TCP.
const PORTS: usize = 64;

/// The code of a connection that is closed and not refused.
const NO_REFUSAL: u8 = 0;

/// The sockets that are listened at.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    pub datagrams: Option<Datagrams>,
    pub streams: Option<TcpListener>,
    pub address: Option<SocketAddr>,
}

impl Listening {
    /// Listens at one port with each of the transports.
    pub fn new(at: SocketAddr, transports: Transports) -> Result<Listening, LinksError> {
        let mut last = None;
        for _ in 0..PORTS {
            match Listening::bind(at, transports) {
                Ok(listening) => return Ok(listening),
                // The other transport has this port from somebody else: another one may do.
                Err(source) if at.port() == 0 => last = Some(source),
                Err(source) => return Err(LinksError::Listen { address: at, source }),
            }
        }
        let source = last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
        Err(LinksError::Listen { address: at, source })
    }

    fn bind(mut at: SocketAddr, transports: Transports) -> io::Result<Listening> {
        let mut listening = Listening::default();
        if transports.tcp() {
            let listener = TcpListener::bind(at)?;
            at = listener.local_addr()?;
            listening.streams = Some(listener);
        }
        if transports.quic() {
            let datagrams = Datagrams::bind(at)?;
            at = datagrams.address()?;
            listening.datagrams = Some(datagrams);
        }
        listening.address = Some(at);
        Ok(listening)
    }
}

pub(crate) struct Carriers {
    poller: Poller,
    tcp: Tcp,
    /// `None`: links have no certificates.
    quic: Option<Quic>,
    trust: Option<InForce>,
}

impl Carriers {
    pub fn new(listening: Listening, trust: Option<InForce>, poller: Poller) -> io::Result<Self> {
        let tcp = Tcp::new(listening.streams, &poller)?;
        let quic = match &trust {
            Some(trust) => Some(Quic::new(listening.datagrams, trust.clone(), &poller)?),
            None => None,
        };
        Ok(Carriers { poller, tcp, quic, trust })
    }

    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// The trust of connections that begin now. `None`: links have no certificates.
    pub fn trust(&self) -> Option<Arc<Trust>> {
        self.trust.as_ref().map(InForce::get)
    }

    pub fn transport(&self, way: Way) -> Transport {
        match (way, &self.trust) {
            (Way::Quic, _) => Transport::Quic,
            (Way::Tcp, Some(_)) => Transport::Tls,
            (Way::Tcp, None) => Transport::Tcp,
        }
    }

    /// Begins a connection.
    pub fn open(
        &mut self,
        way: Way,
        to: SocketAddr,
        expect: Option<&Expect>,
        now: Instant,
    ) -> Result<Pipe, Down> {
        match (way, &mut self.quic) {
            (Way::Quic, Some(quic)) => quic.open(to, expect, now, &self.poller),
            (Way::Quic, None) => Err(Down::NoAddress),
            (Way::Tcp, _) => {
                let trust = self.trust.as_ref().map(InForce::get);
                let records = trust.map(|trust| trust.connect(expect)).transpose()?;
                let opened = self.tcp.open(to, records, &self.poller);
                opened.map_err(|error| Down::Lost(error.to_string()))
            }
        }
    }

    /// Lets a socket that epoll reported go on.
    pub fn handle_ready(
        &mut self,
        source: Source,
        flags: EventFlags,
        visitors: usize,
        now: Instant,
        news: &mut Vec<News>,
    ) {
        match source {
            Source::Waker => {}
            Source::Listener => self.tcp.accept(now, self.trust.as_ref(), &self.poller, news),
            Source::Stream(number) => self.tcp.handle_ready(number, flags, news),
            Source::Datagrams(place) => {
                if let Some(quic) = &mut self.quic {
                    quic.crowded = visitors > MAX_LINK_VISITORS / 2;
                    quic.handle_ready(place, flags, now, &self.poller, news);
                }
            }
        }
    }

    /// The plain bytes of a connection that is there.
    pub fn flow(&mut self, pipe: Pipe) -> Option<&mut Flow> {
        match pipe.way {
            Way::Tcp => self.tcp.flow(pipe.number),
            Way::Quic => self.quic.as_mut()?.flow(pipe.number),
        }
    }

    /// Something was put into its output.
    pub fn touch(&mut self, pipe: Pipe) {
        match (pipe.way, &mut self.quic) {
            (Way::Quic, Some(quic)) => quic.touch(pipe.number),
            _ => self.tcp.touch(pipe.number),
        }
    }

    /// It is of this class: the more urgent ones write first.
    pub fn classify(&mut self, pipe: Pipe, class: Class) {
        let rank = class.index() as u8;
        match (pipe.way, &mut self.quic) {
            (Way::Quic, Some(quic)) => quic.rank(pipe.number, rank),
            _ => self.tcp.rank(pipe.number, rank),
        }
    }

    /// It is a link's from now on: much may be on its way.
    pub fn widen(&mut self, pipe: Pipe) {
        // TCP's windows are the kernel's.
        if let (Way::Quic, Some(quic)) = (pipe.way, &mut self.quic) {
            quic.widen(pipe.number);
        }
    }

    /// Ends a connection, and says why if it is refused. It makes no news any more.
    pub fn close(&mut self, pipe: Pipe, refusal: Option<Refusal>, now: Instant) {
        let code = refusal.map(Refusal::byte);
        match (pipe.way, &mut self.quic) {
            (Way::Quic, Some(quic)) => quic.close(pipe.number, code.unwrap_or(NO_REFUSAL), now),
            _ => self.tcp.close(pipe.number, code),
        }
    }

    /// Writes what there is. True: there is more to do at once.
    pub fn flush(&mut self, now: Instant, news: &mut Vec<News>) -> bool {
        self.tcp.flush(&self.poller);
        self.quic.as_mut().is_some_and(|quic| quic.flush(now, &self.poller, news))
    }

    /// Does what is due.
    pub fn handle_timeouts(&mut self, now: Instant) {
        self.tcp.resume(now, &self.poller);
        if let Some(quic) = &mut self.quic {
            quic.handle_timeouts(now);
        }
    }

    /// When something is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let quic = self.quic.as_ref().and_then(Quic::next_timeout);
        [self.tcp.next_timeout(), quic].into_iter().flatten().min()
    }
}
