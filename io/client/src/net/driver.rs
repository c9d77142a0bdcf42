//! Carries out the session's outputs, and passes the sockets' events to the session.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use wire::Time;
use wire::client::Frame;

use super::stream::Stream;
use crate::buffers::{Ended, EventLog, READ_SIZE};
use crate::channel::Channel;
use crate::secure::{Tls, begin};
use crate::sessions::Sessions;
use crate::{CallId, Config, ConnectError, Link, Output, Trouble};

/// The state that all threads of a client share under one lock.
pub(super) struct Driver {
    pub(super) sessions: Sessions,
    tls: Option<Tls>,
    start: Instant,
    streams: BTreeMap<Link, Stream>,
    /// Streams that frames were put into since they were flushed last.
    unflushed: Vec<Link>,
    scratch: Box<[u8]>,
    frames: Vec<Frame>,
    /// Results whose threads have not taken them yet.
    pub(super) results: BTreeMap<CallId, Ended>,
    /// Threads that wait while another one polls.
    pub(super) waiting: BTreeMap<CallId, Arc<Condvar>>,
    pub(super) events: EventLog,
    /// A thread does this for all others.
    pub(super) led: bool,
    /// It is in `poll(2)` now, without the lock.
    pub(super) polling: bool,
    /// The leader polls for an outdated set of sockets.
    stale: bool,
    /// Until when it waits.
    polls_until: Time,
    served: Instant,
    alarm: Arc<OwnedFd>,
}

/// Sockets, and what to wait for: taken under the lock, used without it.
pub(super) struct Watch {
    sockets: Vec<(Link, Arc<TcpStream>, PollFlags)>,
    alarm: Arc<OwnedFd>,
    timeout: Option<Timespec>,
}

/// The result of a watch.
pub(super) struct Seen(Vec<(Link, PollFlags)>);

impl Driver {
    pub(super) fn new(config: Config, tls: Option<Tls>) -> Result<Driver, ConnectError> {
        let alarm = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|error| ConnectError::System(error.to_string()))?;
        let start = Instant::now();
        Ok(Driver {
            sessions: Sessions::new(config, Time::ZERO),
            tls,
            start,
            streams: BTreeMap::new(),
            unflushed: Vec::new(),
            scratch: vec![0; READ_SIZE].into(),
            frames: Vec::new(),
            results: BTreeMap::new(),
            waiting: BTreeMap::new(),
            events: EventLog::default(),
            led: false,
            polling: false,
            stale: false,
            polls_until: Time::ZERO,
            served: start,
            alarm: Arc::new(alarm),
        })
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    /// How long nobody has looked at the sockets.
    pub(super) fn neglected(&self) -> Duration {
        self.served.elapsed()
    }

