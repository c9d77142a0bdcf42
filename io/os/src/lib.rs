//! The operating system, as the rest of `io` asks it: no module here knows of rings or replicas.
//!
//! - [`clock`]: clocks, and how long a wait lasts.
//! - [`closer`]: a process by which this one's sockets close at once when it dies. It has unsafe code, too.
//! - [`durable`]: files that are whole after a loss of power, and folders for one process.
//! - [`memory`]: the pages of large buffers. It has unsafe code, as has [`sched`].
//! - [`own_time`]: where a thread's time went.
//! - [`passing`]: open files that pass through a Unix socket.
//! - [`ports`]: free addresses, for tests.
//! - [`random`]: random bytes.
//! - [`realtime`]: reserved time, priorities, locked memory, processors that stay awake.
//! - [`sched`]: the scheduling class of a thread; [`threads`]: those of a process.
//! - [`unix_socket`]: a socket in the file system, for one process at a time.
//! - [`waker`]: an end to another thread's wait.
#![deny(unsafe_code)]

pub mod clock;
pub mod closer;
pub mod durable;
pub mod memory;
pub mod own_time;
pub mod passing;
pub mod ports;
pub mod random;
pub mod realtime;
pub mod sched;
pub mod threads;
pub mod unix_socket;
pub mod waker;
