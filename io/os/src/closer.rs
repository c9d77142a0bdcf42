//! The closer: a process for whose sake the sockets of this one close at once when it dies.
//!
//! Others see a death by the end of its sockets. Linux frees a dead process's memory before it closes
//! them: 60 to 230 ms for a gibibyte. The closer shares this process's memory and nothing else, so the
//! dying process has nothing to free, and closes its sockets at once. Then the closer ends, and frees
//! the memory. Without the closer all is as it was.
//!
//! It sleeps until a thread of this process, the *owner*, is dead. The kernel tells that by a robust
//! futex, before anything else that it does at the end of a thread; so it does when the process becomes
//! another program, and does not end. The reasons are in `docs/decisions/0080-closer.md`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::mem::{offset_of, size_of};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open, setsid,
    waitid,
};
use rustix::thread::{futex, gettid};
use serde::{Deserialize, Serialize};

use crate::realtime::Grant;
use crate::threads;

/// The names of the owner and of the closer, as `ps` shows them: at most 15 bytes.
const OWNER: &str = "steadfast hold";
const CLOSER: &std::ffi::CStr = c"steadfast close";

/// The closer's stack. What it calls are system calls.
const STACK: usize = 64 << 10;

/// A closer that ended sooner is not replaced at once.
const LIVES: Duration = Duration::from_secs(1);

/// How long the closer waits for the other threads of a dead process. One that has become another
/// program does not end.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Waits for children whatever they signal at their end (`__WALL`).
const ANY_CHILD: u32 = 0x4000_0000;

/// Gives the caller a table of descriptors of its own (`CLOSE_RANGE_UNSHARE`).
const UNSHARE: u32 = 2;

/// The mark that the kernel writes into the word of a dead owner.
const OWNER_DIED: u32 = 0x4000_0000;

/// Says in that word that somebody waits.
const WAITERS: u32 = 0x8000_0000;

/// The process for which a closer was begun. A forked one needs its own.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static STANDING: Mutex<Grant> = Mutex::new(Grant::NotAsked);
static LOST: AtomicU64 = AtomicU64::new(0);
static CLOSER_ID: AtomicU32 = AtomicU32::new(0);

/// How this process's closer stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloserStatus {
    /// Whether it watches, and why not.
    pub standing: Grant,
    /// Its process; 0: there is none.
    pub process: u32,
    /// Closers that ended before this process, and were replaced.
    pub lost: u64,
}

/// Has a closer watch this process, if none does: how it stands.
pub fn begin() -> Grant {
    let me = std::process::id();
    let mut standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner);
    if BEGUN.swap(me, Ordering::AcqRel) == me {
        return standing.clone();
    }
    LOST.store(0, Ordering::Relaxed);
    CLOSER_ID.store(0, Ordering::Relaxed);
    let (tell, told) = sync_channel(1);
    let begun = threads::spawn(OWNER, move || hold(&tell));
    *standing = match begun.map(|_| told.recv()) {
        Ok(Ok(Ok(()))) => Grant::InForce,
        Ok(Ok(Err(error))) => Grant::Refused(refused(&error)),
        Ok(Err(_)) => Grant::Refused(refused(&io::Error::other("its thread has ended"))),
        Err(error) => Grant::Refused(refused(&error)),
    };
    if let Grant::Refused(why) = &*standing {
        tracing::warn!("{why}");
    }
    standing.clone()
}

/// A closer has begun again, or could not. It is logged once, however often it is tried.
fn begun_again(error: Option<&io::Error>) {
    let mut standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner);
    let now = error.map_or(Grant::InForce, |error| Grant::Refused(refused(error)));
    if *standing == now {
        return;
    }
    match &now {
        Grant::Refused(why) => tracing::warn!("{why}"),
        _ => tracing::info!("a closer watches this process again"),
    }
    *standing = now;
}

/// How this process's closer stands.
pub fn status() -> CloserStatus {
    CloserStatus {
        standing: STANDING.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        process: CLOSER_ID.load(Ordering::Relaxed),
        lost: LOST.load(Ordering::Relaxed),
    }
}

fn refused(error: &io::Error) -> String {
    format!(
        "no closer watches this process ({error}): with much memory its death will be noticed late. \
         The closer needs Linux 5.9, and the calls clone, set_robust_list, close_range and pidfd_open \
         (seccomp)"
    )
}

/// The form that the kernel reads at the end of the owner (`struct robust_list_head`), with one futex
/// in it.
#[repr(C)]
struct RobustList {
    list: *const c_void,
    futex_offset: c_long,
    pending: *const c_void,
    /// The only entry: its next one is the head.
    entry: *const c_void,
    word: AtomicU32,
    process: Pid,
}

/// Bytes of the head.
const HEAD: usize = offset_of!(RobustList, entry);

