//! Threads that write images, behind everybody else: what they use costs ranks and services little.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use image::{Parent, Place};
use os::durable::make_folder;
use wire::rank::Snapshot;

use crate::error::AgentError;
use crate::event::Event;
use crate::images::{Saver, folder_of};

/// Images that are written at a time.
const THREADS: usize = 2;

/// A snapshot to be written.
pub(crate) struct Write {
    pub place: Place,
    pub parent: Option<Parent>,
    pub snapshot: Snapshot,
    pub file: File,
}

/// Starts the threads; they end with the sender.
pub(crate) fn start(folder: &Path, events: &Sender<Event>) -> Result<Sender<Write>, AgentError> {
    let (sender, writes) = channel();
    let writes = Arc::new(Mutex::new(writes));
    for _ in 0..THREADS {
        let (folder, writes, events) = (folder.to_owned(), writes.clone(), events.clone());
        let body = move || write(&folder, &writes, &events);
        os::threads::spawn_behind("steadfast write", body).map_err(AgentError::Thread)?;
    }
    Ok(sender)
}

fn write(folder: &Path, writes: &Mutex<Receiver<Write>>, events: &Sender<Event>) {
    loop {
        // Held while it waits: the other one waits for it, then.
        let next = writes.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Write { place, parent, snapshot, file }) = next else { return };
        let save = || -> io::Result<_> {
            let folder = folder_of(folder, place.job, place.rank);
            make_folder(&folder)?;
            Saver::new(&folder).save((&snapshot, &file), place, parent)
        };
        let saved = save();
        let saved = saved.map(|commit| (commit.root, commit.bytes)).map_err(|error| {
            tracing::warn!(%place, %error, "an image cannot be saved");
            format!("{}: {error}", folder.display())
        });
        if events.send(Event::Saved(place, parent, saved)).is_err() {
            return;
        }
    }
}
