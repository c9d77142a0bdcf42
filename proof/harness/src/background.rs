//! A thread that works until nobody wants it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};

/// Told to end, and waited for, when this is dropped.
pub struct Background {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts this life, which is to end soon after the flag that it gets is true.
    pub fn start(life: impl FnOnce(&AtomicBool) + Send + 'static) -> Background {
        let over = Arc::new(AtomicBool::new(false));
        let its = over.clone();
        Background { over, thread: Some(thread::spawn(move || life(&its))) }
    }

    /// The thread, to be unparked. `None` once it has ended.
    pub fn thread(&self) -> Option<&Thread> {
        self.thread.as_ref().map(JoinHandle::thread)
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}
