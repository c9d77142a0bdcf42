//! Makes an image.

use alloc::vec::Vec;

use crate::{Array, MAX_PART, Manifest, PAGE, Parent, Part, Place};

/// Gives each part its place in the image's file, and a checksum. Parts come in order of array and
/// offset.
///
/// ```
/// use steadfast_image::{Array, Builder, Opening, Place};
///
/// let place = Place { job: 1, rank: 0, start: 1, generation: 1 };
/// let array = Array { name: "a".into(), form: "<f8 (1,)".into(), length: 8 };
/// let mut builder = Builder::new(place, None, vec![array]);
/// let bytes = 2.5_f64.to_le_bytes();
/// let at = builder.part(0, 0, &bytes); // to be written there
/// let manifest = builder.finish(17);
///
/// let mut opening = Opening::new(place, manifest.root());
/// opening.take(&manifest.encode()).unwrap();
/// let chain = opening.finish().unwrap();
/// let read = chain.reads().next().unwrap();
/// assert_eq!((read.at, read.array, read.offset), (at, 0, 0));
/// chain.accept(&read, &bytes).unwrap();
/// ```
#[derive(Debug)]
pub struct Builder {
    manifest: Manifest,
    /// The first free byte of the file.
    end: u64,
}

impl Builder {
    /// Begins an image of these arrays.
    pub fn new(place: Place, parent: Option<Parent>, arrays: Vec<Array>) -> Builder {
        let manifest = Manifest { place, parent, step: 0, arrays, parts: Vec::new() };
        Builder { manifest, end: 0 }
    }

    /// Takes these bytes of an array, and returns their place in the file.
    ///
    /// # Panics
    /// They are no part: see [`Part`].
    pub fn part(&mut self, array: u32, offset: u64, bytes: &[u8]) -> u64 {
        assert!((1..=MAX_PART).contains(&bytes.len()), "a part has a size");
        let (at, length) = (self.end, bytes.len() as u32);
        let check = self.manifest.place.check(array, offset, bytes);
        self.manifest.parts.push(Part { array, offset, length, at, check });
        self.end = (at + u64::from(length)).next_multiple_of(PAGE);
        at
    }

    /// The bytes of the file so far.
    pub fn length(&self) -> u64 {
        self.end
    }

    /// The image of a rank that was so far.
    ///
    /// # Panics
    /// The parts are not within the arrays, in order, and apart.
    pub fn finish(mut self, step: u64) -> Manifest {
        self.manifest.step = step;
        assert!(self.manifest.is_possible(), "the parts are those of the arrays");
        self.manifest
    }
}
