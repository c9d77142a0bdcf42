//! How long clients wait between two answers, at any time and around poisonous calls.

use std::collections::BTreeMap;
use std::time::Duration;

use wire::Time;

use harness::figures::{Summary, Times};
use harness::objects::clients::Book;

/// Answers and poisonous calls of a run so far.
pub struct Gaps {
    /// Those with a lower number call all the time; others look at the objects at the end of a
    /// round.
    clients: u32,
    /// When each client was answered, in order.
    answers: BTreeMap<u32, Vec<Time>>,
    /// The poisonous calls: whose, from when to when.
    poisonous: Vec<(u32, Time, Time)>,
}

impl Gaps {
    pub fn new(clients: u32) -> Gaps {
        Gaps { clients, answers: BTreeMap::new(), poisonous: Vec::new() }
    }

    /// Adds a round.
    pub fn add(&mut self, book: &Book) {
        let registers = book.registers.operations().iter();
        let registers = registers.filter_map(|one| Some((one.client, one.answer()?.0)));
        let logs = book.logs.operations().iter();
        let logs = logs.filter_map(|one| Some((one.client, one.answer()?.0)));
        let poisonous = book.poisonous.iter().map(|one| (one.lane, one.ended));
        let answers = registers.chain(logs).chain(poisonous);
        for (client, at) in answers.filter(|(client, _)| *client < self.clients) {
            self.answers.entry(client).or_default().push(at);
        }
        self.answers.values_mut().for_each(|answers| answers.sort_unstable());
        self.poisonous.extend(book.poisonous.iter().map(|one| (one.lane, one.asked, one.ended)));
    }

    /// All of them.
    pub fn all(&self) -> Option<Summary> {
        let mut times = Times::default();
        for answers in self.answers.values() {
            answers.windows(2).for_each(|pair| times.push(between(pair[0], pair[1])));
        }
        times.summary()
    }

    /// For each poisonous call and each other client, the longest that overlaps the call.
    pub fn around_poison(&self) -> Option<Summary> {
        let mut times = Times::default();
        for &(lane, asked, ended) in &self.poisonous {
            for (_, answers) in self.answers.iter().filter(|(client, _)| **client != lane) {
                let first = answers.partition_point(|at| *at < asked).saturating_sub(1);
                let pairs = answers[first..].windows(2).take_while(|pair| pair[0] <= ended);
                if let Some(longest) = pairs.map(|pair| between(pair[0], pair[1])).max() {
                    times.push(longest);
                }
            }
        }
        times.summary()
    }
}

fn between(one: Time, next: Time) -> Duration {
    Duration::from_nanos(next.0.saturating_sub(one.0))
}

#[cfg(test)]
mod tests {
    use history::models::RegisterCall;

    use super::*;
    use harness::objects::clients::Poisonous;

    /// A book in which a client is answered at these times.
    fn book(client: u32, answers: &[u64]) -> Book {
        let mut book = Book::default();
        for &at in answers {
            let handle = book.registers.invoke(client, Time(at - 1), RegisterCall::Read(1));
            let held = history::models::RegisterReply::Value(0);
            book.registers.answered(handle, Time(at), held);
        }
        book
    }

    #[test]
    fn a_gap_is_around_a_call_that_it_overlaps() {
        let mut gaps = Gaps::new(3);
        let mut first = book(1, &[1_000, 2_000, 5_000]);
        let (asked, ended) = (Time(4_000), Time(6_000));
        first.poisonous.push(Poisonous { lane: 2, asked, ended, wrong: None });
        gaps.add(&first);
        // Client 3 looks once a round.
        gaps.add(&book(3, &[500, 90_000]));
        // Client 1 goes on in the next round.
        gaps.add(&book(1, &[12_000, 32_000]));
        assert_eq!(gaps.around_poison().map(|it| (it.n, it.max)), Some((1, 7.0)));
        assert_eq!(gaps.all().map(|it| (it.n, it.max)), Some((4, 20.0)));
    }

    #[test]
    fn the_caller_of_poison_is_no_other_client() {
        let mut gaps = Gaps::new(3);
        let mut mine = book(1, &[1_000, 9_000]);
        let (asked, ended) = (Time(2_000), Time(8_000));
        mine.poisonous.push(Poisonous { lane: 1, asked, ended, wrong: None });
        gaps.add(&mine);
        assert_eq!(gaps.around_poison(), None);
    }
}
