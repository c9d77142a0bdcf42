//! Specification 3, self-delivery: a sender that does not fail delivers its own messages.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specification 3. Seen at the
//! end of a run, when all is well again: a message that had to wait for another ring is delivered
//! in that one.

use wire::Member;

use super::{Delivered, MessageId, Verdict, demand};
use crate::check::hashed::{HashMap, HashSet};

const PROPERTY: &str = "self-delivery";

/// Messages that their sender has not delivered to itself.
#[derive(Clone, Default)]
pub struct SelfDelivery {
    own: HashMap<Member, HashSet<u64>>,
}

impl SelfDelivery {
    /// A message is sent.
    pub fn multicast(&mut self, message: MessageId) {
        self.own.entry(message.0).or_default().insert(message.1);
    }

    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered) {
        let Delivered { by, message, .. } = *delivered;
        if by == message.0
            && let Some(own) = self.own.get_mut(&by)
        {
            own.remove(&message.1);
        }
    }

    /// All being well, each living member has delivered its own messages.
    pub fn finish(&self, alive: &[Member]) -> Verdict {
        for by in alive {
            let left = self.own.get(by).map_or(0, HashSet::len);
            demand(left == 0, PROPERTY, || format!("{by} never delivered {left} of its own"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{delivered, member};
    use super::*;

    #[test]
    fn a_message_that_never_comes_back_is_seen() {
        let mut own = SelfDelivery::default();
        own.multicast((member(1), 1));
        own.delivered(&delivered(2, (1, 1), 1));
        assert!(own.finish(&[member(2)]).is_ok());
        assert!(own.finish(&[member(1), member(2)]).is_err(), "another's delivery is not its own");
        own.delivered(&delivered(1, (1, 1), 1));
        assert!(own.finish(&[member(1), member(2)]).is_ok());
    }
}
