//! Times what a replica's service executes, and tells when the service is hung
//! (`docs/protocol/hung.md`). A pure rule, with the time as an argument.
//!
//! Source: issue "the manager", part 7, after `flare.txt` section 3 (failures are of processes and
//! processors; a process that lives and does not answer is what it leaves out).

use wire::{Duration, Time};

use crate::api::{HangRule, Ticket};
use crate::bug::{Bug, Planted};

/// A service's current work, as far as its replica knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// It does not run: what was given to it before will not be answered.
    Off,
    /// Nothing that is timed.
    Nothing,
    /// Its handler waits for another group.
    Waits,
    /// It executes this command, whose caller can be answered until then.
    Runs(Ticket, Time),
}

/// A command that is being executed.
#[derive(Clone, Copy, Debug)]
struct Run {
    ticket: Ticket,
    began: Time,
    /// When the next deadline is missed.
    limit: Time,
    /// One was missed.
    late: bool,
}

/// The stopwatch of one replica's service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopwatch {
    run: Option<Run>,
    /// Deadlines missed in a row.
    misses: u32,
}

impl Stopwatch {
    /// Follows the service's work. Returns when [`expire`](Stopwatch::expire) is due, if a run
    /// begins here.
    pub(crate) fn follow(&mut self, now: Time, work: Work, rule: HangRule) -> Option<Time> {
        match (self.run, work) {
            (_, Work::Off) => (self.run, self.misses) = (None, 0),
            (Some(_), Work::Waits) => self.run = None,
            (None, Work::Runs(ticket, due)) if rule.misses > 0 => {
                let limit = due.max(now + rule.within);
                self.run = Some(Run { ticket, began: now, limit, late: false });
                return Some(limit);
            }
            // A command that its replica forgot still runs: only an answer ends it.
            _ => {}
        }
        None
    }

    /// The service answers this command. Where answers come in the order of the commands, those
    /// before it will not be answered.
    pub(crate) fn answered(&mut self, now: Time, ticket: Ticket, in_order: bool, planted: Planted) {
        let over = |run: &mut Run| run.ticket == ticket || in_order && run.ticket < ticket;
        let Some(run) = self.run.take_if(over) else { return };
        let late = run.late || now >= run.limit;
        if late {
            self.misses += u32::from(!run.late && !planted.is(Bug::CountNoMisses));
        } else if !planted.is(Bug::KeepMisses) {
            self.misses = 0;
        }
    }

    /// Counts a deadline that is missed by now; when the next one is. One at a time, however late
    /// it is: a node that was held up itself finds out what its services have done meanwhile.
    pub(crate) fn expire(&mut self, now: Time, rule: HangRule, planted: Planted) -> Option<Time> {
        let run = self.run.as_mut()?;
        if run.limit <= now {
            self.misses += u32::from(!planted.is(Bug::CountNoMisses));
            (run.late, run.limit) = (true, now + rule.within);
        }
        Some(run.limit)
    }

    /// So many deadlines in a row were missed that the service is hung.
    pub(crate) fn is_hung(&self, rule: HangRule) -> bool {
        rule.misses > 0 && self.misses >= rule.misses
    }

    /// Deadlines missed in a row.
    pub(crate) fn misses(&self) -> u32 {
        self.misses
    }

