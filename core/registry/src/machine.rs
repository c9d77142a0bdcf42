//! The registry's state.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::limits::{MAX_ADDRESS, MAX_BINDINGS, MAX_FENCES, MAX_MEMBERS, MAX_NAME};
use wire::{Duration, Incarnation, Member, NodeId, Time};

use crate::bug::{Bug, Planted};
use crate::{
    Address, Answer, Ask, Binding, Command, Ended, Epoch, Listing, Refusal, Technique, Terms,
    Verdict,
};

type Key = (String, Address);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    keeper: Option<Member>,
    terms: Terms,
    epoch: Epoch,
    until: Option<Time>,
}

/// The addresses behind each name: the state of the group `steadfast.registry`. All replicas apply
/// the same commands in one order, at ordered times, and have the same state. Its content is
/// bounded ([`wire::limits`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    epoch: Epoch,
    /// The ordered time of the last command.
    time: Time,
    bindings: BTreeMap<Key, Held>,
    /// When what was bound and is not any more has ended last.
    fences: BTreeMap<Key, Epoch>,
    /// Bindings that ended up to this epoch need not be in `fences`.
    floor: Epoch,
    /// The newest life of each node that has bound something.
    lives: BTreeMap<NodeId, Incarnation>,
    #[serde(skip)]
    planted: Planted,
}

