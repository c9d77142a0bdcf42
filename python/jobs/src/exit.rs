//! The end of the process.
//!
//! A program has done its work if its exit status is 0. Python's own `atexit` does not tell the
//! status: neither `raise SystemExit(1)` nor an exception that nobody catches can be told there from
//! a good end with certainty. The C library's `on_exit` does tell (glibc; musl has none).
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;

/// The status of a process that has failed.
pub(crate) const FAILED: i32 = 1;

/// The status of a rank whose start is over.
pub(crate) const OVER: i32 = 3;

static AT_EXIT: OnceLock<fn(i32) -> i32> = OnceLock::new();

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Has this called with the exit status when the process ends by itself, after all Python code; it
/// returns the status to end with. It is called once.
pub(crate) fn at_exit(function: fn(i32) -> i32) {
    if AT_EXIT.set(function).is_ok() {
        // SAFETY: the function has the type that the C library wants, and is there to the end: this
        // library is never unloaded, because Python unloads no module.
        unsafe { on_exit(called, std::ptr::null_mut()) };
    }
}

extern "C" fn called(status: c_int, _: *mut c_void) {
    let wanted = AT_EXIT.get().map_or(status, |function| function(status));
    if wanted != status {
        now(wanted);
    }
}

/// Says why on standard error, if anybody listens there.
pub(crate) fn say(why: &dyn Display) {
    let _ = writeln!(io::stderr(), "steadfast: {why}");
}

/// Has what C code has printed go to where it is printed to.
pub(crate) fn flush() {
    // SAFETY: without a stream, it flushes all of them, and locks each meanwhile.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// Ends the process with this status, without another word of its program.
pub(crate) fn now(status: i32) -> ! {
    // SAFETY: it takes any status, and does not return.
    unsafe { libc::_exit(status) }
}
