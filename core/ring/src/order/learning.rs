//! This node learns how far the others are.

use wire::limits::MAX_WINDOW;

use super::Order;

impl Order {
    /// The last number that was given out, as far as known.
    fn sent(&self) -> u64 {
        self.token.as_ref().map_or(self.window.high(), |token| token.sequence)
    }

    /// The last number that can have been given out: by this node itself, or within the others'
    /// window.
    fn sendable(&self) -> u64 {
        let window = self.window.aru().saturating_add(MAX_WINDOW as u64);
        self.token.as_ref().map_or(window, |token| token.sequence)
    }

    /// Takes a member's word for how far it is. Nobody can have what was not sent; but what a
    /// member has may have overtaken what this node is yet to see of it.
    pub fn learn(&mut self, member: usize, aru: u64) {
        if aru <= self.sendable() {
            self.held.claim(member, aru);
            self.believe();
        }
    }

    /// A member says what it has on its disk. Nobody can have kept what was not sent.
    pub fn learn_stored(&mut self, member: usize, stored: u64) {
        self.stored.claim(member, stored.min(self.sendable()));
        self.believe();
    }

    /// More may be known to be sent: what members said that they have of it is so.
    pub(super) fn believe(&mut self) {
        let sent = self.sent();
        self.held.settle(sent);
        self.stored_more |= self.stored.settle(sent);
    }
}
