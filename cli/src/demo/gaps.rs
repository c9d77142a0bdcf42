//! How long clients had to wait for any answer: from their own records of the calls around a fault.

use super::fault::Fault;
use super::record::Record;

/// A call, as far as gaps are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    due: u64,
    /// `None`: it failed.
    answered: Option<u64>,
}

/// The calls around the faults, client by client.
#[derive(Default)]
pub struct Clients {
    clients: Vec<(String, Vec<Call>)>,
    windows: Vec<(u64, u64)>,
}

/// Before a fault, calls are kept from this long on: longer than any call may take.
const LEAD: u64 = 15_000_000_000;

impl Clients {
    /// Keeps the calls around these faults only.
    pub fn around(faults: &[Fault]) -> Clients {
        let window = |fault: &Fault| {
            let end = fault.back.unwrap_or(fault.undone).saturating_add(LEAD);
            (fault.at.saturating_sub(LEAD), end)
        };
        Clients { clients: Vec::new(), windows: faults.iter().map(window).collect() }
    }

    /// Begins another client; its calls are added by the number that this returns.
    pub fn begin(&mut self, name: String) -> usize {
        self.clients.push((name, Vec::new()));
        self.clients.len() - 1
    }

    /// Adds a call of a client.
    pub fn add(&mut self, client: usize, record: &Record) {
        let Record { due, answered, .. } = *record;
        if self.windows.iter().any(|&(from, to)| answered >= from && due <= to) {
            let answered = record.error.is_none().then_some(answered);
            self.clients[client].1.push(Call { due, answered });
        }
    }

    /// The longest gap that overlaps the window: how long, from when on, and whose it is.
    pub fn longest_gap(&self, from: u64, to: u64) -> (u64, u64, &str) {
        let gaps = self.clients.iter().map(|(name, calls)| {
            let (length, begin) = gap(calls, from, to);
            (length, begin, name.as_str())
        });
        gaps.max().unwrap_or((0, from, ""))
    }

    /// The first answer that any client got after this moment.
    pub fn first_answer_after(&self, moment: u64) -> Option<u64> {
        let calls = self.clients.iter().flat_map(|(_, calls)| calls);
        calls.filter_map(|call| call.answered).filter(|&answered| answered > moment).min()
    }
}

/// The longest time without an answer while a call was due, of those that overlap the window, and
/// when it began.
///
/// A gap begins with the last answer, or when the oldest unanswered call became due if that was
/// later, and ends with the next answer, whichever call that is for.
fn gap(calls: &[Call], from: u64, to: u64) -> (u64, u64) {
    let mut calls = calls.to_vec();
    calls.sort_unstable_by_key(|call| call.answered.unwrap_or(u64::MAX));
    // For each call the earliest due time among it and those answered later.
    let mut oldest = vec![u64::MAX; calls.len() + 1];
    for (place, call) in calls.iter().enumerate().rev() {
        oldest[place] = oldest[place + 1].min(call.due);
    }
    let mut longest = (0, from);
    let mut last = 0;
    for (place, call) in calls.iter().enumerate() {
        let Some(answered) = call.answered else { break };
        let begin = oldest[place].max(last);
        if begin <= to && answered >= from {
            longest = longest.max((answered.saturating_sub(begin), begin));
        }
        last = answered;
    }
    longest
}

#[cfg(test)]
impl Clients {
    /// Calls of a client that were due and answered at these moments.
    pub fn answer(&mut self, client: usize, times: &[(u64, u64)]) {
        let call = |&(due, answered): &(u64, u64)| Call { due, answered: Some(answered) };
        self.clients[client].1.extend(times.iter().map(call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(times: &[(u64, u64)]) -> Vec<Call> {
        times.iter().map(|&(due, answered)| Call { due, answered: Some(answered) }).collect()
    }

    #[test]
    fn a_gap_lasts_from_answer_to_answer_while_calls_are_due() {
        // Due every 10, answered at once, but for a pause from 32 to 75.
        let calls = calls(&[(10, 11), (20, 21), (30, 31), (32, 75), (42, 76), (80, 81)]);
        assert_eq!(gap(&calls, 0, 100).0, 43);
        assert_eq!(gap(&calls, 33, 34).0, 43, "a gap counts that only overlaps the window");
        assert_eq!(gap(&calls, 0, 25).0, 1);
    }

    #[test]
    fn a_client_with_nothing_due_sees_no_gap() {
        assert_eq!(gap(&calls(&[(10, 11), (90, 92)]), 0, 100).0, 2);
    }

    #[test]
    fn a_call_that_fails_leaves_a_gap_until_the_next_answer() {
        let mut calls = calls(&[(10, 11), (60, 62)]);
        calls.push(Call { due: 20, answered: None });
        assert_eq!(gap(&calls, 0, 100).0, 42);
    }

    #[test]
    fn answers_out_of_order_end_a_gap_all_the_same() {
        assert_eq!(gap(&calls(&[(10, 50), (12, 20), (14, 21)]), 0, 100).0, 29);
    }
}
