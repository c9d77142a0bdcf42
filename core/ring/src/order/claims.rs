//! What members say to have before this node knows that it was sent.
//!
//! An acknowledgement is shorter than what it is about, may come from elsewhere, and does not wait in the same queues: it
//! overtakes it. It is not said again, and somebody may wait for it.

use alloc::vec;
use alloc::vec::Vec;

/// For each member, up to where it says to have everything; 0: no further than is known.
#[derive(Debug)]
pub(super) struct Claims {
    upto: Vec<u64>,
    any: bool,
}

impl Claims {
    pub fn new(members: usize) -> Claims {
        Claims { upto: vec![0; members], any: false }
    }

    /// A member says that it has everything up to here.
    pub fn make(&mut self, member: usize, upto: u64) {
        self.upto[member] = self.upto[member].max(upto);
        self.any = true;
    }

    /// So much is known to be sent: members have of it what they said. True if that is more than was known of one.
    pub fn settle(&mut self, sent: u64, known: &mut [u64]) -> bool {
        if !self.any {
            return false;
        }
        let (mut grown, mut left) = (false, false);
        for (claim, known) in self.upto.iter_mut().zip(known) {
            let true_part = (*claim).min(sent);
            grown |= true_part > *known;
            *known = true_part.max(*known);
            if *claim <= sent {
                *claim = 0;
            }
            left |= *claim > 0;
        }
        self.any = left;
        grown
    }

    /// Nothing beyond what is known was sent: what is left is not true.
    pub fn refute(&mut self) {
        self.upto.fill(0);
        self.any = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_true_as_far_as_is_known_to_be_sent_and_comes_true_later() {
        let (mut claims, mut known) = (Claims::new(3), vec![4, 4, 4]);
        claims.make(1, 7);
        claims.make(1, 6);
        claims.make(2, 5);
        assert!(claims.settle(5, &mut known));
        assert_eq!(known, [4, 5, 5]);
        assert!(!claims.settle(5, &mut known), "no news");
        assert!(claims.settle(9, &mut known));
        assert_eq!(known, [4, 7, 5], "no further than was said");
        assert!(!claims.settle(20, &mut known));
        claims.make(0, 30);
        claims.refute();
        assert!(!claims.settle(40, &mut known));
        assert_eq!(known, [4, 7, 5]);
    }
}
