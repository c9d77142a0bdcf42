//! A host with too much to do refuses calls (`docs/protocol/manager.md`, "Shedding"). The manager
//! orders which calls. Their own node turns them away before anything else is done with them.

mod handler;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::client::Request;
use wire::ordered::AckLevel;
use wire::{Duration, GroupId, NodeId, Time};

use crate::directory::Group;
use crate::style::StyleRules;

/// A class of callers that was silent for so long is gone.
const HEARD: Duration = Duration::from_secs(10);

/// Refused priorities, and the classes of callers here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheds {
    orders: BTreeMap<NodeId, Order>,
    /// When calls of a priority came here last.
    heard: BTreeMap<u8, Time>,
    /// Each group's priority for calls whose clients set none.
    unsaid: BTreeMap<GroupId, u8>,
    refused: u64,
}

impl Sheds {
    /// Returns below which priority hosts refuse calls, and until when unless the order is
    /// repeated.
    pub(crate) fn orders(&self) -> impl Iterator<Item = (NodeId, u8, Time)> {
        self.orders.iter().map(|(node, order)| (*node, order.level, order.until))
    }

    /// Sets each group's priority for calls whose clients set none.
    pub(crate) fn set_unsaid(&mut self, of: BTreeMap<GroupId, u8>) {
        self.unsaid = of;
    }
}

/// An order to one host.
#[derive(Clone, Debug)]
struct Order {
    level: u8,
    until: Time,
    room: Vec<NodeId>,
}

/// Whether this node can answer a call without the nodes that have refused it.
fn may_answer(group: &Group, request: &Request, node: NodeId) -> bool {
    let style = group.options.style;
    let alike = match request.access.reads() {
        true => !style.orders_reads() && group.options.ack != AckLevel::One || !style.orders(),
        false => style.all_speak(),
    };
    alike && group.synced().any(|member| member.node == node)
}
