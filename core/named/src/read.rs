//! From bytes to values.

mod access;
mod reader;

use alloc::format;

use serde::Deserializer;
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Unexpected, Visitor};

use crate::bounds::{Bounds, MARK, Reading};
use crate::error::Error;
use crate::number;
use crate::table::Table;
use crate::tag;
use access::{Elements, Entries, Fields, OneEntry, Variant};
pub use reader::Reader;

pub fn from_slice<T: DeserializeOwned>(bytes: &[u8], bounds: Bounds) -> Result<Reading<T>, Error> {
    let Some((mark, mut input)) = bytes.split_first_chunk::<12>() else {
        return Err(Error::cut());
    };
    if *mark != MARK {
        return Err(Error::new("another program, or a newer version of this library, wrote it"));
    }
    let table = Table::take(&mut input)?;
    let mut reader = Reader::new(input, &table, bounds);
    let value = T::deserialize(&mut reader)?;
    if !reader.input.is_empty() {
        return Err(Error::new(format!("{} bytes too many", reader.input.len())));
    }
    Ok(Reading { value, dropped: reader.dropped, is_dynamic: reader.is_dynamic })
}

impl<'de> Reader<'_, 'de> {
    #[inline]
    fn value<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        match self.tag()? {
            tag::UNIT => visitor.visit_unit(),
            tag::FALSE => visitor.visit_bool(false),
            tag::TRUE => visitor.visit_bool(true),
            tag::NONE => visitor.visit_none(),
            tag::SOME => self.nested(|reader| visitor.visit_some(reader)),
            tag::U8 => visitor.visit_u8(u8::from_le_bytes(self.fixed()?)),
            tag::U16 => visitor.visit_u16(self.narrow()?),
            tag::U32 => visitor.visit_u32(self.narrow()?),
            tag::U64 => visitor.visit_u64(self.varint()?),
            tag::I8 => visitor.visit_i8(i8::from_le_bytes(self.fixed()?)),
            tag::I16 => visitor.visit_i16(self.signed()?),
            tag::I32 => visitor.visit_i32(self.signed()?),
            tag::I64 => visitor.visit_i64(self.signed()?),
            tag::U128 => visitor.visit_u128(u128::from_le_bytes(self.fixed()?)),
            tag::I128 => visitor.visit_i128(i128::from_le_bytes(self.fixed()?)),
            tag::F32 => visitor.visit_f32(f32::from_le_bytes(self.fixed()?)),
            tag::F64 => visitor.visit_f64(f64::from_le_bytes(self.fixed()?)),
            tag::CHAR => visitor.visit_char(self.char()?),
            tag::TEXT => visitor.visit_borrowed_str(self.text()?),
            tag::BYTES => visitor.visit_borrowed_bytes(self.bytes()?),
            tag::SEQUENCE => self.nested(|reader| {
                let mut elements = Elements::begin(reader)?;
                let value = visitor.visit_seq(&mut elements)?;
                elements.end(value)
            }),
            tag::MAP => self.nested(|reader| {
                let mut entries = Entries::begin(reader)?;
                let value = visitor.visit_map(&mut entries)?;
                entries.end(value)
            }),
            tag::STRUCT => self.nested(|reader| {
                let mut fields = Fields::begin(reader, "")?;
                let value = visitor.visit_map(&mut fields)?;
                fields.end(value)
            }),
            // As serde buffers enums: by name, or as a map of one entry.
            tag::UNIT_VARIANT => visitor.visit_borrowed_str(self.name()?),
            tag::VARIANT => self.nested(|reader| {
                let name = reader.name()?;
                visitor.visit_map(OneEntry::new(reader, name))
            }),
            other => Err(Error::new(format!("there is no kind of value {other:#04x}"))),
        }
    }

    /// A float that may have been an integer: one that the type's digits hold.
    fn float<V: Visitor<'de>>(
        &mut self,
        tag: u8,
        limit: u64,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let refused = |unexpected| Err(Error::invalid_value(unexpected, &"a float of its digits"));
        match tag {
            tag::U16 | tag::U32 | tag::U64 => match self.varint()? {
                value if value > limit => refused(Unexpected::Unsigned(value)),
                value => visitor.visit_u64(value),
            },
            tag::I16 | tag::I32 | tag::I64 => match number::from_zigzag(self.varint()?) {
                value if value.unsigned_abs() > limit => refused(Unexpected::Signed(value)),
                value => visitor.visit_i64(value),
            },
            other => {
                self.given = Some(other);
                self.value(visitor)
            }
        }
    }

    /// Passes over a value.
    pub fn skip(&mut self) -> Result<(), Error> {
        match self.tag()? {
            tag::UNIT | tag::FALSE | tag::TRUE | tag::NONE => {}
            tag::U8 | tag::I8 => drop(self.fixed::<1>()?),
            tag::F32 => drop(self.fixed::<4>()?),
            tag::F64 => drop(self.fixed::<8>()?),
            tag::U128 | tag::I128 => drop(self.fixed::<16>()?),
            tag::TEXT | tag::BYTES => drop(self.bytes()?),
            tag::SOME => self.nested(Reader::skip)?,
            tag::VARIANT => {
                self.name()?;
                self.nested(Reader::skip)?;
            }
            tag::SEQUENCE => self.nested(|reader| Elements::begin(reader)?.skip())?,
            tag::MAP => self.nested(|reader| {
                for _ in 0..reader.varint()? {
                    reader.skip()?;
                    reader.skip()?;
                }
                Ok(())
            })?,
            tag::STRUCT => self.nested(|reader| {
                let (begin, end) = reader.shape()?;
                (begin..end).try_for_each(|_| reader.skip())
            })?,
            _ => drop(self.varint()?),
        }
        Ok(())
    }
}

