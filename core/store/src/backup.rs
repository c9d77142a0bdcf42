//! A group's state in a file of people's own (`docs/protocol/backup.md`): what `steadfast state
//! save` writes.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::MAX_NAME;
use wire::ordered::{AckLevel, Content, Durability, Form, GroupOptions, Place, Style};
use wire::{Malformed, NodeId, RingId};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 4] = *b"SFBK";

/// The version of the format. A file of a later one is refused.
pub const VERSION: u32 = 1;

/// Bytes before the names.
const HEAD: usize = size_of::<Head>();

/// A group's state, and where it is from.
///
/// ```text
///  0      4          8         12     13      14     15           16      24      32         40         48         52     56       64
/// +------+----------+---------+------+-------+------+------------+-------+-------+----------+----------+----------+------+--------+
/// | SFBK | checksum | version | form | style | ack | durability | saved | epoch | ring.seq | sequence | ring.rep | node | length |
/// +------+----------+---------+------+-------+------+------------+-------+-------+----------+----------+----------+------+--------+
///  64         72      76        78      80
/// +----------+-------+---------+-------+-------------------------+------------------+----------------
/// | executed | check | cluster | group | the cluster's name      | the group's name | the state
/// +----------+-------+---------+-------+-------------------------+------------------+----------------
///
/// checksum  CRC-32C of the bytes 8 to the end of the names        form        0 state, 1 log
/// check     CRC-32C of the state                                  style       its number
/// saved     microseconds since 1970, by the node's clock          ack         0 one, 1 majority, 2 all
/// length    bytes of the state                                    durability  0 memory, 1 disk
/// cluster, group  bytes of their names
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The name of the cluster that it was saved in.
    pub cluster: String,
    /// The group's name.
    pub group: String,
    /// The group's options.
    pub options: GroupOptions,
    /// The state contains all requests ordered before this place.
    pub place: Place,
    /// The node whose replica's state it is.
    pub node: NodeId,
    /// Microseconds since 1970, by that node's clock.
    pub saved: u64,
    /// Requests executed in the group's history.
    pub executed: u64,
    /// The form of the state.
    pub form: Form,
    /// The state.
    pub state: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 4],
    checksum: U32,
    version: U32,
    form: u8,
    style: u8,
    ack: u8,
    durability: u8,
    saved: U64,
    epoch: U64,
    ring: U64,
    sequence: U64,
    representative: U32,
    node: U32,
    length: U64,
    executed: U64,
    check: U32,
    cluster: U16,
    group: U16,
}

/// Why a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// It is something else.
    #[error(
        "this is no state that was saved (wrong magic number): give a file that `steadfast state save` wrote"
    )]
    Magic,
    /// It was written by a later program.
    #[error(
        "the file has version {0} of the format, this program reads up to {VERSION}: use the program that saved it, or a newer one"
    )]
    Version(u32),
    /// Its end is missing.
    #[error(
        "the file was cut short: {there} of at least {whole} bytes are there; use another copy of it, or an older file"
    )]
    Short {
        /// Bytes that it has.
        there: u64,
        /// Bytes that it should have.
        whole: u64,
    },
    /// It goes on behind its end.
    #[error(
        "the file has {there} bytes and should have {whole}: something was written behind its end; use another copy of it, or an \
         older file"
    )]
    Long {
        /// Bytes that it has.
        there: u64,
        /// Bytes that it should have.
        whole: u64,
    },
    /// The head, which describes the state, is damaged.
    #[error(
        "the file's head is damaged (its checksum does not fit): use another copy of it, or an older file, and look after the disk"
    )]
    Head,
    /// The state is damaged.
    #[error(
        "the state in the file is damaged (its checksum does not fit): use another copy of it, or an older file, and look after the \
         disk"
    )]
    State,
    /// It is whole, and no program wrote it.
    #[error(
        "the file is whole, but the state in it is none ({0}): it was not written by `steadfast state save`; use an older file"
    )]
    Content(#[from] Malformed),
}

