//! Wakes a reader that sleeps.

use std::fs::File;
use std::io;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use crate::memory::Memory;

const RINGS: usize = 0;
const ASLEEP: usize = 64;
const CARRIES: usize = 128;

/// Bytes of its memory.
const LENGTH: usize = 4_096;

/// A word in memory that all senders of a reader share with it. Ringing costs a system call only
/// where the reader sleeps, and only the first one who rings.
#[derive(Debug)]
pub struct Bell {
    memory: Memory,
    file: File,
}

/// The rings that a reader has heard before it looks for messages once more.
#[derive(Clone, Copy, Debug)]
pub struct Heard(u32);

impl Bell {
    /// A bell of one's own.
    ///
    /// # Errors
    /// The system has no memory file.
    pub fn new() -> io::Result<Bell> {
        let (memory, file) = Memory::create_shared("steadfast bell", LENGTH)?;
        Ok(Bell { memory, file })
    }

    /// That of a reader which only carries messages to another host. It sleeps as soon as it has done
    /// so.
    ///
    /// # Errors
    /// The system has no memory file.
    pub fn carrier() -> io::Result<Bell> {
        let bell = Bell::new()?;
        bell.memory.half(CARRIES).store(1, Ordering::Relaxed);
        Ok(bell)
    }

    /// That of a reader.
    ///
    /// # Errors
    /// The memory is none, or could be taken away.
    pub fn open(file: File) -> io::Result<Bell> {
        Ok(Bell { memory: Memory::open_shared(&file)?, file })
    }

    /// The memory, for senders.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Something was published for the reader.
    pub fn ring(&self) {
        // Before the reader's word is read: else it could fall asleep without seeing it.
        fence(Ordering::SeqCst);
        let asleep = self.memory.half(ASLEEP);
        // Until the reader runs, others would wake it once more.
        if asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::AcqRel) != 0 {
            self.memory.half(RINGS).fetch_add(1, Ordering::Release);
            let _ = futex::wake(self.memory.half(RINGS), Flags::empty(), 1);
        }
    }

    /// The reader sleeps, or is about to, and nobody has rung.
    pub fn is_asleep(&self) -> bool {
        self.memory.half(ASLEEP).load(Ordering::Relaxed) != 0
    }

    /// Its reader only carries messages: it sleeps whether or not the receiver waits.
    pub fn is_carrier(&self) -> bool {
        self.memory.half(CARRIES).load(Ordering::Relaxed) != 0
    }

    /// The reader is about to sleep. What it finds after this, it need not sleep for; what it does
    /// not find wakes it.
    pub fn begin(&self) -> Heard {
        // First: whoever takes the other word from now on rings once more than this.
        let heard = Heard(self.memory.half(RINGS).load(Ordering::Acquire));
        self.memory.half(ASLEEP).store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        heard
    }

    /// Sleeps until somebody rings, but no longer than this.
    pub fn sleep(&self, Heard(heard): Heard, most: Duration) {
        let most = Timespec {
            tv_sec: most.as_secs().min(1 << 30) as i64,
            tv_nsec: most.subsec_nanos().into(),
        };
        // Rung meanwhile, interrupted, or too late: the reader looks in any case.
        let _ = futex::wait(self.memory.half(RINGS), Flags::empty(), heard, Some(&most));
    }

    /// The reader is awake.
    pub fn end(&self) {
        self.memory.half(ASLEEP).store(0, Ordering::Relaxed);
    }
}
