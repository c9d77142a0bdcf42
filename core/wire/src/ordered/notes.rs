//! The words of nodes about the states of their replicas (`docs/protocol/group.md`, "A state that cannot
//! be had").

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::{MAX_NOTES, MAX_REASON};
use crate::{GroupId, Malformed};

/// The subject of a note.
///
/// ```text
/// | 0: give | 1: read | 2: read back | 3: dropped | 4: apart | 5: discarded |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// The replica has the state, and its service cannot give it to others.
    Give,
    /// The replica was sent the state, and its service cannot read it.
    Read,
    /// The replica's service has tried its own state: it would not come back as it is.
    ReadBack,
    /// The replica's service has read the state, and does not know some of its fields.
    Dropped,
    /// The replica's state was compared with the others', and differs.
    Apart,
    /// The replica's history ended when two histories met: the other one stayed.
    Discarded,
}

impl About {
    /// All of them.
    pub const ALL: [About; 6] =
        [About::Give, About::Read, About::ReadBack, About::Dropped, About::Apart, About::Discarded];

    /// While it is so, the group has fewer copies of its state than it should.
    pub fn is_trouble(self) -> bool {
        !matches!(self, About::Dropped | About::Discarded)
    }
}

impl core::fmt::Display for About {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            About::Give => "cannot give the state",
            About::Read => "cannot read the state",
            About::ReadBack => "cannot read its own state back",
            About::Dropped => "dropped fields of the state",
            About::Apart => "has another state than the others",
            About::Discarded => "gave up a history",
        })
    }
}

/// A fact about a replica of the sender.
///
/// ```text
/// | group | about | text |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The replica's group.
    pub group: GroupId,
    /// Its subject.
    pub about: About,
    /// The reason, in the words of the service; or the fields.
    pub text: String,
}

/// All that the sender has to say about the states of its replicas, until it says something else. It
/// is part of no history. From level [`WHOLE`](crate::versions::WHOLE) on.
///
/// ```text
/// | count, each note |
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes(pub Vec<Note>);

impl Notes {
    pub(super) fn checked(self) -> Result<Notes, Malformed> {
        at_most(self.0.len(), MAX_NOTES, "notes")?;
        for note in &self.0 {
            at_most(note.text.len(), MAX_REASON, "text")?;
        }
        Ok(self)
    }
}
