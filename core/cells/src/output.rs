//! The wishes of a router.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::path::Path;
use wire::{Duration, NodeId};

use crate::command::{Command, Epoch, Record};
use crate::message::{Call, Class, End, Message, Origin};

/// A link of one node. Those that a router dials have numbers below [`LinkId::ACCEPTED`], in the
/// order of the dials; its driver numbers those that it accepts, from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

impl LinkId {
    /// The first of the accepted ones.
    pub const ACCEPTED: LinkId = LinkId(1 << 63);

    /// This side has dialled it.
    pub fn is_dialled(self) -> bool {
        self < LinkId::ACCEPTED
    }
}

/// A wish of the router. Its driver does all of them, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Make a link, by the first of these addresses that answers. It is told to be up, or down.
    Dial {
        /// The link to be.
        link: LinkId,
        /// Where.
        to: Vec<SocketAddr>,
        /// The cell that the certificate of the other side must name.
        cell: Path,
        /// So long for each address.
        patience: Duration,
    },
    /// End it. The router knows it no more.
    Close(LinkId),
    /// Send this.
    Send {
        /// By this link.
        link: LinkId,
        /// By this connection of it.
        class: Class,
        /// The message.
        message: Message,
    },
    /// Have the cell's group order this, and tell the verdict.
    Order {
        /// The number by which it is told.
        ask: u64,
        /// The command.
        command: Command,
    },
    /// Tell the targets of this group of the cell, now and when they change, until it is forgotten.
    Locate(String),
    /// Nobody asks for this group any more.
    Forget(String),
    /// Make this call in the cell, by the caller's session and number, and tell its end.
    Execute {
        /// The number by which it is told.
        call: u64,
        /// The call.
        request: Call,
        /// Within this time.
        left: Duration,
        /// Its caller. `None`: nobody vouches for a name.
        origin: Option<Origin>,
    },
    /// The answer to a question that was asked here, and again when it changes.
    Found {
        /// The number that the asker gave.
        token: u64,
        /// `None`: nowhere, as far as is known.
        found: Option<Record>,
    },
    /// A call that was made here has ended.
    Ended {
        /// The number that the maker gave.
        token: u64,
        /// So.
        end: End,
    },
    /// Something that people want to know.
    Event(Event),
}

/// Something that people want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A neighbour can be reached by this link.
    LinkUp {
        /// Its cell.
        path: Path,
        /// The node there.
        node: NodeId,
    },
    /// It cannot any more.
    LinkDown {
        /// Its cell.
        path: Path,
        /// The node there.
        node: NodeId,
        /// Nothing came for too long.
        is_silent: bool,
    },
    /// This cell is attached.
    Attached {
        /// To this one.
        to: Path,
        /// The attachment.
        epoch: Epoch,
    },
    /// The cell above has not attached it, and why.
    Refused {
        /// That cell.
        by: Path,
        /// The reason and the remedy.
        reason: String,
    },
    /// The cell above has ended the attachment.
    Shunned {
        /// That cell.
        by: Path,
    },
    /// A neighbour has said what it may not.
    Misbehaved {
        /// The neighbour.
        path: Path,
        /// The rule.
        why: &'static str,
    },
}

/// The queue of outputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs(VecDeque<Output>);

impl Outputs {
    pub(crate) fn push(&mut self, output: Output) {
        self.0.push_back(output);
    }

    pub(crate) fn send(&mut self, link: LinkId, class: Class, message: Message) {
        self.push(Output::Send { link, class, message });
    }

    /// Sends one of the system's own messages.
    pub(crate) fn control(&mut self, link: LinkId, message: Message) {
        self.send(link, Class::Control, message);
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.push(Output::Event(event));
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.0.pop_front()
    }
}
