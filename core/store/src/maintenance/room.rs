//! Where there is no room: what is tried again, and when; who is told.

use alloc::collections::VecDeque;
use alloc::string::String;

use wire::Time;

use super::job::Job;
use super::{Maintenance, Progress};
use crate::api::Output;
use crate::format::FileName;
use crate::log::Log;

impl Maintenance {
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// There is no room for something beside the log's end.
    pub(super) fn has_no_room(&mut self, text: String, log: &Log, outputs: &mut VecDeque<Output>) {
        if !core::mem::replace(&mut self.full, true) && !log.is_put_off() {
            outputs.push_back(Output::Full(text));
        }
    }

    /// There is room again, beside the log's end.
    pub(super) fn has_room(&mut self, log: &Log, outputs: &mut VecDeque<Output>) {
        if core::mem::take(&mut self.full) && !log.is_put_off() {
            outputs.push_back(Output::Room);
        }
    }

    /// It waits for room.
    pub fn is_put_off(&self) -> bool {
        self.later.is_some()
    }

    /// The disk was full. Snapshots and manifests, which make room, get the reserve's; everything
    /// else waits.
    pub(super) fn no_room(
        &mut self,
        later: Time,
        job: Job,
        text: String,
        log: &Log,
        outputs: &mut VecDeque<Output>,
    ) -> Progress {
        let begun = log.has_begun();
        let mut may_use_reserve = true;
        let mut refused = None;
        match job {
            Job::Segment { number, .. } => {
                self.leftover = Some(FileName::Segment(number));
                may_use_reserve = !begun;
            }
            Job::Snapshot { waiting, number, .. } => {
                self.leftover = Some(FileName::Snapshot(number));
                if self.reserve {
                    self.snapshots.push_front(waiting);
                } else {
                    refused = Some(waiting.strand);
                }
            }
            Job::Manifest { told, .. } => {
                self.dirty = true;
                self.unnamed = true;
                self.change.doomed.extend(told.doomed);
                self.change.stored.extend(told.stored);
                self.change.forgotten.extend(told.forgotten);
                self.change.named = self.change.named.or(told.named);
            }
            Job::Reserve => {
                // One that is too small is better than none.
                if !self.reserve {
                    self.leftover = Some(FileName::Reserve);
                }
                may_use_reserve = false;
            }
            // Where what is written is copied, taking a name away takes some room, too.
            Job::Removal { file, .. } => {
                self.garbage.push_back((file, false));
                (self.jammed, may_use_reserve) = (true, false);
            }
            Job::Shrink { number, .. } => {
                self.slack.push_back(number);
                (self.jammed, may_use_reserve) = (true, false);
            }
            Job::Clearing { file } => {
                self.leftover = Some(file);
                (self.jammed, may_use_reserve) = (true, false);
            }
            Job::Release => (self.jammed, may_use_reserve) = (true, false),
        }
        if self.reserve && may_use_reserve {
            self.job = Some(Job::Release);
            return Progress::Well;
        }
        if !begun {
            return Progress::NoRoom(text);
        }
        self.later = Some(later);
        if let Some(strand) = refused {
            outputs.push_back(Output::SnapshotRefused(strand));
        }
        self.has_no_room(text, log, outputs);
        Progress::Well
    }
}
