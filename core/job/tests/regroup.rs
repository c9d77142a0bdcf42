//! Ranks that all go back, because one of them cannot go on with what it and others did.

use image::{Place, Root};
use steadfast_job::{
    Command, End, Host, JobState, Jobs, RankState, Refusal, Rollback, Spec, Void, Why,
};
use wire::rank::{Counts, Every};
use wire::{Incarnation, Member, NodeId, Time};

const NOW: Time = Time(1);
const NODE: Member = Member { node: NodeId(1), incarnation: Incarnation(1) };

fn spec(every: Every) -> Spec {
    let (name, command) = ("pair".into(), vec!["pair".into()]);
    Spec { name, command, ranks: 2, copies: 1, every, recovery: Rollback::Group, ..Spec::default() }
}

/// A job of two ranks that run.
fn begun() -> (Jobs, u64) {
    begun_with(1)
}

fn begun_with(copies: u8) -> (Jobs, u64) {
    let mut jobs = Jobs::default();
    let submit = Command::Submit(Spec { copies, ..spec(Every::Turns(5)) });
    let job = jobs.take(NOW, &submit).unwrap().job.unwrap();
    jobs.take(NOW, &Command::Introduce { node: NODE, host: Host::default() }).unwrap();
    for rank in 0..2 {
        jobs.take(NOW, &Command::Start { job, rank, start: 1, node: NODE }).unwrap();
    }
    (jobs, job)
}

/// A rank saves. It has sent so many messages to the other one, and taken so many.
fn save(jobs: &mut Jobs, job: u64, rank: u32, state: (u64, u64, u64)) {
    save_as(jobs, job, (rank, 1), state);
}

/// The same, by this start.
fn save_as(
    jobs: &mut Jobs,
    job: u64,
    (rank, start): (u32, u64),
    (generation, sent, taken): (u64, u64, u64),
) {
    let place = Place { job, rank, start, generation };
    let other = Counts { first: 1, sent, below: taken, taken, start: 1, ..Counts::NONE };
    let mut counts = vec![Counts::NONE; 2];
    counts[1 - rank as usize] = other;
    let root: Root = [generation as u8; 32];
    let (bytes, step, parent, holder) = (9, generation, None, NODE);
    let talks = true;
    let commit = Command::Commit { place, root, bytes, step, parent, holder, talks, counts };
    jobs.take(NOW, &commit).unwrap();
}

fn diverge(jobs: &mut Jobs, job: u64, rank: u32, start: u64) {
    let end = End::Diverged("another message".into());
    jobs.take(NOW, &Command::Ended { job, rank, start, end, at: NOW }).unwrap();
}

/// The state from which each rank goes on.
fn from(jobs: &Jobs, job: u64) -> Vec<Option<u64>> {
    let ranks = &jobs.job(job).unwrap().ranks;
    let newest = |rank: &steadfast_job::Rank| {
        assert_eq!(rank.state, RankState::Waiting);
        let newest = rank.images.restorable().next();
        newest.map(|state| state[0].place.generation)
    };
    ranks.iter().map(newest).collect()
}

#[test]
fn all_go_back_to_the_newest_states_that_fit() {
    let (mut jobs, job) = begun();
    save(&mut jobs, job, 0, (1, 5, 5));
    save(&mut jobs, job, 1, (1, 5, 5));
    save(&mut jobs, job, 0, (2, 10, 5));
    // It has taken what rank 0 has sent since.
    save(&mut jobs, job, 1, (2, 12, 12));
    diverge(&mut jobs, job, 0, 1);
    assert_eq!(from(&jobs, job), [Some(2), Some(1)]);
    let ranks = &jobs.job(job).unwrap().ranks;
    assert_eq!((ranks[0].since, ranks[1].since), (2, 2));
    assert_eq!(ranks[1].recoveries.back().unwrap().why, Why::Regrouped);
    jobs.take(NOW, &Command::Start { job, rank: 1, start: 2, node: NODE }).unwrap();
    let task = &jobs.assignment(NODE).tasks[0];
    assert!(task.regrouped && task.from.is_some_and(|(place, _)| place.generation == 1));
    assert_eq!(jobs.assignment(NODE).since, [(job, vec![2, 2])]);
}

/// Rank 0's newer state is at one node of two, and goes with it: the states before are still there.
#[test]
fn states_without_all_their_copies_do_not_let_others_go() {
    let (mut jobs, job) = begun_with(2);
    let other = Member { node: NodeId(2), incarnation: Incarnation(1) };
    jobs.take(NOW, &Command::Introduce { node: other, host: Host::default() }).unwrap();
    for generation in 1..=4 {
        for rank in 0..2 {
            save(&mut jobs, job, rank, (generation, 5 * generation, 5 * generation));
            if rank == 1 || generation == 1 {
                let place = Place { job, rank, start: 1, generation };
                let root = [generation as u8; 32];
                jobs.take(NOW, &Command::Held { place, root, holder: other }).unwrap();
            }
        }
    }
    let oldest = |rank: usize| jobs.job(job).unwrap().ranks[rank].images.oldest();
    assert_eq!((oldest(0), oldest(1)), (1, 1));
    jobs.take(NOW, &Command::Gone { node: NODE }).unwrap();
    for rank in 0..2 {
        jobs.take(NOW, &Command::Start { job, rank, start: 2, node: other }).unwrap();
    }
    let end = End::Diverged("others".into());
    jobs.take(NOW, &Command::Ended { job, rank: 1, start: 2, end, at: NOW }).unwrap();
    assert_eq!(from(&jobs, job), [Some(1), Some(1)]);
}

