//! From values to bytes.

mod compound;
mod writer;

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt::Display;

use serde::{Serialize, Serializer};

use crate::bounds::Bounds;
use crate::error::Error;
use crate::number;
use crate::tag;
use compound::{Elements, Entries, Fields};
use writer::Writer;

pub fn to_vec<T: Serialize + ?Sized>(value: &T, bounds: Bounds) -> Result<Vec<u8>, Error> {
    let mut writer = Writer::new(bounds);
    value.serialize(&mut writer)?;
    let Writer { mut out, table, .. } = writer;
    table.append(&mut out);
    if out.len() > bounds.bytes {
        return Err(Error::too_large(bounds.bytes));
    }
    Ok(out)
}

impl<'a> Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Elements<'a>;
    type SerializeTupleStruct = Elements<'a>;
    type SerializeTupleVariant = Elements<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Fields<'a>;

    /// It is: serde reads values that it has buffered (`flatten`, `untagged`, `tag`) as readable
    /// ones. So an `IpAddr` is a text.
    fn is_human_readable(&self) -> bool {
        true
    }

    fn serialize_bool(self, v: bool) -> Result<(), Error> {
        self.tag(if v { tag::TRUE } else { tag::FALSE });
        Ok(())
    }

    fn serialize_i8(self, v: i8) -> Result<(), Error> {
        self.number(tag::I8);
        self.out.push(v as u8);
        Ok(())
    }

    fn serialize_i16(self, v: i16) -> Result<(), Error> {
        self.signed(tag::I16, v.into());
        Ok(())
    }

    fn serialize_i32(self, v: i32) -> Result<(), Error> {
        self.signed(tag::I32, v.into());
        Ok(())
    }

    fn serialize_i64(self, v: i64) -> Result<(), Error> {
        self.signed(tag::I64, v);
        Ok(())
    }

    fn serialize_i128(self, v: i128) -> Result<(), Error> {
        self.number(tag::I128);
        self.out.extend_from_slice(&v.to_le_bytes());
        Ok(())
    }

    fn serialize_u8(self, v: u8) -> Result<(), Error> {
        self.number(tag::U8);
        self.out.push(v);
        Ok(())
    }

    fn serialize_u16(self, v: u16) -> Result<(), Error> {
        self.varint(tag::U16, v.into());
        Ok(())
    }

    fn serialize_u32(self, v: u32) -> Result<(), Error> {
        self.varint(tag::U32, v.into());
        Ok(())
    }

    fn serialize_u64(self, v: u64) -> Result<(), Error> {
        self.varint(tag::U64, v);
        Ok(())
    }

    fn serialize_u128(self, v: u128) -> Result<(), Error> {
        self.number(tag::U128);
        self.out.extend_from_slice(&v.to_le_bytes());
        Ok(())
    }

    fn serialize_f32(self, v: f32) -> Result<(), Error> {
        self.number(tag::F32);
        self.out.extend_from_slice(&v.to_le_bytes());
        Ok(())
    }

    fn serialize_f64(self, v: f64) -> Result<(), Error> {
        self.number(tag::F64);
        self.out.extend_from_slice(&v.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, v: char) -> Result<(), Error> {
        self.tag(tag::CHAR);
        number::put(&mut self.out, u64::from(u32::from(v)));
        Ok(())
    }

    fn serialize_str(self, v: &str) -> Result<(), Error> {
        self.bytes(tag::TEXT, v.as_bytes());
        Ok(())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Error> {
        self.bytes(tag::BYTES, v);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.tag(tag::NONE);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.tag(tag::SOME);
        self.enter()?;
        value.serialize(&mut *self)?;
        self.leave();
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.tag(tag::UNIT);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.variant(tag::UNIT_VARIANT, variant);
        Ok(())
    }

    /// Nothing of its own: a value may get such a wrapping, or lose it.
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(tag::VARIANT, variant);
        self.enter()?;
        value.serialize(&mut *self).map_err(|error| error.in_field(variant))?;
        self.leave();
        Ok(())
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements<'a>, Error> {
        Elements::begin(self, length)
    }

    fn serialize_tuple(self, length: usize) -> Result<Elements<'a>, Error> {
        Elements::begin(self, Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Elements<'a>, Error> {
        Elements::begin(self, Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Elements<'a>, Error> {
        self.variant(tag::VARIANT, variant);
        Elements::begin(self, Some(length))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Entries<'a>, Error> {
        Entries::begin(self, length)
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Fields<'a>, Error> {
        Fields::begin(self, name, length)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Fields<'a>, Error> {
        self.variant(tag::VARIANT, variant);
        Fields::begin(self, variant, length)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.serialize_str(&value.to_string())
    }
}
