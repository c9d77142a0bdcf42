//! Network namespaces, which are gone when the process is, however it ended: a child that outlives
//! it takes them away.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Outcome;

/// Ends what still runs in the namespaces, then takes them away.
const SWEEP: &str = "cat >/dev/null; for n in \"$@\"; do ip netns pids \"$n\" | xargs -r kill -9; \
                     ip netns del \"$n\"; done";

/// Why this process may not make namespaces, if so.
pub fn missing() -> Option<String> {
    if !runs("ip", "-V") {
        return Some("the program `ip` (package iproute2)".into());
    }
    let probe = format!("sft{}", process::id());
    let made = run("ip", &["netns", "add", &probe]);
    let bridge = made.and_then(|()| {
        run("ip", &["-n", &probe, "link", "add", "name", "probe", "type", "bridge"])
    });
    // If it was not made, there is nothing to take away.
    let _ = run("ip", &["netns", "del", &probe]);
    bridge.err().map(|error| format!("root, or CAP_NET_ADMIN and CAP_SYS_ADMIN ({error})"))
}

/// Whether a program is there.
pub(crate) fn runs(program: &str, argument: &str) -> bool {
    let quiet =
        Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Outcome<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {why}", arguments.join(" ")).into())
}

/// So many namespaces, by number.
pub(crate) struct Namespaces {
    prefix: String,
    home: File,
    /// Waits for the end of its input.
    sweeper: Child,
}

impl Namespaces {
    /// Namespaces with these numbers, each with its loopback interface.
    pub fn new(numbers: impl Iterator<Item = usize>) -> Outcome<Namespaces> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("sf{}x{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names: Vec<String> = numbers.map(|number| format!("{prefix}-{number}")).collect();
        // In a process group of its own: an interrupt from the keyboard must not end it.
        let sweeper = Command::new("sh")
            .args(["-c", SWEEP, "sweeper"])
            .args(&names)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let home = File::open("/proc/thread-self/ns/net")?;
        let all = Namespaces { prefix, home, sweeper };
        for name in &names {
            run("ip", &["netns", "add", name])?;
        }
        Ok(all)
    }

    /// The name of one, for the program `ip`.
    pub fn name(&self, number: usize) -> String {
        format!("{}-{number}", self.prefix)
    }

    /// Commands of `ip` in one of them, a line each.
    pub fn ip(&self, number: usize, commands: &str) -> Outcome<()> {
        let mut ip = Command::new("ip")
            .args(["-n", &self.name(number), "-batch", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        ip.stdin.take().ok_or("no pipe to ip")?.write_all(commands.as_bytes())?;
        let output = ip.wait_with_output()?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(format!("ip does not take these commands: {why}\n{commands}").into())
            }
        }
    }

    /// The calling thread, and those that it starts, are in this one from now on.
    pub fn enter(&self, number: usize) -> Outcome<()> {
        let file = File::open(format!("/run/netns/{}", self.name(number)))?;
        Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// The calling thread is where it was at first.
    pub fn leave(&self) -> Outcome<()> {
        Ok(move_into_link_name_space(self.home.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // If this fails the thread stays in a namespace that nobody else uses.
        let _ = self.leave();
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}
