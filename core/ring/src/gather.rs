//! Gather: who is there, and does everybody think so?

use alloc::vec::Vec;

use wire::limits::MAX_MEMBERS;
use wire::ring::{Join, MAX_CHARGES};
use wire::{Duration, Extension, Member, NodeId, NodeList, Speaks, Time};

use crate::blame::Blame;

/// Nodes known to be about, and those among them held to have failed. At most one life per node,
/// the newest known; both in order of id. Within one gathering both only grow, so nodes that hear
/// each other come to equal sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    pub proposed: Vec<Member>,
    pub failed: Vec<Member>,
    /// The failed members that did not keep up, as far as known. The reason for an exclusion is
    /// reported, but not agreed on.
    pub slow: Vec<Blame>,
}

impl PartialEq for Sets {
    fn eq(&self, other: &Sets) -> bool {
        self.proposed == other.proposed && self.failed == other.failed
    }
}

impl Sets {
    pub fn of(members: &[Member]) -> Self {
        Sets { proposed: members.to_vec(), ..Sets::default() }
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
                self.slow.retain(|blame| blame.member.node != member.node);
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

    /// It failed because it did not keep up. False if that is known, or if it is not held to have
    /// failed.
    pub fn blame(&mut self, blame: Blame) -> bool {
        let news = self.has_failed(blame.member) && !self.is_slow(blame.member);
        if news {
            self.slow.push(blame);
        }
        news
    }

    /// A node that is in no list any more.
    pub fn forget(&mut self, node: NodeId) {
        self.proposed.retain(|member| member.node != node);
        self.failed.retain(|member| member.node != node);
        self.slow.retain(|blame| blame.member.node != node && blame.by.node != node);
    }

    pub fn is_slow(&self, member: Member) -> bool {
        self.slow.iter().any(|blame| blame.member == member)
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
        assert!(self.slow.iter().all(|blame| self.has_failed(blame.member)));
        assert!(self.proposed.len() <= MAX_MEMBERS && self.slow.len() <= self.failed.len());
    }
}

/// The effect of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It has no weight: it is from a life that has failed, or an old one.
    Ignored,
    /// The sender goes on without this node.
    Excluded,
    /// Our sets stay.
    Same,
    /// Our sets have grown: everybody has to be told, and has to agree anew.
    Changed,
}

/// A member that did not answer the token: it is waited for less long than others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    pub member: Member,
    /// When it is held to have failed. [`Time::FAR`]: not before the consensus time-out.
    pub accuse_at: Time,
    /// When it is asked again.
    pub ask_at: Time,
}

/// So many changes of the proposal in a row are told to all without delay.
const AT_ONCE: u32 = 3;

