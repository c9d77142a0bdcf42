//! How answers are written.

use std::io::{self, Write};

use serde::Serialize;

use crate::message::Refused;
use crate::stream::Stream;

/// The end of a request, as its answer says.
#[derive(Debug)]
pub(super) enum Answered {
    /// It was done.
    Done,
    /// It was not, for this reason.
    Refused(String),
}

/// Writes one line.
pub(super) fn answer(stream: &mut Stream, value: &impl Serialize) -> io::Result<()> {
    stream.write_all(&line(value))
}

/// Writes what was done, or why it was not.
pub(super) fn answer_done(
    stream: &mut Stream,
    done: Result<impl Serialize, String>,
) -> io::Result<Answered> {
    match done {
        Ok(done) => answer(stream, &done).map(|()| Answered::Done),
        Err(error) => refuse(stream, error),
    }
}

/// Writes why something is not done.
pub(super) fn refuse(stream: &mut Stream, error: impl Into<String>) -> io::Result<Answered> {
    let error = error.into();
    answer(stream, &Refused { error: error.clone() })?;
    Ok(Answered::Refused(error))
}

/// An answer as it is written.
pub(super) fn line(value: &impl Serialize) -> Vec<u8> {
    // Our own types have a JSON form: no map has keys that are not texts.
    let mut line = serde_json::to_vec(value).expect("an answer has a JSON form");
    line.push(b'\n');
    line
}
