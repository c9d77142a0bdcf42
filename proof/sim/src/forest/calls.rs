//! Calls and questions across cells, and their checks.

use std::collections::{BTreeMap, BTreeSet};

use cells::{Carry, End};
use wire::{ClientId, Duration, Time};

use super::cell::CellModel;
use crate::celled::At;
use crate::check::{Verdict, Violation, demand};

mod making;

/// A caller's patience.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where nothing has been broken for this time, a call is answered within it.
const ANSWERED: Duration = Duration::from_millis(1_500);

/// An asker bears an answer of this age.
const BEARS: Duration = Duration::from_secs(1);

/// A call that was made.
struct Made {
    to: usize,
    key: (ClientId, u64),
    /// The caller's node, and its life: with it the call is forgotten.
    from: (At, u64),
    at: Time,
    end: Option<(Time, End)>,
}

/// All calls of a run.
pub(super) struct Calls {
    made: BTreeMap<u64, Made>,
    /// Those without an end for which their callers still wait.
    open: BTreeSet<u64>,
    next: u64,
    answered: u64,
    violation: Option<Violation>,
}

impl Calls {
    pub(super) fn new() -> Calls {
        let (made, open) = (BTreeMap::new(), BTreeSet::new());
        Calls { made, open, next: 0, answered: 0, violation: None }
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered
    }

    pub(super) fn ended(&mut self, now: Time, token: u64, end: End) {
        let Some(made) = self.made.get_mut(&token) else { return };
        self.answered += u64::from(matches!(end, End::Answer(_)));
        if let Some((at, before)) = &made.end {
            let text =
                format!("call {token} ended at {at:?} with {before:?}, and now with {end:?}");
            self.violation.get_or_insert(Violation { property: "a call ends once", text });
        }
        made.end = Some((now, end));
        self.open.remove(&token);
    }

    /// A call is on its way: through no more nodes than there are between its cells, three of each.
    pub(super) fn note_hops(&mut self, cells: &[CellModel], carry: &Carry) {
        let Some(made) = self.made.get(&carry.call.number) else { return };
        let depth = |cell: usize| cells[cell].path.depth();
        let most = 3 * (depth(made.from.0.cell) + depth(made.to) + 1);
        let hops = usize::from(cells::limits::MAX_HOPS - carry.hops);
        if hops > most {
            let text = format!("call {} has made {hops} hops of {most}", carry.call.number);
            let property = "no call goes round in circles";
            self.violation.get_or_insert(Violation { property, text });
        }
    }

    /// Every call's end is what happened to it.
    pub(super) fn check_all(&self, executions: impl Fn(usize, (ClientId, u64)) -> u64) -> Verdict {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        for (token, made) in &self.made {
            let times = executions(made.to, made.key);
            let Some((_, end)) = &made.end else { continue };
            let fits = match end {
                End::Answer(_) => times == 1,
                End::NoWay | End::TooFar => times == 0,
                _ => times <= 1,
            };
            demand(fits, "executed once", || {
                format!("call {token} to {} ended with {end:?}, executed {times} times", made.to)
            })?;
        }
        Ok(())
    }

    /// Calls that should have been answered by now.
    fn overdue(
        &mut self,
        now: Time,
        calm: Time,
        lives: impl Fn(At) -> u64,
    ) -> Option<(u64, &Made)> {
        // Nobody waits any more for those that are older.
        while let Some(first) = self.open.first()
            && self.made[first].at + PATIENCE <= now
        {
            self.open.pop_first();
        }
        let open = self.open.iter().map(|token| (token, &self.made[token]));
        let mut made = open.filter(|(_, made)| {
            let from = made.at.max(calm);
            let is_due = now.since(from) > ANSWERED && now < made.at + PATIENCE;
            is_due && made.end.is_none() && lives(made.from.0) == made.from.1
        });
        made.next().map(|(token, made)| (*token, made))
    }
}
