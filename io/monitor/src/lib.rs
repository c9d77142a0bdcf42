//! The load of the processors of a node's host, and of the node's own share of them (`flare.txt`,
//! section 3.4).
//!
//! - [`host`]: all processors of the host, from `/proc/stat`, as in the paper
//! - [`budget`]: the node's control group, v1 or v2: a container with half a processor is a host of
//!   half a processor
//! - [`clock`]: processor time of processes and threads, and with it of replicas
//! - [`gauge`], a pure machine: of such counters, the use within a window
//! - [`watch`], a pure machine: when the manager is told: by period, and at once when a level is
//!   crossed
//!
//! Counters are read again and again from files that stay open: about 7 µs for `/proc/stat` on a
//! host of two processors and 1 µs for each of the others, so 50 looks a second cost less than a
//! thousandth of a processor.
#![forbid(unsafe_code)]

pub mod budget;
pub mod clock;
mod counter;
pub mod gauge;
pub mod host;
pub mod watch;

use std::io;
use std::path::PathBuf;

/// A failed measurement, and its reason.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// A file that the kernel offers cannot be read.
    #[error(
        "{} cannot be read ({source}): the use of processors is measured by /proc and /sys/fs/cgroup, which must be mounted here",
        path.display()
    )]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file says something that this program does not know.
    #[error("{} says `{text}`, which is not what kernels say there: report the kernel's version", path.display())]
    Strange {
        /// Which one.
        path: PathBuf,
        /// Its beginning.
        text: String,
    },
}
