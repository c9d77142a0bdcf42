//! The supervisor of programs that serve replicas in processes of their own.
//!
//! One thread of the node's (`steadfast programs`) starts them, takes in those who show their token
//! at the socket, writes their output to the log, and starts anew those who end. Commands and
//! answers do not pass here: a program that has been let in belongs to the [`DataPlane`].
//!
//! - `programs.rs`: [`Programs`], the thread's other end; `notice.rs`: what it is told
//! - `tether.rs`: [`Tether`], what the data plane tells of a program that it has taken in
//! - `supervisor.rs`: the thread; `running.rs`: one program there
//! - `starter.rs`: programs with a real-time priority
//! - `reserve.rs`: a program's reserve at the host's daemon
//! - `restart.rs`: when a program is started and ended, a pure machine
//! - `door.rs`: the socket at which programs attach
//! - `trial.rs`: a new program is tried beside the one that serves
//! - `child.rs`: a process and its pipes; `lines.rs`: its output
#![forbid(unsafe_code)]

mod child;
mod data_plane;
mod door;
mod error;
mod lines;
mod notice;
mod programs;
mod reserve;
mod restart;
mod running;
mod starter;
mod supervisor;
mod tether;
mod trial;

pub use data_plane::{Attaching, DataPlane};
pub use error::ProgramError;
pub use notice::Deployed;
pub use programs::{Ending, Programs};
pub use reserve::Terms;
pub use restart::CRASH_LOOP;
pub use tether::Tether;
pub use trial::Tried;
