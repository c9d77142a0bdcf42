//! Messages between ranks: the agent hands on what they are written in, and says what is needed no
//! more. The messages themselves never come by here.

use std::fs::File;
use std::sync::Arc;

use job::Key;
use memlog::Bell;
use wire::rank::{Choices, Frame, Log};

use super::Driver;
use super::rank::Rank;
use crate::exchange::{Delivery, RankId};

impl Driver {
    /// The present start of a rank here.
    fn present(&mut self, (job, rank): RankId) -> Option<&mut Rank> {
        let from = Key { job, rank, start: 0 };
        let to = Key { job, rank, start: u64::MAX };
        self.ranks.range_mut(from..=to).next_back().map(|(_, rank)| rank)
    }

    /// A rank has a bell, or a log of messages to another one.
    pub(super) fn offered(&mut self, key: Key, frame: Frame, file: File) {
        let (own, file) = ((key.job, key.rank), Arc::new(file));
        let deliveries = match frame {
            Frame::Log(Log { rank, .. }) => self.exchange.log(own, rank, key.start, file),
            _ => {
                if let Some(rank) = self.ranks.get_mut(&key) {
                    let bell = file.try_clone().and_then(Bell::open);
                    rank.bell = bell.ok();
                }
                self.exchange.bell(own, key.start, file)
            }
        };
        self.deliver(deliveries);
    }

    fn deliver(&mut self, deliveries: Vec<Delivery<Arc<File>>>) {
        for Delivery { to, frame, file } in deliveries {
            if let Some(rank) = self.present(to) {
                rank.tell_with(&frame, Some(&file));
            }
        }
    }

    /// A rank needs messages of others no more, or choices of its own.
    pub(super) fn needless(&mut self, key: Key, needless: Vec<(u32, u64)>) {
        for (from, number) in needless {
            if from == key.rank {
                self.notes.forget((key.job, key.rank), number);
            } else if let Some(sender) = self.present((key.job, from)) {
                sender.tell(&Frame::Needless(vec![(key.rank, number)]));
            }
        }
    }

    /// A rank has made choices.
    pub(super) fn chose(&mut self, key: Key, choices: Choices) {
        let noted = self.notes.note((key.job, key.rank), key.start, choices);
        if let (Some(noted), Some(rank)) = (noted, self.ranks.get(&key)) {
            rank.tell(&Frame::Noted(noted));
        }
    }
}
