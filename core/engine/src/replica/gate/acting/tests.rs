//! Calls that wait at a voting replica's gate, and the answers of tried ones.

use alloc::vec;
use alloc::vec::Vec;

use wire::ordered::{Died, Progress, Style, Trial};
use wire::{GroupId, Incarnation, Member, NodeId, Time};

use crate::api::{Executed, ServiceOutcome};
use crate::bug::Planted;
use crate::replica::tests::{request, tickets};
use crate::replica::{Effect, Replica, voting};
use crate::tally::Verdict;

fn member(node: u32) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(1) }
}

/// A voting replica at node 1, behind the leader at node 2, with the group's first call.
fn follower() -> (Replica, Vec<Effect>) {
    let mut replica = Replica::new(GroupId(1), Style::Voting, false, Planted::default());
    let mut effects = Vec::new();
    replica.led_by(member(1), &[member(2), member(1)], &mut effects);
    replica.begin(&mut effects);
    replica.ballot_delivered(true);
    replica.deliver(Time::ZERO, request(1), false, &mut effects);
    (replica, effects)
}

fn says(executed: u64, trial: Option<Trial>) -> Progress {
    Progress { group: GroupId(1), executed, trial }
}

/// Seed 51731 of the world of disks: votes settled a call that was tried, and disks keep no votes.
/// After a loss of power the trial stood there as a death, and the answered call was condemned.
#[test]
fn a_tried_call_is_answered_when_disks_have_its_progress_whatever_votes_say() {
    let (mut replica, mut effects) = follower();
    replica.member_died(member(2), Died { given: 1, ..Died::default() }, &mut effects);
    replica.led_by(member(1), &[member(1)], &mut effects);
    let deaths = vec![NodeId(2)];
    let trial = Trial { node: NodeId(1), deaths, answered: false, beside: false };
    replica.progress(says(0, Some(trial)), member(1), 5, &mut effects);
    effects.clear();
    replica.held(&mut effects);
    let outcome = ServiceOutcome::Ok("done".into());
    let agreed = Verdict::Agreed(voting::digest(&outcome));
    replica.answered(tickets(&effects)[0], Executed::Reply(outcome), &mut effects);
    replica.prove_by_vote(1, 8, &mut effects);
    replica.settled(1, agreed, &mut effects);
    let answers = |effect: &Effect| matches!(effect, Effect::Answer { .. });
    assert!(!effects.iter().any(answers), "{effects:?}");
    replica.progress(says(1, None), member(1), 9, &mut effects);
    let waits = |effect: &Effect| matches!(effect, Effect::Settled { sequence: 9, .. });
    assert!(effects.iter().any(waits) && effects.iter().any(answers), "{effects:?}");
}

/// Seed 60051277: the leader's service hung with a call when the group's leader changed, and the
/// next one waited for the former one for ever.
#[test]
fn a_leader_takes_over_from_a_former_one_that_is_silent() {
    let (mut replica, mut effects) = follower();
    replica.led_by(member(1), &[member(1), member(2)], &mut effects);
    assert_eq!(tickets(&effects), [], "the former one executes it first");
    assert_eq!(replica.awaited(), Some(1));
    effects.clear();
    replica.take_over(false, &mut effects);
    assert!(matches!(effects[..], [Effect::Suspect { number: 1, .. }]), "{effects:?}");
}

/// Seed 4055 of the world of disks: a leader had asked that nobody executes a call, and that was
/// lost with its ring. Its client asked no more, and the leader waited for its own trial for ever.
#[test]
fn a_leader_tries_what_it_had_given_up() {
    let (mut replica, mut effects) = follower();
    replica.member_died(member(2), Died { given: 1, ..Died::default() }, &mut effects);
    replica.led_by(member(1), &[member(1)], &mut effects);
    replica.gives_up(1, true);
    let deaths = vec![NodeId(2)];
    let trial = Trial { node: NodeId(1), deaths, answered: true, beside: false };
    let tries = |replica: &mut Replica| {
        let mut effects = Vec::new();
        replica.progress(says(0, Some(trial.clone())), member(1), 5, &mut effects);
        replica.held(&mut effects);
        !tickets(&effects).is_empty()
    };
    assert!(!tries(&mut replica), "it was handed in before");
    replica.gives_up(1, false);
    assert!(tries(&mut replica));
}