impl Registry {
    /// An empty one with a mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn with_bug(bug: Bug) -> Registry {
        Registry { planted: Some(bug).into(), ..Registry::default() }
    }

    /// The number of changes so far, counted from the first command's time.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Applies a command at an ordered time. First, bindings end that were not refreshed by then. A
    /// refusal changes nothing else.
    ///
    /// # Errors
    /// The reason why the command is impossible, and the remedy.
    pub fn apply(&mut self, now: Time, command: Command) -> Result<Answer, Refusal> {
        if self.time == Time::ZERO && self.epoch == Epoch(0) {
            // This registry may begin anew after the loss of all replicas. Clients that knew the
            // old one must not take this one for older.
            self.epoch = Epoch(now.0 / 1_000);
        }
        self.time = self.time.max(now);
        self.expire();
        let verdict = match command {
            Command::Bind { name, address, keeper, terms, seen } => {
                self.bind((name, address), keeper, terms, seen)?
            }
            Command::Unbind { name, address, epoch } => self.unbind(&(name, address), epoch),
            Command::Refresh(which) => self.refresh(which),
            Command::Renew { keeper } => self.renew(keeper),
            Command::Dead(dead) => self.bury(dead)?,
            Command::Tick => Verdict::Done,
        };
        Ok(Answer { verdict, epoch: self.epoch })
    }

    /// Answers a question.
    pub fn answer(&self, ask: &Ask) -> Listing {
        let fresh = ask.since != Some(self.epoch);
        let wanted = |name: &str| ask.name.as_deref().is_none_or(|only| only == name);
        let bindings = fresh.then(|| self.bindings().filter(|it| wanted(&it.name)).collect());
        Listing { epoch: self.epoch, bindings }
    }

    /// All bindings, in order of name and address.
    pub fn bindings(&self) -> impl Iterator<Item = Binding> + '_ {
        self.bindings.iter().map(|((name, address), held)| {
            let Held { keeper, terms, epoch, until } = *held;
            Binding { name: name.clone(), address: address.clone(), keeper, terms, epoch, until }
        })
    }

    /// The ordered time at which the next binding ends, if it is not refreshed.
    pub fn next_end(&self) -> Option<Time> {
        self.bindings.values().filter_map(|held| held.until).min()
    }

    fn bind(
        &mut self,
        key: Key,
        keeper: Option<Member>,
        terms: Terms,
        seen: Epoch,
    ) -> Result<Verdict, Refusal> {
        check(&key, keeper, &terms)?;
        if let Some(Member { node, incarnation }) = keeper {
            let newest = self.lives.get(&node).copied();
            if newest.is_some_and(|newest| incarnation < newest)
                && !self.planted.is(Bug::KeepFormerLife)
            {
                return Ok(Verdict::Fenced);
            }
            if newest.is_none() && self.lives.len() >= MAX_MEMBERS {
                return Err(Refusal::TooManyNodes);
            }
        }
        if let Some(held) = self.bindings.get(&key) {
            if held.keeper == keeper && held.terms == terms {
                let epoch = held.epoch;
                self.extend(&key);
                return Ok(Verdict::Bound(epoch));
            }
            if seen < held.epoch {
                return Ok(Verdict::Fenced);
            }
        } else {
            let ended = self.fences.get(&key).copied().unwrap_or(self.floor);
            if seen < ended && !self.planted.is(Bug::Revive) {
                return Ok(Verdict::Fenced);
            }
            if self.bindings.len() >= MAX_BINDINGS {
                return Err(Refusal::TooMany);
            }
        }
        if let Some(keeper) = keeper {
            self.begin_life(keeper);
        }
        self.fences.remove(&key);
        self.epoch.0 += 1;
        let epoch = self.epoch;
        let name = key.0.clone();
        self.bindings.insert(key.clone(), Held { keeper, terms, epoch, until: None });
        self.extend(&key);
        self.settle(&name);
        Ok(Verdict::Bound(epoch))
    }

    /// Ends the bindings of this node's former lives.
    fn begin_life(&mut self, keeper: Member) {
        let Member { node, incarnation } = keeper;
        let newest = self.lives.entry(node).or_insert(incarnation);
        if *newest >= incarnation || self.planted.is(Bug::KeepFormerLife) {
            return;
        }
        *newest = incarnation;
        let former = |held: &Held| held.keeper.is_some_and(|it| it.node == node && it != keeper);
        let ended: Vec<Key> = self.keys(former);
        ended.iter().for_each(|key| self.end(key));
    }

    fn unbind(&mut self, key: &Key, epoch: Option<Epoch>) -> Verdict {
        match self.bindings.get(key) {
            None => Verdict::Void,
            Some(held) if epoch.is_some_and(|epoch| epoch != held.epoch) => Verdict::Fenced,
            Some(_) => {
                self.end(key);
                Verdict::Done
            }
        }
    }

    fn refresh(&mut self, which: Ended) -> Verdict {
        let key = (which.name, which.address);
        match self.bindings.get(&key) {
            Some(held) if held.epoch == which.epoch => {
                self.extend(&key);
                Verdict::Done
            }
            _ => Verdict::Fenced,
        }
    }

    fn renew(&mut self, keeper: Member) -> Verdict {
        let any_life = self.planted.is(Bug::KeepFormerLife);
        let kept = self.keys(|held| {
            let by = |it: Member| it == keeper || any_life && it.node == keeper.node;
            held.keeper.is_some_and(by)
        });
        kept.iter().for_each(|key| self.extend(key));
        if kept.is_empty() { Verdict::Void } else { Verdict::Done }
    }

    fn bury(&mut self, dead: Vec<Ended>) -> Result<Verdict, Refusal> {
        if dead.len() > MAX_BINDINGS {
            return Err(Refusal::TooManyDead(dead.len()));
        }
        let mut verdict = Verdict::Void;
        for Ended { name, address, epoch } in dead {
            let key = (name, address);
            let Some(held) = self.bindings.get(&key) else { continue };
            let same = held.epoch == epoch || self.planted.is(Bug::EndTheNewer);
            let told = match held.terms.technique {
                Technique::Lease => false,
                Technique::Notification => true,
                Technique::Both => !self.is_alone(&key.0),
            };
            if same && told {
                self.end(&key);
                verdict = Verdict::Done;
            }
        }
        Ok(verdict)
    }

    /// Ends bindings that were not refreshed in time.
    fn expire(&mut self) {
        // A binding left alone by it gets its lease from now on: none of those ends at once.
        let now = self.time;
        let over = self.keys(|held| held.until.is_some_and(|until| until <= now));
        over.iter().for_each(|key| self.end(key));
    }

    fn end(&mut self, key: &Key) {
        if self.bindings.remove(key).is_none() {
            return;
        }
        if !self.planted.is(Bug::EndSilently) {
            self.epoch.0 += 1;
        }
        self.fences.insert(key.clone(), self.epoch);
        if self.fences.len() > MAX_FENCES {
            let oldest = self.fences.iter().min_by_key(|(_, epoch)| **epoch);
            let (oldest, epoch) = oldest.map(|(key, epoch)| (key.clone(), *epoch)).expect("some");
            self.fences.remove(&oldest);
            self.floor = epoch;
        }
        self.settle(&key.0);
    }

    /// A lease begins anew, if there is one.
    fn extend(&mut self, key: &Key) {
        let alone = self.is_alone(&key.0);
        let no_last = self.planted.is(Bug::NoLastLease);
        let now = self.time;
        let Some(held) = self.bindings.get_mut(key) else { return };
        let leased = match held.terms.technique {
            Technique::Lease => true,
            Technique::Notification => false,
            Technique::Both => alone && !no_last,
        };
        let lease = Duration::from_millis(held.terms.lease_ms.into());
        held.until = leased.then(|| now + lease);
    }

    /// A name's bindings have changed: who was alone may not be, and who was not may be.
    fn settle(&mut self, name: &str) {
        let alone = self.is_alone(name);
        let of = self.of(name).map(|(key, held)| (key.clone(), held.clone()));
        let changed: Vec<Key> = of
            .filter(|(_, held)| held.terms.technique == Technique::Both)
            .filter(|(_, held)| held.until.is_some() != alone)
            .map(|(key, _)| key)
            .collect();
        changed.iter().for_each(|key| self.extend(key));
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Key, &'a Held)> {
        // The smallest address there is.
        let none = Address::Replica(Member { node: NodeId(0), incarnation: Incarnation(0) });
        let first = (String::from(name), none);
        self.bindings.range(first..).take_while(move |((it, _), _)| it == name)
    }

    fn is_alone(&self, name: &str) -> bool {
        self.of(name).take(2).count() == 1
    }

    fn keys(&self, which: impl Fn(&Held) -> bool) -> Vec<Key> {
        let found = self.bindings.iter().filter(|(_, held)| which(held));
        found.map(|(key, _)| key.clone()).collect()
    }

    /// The whole state.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a registry is plain data")
    }

    /// Decodes the bytes of [`encode`](Registry::encode).
    ///
    /// # Errors
    /// The bytes are no registry.
    pub fn decode(bytes: &[u8]) -> Result<Registry, postcard::Error> {
        let registry: Registry = postcard::from_bytes(bytes)?;
        if registry.is_sound() {
            Ok(registry)
        } else {
            Err(postcard::Error::DeserializeBadEncoding)
        }
    }

    /// Checks the invariants. Reads the whole state: for tests, and for a state from elsewhere.
    ///
    /// # Panics
    /// If it is not.
    pub fn check_invariants(&self) {
        assert!(self.is_sound() || self.planted != Planted::default(), "{self:?}");
    }

    fn is_sound(&self) -> bool {
        let held = |(key, held): (&Key, &Held)| {
            let leased = match held.terms.technique {
                Technique::Lease => true,
                Technique::Notification => false,
                Technique::Both => self.is_alone(&key.0),
            };
            check(key, held.keeper, &held.terms).is_ok()
                && held.epoch <= self.epoch
                && held.until.is_some() == leased
                && held.until.is_none_or(|until| until > self.time)
                && held.keeper.is_none_or(|it| self.lives.get(&it.node) == Some(&it.incarnation))
        };
        let fenced = |(key, epoch): (&Key, &Epoch)| {
            *epoch > self.floor && *epoch <= self.epoch && !self.bindings.contains_key(key)
        };
        self.bindings.len() <= MAX_BINDINGS
            && self.fences.len() <= MAX_FENCES
            && self.lives.len() <= MAX_MEMBERS
            && self.floor <= self.epoch
            && self.epoch.0.max(self.time.0) < u64::MAX / 2
            && self.bindings.iter().all(held)
            && self.fences.iter().all(fenced)
    }
}

fn check((name, address): &Key, keeper: Option<Member>, terms: &Terms) -> Result<(), Refusal> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(Refusal::Name(name.len()));
    }
    match address {
        Address::At(text) if text.is_empty() || text.len() > MAX_ADDRESS => {
            return Err(Refusal::Address(text.len()));
        }
        Address::Replica(member) if keeper != Some(*member) => return Err(Refusal::NotTheReplicas),
        _ => {}
    }
    if keeper.is_none() && terms.technique != Technique::Lease {
        return Err(Refusal::Keeperless);
    }
    terms.check()
}
