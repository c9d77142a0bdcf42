//! A node's processes: the node, and those that it has started.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::plan::configured;
use crate::Outcome;

/// A node of a cell, ended when it is dropped.
pub(super) struct Node {
    pub folder: PathBuf,
    /// Its admin socket.
    pub socket: PathBuf,
    child: Option<Child>,
    /// Its processes are stopped.
    pub is_stopped: bool,
}

impl Node {
    /// One that does not run.
    pub fn new(folder: PathBuf, socket: PathBuf) -> Node {
        Node { folder, socket, child: None, is_stopped: false }
    }

    /// The process of the node itself.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts it. To be called on its host.
    pub fn start(&mut self, program: &Path) -> Outcome<()> {
        let log = File::options().create(true).append(true).open(self.folder.join("node.log"))?;
        let mut command = Command::new(program);
        command.args(["node", "--log", "info", "--config"]).arg(configured(&self.folder));
        // Not a cluster that runs beside this.
        command.env("STEADFAST_CONTEXT", "/nowhere/context.toml").env_remove("NOTIFY_SOCKET");
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn()?);
        self.is_stopped = false;
        Ok(())
    }

    /// Its processes: the node, the one beside it that has the links, and its programs.
    pub fn processes(&self) -> Vec<Pid> {
        let Some(node) = self.id() else { return Vec::new() };
        let pid = |id: u32| Pid::from_raw(i32::try_from(id).ok()?);
        let below = children_of(node);
        [node].into_iter().chain(below).filter_map(pid).collect()
    }

    /// Sends all its processes a signal, to the node first.
    pub fn signal(&mut self, signal: Signal) -> Outcome<()> {
        for process in self.processes() {
            match kill_process(process, signal) {
                // It has ended by itself since.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match signal {
            Signal::KILL => {
                if let Some(mut child) = self.child.take() {
                    child.wait()?;
                }
                self.is_stopped = false;
            }
            Signal::STOP => self.is_stopped = true,
            Signal::CONT => self.is_stopped = false,
            _ => {}
        }
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // They may have ended by themselves.
        let _ = self.signal(Signal::KILL);
    }
}

/// The processes that this one has started.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name is in brackets, and may have spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_children() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children_of(std::process::id()).contains(&child.id()));
        assert!(!children_of(child.id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
