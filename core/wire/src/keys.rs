//! How a cluster changes the key that seals its datagrams (`docs/protocol/seal.md`, "Changing the
//! key").

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::MAX_MEMBERS;
use crate::{Malformed, NodeId, Secret};

/// The name of a cluster key: its number, and a fingerprint from which it cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyName {
    /// 1 to 255.
    pub number: u8,
    /// Tells it from another of that number.
    pub fingerprint: [u8; 8],
}

/// A key that is to be everybody's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedKey {
    /// The name of the key.
    pub name: KeyName,
    /// The key.
    pub secret: Secret,
}

/// A step of a change. Postcard: the variant's number, then its fields. A name is the number and
/// the 8 bytes of the fingerprint.
///
/// ```text
/// | 0 | name | secret 32 |   Offer    | 1 | name |   Stored    | 2 | name |   Sealing
/// | 3 | name |               Force    | 4 | name |   Abort
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyStep {
    /// Keep this key, and open with it. A node that was asked to change the key orders it.
    Offer(OfferedKey),
    /// The sender's file has it, and the sender opens with it.
    Stored(KeyName),
    /// The sender seals with it, and so does its file.
    Sealing(KeyName),
    /// Wait for those that are here, and for nobody else.
    Force(KeyName),
    /// Forget it, unless somebody seals with it already.
    Abort(KeyName),
}

/// The cluster's keys, as every member of a component knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTable {
    /// The key that seals, when nothing changes.
    pub sealing: KeyName,
    /// The change that is under way.
    pub change: Option<KeyChange>,
}

/// A change of the key that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    /// The next key.
    pub key: OfferedKey,
    /// Everybody has it: it seals from here on. The last one still opens.
    pub switched: bool,
    /// Only those that are here are waited for.
    pub forced: bool,
    /// The nodes that have confirmed this stage, in order of id.
    pub confirmed: Vec<NodeId>,
}

pub(crate) fn checked_step(step: KeyStep) -> Result<KeyStep, Malformed> {
    let (KeyStep::Offer(OfferedKey { name, .. })
    | KeyStep::Stored(name)
    | KeyStep::Sealing(name)
    | KeyStep::Force(name)
    | KeyStep::Abort(name)) = &step;
    checked_name(name)?;
    Ok(step)
}

pub(crate) fn checked_table(table: &KeyTable) -> Result<(), Malformed> {
    checked_name(&table.sealing)?;
    if let Some(change) = &table.change {
        checked_name(&change.key.name)?;
        at_most(change.confirmed.len(), MAX_MEMBERS, "confirmed")?;
    }
    Ok(())
}

fn checked_name(name: &KeyName) -> Result<(), Malformed> {
    if name.number == 0 { Err(Malformed::Field("key number")) } else { Ok(()) }
}
