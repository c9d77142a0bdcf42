//! The roster of a node, as bytes, and the parts of a later one.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::Place;
use wire::roster::RosterPart;

/// The roster of this node, and a later one that is on its way here.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    pub(crate) stamp: Place,
    pub(crate) bytes: Bytes,
    pub(crate) coming: Option<(Place, Vec<Option<Vec<u8>>>)>,
}

impl Roll {
    /// A part has come. Returns the roster, once it is whole.
    pub(crate) fn take(&mut self, part: RosterPart) -> Option<Bytes> {
        let RosterPart { stamp, part, parts, bytes } = part;
        let is_same = |(coming, pieces): &&mut (Place, Vec<Option<Vec<u8>>>)| {
            *coming == stamp && pieces.len() == usize::from(parts)
        };
        if self.coming.as_mut().filter(is_same).is_none() {
            if self.coming.as_ref().is_some_and(|(coming, _)| *coming > stamp) {
                return None;
            }
            self.coming = Some((stamp, (0..parts).map(|_| None).collect()));
        }
        let (_, pieces) = self.coming.as_mut()?;
        pieces[usize::from(part)] = Some(bytes);
        if pieces.iter().any(Option::is_none) {
            return None;
        }
        let (_, pieces) = self.coming.take()?;
        Some(pieces.into_iter().flatten().flatten().collect::<Vec<u8>>().into())
    }
}
