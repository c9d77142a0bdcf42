//! Callers that end with whoever waits for them.

use std::sync::atomic::{AtomicBool, Ordering};

/// Has callers stop also if the test fails: its scope waits for them, and would for ever.
pub struct Stops<'a>(pub &'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
