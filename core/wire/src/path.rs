//! Where a cell is in its system, and what a group is called across cells.

use alloc::format;
use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use crate::limits::MAX_NAME;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Labels of a path: a system is so deep at most.
pub const MAX_DEPTH: usize = 8;

/// Bytes of a path.
pub const MAX_PATH: usize = 123;

/// Bytes of a label, as DNS has them (RFC 1035, 2.3.4).
const MAX_LABEL: usize = 63;

/// Names of clusters that begin so are cells. No label of a path is this word: so the authority of a
/// cell vouches for none of the cells below it (`docs/protocol/cells.md`).
pub const MARK: &str = "cell.";

/// A cell's place: labels, the root's last, such as `line-a.porto`.
///
/// Paths are ordered by their labels from the root on: the cells below one stand behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path(String);

/// A text that is no path, or no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a path.
    #[error(
        "\"{path}\" cannot be a cell's path, for {why}: write labels of lower-case letters, digits \
         and hyphens, the root's last, such as line-a.porto"
    )]
    Path {
        /// The text, cut where a path would end at the latest.
        path: String,
        /// The broken rule.
        why: String,
    },
    /// Not a group's name.
    #[error("\"{0}\" is no name of a group: it has 1 to {MAX_NAME} bytes, and no colon")]
    Group(String),
}

impl Path {
    /// The path of the cell whose ring is the cluster of this name; `None`: it is no cell.
    pub fn of_cluster(cluster: &str) -> Option<Path> {
        cluster.strip_prefix(MARK)?.parse().ok()
    }

    /// The name of the cell's cluster.
    pub fn cluster(&self) -> String {
        [MARK, &self.0].concat()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The labels from the root on.
    pub fn from_root(&self) -> impl Iterator<Item = &str> {
        self.0.rsplit('.')
    }

    /// How many cells are above it.
    pub fn depth(&self) -> usize {
        self.0.bytes().filter(|byte| *byte == b'.').count()
    }

    /// The cell above; `None` above the root.
    pub fn parent(&self) -> Option<Path> {
        self.0.split_once('.').map(|(_, parent)| Path(parent.into()))
    }

    /// The cell of this label below it.
    ///
    /// # Errors
    /// The label is none, or the path would be too long.
    pub fn child(&self, label: &str) -> Result<Path, NameError> {
        [label, ".", &self.0].concat().parse()
    }

    /// It is the other one, or below it.
    pub fn is_within(&self, other: &Path) -> bool {
        self.0.strip_suffix(&other.0).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// It is below the other one.
    pub fn is_below(&self, other: &Path) -> bool {
        self != other && self.is_within(other)
    }

    /// Both are of one system.
    pub fn is_of_system(&self, other: &Path) -> bool {
        self.from_root().next() == other.from_root().next()
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Path) -> Ordering {
        self.from_root().cmp(other.from_root())
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Path) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for Path {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Path, NameError> {
        match broken_rule(text) {
            None => Ok(Path(text.into())),
            Some(why) => Err(NameError::Path { path: text.chars().take(MAX_PATH).collect(), why }),
        }
    }
}

/// The rule that keeps a text from being a path.
fn broken_rule(text: &str) -> Option<String> {
    if text.len() > MAX_PATH {
        return Some(format!("it has {} bytes, of at most {MAX_PATH}", text.len()));
    }
    let labels = text.split('.').count();
    if labels > MAX_DEPTH {
        return Some(format!("it has {labels} labels, of at most {MAX_DEPTH}"));
    }
    if let Some(label) = text.split('.').find(|label| !is_label(label)) {
        return Some(format!("\"{label}\" is no label of 1 to {MAX_LABEL} such letters"));
    }
    // Else the names of one cell would cover those of another.
    text.split('.').any(|label| label == "cell").then(|| "no label may be \"cell\"".into())
}

/// Whether a text can be one label of a DNS name, in lower case (RFC 1035, 2.3.4).
pub fn is_label(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Path, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// In which cell a group is looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the asker's own cell, then in those above it: `boards`.
    Upwards,
    /// In the nearest cell that exports it: `*:alarms`.
    Nearest,
    /// In this cell alone: `line-a.porto:boards`.
    Cell(Path),
}

/// A group's name across cells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The cell, or the way to find it.
    pub scope: Scope,
    /// The group's name in its cell.
    pub group: String,
}

impl Name {
    /// The cell and the group of a full name, such as `line-a.porto:boards`. `None`: it is none.
    pub fn full(text: &str) -> Option<(Path, String)> {
        // Most names are short ones, and this is on the way of every call.
        let (path, group) = text.split_once(':')?;
        is_group(group).then_some(())?;
        Some((path.parse().ok()?, group.into()))
    }
}

/// Whether this can be a group's name.
fn is_group(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && !text.contains(':')
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        let (scope, group) = match text.split_once(':') {
            None => (Scope::Upwards, text),
            Some(("*", group)) => (Scope::Nearest, group),
            Some((path, group)) => (Scope::Cell(path.parse()?), group),
        };
        if !is_group(group) {
            return Err(NameError::Group(group.chars().take(MAX_NAME).collect()));
        }
        Ok(Name { scope, group: group.into() })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Upwards => f.write_str(&self.group),
            Scope::Nearest => write!(f, "*:{}", self.group),
            Scope::Cell(path) => write!(f, "{path}:{}", self.group),
        }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn path(text: &str) -> Path {
        text.parse().expect(text)
    }

    #[test]
    fn paths_are_labels_with_the_root_last() {
        let stop = path("stop-1.line-a.porto");
        assert_eq!(stop.depth(), 2);
        assert_eq!(stop.parent(), Some(path("line-a.porto")));
        assert_eq!(path("line-a.porto").child("stop-1"), Ok(stop.clone()));
        assert_eq!(Path::of_cluster("cell.line-a.porto"), Some(path("line-a.porto")));
        assert_eq!(stop.cluster(), "cell.stop-1.line-a.porto");
        for no_cell in ["porto", "cell.", "cell", "cellar.porto"] {
            assert_eq!(Path::of_cluster(no_cell), None, "{no_cell}");
        }
        for wrong in
            ["", ".", "a.", ".a", "A", "a_b", "-a", "a-", "cell", "cell.a", "a.cell.b", "ä"]
        {
            assert!(wrong.parse::<Path>().is_err(), "{wrong}");
        }
        let deep = ["a"; MAX_DEPTH].join(".");
        assert!(deep.parse::<Path>().is_ok() && path(&deep).child("a").is_err());
        assert!("a".repeat(64).parse::<Path>().is_err());
        for (wrong, why) in [
            ("Porto", "\"Porto\" is no label"),
            ("a..porto", "\"\" is no label"),
            ("a.cell", "no label may be \"cell\""),
            ("a.b.c.d.e.f.g.h.porto", "it has 9 labels, of at most 8"),
            (&["x".repeat(60).as_str(); 3].join("."), "it has 182 bytes, of at most 123"),
        ] {
            let error = wrong.parse::<Path>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("line-a.porto"), "{wrong}: {error}");
        }
    }

