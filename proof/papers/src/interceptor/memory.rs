//! The memory of a process that has one client and nothing else.

use std::fs;
use std::io::{Read, Write, stdin, stdout};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use steadfast::Invocation;

use super::bare::Bare;
use super::kind::{ALONE, Kind, Orders, SIZE};
use harness::Outcome;
use harness::echo::ECHO;
use harness::figures::median_and_worst;
use harness::process::Process;

/// Calls before the memory is measured: all that grows with them has grown.
const CALLS: usize = 2_000;

const DEADLINE: Duration = Duration::from_secs(10);

/// The life of such a process: some calls, a word, and the end when its input ends.
pub fn reside(kind: Kind, nodes: &[SocketAddr]) -> Outcome<()> {
    let body = Bytes::from(vec![7; SIZE]);
    let rest = || -> Outcome<()> {
        writeln!(stdout(), "resident")?;
        // The input has ended, whether this reads bytes or an error.
        let _ = stdin().read(&mut [0]);
        Ok(())
    };
    if kind == Kind::Bare {
        let first = nodes.first().ok_or("a client needs a node")?;
        let mut bare = Bare::connect(*first, ALONE)?;
        (0..CALLS).try_for_each(|_| bare.call(body.clone()).map(drop))?;
        return rest();
    }
    let (client, group) = (kind.connect(nodes)?, kind.group());
    for _ in 0..CALLS {
        client.call(Invocation::new(group, ECHO).body(body.clone()).within(DEADLINE))?;
    }
    rest()
}

/// The memory of a process, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All of its pages that are in memory, the program's included.
    #[serde(rename = "resident_kib")]
    pub resident: u64,
    /// Those that it shares with nobody.
    #[serde(rename = "private_kib")]
    pub private: u64,
}

/// Medians over so many processes of each kind, in the order of [`Kind::ALL`].
pub fn measure(processes: u64, nodes: &[SocketAddr]) -> Outcome<[Memory; 3]> {
    let mut found = [const { Vec::new() }; 3];
    for _ in 0..processes {
        for (kind, found) in Kind::ALL.iter().zip(&mut found) {
            found.push(look(*kind, nodes)?);
        }
    }
    Ok(found.map(|all| {
        let middle = |of: fn(&Memory) -> u64| {
            let all = all.iter().map(|memory| of(memory) as f64).collect();
            median_and_worst(all).unwrap_or_default().0 as u64
        };
        Memory { resident: middle(|it| it.resident), private: middle(|it| it.private) }
    }))
}

/// One process.
fn look(kind: Kind, nodes: &[SocketAddr]) -> Outcome<Memory> {
    let mut process = Process::start(&Orders::Reside(kind, nodes.into()).role()?)?;
    if process.line()?.is_empty() {
        return Err("a client did not come to rest".into());
    }
    let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.id()))?;
    let memory = parse(&rollup);
    Ok(memory.ok_or("the kernel does not tell the memory of a process (smaps_rollup)")?)
}

fn parse(rollup: &str) -> Option<Memory> {
    let field = |name: &str| -> Option<u64> {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    let private = field("Private_Clean")? + field("Private_Dirty")?;
    Some(Memory { resident: field("Rss")?, private })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_understood() {
        let rollup = "5581e4e7e000-7ffd ---p 00000000 00:00 0  [rollup]\nRss:  4100 kB\nPss:  900 \
             kB\n\
                      Private_Clean:  12 kB\nPrivate_Dirty:  500 kB\n";
        assert_eq!(parse(rollup), Some(Memory { resident: 4_100, private: 512 }));
        assert_eq!(parse("Rss: 1 kB\n"), None);
    }
}
