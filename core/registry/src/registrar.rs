//! A node's requests to the registry. Driven by levels: the registrar requests each wanted change,
//! and repeats the request until the registry shows it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use wire::{Duration, GroupId, Member, Time};

use crate::bug::{Bug, Planted};
use crate::{Address, Binding, Command, Ended, Epoch, Registry, Technique, Terms};

/// A request that the registry does not show is repeated after this time.
pub const AGAIN: Duration = Duration::from_millis(200);

/// A node's view of its cluster at one moment, where a majority is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// This node has the primary of the registry's group.
    pub leads: bool,
    /// The lives of nodes that are in the component.
    pub members: Vec<Member>,
    /// The groups that are known, each with the lives that have a replica of it.
    pub groups: BTreeMap<GroupId, Hosted>,
}

/// A group as it stands in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// Its name.
    pub name: String,
    /// The lives of nodes with a replica, with the state or without.
    pub replicas: Vec<Member>,
    /// Those that have the state.
    pub synced: Vec<Member>,
}

/// One node's part. Without a clock: time is an argument, and only its differences count, but for
/// [`look`](Registrar::look)'s `wall`.
#[derive(Clone, Debug)]
pub struct Registrar {
    me: Member,
    /// Under which terms the groups' replicas at this node are bound; `None`: they are not.
    groups: Option<Terms>,
    /// The requests made, and when.
    asked: Vec<(Command, Time)>,
    renewed: Option<Time>,
    planted: Planted,
}

impl Registrar {
    /// Makes the registrar of this life of a node.
    pub fn new(me: Member, groups: Option<Terms>) -> Registrar {
        let planted = Planted::default();
        Registrar { me, groups, asked: Vec::new(), renewed: None, planted }
    }

    /// The same with a mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn with_bug(self, bug: Bug) -> Registrar {
        Registrar { planted: Some(bug).into(), ..self }
    }

    /// Looks at what is there, and says what is to be said. `wall`: the wall clock, for the ends of
    /// leases.
    pub fn look(
        &mut self,
        now: Time,
        wall: Time,
        sight: &Sight,
        registry: &Registry,
    ) -> Vec<Command> {
        let bindings: Vec<Binding> = registry.bindings().collect();
        let mut wanted = self.own(sight, &bindings, registry.epoch());
        if sight.leads {
            let dead: Vec<Ended> = dead(sight, &bindings).collect();
            wanted.extend((!dead.is_empty()).then_some(Command::Dead(dead)));
            wanted.extend(registry.next_end().filter(|end| *end <= wall).map(|_| Command::Tick));
        }
        let again = !self.planted.is(Bug::TellOnce);
        self.asked
            .retain(|(command, at)| wanted.contains(command) && (now < *at + AGAIN || !again));
        wanted.retain(|command| !self.asked.iter().any(|(asked, _)| asked == command));
        self.asked.extend(wanted.iter().map(|command| (command.clone(), now)));
        if self.renew_at(&bindings).is_some_and(|at| at <= now) {
            self.renewed = Some(now);
            wanted.push(Command::Renew { keeper: self.me });
        }
        wanted
    }

    /// When there will be something to do if nothing happens; that of other nodes too, where this
    /// one leads.
    pub fn next_look(
        &self,
        now: Time,
        wall: Time,
        sight: &Sight,
        registry: &Registry,
    ) -> Option<Time> {
        let bindings: Vec<Binding> = registry.bindings().collect();
        let ends = registry.next_end().filter(|_| sight.leads);
        // Just asked for: it will show, or be asked for again.
        let ends = ends.map(|end| now + end.since(wall)).filter(|at| *at > now);
        let again = self.asked.iter().map(|(_, at)| *at + AGAIN);
        again.chain(ends).chain(self.renew_at(&bindings)).min()
    }

    /// The next refresh is due by the shortest of the terms that count now.
    fn renew_at(&self, bindings: &[Binding]) -> Option<Time> {
        let kept = bindings.iter().filter(|it| it.keeper == Some(self.me) && it.until.is_some());
        let shortest = kept.map(|it| it.terms.refresh_ms).min()?;
        let every = Duration::from_millis(shortest.into());
        Some(self.renewed.map_or(Time::ZERO, |at| at + every))
    }

    /// The replicas of this node: those that have the state are bound, and those that are gone are
    /// not.
    fn own(&self, sight: &Sight, bindings: &[Binding], epoch: Epoch) -> Vec<Command> {
        let me = Address::Replica(self.me);
        let mine = || bindings.iter().filter(|it| it.address == me);
        let mut wanted = Vec::new();
        for binding in mine() {
            let group = sight.groups.get(&GroupId::of(&binding.name));
            if self.groups.is_none() || !group.is_some_and(|it| it.replicas.contains(&self.me)) {
                let Ended { name, address, epoch } = binding.identity();
                wanted.push(Command::Unbind { name, address, epoch: Some(epoch) });
            }
        }
        let Some(terms) = self.groups else { return wanted };
        for group in sight.groups.values().filter(|it| it.synced.contains(&self.me)) {
            if wire::system::is_system(&group.name) || mine().any(|it| it.name == group.name) {
                continue;
            }
            wanted.push(Command::Bind {
                name: group.name.clone(),
                address: me.clone(),
                keeper: Some(self.me),
                terms,
                seen: epoch,
            });
        }
        wanted
    }
}

/// The deaths that only the leader reports, and that the technique wants reported.
fn dead<'a>(sight: &'a Sight, bindings: &'a [Binding]) -> impl Iterator<Item = Ended> + 'a {
    let lives = |keeper: Member| sight.members.contains(&keeper);
    let hosts = |name: &str, member: Member| {
        let group = sight.groups.get(&GroupId::of(name));
        group.is_some_and(|group| group.replicas.contains(&member))
    };
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for binding in bindings {
        *left.entry(&binding.name).or_default() += 1;
    }
    bindings.iter().filter_map(move |it| {
        let keeper = it.keeper?;
        let alive = match &it.address {
            Address::Replica(member) => lives(*member) && hosts(&it.name, *member),
            Address::At(_) => lives(keeper),
        };
        let others = left.get_mut(it.name.as_str())?;
        let told = match it.terms.technique {
            Technique::Lease => false,
            Technique::Notification => true,
            Technique::Both => *others > 1,
        };
        if alive || !told {
            return None;
        }
        *others -= 1;
        Some(it.identity())
    })
}