    #[test]
    fn below_counts_whole_labels() {
        let line = path("line-a.porto");
        assert!(path("x.line-a.porto").is_below(&line));
        assert!(line.is_within(&line) && !line.is_below(&line));
        for other in ["xline-a.porto", "porto", "line-b.porto", "line-a.lisboa"] {
            assert!(!path(other).is_within(&line), "{other}");
        }
        assert!(line.is_of_system(&path("porto")) && !line.is_of_system(&path("lisboa")));
    }

    #[test]
    fn a_cell_stands_before_those_below_it_and_before_its_next_sibling() {
        let mut all = ["b.porto", "a.porto", "porto", "x.b.porto", "z.a.porto"].map(path);
        all.sort();
        assert_eq!(all, ["porto", "a.porto", "z.a.porto", "b.porto", "x.b.porto"].map(path));
    }

    #[test]
    fn a_name_is_written_as_it_is_read() {
        for text in ["boards", "*:alarms", "line-a.porto:boards"] {
            let name: Name = text.parse().expect(text);
            assert_eq!(name.to_string(), text);
        }
        for wrong in ["", ":a", "a:", "*:", "A:b", "a:b:c", "**:a"] {
            assert!(wrong.parse::<Name>().is_err() && Name::full(wrong).is_none(), "{wrong}");
        }
        let full = Some((path("line-a.porto"), "boards".into()));
        assert_eq!(Name::full("line-a.porto:boards"), full);
        assert!(Name::full("boards").is_none() && Name::full("*:alarms").is_none());
        assert!(format!("*:{}", "x".repeat(MAX_NAME + 1)).parse::<Name>().is_err());
    }
}
