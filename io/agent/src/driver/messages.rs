//! Messages between ranks: the agent hands on what they are written in, and says what is needed no
//! more. The messages themselves never come by here.

use std::fs::File;
use std::sync::Arc;

use job::Key;
use memlog::Bell;
use wire::Member;
use wire::agents::Word;
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
        let deliveries = match frame {
            Frame::Log(Log { rank, .. }) => self.post.log(key, rank, file),
            _ => {
                if let Some(rank) = self.ranks.get_mut(&key) {
                    rank.bell = file.try_clone().and_then(Bell::open).ok();
                }
                self.post.bell(key, file)
            }
        };
        self.deliver(deliveries);
    }

    /// Ranks here get what they are to get.
    pub(super) fn deliver(&mut self, deliveries: Vec<Delivery<Arc<File>>>) {
        for Delivery { to, frame, file } in deliveries {
            if let Some(rank) = self.present(to) {
                rank.tell_with(&frame, Some(&file));
            }
        }
    }

    fn tell_all(&mut self, words: Vec<(RankId, Frame)>) {
        for (to, frame) in words {
            if let Some(rank) = self.present(to) {
                rank.tell(&frame);
            }
        }
    }

    /// A rank needs messages of others no more, or choices of its own.
    pub(super) fn needless(&mut self, key: Key, needless: Vec<(u32, u64)>) {
        let words = self.post.needless(key, needless);
        self.tell_all(words);
    }

    /// A rank has made choices.
    pub(super) fn chose(&mut self, key: Key, choices: Choices) {
        let noted = self.post.chose(key, choices);
        if let (Some(noted), Some(rank)) = (noted, self.ranks.get(&key)) {
            rank.tell(&Frame::Noted(noted));
        }
    }

    /// Another agent says something.
    pub(super) fn heard(&mut self, from: Member, word: Word) {
        let words = self.post.heard(from, word);
        self.tell_all(words);
        self.answered();
    }

    /// Starts go on for which all agents have answered.
    pub(super) fn answered(&mut self) {
        for key in self.post.answered() {
            if let Some(rank) = self.ranks.get_mut(&key) {
                rank.asks = false;
                self.welcome(key);
            }
        }
    }
}
