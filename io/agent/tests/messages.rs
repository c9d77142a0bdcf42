//! Ranks in Rust that send each other messages, under a real agent. They are killed by a seed, and end
//! with the results of an undisturbed run, bit by bit.

mod support;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use job::{Command, End, JobState, Jobs, Log, RankState, Spec, Why};
use rustix::process::Signal;
use steadfast_agent::images::folder_of;
use steadfast_agent::local::Book;
use wire::Random;
use wire::rank::Every;

use support::{Running, delivered, example, finished, processes, signal, submit, wait};

fn spec(name: &str, ranks: u32, command: &[&str]) -> Spec {
    let program = [example(command[0])].into_iter();
    Spec {
        name: name.into(),
        command: program.chain(command[1..].iter().map(|it| (*it).into())).collect(),
        ranks,
        copies: 1,
        every: Every::Micros(10_000),
        ..Spec::default()
    }
}

/// Images that the ranks of a job have saved, together; `None`: it has finished.
fn saved(jobs: &Jobs, job: u64) -> Option<u64> {
    let job = jobs.job(job).unwrap();
    assert!(!matches!(job.state, JobState::Failing(..)), "{:?}", job.state);
    let images = job.ranks.iter().map(|rank| rank.images.next()).sum();
    (job.state != JobState::Finished).then_some(images)
}

/// Kills some ranks, each time that more was saved, until the job has finished: how often.
fn disturb(book: &Book, folder: &Path, (job, ranks): (u64, u32), seed: u64) -> u32 {
    let (mut random, mut before, mut killed) = (Random::new(seed), 0, 0);
    while killed < 12 {
        let now = wait(book, |jobs| match saved(jobs, job) {
            Some(images) if images <= before + u64::from(ranks) => None,
            now => Some(now),
        });
        let Some(now) = now else { break };
        before = now;
        // Sometimes several at once.
        for _ in 0..1 + random.below(3) / 2 {
            let victim = random.below(u64::from(ranks)) as u32;
            if let Some(pid) = processes(folder).get(&victim) {
                signal(*pid, Signal::KILL);
                killed += 1;
            }
        }
    }
    finished(book, job);
    killed
}

/// The results of these names of all ranks.
fn results(book: &Book, folder: &Path, (job, ranks): (u64, u32), names: &[&str]) -> Vec<Vec<u8>> {
    let of = |rank| names.iter().map(move |name| delivered(book, folder, job, rank, name));
    (0..ranks).flat_map(of).collect()
}

/// Runs a program undisturbed, and with kills, and compares the results.
fn check(ranks: u32, command: &[&str], names: &[&str], seeds: &[u64]) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    let undisturbed = submit(&book, spec("undisturbed", ranks, command));
    finished(&book, undisturbed);
    let expected = results(&book, folder.path(), (undisturbed, ranks), names);
    for seed in seeds {
        let job = submit(&book, spec(&format!("seed-{seed}"), ranks, command));
        let killed = disturb(&book, folder.path(), (job, ranks), *seed);
        let starts =
            |jobs: &Jobs| Some(jobs.job(job)?.ranks.iter().map(|rank| rank.start).sum::<u64>());
        let starts = wait(&book, starts);
        assert!(killed > 2 && starts > u64::from(ranks) + 2, "seed {seed}: {killed}, {starts}");
        let results = results(&book, folder.path(), (job, ranks), names);
        assert!(results == expected, "seed {seed}: other results");
    }
    agent.stop();
    expected
}

#[test]
fn heat_is_the_same_bit_by_bit_whichever_ranks_are_killed() {
    let command = ["heat", "6000", "1000"];
    let four = check(4, &command, &["cells", "residual"], &[1, 2]);
    let one = check(1, &command, &["cells"], &[]);
    let cells: Vec<u8> = four.iter().step_by(2).flatten().copied().collect();
    assert!(cells == one[0], "the rod is the same, in one part or in four");
    assert!(four.iter().skip(1).step_by(2).all(|residual| *residual == four[1]));
}

#[test]
fn each_kind_of_message_comes_once_whichever_ranks_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    for (seed, log) in (1..).zip([Log::Sender, Log::Optimistic(3), Log::Pessimistic]) {
        let spec = spec(&format!("seed-{seed}"), 5, &["messages", "500"]);
        let job = submit(&book, Spec { log, ..spec });
        assert!(disturb(&book, folder.path(), (job, 5), seed) > 2, "seed {seed}");
        // All have heard the same of who came first.
        let sums = results(&book, folder.path(), (job, 5), &["sum"]);
        assert!(sums.iter().all(|sum| *sum == sums[0]), "seed {seed}: {sums:?}");
    }
    agent.stop();
}

