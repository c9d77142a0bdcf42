//! Which groups call which, in a seed's cluster.

use wire::Duration;
use wire::ordered::{GroupOptions, Style};

use super::Options;
use super::passable::PAYLOAD;
use crate::draw::Draw;

/// The longest time that a call may take where others wait for it.
const QUICK: Duration = Duration::from_millis(50);

impl Options {
    /// In half of the seeds each group calls the next one. In a chain with disks the last group is
    /// often in memory, and gives another answer to every call. So the answers that the others got
    /// must be on their disks.
    pub(super) fn with_nested(mut self, draw: &mut Draw) -> Options {
        let calls = draw.one_in(2);
        if calls && self.disks.is_some() && self.groups.len() > 1 && draw.one_in(2) {
            let last = self.groups.last_mut().expect("there are several");
            last.options = GroupOptions { style: Style::Stateless, ..GroupOptions::default() };
        }
        let plans = self.groups.clone();
        for (place, group) in self.groups.iter_mut().enumerate().filter(|_| calls) {
            let relays = place + 2 < plans.len();
            group.callee = plans.get(place + 1).map(|next| (next.name.clone(), relays));
        }
        if self.groups.iter().any(|group| group.callee.is_some()) {
            // A call that waits for another group keeps its place at the node meanwhile.
            self.waiting = self.waiting.max(8);
            // A caller of such a group waits for all calls before it: many calls at a time would
            // time out without any move.
            if self.smooth {
                self.load.parallel = self.load.parallel.min(2);
            }
        }
        // A nested call waits for all messages that its callee orders. If each call orders a large
        // state, those behind it wait beyond their deadlines.
        let called: Vec<String> = self.callees().cloned().collect();
        let slow: Vec<bool> =
            self.groups.iter().map(|group| self.sending(group.padding) > QUICK).collect();
        for (group, slow) in self.groups.iter_mut().zip(slow) {
            if slow && called.contains(&group.name) {
                group.padding = group.padding.min(1_000);
            }
        }
        self
    }

    /// How long it takes until a node has sent so many bytes. With a parked token: a window in the
    /// time of an answer; with one that circulates: a turn in a rotation.
    fn sending(&self, bytes: usize) -> Duration {
        match self.parking {
            true => self.weather.latency * (2 * (bytes / (self.window * PAYLOAD))) as u32,
            false => self.passage(bytes),
        }
    }

    /// The groups that others call.
    fn callees(&self) -> impl Iterator<Item = &String> {
        self.groups.iter().filter_map(|group| Some(&group.callee.as_ref()?.0))
    }
}
