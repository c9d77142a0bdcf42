//! A process of the demo as the conductor sees it: started, told, stopped, and never left behind.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;

use rustix::process::{Pid, Signal, kill_process};

use super::message::{Order, Tale};

/// Which process a tale is from: its place in the conductor's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// The node of this id, in this many-th life.
    Node(u32, u32),
    /// The sensors of this line.
    Sensors(u8),
    /// The displays.
    Displays,
}

/// A running process. Dropping it kills it.
pub struct Process {
    child: Child,
    orders: ChildStdin,
}

impl Process {
    /// Runs this program with other arguments. Its messages go to `tales`; its standard error goes
    /// to `log`.
    pub fn start(
        who: Who,
        arguments: &[String],
        log: std::fs::File,
        tales: Sender<(Who, Tale)>,
    ) -> io::Result<Process> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // An interrupt from the terminal is the conductor's alone, who ends all in order.
            .process_group(0)
            .spawn()?;
        let orders = child.stdin.take().expect("it was asked for");
        let told = child.stdout.take().expect("it was asked for");
        std::thread::Builder::new().name("tales".into()).spawn(move || {
            for line in BufReader::new(told).lines() {
                let Ok(line) = line else { break };
                let tale = serde_json::from_str(&line).unwrap_or_else(|_| {
                    Tale::Failed(format!("it said what nobody understands: {line}"))
                });
                if tales.send((who, tale)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Process { child, orders })
    }

    /// Tells it what to do.
    pub fn order(&mut self, order: Order) -> io::Result<()> {
        let line = serde_json::to_string(&order).expect("an order is plain data");
        writeln!(self.orders, "{line}")
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a child's id is positive");
        Ok(kill_process(pid, signal)?)
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL also ends a process that is stopped. Errors: it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
