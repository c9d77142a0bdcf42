//! Images in the files of a disk, written and read as by io/agent: the data first, the manifest last,
//! and nothing is believed that does not fit.

use bytes::Bytes;
use image::{
    Array, Builder, Damage, Manifest, Opening, PAGE, Parent, Part, Place, Planted, Root, root_of,
};
use store::{Done, FailureKind, FileName, Op};

use crate::check::results::State;
use crate::disk::Disk;
use crate::draw::Draw;

/// The mark of a manifest that is on its way.
const NEW: u64 = 1 << 63;

/// Names of the store's stand for those of an agent, which are made of the same numbers.
fn number(place: Place) -> u64 {
    let Place { job, rank, start, generation } = place;
    debug_assert!(job < 1 << 20 && rank < 1 << 3 && start < 1 << 20 && generation < 1 << 20);
    job << 43 | u64::from(rank) << 40 | start << 20 | generation
}

fn place_of(number: u64) -> Place {
    let low = |bits: u32, from: u32| number >> from & ((1 << bits) - 1);
    Place { job: low(20, 43), rank: low(3, 40) as u32, start: low(20, 20), generation: low(20, 0) }
}

pub fn data_of(place: Place) -> FileName {
    FileName::Segment(number(place))
}

pub fn manifest_of(place: Place) -> FileName {
    FileName::Snapshot(number(place))
}

fn new_of(place: Place) -> FileName {
    FileName::Segment(number(place) | NEW)
}

/// The image whose file this is.
pub fn image_of(file: FileName) -> Option<Place> {
    match file {
        FileName::Segment(number) | FileName::Snapshot(number) => Some(place_of(number & !NEW)),
        _ => None,
    }
}

/// Why an image is not read.
#[derive(Debug)]
pub enum Unread {
    /// It is damaged.
    Damaged(Damage),
    /// The disk does not give it.
    Refused,
}

impl From<Damage> for Unread {
    fn from(damage: Damage) -> Unread {
        Unread::Damaged(damage)
    }
}

fn run(disk: &mut Disk, op: Op) -> Result<Done, FailureKind> {
    disk.begin(&op).and_then(|()| disk.finish(&op)).map_err(|failure| failure.kind)
}

fn read(disk: &mut Disk, place: Place, file: FileName) -> Result<Bytes, Unread> {
    match run(disk, Op::Read { file, offset: 0, length: 1 << 20 }) {
        Ok(Done::Read(bytes)) => Ok(bytes),
        Err(FailureKind::Missing) => Err(Damage::Missing(place).into()),
        _ => Err(Unread::Refused),
    }
}

/// The stages of an image on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Data,
    Synced,
    Manifest,
    Named,
    Durable,
}

/// Why an image is not on the disk; and whether files of it stay all the same.
#[derive(Debug, PartialEq, Eq)]
pub struct Unwritten {
    pub why: String,
    pub left: bool,
}

/// An image on its way to the disk.
#[derive(Debug)]
pub struct Writing {
    pub place: Place,
    pub parent: Option<Parent>,
    pub root: Root,
    /// It is another node's: what it says is known to be right, and one that is there is broken.
    pub is_copy: bool,
    manifest: Bytes,
    /// Its parts, each with its place in the file.
    data: Vec<(u64, Bytes)>,
    stage: Stage,
}

impl Writing {
    /// An image of these arrays: those that have changed, or all.
    pub fn of(
        place: Place,
        parent: Option<Parent>,
        saved: (u64, &State),
        parts: &[usize],
    ) -> Writing {
        let (step, state) = saved;
        let array = |(number, words): (usize, &Vec<u64>)| Array {
            name: format!("a{number}"),
            form: "<u8".into(),
            length: 8 * words.len() as u64,
        };
        let arrays = state.iter().enumerate().map(array).collect();
        let mut builder = Builder::new(place, parent, arrays);
        let mut data = Vec::new();
        for &part in parts {
            let bytes: Vec<u8> = state[part].iter().flat_map(|word| word.to_le_bytes()).collect();
            let at = builder.part(part as u32, 0, &bytes);
            data.push((at, bytes.into()));
        }
        let manifest: Bytes = builder.finish(step).encode().into();
        Writing::new(place, parent, manifest, data)
    }

