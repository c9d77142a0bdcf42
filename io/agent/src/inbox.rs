//! The way to a thread that also reads logs: it sleeps on one bell for both.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use memlog::Bell;

/// The sender's end. Without it the thread ends, as soon as it wakes.
#[derive(Debug)]
pub(crate) struct Inbox<P> {
    parcels: Sender<P>,
    bell: Arc<Bell>,
    file: Arc<File>,
}

impl<P> Inbox<P> {
    /// A new one, with what comes out of it.
    ///
    /// # Errors
    /// The system has no memory file for the bell.
    pub fn new() -> io::Result<(Inbox<P>, Receiver<P>)> {
        let bell = Arc::new(Bell::carrier()?);
        let file = Arc::new(bell.file().try_clone()?);
        let (parcels, taken) = channel();
        Ok((Inbox { parcels, bell, file }, taken))
    }

    pub fn take(&self, parcel: P) {
        // The thread lives as long as this.
        let _ = self.parcels.send(parcel);
        self.bell.ring();
    }

    /// The bell's memory, for those whose logs the thread reads.
    pub fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// The same, in this process.
    pub fn bell(&self) -> Arc<Bell> {
        self.bell.clone()
    }
}

impl<P> Drop for Inbox<P> {
    fn drop(&mut self) {
        self.parcels = channel().0;
        self.bell.ring();
    }
}
