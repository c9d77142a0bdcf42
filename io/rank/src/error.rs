//! Why a rank cannot go on.

use std::io;

/// Why a rank cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The environment names an agent that cannot be reached.
    #[error(
        "the agent of this job cannot be reached at {path}: {source}; start ranks by `steadfast job run`"
    )]
    Agent {
        /// Its socket.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The environment says something that no agent says.
    #[error("{0} is not what an agent says there: start ranks by `steadfast job run`")]
    Environment(&'static str),
    /// This start is not the present one: another one runs, or the job was stopped.
    #[error("this start of the rank is over: {0}")]
    Over(String),
    /// The agent has been away for too long.
    #[error("the agent of this job is gone, and no other has come within {0} seconds")]
    Alone(u64),
    /// An array is asked for otherwise than the state has it.
    #[error(
        "array {name:?} is \"{restored}\" in the state, and \"{asked}\" in the program: give it another name"
    )]
    Form {
        /// Its name.
        name: String,
        /// Its form in the state.
        restored: String,
        /// Its form in the program.
        asked: String,
    },
    /// A field of the state has become longer or shorter.
    #[error(
        "the state that is to be saved has no field {name:?} of the form {form:?}, as that of \
         job::run: give all turns that state, and its vectors all their room at first"
    )]
    Field {
        /// Its name.
        name: String,
        /// Its form at first.
        form: String,
    },
    /// A name is the system's own.
    #[error("names that begin with \"steadfast.\" are not for programs: {0:?}")]
    Name(String),
    /// A name is too long.
    #[error(
        "name or form of {name:?} is too long: with the system's prefix they have at most {most} bytes"
    )]
    Long {
        /// It, with the prefix.
        name: String,
        /// The limit.
        most: usize,
    },
    /// There are too many arrays.
    #[error("a rank has at most {0} arrays, objects and results together: put several into one")]
    Many(usize),
    /// An image could not be saved, where the job demands it.
    #[error("the checkpoint failed: {0}")]
    NotSaved(String),
    /// The system refuses memory, or a file.
    #[error("{0}")]
    Io(#[from] io::Error),
}
