//! A replica's part in a comparison.

use alloc::vec::Vec;

use wire::RingId;
use wire::ordered::{Compared, Ordered, StateDigest};

use super::Comparing;
use crate::api::Command;
use crate::bug::Bug;
use crate::replica::{Effect, Mode, Replica};

impl Replica {
    /// The number of calls that the service has been given, if it is given all that is ordered.
    pub(crate) fn given(&self) -> Option<u64> {
        let gives = matches!(self.mode, Mode::Live) && self.cold.is_none() && !self.is_ahead();
        gives.then(|| self.lead.last())
    }

    /// At this place of the order the service is asked for a digest of its state. A replica whose
    /// requests wait for a snapshot or a state takes no part.
    pub(crate) fn compare(&mut self, at: (RingId, u64), effects: &mut Vec<Effect>) {
        let Some(executed) = self.given() else { return };
        self.comparing = Some(Comparing { at, executed });
        let command = Command::Digest { number: at.1 };
        match self.planted.is(Bug::DigestTooEarly) {
            true => effects.push(Effect::Run(command)),
            false => self.run(command, effects),
        }
    }

    /// The service tells its digest. One for a comparison before this replica lost its state, or
    /// before this component, is of no use.
    pub(crate) fn digested(&mut self, number: u64, state: StateDigest, effects: &mut Vec<Effect>) {
        let asked = self.comparing.take_if(|it| it.at.1 == number);
        if let Some(Comparing { at: (ring, sequence), executed }) = asked {
            let group = self.group;
            let compared = Compared { group, ring, sequence, executed, state };
            effects.push(Effect::Order(Ordered::Compared(compared)));
        }
    }
}
