//! A nested call is executed once, and the calling handlers get its result.
//!
//! Source: docs/protocol/nested.md. Every replica's entry of a call that calls another group
//! carries a hash of the reply. At the end, for each entry with a reply, the callee's history has
//! the call just once, and what the oracle makes of that is what the caller was told.

use super::hashed::HashMap;

use engine::NestedError;
use wire::client::Outcome;
use wire::ordered::{nested_client, nested_number};
use wire::{ClientId, GroupId};

use super::{Verdict, demand};
use crate::oracle;
use crate::service::{Entry, FAILED, RELAY, came_of};

const PROPERTY: &str = "nested calls take place once";

/// At the end: the histories of a group and of the one that it calls.
pub fn finish(caller: (GroupId, &[Entry]), callee: (GroupId, &[Entry])) -> Verdict {
    let mut done: HashMap<(ClientId, u64), (u64, u64)> = HashMap::default();
    for (entry, reply) in callee.1.iter().zip(oracle::service::replies(callee.1)) {
        let came = match reply {
            Outcome::Ok(bytes) => came_of(&Ok(bytes)),
            _ => came_of(&Err(NestedError::Deadline)),
        };
        let (times, _) = done.get(&(entry.client, entry.number)).copied().unwrap_or_default();
        done.insert((entry.client, entry.number), (times + 1, came));
    }
    for entry in caller.1.iter().filter(|entry| entry.method == RELAY && entry.came > FAILED) {
        let client = nested_client(caller.0, entry.client);
        let number = nested_number(entry.number, 1).unwrap_or_default();
        let found = done.get(&(client, number)).copied();
        demand(found == Some((1, entry.came)), PROPERTY, || {
            format!(
                "{} of {} in {} was told {:x}; in {}, {number} of {client} was done (times, reply) {found:x?}",
                entry.number, entry.client, caller.0, entry.came, callee.0
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::APPEND;
    use wire::Time;

    #[test]
    fn a_lost_a_repeated_and_a_wrong_effect_are_seen() {
        let (front, back, client) = (GroupId(1), GroupId(2), ClientId(3));
        let entry = |client, number, method, came| {
            let time = Time(0);
            Entry { client, number, time, random: 0, method, body: 0, filling: 0, came }
        };
        let effect = entry(nested_client(front, client), nested_number(9, 1).unwrap(), APPEND, 0);
        let Outcome::Ok(reply) = oracle::service::reply(&[effect], 1) else { panic!("it is ok") };
        let told = |came| [entry(client, 9, RELAY, came)];
        let right = came_of(&Ok(reply));
        let check = |came, effects: &[Entry]| finish((front, &told(came)), (back, effects));
        assert!(check(right, &[effect]).is_ok());
        assert!(check(right, &[]).is_err(), "lost");
        assert!(check(right, &[effect, effect]).is_err(), "repeated");
        assert!(check(right + 4, &[effect]).is_err(), "another reply");
        assert!(check(FAILED, &[effect]).is_ok(), "given up");
    }
}
