//! The processes of an experiment: this program started by itself.

use std::io::{Read, Write, stdin, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, process, thread};

use clap::Subcommand;
use node::{EventRecord, Interest};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::stdio::dup2_stderr;
use serde::{Deserialize, Serialize};
use steadfast::{Durability, Execution, GroupOptions, Hold, HostOptions, Node, NodeConfig, Style};

use crate::allocator::{Allocated, allocated};
use crate::blackbox::objects::Objects;
use crate::echo::{self, Echo, Transport, Waits};
use crate::redundancy::{LedgerService, Pages};
use crate::study::{self, Callee, Caller, Made, Side};
use crate::{Outcome, blackbox, fan, flare, interceptor, jgroup, machine};

/// Which process to be.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// A node with replicas of the echo service.
    Node {
        #[arg(long)]
        config: PathBuf,
        /// Groups to host, by a name that [`options_of`] knows.
        #[arg(long)]
        host: Vec<String>,
        /// Hosts them only when it is told to.
        #[arg(long)]
        when_told: bool,
        /// Files of control groups to write itself into, before anything else.
        #[arg(long)]
        door: Vec<PathBuf>,
    },
    /// A replica of the ledger, attached to the node that started it.
    Ledger {
        /// The size of its state.
        #[arg(long)]
        bytes: usize,
    },
    /// A replica of the black box's objects, attached to the node that started it.
    Objects {
        /// What it says, and what is said when it dies, is appended to this file.
        #[arg(long)]
        log: PathBuf,
    },
    /// Takes all the processor time that it can get.
    Spin,
    /// An echo on a bare socket.
    Echo {
        #[arg(long)]
        transport: Transport,
        #[arg(long)]
        size: usize,
        #[arg(long)]
        answer: usize,
        #[arg(long)]
        waits: Waits,
        /// The one processor to run on.
        #[arg(long)]
        core: Option<usize>,
    },
    /// Answers a client once several other processes have answered a datagram.
    Fan {
        #[arg(long)]
        size: usize,
        #[arg(long)]
        peers: usize,
    },
    /// Clients that call any server.
    Callers(jgroup::Orders),
    /// A client that has made some calls, and does nothing more.
    Resident(interceptor::Resident),
    /// A client's machine that is answered without any node.
    Steps(interceptor::Steps),
}

/// Address space of a program that serves the black box's objects.
const OBJECTS_MEMORY: u64 = 1 << 30;

/// The question to a node's child: how much it has allocated.
pub const ALLOCATED: &[u8] = b"allocated\n";

/// The question to a node's child: the calls that its replicas have made since it was asked last. As long as the other.
pub const CALLS: &[u8] = b"all calls\n";

/// To a node's child: host the groups that were to wait for it. As long as the question.
pub const HOST: &[u8] = b"host them\n";

/// To a node's child: leave the ring and end. As long as the question.
pub const LEAVE: &[u8] = b"leave now\n";

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
    /// It was asked which calls its replicas have made.
    Calls {
        /// In their order.
        calls: Vec<Made>,
    },
    /// Something happened in its node.
    Event(EventRecord),
}

fn say(line: &Line) -> Outcome<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = stdout().lock();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// The child's life.
pub fn run(options: &Options) -> Outcome<()> {
    // Whatever becomes of the parent, nothing is left behind.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let ready = |ready| say(&Line::Ready { ready }).expect("the parent reads");
    match &options.role {
        Role::Node { config, host, when_told, door } => {
            door.iter().try_for_each(|door| fs::write(door, process::id().to_string()))?;
            run_node(config, host, *when_told)
        }
        Role::Ledger { bytes } => {
            let bytes = *bytes;
            Ok(steadfast::attach(move || LedgerService::new(Pages::new(bytes)))?)
        }
        Role::Objects { log } => serve_objects(log),
        Role::Spin => loop {
            std::hint::spin_loop();
        },
        Role::Echo { transport, size, answer, waits, core } => {
            core.map_or(Ok(()), machine::run_on)?;
            echo::serve(*transport, *size, *answer, *waits, ready)
        }
        Role::Fan { size, peers } => fan::serve(*size, *peers, ready),
        Role::Callers(orders) => jgroup::serve(orders),
        Role::Resident(orders) => interceptor::reside(orders),
        Role::Steps(orders) => {
            interceptor::step(orders);
            Ok(())
        }
    }
}

/// Hosts a replica of each of these groups.
fn host(node: &Node, groups: &[String]) -> Outcome<()> {
    for group in groups {
        if let Some((side, options)) = study::hosted(group) {
            match side {
                Side::Caller => node.host(group, options, Caller::default)?,
                Side::Callee => node.host(group, options, Callee::default)?,
            }
        } else if let Some(options) = flare::hosted(group) {
            node.host(group, options, flare::Taker::default)?;
        } else if group == jgroup::GROUP {
            let id = node.id();
            node.host(group, options_of(group)?, move || jgroup::Named(id))?;
        } else if group.ends_with(blackbox::OBJECTS) {
            node.host(group, options_of(group)?, Objects::default)?;
        } else {
            node.host(group, options_of(group)?, Echo::default)?;
        }
    }
    Ok(())
}

fn run_node(config: &PathBuf, groups: &[String], when_told: bool) -> Outcome<()> {
    let config = NodeConfig::from_toml(&fs::read_to_string(config)?)?;
    let node = Node::start(config)?;
    let id = node.id();
    // Who is told of every call wakes for it, and more than the call costs.
    let interest = Interest::Membership;
    let mut events = node.subscribe_to(interest);
    if !when_told {
        host(&node, groups)?;
    }
    say(&Line::Ready { ready: node.client_address().ok_or("the node takes no clients")? })?;
    let node = Arc::new(Mutex::new(Some(node)));
    let asked = node.clone();
    let groups = groups.to_vec();
    // The child ends by a signal, or when it is asked to leave, not by the end of its input.
    thread::spawn(move || {
        let mut question = [0; ALLOCATED.len()];
        while stdin().read_exact(&mut question).is_ok() {
            if question == LEAVE {
                let node = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
                let stopped = node.map(Node::stop);
                process::exit(i32::from(matches!(stopped, Some(Err(_)))));
            }
            if question == HOST {
                let node = asked.lock().unwrap_or_else(PoisonError::into_inner);
                let hosted =
                    node.as_ref().map(|node| host(node, &groups).map_err(|it| it.to_string()));
                if let Some(Err(error)) = hosted {
                    eprintln!("steadfast-lab: {error}");
                    process::exit(1);
                }
                continue;
            }
            let answer = match &question[..] {
                CALLS => Line::Calls { calls: study::take_calls() },
                _ => Line::Allocated { allocated: allocated() },
            };
            // Without a parent nobody reads it.
            let _ = say(&answer);
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
fn options_of(group: &str) -> Outcome<HostOptions> {
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

/// Starts this program as `role`, with its arguments.
pub fn spawn(role: &str, arguments: &[&str]) -> Outcome<(Child, ChildStdin, ChildStdout)> {
    let mut child = Command::new(env::current_exe()?)
        .args(["child", role])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take());
    let (Some(stdin), Some(stdout)) = pipes else { return Err("no pipes to the child".into()) };
    Ok((child, stdin, stdout))
}
