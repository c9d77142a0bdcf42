//! Why a member that does not keep up is left out, and how that is told.

use wire::ring::{self, Join};
use wire::{Duration, Member};

use crate::output::{Charge, Event};

/// Why a member is left out that did not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blame {
    pub member: Member,
    /// The member that was kept from sending; without a charge, the member that reports the
    /// exclusion.
    pub by: Member,
    pub charge: Option<Charge>,
}

impl Blame {
    /// The charge as a proposal tells it. `place`: where in it a member stands.
    pub fn told(&self, place: impl Fn(Member) -> Option<usize>) -> Option<ring::Charge> {
        let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        let place = |member| place(member).and_then(|place| u8::try_from(place).ok());
        let Charge { stopped, within, limit, share } = self.charge?;
        Some(ring::Charge {
            member: place(self.member)?,
            by: place(self.by)?,
            stopped_us: micros(stopped),
            within_us: micros(within),
            limit_us: micros(limit),
            share: u8::try_from(share).ok()?,
        })
    }

    /// The blames in a proposal of `sender`.
    pub fn heard(sender: Member, join: &Join) -> impl Iterator<Item = Blame> + '_ {
        let micros = |us: u32| Duration::from_micros(us.into());
        let slow = join.proposed.iter().enumerate().filter(|(i, _)| join.slow >> i & 1 == 1);
        slow.map(move |(i, &member)| {
            match join.charges.iter().find(|charge| usize::from(charge.member) == i) {
                None => Blame { member, by: sender, charge: None },
                Some(told) => {
                    let charge = Charge {
                        stopped: micros(told.stopped_us),
                        within: micros(told.within_us),
                        limit: micros(told.limit_us),
                        share: told.share.into(),
                    };
                    let by = join.proposed[usize::from(told.by)];
                    Blame { member, by, charge: Some(charge) }
                }
            }
        })
    }

    pub fn event(self) -> Event {
        let Blame { member, by, charge } = self;
        Event::TooSlow { member, by, charge }
    }
}
