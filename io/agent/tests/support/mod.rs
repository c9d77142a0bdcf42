//! An agent in this process, with a book in memory; its ranks are processes.
#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use job::{Command, Host, JobState, Jobs, Spec};
use rank::RESULT;
use rustix::process::{Pid, Signal, kill_process};
use steadfast_agent::images::{folder_of, restore};
use steadfast_agent::local::Book;
use steadfast_agent::{AgentError, Options, Stop, run};

/// Waits until this is so of the book.
pub fn wait<T>(book: &Book, so: impl Fn(&Jobs) -> Option<T>) -> T {
    book.wait(Duration::from_secs(60), so).expect("it comes to that")
}

pub fn submit(book: &Book, spec: Spec) -> u64 {
    book.take(&Command::Submit(spec)).unwrap().job.unwrap()
}

pub fn finished(book: &Book, job: u64) {
    wait(book, |jobs| (jobs.job(job).unwrap().state == JobState::Finished).then_some(()));
}

pub struct Running {
    stop: Stop,
    ended: JoinHandle<Result<(), AgentError>>,
}

impl Running {
    pub fn start(book: &Book, folder: &Path) -> Running {
        Running::start_at(book, folder, "run")
    }

    /// One with its sockets elsewhere: threads of an earlier one in this process have theirs still.
    pub fn start_at(book: &Book, folder: &Path, runtime: &str) -> Running {
        let host = Host { processors: 2, memory: 1 << 30, ..Host::default() };
        let (folder, runtime) = (folder.join("jobs"), folder.join(runtime));
        let options = Options { folder, runtime, host, port: None };
        let (begun, stop): (Sender<Stop>, _) = channel();
        let ways = book.clone();
        let ended = thread::spawn(move || {
            run(options, move || ways.clone(), move |stop| begun.send(stop).unwrap())
        });
        Running { stop: stop.recv().unwrap(), ended }
    }

    pub fn stop(self) {
        self.stop.stop();
        self.ended.join().unwrap().unwrap();
    }
}

/// A program that cargo builds with the tests: an example of this crate, or one of the library.
pub fn example(name: &str) -> String {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(program.exists(), "cargo build -p steadfast --examples, with the same profile");
    program.to_str().unwrap().to_owned()
}

/// The result that a rank has delivered.
pub fn delivered(book: &Book, folder: &Path, job: u64, rank: u32, name: &str) -> Vec<u8> {
    let image = wait(book, |jobs| {
        let images = &jobs.job(job).unwrap().ranks[rank as usize].images;
        images.restorable().next().map(|chain| (chain[0].place, chain[0].root))
    });
    let folder = folder_of(&folder.join("jobs"), job, rank);
    let state = restore(&folder, image.0, image.1).unwrap();
    let mut begin = 0;
    for array in state.arrays {
        if array.name == format!("{RESULT}{name}") {
            let mut bytes = vec![0; array.length as usize];
            std::os::unix::fs::FileExt::read_exact_at(&state.file, &mut bytes, begin).unwrap();
            return bytes;
        }
        begin += array.length.next_multiple_of(image::PAGE);
    }
    panic!("rank {rank} has not delivered {name}")
}

/// The processes of ranks of this job, by its own token in their environments.
pub fn processes(folder: &Path) -> BTreeMap<u32, i32> {
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

pub fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).unwrap();
    // It may have ended.
    let _ = kill_process(pid, signal);
}
