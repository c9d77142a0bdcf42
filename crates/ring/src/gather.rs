//! Gather: who is there, and does everybody think so?

use alloc::vec::Vec;

use wire::ring::Join;
use wire::{Member, NodeId, Time};

/// Nodes known to be about, and those among them held to have failed. At most one life per node,
/// the newest known; both in order of id. Within one gathering both only grow, so nodes that hear
/// each other come to equal sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sets {
    pub proposed: Vec<Member>,
    pub failed: Vec<Member>,
}

impl Sets {
    pub fn of(members: &[Member]) -> Self {
        Sets { proposed: members.to_vec(), failed: Vec::new() }
    }

    /// The life that is known of a node.
    pub fn life_of(&self, node: NodeId) -> Option<Member> {
        let at = self.proposed.binary_search_by_key(&node, |m| m.node).ok()?;
        Some(self.proposed[at])
    }

    pub fn has_failed(&self, member: Member) -> bool {
        self.failed.binary_search(&member).is_ok()
    }

    /// Knows of this life. A newer one replaces an older, which needs no failing any more.
    pub fn propose(&mut self, member: Member) -> bool {
        match self.proposed.binary_search_by_key(&member.node, |m| m.node) {
            Ok(at) if self.proposed[at] >= member => false,
            Ok(at) => {
                self.proposed[at] = member;
                self.failed.retain(|m| m.node != member.node);
                true
            }
            Err(at) => {
                self.proposed.insert(at, member);
                true
            }
        }
    }

    /// Holds this life to have failed.
    pub fn fail(&mut self, member: Member) -> bool {
        let mut changed = self.propose(member);
        if self.life_of(member.node) == Some(member)
            && let Err(at) = self.failed.binary_search(&member)
        {
            self.failed.insert(at, member);
            changed = true;
        }
        changed
    }

    /// Those who would form the ring.
    pub fn live(&self) -> impl Iterator<Item = Member> + '_ {
        self.proposed.iter().copied().filter(|member| !self.has_failed(*member))
    }

    pub fn within(&self, other: &Sets) -> bool {
        let mut union = other.clone();
        !union.unite(self)
    }

    fn unite(&mut self, other: &Sets) -> bool {
        let mut changed = false;
        for member in &other.proposed {
            changed |= self.propose(*member);
        }
        for member in &other.failed {
            changed |= self.fail(*member);
        }
        changed
    }

    pub fn check(&self) {
        assert!(self.proposed.windows(2).all(|pair| pair[0].node < pair[1].node));
        assert!(self.failed.windows(2).all(|pair| pair[0].node < pair[1].node));
        assert!(self.failed.iter().all(|member| self.proposed.binary_search(member).is_ok()));
    }
}

/// What a join did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Of no weight: from a life that has failed, or an old one.
    Ignored,
    /// The sender goes on without this node.
    Excluded,
    /// Our sets stay.
    Same,
    /// Our sets have grown: everybody has to be told, and has to agree anew.
    Changed,
}

#[derive(Debug)]
pub(crate) struct Gather {
    me: Member,
    pub sets: Sets,
    /// Those whose sets are equal to ours.
    agreed: Vec<Member>,
    /// When the proposal is repeated.
    pub join_at: Time,
    /// When whoever has not agreed is held to have failed.
    pub consensus_at: Time,
    /// A node that starts does not accept being alone before this.
    pub alone_at: Time,
}

impl Gather {
    pub fn new(me: Member, sets: Sets) -> Self {
        Gather {
            me,
            sets,
            agreed: Vec::new(),
            join_at: Time::ZERO,
            consensus_at: Time::FAR,
            alone_at: Time::ZERO,
        }
    }

    /// A proposal of `sender`, reduced to nodes of the configuration.
    pub fn hear(&mut self, nodes: &[NodeId], sender: Member, join: &Join) -> Heard {
        if self.sets.life_of(sender.node).is_some_and(|life| life > sender)
            || self.sets.has_failed(sender)
        {
            return Heard::Ignored;
        }
        let theirs = self.theirs(nodes, sender, join);
        if theirs.has_failed(self.me) {
            // Its ring will be without us, and soon. To hold it to have failed in return, as the
            // paper does, would accuse it before third nodes that work with both; they would then
            // fail it too, and so on, until each is alone. It hears us again when its ring stands.
            self.agreed.retain(|member| *member != sender);
            return Heard::Excluded;
        }
        let changed = if theirs.has_failed(sender) {
            self.sets.fail(sender) // It leaves.
        } else {
            self.sets.unite(&theirs)
        };
        if changed {
            self.agreed.clear();
        }
        if self.sets == theirs && !self.agreed.contains(&sender) {
            self.agreed.push(sender);
        }
        if changed { Heard::Changed } else { Heard::Same }
    }

    fn theirs(&self, nodes: &[NodeId], sender: Member, join: &Join) -> Sets {
        let mut theirs = Sets::default();
        let me = self.me;
        // Of this node only this life counts: it knows best which is the newest.
        let known = |m: &&Member| nodes.contains(&m.node) && (m.node != me.node || **m == me);
        theirs.propose(sender);
        for member in join.proposed.iter().filter(known) {
            theirs.propose(*member);
        }
        for member in join.failed.iter().filter(known) {
            theirs.fail(*member);
        }
        theirs
    }

    /// Whether `join` says something that these sets do not.
    pub fn is_news(&self, nodes: &[NodeId], sender: Member, join: &Join) -> bool {
        !self.theirs(nodes, sender, join).within(&self.sets)
    }

    pub fn fail(&mut self, member: Member) -> bool {
        let changed = self.sets.fail(member);
        if changed {
            self.agreed.clear();
        }
        changed
    }

    pub fn forget_agreement(&mut self) {
        self.agreed.clear();
    }

    /// Nobody in time: those who have not agreed. Empty when all have, and yet no ring came of it.
    pub fn silent(&self) -> Vec<Member> {
        let spoke = |m: &Member| *m == self.me || self.agreed.contains(m);
        self.sets.live().filter(|member| !spoke(member)).collect()
    }

    /// All who are to be in the ring agree.
    pub fn consensus(&self, now: Time) -> bool {
        let alone = self.sets.proposed == [self.me];
        self.silent().is_empty() && !(alone && now < self.alone_at)
    }
}
