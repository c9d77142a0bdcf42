//! Sequences, maps and structs as they are written.

use alloc::vec::Vec;

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

use super::writer::{Shared, Writer};
use crate::error::Error;
use crate::number;
use crate::table::same;
use crate::tag;

/// A sequence. If its first element is a number, all are expected to be of that type, and share
/// its tag.
pub struct Elements<'a> {
    writer: &'a mut Writer,
    /// Where the shared tag stands.
    at: usize,
    announced: u64,
    count: u64,
    /// Where the first element begins.
    first: usize,
}

impl<'a> Elements<'a> {
    pub fn begin(writer: &'a mut Writer, length: Option<usize>) -> Result<Self, Error> {
        writer.tag(tag::SEQUENCE);
        writer.enter()?;
        let at = writer.out.len();
        let announced = length.unwrap_or(0) as u64;
        writer.out.push(tag::MIXED);
        number::put(&mut writer.out, announced);
        let first = writer.out.len();
        Ok(Elements { writer, at, announced, count: 0, first })
    }

    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let index = self.count as usize;
        self.count += 1;
        let shared = self.writer.out[self.at];
        if shared != tag::MIXED {
            self.writer.shared = Shared::Tag(shared);
            value.serialize(&mut *self.writer).map_err(|error| error.at_index(index))?;
            if self.writer.shared != Shared::LeftOut {
                self.mix();
            }
            return Ok(());
        }
        let began = self.writer.out.len();
        self.writer.shared = Shared::No;
        value.serialize(&mut *self.writer).map_err(|error| error.at_index(index))?;
        if index == 0 && self.writer.out.get(began).is_some_and(|tag| tag::is_shared(*tag)) {
            self.writer.out[self.at] = self.writer.out.remove(began);
        }
        Ok(())
    }

    /// The element that was just written has another tag: those before it get theirs back.
    #[cold]
    fn mix(&mut self) {
        let shared = core::mem::replace(&mut self.writer.out[self.at], tag::MIXED);
        let written = self.writer.out.split_off(self.first);
        let mut input = &written[..];
        for _ in 1..self.count {
            let before = input;
            match shared {
                tag::U8 | tag::I8 => input = &input[1..],
                tag::F32 => input = &input[4..],
                tag::F64 => input = &input[8..],
                tag::U128 | tag::I128 => input = &input[16..],
                _ => drop(number::take(&mut input)),
            }
            self.writer.out.push(shared);
            self.writer.out.extend_from_slice(&before[..before.len() - input.len()]);
        }
        self.writer.out.extend_from_slice(input);
    }

    fn close(self) {
        self.writer.correct(self.at + 1, self.announced, self.count);
        self.writer.leave();
    }
}

macro_rules! elements {
    ($($of:ident: $function:ident),*) => {$(
        impl $of for Elements<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $function<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )*};
}

elements! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}

/// A map.
pub struct Entries<'a> {
    writer: &'a mut Writer,
    /// Where the number of entries stands.
    at: usize,
    announced: u64,
    count: u64,
}

impl<'a> Entries<'a> {
    pub fn begin(writer: &'a mut Writer, length: Option<usize>) -> Result<Self, Error> {
        writer.tag(tag::MAP);
        writer.enter()?;
        let at = writer.out.len();
        let announced = length.unwrap_or(0) as u64;
        number::put(&mut writer.out, announced);
        Ok(Entries { writer, at, announced, count: 0 })
    }
}

impl SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.count += 1;
        self.writer.shared = Shared::No;
        key.serialize(&mut *self.writer)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.writer.shared = Shared::No;
        let index = self.count as usize - 1;
        value.serialize(&mut *self.writer).map_err(|error| error.at_index(index))
    }

    fn end(self) -> Result<(), Error> {
        self.writer.correct(self.at, self.announced, self.count);
        self.writer.leave();
        Ok(())
    }
}

/// A struct. It is expected to have the fields of the last one of its name and length.
pub struct Fields<'a> {
    writer: &'a mut Writer,
    name: &'static str,
    announced: usize,
    /// Where the number of the shape stands.
    at: usize,
    /// The shape that has had all fields so far.
    likely: Option<u32>,
    count: usize,
    /// The fields, if no known shape has had them.
    own: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub fn begin(
        writer: &'a mut Writer,
        name: &'static str,
        announced: usize,
    ) -> Result<Self, Error> {
        writer.tag(tag::STRUCT);
        writer.enter()?;
        let at = writer.out.len();
        writer.out.extend_from_slice(&[0; 2]);
        let likely = writer.table.likely(name, announced);
        Ok(Fields { writer, name, announced, at, likely, count: 0, own: Vec::new() })
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        match self.likely {
            Some(shape) => {
                let fields = self.writer.table.fields(shape);
                if !fields.get(self.count).is_some_and(|field| same(field, name)) {
                    self.own = fields[..self.count].to_vec();
                    self.own.push(name);
                    self.likely = None;
                }
            }
            None => self.own.push(name),
        }
        self.count += 1;
        self.writer.shared = Shared::No;
        value.serialize(&mut *self.writer).map_err(|error| error.in_field(name).in_type(self.name))
    }

    fn close(mut self) -> Result<(), Error> {
        let number = match self.likely {
            Some(shape) if self.writer.table.fields(shape).len() == self.count => shape,
            Some(shape) => {
                let fields = self.writer.table.fields(shape)[..self.count].to_vec();
                self.writer.table.shape(self.name, self.announced, fields)
            }
            None => {
                let fields = core::mem::take(&mut self.own);
                self.writer.table.shape(self.name, self.announced, fields)
            }
        };
        let short = u16::try_from(number).unwrap_or(u16::MAX);
        self.writer.out[self.at..self.at + 2].copy_from_slice(&short.to_le_bytes());
        if short == u16::MAX {
            let place = self.at + 2;
            self.writer.out.splice(place..place, number.to_le_bytes());
        }
        self.writer.leave();
        Ok(())
    }
}

macro_rules! fields {
    ($($of:ident),*) => {$(
        impl $of for Fields<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);
