//! The life of a process of an experiment.

use std::io::{Write, stdin, stdout};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, process, thread};

use node::threads::set_helper_priority;
use node::{EventRecord, Interest};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::stdio::dup2_stderr;
use serde_json::{Value, json};
use steadfast::{
    AckLevel, Durability, Execution, GroupOptions, HostOptions, Node, NodeConfig, Style,
};
use wire::attach::GROUP_VARIABLE;

use crate::allocator::allocated;
use crate::echo::{self, Counted, Echo};
use crate::objects::{self, Objects};
use crate::process::{Line, Question, Role};
use crate::{Entry, Outcome, bail, floor, hog, laden, machine};

/// Address space of a program that serves objects.
const OBJECTS_MEMORY: u64 = 1 << 30;

fn say(line: &Line) -> Outcome<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = stdout().lock();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

fn reply(answer: Value) {
    // Without a parent nobody reads it.
    let _ = say(&Line::Answer { answer });
}

/// The child's life.
pub(crate) fn run(role: Role, experiments: &'static [Entry]) -> Outcome<()> {
    // Nothing is left behind, however the parent ends.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let ready = |ready| say(&Line::Ready { ready }).expect("the parent reads");
    match role {
        Role::Node { config, host, when_told, doors } => {
            doors.iter().try_for_each(|door| fs::write(door, process::id().to_string()))?;
            run_node(&config, host, when_told, experiments)
        }
        Role::Objects { log } => serve_objects(&log),
        Role::Echoes => serve_echoes(),
        Role::Spin => loop {
            std::hint::spin_loop();
        },
        Role::Hog { percent, priority } => hog::live(percent, priority, || println!("{{}}")),
        Role::Echo { transport, size, answer, waits, core } => {
            core.map_or(Ok(()), machine::run_on)?;
            echo::serve(transport, size, answer, waits, ready)
        }
        Role::Fan { size, peers } => floor::serve(size, peers, ready),
        Role::Agent(place) => place.live(),
        Role::Rank(memory) => memory.live(),
        Role::Own { experiment, orders } => {
            let entry = experiments.iter().find(|entry| entry.name == experiment);
            (entry.ok_or("no such experiment")?.live)(orders)
        }
    }
}

/// Hosts a replica of each of these groups.
fn host(node: &Node, groups: &[String], experiments: &[Entry]) -> Outcome<()> {
    'groups: for group in groups {
        laden::touch(group);
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
    let path = config.clone();
    let config = NodeConfig::from_toml(&fs::read_to_string(config)?)?;
    // As the daemon does.
    set_helper_priority(config.realtime.helper_priority);
    let node = Node::start(config)?;
    node.reloads_from(move || {
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        NodeConfig::from_toml(&text).map_err(|error| error.to_string())
    });
    let id = node.id();
    // An event of every call would wake the subscriber, and cost more than the call.
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
            // It was retired, or its disk has failed.
            Some(node) if node.status().ring.state == "stopped" => process::exit(2),
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
        Question::Allocated => reply(json!(allocated())),
        Question::Kept(name) => {
            let entry = experiments.iter().find(|entry| entry.name == name);
            reply((entry.ok_or("no such experiment")?.kept)());
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

/// The life of a program that serves echoes, in the memory that its group's name says.
fn serve_echoes() -> Outcome<()> {
    laden::touch(&env::var(GROUP_VARIABLE).unwrap_or_default());
    Ok(steadfast::attach(Counted::<Echo>::default)?)
}

/// How the replicas of a group are hosted: its name says it, up to a dash.
pub fn hosted(group: &str) -> Outcome<HostOptions> {
    let how = group.split_once('-').map_or(group, |(how, _)| how);
    let (style, ack, execution) = match how {
        "thread" => (Style::SemiActive, AckLevel::Majority, Execution::Thread),
        "inline" | "disk" => (Style::SemiActive, AckLevel::Majority, Execution::Inline),
        "agreed" => (Style::SemiActive, AckLevel::One, Execution::Inline),
        "safe" => (Style::SemiActive, AckLevel::All, Execution::Inline),
        "cold" => (Style::ColdPassive, AckLevel::Majority, Execution::Inline),
        "warm" => (Style::WarmPassive, AckLevel::Majority, Execution::Inline),
        "active" => (Style::Active, AckLevel::Majority, Execution::Inline),
        "voting" => (Style::Voting, AckLevel::Majority, Execution::Inline),
        "stateless" => (Style::Stateless, AckLevel::Majority, Execution::Inline),
        other => bail!("no group is called {other}"),
    };
    let durability = if how == "disk" { Durability::Disk } else { Durability::Memory };
    let group = GroupOptions { style, ack, durability };
    Ok(HostOptions { group, execution })
}
