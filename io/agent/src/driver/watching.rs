//! Ranks are looked after now and then: those that end late or stand still, their prints, and the
//! book's knowledge of them.

use job::{Command, Key, Progress};
use os::clock::monotonic;

use super::rank::Rank;
use super::{Driver, TELL};
use crate::{images, prints, process};

/// Ranks of which one command tells: a request at the admin socket is limited.
const AT_ONCE: usize = 64;

impl Driver {
    pub(super) fn look_after_ranks(&mut self) {
        let now = monotonic();
        for (key, rank) in &mut self.ranks {
            if rank.stands_still(now) {
                rank.stall.ended = true;
                tracing::warn!(
                    job = key.job,
                    rank = key.rank,
                    "no safe point for too long: it is ended"
                );
            }
            if rank.ends_by.is_some_and(|by| by <= now) || rank.stall.ended {
                rank.pid.into_iter().for_each(process::kill);
            }
        }
        self.warm.look_after(now, |job| self.ranks.keys().any(|key| key.job == job));
        self.tell_progress();
    }

    /// Tells the book how far ranks are, where that has changed.
    fn tell_progress(&mut self) {
        let now = monotonic();
        if self.telling || now < self.told + TELL {
            return;
        }
        let told = |(key, rank): (&Key, &mut Rank)| {
            let Key { job, rank: number, start } = *key;
            let changed = std::mem::take(&mut rank.changed);
            changed.then_some(Progress { job, rank: number, start, ..rank.progress })
        };
        let all: Vec<Progress> = self.ranks.iter_mut().filter_map(told).collect();
        for some in all.chunks(AT_ONCE) {
            (self.told, self.telling) = (now, true);
            let _ = self.commands.send(Command::Progress(some.to_vec()));
        }
        for key in self.ranks.keys() {
            let folder = &self.options.folder;
            for file in [images::log_of, images::errors_of] {
                let path = file(folder, key.job, key.rank);
                if let Err(error) = prints::limit(&path) {
                    tracing::debug!(path = %path.display(), %error, "it grows");
                }
            }
        }
        self.remove_forgotten();
    }

    /// Folders of jobs that were forgotten go, with what their ranks have printed.
    fn remove_forgotten(&mut self) {
        for job in std::mem::take(&mut self.forgotten) {
            if let Err(error) = images::forget(&self.options.folder, job) {
                tracing::warn!(job, %error, "what a forgotten job has left stays");
            }
        }
    }
}
