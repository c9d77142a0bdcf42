//! Operations as clients saw them.

use wire::Time;

/// How an operation ended, as far as its client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End<R> {
    /// It was answered.
    Answered {
        /// When the client had the answer.
        at: Time,
        /// The answer.
        reply: R,
    },
    /// It certainly was not executed, and will not be.
    Failed,
    /// It may have been executed, may yet be, or not at all.
    Unknown,
}

/// One operation of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<C, R> {
    /// The client, by a number of its own in this history. One client may have several calls under
    /// way.
    pub client: u32,
    /// The call.
    pub call: C,
    /// The time just before the call.
    pub invoked: Time,
    /// Its end.
    pub end: End<R>,
}

impl<C, R> Operation<C, R> {
    /// The answer and its time, if there is one.
    pub fn answer(&self) -> Option<(Time, &R)> {
        match &self.end {
            End::Answered { at, reply } => Some((*at, reply)),
            End::Failed | End::Unknown => None,
        }
    }
}

/// Names an operation of a history while it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(usize);

/// Operations, while they happen and afterwards. An operation that never ends is [`End::Unknown`].
///
/// All times must be of one clock that never goes back.
#[derive(Clone, Debug)]
pub struct History<C, R> {
    operations: Vec<Operation<C, R>>,
}

impl<C, R> Default for History<C, R> {
    fn default() -> Self {
        History { operations: Vec::new() }
    }
}

impl<C, R> History<C, R> {
    /// An operation begins.
    pub fn invoke(&mut self, client: u32, at: Time, call: C) -> Handle {
        self.operations.push(Operation { client, call, invoked: at, end: End::Unknown });
        Handle(self.operations.len() - 1)
    }

    /// Its answer is there.
    pub fn answered(&mut self, handle: Handle, at: Time, reply: R) {
        self.operations[handle.0].end = End::Answered { at, reply };
    }

    /// It is certain that it was not and will not be executed.
    pub fn failed(&mut self, handle: Handle) {
        self.operations[handle.0].end = End::Failed;
    }

    /// Another client's operations are part of the same history.
    pub fn join(&mut self, other: History<C, R>) {
        self.operations.extend(other.operations);
    }

    /// All operations.
    pub fn operations(&self) -> &[Operation<C, R>] {
        &self.operations
    }

    /// How many were answered, certainly not executed, and neither.
    pub fn ends(&self) -> (usize, usize, usize) {
        let count = |wanted: fn(&End<R>) -> bool| {
            self.operations.iter().filter(|operation| wanted(&operation.end)).count()
        };
        (
            count(|end| matches!(end, End::Answered { .. })),
            count(|end| matches!(end, End::Failed)),
            count(|end| matches!(end, End::Unknown)),
        )
    }
}