    /// The time for which the present command has run.
    pub(crate) fn running(&self, now: Time) -> Duration {
        self.run.map_or(Duration::ZERO, |run| now.since(run.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: HangRule = HangRule { within: Duration::from_millis(100), misses: 3 };

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn runs(ticket: u64, due: u64) -> Work {
        Work::Runs(Ticket(ticket), at(due))
    }

    fn well() -> Planted {
        Planted::default()
    }

    #[test]
    fn a_handler_that_does_not_end_is_hung_after_its_deadline_and_two_more_spans() {
        let mut watch = Stopwatch::default();
        assert_eq!(
            watch.follow(at(0), runs(1, 250), RULE),
            Some(at(250)),
            "its caller waits so long"
        );
        assert_eq!(watch.expire(at(249), RULE, well()), Some(at(250)));
        assert_eq!(watch.misses(), 0, "it is busy within its deadline");
        assert_eq!(watch.expire(at(250), RULE, well()), Some(at(350)));
        assert_eq!(watch.expire(at(350), RULE, well()), Some(at(450)));
        assert!(!watch.is_hung(RULE));
        watch.expire(at(450), RULE, well());
        assert!(watch.is_hung(RULE));
        assert_eq!(watch.running(at(450)), Duration::from_millis(450));
        watch.answered(at(500), Ticket(1), true, well());
        assert!(watch.is_hung(RULE), "late is not well");
        watch.follow(at(500), runs(2, 0), RULE);
        watch.answered(at(501), Ticket(2), true, well());
        assert!(!watch.is_hung(RULE), "it executes again");
    }

    #[test]
    fn calls_that_are_late_one_after_the_other_count_and_one_in_time_ends_the_row() {
        let mut watch = Stopwatch::default();
        let mut execute = |ticket, takes| {
            let now = at(ticket * 1_000);
            watch.follow(now, runs(ticket, 0), RULE);
            watch.answered(
                now + Duration::from_millis(takes),
                Ticket(ticket),
                true,
                Planted::default(),
            );
            watch.misses()
        };
        assert_eq!([execute(1, 100), execute(2, 150)], [1, 2]);
        assert_eq!([execute(3, 99), execute(4, 100)], [0, 1]);
        assert_eq!([execute(5, 100), execute(6, 100)], [2, 3]);
    }

    #[test]
    fn a_node_that_was_held_up_counts_one_deadline() {
        let mut watch = Stopwatch::default();
        watch.follow(at(0), runs(1, 0), RULE);
        watch.expire(at(10_000), RULE, well());
        watch.expire(at(10_001), RULE, well());
        assert_eq!(watch.misses(), 1);
    }

    #[test]
    fn an_alarm_that_is_answered_does_not_clear_a_normal_call_that_hangs() {
        let mut watch = Stopwatch::default();
        watch.follow(at(0), runs(1, 0), RULE);
        for (ticket, ms) in [(2, 100), (3, 200), (4, 300)] {
            watch.expire(at(ms), RULE, well());
            watch.answered(at(ms), Ticket(ticket), false, well());
        }
        assert!(watch.is_hung(RULE));
    }

    #[test]
    fn a_handler_that_waits_for_another_group_is_not_timed() {
        let mut watch = Stopwatch::default();
        watch.follow(at(0), runs(1, 0), RULE);
        watch.follow(at(50), Work::Waits, RULE);
        assert_eq!(watch.expire(at(5_000), RULE, well()), None);
        assert_eq!(watch.follow(at(5_000), runs(1, 0), RULE), Some(at(5_100)));
        watch.answered(at(5_010), Ticket(1), true, well());
        assert_eq!(watch.misses(), 0);
    }

    #[test]
    fn what_the_replica_was_told_to_forget_runs_on_until_an_answer() {
        let mut watch = Stopwatch::default();
        watch.follow(at(0), runs(1, 0), RULE);
        assert_eq!(watch.follow(at(10), Work::Nothing, RULE), None);
        assert_eq!(watch.follow(at(20), runs(7, 0), RULE), None);
        watch.expire(at(100), RULE, well());
        assert_eq!(watch.misses(), 1, "the first one still runs");
        watch.answered(at(110), Ticket(6), true, well());
        assert_eq!(watch.follow(at(110), runs(7, 0), RULE), Some(at(210)));
        watch.follow(at(120), Work::Off, RULE);
        assert_eq!((watch.misses(), watch.expire(at(500), RULE, well())), (0, None));
    }

    #[test]
    fn without_misses_nothing_is_timed() {
        let off = HangRule { misses: 0, ..RULE };
        let mut watch = Stopwatch::default();
        assert_eq!(watch.follow(at(0), runs(1, 0), off), None);
        assert!(!watch.is_hung(off));
    }
}
