//! Where a call has gone, and where an answer may still come from.

use std::net::SocketAddr;

use wire::Time;

use crate::output::Link;

/// A request that was sent, or waits for its connection, and that a reply may answer.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) link: Link,
    pub(crate) address: SocketAddr,
    pub(crate) sent: bool,
    /// When it was sent, or began to wait for that.
    pub(crate) at: Time,
}

#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// Those that a reply may still answer, in order. Never two on one connection.
    attempts: Vec<Attempt>,
    /// Targets that this round leaves out.
    tried: Vec<SocketAddr>,
    /// Where the last attempt went.
    last: Option<SocketAddr>,
}

impl Trail {
    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    pub(crate) fn tried(&self) -> &[SocketAddr] {
        &self.tried
    }

    pub(crate) fn last(&self) -> Option<SocketAddr> {
        self.last
    }

    /// No answer may come any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.attempts.is_empty()
    }

    /// A request is out.
    pub(crate) fn is_out(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.sent)
    }

    /// The call lies at this target.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        self.attempts.iter().any(|attempt| attempt.address == address)
    }

    pub(crate) fn links(&self) -> Vec<Link> {
        self.attempts.iter().map(|attempt| attempt.link).collect()
    }

    /// This round leaves these targets out.
    pub(crate) fn leave_out(&mut self, addresses: &[SocketAddr]) {
        self.tried.extend(addresses);
    }

    /// The call goes to another target; says which one it leaves.
    pub(crate) fn go(&mut self, now: Time, link: Link, address: SocketAddr) -> Option<SocketAddr> {
        self.go_beside(now, link, address);
        self.last.replace(address).filter(|from| *from != address)
    }

    /// The call goes to a second target, and leaves none.
    pub(crate) fn go_beside(&mut self, now: Time, link: Link, address: SocketAddr) {
        self.tried.push(address);
        self.attempts.push(Attempt { link, address, sent: false, at: now });
    }

    /// The request leaves on this connection.
    pub(crate) fn send(&mut self, now: Time, link: Link) {
        let waiting = self.attempts.iter_mut().find(|attempt| attempt.link == link);
        let waiting = waiting.expect("an attempt names its connection");
        (waiting.sent, waiting.at) = (true, now);
    }

    /// A reply on this connection answers the call.
    pub(crate) fn answers(&self, link: Link) -> bool {
        self.attempts.iter().any(|attempt| attempt.link == link && attempt.sent)
    }

    /// Nothing more comes on this connection: the attempt that went there, and whether it was the
    /// last.
    pub(crate) fn end(&mut self, link: Link) -> Option<(Attempt, bool)> {
        let place = self.attempts.iter().position(|attempt| attempt.link == link)?;
        let attempt = self.attempts.remove(place);
        Some((attempt, place == self.attempts.len()))
    }

    /// A new round over the targets: only where the request still lies is left out.
    pub(crate) fn begin_round(&mut self) {
        self.tried = self.attempts.iter().map(|attempt| attempt.address).collect();
    }
}
