//! Keeping the cluster's nodes: the file is written by a thread of its own, because it has to be on
//! the disk before anybody relies on it, and the data plane waits for no disk.
//!
//! ```text
//! | "SFRO" | check 4: CRC-32C of the rest, little-endian | the roster |
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::time::Duration;

use os::durable;
use os::threads;
use os::waker::Waker;
use wire::roster::Roster;

use crate::StartError;
use crate::order::Order;

const FILE: &str = "roster";
const MAGIC: &[u8; 4] = b"SFRO";

/// How long a disk that does not take the file is left alone.
const RETRY: Duration = Duration::from_secs(1);

/// The thread's other end. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RosterFile(Sender<Roster>);

impl RosterFile {
    /// Keeps rosters in this folder.
    pub fn start(
        data_dir: &Path,
        orders: SyncSender<Order>,
        waker: Arc<Waker>,
        running: Sender<()>,
    ) -> io::Result<RosterFile> {
        let (sender, rosters) = channel();
        let path = data_dir.join(FILE);
        let body = move || {
            let _running = running;
            keep_all(&path, &rosters, &orders, &waker);
        };
        threads::spawn("steadfast roster", body)?;
        Ok(RosterFile(sender))
    }

    /// Has a roster kept: an order tells when it is.
    pub fn keep(&self, roster: Roster) {
        // The thread ends after the data plane.
        let _ = self.0.send(roster);
    }
}

/// The roster of an earlier life; `None` if the nodes were never changed.
pub(crate) fn load(data_dir: &Path) -> Result<Option<Roster>, StartError> {
    let path = data_dir.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StartError::DataDir { path: data_dir.into(), source }),
    };
    decode(&bytes).map(Some).ok_or(StartError::Roster(path))
}

fn encode(roster: &Roster) -> Vec<u8> {
    let bytes = roster.encode();
    let mut file = MAGIC.to_vec();
    file.extend(crc32c::crc32c(&bytes).to_le_bytes());
    file.extend_from_slice(&bytes);
    file
}

fn decode(file: &[u8]) -> Option<Roster> {
    let (check, bytes) = file.strip_prefix(MAGIC)?.split_first_chunk()?;
    (u32::from_le_bytes(*check) == crc32c::crc32c(bytes)).then_some(())?;
    Roster::decode(bytes).ok()
}

fn keep_all(path: &Path, rosters: &Receiver<Roster>, orders: &SyncSender<Order>, waker: &Waker) {
    while let Ok(mut roster) = rosters.recv() {
        loop {
            // The newest says all that earlier ones did.
            if let Some(newer) = rosters.try_iter().last() {
                roster = newer;
            }
            match durable::replace_file(path, 0o644, &encode(&roster)) {
                Ok(()) => break,
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "a change of the nodes waits for \
                        this node: it cannot write its roster");
                    match rosters.recv_timeout(RETRY) {
                        Ok(newer) => roster = newer,
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            }
        }
        if orders.send(Order::RosterKept(roster.stamp)).is_err() {
            return;
        }
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use wire::NodeId;
    use wire::roster::Seat;

    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written_and_a_damaged_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()).unwrap(), None);
        let seat = Seat { node: NodeId(4), ring: vec!["192.0.2.4:7200".parse().unwrap()] };
        let roster = Roster { seats: vec![seat], ..Roster::default() };
        let file = encode(&roster);
        std::fs::write(folder.path().join(FILE), &file).unwrap();
        assert_eq!(load(folder.path()).unwrap(), Some(roster));
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            std::fs::write(folder.path().join(FILE), damaged).unwrap();
            let error = load(folder.path()).unwrap_err().to_string();
            assert!(error.contains("roster"), "{error}");
        }
    }
}
