//! Which threads and processes a peer may name: its own, and those of processes below it.

use std::fs;
use std::io;

/// The process at the other end of a connection, as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub process: i32,
    pub user: u32,
}

/// A thread or process, told apart from a later one of the same number by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub id: i32,
    /// Clock ticks from the host's start to this thread's.
    start: u64,
}

/// Processes from one to the first: no tree is deeper.
const DEPTH: usize = 64;

impl Target {
    /// The thread or process of this number, if the peer may name it.
    pub fn of(id: i32, peer: Peer) -> Result<Target, String> {
        let unknown = |error: io::Error| format!("there is no thread or process {id}: {error}");
        let target = Target { id, start: start(id).map_err(unknown)? };
        let foreign = || {
            format!(
                "{id} is neither a thread of the asking process {} nor of a process below it",
                peer.process
            )
        };
        let status = Status::of(id).map_err(unknown)?;
        if peer.user != 0 && status.user != peer.user {
            return Err(foreign());
        }
        let mut process = status.group;
        for _ in 0..DEPTH {
            if process == peer.process {
                // It is still the same: its number was not given away meanwhile.
                return if target.lives() { Ok(target) } else { Err(foreign()) };
            }
            match Status::of(process).map_err(unknown)?.parent {
                0 | 1 => break,
                parent => process = parent,
            }
        }
        Err(foreign())
    }

    /// It has not ended.
    pub fn lives(self) -> bool {
        start(self.id).is_ok_and(|start| start == self.start)
    }

    /// The threads of the process.
    pub fn threads(self) -> Vec<i32> {
        let names = fs::read_dir(format!("/proc/{}/task", self.id)).into_iter().flatten();
        names.flatten().filter_map(|name| name.file_name().to_str()?.parse().ok()).collect()
    }

    /// Processor time that a thread has used so far, in microseconds.
    pub fn used_us(thread: i32) -> u64 {
        let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok());
        nanos.unwrap_or_default() / 1_000
    }
}

/// Field 22 of `/proc/N/stat`, counted behind the name, which may have spaces.
fn start(id: i32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let start = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    start
        .and_then(|start| start.parse().ok())
        .ok_or_else(|| io::Error::other("its stat has no start time"))
}

struct Status {
    group: i32,
    parent: i32,
    user: u32,
}

impl Status {
    fn of(id: i32) -> io::Result<Status> {
        let text = fs::read_to_string(format!("/proc/{id}/status"))?;
        let first = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|line| line.split_whitespace().next())
        };
        let parse = || {
            Some(Status {
                group: first("Tgid:")?.parse().ok()?,
                parent: first("PPid:")?.parse().ok()?,
                user: first("Uid:")?.parse().ok()?,
            })
        };
        parse().ok_or_else(|| io::Error::other("its status is not as kernels write it"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{getpid, getuid};

    use super::*;

    fn me() -> Peer {
        Peer { process: getpid().as_raw_nonzero().get(), user: getuid().as_raw() }
    }

    #[test]
    fn a_peer_may_name_its_threads_and_its_children() {
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(Target::of(own, me()).unwrap().lives());
        let ended = thread.join().unwrap();
        assert!(Target::of(ended, me()).is_err());
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).spawn().expect("every system has cat");
        let target = Target::of(child.id().try_into().unwrap(), me()).unwrap();
        assert_eq!(target.threads(), [target.id]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!target.lives());
    }

    #[test]
    fn a_peer_may_name_nobody_else() {
        let child = Peer { process: i32::MAX, ..me() };
        let own = me().process;
        let error = Target::of(own, child).unwrap_err();
        assert!(error.contains("neither a thread of the asking process"), "{error}");
        assert!(Target::of(1, Peer { process: own, user: 12_345 }).is_err());
        assert!(Target::of(-1, me()).is_err());
        assert!(Target::of(0, me()).is_err());
    }
}
