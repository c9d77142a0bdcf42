//! The use of a node and its programs, where the node has a stated part of its host.

use std::collections::BTreeMap;

use monitor::MonitorError;
use monitor::clock::Process;
use rustix::process::getpid;
use wire::{Duration, GroupId, Share};

/// This process and those of programs, counted together.
#[derive(Debug)]
pub(super) struct Own {
    /// The share that they may use.
    pub capacity: Share,
    node: Process,
    /// The processor time that each process had used at the last look.
    read: BTreeMap<u32, Duration>,
    /// Grows only: what a program has used stays used when it has ended.
    used: Duration,
}

/// The node's own place in `read`: no program has this id.
const NODE: u32 = 0;

impl Own {
    pub fn open(capacity: Share) -> Result<Own, MonitorError> {
        let node = Process::open(getpid())?;
        Ok(Own { capacity, node, read: BTreeMap::new(), used: Duration::ZERO })
    }

    /// The processor time that all have used since the first look, by the present programs.
    pub fn read(
        &mut self,
        programs: &BTreeMap<GroupId, (u32, Process)>,
    ) -> Result<Duration, MonitorError> {
        let mut now = BTreeMap::from([(NODE, self.node.used()?)]);
        // One that has just ended has nothing to say.
        let of_programs = programs.values().filter_map(|(pid, it)| Some((*pid, it.used().ok()?)));
        now.extend(of_programs);
        for (process, used) in &now {
            // A process that is new here began with nothing.
            let before = self.read.get(process).copied();
            let before = before.unwrap_or(if *process == NODE { *used } else { Duration::ZERO });
            self.used += used.saturating_sub(before);
        }
        self.read = now;
        Ok(self.used)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::Pid;

    use super::*;

    #[test]
    fn what_ended_programs_have_used_is_not_taken_back() {
        let mut own = Own::open(Share::percent(50)).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let process = Process::open(Pid::from_child(&child)).unwrap();
        let programs = BTreeMap::from([(GroupId(1), (child.id(), process))]);
        let mut used = own.read(&programs).unwrap();
        // It works for some hundredths of a second, and then waits.
        while own.read[&child.id()] < Duration::from_millis(20) {
            let more = own.read(&programs).unwrap();
            assert!(more >= used);
            used = more;
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(own.read(&programs).unwrap() >= used);
        assert!(own.read(&BTreeMap::new()).unwrap() >= used);
    }
}
