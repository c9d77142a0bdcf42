//! A book of one's own, in memory and in this process: for tests and measurements of one agent.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use job::{Assignment, Command, Director, Jobs, Sight, Taken, Void};
use os::clock::{monotonic, wall_clock};
use wire::{Incarnation, Member, NodeId, Time};

use crate::ledger::{Ledger, LedgerError};

/// The only node.
const ME: Member = Member { node: NodeId(1), incarnation: Incarnation(1) };

#[derive(Debug, Default)]
struct Held {
    jobs: Jobs,
    director: Director,
}

/// A book that is directed as soon as something changes. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Book(Arc<(Mutex<Held>, Condvar)>);

impl Book {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a command.
    ///
    /// # Errors
    /// It is void.
    pub fn take(&self, command: &Command) -> Result<Taken, Void> {
        let taken = self.held().jobs.take(Time(wall_clock()), command);
        self.direct();
        taken
    }

    /// Says what the director says; again when something is due.
    fn direct(&self) {
        let mut held = self.held();
        let Held { jobs, director } = &mut *held;
        let sight = Sight { members: vec![ME], ..Sight::default() };
        for command in director.look(monotonic(), &sight, jobs) {
            // It is void where the book has gone on.
            let _ = jobs.take(Time(wall_clock()), &command);
        }
        let due = director.next_look(monotonic(), jobs);
        self.0.1.notify_all();
        drop(held);
        if let Some(due) = due {
            let book = self.clone();
            thread::spawn(move || {
                thread::sleep(due.since(monotonic()));
                book.direct();
            });
        }
    }

    /// Waits until this is so of the book; `None`: it is not so after so long.
    pub fn wait<T>(&self, within: Duration, so: impl Fn(&Jobs) -> Option<T>) -> Option<T> {
        let mut found = None;
        let nothing = |held: &mut Held| {
            found = so(&held.jobs);
            found.is_none()
        };
        drop(self.0.1.wait_timeout_while(self.held(), within, nothing));
        found
    }
}

impl Ledger for Book {
    fn me(&mut self) -> Result<Member, LedgerError> {
        Ok(ME)
    }

    fn wait(&mut self, since: Option<u64>) -> Result<Assignment, LedgerError> {
        let same = |held: &mut Held| since == Some(held.jobs.version());
        let held = self.0.1.wait_while(self.held(), same);
        Ok(held.unwrap_or_else(PoisonError::into_inner).jobs.assignment(ME))
    }

    fn say(&mut self, command: &Command) -> Result<Result<Taken, Void>, LedgerError> {
        Ok(self.take(command))
    }
}
