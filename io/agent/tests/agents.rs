//! An agent with real processes, sockets and files, and a book in memory. Ranks and agents are killed;
//! each rank ends with the result of an undisturbed run.

mod support;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use job::{Command, End, JobState, Jobs, RankState, Spec};
use rustix::process::Signal;
use steadfast_agent::images::{folder_of, log_of};
use steadfast_agent::local::Book;
use wire::rank::Every;

use support::{Running, delivered, example, finished, processes, signal, submit, wait};

fn spec(name: &str, turns: u64, pause_us: u64) -> Spec {
    let program = example("sums");
    Spec {
        name: name.into(),
        command: vec![program, turns.to_string(), pause_us.to_string()],
        ranks: 2,
        copies: 1,
        every: Every::Micros(10_000),
        ..Spec::default()
    }
}

/// The result of a rank of an undisturbed run.
fn expected(rank: u64, turns: u64) -> Vec<u8> {
    let mut sums = vec![0_u64; 1_000];
    for turn in 0..turns {
        for (place, sum) in (0_u64..).zip(&mut sums) {
            *sum = sum.wrapping_mul(3).wrapping_add(turn ^ place ^ rank);
        }
    }
    sums.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn check(book: &Book, folder: &Path, job: u64, turns: u64) {
    for rank in 0..2 {
        assert!(
            delivered(book, folder, job, rank, "sums") == expected(rank.into(), turns),
            "rank {rank}"
        );
        let log = fs::read_to_string(log_of(&folder.join("jobs"), job, rank)).unwrap();
        let lines = (0..turns).step_by(50).map(|turn| format!("turn {turn}\n"));
        let lines = lines.collect::<String>();
        assert_eq!(log, format!("rank {rank} of 2\n{lines}rank {rank} is done\n"));
    }
}

fn saved(jobs: &Jobs, job: u64, rank: u32, images: u64) -> Option<()> {
    (jobs.job(job)?.ranks[rank as usize].images.next() > images).then_some(())
}

#[test]
fn ranks_that_are_killed_go_on_from_their_images() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    let job = submit(&book, spec("killed", 800, 300));
    for round in 1..4 {
        // Each has come further than before.
        wait(&book, |jobs| saved(jobs, job, round % 2, u64::from(round) * 4));
        processes(folder.path())
            .get(&(round % 2))
            .into_iter()
            .for_each(|pid| signal(*pid, Signal::KILL));
    }
    finished(&book, job);
    check(&book, folder.path(), job, 800);
    let starts =
        wait(&book, |jobs| Some(jobs.job(job)?.ranks.iter().map(|it| it.start).sum::<u64>()));
    assert!(starts > 2, "some rank was started again");
    let recovered = wait(&book, |jobs| {
        let ranks = &jobs.job(job)?.ranks;
        ranks.iter().flat_map(|rank| &rank.recoveries).find(|it| it.moments.is_some()).cloned()
    });
    let moments = recovered.moments.unwrap();
    assert!(recovered.step > 0, "it did not begin anew");
    assert!(moments.begun <= moments.restored && moments.restored <= moments.computes);
    agent.stop();
}

#[test]
fn a_program_that_knows_nothing_of_agents_runs_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    let shell = |name: &str, script: &str| Spec {
        name: name.into(),
        command: ["sh", "-c", script].map(String::from).to_vec(),
        folder: folder.path().to_str().unwrap().into(),
        environment: vec![("GREETING".into(), "hello".into())],
        ranks: 1,
        copies: 1,
        ..Spec::default()
    };
    let once = submit(
        &book,
        shell(
            "once",
            "echo $GREETING $STEADFAST_JOB_RANK of $STEADFAST_JOB_RANKS; test -e there && exit 0; touch there; kill -9 $$",
        ),
    );
    finished(&book, once);
    let log = fs::read_to_string(log_of(&folder.path().join("jobs"), once, 0)).unwrap();
    assert_eq!(log, "hello 0 of 1\n", "its last start has printed anew");
    let never = submit(&book, shell("never", "exit 7"));
    let state = wait(&book, |jobs| {
        let state = jobs.job(never)?.state.clone();
        (state != JobState::Running).then_some(state)
    });
    assert_eq!(state, JobState::Failing(0, End::Failed(7)));
    let none = Spec { command: vec!["/no/such/program".into()], ..shell("none", "") };
    let none = submit(&book, none);
    let state = wait(&book, |jobs| {
        let state = jobs.job(none)?.state.clone();
        (state != JobState::Running).then_some(state)
    });
    let JobState::Failing(0, End::NotStarted(why)) = state else { panic!("{state:?}") };
    assert!(why.contains("/no/such/program") && why.contains("No such file"), "{why}");
    agent.stop();
}

#[test]
fn a_rank_that_stands_still_is_ended_and_goes_on_from_its_image() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    let stall = wire::Duration::from_secs(2);
    let job = submit(&book, Spec { stall, ranks: 1, ..spec("stands", 2_000, 1_000) });
    wait(&book, |jobs| saved(jobs, job, 0, 4));
    let pid = processes(folder.path())[&0];
    signal(pid, Signal::STOP);
    let why = wait(&book, |jobs| Some(jobs.job(job)?.ranks[0].recoveries.back()?.why.clone()));
    assert_eq!(why, job::Why::Ended(End::Stalled));
    finished(&book, job);
    assert!(delivered(&book, folder.path(), job, 0, "sums") == expected(0, 2_000));
    agent.stop();
}

#[test]
fn a_wish_for_a_checkpoint_waits_for_a_rank_that_still_starts() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    let spec = Spec { every: Every::Never, ..spec("early", 1_000_000, 300) };
    let job = submit(&book, spec);
    wait(&book, |jobs| {
        let mut ranks = jobs.job(job)?.ranks.iter();
        ranks.all(|rank| matches!(rank.state, RankState::At(_))).then_some(())
    });
    book.take(&Command::Save { job }).unwrap();
    for rank in 0..2 {
        wait(&book, |jobs| saved(jobs, job, rank, 1));
    }
    book.take(&Command::Kill { job }).unwrap();
    agent.stop();
}

#[test]
fn a_job_is_stopped_resumed_and_forgotten_with_its_images() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    let job = submit(&book, spec("stopped", 1_000, 300));
    wait(&book, |jobs| saved(jobs, job, 0, 2));
    book.take(&Command::Kill { job }).unwrap();
    let waits = |jobs: &Jobs| {
        let ranks = &jobs.job(job)?.ranks;
        ranks.iter().all(|rank| rank.state == RankState::Waiting).then_some(())
    };
    wait(&book, waits);
    book.take(&Command::Resume { job }).unwrap();
    finished(&book, job);
    check(&book, folder.path(), job, 1_000);
    book.take(&Command::Forget { job }).unwrap();
    let images = folder_of(&folder.path().join("jobs"), job, 0);
    // The agent is told, and removes them before it ends.
    let until = Instant::now() + Duration::from_secs(60);
    while images.exists() {
        assert!(Instant::now() < until, "its images stay");
        thread::yield_now();
    }
    agent.stop();
}
