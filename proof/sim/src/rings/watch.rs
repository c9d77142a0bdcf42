//! All checkers of the bare rings, told of everything that they deliver, and the oracle's log of
//! it.

use ring::{Configuration, ConfigurationKind, Delivery, Level};
use wire::{Member, RingId, Time};

use super::stamp::stamped;
use crate::check::detection::Detection;
use crate::check::evs::{Delivered, Evs, MessageId};
use crate::check::settling::Settling;
use crate::check::stability::Stability;
use crate::check::wait::Wait;
use crate::check::{Verdict, demand};
use crate::oracle::sequencer::Sequencer;

/// The checkers and the oracle.
pub(super) struct Watch {
    pub wait: Wait,
    pub detection: Detection,
    pub settling: Settling,
    evs: Evs,
    stability: Stability,
    sequencer: Sequencer,
}

impl Watch {
    /// Rings with these knobs.
    pub fn new(turn: usize, parking: bool) -> Self {
        Watch {
            wait: Wait::new(turn, parking),
            detection: Detection::default(),
            settling: Settling::default(),
            evs: Evs::default(),
            stability: Stability::default(),
            sequencer: Sequencer::default(),
        }
    }

    /// A node's machine took a message to multicast.
    pub fn multicast(&mut self, message: MessageId, level: Level) {
        self.evs.multicast(message, level);
        self.sequencer.multicast(message);
    }

    /// A node delivers a message; tells which.
    pub fn delivered(
        &mut self,
        by: Member,
        delivery: &Delivery,
    ) -> Result<MessageId, crate::check::Violation> {
        let message = stamped(&delivery.payload)?;
        let Delivery { ring, sequence, contiguous, sender, level, .. } = *delivery;
        demand(sender == message.0, "basic delivery", || {
            format!("{by} delivers {message:?} as one of {sender}")
        })?;
        let delivered = Delivered { by, message, ring, sequence, contiguous, level };
        self.evs.delivered(&delivered)?;
        self.stability.delivered(by, ring, message);
        self.sequencer.delivered(&delivered);
        Ok(message)
    }

    /// A node delivers a configuration.
    pub fn configured(&mut self, now: Time, by: Member, configuration: &Configuration) -> Verdict {
        let Configuration { kind, ring, members } = configuration;
        match kind {
            ConfigurationKind::Regular => {
                self.stability.ring(*ring, members);
                self.wait.ring(*ring, members);
                self.settling.configured(by, members, now);
                self.detection.configured(by, members)?;
            }
            ConfigurationKind::Transitional => self.stability.recovered(by, *ring, members),
        }
        self.evs.configured(by, configuration)?;
        self.sequencer.configured(by, configuration);
        Ok(())
    }

    /// The network brought a datagram of a ring to a node.
    pub fn heard(&mut self, by: Member, ring: RingId, sequence: u64) {
        self.evs.heard(by, ring, sequence);
    }

    /// A node reports how far its ring's members have the messages.
    pub fn held(&mut self, by: Member, ring: RingId, majority: u64, all: u64) -> Verdict {
        self.stability.held(by, ring, majority, all)
    }

    /// A life ends.
    pub fn died(&mut self, member: Member) {
        self.stability.died(member);
        self.evs.died(member);
        self.sequencer.died(member);
    }

    /// Returns an objection if a node that lives has not delivered its own messages.
    pub fn undelivered(&self, alive: &[Member]) -> Option<String> {
        self.evs.undelivered(alive).err().map(|violation| violation.to_string())
    }

    /// At the end, all being well with these.
    pub fn finish(&self, alive: &[Member]) -> Verdict {
        self.evs.finish()?;
        self.stability.finish(self.evs.order())?;
        self.sequencer.judge(alive)
    }
}
