//! Named arrays.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;

use image::{Array, MAX_ARRAYS, MAX_NAME, PAGE};

use crate::mapping::Mapping;
use crate::stretch::Stretch;

/// Named arrays of bytes in one piece of memory. Each begins at a page.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    arrays: Vec<(Array, u64)>,
}

impl Arena {
    /// Arrays of zeros.
    ///
    /// # Errors
    /// There are too many, two have one name, a name or a form is too long, or the system refuses so
    /// much memory. What is lacking later ends the process at its first write there.
    pub fn new(arrays: Vec<Array>) -> io::Result<Arena> {
        let long = |array: &Array| array.name.len() > MAX_NAME || array.form.len() > MAX_NAME;
        let names: BTreeSet<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
        if arrays.len() > MAX_ARRAYS || names.len() < arrays.len() || arrays.iter().any(long) {
            let why = format!(
                "a rank has at most {MAX_ARRAYS} arrays, with names of their own; a name and a form have \
                 at most {MAX_NAME} bytes"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut end = 0_u64;
        let mut placed = Vec::with_capacity(arrays.len());
        for array in arrays {
            let length = array.length.checked_next_multiple_of(PAGE);
            let next = length.and_then(|length| end.checked_add(length));
            let next = next.ok_or(io::ErrorKind::OutOfMemory)?;
            placed.push((array, std::mem::replace(&mut end, next)));
        }
        let length = usize::try_from(end.max(PAGE)).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(Arena { mapping: Mapping::new(length)?, arrays: placed })
    }

    /// The arrays, in their order.
    pub fn arrays(&self) -> impl ExactSizeIterator<Item = &Array> {
        self.arrays.iter().map(|(array, _)| array)
    }

    /// The bytes of an array.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn bytes(&self, array: usize) -> &[u8] {
        &self.mapping.bytes()[self.place(array)]
    }

    /// The bytes of an array, to be changed.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn bytes_mut(&mut self, array: usize) -> &mut [u8] {
        let place = self.place(array);
        &mut self.mapping.bytes_mut()[place]
    }

    fn place(&self, array: usize) -> Range<usize> {
        let (array, begin) = &self.arrays[array];
        // The mapping has them, so they fit.
        *begin as usize..(*begin + array.length) as usize
    }

    /// The file that has the memory: it outlives the process if another one keeps it.
    pub fn file(&self) -> &File {
        self.mapping.file()
    }

    /// All of the memory, and where it is.
    pub(crate) fn memory(&self) -> &Mapping {
        &self.mapping
    }

    /// The parts of arrays in these stretches of the memory: array, first byte, end.
    pub(crate) fn parts<'a>(
        &'a self,
        stretches: &'a [Stretch],
    ) -> impl Iterator<Item = (usize, u64, u64)> + 'a {
        let within = |number: usize, stretch: &Stretch| {
            let (array, begin) = &self.arrays[number];
            let from = stretch.from().max(*begin);
            let to = stretch.to().min(begin + array.length);
            (from < to).then(|| (number, from - begin, to - begin))
        };
        (0..self.arrays.len())
            .flat_map(move |number| stretches.iter().filter_map(move |it| within(number, it)))
    }
}
