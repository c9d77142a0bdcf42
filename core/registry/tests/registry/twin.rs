//! The machine beside a twin that keeps everything that ever happened and looks through all of it,
//! with commands that come late, twice and out of order.

use steadfast_registry::{Address, Command, Ended, Epoch, Registry, Technique, Terms, Verdict};
use wire::{Duration, Member, Random, Time};

use super::{at, member, ms};

/// All that was ever bound, and when it ended.
#[derive(Default)]
struct Twin {
    epoch: u64,
    bound: Vec<Bound>,
    lives: Vec<Member>,
}

struct Bound {
    name: String,
    address: Address,
    keeper: Option<Member>,
    terms: Terms,
    epoch: u64,
    /// When its lease began, if it has one.
    since: Option<Time>,
    ended: Option<u64>,
}

impl Twin {
    fn live(&self) -> Vec<usize> {
        (0..self.bound.len()).filter(|i| self.bound[*i].ended.is_none()).collect()
    }

    fn find(&self, name: &str, address: &Address) -> Option<usize> {
        let same = |i: &usize| self.bound[*i].name == name && self.bound[*i].address == *address;
        self.live().into_iter().find(same)
    }

    fn alone(&self, name: &str) -> bool {
        self.live().iter().filter(|i| self.bound[**i].name == name).count() == 1
    }

    fn has_lease(&self, i: usize) -> bool {
        match self.bound[i].terms.technique {
            Technique::Lease => true,
            Technique::Notification => false,
            Technique::Both => self.alone(&self.bound[i].name),
        }
    }

    /// Leases of those who are alone now and were not begin now.
    fn settle(&mut self, now: Time) {
        for i in self.live() {
            let has = self.has_lease(i);
            let since = &mut self.bound[i].since;
            *since = if has { since.or(Some(now)) } else { None };
        }
    }

    fn end(&mut self, i: usize, now: Time) {
        self.epoch += 1;
        self.bound[i].ended = Some(self.epoch);
        self.settle(now);
    }

    fn expire(&mut self, now: Time) {
        let over = |twin: &Twin, i: &usize| {
            let it = &twin.bound[*i];
            let lease = Duration::from_millis(it.terms.lease_ms.into());
            it.since.is_some_and(|since| since + lease <= now)
        };
        let over: Vec<usize> = self.live().into_iter().filter(|i| over(self, i)).collect();
        // In order of name and address, as they are listed.
        let mut over = over;
        over.sort_by_key(|i| (self.bound[*i].name.clone(), self.bound[*i].address.clone()));
        over.into_iter().for_each(|i| self.end(i, now));
    }

    fn apply(&mut self, now: Time, command: &Command) -> Verdict {
        self.expire(now);
        match command {
            Command::Bind { name, address, keeper, terms, seen } => {
                self.bind(now, (name, address), *keeper, *terms, seen.0)
            }
            Command::Unbind { name, address, epoch } => match self.find(name, address) {
                None => Verdict::Void,
                Some(i) if epoch.is_some_and(|epoch| epoch.0 != self.bound[i].epoch) => {
                    Verdict::Fenced
                }
                Some(i) => {
                    self.end(i, now);
                    Verdict::Done
                }
            },
            Command::Refresh(Ended { name, address, epoch }) => match self.find(name, address) {
                Some(i) if self.bound[i].epoch == epoch.0 => {
                    self.extend(i, now);
                    Verdict::Done
                }
                _ => Verdict::Fenced,
            },
            Command::Renew { keeper } => {
                let kept = |i: &usize| self.bound[*i].keeper == Some(*keeper);
                let kept: Vec<usize> = self.live().into_iter().filter(kept).collect();
                kept.iter().for_each(|i| self.extend(*i, now));
                if kept.is_empty() { Verdict::Void } else { Verdict::Done }
            }
            Command::Dead(dead) => {
                let mut verdict = Verdict::Void;
                for it in dead {
                    let Some(i) = self.find(&it.name, &it.address) else { continue };
                    if self.bound[i].epoch == it.epoch.0 && !self.has_lease(i) {
                        self.end(i, now);
                        verdict = Verdict::Done;
                    }
                }
                verdict
            }
            Command::Tick => Verdict::Done,
        }
    }

    fn extend(&mut self, i: usize, now: Time) {
        let has = self.has_lease(i);
        self.bound[i].since = has.then_some(now);
    }

    fn bind(
        &mut self,
        now: Time,
        (name, address): (&str, &Address),
        keeper: Option<Member>,
        terms: Terms,
        seen: u64,
    ) -> Verdict {
        if keeper.is_some_and(|it| {
            self.lives.iter().any(|life| life.node == it.node && life.incarnation > it.incarnation)
        }) {
            return Verdict::Fenced;
        }
        if let Some(i) = self.find(name, address) {
            if self.bound[i].keeper == keeper && self.bound[i].terms == terms {
                self.extend(i, now);
                return Verdict::Bound(Epoch(self.bound[i].epoch));
            }
            if seen < self.bound[i].epoch {
                return Verdict::Fenced;
            }
        } else {
            let before = self.bound.iter().filter(|it| it.name == name && it.address == *address);
            if before.filter_map(|it| it.ended).max().is_some_and(|ended| seen < ended) {
                return Verdict::Fenced;
            }
        }
        if let Some(keeper) = keeper {
            self.lives.push(keeper);
            let former = |i: &usize| {
                self.bound[*i].keeper.is_some_and(|it| it.node == keeper.node && it != keeper)
            };
            let mut former: Vec<usize> = self.live().into_iter().filter(former).collect();
            former.sort_by_key(|i| (self.bound[*i].name.clone(), self.bound[*i].address.clone()));
            former.into_iter().for_each(|i| self.end(i, now));
        }
        self.epoch += 1;
        let epoch = self.epoch;
        // A replaced binding has not ended for others: the same is still bound.
        if let Some(i) = self.find(name, address) {
            self.bound.remove(i);
        }
        let (name, address) = (name.to_owned(), address.clone());
        self.bound.push(Bound { name, address, keeper, terms, epoch, since: None, ended: None });
        self.settle(now);
        Verdict::Bound(Epoch(epoch))
    }

