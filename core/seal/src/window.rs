//! Which datagrams of a life have come.

use wire::limits::MAX_WINDOW;

/// Counters that a window remembers behind the largest. A datagram may be overtaken by that many
/// others of its sender and is still taken: four times what flow control lets onto the ring before
/// all have it, for what tokens, acknowledgements and repeats add, and for a link that is slower
/// than the other.
pub const WINDOW: u64 = 4 * MAX_WINDOW as u64;

const WORDS: usize = WINDOW as usize / 64;

/// The state of a counter in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// It has not come before.
    Yes,
    /// It has.
    Seen,
    /// It is too old to tell.
    TooOld,
    /// It was used before the window began.
    BeforeStart,
}

/// A sliding window of counters, as that of IPsec (RFC 6479): a ring of bits, of which the word
/// that the largest counter enters is cleared first.
#[derive(Clone, Debug)]
pub struct Window {
    start: u64,
    largest: u64,
    bits: [u64; WORDS],
}

impl Window {
    /// A window that begins with this counter, which has come.
    pub fn starting_at(counter: u64) -> Window {
        let mut window = Window { start: counter, largest: counter, bits: [0; WORDS] };
        window.mark(counter);
        window
    }

    /// Whether a counter may be taken. Nothing changes: only what is authentic may do that.
    pub fn check(&self, counter: u64) -> Fresh {
        if counter > self.largest {
            Fresh::Yes
        } else if counter < self.start {
            Fresh::BeforeStart
        // One word of the ring is being filled: the window is that much shorter.
        } else if self.largest - counter > WINDOW - 64 {
            Fresh::TooOld
        } else if self.bits[word(counter)] & bit(counter) != 0 {
            Fresh::Seen
        } else {
            Fresh::Yes
        }
    }

    /// Takes a counter that [`check`](Window::check) lets pass and whose datagram is authentic.
    pub fn take(&mut self, counter: u64) {
        if counter > self.largest {
            let (last, next) = (self.largest / 64, counter / 64);
            for number in last + 1..=next.min(last + WORDS as u64) {
                self.bits[(number % WORDS as u64) as usize] = 0;
            }
            self.largest = counter;
        }
        self.mark(counter);
    }

    fn mark(&mut self, counter: u64) {
        self.bits[word(counter)] |= bit(counter);
    }
}

fn word(counter: u64) -> usize {
    (counter / 64 % WORDS as u64) as usize
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}
