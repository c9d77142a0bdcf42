//! Why a rank cannot go on.

use std::io;

use channel::ChannelError;
use wire::rank::Frame;

/// Letters of a reason.
const WHY: usize = 120;

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
    /// The ranks cannot go on with what they have sent each other.
    #[error(transparent)]
    Channel(#[from] channel::ChannelError),
    /// The program does not do what it did before.
    #[error(
        "the program is not deterministic: outside the turns of its loops it does not send, receive          or ask what it did before"
    )]
    Otherwise,
    /// The channels in the state make no sense.
    #[error("the messages in the state make no sense: ask for an older one, or begin anew")]
    Messages,
    /// A log that another rank writes makes no sense.
    #[error("messages of rank {0}: {1}")]
    Broken(u32, memlog::Broken),
    /// The bytes of a message are not there any more.
    #[error("rank {0} has let this message go: read messages before the next safe point")]
    Gone(u32),
    /// There are too many messages outside loops.
    #[error(
        "a rank keeps {0} MiB of messages that come outside its loops, for its next start: have          them only where it begins anew (if job.fresh)"
    )]
    Preamble(usize),
    /// A log is as long as it may be.
    #[error(
        "4 GiB of messages to rank {0} wait for its next image, and it reaches no safe point: have \
         less in a turn of a loop"
    )]
    Full(u32),
    /// A message is too long.
    #[error("a message has at most 1 GiB, this one has {0} bytes: send it in parts")]
    LongMessage(u64),
    /// A tag is not a program's.
    #[error("tags of programs are below 2^31, and {0} is not: take another")]
    Tag(u32),
    /// A message has no whole elements.
    #[error(
        "the message of rank {from} with tag {tag} has {bytes} bytes, which are no elements of {each}: \
         receive the type that is sent"
    )]
    Elements {
        /// Its sender.
        from: u32,
        /// Its tag.
        tag: u32,
        /// Its bytes.
        bytes: usize,
        /// Those of an element.
        each: usize,
    },
    /// A message has another length than the memory for it.
    #[error(
        "the message of rank {from} with tag {tag} has {bytes} bytes, and there is room for {room}: \
         give as many elements as are sent, of the same type"
    )]
    Length {
        /// Its sender.
        from: u32,
        /// Its tag.
        tag: u32,
        /// Its bytes.
        bytes: usize,
        /// The bytes for it.
        room: usize,
    },
    /// Not as many parts as ranks.
    #[error("there are {given} parts for {ranks} ranks: give one for each")]
    Parts {
        /// Parts that were given.
        given: usize,
        /// Ranks of the job.
        ranks: u32,
    },
    /// Nobody else is there.
    #[error("there is no agent, so nobody else is there: start ranks by `steadfast job run`")]
    Nobody,
    /// It waits for itself.
    #[error("the only rank waits for a message that nobody sends")]
    Deadlock,
    /// The system refuses memory, or a file.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl JobError {
    /// The rank cannot go on from what it and others did: by itself it never will. So its agent hears.
    pub(crate) fn divergence(&self) -> Option<Frame> {
        let diverged = match self {
            JobError::Channel(error) => {
                !matches!(error, ChannelError::NoRank(..) | ChannelError::Ahead(..))
            }
            JobError::Otherwise | JobError::Messages | JobError::Gone(_) => true,
            _ => false,
        };
        let why = || self.to_string().chars().take(WHY).collect();
        diverged.then(|| Frame::Diverged(why()))
    }
}
