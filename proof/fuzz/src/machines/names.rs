//! The registry's commands in any order, and states that never were.

use registry::{Address, Command, Ended, Epoch, Registry, Technique, Terms};
use wire::{Incarnation, Member, NodeId, Time};

use super::STEPS;
use crate::Source;

/// A command and a state out of any bytes; then commands, as drawn from the same bytes, to a
/// registry and to one that was restored from it: after each both are sound, and alike.
pub(crate) fn registry(bytes: &[u8]) {
    if let Ok(command) = Command::decode(bytes) {
        assert_eq!(Command::decode(&command.encode()).as_ref(), Ok(&command));
        apply(&mut Registry::default(), Time(1), command);
    }
    let mut registry = match Registry::decode(bytes) {
        Ok(registry) => {
            assert_eq!(Registry::decode(&registry.encode()).as_ref(), Ok(&registry));
            // One more change, and its numbers end: in 10^11 years.
            let room = registry.epoch() < Epoch(u64::MAX / 4);
            if room { registry } else { Registry::default() }
        }
        Err(_) => Registry::default(),
    };
    let mut source = Source::new(bytes);
    let mut now = 0_u64;
    for _ in 0..STEPS {
        if source.is_empty() {
            return;
        }
        // Ordered time may stand still, and does not go back.
        now = now.saturating_add(u64::from(source.byte()) * 1_000_000);
        let command = command(&mut source, &registry);
        let mut restored = Registry::decode(&registry.encode()).expect("it is sound");
        apply(&mut restored, Time(now), command.clone());
        apply(&mut registry, Time(now), command);
        assert_eq!(registry, restored);
    }
}

fn apply(registry: &mut Registry, now: Time, command: Command) {
    let mut idle = registry.clone();
    if let Err(refusal) = registry.apply(now, command) {
        // It is said to people, and changes nothing but that time has gone on.
        assert!(!refusal.to_string().is_empty());
        idle.apply(now, Command::Tick).expect("nothing keeps time from going on");
        assert_eq!(*registry, idle);
    }
    registry.check_invariants();
}

fn command(source: &mut Source<'_>, registry: &Registry) -> Command {
    let name = ["alpha", "beta", ""][source.below(3)].to_string();
    match source.below(7) {
        0 | 1 => {
            let seen = Epoch(source.number());
            Command::Bind {
                name,
                address: address(source),
                keeper: keeper(source),
                terms: terms(source),
                seen,
            }
        }
        2 => {
            let epoch = (source.below(2) == 0).then(|| Epoch(source.number()));
            Command::Unbind { name, address: address(source), epoch }
        }
        3 => Command::Refresh(ended(source, registry)),
        4 => Command::Renew { keeper: keeper(source).unwrap_or(member(source)) },
        5 => Command::Dead((0..source.below(4)).map(|_| ended(source, registry)).collect()),
        _ => Command::Tick,
    }
}

/// One that there is, or one that need not be.
fn ended(source: &mut Source<'_>, registry: &Registry) -> Ended {
    let bindings: Vec<Ended> = registry.bindings().map(|binding| binding.identity()).collect();
    if bindings.is_empty() || source.below(4) == 0 {
        return Ended {
            name: "alpha".into(),
            address: address(source),
            epoch: Epoch(source.number()),
        };
    }
    bindings[source.below(bindings.len().min(256))].clone()
}

fn address(source: &mut Source<'_>) -> Address {
    match source.below(3) {
        0 => Address::Replica(member(source)),
        1 => Address::At(String::from_utf8_lossy(source.bytes(3)).into_owned()),
        _ => Address::At("10.0.0.1:80".into()),
    }
}

fn member(source: &mut Source<'_>) -> Member {
    let incarnation = Incarnation(source.below(3) as u64);
    Member { node: NodeId(source.below(4) as u32), incarnation }
}

fn keeper(source: &mut Source<'_>) -> Option<Member> {
    (source.below(2) == 0).then(|| member(source))
}

fn terms(source: &mut Source<'_>) -> Terms {
    let technique = [Technique::Lease, Technique::Notification, Technique::Both][source.below(3)];
    let (lease_ms, refresh_ms) = (10 + u32::from(source.byte()), 1 + u32::from(source.byte()));
    Terms { technique, lease_ms, refresh_ms }
}
