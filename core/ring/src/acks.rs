//! When a sender asks who has what it sent: at once where somebody waits to know, else as rarely as
//! the window and the detection of silent members allow.
//!
//! See docs/protocol/ring.md, "Requesting acknowledgements".

use wire::{Duration, Time};

use crate::{Config, Timing};

/// How far a holder has sent, and how far it has asked for acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// Until when the holder waits for acknowledgements.
    pub at: Option<Time>,
    /// When the first datagram was sent that no later one has asked for.
    tail: Option<Time>,
    /// Somebody waits to know who has what was sent since.
    waited: bool,
}

impl Asking {
    /// The token came, goes, or rests: its next holder learns the rest.
    pub fn over(&mut self) {
        *self = Asking::default();
    }

    /// Whether a datagram that leaves now asks: because it has to (`mark`), or because it is the
    /// last for now and somebody waits, or nobody has been asked for half of `ack_wait`.
    pub fn asks(
        &mut self,
        now: Time,
        config: &Config,
        waited: bool,
        last: bool,
        mark: bool,
    ) -> bool {
        let wait = config.timing.ack_wait;
        self.waited |= waited;
        let since = *self.tail.get_or_insert(now);
        let asks = mark || last && (self.waited || now >= since + wait / 2);
        if asks {
            // Those that were only to be asked later are asked now.
            if since < now {
                self.at = Some(now + wait);
            }
            self.tail = None;
            self.waited = false;
        }
        self.at.get_or_insert(now + wait);
        asks
    }

    /// The wait is over. True if nobody has been asked for the last of what was sent.
    pub fn is_due(&mut self) -> bool {
        self.at = None;
        self.tail.take().is_some()
    }
}

/// Without parking the token collects what is acknowledged, and nobody is asked: only while it is
/// slow to come back, to find out who holds it up.
#[derive(Debug, Default)]
pub(crate) struct Lookout {
    /// When the token left, until it is back.
    left_at: Option<Time>,
    /// Until then the last datagram of each turn asks.
    until: Time,
    /// The last number for which it was asked; 0: for none.
    pub asked: u64,
    /// The member that asked with a datagram of this number that had overtaken others.
    incomplete: Option<(usize, u64)>,
}

impl Lookout {
    /// The token leaves.
    pub fn left(&mut self, now: Time) {
        self.left_at = Some(now);
    }

    /// The token is back: how long it was away, if it had been here.
    pub fn back(&mut self, now: Time) -> Option<Duration> {
        self.left_at.map(|left| now.since(left))
    }

    /// The token was away for so long, and something waited to be sent.
    pub fn waited(&mut self, now: Time, away: Duration, timing: &Timing, members: usize) {
        if away > timing.back_within(members) {
            // A member that is slow by spells is quick between them: ask for as long as a spell may
            // last.
            self.until = now + timing.longest_stall();
        }
    }

    /// Whether the last datagram of this turn asks.
    pub fn asks(&self, now: Time) -> bool {
        now < self.until
    }

    /// This node got a datagram, and has everything up to `aru` now. Returns the member that asked
    /// before this was so, and needs a report: without one it learns this only from the token.
    pub fn completes(&mut self, from: usize, asked: Option<u64>, aru: u64) -> Option<usize> {
        if let Some(sequence) = asked.filter(|sequence| *sequence > aru) {
            self.incomplete = Some((from, sequence));
        }
        self.incomplete.take_if(|(_, sequence)| *sequence <= aru).map(|(who, _)| who)
    }
}