#[derive(Debug)]
pub(crate) struct Gather {
    me: Member,
    pub sets: Sets,
    /// Those whose sets are equal to ours.
    agreed: Vec<Member>,
    /// The members whose proposals came in this gathering, each with the members that it had heard.
    heard: Vec<(Member, Vec<Member>)>,
    /// Those who go on without this node.
    excluded_by: Vec<Member>,
    /// This node was told that it is left out because it did not keep up.
    pub too_slow: bool,
    suspect: Option<Suspect>,
    /// Members with smaller ids that others hear have been given a second period.
    pub yielded: bool,
    /// When the proposal is repeated.
    pub join_at: Time,
    /// When all were told of it last, and how often at once.
    told: (Time, u32),
    /// The time at which members that have not agreed are suspected to have failed.
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
            heard: Vec::new(),
            excluded_by: Vec::new(),
            too_slow: false,
            suspect: None,
            yielded: false,
            join_at: Time::ZERO,
            told: (Time::ZERO, 0),
            consensus_at: Time::FAR,
            alone_at: Time::ZERO,
        }
    }

    /// Whether all are to be told of the proposal now. The first changes are told at once; of those
    /// that come thick upon them each would cost a datagram to everybody, so they are told
    /// together, this much apart.
    pub fn may_tell_all(&mut self, now: Time, apart: Duration) -> bool {
        let (at, times) = self.told;
        let (next, changed) = (at + apart, self.join_at > now);
        if times >= AT_ONCE && now < next && changed {
            self.join_at = self.join_at.min(next);
            return false;
        }
        self.told = (now, if now < next { times + 1 } else { 1 });
        true
    }

    /// This node's proposal.
    pub fn join(&self, ring_sequence: u64, speaks: Speaks, extension: Extension) -> Join {
        let Sets { proposed, failed, slow } = &self.sets;
        let place = |member| proposed.binary_search(&member).ok();
        let mut charges: Vec<_> = slow.iter().filter_map(|blame| blame.told(place)).collect();
        charges.sort_unstable_by_key(|charge| charge.member);
        charges.truncate(MAX_CHARGES);
        let bits = |named: &dyn Fn(&Member) -> bool| {
            proposed.iter().enumerate().fold(0, |bits, (i, m)| bits | u64::from(named(m)) << i)
        };
        Join {
            failed: bits(&|m| failed.binary_search(m).is_ok()),
            slow: bits(&|m| self.sets.is_slow(*m)),
            heard: bits(&|m| *m == self.me || self.has_heard(*m)),
            proposed: proposed.clone(),
            ring_sequence,
            charges,
            speaks,
            extension,
        }
    }

    /// A proposal of `sender`, reduced to nodes that this one knows.
    pub fn hear(&mut self, nodes: &NodeList, sender: Member, join: &Join) -> Heard {
        if self.sets.life_of(sender.node).is_some_and(|life| life > sender)
            || self.sets.has_failed(sender)
        {
            return Heard::Ignored;
        }
        self.remember(sender, join);
        let theirs = self.theirs(nodes, sender, join);
        if theirs.has_failed(self.me) {
            // Its ring will be without us, and soon. To hold it to have failed in return, as the
            // paper does, would accuse it before third nodes that work with both; they would then
            // fail it too, and so on, until each is alone. It hears us again when its ring stands.
            self.excluded_by(sender);
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

    /// This one goes on without this node.
    pub fn excluded_by(&mut self, member: Member) {
        self.agreed.retain(|agreed| *agreed != member);
        self.excluded_by.retain(|other| other.node != member.node);
        self.excluded_by.push(member);
    }

    fn remember(&mut self, sender: Member, join: &Join) {
        self.heard.retain(|(member, _)| member.node != sender.node);
        self.heard.push((sender, join.those(join.heard).collect()));
        self.excluded_by.retain(|member| member.node != sender.node);
        // It answers this node itself, so it hears it: the token was lost, or it was held up.
        if self.suspect.is_some_and(|suspect| suspect.member == sender)
            && join.says(join.heard, self.me)
        {
            self.suspect = None;
        }
    }

    fn theirs(&self, nodes: &NodeList, sender: Member, join: &Join) -> Sets {
        let mut theirs = Sets::default();
        let me = self.me;
        // Only this node's present life counts: it knows best which is the newest.
        let known = |m: &Member| nodes.place(m.node).is_some() && (m.node != me.node || *m == me);
        theirs.propose(sender);
        for member in join.proposed.iter().copied().filter(known) {
            theirs.propose(member);
        }
        for member in join.those(join.failed).filter(known) {
            theirs.fail(member);
        }
        theirs
    }

    /// Whether `join` says something that these sets do not.
    pub fn is_news(&self, nodes: &NodeList, sender: Member, join: &Join) -> bool {
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

    pub fn agrees(&self, member: Member) -> bool {
        self.agreed.contains(&member)
    }

    fn has_heard(&self, member: Member) -> bool {
        self.heard.iter().any(|(heard, _)| *heard == member)
    }

    /// Whether this member has said that it hears this node.
    pub fn is_heard_by(&self, member: Member) -> bool {
        self.heard.iter().any(|(sender, heard)| *sender == member && heard.contains(&self.me))
    }

    /// This member did not answer the token. Unless it answers this node's proposal, it is held to
    /// have failed at `accuse_at`. An earlier proposal of it is no answer: it shows only that this
    /// node hears it.
    pub fn suspect(&mut self, member: Member, ask_at: Time, accuse_at: Time) {
        self.agreed.retain(|agreed| *agreed != member);
        self.heard.retain(|(heard, _)| *heard != member);
        self.suspect = Some(Suspect { member, accuse_at, ask_at });
    }

    /// The suspect, if it is to be asked again now.
    pub fn ask_again(&mut self, now: Time, interval: Duration) -> Option<Member> {
        let member = self.suspected().filter(|suspect| suspect.ask_at <= now)?.member;
        self.suspect.as_mut().expect("suspected").ask_at = now + interval;
        Some(member)
    }

    /// The suspect, while it may be in the ring and has not answered.
    pub fn suspected(&self) -> Option<Suspect> {
        self.suspect.filter(|suspect| self.sets.live().any(|member| member == suspect.member))
    }

    /// Whether the suspect is the one to blame: somebody else is heard, so this node is not deaf,
    /// and nobody whom it has to give way to hears the suspect.
    pub fn may_accuse(&self, suspect: Member) -> bool {
        let mut others = self.sets.live().filter(|m| *m != self.me && *m != suspect).peekable();
        let deaf = others.peek().is_some() && !others.any(|member| self.has_heard(member));
        !deaf && !self.yields_to(suspect)
    }

    /// This node gives way to a silent member with a smaller id while a third node hears both. It
    /// waits to be left out instead of accusing.
    pub fn yields_to(&self, silent: Member) -> bool {
        let witness = |(member, heard): &(Member, Vec<Member>)| {
            *member != silent && !self.sets.has_failed(*member) && heard.contains(&silent)
        };
        silent < self.me && !self.has_heard(silent) && self.heard.iter().any(witness)
    }

    /// The members to hold to have failed, among those that were silent for a whole period. `None`
    /// for one more period if this node has to give way to all of them.
    pub fn accused(&self, silent: &[Member]) -> Option<Vec<Member>> {
        let accused: Vec<_> = silent.iter().copied().filter(|m| !self.yields_to(*m)).collect();
        match accused.is_empty() {
            false => Some(accused),
            true => self.yielded.then(|| silent.to_vec()),
        }
    }

    /// When something has to be done.
    pub fn next_timeout(&self) -> Time {
        let suspect = self.suspected();
        let suspect = suspect.map_or(Time::FAR, |suspect| suspect.accuse_at.min(suspect.ask_at));
        self.join_at.min(self.consensus_at).min(suspect)
    }

    /// All others go on without this node: nobody is left to wait for.
    pub fn is_excluded(&self) -> bool {
        let mut others = self.sets.live().filter(|member| *member != self.me).peekable();
        others.peek().is_some() && others.all(|member| self.excluded_by.contains(&member))
    }

    /// Nobody in time: those who have not agreed. Empty when all have, and yet no ring came of it.
    pub fn silent(&self) -> Vec<Member> {
        let suspect = self.suspected().map(|suspect| suspect.member);
        let spoke = |m: &Member| *m == self.me || (self.agreed.contains(m) && Some(*m) != suspect);
        self.sets.live().filter(|member| !spoke(member)).collect()
    }

    /// All who are to be in the ring agree.
    pub fn consensus(&self, now: Time) -> bool {
        let alone = self.sets.proposed == [self.me];
        self.silent().is_empty() && !(alone && now < self.alone_at)
    }
}
