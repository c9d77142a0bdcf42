//! Files with what ranks print, which do not grow for ever.
//!
//! A rank writes its file itself. When that has [`MOST`] bytes, the agent has the file system forget
//! the oldest of them (a hole), so that nothing is copied and no line is lost that comes meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

/// The most bytes on the disk of what a rank has printed.
pub const MOST: u64 = 64 << 20;

/// Bytes that stay.
const KEPT: u64 = MOST / 2;

/// File systems make holes of so many bytes, or of less.
const BLOCK: u64 = 64 << 10;

/// Forgets the oldest bytes of a file that has too many.
pub(crate) fn limit(path: &Path) -> io::Result<()> {
    let file = match File::options().write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let data = file.metadata()?;
    if data.blocks() * 512 <= MOST {
        return Ok(());
    }
    // A hole of whole blocks: of half a one the rest would be read as zeros.
    let forgotten = data.len().saturating_sub(KEPT) / BLOCK * BLOCK;
    fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, forgotten)?;
    Ok(())
}

/// Goes to this byte of a file, or to the next one that was not forgotten, and says to which.
///
/// # Errors
/// The file cannot be read.
pub fn go_to(file: &File, from: u64) -> io::Result<u64> {
    let begin = match seek(file, SeekFrom::Data(from)) {
        Ok(begin) => begin,
        // There is nothing behind it, or its file system has no holes.
        Err(rustix::io::Errno::NXIO | rustix::io::Errno::INVAL) => from,
        Err(error) => return Err(error.into()),
    };
    seek(file, SeekFrom::Start(begin))?;
    Ok(begin)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn the_oldest_is_forgotten_and_the_newest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        limit(&path).unwrap();
        let mut file = File::options().create(true).append(true).open(&path).unwrap();
        let line = [b'x'; 1 << 20];
        for _ in 0..MOST >> 20 {
            file.write_all(&line).unwrap();
        }
        limit(&path).unwrap();
        assert_eq!(go_to(&File::open(&path).unwrap(), 0).unwrap(), 0, "it has as much as it may");
        file.write_all(&line[..12_345]).unwrap();
        limit(&path).unwrap();
        file.write_all(b"the end").unwrap();
        let mut reader = File::open(&path).unwrap();
        assert_eq!(go_to(&reader, 0).unwrap(), KEPT);
        let mut left = Vec::new();
        reader.read_to_end(&mut left).unwrap();
        assert_eq!(left.len() as u64, MOST - KEPT + 12_345 + 7);
        assert!(left.starts_with(b"xx") && left.ends_with(b"xthe end"));
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < MOST);
        fs::write(&path, "").unwrap();
        assert_eq!(go_to(&File::open(&path).unwrap(), 0).unwrap(), 0);
    }
}
