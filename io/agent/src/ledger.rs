//! The way to the book of jobs.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use admin::{AdminError, Client};
use job::{Assignment, Command, Taken, Void};
use wire::Member;

/// How long an answer waits for something new.
const WATCH: Duration = Duration::from_secs(30);

/// Pause before a command is said again that the cluster could not order.
const AGAIN: Duration = Duration::from_millis(200);

/// The book of jobs, as an agent sees it. Each thread has its own.
pub trait Ledger: Send {
    /// The node, in its present life.
    ///
    /// # Errors
    /// The node is gone.
    fn me(&mut self) -> Result<Member, LedgerError>;

    /// The node's work, as soon as the book has another version than this.
    ///
    /// # Errors
    /// The node is gone.
    fn wait(&mut self, since: Option<u64>) -> Result<Assignment, LedgerError>;

    /// Says something, and waits for the book's answer as long as that takes.
    ///
    /// # Errors
    /// The node is gone.
    fn say(&mut self, command: &Command) -> Result<Result<Taken, Void>, LedgerError>;
}

/// The node is gone, or is another life of it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LedgerError(pub String);

/// The book, through the admin socket of a node.
#[derive(Debug)]
pub struct Node {
    path: PathBuf,
    client: Option<Client>,
    me: Option<Member>,
}

impl Node {
    /// The node whose admin socket is there.
    pub fn new(path: &Path) -> Node {
        Node { path: path.into(), client: None, me: None }
    }

    /// Asks. A connection that breaks is made once more: a node that is gone refuses that.
    fn ask<T>(
        &mut self,
        question: impl Fn(&mut Client) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        if let Some(client) = &mut self.client {
            match question(client) {
                Err(AdminError::Io(_)) => self.client = None,
                answer => return answer,
            }
        }
        question(self.client.insert(Client::connect(&self.path)?))
    }
}

impl Ledger for Node {
    fn me(&mut self) -> Result<Member, LedgerError> {
        self.wait(None)?;
        Ok(self.me.expect("it was told"))
    }

    fn wait(&mut self, since: Option<u64>) -> Result<Assignment, LedgerError> {
        loop {
            match self.ask(|client| client.assignment(since, WATCH)) {
                Ok(answer) => {
                    let me = *self.me.get_or_insert(answer.node);
                    if me != answer.node {
                        return Err(LedgerError("the node has begun anew".into()));
                    }
                    if since != Some(answer.assignment.version) {
                        return Ok(answer.assignment);
                    }
                }
                // It has no part in the book at this moment.
                Err(AdminError::Refused(why)) => {
                    tracing::debug!(why, "the node has nothing to say of jobs");
                    thread::sleep(AGAIN);
                }
                Err(error) => return Err(gone(error)),
            }
        }
    }

    fn say(&mut self, command: &Command) -> Result<Result<Taken, Void>, LedgerError> {
        loop {
            match self.ask(|client| client.tell_jobs(command)) {
                Ok(answer) => return Ok(answer),
                Err(AdminError::Refused(why)) => {
                    tracing::debug!(why, "the book does not answer");
                    thread::sleep(AGAIN);
                }
                Err(error) => return Err(gone(error)),
            }
        }
    }
}

fn gone(error: AdminError) -> LedgerError {
    LedgerError(error.to_string())
}
