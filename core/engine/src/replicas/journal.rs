//! The journal of a group whose replica here is served by a program (`docs/protocol/poison.md`,
//! "When programs die").
//!
//! The program may die while its node lives. So the node keeps the last state that the program has
//! given, and the later deliveries. If no other replica has the group's state, the node starts the
//! program again, and it executes these.

mod handler;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ViewNumber;
use wire::limits::{MAX_JOURNAL, MAX_JOURNAL_BYTES};
use wire::ordered::{Ordered, PrimaryChunk, Restyle, Style, Told};

use crate::api::{Config, JournalStatus};
use crate::replica::Kept;
use crate::style::StyleRules;

/// A state and the deliveries since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// The state before `log`, and the style that the group had there.
    base: Base,
    style: Style,
    log: Vec<Bytes>,
    /// Changes to or from warm passive, by the number of log entries before each. The entries after
    /// it are of another kind.
    changes: Vec<(usize, Style)>,
    bytes: usize,
    /// A state is being taken that stands for so many entries of the log.
    taking: Option<usize>,
}

/// The state with which a journal begins.
#[derive(Clone, Debug, Default)]
enum Base {
    /// Nothing that is known here: the journal is of no use.
    #[default]
    None,
    /// The service's initial state.
    Initial,
    State(Bytes),
}

impl Journal {
    /// The state that was asked for does not come any more.
    pub(crate) fn stop_taking(&mut self) {
        self.taking = None;
    }

    /// From here on the replica has the service's initial state.
    pub(crate) fn begin(&mut self, style: Style) {
        *self = Journal { base: Base::Initial, style, ..Journal::default() };
    }

    /// The replica's state is of no use any more: another is to come.
    pub(crate) fn forget(&mut self, style: Style) {
        *self = Journal { style, ..Journal::default() };
    }

    /// The disk has given this back: a state, or the service's initial one, in this style, and what
    /// was taken since. Checkpoint and log of a cold passive group are of no use here: the replica
    /// has them.
    pub(crate) fn recall(&mut self, style: Style, state: Option<Bytes>, log: &[Bytes]) {
        let base = match style.logs() {
            true => Base::None,
            false => state.map_or(Base::Initial, Base::State),
        };
        *self = Journal { base, style, ..Journal::default() };
        for payload in log {
            match Ordered::decode(payload) {
                Ok(Ordered::Restyle(Restyle { style, .. })) => self.restyle(style),
                Ok(Ordered::PrimaryChunk(PrimaryChunk { what: Told::Checkpoint, .. })) => {}
                _ => self.push(payload),
            }
        }
    }

    /// This was delivered.
    pub(crate) fn push(&mut self, payload: &Bytes) {
        if self.log.len() >= MAX_JOURNAL || self.bytes + payload.len() > MAX_JOURNAL_BYTES {
            // Until there is another state.
            return self.forget(self.last_style());
        }
        self.bytes += payload.len();
        // A copy: the slice would keep the whole datagram alive.
        self.log.push(Bytes::copy_from_slice(payload));
    }

    /// The style that the group has behind all this, as far as it matters here.
    fn last_style(&self) -> Style {
        self.changes.last().map_or(self.style, |(_, style)| *style)
    }

    /// The group has this style from here on.
    fn restyle(&mut self, style: Style) {
        if style.executes_on_arrival() != self.last_style().executes_on_arrival() {
            self.changes.push((self.log.len(), ordering(style)));
        }
    }

    /// The service is asked for the state that it has at this place.
    pub(crate) fn take(&mut self) {
        self.taking = Some(self.log.len());
    }

    /// This state stands for what came before the place at which it was taken; or, if a transfer
    /// brought it, for all before the replica waited for it.
    pub(crate) fn cut(&mut self, state: Bytes, transfer: Option<ViewNumber>) {
        let taken = self.taking.take();
        let upto = match transfer {
            Some(_) => 0,
            None => taken.unwrap_or(0).min(self.log.len()),
        };
        let gone = self.log.drain(..upto).map(|payload| payload.len()).sum::<usize>();
        self.bytes -= gone;
        for (_, style) in self.changes.extract_if(.., |(behind, _)| *behind <= upto) {
            self.style = style;
        }
        self.changes.iter_mut().for_each(|(behind, _)| *behind -= upto);
        self.base = Base::State(state);
    }

    /// It should be cut.
    fn is_long(&self, after: u64) -> bool {
        let long = self.log.len() as u64 >= after || self.bytes >= Config::SNAPSHOT_BYTES;
        self.taking.is_none() && (long || !self.is_whole())
    }

    /// The group's state follows from it.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self.base, Base::None)
    }

    /// The state and the log, if they are whole.
    pub(crate) fn whole(&self) -> Option<Kept> {
        let state = match &self.base {
            Base::None => return None,
            Base::Initial => None,
            Base::State(state) => Some(state.clone()),
        };
        let style = (!self.changes.is_empty()).then(|| ordering(self.style));
        Some(Kept { state, style, log: self.log.clone(), changes: self.changes.clone() })
    }

    /// For people.
    pub(crate) fn status(&self) -> JournalStatus {
        let state = match &self.base {
            Base::State(state) => state.len(),
            Base::None | Base::Initial => 0,
        };
        let whole = self.is_whole();
        JournalStatus { whole, records: self.log.len(), bytes: self.bytes, state_bytes: state }
    }
}

/// The style by which a journal's requests are executed anew: every style that orders requests
/// counts as semi-active.
fn ordering(style: Style) -> Style {
    if style.executes_on_arrival() { style } else { Style::SemiActive }
}
