//! Messages among all ranks.
//!
//! Values go up and down a binomial tree. They are joined in the order of the ranks, and always by the
//! same pairs: so a sum of floating-point numbers is the same, bit by bit, at each run.

use rank::{ChannelError, JobError as Error, OWN_TAGS};

use super::numbers::Number;
use super::rank::Rank;

/// A kind of message; each has a tag that no program can use. Ranks in Python have the same.
#[derive(Clone, Copy)]
enum Kind {
    Broadcast,
    Reduce,
    Gather,
    AllGather,
    Scatter,
    AllToAll,
    Barrier,
}

impl Kind {
    fn tag(self) -> u32 {
        OWN_TAGS | self as u32
    }
}

/// # Messages among all ranks
///
/// Each rank calls the same ones, in the same order, with as many numbers where it says so. Their errors
/// are those of [`Rank::send`] and [`Rank::receive_into`]; there is no such root.
impl Rank {
    /// Has all ranks have the root's values: as many at each.
    ///
    /// # Errors
    /// As said above.
    pub fn broadcast<T: Number>(&mut self, values: &mut [T], root: u32) -> Result<(), Error> {
        self.check(root)?;
        self.spread(values, root, Kind::Broadcast)
    }

    /// Joins the values of all ranks at the root, element by element: as many at each. Other ranks keep
    /// theirs.
    ///
    /// `op` joins two, the first of lower ranks: `|a, b| a + b`, [`f64::max`], [`u64::wrapping_add`]. The
    /// result has the same bits at each run, and at each root.
    ///
    /// # Errors
    /// As said above.
    pub fn reduce<T: Number>(
        &mut self,
        values: &mut [T],
        op: impl Fn(T, T) -> T,
        root: u32,
    ) -> Result<(), Error> {
        self.check(root)?;
        let mut joined = values.to_vec();
        self.join(&mut joined, op, Kind::Reduce)?;
        match (root, self.number()) {
            (0, 0) => values.copy_from_slice(&joined),
            (root, 0) => self.tell(root, Kind::Reduce.tag(), &joined)?,
            (root, number) if root == number => self.hear_into(0, Kind::Reduce.tag(), values)?,
            _ => {}
        }
        Ok(())
    }

    /// Joins the values of all ranks as [`Rank::reduce`] does: each has the result.
    ///
    /// # Errors
    /// As said above.
    pub fn all_reduce<T: Number>(
        &mut self,
        values: &mut [T],
        op: impl Fn(T, T) -> T,
    ) -> Result<(), Error> {
        self.join(values, op, Kind::Reduce)?;
        self.spread(values, 0, Kind::Broadcast)
    }

    /// The values of all ranks, by rank, at the root; `None` at others. Each may have another number of
    /// them.
    ///
    /// # Errors
    /// As said above.
    pub fn gather<T: Number>(
        &mut self,
        values: &[T],
        root: u32,
    ) -> Result<Option<Vec<Vec<T>>>, Error> {
        self.check(root)?;
        let (number, tag) = (self.number(), Kind::Gather.tag());
        if number != root {
            self.tell(root, tag, values)?;
            return Ok(None);
        }
        let ranks = 0..self.count();
        let one = |rank| if rank == number { Ok(values.to_vec()) } else { self.hear(rank, tag) };
        ranks.map(one).collect::<Result<_, _>>().map(Some)
    }

    /// The values of all ranks, by rank, at each. Each may have another number of them.
    ///
    /// # Errors
    /// As said above.
    pub fn all_gather<T: Number>(&mut self, values: &[T]) -> Result<Vec<Vec<T>>, Error> {
        self.trade(|_| values, Kind::AllGather)
    }

    /// This rank's part of the root's, which has one for each rank, by rank. Others have no parts.
    ///
    /// # Errors
    /// As said above; the root has not as many parts as there are ranks.
    pub fn scatter<T: Number>(
        &mut self,
        parts: Option<&[Vec<T>]>,
        root: u32,
    ) -> Result<Vec<T>, Error> {
        self.check(root)?;
        let (number, tag) = (self.number(), Kind::Scatter.tag());
        if number != root {
            return self.hear(root, tag);
        }
        let parts = self.one_each(parts.unwrap_or_default())?;
        for (to, part) in (0..).zip(parts).filter(|(to, _)| *to != number) {
            self.tell(to, tag, part)?;
        }
        Ok(parts[number as usize].clone())
    }

