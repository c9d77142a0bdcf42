//! Named arrays.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr;

use wire::rank::{Array, MAX_ARRAY_NAME as MAX_NAME, MAX_ARRAYS, PAGE};

use crate::mapping::Mapping;
use crate::stretch::Stretch;

/// Named arrays of bytes in one piece of memory. Each begins at a page, and never moves.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    arrays: Vec<(Array, u64)>,
    /// The first byte behind the last array.
    end: u64,
}

impl Arena {
    /// Arrays of zeros.
    ///
    /// # Errors
    /// As [`add`](Arena::add).
    pub fn new(arrays: Vec<Array>) -> io::Result<Arena> {
        let mut arena = Arena { mapping: Mapping::new(0)?, arrays: Vec::new(), end: 0 };
        arrays.into_iter().try_for_each(|array| arena.add(array).map(drop))?;
        Ok(arena)
    }

    /// Arrays that lie in this file in memory one behind the other, each from a page on.
    ///
    /// # Errors
    /// As [`add`](Arena::add).
    pub fn restored(file: File, arrays: Vec<Array>) -> io::Result<Arena> {
        let mut arena = Arena { mapping: Mapping::of(file, 0)?, arrays: Vec::new(), end: 0 };
        arrays.into_iter().try_for_each(|array| arena.add(array).map(drop))?;
        Ok(arena)
    }

    /// Adds an array, and returns its number. It has what is in the memory: zeros, unless that was
    /// restored.
    ///
    /// # Errors
    /// There are too many, there is one of this name, a name or a form is too long, or the system
    /// refuses so much memory. What is lacking later ends the process at its first write there.
    pub fn add(&mut self, array: Array) -> io::Result<usize> {
        let long = array.name.len() > MAX_NAME || array.form.len() > MAX_NAME;
        let known = self.arrays().any(|known| known.name == array.name);
        if self.arrays.len() >= MAX_ARRAYS || known || long {
            let why = format!(
                "array {:?}: a rank has at most {MAX_ARRAYS} arrays, with names of their own; a name and \
                 a form have at most {MAX_NAME} bytes",
                array.name
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let length = array.length.checked_next_multiple_of(PAGE);
        let next = length.and_then(|length| self.end.checked_add(length));
        let next = next.ok_or(io::ErrorKind::OutOfMemory)?;
        self.mapping.grow(usize::try_from(next).map_err(|_| io::ErrorKind::OutOfMemory)?)?;
        self.arrays.push((array, std::mem::replace(&mut self.end, next)));
        Ok(self.arrays.len() - 1)
    }

    /// Takes the last arrays out, from this number on, with their bytes. Their memory is zeros again.
    pub(crate) fn split_off(&mut self, number: usize) -> Vec<(Array, Vec<u8>)> {
        let bytes: Vec<Vec<u8>> =
            (number..self.arrays.len()).map(|array| self.bytes(array).to_vec()).collect();
        let taken = self.arrays.split_off(number);
        if let Some((_, begin)) = taken.first() {
            let begin = std::mem::replace(&mut self.end, *begin) as usize;
            self.mapping.bytes_mut()[self.end as usize..begin].fill(0);
            // Arrays that are added there are new: a tracker owes them as a whole.
            self.mapping.shorten(self.end as usize);
        }
        taken.into_iter().map(|(array, _)| array).zip(bytes).collect()
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

    /// Where the bytes of an array are, for another language. They stay there while the arena lives;
    /// who writes there does so while nobody borrows them.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn pointer(&self, array: usize) -> *mut [u8] {
        let place = self.place(array);
        let begin = self.mapping.pointer().wrapping_add(place.start);
        ptr::slice_from_raw_parts_mut(begin, place.len())
    }

    fn place(&self, array: usize) -> Range<usize> {
        let (array, begin) = &self.arrays[array];
        // The mapping has them, so they fit.
        *begin as usize..(*begin + array.length) as usize
    }

    /// All of the memory, and where it is.
    pub(crate) fn memory(&self) -> &Mapping {
        &self.mapping
    }

    /// The spans of arrays in these stretches of the memory, in order: array, first byte, end.
    pub(crate) fn spans(&self, stretches: &[Stretch]) -> Vec<(usize, u64, u64)> {
        let (mut spans, mut next) = (Vec::new(), 0);
        for stretch in stretches {
            // Arrays and stretches are both in order.
            while let Some((array, begin)) = self.arrays.get(next) {
                let end = begin + array.length;
                let (from, to) = (stretch.from().max(*begin), stretch.to().min(end));
                if from < to {
                    spans.push((next, from - begin, to - begin));
                }
                if stretch.to() < end.next_multiple_of(PAGE) {
                    break;
                }
                next += 1;
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracker::{Kind, Tracker};

    /// A restored arena ends with notes; an array that is added lies where they were.
    #[test]
    fn an_array_in_the_place_of_notes_is_owed_as_a_whole() {
        let array = |name: &str| Array { name: name.into(), form: String::new(), length: 5 };
        for kind in [Kind::Written, Kind::Compared] {
            let mut arena = Arena::new(vec![array("a"), array("note")]).unwrap();
            arena.bytes_mut(1).fill(7);
            let notes = arena.split_off(1);
            assert_eq!((notes.len(), &notes[0].1[..]), (1, &[7; 5][..]));
            // Where the kernel does not tell, there is one kind less.
            let Ok(mut tracker) = Tracker::of(kind, &arena) else { continue };
            tracker.saved();
            let new = arena.add(array("b")).unwrap();
            assert_eq!(arena.bytes(new), [0; 5]);
            let changed = tracker.changed(&arena).unwrap();
            assert_eq!(arena.spans(&changed), [(1, 0, 5)], "{kind:?}");
        }
    }
}
