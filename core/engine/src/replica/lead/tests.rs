//! The evidence against calls.

use alloc::vec;

use wire::Incarnation;

use super::*;

fn member(node: u32) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(1) }
}

/// A follower's view of a group of three, whose first two services die of its first call: the
/// second one with so many given.
fn two_deaths(given: u64) -> Verdict {
    let all = [1, 2, 3].map(member);
    let died = |given| Died { executed: 0, given, ahead: Vec::new() };
    let mut lead = Lead::default();
    lead.view(all[2], &all, None);
    let arrived = lead.arrive();
    lead.give(arrived);
    lead.die(all[0], died(1));
    lead.view(all[2], &all[1..], Some(arrived));
    let deaths = vec![NodeId(1)];
    let trial = Trial { node: NodeId(2), deaths, answered: false, beside: false };
    lead.progress(0, Some(trial), Some(all[1]), 5);
    lead.die(all[1], died(given));
    lead.view(all[2], &all[2..], Some(arrived));
    lead.verdict(1, arrived, 0, Planted::default())
}

#[test]
fn who_dies_of_what_it_tries_is_held_against_the_call() {
    let Verdict::Suspect(blame) = two_deaths(1) else { panic!("two died") };
    assert_eq!(blame.deaths, [NodeId(1), NodeId(2)]);
}

/// Programs that are killed at once: the second is to try the call, and was dead already.
#[test]
fn who_dies_before_it_is_given_what_it_is_to_try_has_not_died_of_it() {
    let Verdict::Suspect(blame) = two_deaths(0) else { panic!("one died") };
    assert_eq!(blame.deaths, [NodeId(1)]);
}

/// The simulator's world `poison`, seed 1871: a backup wanted to try a call for which its client
/// had come, and heard late that two had died of it by then.
#[test]
fn nobody_tries_what_two_have_died_of_meanwhile() {
    let all = [1, 2, 3].map(member);
    let died = Died { executed: 0, given: 1, ahead: Vec::new() };
    let mut lead = Lead::default();
    lead.view(all[2], &all, None);
    let arrived = lead.arrive();
    lead.give(arrived);
    assert!(lead.may_take_over(1, arrived, false));
    lead.speaks();
    for gone in 0..2 {
        lead.die(all[gone], died.clone());
        lead.view(all[2], &all[gone + 1..], Some(arrived));
    }
    let trial = Trial { node: NodeId(3), deaths: vec![], answered: false, beside: false };
    lead.progress(0, Some(trial), Some(all[2]), 5);
    lead.held();
    let verdict = lead.verdict(1, arrived, 0, Planted::default());
    let Verdict::Suspect(blame) = verdict else { panic!("{verdict:?}") };
    assert_eq!(blame.deaths, [NodeId(1), NodeId(2)]);
}

/// The simulator's world `poison`, seed 3934: a leader left with a call that it went on to execute,
/// and answered. Another wanted to try that call before it knew, and died of it; the third one
/// condemned it.
#[test]
fn a_leader_that_left_may_have_answered_what_others_died_of() {
    let all = [1, 2, 3].map(member);
    let mut lead = Lead::default();
    lead.view(all[2], &all, None);
    let arrived = lead.arrive();
    lead.give(arrived);
    lead.part(all[0]);
    lead.view(all[2], &all[1..], Some(arrived));
    let trial = Trial { node: NodeId(2), deaths: vec![], answered: false, beside: false };
    lead.progress(0, Some(trial), Some(all[1]), 5);
    lead.die(all[1], Died { executed: 0, given: 1, ahead: Vec::new() });
    lead.view(all[2], &all[2..], Some(arrived));
    let verdict = lead.verdict(1, arrived, 0, Planted::default());
    let Verdict::Suspect(blame) = verdict else { panic!("{verdict:?}") };
    assert_eq!((blame.deaths, blame.answered), (vec![NodeId(2)], true));
}

