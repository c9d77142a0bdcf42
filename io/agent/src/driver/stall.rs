//! A rank that reaches no safe point for too long.

use wire::{Duration, Time};

/// One rank's.
#[derive(Default)]
pub(super) struct Stall {
    /// How long it may reach none; zero: for ever.
    pub most: Duration,
    /// When it reached one.
    reached: Time,
    /// It may wait for the agent.
    waits: bool,
    /// It was ended for that.
    pub ended: bool,
}

impl Stall {
    /// It is at a safe point, waits for another rank, or has what it may have waited for at the agent.
    pub fn reached(&mut self, now: Time) {
        (self.reached, self.waits) = (now, false);
    }

    /// It is at a safe point, and may wait for the agent there.
    pub fn waits(&mut self) {
        self.waits = true;
    }

    /// It is to be ended.
    pub fn is_over(&self, now: Time) -> bool {
        let counts = !self.most.is_zero() && !self.waits && !self.ended;
        counts && now.since(self.reached) > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rank_that_waits_for_nobody_stands_still() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut stall = Stall::default();
        stall.reached(at(1));
        assert!(!stall.is_over(at(1_000)), "it may for ever");
        stall.most = Duration::from_secs(5);
        assert!(!stall.is_over(at(6)) && stall.is_over(at(7)));
        stall.waits();
        assert!(!stall.is_over(at(1_000)), "its image is being saved");
        stall.reached(at(1_000));
        assert!(!stall.is_over(at(1_005)) && stall.is_over(at(1_006)));
    }
}
