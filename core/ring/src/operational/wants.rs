//! Requests for the token when a member has something to send: to as few members as know enough,
//! and as rarely as is safe.
//!
//! See docs/protocol/ring.md, "Parking".

use wire::ring::{Message, Want};

use super::Operational;
use crate::Route;

impl Operational<'_> {
    /// There is something to send. A node without the token asks for it, once and then by the
    /// timer.
    pub fn queued(&mut self) {
        if self.order.token.is_some() {
            return self.go_on();
        }
        let asked = self.turn.want.told || self.turn.want.at.is_some();
        if !asked && self.config.parking {
            self.ask(); // Without parking it comes anyway.
        }
    }

    /// The token has not come.
    pub fn ask_again(&mut self) {
        self.turn.want.at = None;
        if self.order.token.is_none() && !self.queue.is_empty() && self.config.parking {
            self.turn.want.times += 1;
            self.ask();
        }
    }

    /// Asks the holder, where it is known: that of a token which has rested for a while. Else, and
    /// if it does not come, all: one of them has the token, or will have it next.
    fn ask(&mut self) {
        let want = self.out.encode(Message::Want(Want { ring: self.order.id }));
        let again = self.turn.want.times > 0;
        let rests = self.now >= self.order.watch.evidence + self.config.timing.want_retry;
        let holder = self.order.watch.holder;
        if !again && rests && holder != self.order.mine {
            self.out.send_bytes(self.order.members[holder].node, want, Route::Best);
        } else {
            let route = if again { Route::Every } else { Route::Best };
            self.out.fan(&self.order.members, want, route);
        }
        self.turn.want.at = Some(self.now + self.turn.want.timeout(self.config));
        self.order.watch.stirred(self.now); // The answer is due, however quiet the ring may be.
    }
}
