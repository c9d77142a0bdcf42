//! A place where connections are accepted, and what is asked of each of them.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::io::Errno;
use socket2::{SockRef, TcpKeepalive};
use wire::{Duration, Time};

use crate::poller::{EventFlags, Poller, Source};

/// How long to wait for descriptors to become free when the system has none left.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection whose other side says nothing for so long is asked whether it lives, and then
/// as often as this: one whose host has lost its power must not keep its place for ever.
const SILENT: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_secs(10);
const ASK_TIMES: u32 = 3;

/// How long the other side may leave unconfirmed, or unread, what was sent to it.
const UNCONFIRMED: Duration = Duration::from_secs(60);

/// A listener that the data plane looks after. It rests while the system has no descriptors left:
/// epoll would report it without end. New connections wait in the kernel meanwhile.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    source: Source,
    rests_until: Option<Time>,
}

impl Listener {
    /// Listens at `address`; epoll reports it as `source`.
    pub fn bind(address: SocketAddr, source: Source) -> io::Result<Listener> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Listener { listener, source, rests_until: None })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub fn register(&self, poller: &Poller) -> Result<(), Errno> {
        poller.add(&self.listener, self.source, EventFlags::IN)
    }

    /// The next connection, nonblocking, or `None` if nobody waits.
    ///
    /// # Errors
    /// The system has no descriptors left: this rests for a while.
    pub fn accept(
        &mut self,
        now: Time,
        poller: &Poller,
    ) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        if self.rests_until.is_some() {
            return Ok(None);
        }
        loop {
            match self.listener.accept() {
                Ok((stream, from)) if prepare(&stream).is_ok() => return Ok(Some((stream, from))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if matters_to_all(&error) => {
                    let _ = poller.modify(&self.listener, self.source, EventFlags::empty());
                    self.rests_until = Some(now + ACCEPT_PAUSE);
                    return Err(error);
                }
                // This one connection ended before it was accepted.
                _ => {}
            }
        }
    }

    /// When [`resume`](Listener::resume) is due.
    pub fn next_timeout(&self) -> Time {
        self.rests_until.unwrap_or(Time::FAR)
    }

    /// Accepts again after a rest.
    pub fn resume(&mut self, now: Time, poller: &Poller) {
        if self.rests_until.is_some_and(|until| until <= now) {
            let again = poller.modify(&self.listener, self.source, EventFlags::IN);
            self.rests_until = again.is_err().then_some(now + ACCEPT_PAUSE);
        }
    }
}

/// Makes a connection nonblocking and prompt, and has its end noticed if its host just vanishes.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let asks =
        TcpKeepalive::new().with_time(SILENT).with_interval(ASK_EVERY).with_retries(ASK_TIMES);
    socket.set_tcp_keepalive(&asks)?;
    socket.set_tcp_user_timeout(Some(UNCONFIRMED))
}

/// Not this one connection's trouble, but that of the whole process or host.
pub(super) fn matters_to_all(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(listener: &mut Listener, poller: &Poller) -> TcpStream {
        loop {
            if let Some((stream, _)) = listener.accept(Time::ZERO, poller).unwrap() {
                return stream;
            }
        }
    }

    #[test]
    fn a_connection_is_asked_whether_it_lives() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut listener = Listener::bind(any, Source::Clients).unwrap();
        let poller = Poller::new().unwrap();
        let _client = TcpStream::connect(listener.address().unwrap()).unwrap();
        let stream = accepted(&mut listener, &poller);
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), SILENT);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), ASK_EVERY);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), ASK_TIMES);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNCONFIRMED));
    }

    #[test]
    fn a_listener_that_rests_is_silent_until_it_is_resumed() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut listener = Listener::bind(any, Source::Clients).unwrap();
        let poller = Poller::new().unwrap();
        listener.register(&poller).unwrap();
        let _client = TcpStream::connect(listener.address().unwrap()).unwrap();
        // As after an error of the system, which a test cannot have without harm to its neighbours.
        poller.modify(&listener.listener, listener.source, EventFlags::empty()).unwrap();
        listener.rests_until = Some(Time::ZERO + ACCEPT_PAUSE);
        let mut ready = Vec::new();
        poller.wait(Time::ZERO, Time::ZERO, &mut ready).unwrap();
        assert_eq!((ready.len(), listener.next_timeout()), (0, Time::ZERO + ACCEPT_PAUSE));
        assert!(listener.accept(Time::ZERO, &poller).unwrap().is_none());
        listener.resume(Time::ZERO, &poller);
        assert!(listener.rests_until.is_some(), "not before it is due");
        listener.resume(Time::ZERO + ACCEPT_PAUSE, &poller);
        poller.wait(Time::ZERO, Time::FAR, &mut ready).unwrap();
        assert_eq!(ready, [(Source::Clients, EventFlags::IN)]);
        accepted(&mut listener, &poller);
    }
}
