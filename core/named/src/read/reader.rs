//! The bytes that are being read, and the parts of a value that have no others in them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::bounds::{Bounds, MAX_DROPPED};
use crate::error::Error;
use crate::number;
use crate::table::Table;
use crate::tag;

pub struct Reader<'t, 'de> {
    pub input: &'de [u8],
    pub table: &'t Table<'de>,
    /// The tag of the next value, which it shares with its neighbours.
    pub given: Option<u8>,
    /// The field whose value comes next: its type and name.
    pub field: Option<(&'static str, &'de str)>,
    pub depth: usize,
    pub bounds: Bounds,
    pub dropped: Vec<String>,
    pub is_dynamic: bool,
}

impl<'t, 'de> Reader<'t, 'de> {
    pub fn new(input: &'de [u8], table: &'t Table<'de>, bounds: Bounds) -> Self {
        let (given, field, depth) = (None, None, 0);
        let (dropped, is_dynamic) = (Vec::new(), false);
        Reader { input, table, given, field, depth, bounds, dropped, is_dynamic }
    }

    #[inline]
    pub fn tag(&mut self) -> Result<u8, Error> {
        if let Some(tag) = self.given.take() {
            return Ok(tag);
        }
        let (&tag, rest) = self.input.split_first().ok_or_else(Error::cut)?;
        self.input = rest;
        Ok(tag)
    }

    /// The next value's tag, which stays.
    pub fn peek(&self) -> Result<u8, Error> {
        self.given.or_else(|| self.input.first().copied()).ok_or_else(Error::cut)
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64, Error> {
        number::take(&mut self.input).ok_or_else(Error::cut)
    }

    /// A varint that the writer's type had room for.
    pub fn narrow<N: TryFrom<u64>>(&mut self) -> Result<N, Error> {
        N::try_from(self.varint()?).map_err(|_| Error::new("a number is larger than its type"))
    }

    pub fn signed<N: TryFrom<i64>>(&mut self) -> Result<N, Error> {
        let value = number::from_zigzag(self.varint()?);
        N::try_from(value).map_err(|_| Error::new("a number is larger than its type"))
    }

    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (bytes, rest) = self.input.split_first_chunk::<N>().ok_or_else(Error::cut)?;
        self.input = rest;
        Ok(*bytes)
    }

    pub fn bytes(&mut self) -> Result<&'de [u8], Error> {
        let length = usize::try_from(self.varint()?).map_err(|_| Error::cut())?;
        let (bytes, rest) = self.input.split_at_checked(length).ok_or_else(Error::cut)?;
        self.input = rest;
        Ok(bytes)
    }

    pub fn text(&mut self) -> Result<&'de str, Error> {
        core::str::from_utf8(self.bytes()?).map_err(|_| Error::new("a text is not UTF-8"))
    }

    pub fn name(&mut self) -> Result<&'de str, Error> {
        let number = self.varint()?;
        self.table.name(number).ok_or_else(|| Error::new("a name is not in the table"))
    }

    pub fn shape(&mut self) -> Result<(usize, usize), Error> {
        let short = u16::from_le_bytes(self.fixed()?);
        let number = match short {
            u16::MAX => u32::from_le_bytes(self.fixed()?),
            _ => short.into(),
        };
        self.table.shape(number).ok_or_else(|| Error::new("a shape is not in the table"))
    }

    /// The tag that the elements of a sequence share.
    pub fn shared_tag(&mut self) -> Result<Option<u8>, Error> {
        match self.fixed()? {
            [tag::MIXED] => Ok(None),
            [shared] if tag::is_shared(shared) => Ok(Some(shared)),
            _ => Err(Error::new("the elements share a tag that cannot be shared")),
        }
    }

    pub fn char(&mut self) -> Result<char, Error> {
        let code = u32::try_from(self.varint()?).ok().and_then(char::from_u32);
        code.ok_or_else(|| Error::new("no such character"))
    }

    #[cold]
    pub fn dropped(&mut self, of: &str, name: &str) {
        let dropped = if of.is_empty() { name.to_string() } else { format!("{of}.{name}") };
        if self.dropped.len() < MAX_DROPPED && !self.dropped.contains(&dropped) {
            self.dropped.push(dropped);
        }
    }

    #[inline]
    pub fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        match self.depth > self.bounds.depth {
            true => Err(Error::too_deep(self.bounds.depth)),
            false => Ok(()),
        }
    }

    /// Reads a value that has others in it.
    #[inline]
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.enter()?;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }
}
