//! The processes of an experiment: this program started by itself, and the messages between them.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, io};

use node::EventRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Outcome;
use crate::echo::{Transport, Waits};
use crate::orders::{Memory, Place};

/// Which process to be. The program is told it in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Role {
    /// A node with replicas.
    Node {
        /// The configuration.
        config: PathBuf,
        /// Groups to host, by a name that [`hosted`](crate::child::hosted) or an experiment knows.
        host: Vec<String>,
        /// Hosts them only when it is told to.
        when_told: bool,
        /// Files of control groups to write itself into, before anything else.
        doors: Vec<PathBuf>,
    },
    /// A replica of the objects, attached to the node that started it.
    Objects {
        /// Its output, and its last words when it dies, are appended to this file.
        log: PathBuf,
    },
    /// A replica of echoes, attached to the node that started it.
    Echoes,
    /// Takes all the processor time that it can get.
    Spin,
    /// A thread for each processor that computes a part of the time.
    Hog {
        /// Percent of each processor.
        percent: u32,
        /// SCHED_FIFO priority; 0: ordinary.
        priority: u8,
    },
    /// An echo on a bare socket.
    Echo {
        /// Which socket.
        transport: Transport,
        /// Bytes of a message.
        size: usize,
        /// Bytes of the answer to a datagram.
        answer: usize,
        /// How it waits.
        waits: Waits,
        /// The one processor to run on.
        core: Option<usize>,
    },
    /// Answers a client once several other processes have answered a datagram.
    Fan {
        /// Bytes of a message.
        size: usize,
        /// The other processes.
        peers: usize,
    },
    /// An agent beside a node, which runs ranks of jobs.
    Agent(Place),
    /// A rank of a job that changes its memory.
    Rank(Memory),
    /// A process of an experiment's own.
    Own {
        /// The experiment's name.
        experiment: String,
        /// Its orders.
        orders: Value,
    },
}

impl Role {
    /// A process of this experiment's own.
    pub fn own(experiment: &str, orders: impl Serialize) -> Outcome<Role> {
        Ok(Role::Own { experiment: experiment.into(), orders: serde_json::to_value(orders)? })
    }

    /// The command that starts such a process.
    pub fn command(&self) -> Outcome<Vec<String>> {
        self.command_of(&env::current_exe()?)
    }

    /// The same, of another build of this program.
    fn command_of(&self, program: &Path) -> Outcome<Vec<String>> {
        let program = program.to_str().ok_or("the path of the program is not UTF-8")?;
        Ok(vec![program.into(), "child".into(), serde_json::to_string(self)?])
    }
}

/// A process, ended when it is dropped.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts this program as `role`.
    pub fn start(role: &Role) -> Outcome<Process> {
        Process::start_of(role, &env::current_exe()?)
    }

    /// The same, of another build of this program.
    pub fn start_of(role: &Role, program: &Path) -> Outcome<Process> {
        let command = role.command_of(program)?;
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Process { child, input, output })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says; empty at its end.
    pub fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.output.as_mut().ok_or("another reads what it says")?.read_line(&mut line)?;
        Ok(line)
    }

    /// All that it says from now on.
    pub fn take_output(&mut self) -> Option<BufReader<ChildStdout>> {
        self.output.take()
    }

    /// Asks a node's process.
    pub fn ask(&mut self, question: &Question) -> Outcome<()> {
        let line = serde_json::to_string(question)? + "\n";
        Ok(self.input.as_mut().ok_or("its input has ended")?.write_all(line.as_bytes())?)
    }

    /// Writes a line to an experiment's own process.
    pub fn tell(&mut self, line: &str) -> Outcome<()> {
        Ok(writeln!(self.input.as_mut().ok_or("its input has ended")?, "{line}")?)
    }

    /// Ends its input.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Kills it, and does not wait.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }

    /// It has ended.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A question to a node's process, one JSON value a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Question {
    /// How much it has allocated.
    Allocated,
    /// Data that the services of this experiment have kept since the last question.
    Kept(String),
    /// Host the groups that were to wait for it. No answer but events.
    Host,
    /// Leave the ring and end. No answer.
    Leave,
}

/// A child's message on its standard output, one JSON object a line.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// It takes connections here.
    Ready {
        /// The address.
        ready: SocketAddr,
    },
    /// It was asked.
    Answer {
        /// To the question.
        answer: Value,
    },
    /// Something happened in its node.
    Event(EventRecord),
}
