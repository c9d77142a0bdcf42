//! The names and shapes behind a value, as they are written and read.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::error::Error;
use crate::number;

/// The shape that a struct of this name and this many fields had last is looked for here first.
const RECENT: usize = 64;

type Name = &'static str;

/// The table of a value that is being written.
#[derive(Debug)]
pub struct Writing {
    names: Vec<Name>,
    by_name: BTreeMap<Name, u32>,
    shapes: Vec<Vec<Name>>,
    by_fields: BTreeMap<Vec<u32>, u32>,
    recent: [u32; RECENT],
}

/// Equal, most often because it is the very same text.
#[inline]
pub fn same(a: Name, b: Name) -> bool {
    (a.as_ptr() == b.as_ptr() && a.len() == b.len()) || a == b
}

impl Default for Writing {
    fn default() -> Self {
        Writing {
            names: Vec::new(),
            by_name: BTreeMap::new(),
            shapes: Vec::new(),
            by_fields: BTreeMap::new(),
            recent: [u32::MAX; RECENT],
        }
    }
}

#[inline]
fn slot(name: Name, fields: usize) -> usize {
    let address = name.as_ptr() as usize;
    (address ^ (address >> 6) ^ name.len() ^ (fields << 2)) % RECENT
}

impl Writing {
    /// A name's number.
    pub fn name(&mut self, name: Name) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name);
        self.by_name.insert(name, number);
        number
    }

    /// The shape that such a struct had last.
    #[inline]
    pub fn likely(&self, name: Name, fields: usize) -> Option<u32> {
        let number = self.recent[slot(name, fields)];
        (number != u32::MAX).then_some(number)
    }

    #[inline]
    pub fn fields(&self, shape: u32) -> &[Name] {
        &self.shapes[shape as usize]
    }

    /// The number of the shape with these fields, which a struct of this name has.
    pub fn shape(&mut self, name: Name, announced: usize, fields: Vec<Name>) -> u32 {
        let numbers: Vec<u32> = fields.iter().map(|field| self.name(field)).collect();
        let next = self.shapes.len() as u32;
        let number = *self.by_fields.entry(numbers).or_insert(next);
        if number == next {
            self.shapes.push(fields);
        }
        self.recent[slot(name, announced)] = number;
        number
    }

    /// Appends the table.
    pub fn append(&self, out: &mut Vec<u8>) {
        let began = out.len();
        number::put(out, self.names.len() as u64);
        for name in &self.names {
            number::put(out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        number::put(out, self.shapes.len() as u64);
        for shape in &self.shapes {
            number::put(out, shape.len() as u64);
            for field in shape {
                number::put(out, u64::from(self.by_name[field]));
            }
        }
        let length = (out.len() - began) as u32;
        out.extend_from_slice(&length.to_le_bytes());
    }
}

/// The table of a value that is being read.
#[derive(Debug, Default)]
pub struct Table<'a> {
    names: Vec<&'a str>,
    /// The fields of all shapes, and where each shape's end.
    fields: Vec<&'a str>,
    ends: Vec<usize>,
}

impl<'a> Table<'a> {
    /// Takes the table off the end.
    pub fn take(bytes: &mut &'a [u8]) -> Result<Table<'a>, Error> {
        let broken = || Error::new("its table of names is broken");
        let (rest, length) = bytes.split_last_chunk::<4>().ok_or_else(broken)?;
        let length = u32::from_le_bytes(*length) as usize;
        let at = rest.len().checked_sub(length).ok_or_else(broken)?;
        let (value, table) = rest.split_at(at);
        *bytes = value;
        Table::parse(table).ok_or_else(broken)
    }

    fn parse(mut input: &'a [u8]) -> Option<Table<'a>> {
        let mut table = Table::default();
        // Each name, shape and field takes a byte at least, so no number is believed beyond that.
        for _ in 0..number::take(&mut input)? {
            let length = usize::try_from(number::take(&mut input)?).ok()?;
            let (name, rest) = input.split_at_checked(length)?;
            table.names.push(core::str::from_utf8(name).ok()?);
            input = rest;
        }
        for _ in 0..number::take(&mut input)? {
            for _ in 0..number::take(&mut input)? {
                let name = usize::try_from(number::take(&mut input)?).ok()?;
                table.fields.push(table.names.get(name)?);
            }
            table.ends.push(table.fields.len());
        }
        input.is_empty().then_some(table)
    }

    #[inline]
    pub fn name(&self, number: u64) -> Option<&'a str> {
        self.names.get(usize::try_from(number).ok()?).copied()
    }

    /// Where a shape's fields begin and end.
    #[inline]
    pub fn shape(&self, number: u32) -> Option<(usize, usize)> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        Some((if number == 0 { 0 } else { self.ends[number - 1] }, end))
    }

    #[inline]
    pub fn field(&self, index: usize) -> &'a str {
        self.fields[index]
    }
}
