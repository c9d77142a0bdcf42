//! How far each member is, and what members say to have before this node knows that it was sent.
//!
//! An acknowledgement is shorter than what it is about, may come from elsewhere, and does not wait
//! in the same queues: it overtakes it. It is not said again, and somebody may wait for it.

use alloc::vec;
use alloc::vec::Vec;

use wire::limits::MAX_MEMBERS;

/// One place in the ring's numbers for each member.
#[derive(Debug)]
pub(crate) struct Reach {
    known: Vec<u64>,
    /// Up to where each says to be; 0: no further than is known.
    claims: Vec<u64>,
    claimed: bool,
}

impl Reach {
    pub fn new(members: usize) -> Reach {
        Reach { known: vec![0; members], claims: vec![0; members], claimed: false }
    }

    pub fn of(&self, member: usize) -> u64 {
        self.known[member]
    }

    /// The members' places, in their order.
    pub fn known(&self) -> &[u64] {
        &self.known
    }

    /// The largest number that all members have reached.
    pub fn all(&self) -> u64 {
        self.known.iter().copied().min().expect("a ring has members")
    }

    /// The largest number that more than half of the members have reached.
    pub fn majority(&self) -> u64 {
        let mut sorted = [0; MAX_MEMBERS];
        let sorted = &mut sorted[..self.known.len()];
        sorted.copy_from_slice(&self.known);
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        sorted[sorted.len() / 2]
    }

    /// This member is here.
    pub fn set(&mut self, member: usize, upto: u64) {
        self.known[member] = upto;
    }

    /// All members are here, or further.
    pub fn raise_all(&mut self, upto: u64) {
        for known in &mut self.known {
            *known = (*known).max(upto);
        }
    }

    /// The members are at these places, or further.
    pub fn raise(&mut self, told: &[u64]) {
        for (known, told) in self.known.iter_mut().zip(told) {
            *known = (*known).max(*told);
        }
    }

    /// A member says that it is here.
    pub fn claim(&mut self, member: usize, upto: u64) {
        self.claims[member] = self.claims[member].max(upto);
        self.claimed = true;
    }

    /// So much is known to be sent: members have of it what they said. True if that is more than
    /// was known of one.
    pub fn settle(&mut self, sent: u64) -> bool {
        if !self.claimed {
            return false;
        }
        let (mut grown, mut left) = (false, false);
        for (claim, known) in self.claims.iter_mut().zip(&mut self.known) {
            let true_part = (*claim).min(sent);
            grown |= true_part > *known;
            *known = true_part.max(*known);
            if *claim <= sent {
                *claim = 0;
            }
            left |= *claim > 0;
        }
        self.claimed = left;
        grown
    }

    /// Nothing beyond what is known was sent: what is left is not true.
    pub fn refute(&mut self) {
        self.claims.fill(0);
        self.claimed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_true_as_far_as_is_known_to_be_sent_and_comes_true_later() {
        let mut reach = Reach::new(3);
        reach.raise_all(4);
        reach.claim(1, 7);
        reach.claim(1, 6);
        reach.claim(2, 5);
        assert!(reach.settle(5));
        assert_eq!(reach.known(), [4, 5, 5]);
        assert!(!reach.settle(5), "no news");
        assert!(reach.settle(9));
        assert_eq!(reach.known(), [4, 7, 5], "no further than was said");
        assert!(!reach.settle(20));
        reach.claim(0, 30);
        reach.refute();
        assert!(!reach.settle(40));
        assert_eq!(reach.known(), [4, 7, 5]);
    }
}
