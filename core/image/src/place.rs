//! Where an image belongs.

use serde::{Deserialize, Serialize};

/// An image: its owner, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The job.
    pub job: u64,
    /// The rank, from 0.
    pub rank: u32,
    /// The start of the rank that saved it. Starts are counted over the whole job.
    pub start: u64,
    /// Which of the rank's images, from 1. An image of a later start has a later generation.
    pub generation: u64,
}

impl Place {
    /// The checksum of a part that belongs here.
    ///
    /// ```text
    ///  0     8      12      20           28      32       40
    /// +-----+------+-------+------------+-------+--------+------
    /// | job | rank | start | generation | array | offset | bytes    little-endian, CRC-32C
    /// +-----+------+-------+------------+-------+--------+------
    /// ```
    pub fn check(&self, array: u32, offset: u64, bytes: &[u8]) -> u32 {
        let mut head = [0; 40];
        head[..8].copy_from_slice(&self.job.to_le_bytes());
        head[8..12].copy_from_slice(&self.rank.to_le_bytes());
        head[12..20].copy_from_slice(&self.start.to_le_bytes());
        head[20..28].copy_from_slice(&self.generation.to_le_bytes());
        head[28..32].copy_from_slice(&array.to_le_bytes());
        head[32..].copy_from_slice(&offset.to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c(&head), bytes)
    }
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Place { job, rank, start, generation } = self;
        write!(f, "image {generation} of job {job:016x}, rank {rank}, start {start}")
    }
}
