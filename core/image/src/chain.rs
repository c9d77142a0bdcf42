//! Images that build on one another.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::bug::{Bug, Planted};
use crate::manifest::root_of;
use crate::{Array, Damage, MAX_CHAIN, MAX_MANIFEST, Manifest, Part, Place, Root};

/// A full image and the increments after it, the newest first: all that makes a state whole.
#[derive(Clone, Debug)]
pub struct Chain {
    manifests: Vec<Manifest>,
    /// The places of each image's arrays among those of the newest one; `None`: the newest one,
    /// or one between, has it not, or in another form.
    places: Vec<Vec<Option<u32>>>,
    planted: Planted,
}

/// A part to be read from the file of one of the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The image whose file has it.
    pub place: Place,
    /// Where it is in that file.
    pub at: u64,
    /// Its bytes.
    pub length: u32,
    /// The array, by its place among [`Chain::arrays`].
    pub array: u32,
    /// Where it belongs in the array.
    pub offset: u64,
    /// The array by its place in its own image.
    own: u32,
    check: u32,
}

/// A chain that is being read, manifest by manifest, from the newest one on.
///
/// ```text
/// commit -> manifest 9 -> its parent, 8 -> ... -> a full image
/// ```
#[derive(Clone, Debug)]
pub struct Opening {
    committed: Place,
    /// The next image below, and its root.
    next: Option<(Place, Root)>,
    manifests: Vec<Manifest>,
    planted: Planted,
}

impl Opening {
    /// Begins with the image that a commit names.
    pub fn new(committed: Place, root: Root) -> Opening {
        let (next, planted) = (Some((committed, root)), Planted::default());
        Opening { committed, next, manifests: Vec::new(), planted }
    }

    /// The same with these mistakes.
    pub fn planted(self, planted: Planted) -> Opening {
        Opening { planted, ..self }
    }

    /// The image whose manifest is to be read next; `None`: all are there.
    pub fn wanted(&self) -> Option<Place> {
        self.next.map(|(place, _)| place)
    }

    /// Takes the bytes of the manifest that is wanted.
    ///
    /// # Errors
    /// It is torn, rotten, another's, or not the one on which the image above builds.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        let Some((wanted, root)) = self.next else { return Ok(()) };
        if self.manifests.len() == MAX_CHAIN {
            return Err(Damage::TooLong(self.committed));
        }
        // Nothing is read that was not committed: it may be made to take memory.
        if bytes.len() > MAX_MANIFEST || root_of(bytes) != root {
            return Err(Damage::Root(wanted));
        }
        let manifest = Manifest::decode(bytes)?;
        if manifest.place != wanted {
            return Err(Damage::Misplaced { wanted, found: manifest.place });
        }
        self.next = manifest.parent.map(|parent| (parent.place, parent.root));
        self.manifests.push(manifest);
        Ok(())
    }

    /// The chain, if it has every byte of the state.
    ///
    /// # Errors
    /// An image is missing, or a part is in none.
    pub fn finish(self) -> Result<Chain, Damage> {
        if let Some((missing, _)) = self.next {
            return Err(Damage::Missing(missing));
        }
        let places = places(&self.manifests);
        let chain = Chain { manifests: self.manifests, places, planted: self.planted };
        chain.check_whole()?;
        Ok(chain)
    }
}

impl Chain {
    /// The arrays, as the newest image has them.
    pub fn arrays(&self) -> &[Array] {
        &self.manifests[0].arrays
    }

    /// How far the rank was.
    pub fn step(&self) -> u64 {
        self.manifests[0].step
    }

    /// The parts to read, the oldest image's first: later ones overwrite earlier ones.
    pub fn reads(&self) -> impl Iterator<Item = Read> + '_ {
        self.manifests.iter().zip(&self.places).rev().flat_map(|(manifest, places)| {
            let read = move |part: &Part| {
                let array = places[part.array as usize]?;
                let Part { array: own, offset, length, at, check } = *part;
                Some(Read { place: manifest.place, at, length, array, offset, own, check })
            };
            manifest.parts.iter().filter_map(read)
        })
    }

    /// Whether these are the bytes that were saved.
    ///
    /// # Errors
    /// They are torn, rotten or another's.
    pub fn accept(&self, read: &Read, bytes: &[u8]) -> Result<(), Damage> {
        let fits = bytes.len() == read.length as usize
            && read.place.check(read.own, read.offset, bytes) == read.check;
        if fits || self.planted.is(Bug::RestoreUnverified) {
            return Ok(());
        }
        Err(Damage::Part {
            place: read.place,
            array: self.arrays()[read.array as usize].name.clone(),
            offset: read.offset,
            length: read.length,
        })
    }

    /// Every byte of every array is in some image.
    fn check_whole(&self) -> Result<(), Damage> {
        // By array: the stretches that are there, from their beginnings to their ends.
        let mut there: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for read in self.reads() {
            let stretch = (read.offset, read.offset + u64::from(read.length));
            there.entry(read.array).or_default().push(stretch);
        }
        for (place, array) in (0..).zip(self.arrays()) {
            let mut stretches = there.remove(&place).unwrap_or_default();
            stretches.sort_unstable();
            let mut end = 0;
            for (from, to) in stretches.into_iter().take_while(|(from, _)| *from <= array.length) {
                if from > end {
                    break;
                }
                end = end.max(to);
            }
            if end < array.length {
                return Err(Damage::Gap { array: array.name.clone(), offset: end });
            }
        }
        Ok(())
    }
}

/// The places of each image's arrays among those of the newest one. An array that was gone in
/// between began anew.
fn places(manifests: &[Manifest]) -> Vec<Vec<Option<u32>>> {
    let mut alive: BTreeMap<&Array, u32> = BTreeMap::new();
    let mut places = Vec::with_capacity(manifests.len());
    for (above, manifest) in manifests.iter().enumerate() {
        match above {
            0 => alive = manifest.arrays.iter().zip(0..).collect(),
            _ => alive.retain(|array, _| manifest.arrays.contains(array)),
        }
        places.push(manifest.arrays.iter().map(|array| alive.get(array).copied()).collect());
    }
    places
}
