//! Names of reserves and of disks.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use wire::NodeId;

/// Letters of a part of a path.
const LONGEST: usize = 64;

/// The place of a node's part in its host's tree: `trial/n1/plane`. Nodes of several clusters share
/// a host.
pub fn path(cluster: &str, node: NodeId, part: &str) -> String {
    format!("{}/{node}/{}", usual(cluster), usual(part))
}

/// As the name of a control group may be.
fn usual(name: &str) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => letter,
        '.' => '_',
        _ => '-',
    };
    let name: String = name.chars().map(letter).take(LONGEST).collect();
    if name.is_empty() { "cluster".into() } else { name }
}

/// The number of the whole disk that has this folder: limits are those of disks, not of their
/// partitions.
///
/// # Errors
/// There is no such folder.
pub fn disk_of(folder: &Path) -> io::Result<String> {
    let device = fs::metadata(folder)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let number = format!("{major}:{minor}");
    let entry = format!("/sys/dev/block/{number}");
    let partition = Path::new(&entry).join("partition").exists();
    // A partition's entry is a folder in that of its disk.
    let whole = fs::read_to_string(format!("{entry}/../dev")).ok().filter(|_| partition);
    Ok(whole.map_or(number, |whole| whole.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_makes_a_path() {
        assert_eq!(path("Porto, line A", NodeId(7), "plane"), "Porto--line-A/n7/plane");
        assert_eq!(path("", NodeId(7), "a.b/c"), "cluster/n7/a_b-c");
    }

    #[test]
    fn a_folder_has_a_disk() {
        let number = disk_of(Path::new("/")).unwrap();
        assert!(number.contains(':'), "{number}");
        assert!(disk_of(Path::new("/nowhere/at/all")).is_err());
    }
}
