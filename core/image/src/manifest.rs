//! The manifest of an image: its arrays, and where their parts are.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wire::rank::Array;

use crate::{Damage, MAX_ARRAYS, MAX_MANIFEST, MAX_NAME, MAX_PART, PAGE, Place};

/// The first bytes of a manifest, with the version of its form.
const MAGIC: [u8; 8] = *b"SFIMAGE1";

/// SHA-256 of a manifest as it is written: what a commit names.
pub type Root = [u8; 32];

/// A part of an array in the image's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The array, by its place in the manifest.
    pub array: u32,
    /// The part's place in the array: a multiple of [`PAGE`].
    pub offset: u64,
    /// Its bytes, at most [`MAX_PART`]. Only an array's last part is no multiple of [`PAGE`].
    pub length: u32,
    /// Its place in the file: a multiple of [`PAGE`].
    pub at: u64,
    /// [`Place::check`].
    pub check: u32,
}

/// The image on which an increment builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// It.
    pub place: Place,
    /// Its root.
    pub root: Root,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Where it belongs.
    pub place: Place,
    /// The image on which it builds; `None`: it is a full one.
    pub parent: Option<Parent>,
    /// How far the rank was, as the program counts.
    pub step: u64,
    /// All arrays of the rank.
    pub arrays: Vec<Array>,
    /// The parts that the image has, in order of array and offset. None overlaps another.
    pub parts: Vec<Part>,
}

/// The root of a manifest in these bytes.
pub fn root_of(bytes: &[u8]) -> Root {
    Sha256::digest(bytes).into()
}

impl Manifest {
    /// The bytes to write.
    ///
    /// ```text
    ///  0         8       12      16
    /// +---------+-------+-------+--------------------
    /// | SFIMAGE1| length| check | manifest (postcard)     check: CRC-32C of the manifest
    /// +---------+-------+-------+--------------------
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let body = postcard::to_allocvec(self).expect("a manifest is plain data");
        let mut bytes = Vec::with_capacity(16 + body.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Its root.
    pub fn root(&self) -> Root {
        root_of(&self.encode())
    }

    /// Reads what a file has.
    ///
    /// # Errors
    /// It is torn, rotten or no manifest.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, Damage> {
        let torn = Damage::Manifest;
        if bytes.len() > MAX_MANIFEST {
            return Err(torn("it is too long"));
        }
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(torn("it is cut short"))?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(torn("it is cut short"))?;
        let (check, body) = rest.split_first_chunk::<4>().ok_or(torn("it is cut short"))?;
        if *magic != MAGIC {
            return Err(torn("it is none, or another version's"));
        }
        if body.len() != u32::from_le_bytes(*length) as usize {
            return Err(torn("its length is another"));
        }
        if crc32c::crc32c(body) != u32::from_le_bytes(*check) {
            return Err(torn("its checksum is another"));
        }
        let (manifest, rest): (Manifest, _) =
            postcard::take_from_bytes(body).map_err(|_| torn("it cannot be read"))?;
        match rest.is_empty() && manifest.is_possible() {
            true => Ok(manifest),
            false => Err(torn("it is impossible")),
        }
    }

    /// The bytes of the image's file.
    pub fn end(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.at + u64::from(part.length))
    }

    /// Its parts are within its arrays, in order, and apart from each other.
    pub(crate) fn is_possible(&self) -> bool {
        let fits = |array: &Array| array.name.len() <= MAX_NAME && array.form.len() <= MAX_NAME;
        if self.arrays.len() > MAX_ARRAYS || !self.arrays.iter().all(fits) {
            return false;
        }
        let names = self.arrays.iter().map(|array| &array.name);
        if names.clone().collect::<alloc::collections::BTreeSet<_>>().len() != names.len() {
            return false;
        }
        let related = |parent: &Parent| {
            let (parent, own) = (parent.place, self.place);
            let same = parent.job == own.job && parent.rank == own.rank;
            same && parent.generation < own.generation && parent.start <= own.start
        };
        if !self.parent.iter().all(related) {
            return false;
        }
        let within = |part: &Part| {
            let Some(array) = self.arrays.get(part.array as usize) else { return false };
            let Some(end) = part.offset.checked_add(part.length.into()) else { return false };
            let whole = u64::from(part.length).is_multiple_of(PAGE) || end == array.length;
            let pages = part.offset.is_multiple_of(PAGE) && part.at.is_multiple_of(PAGE);
            let sized = (1..=MAX_PART).contains(&(part.length as usize));
            end <= array.length && whole && pages && sized
        };
        let apart = |pair: &[Part]| {
            let [one, next] = pair else { return true };
            let end = one.offset + u64::from(one.length);
            one.array < next.array || one.array == next.array && end <= next.offset
        };
        self.parts.iter().all(within) && self.parts.windows(2).all(apart)
    }
}