    fn listed(&self) -> Vec<(String, Address, u64, Option<Time>)> {
        let one = |i: usize| {
            let it = &self.bound[i];
            let lease = Duration::from_millis(it.terms.lease_ms.into());
            let until = it.since.map(|since| since + lease);
            (it.name.clone(), it.address.clone(), it.epoch, until)
        };
        let mut all: Vec<_> = self.live().into_iter().map(one).collect();
        all.sort();
        all
    }
}

/// A command of a few names, addresses and nodes, so that they meet; it may be of long ago by what
/// it has seen.
fn draw(random: &mut Random, registry: &Registry) -> Command {
    let name = ["x", "y"][random.below(2) as usize].to_owned();
    let keeper = member(1 + random.below(3) as u32, 1 + random.below(3));
    let technique = match random.below(3) {
        0 => Technique::Lease,
        1 => Technique::Notification,
        _ => Technique::Both,
    };
    let (address, keeper, technique) = match random.below(4) {
        0 => (at("a"), None, Technique::Lease),
        1 => (at("a"), Some(keeper), technique),
        _ => (Address::Replica(keeper), Some(keeper), technique),
    };
    let terms = Terms { technique, lease_ms: 100 + 100 * random.below(2) as u32, refresh_ms: 10 };
    let epoch = Epoch(registry.epoch().0.saturating_sub(random.below(6)));
    let known = |random: &mut Random| {
        let all: Vec<_> = registry.bindings().map(|it| it.identity()).collect();
        let it = (!all.is_empty()).then(|| all[random.below(all.len() as u64) as usize].clone());
        it.unwrap_or(Ended { name: "x".into(), address: at("a"), epoch })
    };
    match random.below(8) {
        0..=2 => Command::Bind { name, address, keeper, terms, seen: epoch },
        3 => {
            let Ended { name, address, epoch } = known(random);
            Command::Unbind { name, address, epoch: random.one_in(2).then_some(epoch) }
        }
        4 => Command::Refresh(known(random)),
        5 => Command::Renew { keeper: keeper.unwrap_or(member(1, 1)) },
        6 => Command::Dead((0..random.below(4)).map(|_| known(random)).collect()),
        _ => Command::Tick,
    }
}

/// Runs a seed: what differs from the twin, or is not as promised.
pub fn run(seed: u64, mut registry: Registry) -> Result<(), String> {
    let mut random = Random::new(seed);
    let (mut twin, mut now) = (Twin::default(), ms(1_000));
    registry.apply(Time(1), Command::Tick).map_err(|error| error.to_string())?;
    let mut late: Vec<Command> = Vec::new();
    for step in 0..300 {
        now += Duration::from_millis(random.below(40));
        let command = match late.len() {
            // It was said before, and comes now, perhaps not for the last time.
            n if n > 0 && random.one_in(3) => late[random.below(n as u64) as usize].clone(),
            _ => draw(&mut random, &registry),
        };
        late.push(command.clone());
        let (before, epoch) = (listed(&registry), registry.epoch());
        let answer = registry.apply(now, command.clone()).map_err(|error| error.to_string())?;
        registry.check_invariants();
        let verdict = twin.apply(now, &command);
        let differs = |what: &str| Err(format!("seed {seed}, step {step}, {command:?}: {what}"));
        if answer.verdict != verdict || answer.epoch.0 != twin.epoch {
            return differs(&format!("{answer:?}, the twin says {verdict:?} at {}", twin.epoch));
        }
        let after = listed(&registry);
        if after != twin.listed() {
            return differs(&format!("{after:?}, the twin has {:?}", twin.listed()));
        }
        let same = |(a, b): (&Row, &Row)| (&a.0, &a.1, a.2) == (&b.0, &b.1, b.2);
        let kept = before.len() == after.len() && before.iter().zip(&after).all(same);
        if answer.epoch < epoch || kept != (answer.epoch == epoch) {
            return differs("an epoch that does not tell whether something has changed");
        }
    }
    Ok(())
}

type Row = (String, Address, u64, Option<Time>);

fn listed(registry: &Registry) -> Vec<Row> {
    registry.bindings().map(|it| (it.name, it.address, it.epoch.0, it.until)).collect()
}

#[test]
fn it_does_what_a_dumb_twin_does() {
    for seed in 0..600 {
        run(seed, Registry::default()).unwrap();
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn mistakes_of_the_machine_are_found() {
    use steadfast_registry::Bug;
    for bug in Bug::all().filter(|bug| *bug != Bug::TellOnce) {
        let found = (0..2_000).any(|seed| run(seed, Registry::with_bug(bug)).is_err());
        assert!(found, "{bug:?}");
    }
}
