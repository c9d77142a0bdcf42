//! The bytes that are being written.

use alloc::vec::Vec;

use crate::bounds::{Bounds, MARK};
use crate::error::Error;
use crate::number;
use crate::table::Writing;

/// Whether the next value writes its tag: a word between a sequence and its next element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The next value writes its own tag, or has done so.
    No,
    /// A value with this tag leaves it out.
    Tag(u8),
    /// It did.
    LeftOut,
}

pub struct Writer {
    pub out: Vec<u8>,
    pub table: Writing,
    pub shared: Shared,
    pub depth: usize,
    pub bounds: Bounds,
}

impl Writer {
    pub fn new(bounds: Bounds) -> Writer {
        let (out, table) = (MARK.to_vec(), Writing::default());
        Writer { out, table, shared: Shared::No, depth: 0, bounds }
    }

    #[inline]
    pub fn tag(&mut self, tag: u8) {
        self.shared = Shared::No;
        self.out.push(tag);
    }

    /// The tag of a number, which its neighbours may share.
    #[inline]
    pub fn number(&mut self, tag: u8) {
        if self.shared == Shared::Tag(tag) {
            self.shared = Shared::LeftOut;
        } else {
            self.tag(tag);
        }
    }

    #[inline]
    pub fn varint(&mut self, tag: u8, value: u64) {
        self.number(tag);
        number::put(&mut self.out, value);
    }

    #[inline]
    pub fn signed(&mut self, tag: u8, value: i64) {
        self.varint(tag, number::zigzag(value));
    }

    pub fn bytes(&mut self, tag: u8, bytes: &[u8]) {
        self.tag(tag);
        number::put(&mut self.out, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    pub fn variant(&mut self, tag: u8, variant: &'static str) {
        self.tag(tag);
        let name = self.table.name(variant);
        number::put(&mut self.out, u64::from(name));
    }

    /// A value that has others in it begins.
    #[inline]
    pub fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > self.bounds.depth {
            return Err(Error::too_deep(self.bounds.depth));
        }
        // Later values are no smaller: what is too large ends early.
        if self.out.len() > self.bounds.bytes {
            return Err(Error::too_large(self.bounds.bytes));
        }
        Ok(())
    }

    /// It ends: a sequence around it must not take its last element's word for its own.
    #[inline]
    pub fn leave(&mut self) {
        self.depth -= 1;
        self.shared = Shared::No;
    }

    /// The varint that was put here has this value now.
    pub fn correct(&mut self, at: usize, announced: u64, value: u64) {
        if announced == value {
            return;
        }
        let (mut old, mut new) = (Vec::new(), Vec::new());
        number::put(&mut old, announced);
        number::put(&mut new, value);
        self.out.splice(at..at + old.len(), new);
    }
}