    /// The parts that all ranks have for this one, by rank; `parts` are this one's for all.
    ///
    /// # Errors
    /// As said above; there are not as many parts as ranks.
    pub fn all_to_all<T: Number>(&mut self, parts: &[Vec<T>]) -> Result<Vec<Vec<T>>, Error> {
        let parts = self.one_each(parts)?;
        self.trade(|to| &parts[to as usize], Kind::AllToAll)
    }

    /// Returns when each rank has come here.
    ///
    /// # Errors
    /// As said above.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.join::<u8>(&mut [], |a, _| a, Kind::Barrier)?;
        self.spread::<u8>(&mut [], 0, Kind::Barrier)
    }

    /// In the binomial tree of this root: the rank above, and those below, the nearest first.
    fn tree(&self, root: u32) -> (Option<u32>, Vec<u32>) {
        tree(self.number(), root, self.count())
    }

    /// The root's values, down its tree.
    fn spread<T: Number>(&mut self, values: &mut [T], root: u32, kind: Kind) -> Result<(), Error> {
        let (above, below) = self.tree(root);
        if let Some(above) = above {
            self.hear_into(above, kind.tag(), values)?;
        }
        // Those that are the farthest have the most below them.
        below.into_iter().rev().try_for_each(|to| self.tell(to, kind.tag(), values))
    }

    /// The values of all ranks, joined up the tree, at rank 0; partly joined at others.
    fn join<T: Number>(
        &mut self,
        values: &mut [T],
        op: impl Fn(T, T) -> T,
        kind: Kind,
    ) -> Result<(), Error> {
        let (above, below) = self.tree(0);
        let mut theirs = if below.is_empty() { Vec::new() } else { values.to_vec() };
        for source in below {
            self.hear_into(source, kind.tag(), &mut theirs)?;
            values.iter_mut().zip(&theirs).for_each(|(mine, its)| *mine = op(*mine, *its));
        }
        above.map_or(Ok(()), |above| self.tell(above, kind.tag(), values))
    }

    /// The parts that all ranks have for this one, which has one for each.
    fn trade<'a, T: Number + 'a>(
        &mut self,
        part: impl Fn(u32) -> &'a [T],
        kind: Kind,
    ) -> Result<Vec<Vec<T>>, Error> {
        let (number, count) = (self.number(), self.count());
        let mut values = vec![Vec::new(); count as usize];
        values[number as usize] = part(number).to_vec();
        for step in 1..count {
            let (to, source) = ((number + step) % count, (number + count - step) % count);
            self.tell(to, kind.tag(), part(to))?;
            values[source as usize] = self.hear(source, kind.tag())?;
        }
        Ok(values)
    }

    fn check(&self, root: u32) -> Result<(), Error> {
        let count = self.count();
        if root < count { Ok(()) } else { Err(ChannelError::NoRank(root, count).into()) }
    }

    fn one_each<'a, T>(&self, parts: &'a [Vec<T>]) -> Result<&'a [Vec<T>], Error> {
        let (given, ranks) = (parts.len(), self.count());
        if given == ranks as usize { Ok(parts) } else { Err(Error::Parts { given, ranks }) }
    }
}

/// A rank is above those from it on whose places have the lowest bit of its own cleared: so each
/// subtree has neighbouring ranks.
fn tree(rank: u32, root: u32, ranks: u32) -> (Option<u32>, Vec<u32>) {
    // Places do not overflow: a job has far fewer ranks than 2³¹.
    let place = (rank + ranks - root) % ranks;
    let at = |place: u32| (place + root) % ranks;
    let reaches = (0..32).map(|bit| 1 << bit);
    let below = reaches.take_while(|reach| place & reach == 0 && place + reach < ranks);
    let above = (place > 0).then(|| at(place & (place - 1)));
    (above, below.map(|reach| at(place + reach)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tree_reaches_all_ranks_and_is_joined_in_their_order() {
        fn joined(rank: u32, ranks: u32) -> Vec<u32> {
            let below = tree(rank, 0, ranks).1;
            [rank].into_iter().chain(below.into_iter().flat_map(|it| joined(it, ranks))).collect()
        }
        for ranks in 1..40 {
            assert!(joined(0, ranks).into_iter().eq(0..ranks), "{ranks} ranks");
            for root in 0..ranks {
                for rank in 0..ranks {
                    let (above, below) = tree(rank, root, ranks);
                    assert_eq!(above.is_none(), rank == root);
                    assert!(below.iter().all(|it| tree(*it, root, ranks).0 == Some(rank)));
                }
            }
        }
    }
}
