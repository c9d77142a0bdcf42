//! Channels in an image.

use std::collections::BTreeMap;

use channel::{Channels, Head, Notes, Vector};
use memlog::Writer;
use serde::{Deserialize, Serialize};
use wire::rank::{Array, Counts};

use super::Messages;
use super::message::{Body, Place};
use super::outgoing::{self, Outgoing};
use crate::error::JobError;
use crate::journal;
use crate::staging::{Bytes, Extra};
use crate::stretch::in_ring;

/// The arrays with the rings of logs have names that begin so, and end with the receiver.
pub(crate) const LOG: &str = "steadfast.log.";

/// The most bytes of messages outside loops that are kept for a later start.
const MOST_KEPT: usize = 64 << 20;

/// All but the rings of the logs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    vector: Vector,
    journal: journal::Saved,
    /// Logs: the receiver, bytes let go and written.
    logs: Vec<(u32, u64, u64)>,
}

impl State {
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a state is plain data")
    }

    /// The channels with each rank; none, if there were no messages.
    pub fn counts(&self) -> Vec<Counts> {
        let counts = self.vector.counts();
        if counts.iter().all(|it| *it == Counts::NONE) { Vec::new() } else { counts }
    }

    fn decode(bytes: &[u8], ranks: u32) -> Option<State> {
        let state: State = postcard::from_bytes(bytes).ok()?;
        Vector::decode(&state.vector.encode(), ranks).ok()?;
        Some(state)
    }
}

impl Messages {
    /// Those of a start that goes on from an image: the state in it, and the rings of its logs.
    pub fn restored(
        (rank, ranks): (u32, u32),
        (start, generation): (u64, u64),
        state: &[u8],
        mut rings: BTreeMap<u32, Vec<u8>>,
        (notes, regrouped): (Notes, bool),
    ) -> Result<Messages, JobError> {
        let wrong = || JobError::Messages;
        let State { vector, journal, logs } = State::decode(state, ranks).ok_or_else(wrong)?;
        let mut sent: Vec<Option<Outgoing>> = (0..ranks).map(|_| None).collect();
        let mut heads: Vec<Vec<(Head, Place)>> = (0..ranks).map(|_| Vec::new()).collect();
        for (to, released, written) in logs {
            let ring = rings.remove(&to).ok_or_else(wrong)?;
            let slot = sent.get_mut(to as usize).ok_or_else(wrong)?;
            let spill = (ring.len() as u64 > outgoing::MOST).then(outgoing::spill).flatten();
            let writer = Writer::restored(&ring, (released, written), spill.as_deref())?;
            let records = writer.records().map_err(|_| wrong())?;
            let placed = records.into_iter().map(|(head, end)| (head, Place::Sent(end)));
            heads[to as usize] = placed.collect();
            let mut outgoing = Outgoing::of(writer);
            outgoing.saved = Some((outgoing.writer().capacity(), written));
            *slot = Some(outgoing);
        }
        // After all have gone back, only later choices are noted, if any.
        let after = vector.choices - vector.unnoted.len() as u64;
        let reach = notes.after + notes.choices.len() as u64 >= after;
        let notes = match regrouped && !(reach && notes.after <= vector.choices) {
            true => Notes { after, choices: Vec::new() },
            false => notes,
        };
        let channels = Channels::restored(vector, heads, generation, notes)?;
        Messages::of((rank, start), channels, journal::Journal::restored(journal), sent)
    }

    /// The channels as they are now, for an image, beside the [rings](Messages::rings) of their logs.
    pub fn save(&mut self) -> Result<State, JobError> {
        let mut lost = None;
        let journal = self.journal.save(|body| match body {
            Body::Saved(bytes) => bytes.to_vec(),
            Body::There(found) => {
                let mut bytes = vec![0; found.head.length as usize];
                if !found.copy(0, &mut bytes) {
                    lost = Some(JobError::Messages);
                }
                bytes
            }
        });
        if let Some(lost) = lost {
            return Err(lost);
        }
        if journal.bytes() > MOST_KEPT {
            return Err(JobError::Preamble(MOST_KEPT >> 20));
        }
        let vector = self.channels.vector();
        self.saving = Some(vector.clone());
        self.taken.fill(0);
        let mut logs = Vec::new();
        for (to, outgoing) in (0..).zip(&mut self.sent) {
            let Some(outgoing) = outgoing else { continue };
            let (released, written) = outgoing.writer().place();
            outgoing.saving = Some((outgoing.writer().capacity(), written));
            logs.push((to, released, written));
        }
        Ok(State { vector, journal, logs })
    }

    /// The rings of the logs as arrays, each with what has changed in it since it was saved.
    pub fn rings(&self) -> impl Iterator<Item = Extra<'_>> {
        self.sent.iter().enumerate().filter_map(|(to, outgoing)| {
            let outgoing = outgoing.as_ref()?;
            let (name, length) = (format!("{LOG}{to}"), outgoing.writer().capacity());
            Some(Extra {
                array: Array { name, form: "log".into(), length },
                bytes: Bytes::Ring(outgoing.writer()),
                changed: Some(changed(outgoing)),
            })
        })
    }

    /// An image of what was saved last is the newest state of this rank, or is none.
    pub fn saved(&mut self, image: Option<u64>) {
        let (Some(vector), Some(generation)) = (self.saving.take(), image) else { return };
        self.channels.committed(generation, &vector);
        for outgoing in self.sent.iter_mut().flatten() {
            outgoing.saved = outgoing.saving.take();
        }
    }
}

/// The stretches of a log's ring that were written since it was saved, by whole pages.
fn changed(outgoing: &Outgoing) -> Vec<(u64, u64)> {
    let capacity = outgoing.writer().capacity();
    let (_, written) = outgoing.writer().place();
    match outgoing.saved {
        Some((its, before)) if its == capacity => in_ring(capacity, before, written),
        _ => vec![(0, capacity)],
    }
}

#[cfg(test)]
mod tests {
    use wire::rank::PAGE;

    use super::*;

    #[test]
    fn what_was_written_in_a_ring_since_it_was_saved_is_saved() {
        let mut writer = Writer::new(4 * PAGE as usize, None).unwrap();
        let mut saved = 0;
        let mut copy = vec![0; 4 * PAGE as usize];
        for number in 1..400 {
            let message = vec![number as u8; 37 * number as usize % 3_000];
            while writer.push((number, 0, 0), [&message, &[]]).is_err() {
                writer.release(writer.place().1);
            }
            if number % 3 != 0 {
                continue;
            }
            let mut outgoing = Outgoing::of(writer);
            outgoing.saved = Some((4 * PAGE, saved));
            for (from, to) in changed(&outgoing) {
                let (from, to) = (from as usize, to as usize);
                outgoing.writer().copy_ring(from, &mut copy[from..to]);
            }
            let place = outgoing.writer().place();
            let restored = Writer::restored(&copy, place, None).unwrap();
            assert_eq!(restored.records(), outgoing.writer().records());
            (writer, saved) = (restored, place.1);
        }
    }
}
