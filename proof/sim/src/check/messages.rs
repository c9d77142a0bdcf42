//! Each message between ranks is taken once, as it was sent, and all are in the end.
//!
//! Source: star.txt, section 4.3: a rank that goes back sends the same messages again, and these are
//! discarded; no rank has a message that its sender will not have sent.

use super::{Verdict, demand};

const PROPERTY: &str = "messages are taken once";

/// Messages that ranks have sent and taken, as far as that counts: a rank that goes back has not done
/// what followed.
#[derive(Clone, Default)]
pub struct Messages {
    ranks: Vec<Rank>,
}

#[derive(Clone, Default)]
struct Rank {
    /// The bytes of each message to each rank.
    sent: Vec<Vec<u64>>,
    /// Sender, number and bytes of each message that was taken.
    took: Vec<(u32, u64, u64)>,
}

/// How far a rank was.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    sent: Vec<usize>,
    took: usize,
}

impl Messages {
    /// Nothing yet, between so many ranks.
    pub fn new(ranks: u32) -> Messages {
        let rank = || Rank { sent: vec![Vec::new(); ranks as usize], took: Vec::new() };
        Messages { ranks: (0..ranks).map(|_| rank()).collect() }
    }

    fn rank(&mut self, rank: u32) -> &mut Rank {
        &mut self.ranks[rank as usize]
    }

    /// A rank sends.
    pub fn sent(&mut self, from: u32, to: u32, number: u64, bytes: u64) -> Verdict {
        let sent = &mut self.rank(from).sent[to as usize];
        sent.push(bytes);
        let next = sent.len() as u64;
        demand(number == next, PROPERTY, || {
            format!("rank {from} gives its message {next} to rank {to} the number {number}")
        })
    }

    /// A rank takes a message.
    pub fn took(&mut self, rank: u32, from: u32, number: u64, bytes: u64) -> Verdict {
        let took = &mut self.rank(rank).took;
        let twice = took.iter().any(|it| (it.0, it.1) == (from, number));
        took.push((from, number, bytes));
        demand(!twice, PROPERTY, || {
            format!("rank {rank} takes message {number} of rank {from} twice")
        })
    }

    /// How far a rank is now.
    pub fn mark(&self, rank: u32) -> Mark {
        let rank = &self.ranks[rank as usize];
        Mark { sent: rank.sent.iter().map(Vec::len).collect(), took: rank.took.len() }
    }

    /// A rank goes back to where it was.
    pub fn back(&mut self, rank: u32, mark: &Mark) {
        let rank = self.rank(rank);
        rank.took.truncate(mark.took);
        for (place, sent) in rank.sent.iter_mut().enumerate() {
            sent.truncate(mark.sent.get(place).copied().unwrap_or(0));
        }
    }

    /// All have ended.
    pub fn ended(&self) -> Verdict {
        for (to, receiver) in (0..).zip(&self.ranks) {
            for (from, sender) in (0..).zip(&self.ranks) {
                let own = receiver.took.iter().filter(|took| took.0 == from);
                let mut took: Vec<(u64, u64)> = own.map(|it| (it.1, it.2)).collect();
                took.sort_unstable();
                let sent = (1..).zip(sender.sent[to as usize].iter().copied());
                let differs = sent.clone().zip(&took).find(|(sent, took)| sent != *took);
                demand(took.len() == sent.count() && differs.is_none(), PROPERTY, || {
                    format!(
                        "rank {from} has sent {} messages to rank {to}, which took {}; the first that \
                         differs (number and bytes, as sent and as taken): {differs:?}",
                        sender.sent[to as usize].len(),
                        took.len()
                    )
                })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_taken_twice_or_otherwise_or_never_is_seen() {
        let mut messages = Messages::new(2);
        messages.sent(0, 1, 1, 7).unwrap();
        assert!(messages.ended().is_err(), "nobody has taken it");
        let mark = messages.mark(1);
        messages.took(1, 0, 1, 7).unwrap();
        messages.ended().unwrap();
        assert!(messages.took(1, 0, 1, 7).is_err(), "twice");
        messages.back(1, &mark);
        messages.took(1, 0, 1, 8).unwrap();
        assert!(messages.ended().is_err(), "another one was sent");
        messages.back(1, &mark);
        messages.back(0, &Mark::default());
        messages.took(1, 0, 1, 7).unwrap();
        assert!(messages.ended().is_err(), "its sender has not sent it any more");
        assert!(messages.sent(0, 1, 2, 7).is_err(), "the first has number 1");
    }
}
