//! The processes of an experiment: this program started by itself.

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, io, process, thread};

use node::{EventRecord, Interest};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::stdio::dup2_stderr;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadfast::{Durability, Execution, GroupOptions, Hold, HostOptions, Node, NodeConfig, Style};

use crate::allocator::{Allocated, allocated};
use crate::echo::{self, Counted, Echo, Transport, Waits};
use crate::objects::Objects;
use crate::{Entry, Experiment, Outcome, fan, machine, objects};

/// Which process to be. The program is told it in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Role {
    /// A node with replicas.
    Node {
        /// The configuration.
        config: PathBuf,
        /// Groups to host, by a name that [`hosted`] or an experiment knows.
        host: Vec<String>,
        /// Hosts them only when it is told to.
        when_told: bool,
        /// Files of control groups to write itself into, before anything else.
        doors: Vec<PathBuf>,
    },
    /// A replica of the objects, attached to the node that started it.
    Objects {
        /// What it says, and what is said when it dies, is appended to this file.
        log: PathBuf,
    },
    /// Takes all the processor time that it can get.
    Spin,
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
    /// A process of an experiment's own.
    Own {
        /// The experiment's name.
        experiment: String,
        /// What it is told.
        orders: Value,
    },
}

impl Role {
    /// A process of this experiment's own.
    pub fn own<E: Experiment>(orders: impl Serialize) -> Outcome<Role> {
        Ok(Role::Own { experiment: E::NAME.into(), orders: serde_json::to_value(orders)? })
    }

    /// The command that starts such a process.
    pub fn command(&self) -> Outcome<Vec<String>> {
        let program = env::current_exe()?.into_os_string().into_string();
        let program = program.map_err(|_| "the path of this program is not UTF-8")?;
        Ok(vec![program, "child".into(), serde_json::to_string(self)?])
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
        let command = role.command()?;
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

/// What a node's process is asked, one JSON value a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Question {
    /// How much it has allocated.
    Allocated,
    /// What the services of this experiment have kept since they were asked last.
    Kept(String),
    /// Host the groups that were to wait for it. No answer but events.
    Host,
    /// Leave the ring and end. No answer.
    Leave,
}

/// What a child says on its standard output, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// It takes connections here.
    Ready {
        /// The address.
        ready: SocketAddr,
    },
    /// It was asked what it has allocated.
    Allocated {
        /// Since it started.
        allocated: Allocated,
    },
    /// It was asked what services have kept.
    Kept {
        /// As the experiment has it.
        kept: Value,
    },
    /// Something happened in its node.
    Event(EventRecord),
}

/// Address space of a program that serves objects.
const OBJECTS_MEMORY: u64 = 1 << 30;

fn say(line: &Line) -> Outcome<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = stdout().lock();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// The child's life.
pub(crate) fn run(role: Role, experiments: &'static [Entry]) -> Outcome<()> {
    // Whatever becomes of the parent, nothing is left behind.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let ready = |ready| say(&Line::Ready { ready }).expect("the parent reads");
    match role {
        Role::Node { config, host, when_told, doors } => {
            doors.iter().try_for_each(|door| fs::write(door, process::id().to_string()))?;
            run_node(&config, host, when_told, experiments)
        }
        Role::Objects { log } => serve_objects(&log),
        Role::Spin => loop {
            std::hint::spin_loop();
        },
        Role::Echo { transport, size, answer, waits, core } => {
            core.map_or(Ok(()), machine::run_on)?;
            echo::serve(transport, size, answer, waits, ready)
        }
        Role::Fan { size, peers } => fan::serve(size, peers, ready),
        Role::Own { experiment, orders } => {
            let entry = experiments.iter().find(|entry| entry.name == experiment);
            (entry.ok_or("no such experiment")?.live)(orders)
        }
    }
}

/// Hosts a replica of each of these groups.
fn host(node: &Node, groups: &[String], experiments: &[Entry]) -> Outcome<()> {
    'groups: for group in groups {
        for entry in experiments {
            if (entry.host)(node, group)? {
                continue 'groups;
            }
        }
        let options = hosted(group)?;
        if group.ends_with(objects::SUFFIX) {
            node.host(group, options, Objects::default)?;
        } else {
            node.host(group, options, Counted::<Echo>::default)?;
        }
    }
    Ok(())
}