    fn new(
        place: Place,
        parent: Option<Parent>,
        manifest: Bytes,
        data: Vec<(u64, Bytes)>,
    ) -> Writing {
        let (root, stage) = (root_of(&manifest), Stage::Data);
        Writing { place, parent, root, is_copy: false, manifest, data, stage }
    }

    /// The bytes of its parts.
    pub fn bytes(&self) -> u64 {
        self.data.iter().map(|(_, part)| part.len() as u64).sum()
    }

    /// Does what is next. True: it is whole on the disk.
    pub fn go_on(&mut self, disk: &mut Disk) -> Result<bool, Unwritten> {
        let there = disk.content(manifest_of(self.place)).is_some();
        if self.stage == Stage::Data && !self.is_copy && there {
            return Err(Unwritten { why: "there is an image of this name".into(), left: true });
        }
        self.step(disk).map_err(|kind| {
            // The disk may be full because of it. Without data, a manifest is nothing.
            let left = !remove(disk, self.place);
            Unwritten { why: format!("{kind:?}"), left }
        })
    }

    fn step(&mut self, disk: &mut Disk) -> Result<bool, FailureKind> {
        let (data, manifest, new) =
            (data_of(self.place), manifest_of(self.place), new_of(self.place));
        self.stage = match self.stage {
            Stage::Data => {
                write(disk, data, &self.data)?;
                Stage::Synced
            }
            Stage::Synced => {
                run(disk, Op::Sync { file: data })?;
                Stage::Manifest
            }
            Stage::Manifest => {
                write(disk, new, &[(0, self.manifest.clone())])?;
                run(disk, Op::Sync { file: new })?;
                Stage::Named
            }
            Stage::Named => {
                run(disk, Op::Rename { from: new, to: manifest })?;
                Stage::Durable
            }
            Stage::Durable => {
                run(disk, Op::SyncFolder)?;
                return Ok(true);
            }
        };
        Ok(false)
    }
}

/// Writes a new file.
fn write(disk: &mut Disk, file: FileName, parts: &[(u64, Bytes)]) -> Result<(), FailureKind> {
    run(disk, Op::Remove { file })?;
    run(disk, Op::Allocate { file, size: 0 })?;
    parts.iter().try_for_each(|(offset, bytes)| {
        run(disk, Op::Write { file, offset: *offset, bytes: bytes.clone() }).map(drop)
    })
}

/// Removes an image. False: files of it stay.
pub fn remove(disk: &mut Disk, place: Place) -> bool {
    let files = [manifest_of(place), new_of(place), data_of(place)];
    files.into_iter().all(|file| run(disk, Op::Remove { file }).is_ok())
}

fn names(disk: &mut Disk) -> Vec<FileName> {
    // An agent that cannot read its folder begins once more.
    let listed = (0..100).find_map(|_| run(disk, Op::List).ok());
    match listed {
        Some(Done::Listed(names)) => names,
        _ => Vec::new(),
    }
}

/// Removes what writers have left that were killed.
pub fn sweep(disk: &mut Disk) {
    let names = names(disk);
    for &file in &names {
        let alone = match file {
            FileName::Segment(number) => !names.contains(&FileName::Snapshot(number)),
            FileName::Snapshot(number) => !names.contains(&FileName::Segment(number)),
            _ => false,
        };
        if alone {
            let _ = run(disk, Op::Remove { file });
        }
    }
    // One that was named last may have a name that does not last yet.
    let lasts = (0..100).any(|_| run(disk, Op::SyncFolder).is_ok());
    assert!(lasts, "a disk that never syncs");
    // Torn ones, of which no state can be made.
    let whole: Vec<FileName> = list(disk).iter().map(|(place, _)| manifest_of(*place)).collect();
    for file in self::names(disk) {
        if let FileName::Snapshot(number) = file
            && !whole.contains(&file)
        {
            let _ = run(disk, Op::Remove { file });
            let _ = run(disk, Op::Remove { file: FileName::Segment(number) });
        }
    }
}

/// The images whose manifests are whole and have their data, with their roots.
pub fn list(disk: &mut Disk) -> Vec<(Place, Root)> {
    let manifest = |file: &FileName| matches!(file, FileName::Snapshot(_));
    let found = names(disk).into_iter().filter(manifest).filter_map(|file| {
        let bytes = disk.content(file)?;
        let manifest = Manifest::decode(&bytes).ok()?;
        let place = manifest.place;
        // A loss of power may leave a manifest without its data.
        let data = disk.content(data_of(place))?;
        let whole = manifest_of(place) == file && data.len() as u64 >= manifest.end();
        whole.then(|| (place, root_of(&bytes)))
    });
    found.collect()
}

