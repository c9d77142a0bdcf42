//! Who may execute a call that others may have died of.

use alloc::vec;

use wire::Incarnation;

use super::*;

fn member(node: u32) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(1) }
}

/// Simulator seed 94545: a backup tried a call, for its leader was silent, and hung. The next leader ordered that it tries the call,
/// which nobody took for a trial beside the other, so it did so again as soon as that was held.
#[test]
fn a_leader_waits_for_who_tries_a_call_already() {
    let (old, me, other) = (member(1), member(2), member(3));
    let mut lead = Lead::default();
    lead.view(me, &[old, me, other], None);
    let arrived = lead.arrive();
    let number = lead.give(arrived);
    let trial = Trial { node: other.node, deaths: vec![], answered: false, beside: false };
    lead.progress(0, Some(trial), false, 5);
    lead.view(me, &[me, other], Some(arrived));
    assert!(lead.leads());
    let verdict = |lead: &Lead| lead.verdict(number, arrived, 0, Planted::default());
    assert_eq!(verdict(&lead), Verdict::Wait);
    assert!(!lead.may_take_over(number, arrived, false));
    assert!(lead.may_take_over(number, arrived, true), "it has been silent for long");
    assert_eq!(lead.blame_of_silence(number, arrived, true).deaths, [old.node]);
    lead.view(me, &[me], Some(arrived));
    let Verdict::Suspect(blame) = verdict(&lead) else { panic!("{lead:?}") };
    assert_eq!(blame.deaths, [old.node, other.node]);
}
