//! Checkpoint images of a job's rank (`star.txt`, section 3: independent and incremental
//! checkpoints on stable storage).
//!
//! A rank's state is named arrays of bytes. An image is what one checkpoint saves of it: a *full*
//! one has all parts, an *increment* those that have changed since its parent. Images that build
//! on one another, from a full one on, are a [`Chain`].
//!
//! - [`Builder`]: gives each part its place in the image's file, and a checksum.
//! - [`Manifest`]: what an image has. It is written last; its [`Root`] is what a commit names.
//! - [`Opening`]: reads the manifests of a chain, and believes none that was not committed.
//! - [`Chain`]: which parts of which files make the state whole.
//!
//! A part's checksum begins with the part's place: job, rank, start, generation, array, offset. So
//! a part that is torn, rotten, swapped with another or left over from an older image does not fit
//! (CRC-32C: by chance one in 2^32 does). The root, a SHA-256, also tells intent.
//! The crate is pure: bytes go in and out, and others read and write files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
mod builder;
mod chain;
mod damage;
mod manifest;
mod place;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use builder::Builder;
pub use chain::{Chain, Opening, Read};
pub use damage::Damage;
pub use manifest::{Manifest, Parent, Part, Root, root_of};
pub use place::Place;
pub use wire::rank::{Array, MAX_ARRAY_NAME as MAX_NAME, MAX_ARRAYS, PAGE};

/// The most bytes of a part.
pub const MAX_PART: usize = 256 << 10;

/// The most images of a chain: a full one, and increments.
pub const MAX_CHAIN: usize = 8;

/// The most bytes of a manifest: that of a full image of 1 TiB, or of some 10 million parts.
pub const MAX_MANIFEST: usize = 256 << 20;
