//! Specification 7, safe delivery: a message that one delivers as safe is delivered by all, unless
//! they fail.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specifications 7.1 and 7.2:
//! if a process delivers a safe message in a regular configuration, every member of that
//! configuration delivers it there or in the transitional configuration that follows, unless it
//! fails; if in a transitional one, every member of that does. Y. Amir et al., *The Totem
//! Single-Ring Ordering and Membership Protocol*, TOCS 1995: in a regular configuration it is safe
//! when every member has received it. This is looked at in the open: by then the network has
//! brought it to each of them.

use wire::{Member, RingId};

use super::{Delivered, Level, MessageId, Verdict, demand};
use crate::check::hashed::{HashMap, HashSet};

const PROPERTY: &str = "safe delivery";

/// Safe messages, the members that must deliver them, and the datagrams that reached each member.
#[derive(Clone, Default)]
pub struct Safe {
    members: HashMap<RingId, Vec<Member>>,
    together: HashMap<Member, Vec<Member>>,
    heard: HashMap<(Member, RingId), HashSet<u64>>,
    delivered: HashMap<MessageId, (RingId, Vec<Member>)>,
    /// Deliveries as safe: the member, the message, and the members that must deliver it too.
    promises: Vec<(Member, MessageId, Vec<Member>)>,
    failed: HashSet<Member>,
}

impl Safe {
    /// A node is in a transitional configuration.
    pub fn transitional(&mut self, by: Member, members: &[Member]) {
        self.together.insert(by, members.to_vec());
    }

    /// A node is in a regular configuration.
    pub fn regular(&mut self, by: Member, ring: RingId, members: &[Member]) {
        self.members.entry(ring).or_insert_with(|| members.to_vec());
        self.together.remove(&by);
    }

    /// The network brought a datagram of this ring to a node.
    pub fn heard(&mut self, by: Member, ring: RingId, sequence: u64) {
        self.heard.entry((by, ring)).or_default().insert(sequence);
    }

    /// A life ended.
    pub fn failed(&mut self, member: Member) {
        self.failed.insert(member);
    }

    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered) -> Verdict {
        let Delivered { by, message, ring, sequence, level, .. } = *delivered;
        if level != Level::Safe {
            return Ok(());
        }
        self.delivered.entry(message).or_insert_with(|| (ring, Vec::new())).1.push(by);
        if let Some(together) = self.together.get(&by) {
            self.promises.push((by, message, together.clone()));
            return Ok(());
        }
        let members = &self.members[&ring];
        for &member in members {
            let heard = self.heard.get(&(member, ring));
            let has = member == message.0 || heard.is_some_and(|all| all.contains(&sequence));
            demand(has, PROPERTY, || {
                format!(
                    "{by} delivers {message:?} as {ring} #{sequence}, which {member} has not received"
                )
            })?;
        }
        self.promises.push((by, message, members.clone()));
        Ok(())
    }

    /// At the end: is every promise kept by those who did not fail?
    pub fn finish(&self) -> Verdict {
        for (by, message, to) in &self.promises {
            let (ring, had) = &self.delivered[message];
            let lacks = |member: &&Member| !had.contains(member) && !self.failed.contains(*member);
            let missing = to.iter().find(lacks);
            demand(missing.is_none(), PROPERTY, || {
                format!("{by} delivered {message:?} of {ring} as safe, {missing:?} did not")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{RING, delivered, member};
    use super::*;

    fn three() -> Safe {
        let mut safe = Safe::default();
        for node in 1..=3 {
            safe.regular(member(node), RING, &[member(1), member(2), member(3)]);
        }
        safe
    }

    fn safely(by: u32) -> Delivered {
        Delivered { level: Level::Safe, ..delivered(by, (1, 1), 5) }
    }

    #[test]
    fn what_one_member_has_not_received_is_not_safe() {
        let mut safe = three();
        safe.heard(member(2), RING, 5);
        assert!(safe.delivered(&safely(2)).is_err());
        safe.heard(member(3), RING, 5);
        assert!(safe.delivered(&safely(2)).is_ok());
        assert!(safe.delivered(&delivered(3, (1, 2), 6)).is_ok(), "agreed waits for nobody");
    }

    #[test]
    fn all_members_deliver_unless_they_fail() {
        let mut safe = three();
        safe.heard(member(2), RING, 5);
        safe.heard(member(3), RING, 5);
        safe.delivered(&safely(1)).unwrap();
        safe.delivered(&safely(2)).unwrap();
        assert!(safe.finish().is_err());
        safe.failed(member(3));
        assert!(safe.finish().is_ok());
    }

    #[test]
    fn in_a_transitional_configuration_its_members_count() {
        let mut safe = three();
        for node in [1, 2] {
            safe.transitional(member(node), &[member(1), member(2)]);
        }
        safe.delivered(&safely(1)).unwrap();
        assert!(safe.finish().is_err());
        safe.delivered(&safely(2)).unwrap();
        assert!(safe.finish().is_ok(), "the third went another way");
    }
}
