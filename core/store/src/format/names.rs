//! The files of a store.

use core::fmt;

/// A file in a store's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// Says which of the others count.
    Manifest,
    /// The next one, on its way.
    NewManifest,
    /// Room that is kept for snapshots and manifests on a full disk.
    Reserve,
    /// A segment that is no longer needed, to be used again.
    Spare,
    /// A part of the log, by its number.
    Segment(u64),
    /// A snapshot, by its number.
    Snapshot(u64),
}

impl FileName {
    /// The file of this name; `None` if it is none of a store's.
    pub fn parse(name: &str) -> Option<FileName> {
        let numbered = |prefix: &str| {
            let digits = name.strip_prefix(prefix)?;
            let ours = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_digit());
            ours.then(|| digits.parse().ok()).flatten()
        };
        match name {
            "manifest" => Some(FileName::Manifest),
            "manifest.new" => Some(FileName::NewManifest),
            "reserve" => Some(FileName::Reserve),
            "spare" => Some(FileName::Spare),
            _ => numbered("log-")
                .map(FileName::Segment)
                .or_else(|| numbered("snapshot-").map(FileName::Snapshot)),
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Manifest => f.write_str("manifest"),
            FileName::NewManifest => f.write_str("manifest.new"),
            FileName::Reserve => f.write_str("reserve"),
            FileName::Spare => f.write_str("spare"),
            FileName::Segment(number) => write!(f, "log-{number:016}"),
            FileName::Snapshot(number) => write!(f, "snapshot-{number:016}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_no_others() {
        let all = [
            FileName::Manifest,
            FileName::NewManifest,
            FileName::Reserve,
            FileName::Spare,
            FileName::Segment(12),
            FileName::Snapshot(9_999_999_999_999_999),
        ];
        for name in all {
            assert_eq!(FileName::parse(&name.to_string()), Some(name));
        }
        for other in ["", "log-12", "log-00000000000000012", "log-+000000000000012", "lost+found"] {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }
}
