//! The answers to the requests.

use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use config::ProgramConfig;
use manager::cluster_state::{Answer, Command, Deployment};
use registry::{Address, Ask, Terms};
use tls::Role;
use wire::Duration;

use super::answer::{Answered, answer, answer_done, refuse};
use super::handler::{Done, Handler};
use super::{backup, bench};
use crate::cell::{CellAnswer, MAX_NEIGHBOURS, Neighbour, is_by_people};
use crate::events::{EventRecord, Interest};
use crate::hex::{digest, hex};
use crate::jobs::{AssignmentAnswer, JobsAnswer};
use crate::message::{
    DeployAnswer, DoneAnswer, KeyAnswer, LevelAnswer, MoveAnswer, ReloadAnswer, Request,
    RestyleAnswer, StateAnswer, StopAnswer,
};
use crate::poisoned::PoisonedAnswer;
use crate::stream::Stream;

/// How often a connection that waits is looked at: its other end may have gone.
const GONE_CHECK: Duration = Duration::from_millis(500);

/// How long an answer waits for something new, at most.
const LONGEST_WATCH: Duration = Duration::from_secs(60);

/// Answers a request that is one line. [`Request::Restore`] is none: bytes follow it.
pub(super) fn answer_request(
    node: &dyn Handler,
    stream: &mut Stream,
    request: Request,
) -> io::Result<Answered> {
    match request {
        Request::Status {} => answer(stream, &node.status()).map(|()| Answered::Done),
        Request::State { group, bytes } => {
            answer_done(stream, node.state(&group).map(|state| told(node, group, &state, bytes)))
        }
        Request::Poisoned { group } => {
            let calls = node.poisoned(&group);
            let node = node.me().node;
            answer_done(stream, calls.map(|calls| PoisonedAnswer { node, group, calls }))
        }
        Request::Events { follow, calls } => {
            events(node, stream, follow, calls).map(|()| Answered::Done)
        }
        Request::Move { group, to } => {
            let done = node.move_primary(&group, to);
            answer_done(stream, done.map(|view| MoveAnswer { group, primary: to, view }))
        }
        Request::Restyle { group, style } => {
            let done = node.restyle(&group, style);
            answer_done(stream, done.map(|view| RestyleAnswer { group, style, view }))
        }
        Request::Save { group } => backup::save(node, stream, &group),
        Request::Restore { .. } => unreachable!("what follows it is read before"),
        Request::Discard { group } => done(stream, node.discard(&group)),
        Request::Key { ask } => answer_done(stream, node.key(ask).map(|key| KeyAnswer { key })),
        Request::Reload {} => {
            let done = node.reload();
            answer_done(stream, done.map(|needs_restart| ReloadAnswer { needs_restart }))
        }
        Request::FinishUpgrade {} => {
            answer_done(stream, node.finish_upgrade().map(|level| LevelAnswer { level }))
        }
        Request::Welcome {} => {
            let asks = match stream.role() {
                Some(Role::Node(asks)) => Some(asks),
                _ => None,
            };
            answer_done(stream, node.welcome(asks))
        }
        Request::Admit { node: comes } => done(stream, node.admit(comes)),
        Request::Retire { node: goes } => done(stream, node.retire(goes)),
        Request::GiveUpMove {} => done(stream, node.give_up_move()),
        Request::Run(program) => run(node, stream, program),
        Request::StopProgram { group } => {
            let done = node.stop_program(&group);
            answer_done(stream, done.map(|()| StopAnswer { stopped: group }))
        }
        Request::Deploy { deployment, dry } => deploy(node, stream, *deployment, dry),
        Request::Withdraw { group } => say(node, stream, Command::Withdraw { group }),
        Request::Drain { node: host } => say(node, stream, Command::Drain { node: host }),
        Request::Return { node: host } => say(node, stream, Command::Return { node: host }),
        Request::Deployments {} => answer_done(stream, node.deployments()),
        Request::Registry { name, since, wait_ms } => {
            registry(node, stream, &Ask { name, since }, wait_ms)
        }
        Request::Bind { name, address, terms } => {
            answer_done(stream, bind(node, name, address, terms))
        }
        Request::Unbind { name, address } => {
            let unbind = registry::Command::Unbind { name, address, epoch: None };
            answer_done(stream, node.register(unbind))
        }
        Request::Jobs { since, wait_ms } => {
            wait_for_jobs(node, stream, since, wait_ms);
            answer_done(stream, node.jobs(since))
        }
        Request::Assignment { since, wait_ms } => {
            wait_for_jobs(node, stream, since, wait_ms);
            let node_me = node.me();
            let answer = |assignment| AssignmentAnswer { node: node_me, assignment };
            answer_done(stream, node.assignment().map(answer))
        }
        Request::TellJobs(command) => tell_jobs(node, stream, *command),
        Request::Cell { since, wait_ms } => {
            if let Some(since) = since {
                wait_while(stream, wait_ms, |left| node.wait_for_cell(since, left));
            }
            answer_done(stream, node.cell())
        }
        Request::TellCell(command) => tell_cell(node, stream, *command),
        Request::HandlerCalls { .. } | Request::EndHandlerCall(_) | Request::TellNeighbours(_)
            if matches!(stream, Stream::Tls(_)) =>
        {
            refuse(stream, "links, and calls of handlers, are for the process beside the node")
        }
        Request::HandlerCalls { since, wait_ms } => handler_calls(node, stream, since, wait_ms),
        Request::EndHandlerCall(end) => done(stream, node.end_handler_call(end)),
        Request::TellNeighbours(all) => tell_neighbours(node, stream, all),
        Request::Bench(ask) => bench::run(node, stream, &ask),
    }
}

