//! Keeping the cluster's keys: the file is written by a thread of its own, because it has to be on
//! the disk before anybody relies on it, and the data plane waits for no disk.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::Duration;

use config::key_file;
use engine::KeyCommand;
use os::threads;
use os::waker::Waker;
use seal::{ClusterKey, Keys, Seal};
use wire::keys::{KeyName, OfferedKey};
use wire::limits::MAX_ORDERS;

use crate::order::{Kept, Order};

/// How long a disk that does not take the file is left alone.
const RETRY: Duration = Duration::from_secs(1);

/// The thread's other end. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct KeyFileWriter {
    commands: SyncSender<KeyCommand>,
}

/// The name of a key.
pub(crate) fn name(key: &ClusterKey) -> KeyName {
    KeyName { number: key.number(), fingerprint: key.fingerprint().0 }
}

/// The key that is to follow this one.
pub(crate) fn next_key(sealing: KeyName) -> std::io::Result<OfferedKey> {
    // 1 to 255, round and round.
    let key = ClusterKey::new(sealing.number % u8::MAX + 1, os::random::secret()?);
    Ok(OfferedKey { name: name(&key), secret: key.secret().clone() })
}

impl KeyFileWriter {
    /// Keeps `keys` in the file at `path`.
    pub fn start(
        path: PathBuf,
        keys: Keys,
        orders: SyncSender<Order>,
        waker: Arc<Waker>,
        running: Sender<()>,
    ) -> std::io::Result<KeyFileWriter> {
        let (commands, waiting) = sync_channel(MAX_ORDERS);
        let writer = Writer { path, keys, orders, waker, _running: running };
        threads::spawn("steadfast keys", move || writer.run(&waiting))?;
        Ok(KeyFileWriter { commands })
    }

    /// Has a command carried out. Its result arrives as an order.
    pub fn carry_out(&self, command: KeyCommand) {
        // Full only while the disk takes nothing: the next component's installation says it again.
        let _ = self.commands.try_send(command);
    }
}

impl Kept {
    /// Does in memory what was done in the file, and says what the stack is to know.
    pub fn apply(self, seal: &mut Seal) -> Option<(KeyName, bool)> {
        match self {
            Kept::Stored(key) => {
                let name = name(&key);
                seal.add_key(key);
                Some((name, false))
            }
            Kept::Sealing(name) => seal.seal_with(name.number).is_ok().then_some((name, true)),
            Kept::Only => {
                seal.retire_other_keys();
                None
            }
            Kept::Forgotten(name) => {
                seal.remove_key(name.number);
                None
            }
        }
    }
}

struct Writer {
    path: PathBuf,
    keys: Keys,
    orders: SyncSender<Order>,
    waker: Arc<Waker>,
    /// Dropped when the thread ends.
    _running: Sender<()>,
}

impl Writer {
    fn run(mut self, commands: &Receiver<KeyCommand>) {
        let mut backlog = VecDeque::new();
        loop {
            let Some(command) = backlog.pop_front().or_else(|| commands.recv().ok()) else {
                return;
            };
            let mut keys = self.keys.clone();
            let kept = match carry_out(&mut keys, command) {
                Ok(kept) => kept,
                Err(problem) => {
                    tracing::error!("{problem}");
                    continue;
                }
            };
            while is_changed(&self.keys, &keys) {
                match key_file::replace(&self.path, &keys) {
                    Ok(()) => self.keys = keys.clone(),
                    Err(error) => tracing::error!(%error, "the key change waits for this node"),
                }
                if is_changed(&self.keys, &keys) {
                    match commands.recv_timeout(RETRY) {
                        // As at a full queue: the next component's installation says it again.
                        Ok(_) if backlog.len() >= MAX_ORDERS => {}
                        Ok(later) => backlog.push_back(later),
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            }
            if self.orders.send(Order::KeyKept(kept)).is_err() {
                return;
            }
            self.waker.wake();
        }
    }
}

fn is_changed(old: &Keys, new: &Keys) -> bool {
    !old.iter().map(name).eq(new.iter().map(name))
}

fn carry_out(keys: &mut Keys, command: KeyCommand) -> Result<Kept, String> {
    let has = |keys: &Keys, wanted: KeyName| {
        keys.get(wanted.number).is_some_and(|key| name(key) == wanted)
    };
    match command {
        KeyCommand::Store(OfferedKey { name: offered, secret }) => {
            let key = ClusterKey::new(offered.number, secret);
            if name(&key) != offered {
                return Err(format!("key {} is not what it is called: not kept", offered.number));
            }
            if !has(keys, offered) {
                if keys.sealing().number() == offered.number {
                    return Err(format!(
                        "key {} is offered anew, but another of this number seals here: correct \
                         this node's key file by another node's",
                        offered.number
                    ));
                }
                keys.add(key.clone());
            }
            Ok(Kept::Stored(key))
        }
        KeyCommand::SealWith(wanted) if has(keys, wanted) => {
            keys.seal_with(wanted.number).map_err(|missing| missing.to_string())?;
            Ok(Kept::Sealing(wanted))
        }
        KeyCommand::SealWith(wanted) => Err(format!(
            "the cluster seals with a key {} that is not in this node's file: take the file from \
             another node",
            wanted.number
        )),
        KeyCommand::Keep(wanted) if name(keys.sealing()) == wanted => {
            keys.retire_others();
            Ok(Kept::Only)
        }
        KeyCommand::Keep(wanted) => {
            Err(format!("key {} does not seal here: the others are kept", wanted.number))
        }
        KeyCommand::Forget(unwanted) => {
            if has(keys, unwanted) && name(keys.sealing()) != unwanted {
                keys.remove(unwanted.number);
            }
            Ok(Kept::Forgotten(unwanted))
        }
    }
}