fn run_node(
    config: &PathBuf,
    groups: Vec<String>,
    when_told: bool,
    experiments: &'static [Entry],
) -> Outcome<()> {
    let config = NodeConfig::from_toml(&fs::read_to_string(config)?)?;
    let node = Node::start(config)?;
    let id = node.id();
    // Who is told of every call wakes for it, and more than the call costs.
    let interest = Interest::Membership;
    let mut events = node.subscribe_to(interest);
    if !when_told {
        host(&node, &groups, experiments)?;
    }
    say(&Line::Ready { ready: node.client_address().ok_or("the node takes no clients")? })?;
    let node = Arc::new(Mutex::new(Some(node)));
    let asked = node.clone();
    // The child ends by a signal, or when it is asked to leave, not by the end of its input.
    thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            if let Err(error) = answer(&line, &asked, &groups, experiments) {
                eprintln!("a node's process: {error}");
                process::exit(1);
            }
        }
    });
    loop {
        for (time, event) in events {
            say(&Line::Event(EventRecord::new(time, id, &event)))?;
        }
        // A node ends its oldest subscriber when there are too many.
        match &*node.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(node) => events = node.subscribe_to(interest),
            None => break,
        }
    }
    // It leaves, and the process ends with it.
    loop {
        thread::park();
    }
}

fn answer(
    question: &str,
    node: &Mutex<Option<Node>>,
    groups: &[String],
    experiments: &[Entry],
) -> Outcome<()> {
    let mut node = node.lock().unwrap_or_else(PoisonError::into_inner);
    match serde_json::from_str(question)? {
        Question::Allocated => {
            // Without a parent nobody reads it.
            let _ = say(&Line::Allocated { allocated: allocated() });
        }
        Question::Kept(name) => {
            let entry = experiments.iter().find(|entry| entry.name == name);
            let kept = (entry.ok_or("no such experiment")?.kept)();
            let _ = say(&Line::Kept { kept });
        }
        Question::Host => {
            node.as_ref().map_or(Ok(()), |node| host(node, groups, experiments))?;
        }
        Question::Leave => {
            let node = node.take();
            let stopped = node.map(Node::stop);
            process::exit(i32::from(matches!(stopped, Some(Err(_)))));
        }
    }
    Ok(())
}

/// The life of a program whose handlers may die. Its memory has an end before the machine's has.
fn serve_objects(log: &PathBuf) -> Outcome<()> {
    let log = fs::File::options().create(true).append(true).open(log)?;
    dup2_stderr(log)?;
    let most = Some(OBJECTS_MEMORY);
    setrlimit(Resource::As, Rlimit { current: most, maximum: most })?;
    eprintln!("{} starts", process::id());
    let ended = steadfast::attach(Objects::default);
    eprintln!("{} ends: {ended:?}", process::id());
    Ok(ended?)
}

/// How the replicas of a group are hosted: its name says it, up to a dash.
pub fn hosted(group: &str) -> Outcome<HostOptions> {
    let how = group.split_once('-').map_or(group, |(how, _)| how);
    let (style, hold, execution) = match how {
        "thread" => (Style::SemiActive, Hold::Majority, Execution::Thread),
        "inline" | "disk" => (Style::SemiActive, Hold::Majority, Execution::Inline),
        "agreed" => (Style::SemiActive, Hold::One, Execution::Inline),
        "safe" => (Style::SemiActive, Hold::All, Execution::Inline),
        "cold" => (Style::ColdPassive, Hold::Majority, Execution::Inline),
        "warm" => (Style::WarmPassive, Hold::Majority, Execution::Inline),
        "active" => (Style::Active, Hold::Majority, Execution::Inline),
        "voting" => (Style::Voting, Hold::Majority, Execution::Inline),
        "stateless" => (Style::Stateless, Hold::Majority, Execution::Inline),
        other => return Err(format!("no group is called {other}").into()),
    };
    let durability = if how == "disk" { Durability::Disk } else { Durability::Memory };
    let group = GroupOptions { style, hold, durability };
    Ok(HostOptions { group, execution })
}
