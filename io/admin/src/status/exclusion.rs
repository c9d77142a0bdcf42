//! Why a node was excluded from the ring, for people and tools.

use std::fmt;

use os::own_time::OwnTime;
use serde::{Deserialize, Serialize};
use wire::{Duration, NodeId};

/// The remedy for a node that is too slow for the ring.
pub const SLOW_REMEDY: &str = "Find the slow part there: the processor (a CPU quota, busy neighbours, no priority: `steadfast doctor` \
     reports them), memory swapped to a disk, a slow `inline` handler, or its network. Or allow it to stop the others' \
     sending for longer ([ring] slow_limit_ms, slow_share)";

/// The last time that this node was excluded because it did not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionStatus {
    /// When this node learned of it: nanoseconds since the Unix epoch.
    pub time: u64,
    /// The member whose sending this node stopped.
    pub by: NodeId,
    /// The figures of the accusation, if it had any.
    pub charge: Option<ChargeStatus>,
    /// Where this node's own time went, if the kernel reports it.
    pub own_time: Option<OwnTime>,
}

/// The accusation of a slow node: figures from the account of the member whose sending it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeStatus {
    /// Nanoseconds for which the node stopped the member's sending.
    pub stopped_ns: u64,
    /// The span in which it did so, in nanoseconds.
    pub within_ns: u64,
    /// Nanoseconds allowed once: `slow_limit_ms`, or `token_timeout_max_ms` if that is more.
    pub limit_ns: u64,
    /// Percent of the time allowed permanently (`slow_share`).
    pub share: u32,
}

impl From<ring::Charge> for ChargeStatus {
    fn from(charge: ring::Charge) -> Self {
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        ChargeStatus {
            stopped_ns: ns(charge.stopped),
            within_ns: ns(charge.within),
            limit_ns: ns(charge.limit),
            share: charge.share,
        }
    }
}

impl fmt::Display for ChargeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns / 1_000_000;
        let [stopped, within, limit] = [self.stopped_ns, self.within_ns, self.limit_ns].map(ms);
        let share = self.share;
        write!(
            f,
            "for {stopped} of {within} ms (allowed: {limit} ms once, and {share} % of the time)"
        )
    }
}

/// The accusation in words: how long the excluded node stopped `by`'s sending.
pub fn owed(by: NodeId, charge: Option<&ChargeStatus>) -> String {
    match charge {
        Some(charge) => format!("it stopped {by}'s sending {charge}"),
        None => format!("{by} reported it without figures"),
    }
}

impl ExclusionStatus {
    /// The reason of the exclusion.
    pub fn why(&self) -> String {
        owed(self.by, self.charge.as_ref())
    }

    /// Where this node's time went; if that is unknown, what to examine.
    pub fn remedy(&self) -> String {
        match self.own_time {
            Some(own_time) => format!("Here {}", own_time.words()),
            None => SLOW_REMEDY.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_in_the_words() {
        let charge = ring::Charge {
            stopped: Duration::from_micros(1_000_499),
            within: Duration::from_millis(1_200),
            limit: Duration::from_millis(500),
            share: 50,
        };
        let charge = Some(ChargeStatus::from(charge));
        let excluded = ExclusionStatus { time: 1, by: NodeId(3), charge, own_time: None };
        let why = excluded.why();
        assert_eq!(
            why,
            "it stopped n3's sending for 1000 of 1200 ms (allowed: 500 ms once, and 50 % of the time)"
        );
        assert!(ExclusionStatus { charge: None, ..excluded }.why().contains("n3"));
        assert!(excluded.remedy().contains("slow_share"));
        let own_time =
            OwnTime { span_ns: 9_000_000, throttled_ns: 8_000_000, ..OwnTime::default() };
        let known = ExclusionStatus { own_time: Some(own_time), ..excluded };
        assert!(known.remedy().contains("its CPU quota stopped it for 8 of 9 ms"));
    }
}
