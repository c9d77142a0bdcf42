//! The parts of a value, as visitors ask for them.

use alloc::format;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::reader::Reader;
use crate::error::Error;
use crate::number;
use crate::tag;

/// A size that the bytes may really have: each value takes one at least.
fn believed(count: u64, reader: &Reader<'_, '_>) -> Option<usize> {
    Some(usize::try_from(count).unwrap_or(usize::MAX).min(reader.input.len()))
}

/// The elements of a sequence.
pub struct Elements<'r, 't, 'de> {
    reader: &'r mut Reader<'t, 'de>,
    shared: Option<u8>,
    left: u64,
    index: usize,
}

impl<'r, 't, 'de> Elements<'r, 't, 'de> {
    pub fn begin(reader: &'r mut Reader<'t, 'de>) -> Result<Self, Error> {
        let shared = reader.shared_tag()?;
        let left = reader.varint()?;
        Ok(Elements { reader, shared, left, index: 0 })
    }

    /// Bytes as elements.
    pub fn of_bytes(reader: &'r mut Reader<'t, 'de>) -> Result<Self, Error> {
        let left = reader.varint()?;
        Ok(Elements { reader, shared: Some(tag::U8), left, index: 0 })
    }

    /// The visitor has had enough.
    pub fn end<T>(self, value: T) -> Result<T, Error> {
        match self.left {
            0 => Ok(value),
            left => Err(Error::new(format!("{left} elements too many"))),
        }
    }

    pub fn skip(mut self) -> Result<(), Error> {
        while self.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, '_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        (self.reader.given, self.reader.field) = (self.shared, None);
        let index = self.index;
        self.index += 1;
        seed.deserialize(&mut *self.reader).map(Some).map_err(|error| error.at_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        believed(self.left, self.reader)
    }
}

/// The entries of a map.
pub struct Entries<'r, 't, 'de> {
    reader: &'r mut Reader<'t, 'de>,
    left: u64,
    /// Where the last key begins: for errors.
    key: &'de [u8],
}

impl<'r, 't, 'de> Entries<'r, 't, 'de> {
    pub fn begin(reader: &'r mut Reader<'t, 'de>) -> Result<Self, Error> {
        let left = reader.varint()?;
        Ok(Entries { reader, left, key: &[] })
    }

    /// The last key, if it is a text.
    fn key(&self) -> Option<&'de str> {
        let (&tag::TEXT, mut text) = self.key.split_first()? else { return None };
        let length = usize::try_from(number::take(&mut text)?).ok()?;
        core::str::from_utf8(text.get(..length)?).ok()
    }

    pub fn end<T>(self, value: T) -> Result<T, Error> {
        match self.left {
            0 => Ok(value),
            left => Err(Error::new(format!("{left} entries too many"))),
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_, '_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        (self.reader.field, self.key) = (None, self.reader.input);
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.reader.field = None;
        seed.deserialize(&mut *self.reader).map_err(|error| match self.key() {
            Some(key) => error.in_field(key),
            None => error,
        })
    }

    fn size_hint(&self) -> Option<usize> {
        believed(self.left, self.reader)
    }
}

/// The fields of a struct.
pub struct Fields<'r, 't, 'de> {
    reader: &'r mut Reader<'t, 'de>,
    of: &'static str,
    next: usize,
    end: usize,
}

impl<'r, 't, 'de> Fields<'r, 't, 'de> {
    pub fn begin(reader: &'r mut Reader<'t, 'de>, of: &'static str) -> Result<Self, Error> {
        let (next, end) = reader.shape()?;
        Ok(Fields { reader, of, next, end })
    }

    pub fn end<T>(self, value: T) -> Result<T, Error> {
        match self.end - self.next {
            0 => Ok(value),
            left => Err(Error::new(format!("{left} fields too many"))),
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'_, '_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.next == self.end {
            return Ok(None);
        }
        let name = self.reader.table.field(self.next);
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (of, name) = (self.of, self.reader.table.field(self.next));
        self.next += 1;
        self.reader.field = Some((of, name));
        seed.deserialize(&mut *self.reader).map_err(|error| error.in_field(name).in_type(of))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.end - self.next)
    }
}

/// A variant with a value.
pub struct Variant<'r, 't, 'de> {
    reader: &'r mut Reader<'t, 'de>,
    name: &'de str,
}

impl<'r, 't, 'de> Variant<'r, 't, 'de> {
    pub fn new(reader: &'r mut Reader<'t, 'de>, name: &'de str) -> Self {
        Variant { reader, name }
    }
}

impl<'de> EnumAccess<'de> for Variant<'_, '_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let variant = seed.deserialize(BorrowedStrDeserializer::<Error>::new(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, '_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Err(Error::new("a variant has a value, and is expected to have none").in_field(self.name))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.reader).map_err(|error| error.in_field(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.reader.deserialize_seq(visitor).map_err(|error| error.in_field(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let read = self.reader.deserialize_struct("", fields, visitor);
        read.map_err(|error| error.in_field(self.name))
    }
}

/// A variant with a value, as a map of one entry.
pub struct OneEntry<'r, 't, 'de> {
    reader: &'r mut Reader<'t, 'de>,
    name: Option<&'de str>,
}

impl<'r, 't, 'de> OneEntry<'r, 't, 'de> {
    pub fn new(reader: &'r mut Reader<'t, 'de>, name: &'de str) -> Self {
        OneEntry { reader, name: Some(name) }
    }
}

impl<'de> MapAccess<'de> for OneEntry<'_, '_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let name = self.name.take();
        name.map(|name| seed.deserialize(BorrowedStrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.reader)
    }
}
