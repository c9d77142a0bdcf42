//! Messages between ranks: the agent hands on what they are written in, and says what is needed no
//! more. The messages themselves never come by here.

use std::fs::File;

use job::Key;
use memlog::Bell;
use wire::rank::{Frame, Log, MAX_RANKS};

use super::Driver;
use super::rank::Rank;
use crate::exchange::RankId;

impl Driver {
    /// The present start of a rank here.
    fn present(&mut self, (job, rank): RankId) -> Option<&mut Rank> {
        let from = Key { job, rank, start: 0 };
        let to = Key { job, rank, start: u64::MAX };
        self.ranks.range_mut(from..=to).next_back().map(|(_, rank)| rank)
    }

    /// A rank has a bell, or a log of messages to another one.
    pub(super) fn offered(&mut self, key: Key, frame: Frame, file: File) {
        match frame {
            Frame::Log(Log { rank, .. }) => {
                let ranks = self.ranks.get(&key).and_then(|it| it.task.as_ref());
                let ranks = ranks.map_or(MAX_RANKS as u32, |task| task.spec.ranks);
                if rank < ranks && rank != key.rank {
                    self.post.log(key, rank, file);
                }
            }
            _ => {
                if let Some(rank) = self.ranks.get_mut(&key) {
                    rank.bell = file.try_clone().and_then(Bell::open).ok();
                }
                self.post.bell(key, file);
            }
        }
    }

    /// Ranks here are told what they are to be told, and go on for which all agents have answered.
    pub(super) fn post(&mut self) {
        for key in self.post.answered() {
            if let Some(rank) = self.ranks.get_mut(&key) {
                rank.asks = false;
                self.welcome(key);
            }
        }
        for (to, frame, file) in self.post.words() {
            if let Some(rank) = self.present(to) {
                rank.tell_with(&frame, file.as_deref());
            }
        }
    }
}
