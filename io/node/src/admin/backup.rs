//! States that people keep, over the admin protocol: a line, and the file's bytes behind it.

use std::io::{self, BufReader, Read, Write};
use std::sync::{MutexGuard, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::limits::MAX_BACKUP;
use wire::{NodeId, ViewNumber};

use super::server::{Server, answer};
use super::stream::Stream;
use super::{DoneAnswer, Refused};
use crate::backups::Backup;

/// How long the bytes of a file may stand still on their way here.
const STALLED: Duration = Duration::from_secs(30);

/// Bytes that are read past when a file is refused, so that whoever sends it hears why.
const PIECE: usize = 64 << 10;

/// The answer to [`Request::Save`](super::Request::Save): so many bytes of a file follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveAnswer {
    /// The node.
    pub node: NodeId,
    /// The group.
    pub group: String,
    /// Bytes of the file.
    pub bytes: usize,
}

/// The answer to [`Request::Restore`](super::Request::Restore): the group begins with the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreAnswer {
    /// The node, which has the state until a replica has.
    pub node: NodeId,
    /// The group.
    pub group: String,
    /// The view that says so.
    pub view: ViewNumber,
}

impl Server {
    pub(super) fn save(&self, stream: &mut Stream, group: &str) -> io::Result<()> {
        let backup = match self.control.save(group) {
            Ok(backup) => backup,
            Err(error) => return answer(stream, &Refused { error: error.to_string() }),
        };
        let head = backup.head();
        let bytes = head.len() + backup.state.len();
        let node = self.control.me.node;
        answer(stream, &SaveAnswer { node, group: backup.group.clone(), bytes })?;
        stream.write_all(&head)?;
        backup.state.chunks(PIECE).try_for_each(|piece| stream.write_all(piece))
    }

    pub(super) fn restore(
        &self,
        reader: &mut BufReader<Stream>,
        (group, bytes, replace): (&str, usize, bool),
    ) -> io::Result<()> {
        let file = match self.take_in(reader, bytes)? {
            Ok(file) => file,
            Err(error) => return answer(reader.get_mut(), &Refused { error }),
        };
        let done = self.begin_with(&file, group, replace);
        let stream = reader.get_mut();
        match done {
            Ok(done) => answer(stream, &done),
            Err(error) => answer(stream, &Refused { error }),
        }
    }

    /// The file's bytes, or why they are not wanted. One file at a time: each has its bytes in memory.
    fn take_in(
        &self,
        reader: &mut BufReader<Stream>,
        bytes: usize,
    ) -> io::Result<Result<Bytes, String>> {
        let before = reader.get_ref().read_timeout()?;
        reader.get_ref().set_read_timeout(Some(STALLED))?;
        let taken = match self.upload() {
            _ if bytes > MAX_BACKUP => {
                read_past(reader, bytes)?;
                Err(format!("the file has {bytes} bytes, the limit is {MAX_BACKUP}"))
            }
            None => {
                read_past(reader, bytes)?;
                Err("another file is being restored at this node: wait for that".into())
            }
            Some(_turn) => {
                let mut file = Vec::new();
                reader.take(bytes as u64).read_to_end(&mut file)?;
                if file.len() < bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(file.into())
            }
        };
        reader.get_ref().set_read_timeout(before)?;
        Ok(taken)
    }

    fn upload(&self) -> Option<MutexGuard<'_, ()>> {
        match self.uploads.try_lock() {
            Ok(turn) => Some(turn),
            // Nothing is behind it that could be half done.
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn begin_with(
        &self,
        file: &Bytes,
        group: &str,
        replace: bool,
    ) -> Result<RestoreAnswer, String> {
        let (backup, _) = Backup::decode(file).map_err(|error| error.to_string())?;
        if backup.group != group {
            return Err(format!(
                "the file has the state of group {}, not of {group}: name that group, or give another file",
                backup.group
            ));
        }
        let view = self.control.restore(backup, replace).map_err(|error| error.to_string())?;
        Ok(RestoreAnswer { node: self.control.me.node, group: group.into(), view })
    }

    pub(super) fn discard(&self, stream: &mut Stream, group: &str) -> io::Result<()> {
        match self.control.discard(group) {
            Ok(()) => answer(stream, &DoneAnswer { done: true }),
            Err(error) => answer(stream, &Refused { error: error.to_string() }),
        }
    }
}

fn read_past(reader: &mut BufReader<Stream>, bytes: usize) -> io::Result<()> {
    io::copy(&mut reader.take(bytes as u64), &mut io::sink()).map(drop)
}
