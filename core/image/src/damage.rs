//! Why an image cannot be restored.

use alloc::string::String;

use crate::{MAX_CHAIN, Place};

/// The reason. Nothing of a damaged image is restored: another copy, or an older generation, is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The manifest is cut short, has rotted, or is none.
    #[error("the manifest is torn or rotten: {0}")]
    Manifest(&'static str),
    /// It is not the manifest that was committed, or on which another builds.
    #[error("the manifest of {0} is not the one that was committed")]
    Root(Place),
    /// It is another's, or another one.
    #[error("{found} stands where {wanted} belongs")]
    Misplaced {
        /// The image that is wanted.
        wanted: Place,
        /// The one that is there.
        found: Place,
    },
    /// An image is not there.
    #[error("{0} is missing")]
    Missing(Place),
    /// Too many images build on one another.
    #[error("{0} is made of more than {MAX_CHAIN} images")]
    TooLong(Place),
    /// A part of the state is in no image.
    #[error("array \"{array}\" has no bytes at {offset}")]
    Gap {
        /// The array's name.
        array: String,
        /// The first byte that is missing.
        offset: u64,
    },
    /// A part is not what was saved.
    #[error("{place}: array \"{array}\", {length} bytes at {offset}, is torn, rotten or another's")]
    Part {
        /// The image.
        place: Place,
        /// The array's name.
        array: String,
        /// Its place in the array.
        offset: u64,
        /// Its length.
        length: u32,
    },
}

impl Damage {
    /// The image that is to blame, if it can be told.
    pub fn place(&self) -> Option<Place> {
        match self {
            Damage::Root(place) | Damage::Missing(place) | Damage::Part { place, .. } => {
                Some(*place)
            }
            Damage::Misplaced { wanted, .. } => Some(*wanted),
            Damage::Manifest(_) | Damage::TooLong(_) | Damage::Gap { .. } => None,
        }
    }
}