impl Backup {
    /// The file up to the state, which follows.
    ///
    /// # Panics
    /// If a name is longer than a name can be.
    pub fn head(&self) -> Bytes {
        let GroupOptions { style, ack, durability } = self.options;
        let of = |name: &str| {
            assert!(name.len() <= MAX_NAME, "names are limited");
            U16::from(name.len() as u16)
        };
        let mut head = Head {
            magic: MAGIC,
            checksum: 0.into(),
            version: VERSION.into(),
            form: self.form as u8,
            style: style as u8,
            ack: ack as u8,
            durability: durability as u8,
            saved: self.saved.into(),
            epoch: self.place.epoch.into(),
            ring: self.place.ring.sequence.into(),
            sequence: self.place.sequence.into(),
            representative: self.place.ring.representative.0.into(),
            node: self.node.0.into(),
            length: (self.state.len() as u64).into(),
            executed: self.executed.into(),
            check: crc32c::crc32c(&self.state).into(),
            cluster: of(&self.cluster),
            group: of(&self.group),
        };
        let names = [self.cluster.as_bytes(), self.group.as_bytes()].concat();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&head.as_bytes()[8..]), &names);
        head.checksum = checksum.into();
        [head.as_bytes(), &names].concat().into()
    }

    /// The whole file.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::from(self.head());
        bytes.extend_from_slice(&self.state);
        bytes.into()
    }

    /// Reads a file, and looks at all of it. The state shares `bytes`.
    ///
    /// # Errors
    /// [`BackupError`] says what is wrong, and what to do.
    pub fn decode(bytes: &Bytes) -> Result<(Backup, Content), BackupError> {
        let backup = Backup::read(bytes)?;
        let content = backup.form.look(&backup.state)?;
        if content.executed != backup.executed {
            return Err(Malformed::Field("executed").into());
        }
        Ok((backup, content))
    }

    fn read(bytes: &Bytes) -> Result<Backup, BackupError> {
        let there = bytes.len() as u64;
        let magic = bytes.get(..4).unwrap_or(bytes);
        if magic != &MAGIC[..magic.len()] {
            return Err(BackupError::Magic);
        }
        let short = |whole: usize| BackupError::Short { there, whole: whole as u64 };
        let (head, rest) = Head::read_from_prefix(bytes).map_err(|_| short(HEAD))?;
        if head.version.get() > VERSION {
            return Err(BackupError::Version(head.version.get()));
        }
        let (cluster, group) = (usize::from(head.cluster.get()), usize::from(head.group.get()));
        if cluster > MAX_NAME || group > MAX_NAME {
            return Err(BackupError::Head);
        }
        let names = rest.get(..cluster + group).ok_or(short(HEAD + cluster + group))?;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&head.as_bytes()[8..]), names);
        if checksum != head.checksum.get() {
            return Err(BackupError::Head);
        }
        let start = HEAD + names.len();
        let whole = (start as u64).saturating_add(head.length.get());
        match there.cmp(&whole) {
            core::cmp::Ordering::Less => return Err(BackupError::Short { there, whole }),
            core::cmp::Ordering::Greater => return Err(BackupError::Long { there, whole }),
            core::cmp::Ordering::Equal => {}
        }
        let state = bytes.slice(start..);
        if crc32c::crc32c(&state) != head.check.get() {
            return Err(BackupError::State);
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
        let name = |bytes| text(bytes).map_err(|_| Malformed::Field("name"));
        Ok(Backup {
            cluster: name(&names[..cluster])?,
            group: name(&names[cluster..])?,
            options: head.options()?,
            place: head.place(),
            node: NodeId(head.node.get()),
            saved: head.saved.get(),
            executed: head.executed.get(),
            form: head.form()?,
            state,
        })
    }
}

impl Head {
    fn place(&self) -> Place {
        let representative = NodeId(self.representative.get());
        let ring = RingId { sequence: self.ring.get(), representative };
        Place { epoch: self.epoch.get(), ring, sequence: self.sequence.get() }
    }

    fn form(&self) -> Result<Form, Malformed> {
        match self.form {
            0 => Ok(Form::State),
            1 => Ok(Form::Log),
            _ => Err(Malformed::Field("form")),
        }
    }

    fn options(&self) -> Result<GroupOptions, Malformed> {
        let style = Style::ALL.into_iter().find(|style| *style as u8 == self.style);
        let ack = match self.ack {
            0 => AckLevel::One,
            1 => AckLevel::Majority,
            2 => AckLevel::All,
            _ => return Err(Malformed::Field("ack")),
        };
        let durability = match self.durability {
            0 => Durability::Memory,
            1 => Durability::Disk,
            _ => return Err(Malformed::Field("durability")),
        };
        Ok(GroupOptions { style: style.ok_or(Malformed::Field("style"))?, ack, durability })
    }
}

#[cfg(test)]
mod tests;
