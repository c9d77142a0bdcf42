//! Jobs, for people: where their cluster is, how they stand, and their images.

pub mod images;
pub mod minder;
pub mod npy;
pub mod own;
pub mod reach;
pub mod show;
pub mod submit;
pub mod waits;
pub mod watch;
