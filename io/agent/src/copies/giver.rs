//! Gives copies away. Each part is verified as it is read: a copy that has rotted is found, and told.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use image::{Damage, Manifest, Place, Root, root_of};

use super::{ASK, asked};
use crate::images::{data_of, folder_of, manifest_of};
use crate::streams::{self, Door, Stream};

/// Gives away the images in a folder.
#[derive(Clone)]
pub struct Giver {
    folder: PathBuf,
    /// Told of each image that is found damaged.
    damaged: Arc<dyn Fn(Place) + Send + Sync>,
}

impl Giver {
    /// Gives away the images of this folder. `damaged` is told of each image that is found damaged.
    pub fn new(folder: &Path, damaged: impl Fn(Place) + Send + Sync + 'static) -> Giver {
        Giver { folder: folder.into(), damaged: Arc::new(damaged) }
    }

    /// Begins to give, from threads of its own.
    ///
    /// # Errors
    /// The system refuses socket, port or thread.
    pub fn open(self, door: Door) -> io::Result<()> {
        streams::open(door, move |purpose, stream, _seat| self.give(purpose, stream))
    }

    /// Gives one image. The first bytes of the request are read.
    pub(crate) fn give(&self, purpose: [u8; 4], mut stream: impl Stream) -> io::Result<()> {
        let mut request = [0; ASK];
        request[..4].copy_from_slice(&purpose);
        stream.read_exact(&mut request[4..])?;
        let Some((place, root)) = asked(&request) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it asks for no image"));
        };
        let given = self.send(place, root, &mut stream);
        if given.as_ref().is_err_and(|error| error.get_ref().is_some_and(|it| it.is::<Damage>())) {
            (self.damaged)(place);
        }
        given
    }

    fn send(&self, place: Place, root: Root, stream: &mut impl Write) -> io::Result<()> {
        let folder = folder_of(&self.folder, place.job, place.rank);
        let bad = |damage: Damage| io::Error::new(io::ErrorKind::InvalidData, damage);
        let read = std::fs::read(manifest_of(&folder, place));
        let (manifest, file) = match (read, File::open(data_of(&folder, place))) {
            (Ok(manifest), Ok(file)) => (manifest, file),
            (Err(error), _) | (_, Err(error)) => {
                stream.write_all(&[0; 16]).and_then(|()| stream.flush())?;
                // The book may have it here, and then nobody would get it.
                let gone = error.kind() == io::ErrorKind::NotFound;
                return if gone { Err(bad(Damage::Missing(place))) } else { Ok(()) };
            }
        };
        let parts = Manifest::decode(&manifest).map_err(bad)?;
        if parts.place != place {
            return Err(bad(Damage::Misplaced { wanted: place, found: parts.place }));
        }
        // Another one by this name is asked for: that says nothing of the one that is here.
        if root_of(&manifest) != root {
            return stream.write_all(&[0; 16]).and_then(|()| stream.flush());
        }
        let end = parts.end();
        stream.write_all(&(manifest.len() as u64).to_le_bytes())?;
        stream.write_all(&end.to_le_bytes())?;
        stream.write_all(&manifest)?;
        let mut room = Vec::new();
        let mut begin = 0;
        for part in &parts.parts {
            // Between two parts there are zeros, up to the next page.
            let gap = (part.at - begin) as usize;
            room.clear();
            room.resize(gap + part.length as usize, 0);
            let bytes = &mut room[gap..];
            match file.read_exact_at(bytes, part.at) {
                // It is cut short, which is told as any other damage.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => bytes.fill(0),
                read => read?,
            }
            if place.check(part.array, part.offset, bytes) != part.check {
                return Err(bad(Damage::Part {
                    place,
                    array: parts.arrays[part.array as usize].name.clone(),
                    offset: part.offset,
                    length: part.length,
                }));
            }
            stream.write_all(&room)?;
            begin = part.at + u64::from(part.length);
        }
        stream.flush()
    }
}
