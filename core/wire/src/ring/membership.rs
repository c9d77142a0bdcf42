//! How a ring is formed: proposals, the commit, and how rings meet.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::MAX_MEMBERS;
use crate::{Extension, Malformed, Member, NodeId, RingId, Speaks};

/// A proposal of a membership (the paper's join message). Postcard, fields in this order.
///
/// ```text
/// | proposed: count, each (node, incarnation) | failed | slow | heard | ring sequence | charges: count, each |
/// | speaks | extension |
///
/// charge | member | by | stopped us | within us | limit us | share |
/// ```
///
/// Bit i of the words speaks of `proposed[i]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Nodes that the sender knows of, itself among them, in order of id, each in one life.
    pub proposed: Vec<Member>,
    /// Those that the sender holds to have failed.
    pub failed: u64,
    /// Those among the failed that were excluded because they did not keep up.
    pub slow: u64,
    /// Those whose proposals have reached the sender in this gathering.
    pub heard: u64,
    /// The largest sequence of any ring that the sender knows.
    pub ring_sequence: u64,
    /// Why the slow were excluded, as far as that is known and finds room: at most [`MAX_CHARGES`],
    /// in order of `member`.
    pub charges: Vec<Charge>,
    /// The versions that the sender speaks.
    pub speaks: Speaks,
    /// Bytes that a newer program adds.
    pub extension: Extension,
}

/// Charges in one join: with so many at their longest (18 bytes each) a join of a full ring still
/// fits into the smallest datagram that a node may be configured to send.
pub const MAX_CHARGES: usize = 16;

/// The debt of a member excluded for being slow, as the member that it kept from sending counted
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The member that did not keep up: its place among the proposed.
    pub member: u8,
    /// The member that was kept from sending by it, and counted: its place.
    pub by: u8,
    /// For how many microseconds.
    pub stopped_us: u32,
    /// Within so many.
    pub within_us: u32,
    /// So many microseconds are granted once,
    pub limit_us: u32,
    /// and for ever so many percent of the time.
    pub share: u8,
}

impl Join {
    /// Those of the proposed that `bits` speaks of.
    pub fn those(&self, bits: u64) -> impl Iterator<Item = Member> + '_ {
        let named = move |(i, _): &(usize, &Member)| bits >> i & 1 == 1;
        self.proposed.iter().enumerate().filter(named).map(|(_, member)| *member)
    }

    /// Whether `bits` speaks of this member.
    pub fn says(&self, bits: u64, member: Member) -> bool {
        self.proposed.binary_search(&member).is_ok_and(|i| bits >> i & 1 == 1)
    }
}

/// A message of the commit of a ring that is being formed. Postcard, in this order.
///
/// ```text
/// | ring.seq | rep | step 0 | members: count, each (node, incarnation) |
/// | ring.seq | rep | step 1 | entry |
/// | ring.seq | rep | step 2 | entries: count, each an entry |
///
/// entry  | node | incarnation | old ring.seq | old rep | aru | high | stable | obliged |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The ring that is being formed.
    pub ring: RingId,
    /// The step of the commit, with its content.
    pub step: CommitStep,
}

/// The three messages of the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommitStep {
    /// The representative to every member: these form the ring, in ring order.
    Call(Vec<Member>),
    /// A member to the representative: what it brings along.
    Entry(CommitMember),
    /// The representative to every member: what all bring along, in as many datagrams as it takes
    /// ([`MAX_ENTRIES`]), in ring order.
    Entries(Vec<CommitMember>),
}

/// A member's entry, from its old ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitMember {
    /// The member.
    pub member: Member,
    /// The ring that it comes from.
    pub old_ring: RingId,
    /// It has everything of that ring up to here.
    pub aru: u64,
    /// The largest sequence number that it has of that ring.
    pub high: u64,
    /// It knows that every member of that ring has everything up to here.
    pub stable: u64,
    /// Bit i is set when it has promised, in a recovery that did not end, to deliver what member i
    /// of that ring sent (the obligation set of extended virtual synchrony).
    pub obliged: u64,
}

