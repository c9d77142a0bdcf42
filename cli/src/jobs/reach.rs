//! Which cluster jobs run on: the one that the command line or the context names, that of this host's
//! node, or one of this machine's own.

use std::path::Path;
use std::time::{Duration, Instant};

use admin::jobs::JobsStatus;
use job::{Command, Job, Taken};
use steadfast::admin::{AdminError, Client as AdminClient};

use super::own;
use crate::commands::Failure;
use crate::commands::at::At;
use crate::commands::node::RUNTIME;

/// A node that lives answers at once.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A node of the cluster, if one is named or there is one on this host.
pub fn there(at: &At) -> Result<Option<AdminClient>, Failure> {
    let system = Path::new(RUNTIME).join("node.sock");
    let node = if at.is_said()? || system.exists() { Some(at.connect()?) } else { own::running()? };
    if let Some(node) = &node {
        node.set_timeout(Some(TIMEOUT)).map_err(Failure::failed)?;
    }
    Ok(node)
}

/// A node of the cluster; one of this machine's own is started for it.
pub fn node(at: &At, nodes: u32) -> Result<AdminClient, Failure> {
    let node = match there(at)? {
        Some(node) => node,
        None => own::start(nodes)?,
    };
    node.set_timeout(Some(TIMEOUT)).map_err(Failure::failed)?;
    Ok(node)
}

/// A node of a cluster that is there, running or not.
pub fn existing(at: &At) -> Result<AdminClient, Failure> {
    match there(at)? {
        Some(node) => Ok(node),
        None if own::exists()? => node(at, 1),
        None => Err(Failure::Failed(
            "no job was ever run on this machine, and no cluster is named: `steadfast job run -- PROGRAM` runs one, \
             `--admin PATH` names a node"
                .into(),
        )),
    }
}

/// How long a node may take to get the book, after its start.
const CURRENT_WITHIN: Duration = Duration::from_secs(10);

/// The book as a node has it, once it has it as the group does. Another node is asked if this one goes
/// meanwhile.
pub fn book(
    node: &mut AdminClient,
    mut again: impl FnMut() -> Result<AdminClient, Failure>,
) -> Result<JobsStatus, Failure> {
    let until = Instant::now() + CURRENT_WITHIN;
    loop {
        let late = Instant::now() > until;
        match node.jobs(None, Duration::ZERO) {
            Ok(status) if status.current => return Ok(status),
            Ok(_) if late => {
                return Err(Failure::Failed(
                    "the node does not have the book of jobs: is there a quorum (`steadfast status`)?"
                        .into(),
                ));
            }
            Err(error @ (AdminError::Io(_) | AdminError::Connect { .. })) if !late => {
                tracing::debug!(%error, "another node is asked");
                if let Ok(other) = again() {
                    *node = other;
                }
            }
            Err(error) => return Err(Failure::failed(error)),
            Ok(_) => {}
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A job of the book, by its name.
pub fn named<'a>(status: &'a JobsStatus, name: &str) -> Result<(u64, &'a Job), Failure> {
    let found = status.jobs.as_ref().and_then(|jobs| jobs.named(name));
    found.ok_or_else(|| {
        let jobs = status.jobs.iter().flat_map(|jobs| jobs.jobs());
        let names: Vec<&str> = jobs.map(|(_, job)| job.spec.name.as_str()).collect();
        let known = if names.is_empty() { "none".into() } else { names.join(", ") };
        Failure::Failed(format!("there is no job {name:?}; there are: {known}"))
    })
}

/// Says something to the book.
pub fn tell(node: &mut AdminClient, command: &Command) -> Result<Taken, Failure> {
    let told = node.tell_jobs(command).map_err(Failure::failed)?;
    told.map_err(|void| Failure::Failed(void.to_string()))
}