    /// Does all that the session says.
    pub(super) fn pump(&mut self) {
        loop {
            while let Some(output) = self.sessions.poll_output() {
                self.perform(output);
            }
            let Some(link) = self.unflushed.pop() else { break };
            let Some(stream) = self.streams.get_mut(&link) else { continue };
            let flushed = stream.flush();
            self.stale |= stream.wants_to_write();
            if flushed.is_err() {
                self.lose(link);
            }
        }
        if self.polling && (self.stale || self.next_timeout() < self.polls_until) {
            // The counter of an eventfd cannot run over by this: the poller empties it.
            let _ = rustix::io::write(&*self.alarm, &1u64.to_ne_bytes());
        }
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::Connect { link, address } => {
                self.stale = true;
                let records =
                    self.tls.as_ref().map(|tls| begin(tls, address, self.sessions.cell_of(link)));
                match Stream::dial(address, Channel::new(records)) {
                    Ok(stream) => drop(self.streams.insert(link, stream)),
                    Err(_) => self.lose(link),
                }
            }
            Output::Send { link, frame } => {
                let Some(stream) = self.streams.get_mut(&link) else { return };
                if stream.put(&frame).is_err() {
                    return self.lose(link);
                }
                if self.unflushed.last() != Some(&link) {
                    self.unflushed.push(link);
                }
            }
            Output::Disconnect { link } => {
                self.stale |= self.streams.remove(&link).is_some();
            }
            Output::Done { call, result, answers } => {
                self.results.insert(call, (result, answers));
                if let Some(thread) = self.waiting.remove(&call) {
                    thread.notify_one();
                }
            }
            Output::Event(event) => self.events.put(event),
        }
    }

    fn lose(&mut self, link: Link) {
        self.streams.remove(&link);
        self.stale = true;
        let now = self.now();
        self.sessions.handle_disconnected(now, link);
    }

    /// As `lose`, for a reason that the stream has found.
    fn fail(&mut self, link: Link, trouble: Trouble) {
        if let Some(mut stream) = self.streams.remove(&link) {
            // TLS may have a last word for the node, which is not waited for.
            let _ = stream.flush();
        }
        self.stale = true;
        let now = self.now();
        self.sessions.handle_failed(now, link, trouble);
    }

    fn next_timeout(&self) -> Time {
        self.sessions.next_timeout().unwrap_or(Time::FAR)
    }

    /// If nobody polls, one of the threads that still wait has to.
    pub(super) fn hand_over(&self) {
        if !self.led
            && let Some(next) = self.waiting.values().next()
        {
            next.notify_one();
        }
    }

    /// Nobody wants the answer of this call any more.
    pub(super) fn give_up(&mut self, call: CallId) {
        self.results.remove(&call);
        let now = self.now();
        self.sessions.cancel(now, call);
        self.pump();
    }

    /// The sockets to poll, at most until `limit`.
    pub(super) fn watch(&mut self, limit: Time) -> Watch {
        let mut sockets = Vec::with_capacity(self.streams.len());
        for (link, stream) in &self.streams {
            let out = if stream.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
            sockets.push((*link, stream.socket.clone(), PollFlags::IN | out));
        }
        let until = self.next_timeout().min(limit);
        self.stale = false;
        self.polls_until = until;
        let timeout = (until != Time::FAR)
            .then(|| Timespec::try_from(until.since(self.now())).expect("time-outs are short"));
        Watch { sockets, alarm: self.alarm.clone(), timeout }
    }

    /// Tells the session what was seen, and what time it is, and does what it says.
    pub(super) fn serve(&mut self, seen: &Seen) {
        self.served = Instant::now();
        // Received data counts before any time-out: this thread may have been held up.
        for (link, flags) in &seen.0 {
            self.serve_stream(*link, *flags);
        }
        let now = self.now();
        if self.next_timeout() <= now {
            self.sessions.handle_timeout(now);
        }
        self.pump();
    }

    fn serve_stream(&mut self, link: Link, flags: PollFlags) {
        let now = self.now();
        let Some(stream) = self.streams.get_mut(&link) else { return };
        if flags.intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP) {
            match stream.finish_dial() {
                Ok(true) => {
                    self.sessions.handle_connected(now, link);
                    self.unflushed.push(link);
                }
                Ok(false) => self.unflushed.push(link),
                Err(_) => return self.lose(link),
            }
        }
        if flags.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP) {
            let Some(stream) = self.streams.get_mut(&link) else { return };
            let read = stream.read(&mut self.scratch, &mut self.frames);
            for frame in self.frames.drain(..) {
                self.sessions.handle_frame(now, link, frame);
            }
            match read {
                // A handshake's next words, or frames that waited for its end.
                Ok(()) if stream_wants(&self.streams, link) => self.unflushed.push(link),
                Ok(()) => {}
                Err(None) => self.lose(link),
                Err(Some(trouble)) => self.fail(link, trouble),
            }
        }
    }
}

fn stream_wants(streams: &BTreeMap<Link, Stream>, link: Link) -> bool {
    streams.get(&link).is_some_and(Stream::wants_to_write)
}

impl Watch {
    /// Waits until something is to be done.
    pub(super) fn wait(self) -> Seen {
        let alarm = std::iter::once(PollFd::new(&*self.alarm, PollFlags::IN));
        let sockets = self.sockets.iter().map(|(_, socket, flags)| PollFd::new(&**socket, *flags));
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(1 + self.sockets.len());
        polled.extend(alarm.chain(sockets));
        match poll(&mut polled, self.timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Seen(Vec::new()),
            Ok(_) => {}
            // Only wrong arguments or no memory can be the cause: nothing a caller could mend.
            Err(error) => panic!("poll(2) failed: {error}"),
        }
        if !polled[0].revents().is_empty() {
            let _ = rustix::io::read(&*self.alarm, &mut [0u8; 8]);
        }
        let links = self.sockets.iter().map(|(link, ..)| *link);
        let flags = polled[1..].iter().map(PollFd::revents);
        Seen(links.zip(flags).filter(|(_, flags)| !flags.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Invocation;

    #[test]
    fn whoever_polls_is_woken_when_it_waits_for_too_little() {
        let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let mut driver = Driver::new(crate::buffers::draw(vec![nowhere]).unwrap(), None).unwrap();
        let limit = Duration::from_secs(20);
        let watch = driver.watch(driver.now() + limit);
        driver.polling = true;
        let invocation = Invocation::new("counter", "add").within(Duration::from_millis(50));
        driver.sessions.call(driver.now(), invocation);
        driver.pump();
        let begun = Instant::now();
        assert!(watch.wait().0.is_empty(), "the new connection was not there to be seen");
        assert!(begun.elapsed() < limit / 2);
    }
}