/// A node's certificate is for joining with this node; an administrator's gives no key of the ring
/// away.
pub(super) fn permits(stream: &Stream, request: &Request) -> Result<(), &'static str> {
    let Some(role) = stream.role() else { return Ok(()) };
    match (role, request) {
        (Role::Node(_), Request::Welcome {}) => Ok(()),
        (Role::Node(me), Request::Admit { node }) if node.id == me => Ok(()),
        (Role::Node(_), _) => {
            Err("a node's certificate is for joining with that node alone: use one that \
            `steadfast init` made as admin")
        }
        (_, Request::Welcome {}) => Err("the cluster's key is given to nodes alone: ask with the \
            certificate of the node that is to come, or at a node's own host"),
        _ => Ok(()),
    }
}

fn done(stream: &mut Stream, done: Done<()>) -> io::Result<Answered> {
    answer_done(stream, done.map(|()| DoneAnswer { done: true }))
}

fn told(node: &dyn Handler, group: String, state: &[u8], bytes: bool) -> StateAnswer {
    StateAnswer {
        node: node.me().node,
        group,
        bytes: state.len(),
        digest: digest(state),
        state_hex: bytes.then(|| hex(state)),
    }
}

fn bind(
    node: &dyn Handler,
    name: String,
    address: String,
    terms: Option<Terms>,
) -> Done<registry::Answer> {
    let seen = node.registry_epoch()?;
    let terms = terms.unwrap_or(node.registry_terms());
    let (address, keeper) = (Address::At(address), Some(node.me()));
    node.register(registry::Command::Bind { name, address, keeper, terms, seen })
}

fn registry(
    node: &dyn Handler,
    stream: &mut Stream,
    ask: &Ask,
    wait_ms: u32,
) -> io::Result<Answered> {
    if let Some(since) = ask.since {
        wait_while(stream, wait_ms, |left| node.wait_for_registry(since, left));
    }
    answer_done(stream, node.look_up(ask))
}

/// Waits until there is something new, or the timeout ends, or nobody is there any more. `nothing`
/// waits for so long, and says that there may still be something.
fn wait_while(stream: &Stream, wait_ms: u32, nothing: impl Fn(Duration) -> bool) {
    let until = Instant::now() + Duration::from_millis(wait_ms.into()).min(LONGEST_WATCH);
    loop {
        let left = until.saturating_duration_since(Instant::now()).min(GONE_CHECK);
        if !nothing(left) || left.is_zero() || stream.is_gone() {
            return;
        }
    }
}

