//! A group's view, as its services are told of it.

use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};

use super::layout::split;
use crate::codec::at_most;
use crate::limits::MAX_MEMBERS;
use crate::{Malformed, NodeId};

/// A group's view. A program is told of it at its place among the calls. A program of before this
/// frame skips it.
///
/// ```text
///  0        8         9         10     16
/// +--------+---------+---------+------+----------------------------
/// | number | members | joining | 0 .. | nodes, 4 bytes each: members, then joining
/// +--------+---------+---------+------+----------------------------
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Its number: one more than the last view's.
    pub number: u64,
    /// The nodes whose replicas have the state, in order of rank: the first is the primary's.
    pub members: Vec<NodeId>,
    /// Those whose replicas are being given the state.
    pub joining: Vec<NodeId>,
}

impl View {
    /// The primary's node; `None`: no replica has the state.
    pub fn primary(&self) -> Option<NodeId> {
        self.members.first().copied()
    }

    /// The nodes whose replicas have the state and had not in the view before.
    pub fn joined(&self, before: &View) -> Vec<NodeId> {
        without(&self.members, &before.members)
    }

    /// The nodes whose replicas had the state in the view before, and have not now.
    pub fn left(&self, before: &View) -> Vec<NodeId> {
        without(&before.members, &self.members)
    }

    pub(super) fn append(&self, buffer: &mut BytesMut) {
        buffer.put_u64_le(self.number);
        buffer.put_u8(count(&self.members));
        buffer.put_u8(count(&self.joining));
        buffer.put_slice(&[0; 6]);
        self.members.iter().chain(&self.joining).for_each(|node| buffer.put_u32_le(node.0));
    }

    pub(super) fn decode(body: &Bytes) -> Result<View, Malformed> {
        let (head, rest) = split::<[u8; 16]>(body)?;
        let number = u64::from_le_bytes(*head.first_chunk().expect("it has 16 bytes"));
        let (members, joining) = (usize::from(head[8]), usize::from(head[9]));
        at_most(members + joining, MAX_MEMBERS, "members")?;
        if head[10..] != [0; 6] {
            return Err(Malformed::Field("reserved"));
        }
        let (nodes, over) = rest.as_chunks::<4>();
        if nodes.len() != members + joining || !over.is_empty() {
            return Err(Malformed::Length);
        }
        let mut all = nodes.iter().map(|node| NodeId(u32::from_le_bytes(*node)));
        let members = all.by_ref().take(members).collect();
        Ok(View { number, members, joining: all.collect() })
    }
}

fn count(nodes: &[NodeId]) -> u8 {
    u8::try_from(nodes.len()).expect("a group has few replicas")
}

fn without(all: &[NodeId], others: &[NodeId]) -> Vec<NodeId> {
    all.iter().copied().filter(|node| !others.contains(node)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_seen_by_who_kept_the_view_before() {
        let nodes = |ids: &[u32]| ids.iter().copied().map(NodeId).collect::<Vec<NodeId>>();
        let before = View { number: 3, members: nodes(&[1, 2]), joining: nodes(&[3]) };
        let view = View { number: 5, members: nodes(&[2, 3]), joining: Vec::new() };
        assert_eq!((view.joined(&before), view.left(&before)), (nodes(&[3]), nodes(&[1])));
        assert_eq!(view.primary(), Some(NodeId(2)));
        assert_eq!(View::default().primary(), None);
    }
}