/// The owner's thread: holds the word for as long as the process lives, and replaces closers.
fn hold(tell: &SyncSender<io::Result<()>>) {
    let me = u32::try_from(gettid().as_raw_nonzero().get()).unwrap_or(0);
    let (list, stack) = match prepare(me) {
        Ok(prepared) => prepared,
        Err(error) => return drop(tell.send(Err(error))),
    };
    let mut first = true;
    loop {
        let begun = Instant::now();
        match start(list, stack) {
            Ok(closer) => {
                let id = u32::try_from(closer.as_raw_nonzero().get()).unwrap_or(0);
                CLOSER_ID.store(id, Ordering::Relaxed);
                match first {
                    true => drop(tell.send(Ok(()))),
                    false => begun_again(None),
                }
                wait(closer);
                CLOSER_ID.store(0, Ordering::Relaxed);
                LOST.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    closer = id,
                    "the closer of this process has ended and is replaced: who ends it has this \
                     process's death noticed late"
                );
            }
            Err(error) if first => return drop(tell.send(Err(error))),
            Err(error) => begun_again(Some(&error)),
        }
        first = false;
        thread::sleep(LIVES.saturating_sub(begun.elapsed()));
    }
}

/// The word, held by the calling thread, and the closer's stack. Both stay for ever: there is one
/// owner in a process.
fn prepare(me: u32) -> io::Result<(&'static RobustList, *mut c_void)> {
    let list: &'static mut RobustList = Box::leak(Box::new(RobustList {
        list: null(),
        futex_offset: (offset_of!(RobustList, word) - offset_of!(RobustList, entry)) as c_long,
        pending: null(),
        entry: null(),
        word: AtomicU32::new(me | WAITERS),
        process: getpid(),
    }));
    list.list = (&raw const list.entry).cast();
    list.entry = (&raw const *list).cast();
    let list: &'static RobustList = list;
    // SAFETY: the list of this thread replaces the C library's, which is for robust mutexes that this
    // thread never locks. It has the kernel's form, one entry, and is never freed or changed: the
    // kernel reads it at the end of the thread and writes the word alone.
    let done = unsafe { libc::syscall(libc::SYS_set_robust_list, &raw const *list, HEAD) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: an empty range of descriptors: the call only says whether there is such a call.
    if unsafe { libc::syscall(libc::SYS_close_range, u32::MAX, u32::MAX, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    pidfd_open(list.process, PidfdFlags::empty())?;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let stack = unsafe {
        libc::mmap(
            null_mut(),
            STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if stack == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok((list, stack)) }
}

/// Starts a closer on this stack, which no other uses.
fn start(list: &'static RobustList, stack: *mut c_void) -> io::Result<Pid> {
    // A handler of this process must not run in the closer: no signal but SIGKILL reaches it.
    let blocked = Blocked::all()?;
    // SAFETY: the stack is a mapping of so many bytes that is never unmapped, and the closer before, if
    // there was one, has been waited for. The child shares the memory, as a thread does, but has its
    // own copy of registers: `close` calls nothing that has state of a thread or takes a lock.
    let child = unsafe {
        let top = stack.byte_add(STACK);
        let flags = libc::CLONE_VM | libc::CLONE_FILES;
        libc::clone(close, top, flags, (&raw const *list).cast_mut().cast())
    };
    let failed = io::Error::last_os_error();
    drop(blocked);
    Pid::from_raw(child).filter(|_| child > 0).ok_or(failed)
}

/// Waits for the end of a closer. One that is stopped would keep the memory of a dead process: it is
/// ended.
fn wait(closer: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
    let options = options | WaitIdOptions::from_bits_retain(ANY_CHILD);
    loop {
        match waitid(WaitId::Pid(closer), options) {
            Ok(Some(status)) if status.stopped() => {
                let _ = kill_process(closer, Signal::KILL);
            }
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// The closer's life. It shares the owner's thread-local memory: until the owner is dead it makes
/// system calls that write no `errno`, and nothing else.
extern "C" fn close(list: *mut c_void) -> c_int {
    // SAFETY: `start` gives a list that is never freed.
    let list: &RobustList = unsafe { &*list.cast() };
    // Its descriptors would hold the sockets open. They were never copies: what the process closes
    // meanwhile is closed.
    // SAFETY: an empty table of its own takes the place of the shared one, which stays as it is.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, UNSHARE) };
    // The signals of its terminal and of its process group are not for it.
    let _ = setsid();
    let _ = rustix::thread::set_name(CLOSER);
    loop {
        let word = list.word.load(Ordering::Acquire);
        if word & OWNER_DIED != 0 {
            break;
        }
        // A shared futex: it is the kernel that wakes.
        let _ = futex::wait(&list.word, futex::Flags::empty(), word, None);
    }
    // To give the memory back is behind others.
    threads::behind();
    // The last to leave the memory frees it. That must not be a thread of the dead process, which closes
    // the descriptors after that.
    if let Ok(owner) = pidfd_open(list.process, PidfdFlags::empty()) {
        let _ = poll(&mut [PollFd::new(&owner, PollFlags::IN)], Some(&PATIENCE));
    }
    0
}

/// All signals are blocked for the calling thread until this is dropped.
struct Blocked(u64);

impl Blocked {
    fn all() -> io::Result<Blocked> {
        Ok(Blocked(mask(u64::MAX)?))
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // It was the mask before.
        let _ = mask(self.0);
    }
}

/// Blocks these signals for the calling thread; gives the mask before. By the kernel's own call: the C
/// library's leaves out the signals that it uses itself.
fn mask(wanted: u64) -> io::Result<u64> {
    let mut before = 0_u64;
    // SAFETY: the kernel reads and writes eight bytes at pointers to values of that size.
    let done = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const wanted,
            &raw mut before,
            size_of::<u64>(),
        )
    };
    if done == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
