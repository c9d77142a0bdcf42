//! Safe messages: which there are, and what everybody was told of what is stable.

#[derive(Debug, Default)]
pub(crate) struct Safe {
    /// The newest datagram with safe messages, anybody's and this node's own.
    last: u64,
    mine: u64,
    /// All members were told that everybody has everything up to here.
    announced: u64,
}

impl Safe {
    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn mine(&self) -> u64 {
        self.mine
    }

    /// This datagram has safe messages.
    pub fn saw(&mut self, sequence: u64) {
        self.last = self.last.max(sequence);
    }

    /// So has this one, which this node sends.
    pub fn sent(&mut self, sequence: u64) {
        self.mine = sequence;
    }

    /// A datagram to all says that this is stable.
    pub fn told(&mut self, stable: u64) {
        self.announced = self.announced.max(stable);
    }

    /// This node says to all that this is stable.
    pub fn announce(&mut self, stable: u64) {
        self.announced = stable;
    }

    /// Everybody has safe messages up to `last`, and may not have been told.
    pub fn owes(&self, last: u64, stable: u64) -> bool {
        self.announced < last && last <= stable
    }

    /// More is stable than was told, and somebody may wait for that.
    pub fn could_tell(&self, stable: u64) -> bool {
        self.announced < self.mine && self.announced < stable
    }
}