/// Entries of a commit in one datagram: at their longest (70 bytes each) they fit into the smallest
/// datagram that a node may be configured to send.
pub const MAX_ENTRIES: usize = 19;

/// "Here is a ring": how rings that lost sight of each other meet again. Postcard, in this order.
///
/// ```text
/// | ring.seq | rep | members: count, each | heard: count, each | welcome | speaks | extension |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beacon {
    /// The sender's ring. While it gathers, the one that it was in last.
    pub ring: RingId,
    /// The ring's members; of a node that gathers, those with whom it would form one. In order.
    pub members: Vec<NodeId>,
    /// Nodes outside from which something has come of late. In order.
    pub heard: Vec<NodeId>,
    /// Bit i is set when `heard[i]` says that it hears the sender too, and the sender would be in
    /// one ring with it.
    pub welcome: u64,
    /// The versions that the sender speaks.
    pub speaks: Speaks,
    /// Bytes that a newer program adds.
    pub extension: Extension,
}

/// Every bit speaks of one of so many.
fn covered(bits: u64, count: usize) -> bool {
    count >= 64 || bits >> count == 0
}

pub(super) fn checked_join(join: Join) -> Result<Join, Malformed> {
    at_most(join.proposed.len(), MAX_MEMBERS, "proposed")?;
    if !join.proposed.windows(2).all(|pair| pair[0].node < pair[1].node) {
        return Err(Malformed::Field("join's order"));
    }
    if !covered(join.failed | join.heard, join.proposed.len()) {
        return Err(Malformed::Field("join's bits"));
    }
    if join.slow & !join.failed != 0 {
        return Err(Malformed::Field("slow"));
    }
    at_most(join.charges.len(), MAX_CHARGES, "charges")?;
    join.speaks.checked()?;
    join.extension.check()?;
    let possible = |charge: &Charge| {
        usize::from(charge.member.max(charge.by)) < join.proposed.len()
            && join.slow >> charge.member & 1 == 1
            && charge.stopped_us <= charge.within_us
            && charge.share <= 100
    };
    let in_order = join.charges.windows(2).all(|pair| pair[0].member < pair[1].member);
    if !in_order || !join.charges.iter().all(possible) {
        return Err(Malformed::Field("charge"));
    }
    Ok(join)
}

pub(super) fn checked_commit(commit: Commit) -> Result<Commit, Malformed> {
    let in_order = match &commit.step {
        CommitStep::Call(members) => {
            at_most(members.len(), MAX_MEMBERS, "members")?;
            !members.is_empty() && members.windows(2).all(|pair| pair[0].node < pair[1].node)
        }
        CommitStep::Entry(_) => true,
        CommitStep::Entries(entries) => {
            at_most(entries.len(), MAX_ENTRIES, "entries")?;
            let ordered = |pair: &[CommitMember]| pair[0].member.node < pair[1].member.node;
            !entries.is_empty() && entries.windows(2).all(ordered)
        }
    };
    if in_order { Ok(commit) } else { Err(Malformed::Field("members' order")) }
}

pub(super) fn checked_beacon(beacon: Beacon) -> Result<Beacon, Malformed> {
    at_most(beacon.members.len(), MAX_MEMBERS, "members")?;
    at_most(beacon.heard.len(), MAX_MEMBERS, "heard")?;
    let in_order = |nodes: &[NodeId]| nodes.windows(2).all(|pair| pair[0] < pair[1]);
    if !in_order(&beacon.members) || !in_order(&beacon.heard) {
        return Err(Malformed::Field("beacon's order"));
    }
    if !covered(beacon.welcome, beacon.heard.len()) {
        return Err(Malformed::Field("welcome"));
    }
    beacon.speaks.checked()?;
    beacon.extension.check()?;
    Ok(beacon)
}
