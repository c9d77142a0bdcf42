//! Where ranks may run, and where each is to (`star.txt`, section 2: allocation manager).

use alloc::vec::Vec;

use wire::{Member, NodeId};

use crate::bug::Planted;
use crate::sight::Sight;
use crate::{Generation, Host, Job, Jobs, Rank, RankState};

/// Nodes that may have ranks, with what they have.
pub(crate) struct Seats<'a> {
    seats: Vec<Seat<'a>>,
}

struct Seat<'a> {
    node: Member,
    host: &'a Host,
    load: u32,
    ranks: u32,
}

impl Seat<'_> {
    /// The less, the more room it has.
    fn room(&self) -> (u32, u32, Member) {
        let each = self.host.processors.max(1);
        (self.ranks * 20 / each + self.load, self.ranks, self.node)
    }
}

impl<'a> Seats<'a> {
    pub fn new(sight: &Sight, book: &'a Jobs) -> Seats<'a> {
        let ranks = || book.jobs().flat_map(|(_, job)| &job.ranks);
        let is_of = |rank: &Rank, node: Member| {
            let goes = rank.moves.is_some_and(|moves| moves.to == node.node);
            goes || rank.state == RankState::At(node)
        };
        let seats = book.hosts().filter(|(node, _)| sight.offers(*node)).map(|(node, host)| Seat {
            node,
            host,
            load: sight.loads.get(&node.node).copied().unwrap_or(0),
            ranks: ranks().filter(|rank| is_of(rank, node)).count() as u32,
        });
        Seats { seats: seats.collect() }
    }

    /// Where a rank is to run: where all of its state is; not where it could not begin or ends again
    /// and again, if there is another; then where it has the most room. `kind`: the processors of its
    /// job.
    pub fn choose(
        &mut self,
        job: &Job,
        kind: Option<&str>,
        rank: &Rank,
    ) -> Option<(Member, &'a Host)> {
        if rank.images.is_away(Planted::default()) {
            return None;
        }
        let state = rank.images.restorable().next();
        let has = |node: &Member| {
            let has_all =
                |state: &Vec<&Generation>| state.iter().all(|image| image.holders.contains(node));
            state.as_ref().is_none_or(has_all)
        };
        let blamed = |node: Member| {
            let fruitless = rank.fruitless() > 1 && rank.ran == Some(node.node);
            (rank.is_unfit(node.node), fruitless)
        };
        let valid = |seat: &&mut Seat<'_>| seat.host.suits(&job.spec, kind) && has(&seat.node);
        let seats = self.seats.iter_mut().filter(valid);
        let seat = seats.min_by_key(|seat| (blamed(seat.node), seat.room()))?;
        seat.ranks += 1;
        Some((seat.node, seat.host))
    }

    /// Where a rank is to go on whose node is being emptied: where it was to, or where it keeps images,
    /// or where there is the most room. It goes when it has saved: else all its work would be lost.
    pub fn refuge(&mut self, sight: &Sight, job: &Job, rank: &Rank) -> Option<NodeId> {
        let RankState::At(node) = rank.state else { return None };
        if !sight.drained.contains(&node.node) {
            return None;
        }
        let goes = |seat: &Seat<'_>| rank.moves.is_some_and(|moves| moves.to == seat.node.node);
        let keeps = |seat: &Seat<'_>| rank.keepers.contains(&seat.node.node);
        let unfit = |seat: &Seat<'_>| rank.is_unfit(seat.node.node);
        let seats = self.seats.iter_mut().filter(|seat| job.fits(seat.host));
        let seat =
            seats.min_by_key(|seat| (!goes(seat), unfit(seat), !keeps(seat), seat.room()))?;
        seat.ranks += u32::from(!goes(seat));
        Some(seat.node.node)
    }
}