#[test]
fn a_rank_whose_newest_image_has_rotted_goes_back_further_and_gets_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let (book, command) = (Book::default(), ["heat", "6000", "1000"]);
    let agent = Running::start(&book, folder.path());
    let undisturbed = submit(&book, spec("undisturbed", 3, &command));
    finished(&book, undisturbed);
    let names = ["cells", "residual"];
    let expected = results(&book, folder.path(), (undisturbed, 3), &names);
    let job = submit(&book, spec("rots", 3, &command));
    wait(&book, |jobs| {
        let mut ranks = jobs.job(job)?.ranks.iter();
        ranks.all(|rank| rank.images.restorable().count() > 1).then_some(())
    });
    book.take(&Command::Kill { job }).unwrap();
    let (newest, start) = wait(&book, |jobs| {
        let ranks = &jobs.job(job)?.ranks;
        let ended = ranks.iter().all(|rank| !matches!(rank.state, RankState::At(_)));
        let place = ranks[1].images.restorable().next()?[0].place;
        ended.then_some((place, ranks[1].start))
    });
    let images = folder_of(&folder.path().join("jobs"), job, 1);
    let name = format!("{:016x}-{:016x}.data", newest.generation, newest.start);
    let file = File::options().write(true).open(images.join(name)).unwrap();
    file.write_all_at(&vec![0xa5; file.metadata().unwrap().len() as usize], 0).unwrap();
    book.take(&Command::Resume { job }).unwrap();
    finished(&book, job);
    assert!(results(&book, folder.path(), (job, 3), &names) == expected, "other results");
    let whys = wait(&book, |jobs| {
        let ranks = jobs.job(job)?.ranks.iter();
        Some(ranks.map(|rank| rank.recoveries.iter().map(|it| it.why.clone()).collect()).collect())
    });
    let whys: Vec<Vec<Why>> = whys;
    assert!(whys[1].contains(&Why::Ended(End::Damaged)), "after start {start}: {whys:?}");
    agent.stop();
}

/// The host is lost with both ranks and all memory.
#[test]
fn a_receiver_has_what_was_kept_before_its_lost_sender_sends_again() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let spec = Spec {
        log: Log::Pessimistic,
        every: Every::Never,
        ..spec("heard", 2, &["heard", folder.path().to_str().unwrap()])
    };
    let agent = Running::start(&book, folder.path());
    let job = submit(&book, spec);
    wait(&book, |jobs| (jobs.job(job)?.ranks[1].progress.step.step > 0).then_some(()));
    book.take(&Command::Kill { job }).unwrap();
    wait(&book, |jobs| {
        let mut ranks = jobs.job(job)?.ranks.iter();
        ranks.all(|rank| !matches!(rank.state, RankState::At(_))).then_some(())
    });
    agent.stop();
    // The sender waits until its receiver has all of the first start's messages.
    let agent = Running::start_at(&book, folder.path(), "later");
    book.take(&Command::Resume { job }).unwrap();
    finished(&book, job);
    agent.stop();
}

#[test]
fn a_rank_that_stands_still_is_ended_though_it_has_waited_for_messages() {
    let folder = tempfile::tempdir().unwrap();
    let book = Book::default();
    let agent = Running::start(&book, folder.path());
    let stall = wire::Duration::from_secs(1);
    let long = spec("stands", 4, &["heat", "100000000", "1000"]);
    let job = submit(&book, Spec { stall, every: Every::Never, ..long });
    wait(&book, |jobs| {
        let mut ranks = jobs.job(job)?.ranks.iter();
        ranks.all(|rank| rank.progress.step.step > 1_000).then_some(())
    });
    // Most of them wait for a neighbour at any time.
    for pid in processes(folder.path()).values() {
        signal(*pid, Signal::STOP);
    }
    for rank in 0..4 {
        let ended = |jobs: &Jobs| jobs.job(job)?.ranks[rank].recoveries.back().cloned();
        assert_eq!(wait(&book, ended).why, Why::Ended(End::Stalled), "rank {rank}");
    }
    book.take(&Command::Kill { job }).unwrap();
    agent.stop();
}
