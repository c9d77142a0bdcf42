//! Images on this machine's disks: verified, and restored to files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use agent::images::{Listed, Restored, Visit, folder_of, list, restore, visit};
use image::{PAGE, Place, Root};
use job::Jobs;

use super::npy;
use crate::commands::Failure;

/// Names of a rank's notes begin so.
const PREFIX: &str = "steadfast.";

/// Those of its results.
const RESULT: &str = "steadfast.result.";

/// An image, and the folders of images that have it.
#[derive(Debug)]
pub struct Found {
    pub place: Place,
    pub root: Root,
    pub folders: Vec<PathBuf>,
    /// The book has it; `None`: no node answers.
    pub counts: Option<bool>,
}

/// The images of a job in these folders, the oldest first, with what the book says of them.
pub fn find(folders: &[PathBuf], job: u64, jobs: Option<&Jobs>) -> Result<Vec<Found>, Failure> {
    let mut found: BTreeMap<(Place, Root), Vec<PathBuf>> = BTreeMap::new();
    for folder in folders {
        let images = listed(folder)?.images;
        for (place, root) in images.into_iter().filter(|(place, _)| place.job == job) {
            found.entry((place, root)).or_default().push(folder.clone());
        }
    }
    let counts = |place: Place, root: Root| {
        let rank = jobs?.job(job).and_then(|job| job.ranks.get(place.rank as usize));
        let mut images = rank.into_iter().flat_map(|rank| rank.images.generations());
        Some(images.any(|image| (image.place, image.root) == (place, root)))
    };
    let all = found.into_iter().map(|((place, root), folders)| Found {
        place,
        root,
        folders,
        counts: counts(place, root),
    });
    Ok(all.collect())
}

fn listed(folder: &Path) -> Result<Listed, Failure> {
    list(folder).map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))
}

/// Manifests of a job in these folders that are torn or rotten.
pub fn torn(folders: &[PathBuf], job: u64) -> Result<Vec<PathBuf>, Failure> {
    let mut torn = Vec::new();
    for folder in folders {
        let own = folder.join(format!("{job:016x}"));
        torn.extend(listed(folder)?.torn.into_iter().filter(|path| path.starts_with(&own)));
    }
    Ok(torn)
}

/// The findings of a reading of every copy.
#[derive(Debug, Default)]
pub struct Verified {
    /// For people: a line for each copy, and for each damage.
    pub text: String,
    pub copies: usize,
    pub damages: usize,
}

/// Reads every copy.
pub fn verify(images: &[Found]) -> Verified {
    let mut verified = Verified::default();
    for image in images {
        for folder in &image.folders {
            verified.copies += 1;
            let mut damages = Vec::new();
            let rank = folder_of(folder, image.place.job, image.place.rank);
            let mut parts = 0_u64;
            let read = visit(&rank, (image.place, image.root), |_, seen| {
                match seen {
                    Visit::Part(..) => parts += 1,
                    Visit::Damage(damage) => damages.push(damage.to_string()),
                }
                Ok(())
            });
            damages.extend(read.err().map(|error| error.to_string()));
            let place = image.place;
            let note = match (damages.is_empty(), image.counts) {
                (true, Some(false)) => "whole, but it does not count".to_owned(),
                (true, _) => format!("whole, {parts} parts"),
                (false, _) => "DAMAGED".to_owned(),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                verified.text,
                "rank {}, image {} of start {}, in {}: {note}",
                place.rank,
                place.generation,
                place.start,
                folder.display()
            );
            for damage in &damages {
                let _ = writeln!(verified.text, "  {damage}");
            }
            verified.damages += damages.len();
        }
    }
    verified
}

/// The newest state of each rank that can be read, as of this generation if one is said.
pub fn newest(
    images: &[Found],
    generation: Option<u64>,
) -> Result<BTreeMap<u32, Restored>, Failure> {
    let mut states = BTreeMap::new();
    let mut damages = String::new();
    let wanted = |image: &&Found| {
        image.counts != Some(false) && generation.is_none_or(|it| image.place.generation == it)
    };
    for image in images.iter().rev().filter(wanted) {
        let rank = image.place.rank;
        for folder in &image.folders {
            if states.contains_key(&rank) {
                break;
            }
            match restore(&folder_of(folder, image.place.job, rank), image.place, image.root) {
                Ok(state) => {
                    states.insert(rank, state);
                }
                Err(error) => {
                    let _ = writeln!(damages, "  {}: {error}", image.place);
                }
            }
        }
    }
    if states.is_empty() {
        return Err(Failure::Failed(format!(
            "there is no image on this machine that can be read\n{damages}"
        )));
    }
    if !damages.is_empty() {
        eprint!("damaged, an older image or another copy is taken:\n{damages}");
    }
    Ok(states)
}

/// Writes arrays, or results alone, as files: what was written.
pub fn write(
    out: &Path,
    rank: u32,
    state: &Restored,
    results: bool,
) -> Result<Vec<PathBuf>, Failure> {
    let folder = out.join(format!("rank-{rank}"));
    let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", folder.display()));
    fs::create_dir_all(&folder).map_err(failed)?;
    let (mut begin, mut written) = (0, Vec::new());
    for array in &state.arrays {
        let at = begin;
        begin += array.length.next_multiple_of(PAGE);
        let name = match (array.name.strip_prefix(RESULT), results) {
            (Some(name), _) => name,
            (None, false) if !array.name.starts_with(PREFIX) => &array.name,
            _ => continue,
        };
        let bytes = read(&state.file, at, array.length).map_err(failed)?;
        // An array and a result may have one name.
        let is_result = array.name.starts_with(RESULT);
        let folder = if is_result { folder.join("results") } else { folder.clone() };
        fs::create_dir_all(&folder).map_err(failed)?;
        let path = folder.join(file_name(name, &array.form));
        let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
        let done = match array.form.as_str() {
            "pickle" | "bytes" | "text" => io::Write::write_all(&mut file, &bytes),
            form => npy::write(&mut file, form, &bytes),
        };
        done.and_then(|()| io::Write::flush(&mut file)).map_err(failed)?;
        written.push(path);
    }
    Ok(written)
}

fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?];
    std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, at)?;
    Ok(bytes)
}

/// A name for people's files: an array's may have any letters.
fn file_name(name: &str, form: &str) -> String {
    let safe = |letter: char| {
        if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' }
    };
    let name: String = name.chars().map(safe).collect();
    let name = name.trim_start_matches('.');
    let end = match form {
        "pickle" => "pickle",
        "bytes" => "bin",
        "text" => "txt",
        _ => "npy",
    };
    format!("{}.{end}", if name.is_empty() { "array" } else { name })
}
