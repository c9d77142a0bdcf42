//! Histories that are right by construction: clients' observations of an object that takes each
//! call at one instant, while they and their messages take their time.

use wire::{Random, Time};

use crate::model::{Model, Told};
use crate::record::{End, Operation};

/// The load of the clients.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Clients, each with one call at a time.
    pub clients: u32,
    /// Calls of all together.
    pub operations: usize,
    /// So many of 1,000 calls have an end that their client does not learn: half of these happen,
    /// some of them much later.
    pub unknown: u64,
    /// So many of 1,000 calls are declined.
    pub failed: u64,
}

/// A call on its way.
struct Way {
    invoked: u64,
    /// When the object takes it, if it does.
    taken: Option<u64>,
    answered: Option<u64>,
    failed: bool,
}

/// A time within a hundred.
fn span(random: &mut Random) -> u64 {
    1 + random.below(100)
}

/// Clients' observations of an atomic object. `call` draws a client's call.
pub fn history<M: Model>(
    model: &M,
    load: &Load,
    random: &mut Random,
    mut call: impl FnMut(&mut Random, u32) -> M::Call,
) -> Vec<Told<M>> {
    let mut free: Vec<u64> = (0..load.clients).map(|_| random.below(100)).collect();
    let mut operations = Vec::new();
    let mut instants = Vec::new();
    for place in 0..load.operations {
        let client = place % free.len();
        let way = way(load, random, free[client]);
        free[client] = way.answered.unwrap_or(way.invoked + 100) + span(random);
        let end = if way.failed { End::Failed } else { End::Unknown };
        let invoked = Time(way.invoked);
        let call = call(random, client as u32);
        operations.push(Operation { client: client as u32, call, invoked, end });
        instants.extend(way.taken.map(|taken| (taken, place, way.answered)));
    }
    instants.sort_unstable();
    let mut states = std::collections::BTreeMap::new();
    for (_, place, answered) in instants {
        let operation = &mut operations[place];
        let key = model.key(&operation.call);
        let state = states.entry(key.clone()).or_insert_with(|| model.initial(&key));
        let reply = model.execute(state, &operation.call);
        if let Some(at) = answered {
            operation.end = End::Answered { at: Time(at), reply };
        }
    }
    operations
}

fn way(load: &Load, random: &mut Random, invoked: u64) -> Way {
    let taken = invoked + span(random);
    let fate = random.below(1_000);
    if fate < load.failed {
        return Way { invoked, taken: None, answered: None, failed: true };
    }
    if fate < load.failed + load.unknown {
        let late = if random.one_in(4) { 100 * span(random) } else { 0 };
        let taken = random.one_in(2).then_some(taken + late);
        return Way { invoked, taken, answered: None, failed: false };
    }
    Way { invoked, taken: Some(taken), answered: Some(taken + span(random)), failed: false }
}
