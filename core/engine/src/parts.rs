//! Parts of a node's machine: each owns its fields, and none sees another or the
//! [`Stack`](crate::stack::Stack), which composes them.

mod clients;
mod comparisons;
mod hangs;
mod lineage;
mod merges;
mod notes;
mod outbox;
mod outputs;
mod progress;
mod reads;
mod records;
mod rejoin;
mod retries;
mod votes;
mod watches;

pub(crate) use clients::Clients;
pub(crate) use comparisons::{Comparisons, Finding};
pub(crate) use hangs::Hangs;
pub(crate) use lineage::{Counts, Lineages};
pub(crate) use merges::{Key, Merges};
pub(crate) use notes::StateNotes;
pub(crate) use outbox::Outbox;
pub(crate) use outputs::Outputs;
pub(crate) use progress::{Held, Progress};
use reads::Reads;
pub(crate) use records::Records;
pub(crate) use rejoin::RejoinBackoff;
pub(crate) use retries::Retries;
pub(crate) use votes::Votes;
use watches::Watches;