#[test]
fn without_states_that_fit_all_begin_anew_if_a_user_says_so() {
    let (mut jobs, job) = begun();
    save(&mut jobs, job, 1, (1, 0, 7));
    diverge(&mut jobs, job, 1, 1);
    let state = &jobs.job(job).unwrap().state;
    assert!(matches!(state, JobState::Failing(1, End::Diverged(_))), "{state:?}");
    jobs.take(NOW, &Command::Resume { job }).unwrap();
    assert_eq!(from(&jobs, job), [None, None]);
    for rank in 0..2 {
        jobs.take(NOW, &Command::Start { job, rank, start: 2, node: NODE }).unwrap();
    }
    assert!(jobs.assignment(NODE).tasks.iter().all(|task| task.from.is_none()));
}

#[test]
fn a_program_that_diverges_again_and_again_is_given_up() {
    let (mut jobs, job) = begun();
    for start in 1.. {
        diverge(&mut jobs, job, 0, start);
        if jobs.job(job).unwrap().state != JobState::Running {
            assert!(matches!(
                &jobs.job(job).unwrap().state,
                JobState::Failing(0, End::Diverged(_))
            ));
            break;
        }
        assert!(start < 100, "it goes on for ever");
        for rank in 0..2 {
            let start = start + 1;
            jobs.take(NOW, &Command::Start { job, rank, start, node: NODE }).unwrap();
        }
    }
}

#[test]
fn ranks_that_all_go_back_save_at_the_same_turns() {
    let mut jobs = Jobs::default();
    let refused = jobs.take(NOW, &Command::Submit(spec(Every::Auto)));
    assert_eq!(refused, Err(Void::Refused(Refusal::Group)));
}

/// Rank 1 has taken what no state of rank 0 has sent; ranks 2 and 3 have states that fit.
#[test]
fn nobody_begins_anew_beside_others_who_do_not_unless_a_user_says_so() {
    let mut jobs = Jobs::default();
    let submit = Command::Submit(Spec { ranks: 3, ..spec(Every::Turns(5)) });
    let job = jobs.take(NOW, &submit).unwrap().job.unwrap();
    jobs.take(NOW, &Command::Introduce { node: NODE, host: Host::default() }).unwrap();
    for rank in 0..3 {
        jobs.take(NOW, &Command::Start { job, rank, start: 1, node: NODE }).unwrap();
    }
    let place = Place { job, rank: 2, start: 1, generation: 1 };
    let (root, parent, counts) = ([1; 32], None, Vec::new());
    let (bytes, step, holder, talks) = (9, 1, NODE, false);
    let commit = Command::Commit { place, root, bytes, step, parent, holder, talks, counts };
    jobs.take(NOW, &commit).unwrap();
    save(&mut jobs, job, 1, (1, 0, 7));
    diverge(&mut jobs, job, 1, 1);
    let state = &jobs.job(job).unwrap().state;
    assert!(matches!(state, JobState::Failing(1, End::Diverged(_))), "{state:?}");
    jobs.take(NOW, &Command::Resume { job }).unwrap();
    let ranks = &jobs.job(job).unwrap().ranks;
    let newest = |rank: usize| ranks[rank].images.restorable().next().map(|it| it[0].step);
    assert_eq!([newest(0), newest(1), newest(2)], [None, None, Some(1)]);
}

#[test]
fn states_that_fit_are_kept_until_newer_ones_do() {
    let (mut jobs, job) = begun();
    save(&mut jobs, job, 0, (1, 5, 5));
    save(&mut jobs, job, 1, (1, 5, 5));
    let kept = |jobs: &Jobs| {
        let images = &jobs.job(job).unwrap().ranks[0].images;
        let spare: Vec<Place> = images.spare().collect();
        let there = images.generations().map(|it| it.place).filter(|it| !spare.contains(it));
        (images.oldest(), there.map(|it| it.generation).collect::<Vec<_>>())
    };
    // Rank 0 is far ahead: what it has sent, the other has yet to take.
    for generation in 2..=4 {
        save(&mut jobs, job, 0, (generation, 5 * generation, 5));
    }
    let (_, fits) = kept(&jobs);
    assert_eq!(fits, [3, 4], "messages that were not taken yet are in the log of who sent them");
    save(&mut jobs, job, 1, (2, 20, 20));
    // It has taken what was sent later than it has by now.
    for generation in 5..=7 {
        save(&mut jobs, job, 0, (generation, 5 * generation, 20 + generation));
    }
    assert_eq!(kept(&jobs), (4, vec![4, 5, 6, 7]), "the states that fit are older");
    save(&mut jobs, job, 1, (3, 40, 35));
    assert_eq!(kept(&jobs), (6, vec![6, 7]));
}

/// Rank 0 sends others than before in its second start, saves, and rank 1 sees it only then.
#[test]
fn states_of_a_start_that_diverged_are_not_gone_back_to() {
    let (mut jobs, job) = begun();
    save(&mut jobs, job, 0, (1, 5, 0));
    save(&mut jobs, job, 1, (1, 0, 4));
    save(&mut jobs, job, 1, (2, 0, 8));
    let end = End::Killed(9);
    jobs.take(NOW, &Command::Ended { job, rank: 0, start: 1, end, at: NOW }).unwrap();
    jobs.take(NOW, &Command::Start { job, rank: 0, start: 2, node: NODE }).unwrap();
    save_as(&mut jobs, job, (0, 2), (2, 9, 0));
    let end = End::Diverged("another message".into());
    jobs.take(NOW, &Command::Ended { job, rank: 1, start: 1, end: end.clone(), at: NOW }).unwrap();
    assert_eq!(from(&jobs, job), [Some(1), Some(1)], "rank 1 had taken 8, and 6 are others now");
}
