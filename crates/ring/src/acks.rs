//! When a sender asks who has what it sent: at once where somebody waits to know, else as rarely as the
//! window and the detection of silent members allow.
//!
//! See docs/protocol/ring.md, "Who is asked when".

use wire::Time;

use crate::Config;

/// What a holder has sent, and how far it has asked for acknowledgements.
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
    /// The token came, goes, or rests: whoever has it next finds out what is to be known.
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
