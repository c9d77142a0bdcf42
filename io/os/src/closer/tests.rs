use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{kill_process_group, test_kill_process};

use super::*;

const LIFE: &str = "STEADFAST_TEST_CLOSER";

/// Not a test of its own: the process that dies. Its life: the megabytes that it touches, whether it
/// has a closer, and how it ends.
#[test]
fn child() {
    let Ok(life) = std::env::var(LIFE) else { return };
    let words: Vec<&str> = life.split(' ').collect();
    let memory = vec![1_u8; words[0].parse::<usize>().unwrap() << 20];
    if words[1] == "watched" {
        if let Grant::Refused(why) = begin() {
            return println!("\nrefused {why}");
        }
        assert_eq!(begin(), Grant::InForce, "one is enough");
    }
    println!("\nready {}", status().process);
    // Its end waits for words: the parent's end of this socket tells when it has closed.
    for line in BufReader::new(std::io::stdin()).lines().map_while(Result::ok) {
        match line.as_str() {
            "exit" => std::process::exit(7),
            "exec" => panic!("{}", Command::new("sleep").arg("60").exec()),
            // Another closer takes over from one that is killed or stopped.
            "killed" | "stopped" => {
                let signal = if line == "killed" { Signal::KILL } else { Signal::STOP };
                let struck = status().process;
                kill_process(pid(struck), signal).unwrap();
                while [0, struck].contains(&status().process) {
                    thread::yield_now();
                }
                println!("\nready {} {}", status().process, status().lost);
            }
            other => panic!("{other}"),
        }
    }
    drop(memory);
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

struct Watched {
    child: Child,
    /// The other end of its standard input.
    end: UnixStream,
    lines: BufReader<std::process::ChildStdout>,
    closer: u32,
}

impl Watched {
    fn start(life: &str) -> Option<Watched> {
        let (end, input) = UnixStream::pair().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["closer::tests::child", "--exact", "--nocapture", "--test-threads=1"])
            .env(LIFE, life)
            .stdin(Stdio::from(OwnedFd::from(input)))
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut watched = Watched { child, end, lines, closer: 0 };
        let words = watched.ready()?;
        watched.closer = words[0];
        Some(watched)
    }

    /// The numbers of its next report; `None`: this system permits no closer.
    fn ready(&mut self) -> Option<Vec<u32>> {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the child has ended");
            if let Some(why) = line.strip_prefix("refused ") {
                assert!(why.contains("Linux 5.9"), "{why}");
                eprintln!("no closer here: {why}");
                return None;
            }
            if let Some(numbers) = line.strip_prefix("ready ") {
                return Some(numbers.split_whitespace().map(|it| it.parse().unwrap()).collect());
            }
        }
    }

    fn say(&mut self, word: &str) {
        writeln!(self.end, "{word}").unwrap();
    }

    /// Waits for the end of its socket.
    fn wait_for_end(&mut self) {
        // Data that it has not read makes a reset of the end.
        let _ = self.end.read_to_end(&mut Vec::new());
    }

    fn kill(&mut self) -> Duration {
        let killed = Instant::now();
        self.child.kill().unwrap();
        self.wait_for_end();
        killed.elapsed()
    }

    /// The closer has gone with its process.
    fn wait_for_closer(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while test_kill_process(pid(self.closer)).is_ok() && !is_dead(self.closer) {
            assert!(Instant::now() < deadline, "the closer lives on");
            thread::yield_now();
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = kill_process_group(pid(self.child.id()), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// It has ended, and nobody has asked how.
fn is_dead(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Pairs of one and the other: noise that hits each alike must hit most pairs on one side to count.
#[test]
fn a_death_is_told_before_the_memory_is_freed() {
    let (mut sooner, pairs) = (0, 9);
    for _ in 0..pairs {
        let Some(mut watched) = Watched::start("256 watched") else { return };
        let with = watched.kill();
        watched.wait_for_closer();
        let without = Watched::start("256 alone").unwrap().kill();
        eprintln!("with a closer {with:?}, without {without:?}");
        sooner += usize::from(3 * with < 2 * without);
    }
    assert!(2 * sooner > pairs, "only {sooner} of {pairs} deaths were told sooner");
}

#[test]
fn a_closer_ends_with_its_process_however_that_ends() {
    let Some(mut killed) = Watched::start("1 watched") else { return };
    killed.kill();
    killed.wait_for_closer();
    let mut group = Watched::start("1 watched").unwrap();
    kill_process_group(pid(group.child.id()), Signal::KILL).unwrap();
    group.wait_for_end();
    group.wait_for_closer();
    let mut exits = Watched::start("1 watched").unwrap();
    exits.say("exit");
    exits.wait_for_end();
    assert_eq!(exits.child.wait().unwrap().code(), Some(7));
    exits.wait_for_closer();
    // A program that takes its place keeps the descriptors that it inherits.
    let mut becomes = Watched::start("1 watched").unwrap();
    becomes.say("exec");
    becomes.wait_for_closer();
    assert_eq!(becomes.child.try_wait().unwrap(), None);
    becomes.end.set_nonblocking(true).unwrap();
    let open = becomes.end.read(&mut [0]).unwrap_err();
    assert_eq!(open.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_closer_that_is_killed_or_stopped_is_replaced_and_its_process_serves_on() {
    let Some(mut watched) = Watched::start("1 watched") else { return };
    for (word, lost) in [("killed", 1), ("stopped", 2)] {
        let before = watched.closer;
        watched.say(word);
        let numbers = watched.ready().unwrap();
        assert_eq!(numbers[1], lost);
        assert_ne!(numbers[0], before);
        watched.closer = numbers[0];
    }
    assert_eq!(watched.child.try_wait().unwrap(), None);
    watched.kill();
    watched.wait_for_closer();
}

/// A status page that says *in force* while every second closer is refused helps nobody.
#[test]
fn a_closer_that_cannot_be_replaced_is_told_until_one_is() {
    begun_again(Some(&Errno::AGAIN.into()));
    let Grant::Refused(why) = status().standing else { panic!("{:?}", status()) };
    assert!(why.contains("no closer watches this process"), "{why}");
    begun_again(None);
    assert_eq!(status().standing, Grant::InForce);
}
