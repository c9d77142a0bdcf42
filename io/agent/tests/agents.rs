//! An agent with real processes, sockets and files, and a book in memory. Ranks and agents are killed;
//! each rank ends with the result of an undisturbed run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use job::{Command, End, Host, JobState, Jobs, RankState, Spec};
use rank::RESULT;
use steadfast_agent::images::{folder_of, log_of, restore};
use steadfast_agent::local::Book;
use steadfast_agent::{AgentError, Options, Stop, run};
use wire::rank::Every;

/// Waits until this is so of the book.
fn wait<T>(book: &Book, so: impl Fn(&Jobs) -> Option<T>) -> T {
    book.wait(Duration::from_secs(60), so).expect("it comes to that")
}

fn submit(book: &Book, spec: Spec) -> u64 {
    book.take(&Command::Submit(spec)).unwrap().job.unwrap()
}

fn finished(book: &Book, job: u64) {
    wait(book, |jobs| (jobs.job(job).unwrap().state == JobState::Finished).then_some(()));
}

struct Running {
    stop: Stop,
    ended: JoinHandle<Result<(), AgentError>>,
}

impl Running {
    fn start(book: &Book, folder: &Path) -> Running {
        let host = Host { processors: 2, memory: 1 << 30, ..Host::default() };
        let options =
            Options { folder: folder.join("jobs"), runtime: folder.join("run"), host, port: None };
        let (begun, stop): (Sender<Stop>, _) = channel();
        let ways = book.clone();
        let ended = thread::spawn(move || {
            run(options, move || ways.clone(), move |stop| begun.send(stop).unwrap())
        });
        Running { stop: stop.recv().unwrap(), ended }
    }

    fn stop(self) {
        self.stop.stop();
        self.ended.join().unwrap().unwrap();
    }
}

/// The program of the example, which cargo builds with the tests.
fn sums() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/sums")
}

fn spec(name: &str, turns: u64, pause_us: u64) -> Spec {
    let program = sums().to_str().unwrap().to_owned();
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

/// The result that a rank has delivered.
fn delivered(book: &Book, folder: &Path, job: u64, rank: u32) -> Vec<u8> {
    let image = wait(book, |jobs| {
        let images = &jobs.job(job).unwrap().ranks[rank as usize].images;
        images.restorable().next().map(|chain| (chain[0].place, chain[0].root))
    });
    let folder = folder_of(&folder.join("jobs"), job, rank);
    let state = restore(&folder, image.0, image.1).unwrap();
    let mut begin = 0;
    for array in state.arrays {
        if array.name == format!("{RESULT}sums") {
            let mut bytes = vec![0; array.length as usize];
            std::os::unix::fs::FileExt::read_exact_at(&state.file, &mut bytes, begin).unwrap();
            return bytes;
        }
        begin += array.length.next_multiple_of(image::PAGE);
    }
    panic!("rank {rank} has delivered nothing")
}

fn check(book: &Book, folder: &Path, job: u64, turns: u64) {
    for rank in 0..2 {
        assert!(delivered(book, folder, job, rank) == expected(rank.into(), turns), "rank {rank}");
        let log = fs::read_to_string(log_of(&folder.join("jobs"), job, rank)).unwrap();
        let lines = (0..turns).step_by(50).map(|turn| format!("turn {turn}\n"));
        let lines = lines.collect::<String>();
        assert_eq!(log, format!("rank {rank} of 2\n{lines}rank {rank} is done\n"));
    }
}

/// The processes of ranks of this job, by its own token in their environments.
fn processes(folder: &Path) -> BTreeMap<u32, i32> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder.join("run")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let numbers: Vec<&str> = name.split('-').collect();
        let Some(text) = fs::read_to_string(&path).ok().filter(|_| numbers.len() == 4) else {
            continue;
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.len() == 4 {
            found.insert(u32::from_str_radix(numbers[2], 16).unwrap(), words[1].parse().unwrap());
        }
    }
    found
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    // It may have ended.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
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
        processes(folder.path()).get(&(round % 2)).into_iter().for_each(|pid| kill(*pid));
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
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let why = wait(&book, |jobs| Some(jobs.job(job)?.ranks[0].recoveries.back()?.why.clone()));
    assert_eq!(why, job::Why::Ended(End::Stalled));
    finished(&book, job);
    assert!(delivered(&book, folder.path(), job, 0) == expected(0, 2_000));
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
