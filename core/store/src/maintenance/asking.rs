//! Which snapshots are asked for, so that the oldest segment can go.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::limits::{MAX_SEGMENTS, MAX_SNAPSHOTS_WAITING};

use super::Maintenance;
use crate::api::{Config, Output, Strand};
use crate::bug::Bug;
use crate::log::Log;

impl Maintenance {
    /// The request for this strand's snapshot has an answer: it may be requested again.
    pub(super) fn not_asked(&mut self, strand: Strand, config: &Config) {
        if !config.planted.is(Bug::AskOnce) {
            self.asked.remove(&strand);
        }
    }

    /// Nobody needs the oldest segment, as may be after an opening: nobody is asked for anything
    /// for its sake, so it goes by itself.
    pub fn let_go(&mut self, log: &Log, config: &Config) {
        let many = self.segments.len();
        if many > config.keep && !config.planted.is(Bug::KeepUnneeded) {
            self.cut(log, config);
            self.dirty |= self.segments.len() < many;
        }
    }

    /// Asks for the snapshots that would let the oldest segment go, as many at a time as may wait.
    pub fn ask_for_snapshots(
        &mut self,
        log: &Log,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) {
        if self.manifest.segments.len() >= MAX_SEGMENTS {
            self.has_no_room("the log has as many segments as it may".into(), log, outputs);
        }
        let Some((&oldest, held)) = self.segments.first_key_value() else { return };
        let due = self.full || log.is_put_off() || self.segments.len() > config.keep;
        if !due || oldest >= log.first_needed() || self.later.is_some() {
            return;
        }
        if core::mem::replace(&mut self.asked_for, oldest) != oldest {
            self.asked.clear();
        }
        let waiting = self.snapshots.len() + self.asked.len();
        let free = MAX_SNAPSHOTS_WAITING.saturating_sub(waiting);
        if free == 0 {
            return;
        }
        let needed = held.strands.iter().filter(|(strand, last)| {
            **last > self.covered(**strand) && !self.asked.contains(strand) && !self.has(**strand)
        });
        let wanted: Vec<Strand> = needed.map(|(&strand, _)| strand).take(free).collect();
        outputs.extend(wanted.iter().map(|&strand| Output::SnapshotWanted(strand)));
        self.asked.extend(wanted);
    }
}
