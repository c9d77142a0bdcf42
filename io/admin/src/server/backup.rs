//! States that people keep, over the admin protocol: a line, and the file's bytes behind it.

use std::io::{self, BufReader, Read, Write};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use store::backup::Backup;
use wire::limits::MAX_BACKUP;

use super::answer::{Answered, answer, answer_done, refuse};
use super::handler::{Done, Handler};
use crate::message::{RestoreAnswer, SaveAnswer};
use crate::stream::Stream;

/// How long the bytes of a file may stand still on their way here.
const STALLED: Duration = Duration::from_secs(30);

/// Bytes that are read past when a file is refused, so that its sender receives the reason.
const PIECE: usize = 64 << 10;

pub(super) fn save(node: &dyn Handler, stream: &mut Stream, group: &str) -> io::Result<Answered> {
    let backup = match node.save(group) {
        Ok(backup) => backup,
        Err(error) => return refuse(stream, error),
    };
    let head = backup.head();
    let bytes = head.len() + backup.state.len();
    let node = node.me().node;
    answer(stream, &SaveAnswer { node, group: backup.group.clone(), bytes })?;
    stream.write_all(&head)?;
    backup.state.chunks(PIECE).try_for_each(|piece| stream.write_all(piece))?;
    Ok(Answered::Done)
}

/// `uploads`: held while a file is taken in.
pub(super) fn restore(
    node: &dyn Handler,
    uploads: &Mutex<()>,
    reader: &mut BufReader<Stream>,
    (group, bytes, replace): (&str, usize, bool),
) -> io::Result<Answered> {
    let file = match take_in(uploads, reader, bytes)? {
        Ok(file) => file,
        Err(error) => return refuse(reader.get_mut(), error),
    };
    let done = begin_with(node, &file, group, replace);
    answer_done(reader.get_mut(), done)
}

/// The file's bytes, or why they are not wanted. One file at a time: each has its bytes in memory.
fn take_in(
    uploads: &Mutex<()>,
    reader: &mut BufReader<Stream>,
    bytes: usize,
) -> io::Result<Done<Bytes>> {
    let before = reader.get_ref().read_timeout()?;
    reader.get_ref().set_read_timeout(Some(STALLED))?;
    let taken = match upload(uploads) {
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

fn upload(uploads: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    match uploads.try_lock() {
        Ok(turn) => Some(turn),
        // Nothing is behind it that could be half done.
        Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn begin_with(node: &dyn Handler, file: &Bytes, group: &str, replace: bool) -> Done<RestoreAnswer> {
    let (backup, _) = Backup::decode(file).map_err(|error| error.to_string())?;
    if backup.group != group {
        return Err(format!(
            "the file has the state of group {}, not of {group}: name that group, or give another file",
            backup.group
        ));
    }
    let view = node.restore(backup, replace)?;
    Ok(RestoreAnswer { node: node.me().node, group: group.into(), view })
}

fn read_past(reader: &mut BufReader<Stream>, bytes: usize) -> io::Result<()> {
    io::copy(&mut reader.take(bytes as u64), &mut io::sink()).map(drop)
}
