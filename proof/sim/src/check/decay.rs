//! A bit that rots on a disk is reported or has no effect: no node continues with less than its
//! disk had, or with something else. A node whose disk is full reports that before it refuses
//! anything.
//!
//! Source: docs/protocol/store.md, "What it promises", 3 and 4, and "The mark", the one exception.

use engine::Kept;
use store::{FileName, OpenError};

use super::{Verdict, Violation, demand};
use crate::disk::Rot;

const PROPERTY: &str = "durable";

/// The effect of a bit that rotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The store does not open: the disk is to be replaced.
    Told,
    /// It means nothing, or it struck the last batch before its mark: it is as if it had not
    /// rotted.
    Unnoticed,
}

/// A store is opened on a disk where this bit has rotted. `whole`: the pieces that it gives back
/// without that. `last`: the bit belongs to the last write.
///
/// # Errors
/// Something else came back, or another file is said to be damaged.
pub fn opened(
    rot: Rot,
    last: bool,
    whole: &[Kept],
    found: Result<&[Kept], &OpenError>,
) -> Result<Found, Violation> {
    let file = rot.0;
    match found {
        Err(error) => {
            let text = || format!("{file} rotted, and yet: {error}");
            demand(befits(error, file), PROPERTY, text)?;
            Ok(Found::Told)
        }
        Ok(found) => {
            let excused = last && whole.starts_with(found);
            demand(found == whole || excused, PROPERTY, || {
                format!(
                    "{rot:?} rotted, and the store opens with {} pieces of {}",
                    found.len(),
                    whole.len()
                )
            })?;
            Ok(Found::Unnoticed)
        }
    }
}

/// A record is refused for want of room. `told`: the store had said that there is none.
pub fn refused(told: bool) -> Verdict {
    demand(told, "told", || "a record finds no room, and nobody was told".into())
}

/// Whether this error tells of a bit that rotted in this file.
pub fn befits(error: &OpenError, rotten: FileName) -> bool {
    match (error, rotten) {
        (OpenError::Damaged { .. }, FileName::Segment(_)) => true,
        (OpenError::Lost { file, .. }, FileName::Snapshot(_) | FileName::Segment(_)) => {
            *file == rotten
        }
        (OpenError::Manifest | OpenError::Version { .. }, FileName::Manifest) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wire::ordered::Place;

    #[test]
    fn who_goes_on_with_less_or_blames_another_file_is_seen() {
        let kept = |word: &'static str| Kept {
            strand: None,
            kind: Some(1),
            place: Place::default(),
            bytes: Bytes::from_static(word.as_bytes()),
        };
        let (whole, other) = ([kept("a"), kept("b")], [kept("a"), kept("c")]);
        let rot = (FileName::Manifest, 3, 1);
        assert_eq!(opened(rot, false, &whole, Ok(&whole)).unwrap(), Found::Unnoticed);
        assert_eq!(opened(rot, true, &whole, Ok(&whole[..1])).unwrap(), Found::Unnoticed);
        opened(rot, false, &whole, Ok(&whole[..1])).unwrap_err();
        opened(rot, true, &whole, Ok(&other)).unwrap_err();
        assert_eq!(opened(rot, false, &whole, Err(&OpenError::Manifest)).unwrap(), Found::Told);
        let rot = (FileName::Snapshot(2), 3, 1);
        opened(rot, false, &whole, Err(&OpenError::Manifest)).unwrap_err();
        assert!(refused(true).is_ok() && refused(false).is_err());
    }
}
