//! Files with what ranks print, which do not grow for ever.
//!
//! A rank writes its files itself. When one has [`MOST`] bytes, the agent has the file system forget
//! the oldest of them (a hole), so that nothing is copied and no line is lost that comes meanwhile.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

/// The most bytes on the disk of what a rank has printed.
pub const MOST: u64 = 64 << 20;

/// Bytes that stay.
const KEPT: u64 = MOST / 2;

/// File systems make holes of so many bytes, or of less.
const BLOCK: u64 = 64 << 10;

/// Opens the files for a start's standard output and standard error.
///
/// The first is a new one: an earlier start that still runs prints elsewhere. The rank itself writes
/// there what its image has of it. The second goes on.
pub(crate) fn open(output: &Path, errors: &Path) -> io::Result<(File, File)> {
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(output) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let options = || File::options().append(true).mode(0o600).clone();
    let output = options().read(true).create_new(true).open(output)?;
    Ok((output, options().create(true).open(errors)?))
}

/// Among these files of a rank's standard output, at the folders of several agents, the one of its last
/// start: the newest.
pub fn newest(outputs: &[PathBuf]) -> Option<&PathBuf> {
    let made = |path: &PathBuf| {
        let data = fs::metadata(path).ok()?;
        data.created().or_else(|_| data.modified()).ok()
    };
    let there = outputs.iter().filter_map(|path| Some((made(path)?, path)));
    there.max().map(|(_, path)| path)
}

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
    fn a_start_has_a_new_file_and_adds_to_the_errors() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = ["a", "b", "none"].map(|node| folder.path().join(node).join("0.log"));
        assert_eq!(newest(&outputs), None);
        for (start, node) in [(1, 0), (2, 1), (3, 0)] {
            let (output, errors) = (&outputs[node], outputs[node].with_extension("err"));
            let (mut first, mut second) = open(output, &errors).unwrap();
            writeln!(first, "{start}").unwrap();
            writeln!(second, "{start}").unwrap();
            // The times of files are coarse.
            let made = fs::metadata(output).unwrap().created().unwrap();
            while made.elapsed().unwrap_or_default().as_millis() < 20 {}
            assert_eq!(newest(&outputs), Some(output));
        }
        assert_eq!(fs::read_to_string(&outputs[0]).unwrap(), "3\n");
        let errors = fs::read_to_string(outputs[0].with_extension("err")).unwrap();
        assert_eq!(errors, "1\n3\n");
    }

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
