//! Which seed finds which planted mistake is recorded: `steadfast-sim --bugs` runs them.
#![cfg(feature = "planted-bugs")]

use steadfast_sim::plants::{RECORD, all, recorded};

#[test]
fn every_mistake_has_a_recorded_seed_and_no_record_is_of_another() {
    let mistakes = all();
    let unrecorded: Vec<_> = mistakes.iter().filter(|(name, _)| recorded(name).is_none()).collect();
    assert!(
        unrecorded.is_empty(),
        "{unrecorded:?}: steadfast-sim --bugs --record proof/sim/planted.txt"
    );
    for line in RECORD.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        assert!(mistakes.iter().any(|(known, _)| known == name), "{line}: no such mistake");
    }
}