/// The bytes say which type it is, and the type's visitor takes what fits it.
macro_rules! plain {
    ($($function:ident)*) => {$(
        #[inline]
        fn $function<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.value(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'_, 'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        true
    }

    /// The type takes what comes: serde buffers it, and tries.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.is_dynamic = true;
        self.value(visitor)
    }

    /// A value may become optional, and an optional one that is there certain.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.peek()? {
            tag::SOME | tag::NONE => self.value(visitor),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let precise = |value: f64| value.is_nan() || f64::from(value as f32) == value;
        match self.tag()? {
            tag::F64 => {
                let value = f64::from_le_bytes(self.fixed()?);
                match precise(value) {
                    true => visitor.visit_f64(value),
                    false => Err(Error::invalid_value(Unexpected::Float(value), &"an f32")),
                }
            }
            other => self.float(other, 1 << f32::MANTISSA_DIGITS, visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let tag = self.tag()?;
        self.float(tag, 1 << f64::MANTISSA_DIGITS, visitor)
    }

    /// Bytes are a sequence of numbers, where one is asked for.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek()? != tag::BYTES {
            return self.value(visitor);
        }
        self.tag()?;
        self.nested(|reader| {
            let mut elements = Elements::of_bytes(reader)?;
            let value = visitor.visit_seq(&mut elements)?;
            elements.end(value)
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.peek()? != tag::STRUCT {
            return self.value(visitor).map_err(|error| error.in_type(name));
        }
        self.tag()?;
        self.nested(|reader| {
            let mut fields = Fields::begin(reader, name)?;
            let value = visitor.visit_map(&mut fields).map_err(|error| error.in_type(name))?;
            fields.end(value)
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.tag()? {
            tag::UNIT_VARIANT => visitor.visit_enum(self.name()?.into_deserializer()),
            tag::VARIANT => self.nested(|reader| {
                let name = reader.name()?;
                visitor.visit_enum(Variant::new(reader, name))
            }),
            tag::TEXT => visitor.visit_enum(self.text()?.into_deserializer()),
            other => {
                self.given = Some(other);
                self.value(visitor)
            }
        }
    }

    /// A field that the type does not know.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Some((of, name)) = self.field.take() {
            self.dropped(of, name);
        }
        self.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // A struct with `flatten` asks for a map, and buffers what it does not know.
        self.is_dynamic |= self.peek()? == tag::STRUCT;
        self.value(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    plain! {
        deserialize_bool deserialize_char deserialize_str deserialize_string deserialize_unit
        deserialize_bytes deserialize_byte_buf
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        // The names of fields, and the keys of a struct with `flatten`.
        deserialize_identifier
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value(visitor)
    }
}
