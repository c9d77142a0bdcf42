//! The program's memory, with every request counted: node processes of an experiment report the
//! cost of a call by it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Memory that all threads requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocated {
    /// Pieces of memory, those that were made larger included.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Sub for Allocated {
    type Output = Allocated;

    fn sub(self, before: Allocated) -> Allocated {
        Allocated { count: self.count - before.count, bytes: self.bytes - before.bytes }
    }
}

/// The memory that this process has requested so far.
pub fn allocated() -> Allocated {
    Allocated { count: COUNT.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
}

/// The system's memory, counted.
struct Counting;

fn count(size: usize) {
    COUNT.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(size as u64, Ordering::Relaxed);
}

// SAFETY: every call is passed on as it came to the system's allocator, which keeps the promises of
// `GlobalAlloc`; the counters are plain atomics, need no memory and cannot unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above. Not by `alloc`: the system may have pages that are zero already.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_counted() {
        let before = allocated();
        let memory = std::hint::black_box(vec![1u8; 4_096]);
        let more = allocated() - before;
        // Other tests ask for memory too.
        assert!(more.count >= 1 && more.bytes >= memory.len() as u64, "{more:?}");
    }
}
