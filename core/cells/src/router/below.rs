//! The cells below: attached, renewed, heard, and told of changes above.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use wire::path::Path;
use wire::{Duration, Time};

use super::asks::{Asks, Back};
use super::links::Links;
use super::sight::Sight;
use crate::command::{Attachment, Command, Count, Epoch, Place, Refusal, Verdict};
use crate::limits::MAX_CHILDREN;
use crate::message::Message;
use crate::output::{LinkId, Outputs};

/// Renewals that come within this time are ordered together.
const TOGETHER: Duration = Duration::from_millis(100);

/// An order to end leases that nobody has taken is given again after this time.
const TICK_AGAIN: Duration = Duration::from_millis(250);

/// The cells below, as one node hears of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Below {
    /// Renewals that are to be ordered, by the link that they came by.
    renewals: BTreeMap<Path, (Epoch, LinkId)>,
    since: Option<Time>,
    /// The cells above, as those below are told, and the links by which they know it.
    above: Vec<Place>,
    told: BTreeMap<LinkId, bool>,
    /// When the end of leases was ordered last.
    ticked: Option<Time>,
}

/// The fields that the handlers of the cells below may touch.
pub(super) struct BelowHandler<'a, 'b> {
    pub(super) below: &'a mut Below,
    pub(super) links: &'a Links,
    pub(super) out: &'a mut Outputs,
    pub(super) asks: &'a mut Asks,
    pub(super) sight: &'a Sight<'b>,
    /// Paths are not checked: planted.
    pub(super) believes: bool,
}

impl Below {
    pub(super) fn lost(&mut self, link: LinkId) {
        self.told.remove(&link);
        self.renewals.retain(|_, (_, from)| *from != link);
    }

    pub(super) fn next_timeout(&self, now: Time, sight: &Sight<'_>) -> Option<Time> {
        let renewals = self.since.map(|since| since + TOGETHER);
        let end = sight.cell.next_end().filter(|_| sight.is_seat());
        // The order's clock is the wall's.
        let end = end.map(|end| {
            let again = self.ticked.map_or(Time::ZERO, |at| at + TICK_AGAIN);
            (now + end.since(sight.wall)).max(again)
        });
        renewals.into_iter().chain(end).min()
    }
}

impl BelowHandler<'_, '_> {
    /// Does what is due, and tells the cells below what has changed above.
    pub(super) fn look(&mut self, now: Time) {
        if self.below.since.is_some_and(|since| since + TOGETHER <= now) {
            self.below.since = None;
            let renewals = core::mem::take(&mut self.below.renewals);
            let links = renewals.values().map(|(_, link)| *link).collect();
            let children = renewals.into_iter().map(|(path, (epoch, _))| (path, epoch)).collect();
            self.asks.order(self.out, Command::Renew(children), Some(Back::Renewals(links)));
        }
        let is_over = self.sight.cell.next_end().is_some_and(|end| end <= self.sight.wall);
        let is_due = self.below.ticked.is_none_or(|at| at + TICK_AGAIN <= now);
        if self.sight.is_seat() && is_over && is_due {
            self.below.ticked = Some(now);
            self.asks.order(self.out, Command::Tick, None);
        }
        self.tell_above();
    }

    /// # Errors
    /// A cell speaks for itself alone.
    pub(super) fn attach(&mut self, link: LinkId, wanted: Attachment) -> Result<(), &'static str> {
        let is_own = self.links.path_of(link) == Some(&wanted.place.path);
        if !is_own && !self.believes {
            return Err("it speaks for another cell");
        }
        self.asks.order(self.out, Command::Attach(wanted), Some(Back::Attach(link)));
        Ok(())
    }

    pub(super) fn renew(&mut self, now: Time, link: LinkId, epoch: Epoch) {
        let Some(path) = self.links.path_of(link) else { return };
        if self.below.renewals.len() < MAX_CHILDREN || self.below.renewals.contains_key(path) {
            self.below.renewals.insert(path.clone(), (epoch, link));
            self.below.since.get_or_insert(now);
        }
    }

    pub(super) fn report(&mut self, link: LinkId, epoch: Epoch, upto: u64, counts: Vec<Count>) {
        let Some(path) = self.links.path_of(link).cloned() else { return };
        let back = Back::Report(link, epoch);
        self.asks.order(self.out, Command::Report { path, epoch, upto, counts }, Some(back));
    }

    /// The group has answered a command that a cell below had caused.
    pub(super) fn answered(&mut self, back: Back, verdict: Result<Verdict, Refusal>) {
        match (back, verdict) {
            (Back::Attach(link), Ok(Verdict::Attached(mut attached))) => {
                self.look_above();
                attached.above = self.below.above.clone();
                self.below.told.insert(link, true);
                self.out.control(link, Message::Attached(attached));
            }
            (Back::Attach(link), Err(refusal)) => {
                self.out.control(link, Message::Refused(refusal.to_string()));
            }
            (Back::Renewals(links), Ok(Verdict::Renewed { shunned })) => {
                for link in links {
                    if self.links.path_of(link).is_some_and(|path| shunned.contains(path)) {
                        self.out.control(link, Message::Shunned);
                    }
                }
            }
            (Back::Report(link, epoch), Ok(Verdict::Reported(upto))) => {
                self.out.control(link, Message::Reported { epoch, upto });
            }
            (Back::Report(link, _), Ok(Verdict::Shunned)) => {
                self.out.control(link, Message::Shunned);
            }
            // Nobody has ordered it: the cell below asks again.
            _ => {}
        }
    }

    /// This cell with its nodes that carry now, and the cells above it, are as they are now.
    fn look_above(&mut self) {
        let cell = self.sight.cell;
        let is_so = self.below.above.split_first().is_some_and(|(own, above)| {
            own.path == *cell.path() && self.sight.links_are(&own.at) && above == cell.above()
        });
        if !is_so {
            let own = Place { path: cell.path().clone(), at: self.sight.links_at() };
            self.below.above = core::iter::once(own).chain(cell.above().iter().cloned()).collect();
            self.below.told.values_mut().for_each(|is_told| *is_told = false);
        }
    }

    fn tell_above(&mut self) {
        if !self.sight.links_up() || self.below.told.is_empty() {
            return;
        }
        self.look_above();
        for (link, is_told) in self.below.told.iter_mut().filter(|(_, is_told)| !**is_told) {
            *is_told = true;
            self.out.control(*link, Message::Above(self.below.above.clone()));
        }
    }
}