/// Restores a state: how far the rank was, and its arrays.
pub fn restore(
    disk: &mut Disk,
    (place, root): (Place, Root),
    planted: Planted,
) -> Result<(u64, State), Unread> {
    let mut opening = Opening::new(place, root).planted(planted);
    while let Some(place) = opening.wanted() {
        opening.take(&read(disk, place, manifest_of(place))?)?;
    }
    let chain = opening.finish()?;
    let mut state: State =
        chain.arrays().iter().map(|it| vec![0; it.length as usize / 8]).collect();
    for part in chain.reads() {
        let file = read(disk, part.place, data_of(part.place))?;
        let (from, length) = (part.at as usize, part.length as usize);
        let mut bytes = vec![0; length];
        let there = file.get(from..).unwrap_or_default();
        let much = there.len().min(length);
        bytes[..much].copy_from_slice(&there[..much]);
        chain.accept(&part, &bytes)?;
        let words =
            bytes.chunks_exact(8).map(|it| u64::from_le_bytes(it.try_into().expect("eight")));
        state[part.array as usize] = words.collect();
    }
    Ok((chain.step(), state))
}

/// A copy of an image to give away. Who gives it reads it.
pub fn give(disk: &mut Disk, place: Place, root: &Root) -> Result<Writing, Unread> {
    let manifest = read(disk, place, manifest_of(place))?;
    let data = read(disk, place, data_of(place))?;
    let known = Manifest::decode(&manifest)?;
    if known.place != place {
        return Err(Damage::Misplaced { wanted: place, found: known.place }.into());
    }
    if root_of(&manifest) != *root {
        // Another one is asked for: that says nothing of the one that is here.
        return Err(Unread::Refused);
    }
    match is_whole(&known, &data) {
        Some(damage) => Err(damage.into()),
        None => {
            let part = |part: &Part| {
                let from = part.at as usize;
                (part.at, data.slice(from..from + part.length as usize))
            };
            let parts = known.parts.iter().map(part).collect();
            Ok(Writing { is_copy: true, ..Writing::new(place, known.parent, manifest, parts) })
        }
    }
}

fn is_whole(manifest: &Manifest, data: &[u8]) -> Option<Damage> {
    manifest.parts.iter().find_map(|part| {
        let from = part.at as usize;
        let bytes = data.get(from..from + part.length as usize);
        let fits =
            bytes.is_some_and(|it| manifest.place.check(part.array, part.offset, it) == part.check);
        let array = manifest.arrays[part.array as usize].name.clone();
        let (place, offset, length) = (manifest.place, part.offset, part.length);
        (!fits).then_some(Damage::Part { place, array, offset, length })
    })
}

/// The truth about an image on a disk, read by nobody.
pub fn is_there(disk: &Disk, place: Place, root: &Root) -> bool {
    let (manifest, data) = (disk.content(manifest_of(place)), disk.content(data_of(place)));
    let (Some(manifest), Some(data)) = (manifest, data) else { return false };
    let known = Manifest::decode(&manifest);
    root_of(&manifest) == *root && known.is_ok_and(|known| is_whole(&known, &data).is_none())
}

const _: () = assert!(PAGE < 1 << 20, "an image fits into what is read at once");

/// The images on a disk. A manifest without data may stay until the next agent begins.
pub fn on(disk: &Disk) -> impl Iterator<Item = Place> + '_ {
    let manifests = disk.names().filter(|file| matches!(file, FileName::Snapshot(_)));
    let data = |place: &Place| disk.names().any(|file| file == data_of(*place));
    manifests.filter_map(image_of).filter(data)
}

/// A file of an image is torn, is gone, or is another one. The image.
pub fn harm(disk: &mut Disk, draw: &mut Draw) -> Option<Place> {
    let names: Vec<FileName> = disk.names().collect();
    if names.is_empty() {
        return None;
    }
    let (file, other) = (draw.pick(&names), draw.pick(&names));
    let mut content = disk.content(file)?;
    match draw.between(0, 2) {
        0 => content.truncate(draw.count(0, content.len())),
        1 => content = disk.content(other)?,
        _ => {
            disk.take(file);
            return image_of(file);
        }
    }
    disk.put(file, content);
    image_of(file)
}
