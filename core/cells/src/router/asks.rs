//! The orders that a router has asked for.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::command::{Command, Epoch};
use crate::output::{LinkId, Output, Outputs};

/// The one who waits for the answer to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Back {
    Attach(LinkId),
    Renewals(Vec<LinkId>),
    Report(LinkId, Epoch),
}

/// The orders that were asked for, and whom their answers are for.
#[derive(Clone, Debug, Default)]
pub(super) struct Asks {
    pub(super) waiting: BTreeMap<u64, Back>,
    next: u64,
}

impl Asks {
    pub(super) fn order(&mut self, out: &mut Outputs, command: Command, back: Option<Back>) {
        self.next += 1;
        if let Some(back) = back {
            self.waiting.insert(self.next, back);
        }
        out.push(Output::Order { ask: self.next, command });
    }
}
