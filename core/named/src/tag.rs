//! The first byte of each value. A number never gets another meaning.

pub const UNIT: u8 = 0x00;
pub const FALSE: u8 = 0x01;
pub const TRUE: u8 = 0x02;
pub const NONE: u8 = 0x03;
/// A value follows. So `Some(None)` is not `None`.
pub const SOME: u8 = 0x04;
/// One byte.
pub const U8: u8 = 0x05;
/// A varint, as the next two.
pub const U16: u8 = 0x06;
pub const U32: u8 = 0x07;
pub const U64: u8 = 0x08;
/// One byte.
pub const I8: u8 = 0x09;
/// A varint in zigzag, as the next two.
pub const I16: u8 = 0x0a;
pub const I32: u8 = 0x0b;
pub const I64: u8 = 0x0c;
/// 16 bytes.
pub const U128: u8 = 0x0d;
/// 16 bytes.
pub const I128: u8 = 0x0e;
/// 4 bytes.
pub const F32: u8 = 0x0f;
/// 8 bytes.
pub const F64: u8 = 0x10;
/// A varint.
pub const CHAR: u8 = 0x11;
/// Length and bytes of UTF-8.
pub const TEXT: u8 = 0x12;
/// Length and bytes.
pub const BYTES: u8 = 0x13;
/// The tag that all elements share, or [`MIXED`]; their number; the elements, without a shared tag.
pub const SEQUENCE: u8 = 0x14;
/// The number of entries, then key and value of each.
pub const MAP: u8 = 0x15;
/// The number of the shape (2 bytes; 0xffff: 4 more have it), then its fields' values.
pub const STRUCT: u8 = 0x16;
/// The number of the name, a varint.
pub const UNIT_VARIANT: u8 = 0x17;
/// The number of the name, a varint, then the variant's value.
pub const VARIANT: u8 = 0x18;

/// The elements of a sequence have tags of their own.
pub const MIXED: u8 = 0xff;

/// Elements with this tag may share it: numbers, whose tags would be a large part of them.
pub fn is_shared(tag: u8) -> bool {
    (U8..=F64).contains(&tag)
}
