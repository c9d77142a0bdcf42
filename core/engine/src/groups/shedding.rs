//! A host that has too much to do refuses calls (`docs/protocol/manager.md`, "Shedding"): which,
//! the manager says in the order; at its own node they are turned away before anything is done with
//! them.

mod handler;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::client::Request;
use wire::ordered::AckLevel;
use wire::{Duration, GroupId, NodeId, Time};

use crate::directory::Group;
use crate::style::StyleRules;

/// Callers of a class of whom nothing was heard for so long are gone.
const HEARD: Duration = Duration::from_secs(10);

/// What hosts refuse, and who calls here.
#[derive(Default)]
pub(crate) struct Sheds {
    orders: BTreeMap<NodeId, Order>,
    /// When calls of a priority came here last.
    heard: BTreeMap<u8, Time>,
    /// Of calls whose clients say nothing, by group.
    unsaid: BTreeMap<GroupId, u8>,
    refused: u64,
}

impl Sheds {
    /// What hosts refuse calls below, and until when if nothing else is said.
    pub(crate) fn orders(&self) -> impl Iterator<Item = (NodeId, u8, Time)> {
        self.orders.iter().map(|(node, order)| (*node, order.level, order.until))
    }

    /// How critical the calls of these groups are whose clients do not say it.
    pub(crate) fn set_unsaid(&mut self, of: BTreeMap<GroupId, u8>) {
        self.unsaid = of;
    }
}

/// What one host was told.
struct Order {
    level: u8,
    until: Time,
    room: Vec<NodeId>,
}

/// Whether a call is answered at this node without those that have refused it.
fn may_answer(group: &Group, request: &Request, node: NodeId) -> bool {
    let style = group.options.style;
    let alike = match request.access.reads() {
        true => !style.orders_reads() && group.options.ack != AckLevel::One || !style.orders(),
        false => style.all_speak(),
    };
    alike && group.synced().any(|member| member.node == node)
}