#[test]
fn calls_without_a_place_are_condemned_by_two_deaths_until_they_have_one() {
    let died = Died { executed: 0, given: 0, ahead: vec![(ClientId(7), 1)] };
    let mut lead = Lead::default();
    lead.die(member(1), died.clone());
    assert_eq!(lead.condemned_ahead((ClientId(7), 1)), None);
    lead.die(member(2), died);
    assert_eq!(lead.condemned_ahead((ClientId(7), 1)), Some(&[NodeId(1), NodeId(2)][..]));
    assert_eq!(lead.condemned_ahead((ClientId(7), 2)), None);
    lead.settle_ahead((ClientId(7), 1));
    assert_eq!(lead.condemned_ahead((ClientId(7), 1)), None);
    let both = Died { ahead: vec![(ClientId(7), 2), (ClientId(8), 1)], ..Died::default() };
    (1..=2).for_each(|id| lead.die(member(id), both.clone()));
    assert_eq!(lead.condemned_ahead((ClientId(7), 2)), None, "it may be the other's");
}

/// Simulator seed 94545: a backup tried a call, for its leader was silent, and hung. The next
/// leader ordered that it tries the call, which nobody took for a trial beside the other, so it did
/// so again as soon as that was held.
#[test]
fn a_leader_waits_for_who_tries_a_call_already() {
    let (old, me, other) = (member(1), member(2), member(3));
    let mut lead = Lead::default();
    lead.view(me, &[old, me, other], None);
    let arrived = lead.arrive();
    let number = lead.give(arrived);
    let trial = Trial { node: other.node, deaths: vec![], answered: false, beside: false };
    lead.progress(0, Some(trial), Some(other), 5);
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

/// The simulator's world `poison`, seed 701430: a leader left while it tried a call of which another
/// had died. The others gave its trial up, so its answer must not leave before they know of it.
#[test]
fn who_leaves_in_a_trial_owes_its_word_before_it_answers() {
    let all = [1, 2, 3].map(member);
    let mut lead = Lead::default();
    lead.view(all[0], &all, None);
    let arrived = lead.arrive();
    lead.give(arrived);
    let deaths = vec![NodeId(3)];
    let trial = Trial { node: NodeId(1), deaths, answered: false, beside: false };
    lead.progress(0, Some(trial), Some(all[0]), 5);
    lead.view(all[0], &all[1..2], Some(arrived));
    assert!(!lead.tries(1), "its trial is given up");
    assert!(lead.owes_word_of(1));
    lead.prove(1, Some(6));
    assert!(!lead.owes_word_of(1), "all know that it was executed");
}

/// A replica joined a cold passive group while a call was tried. It led next, and its service was
/// the third to die.
#[test]
fn who_gets_a_log_knows_which_calls_may_kill() {
    let all = [1, 2, 3].map(member);
    let mut donor = Lead::default();
    donor.view(all[1], &all[..2], None);
    for _ in 0..2 {
        let arrived = donor.arrive();
        donor.give(arrived);
    }
    donor.die(member(4), Died { given: 2, ..Died::default() });
    let tried = Trial { node: NodeId(1), deaths: vec![NodeId(4)], answered: false, beside: false };
    donor.progress(0, Some(tried), Some(all[0]), 5);
    let mut joiner = Lead::default();
    joiner.view(all[2], &all, None);
    joiner.blame_again(donor.blamed(), false);
    let arrived = [0; 2].map(|_| {
        let arrived = joiner.arrive();
        joiner.give(arrived);
        arrived
    });
    joiner.view(all[2], &all[1..], Some(arrived[0]));
    let blame = |number: u64| {
        let arrived = arrived[number as usize - 1];
        joiner.suspects.blame(number, arrived).map(|blame| blame.deaths.clone())
    };
    assert_eq!(blame(1), Some(vec![NodeId(4), NodeId(1)]), "and the one that tried it");
    assert_eq!(blame(2), Some(vec![NodeId(4)]));
}