fn wait_for_jobs(node: &dyn Handler, stream: &Stream, since: Option<u64>, wait_ms: u32) {
    if let Some(since) = since {
        wait_while(stream, wait_ms, |left| node.wait_for_jobs(since, left));
    }
}

fn tell_jobs(
    node: &dyn Handler,
    stream: &mut Stream,
    command: job::Command,
) -> io::Result<Answered> {
    if matches!(stream, Stream::Tls(_)) {
        return refuse(
            stream,
            "jobs are submitted and steered at a node's own host only, by its admin socket: who may do so \
             can do all that the nodes' users can on their hosts",
        );
    }
    let answer = |answer| match answer {
        Ok(taken) => JobsAnswer::Taken(taken),
        Err(void) => JobsAnswer::Void(void),
    };
    answer_done(stream, node.tell_jobs(command).map(answer))
}

fn handler_calls(
    node: &dyn Handler,
    stream: &mut Stream,
    since: u64,
    wait_ms: u32,
) -> io::Result<Answered> {
    wait_while(stream, wait_ms, |left| node.wait_for_handler_calls(since, left));
    answer_done(stream, Ok(node.handler_calls(since)))
}

fn tell_neighbours(
    node: &dyn Handler,
    stream: &mut Stream,
    all: Vec<Neighbour>,
) -> io::Result<Answered> {
    if all.len() > MAX_NEIGHBOURS {
        return refuse(stream, "a node has fewer links");
    }
    node.keep_neighbours(all);
    done(stream, Ok(()))
}

fn tell_cell(
    node: &dyn Handler,
    stream: &mut Stream,
    command: cells::Command,
) -> io::Result<Answered> {
    if matches!(stream, Stream::Tls(_)) && !is_by_people(&command) {
        return refuse(
            stream,
            "a cell's nodes say this to its book, each at its own host, by its admin socket; \
             administrators may export, unexport, find and promote",
        );
    }
    answer_done(stream, node.tell_cell(command).map(CellAnswer::from))
}

fn run(node: &dyn Handler, stream: &mut Stream, program: ProgramConfig) -> io::Result<Answered> {
    if matches!(stream, Stream::Tls(_)) {
        return refuse(
            stream,
            "programs are run at the node's own host only, by its admin socket: who may do so \
                         can do all that the node's user can there",
        );
    }
    answer_done(stream, node.run_program(program))
}

fn deploy(
    node: &dyn Handler,
    stream: &mut Stream,
    deployment: Deployment,
    dry: bool,
) -> io::Result<Answered> {
    if matches!(stream, Stream::Tls(_)) {
        return refuse(
            stream,
            "services are deployed at a node's own host only, by its admin socket: who may do so can do all \
                         that the nodes' users can on their hosts",
        );
    }
    let group = deployment.group.clone();
    let done = node.preview(deployment.clone()).and_then(|seats| {
        if !dry {
            node.command(Command::Deploy(deployment))?;
        }
        Ok(DeployAnswer { group, seats })
    });
    answer_done(stream, done)
}

fn say(node: &dyn Handler, stream: &mut Stream, command: Command) -> io::Result<Answered> {
    let said = node.command(command);
    answer_done(stream, said.map(|said| DoneAnswer { done: said == Answer::Done }))
}

fn events(node: &dyn Handler, stream: &mut Stream, follow: bool, calls: bool) -> io::Result<()> {
    let interest = if calls { Interest::All } else { Interest::Membership };
    let (past, events) = node.subscribe(interest);
    let me = node.me().node;
    for (time, event) in past {
        answer(stream, &EventRecord::new(time, me, &event))?;
    }
    if !follow {
        return stream.shutdown();
    }
    loop {
        match events.recv_timeout(GONE_CHECK) {
            Ok((time, event)) => answer(stream, &EventRecord::new(time, me, &event))?,
            Err(RecvTimeoutError::Timeout) if !stream.is_gone() => {}
            Err(_) => return stream.shutdown(),
        }
    }
}
