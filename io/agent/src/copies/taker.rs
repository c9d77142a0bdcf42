//! Gets copies. What comes is on the disk only as a whole, verified, and with its own root.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use image::{MAX_MANIFEST, MAX_PART, Manifest, PAGE, Place, Root, root_of};
use os::durable::{make_folder, replace_file};

use super::ask;
use crate::images::{Saver, data_of, folder_of, manifest_of, remove_file};
use crate::options::Tls;
use crate::streams::{self, Stream};

/// Gets images into a folder.
#[derive(Clone, Debug)]
pub struct Taker {
    folder: PathBuf,
    /// For other hosts.
    tls: Option<Tls>,
}

impl Taker {
    /// Into this folder; from other hosts with these credentials.
    pub fn new(folder: &Path, tls: Option<Tls>) -> Taker {
        Taker { folder: folder.into(), tls }
    }

    /// Gets an image from the first that gives it.
    ///
    /// # Errors
    /// None does: what the last one said.
    pub fn take(&self, place: Place, root: Root, from: &[String]) -> Result<(), String> {
        let mut last = "nobody has it".to_owned();
        for at in from {
            match self.take_from(place, root, at) {
                Ok(()) => return Ok(()),
                Err(error) => last = format!("{at}: {error}"),
            }
        }
        Err(last)
    }

    fn take_from(&self, place: Place, root: Root, at: &str) -> io::Result<()> {
        self.receive(place, root, streams::go(at, self.tls.as_ref())?)
    }

    fn receive(&self, place: Place, root: Root, mut stream: impl Stream) -> io::Result<()> {
        stream.write_all(&ask(place, &root))?;
        stream.flush()?;
        let mut number = || {
            let mut bytes = [0; 8];
            stream.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        let (length, end) = (number()?, number()?);
        if length == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it is not there"));
        }
        let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        if length > MAX_MANIFEST as u64 {
            return Err(bad("its manifest is too long"));
        }
        // It grows with what comes, and not with what is announced.
        let mut manifest = Vec::new();
        (&mut stream).take(length).read_to_end(&mut manifest)?;
        if manifest.len() as u64 != length || root_of(&manifest) != root {
            return Err(bad("its manifest is not the one that was committed"));
        }
        let parts = Manifest::decode(&manifest).map_err(|damage| bad(&damage.to_string()))?;
        if parts.place != place || parts.end() != end {
            return Err(bad("it is another image"));
        }
        let folder = folder_of(&self.folder, place.job, place.rank);
        make_folder(&folder)?;
        let path = data_of(&folder, place);
        let written = write(&path, &parts, &mut stream);
        let placed =
            written.and_then(|()| replace_file(&manifest_of(&folder, place), 0o600, &manifest));
        if placed.is_err() {
            // The disk may be full because of it. Its manifest may be there, and must not be taken
            // for a copy.
            let _ = Saver::new(&folder).remove(place);
        }
        placed
    }
}

/// Writes the data as it comes, and believes no part that does not fit.
fn write(path: &Path, manifest: &Manifest, stream: &mut impl Read) -> io::Result<()> {
    // One that is there was broken off: without its manifest it is nothing.
    remove_file(path)?;
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    let mut room = vec![0; MAX_PART + PAGE as usize];
    let mut begin = 0;
    for part in &manifest.parts {
        let gap = part.at.checked_sub(begin).filter(|gap| *gap < PAGE);
        let gap = gap.ok_or(io::ErrorKind::InvalidData)? as usize;
        let bytes = &mut room[..gap + part.length as usize];
        stream.read_exact(bytes)?;
        let bytes = &bytes[gap..];
        if manifest.place.check(part.array, part.offset, bytes) != part.check {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a part is not what was saved"));
        }
        file.write_all_at(bytes, part.at)?;
        begin = part.at + u64::from(part.length);
    }
    file.sync_data()
}
