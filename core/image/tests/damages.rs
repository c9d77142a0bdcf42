//! Files of images are damaged in many ways: what is restored is what was saved, or nothing is.

use std::collections::BTreeMap;
use std::rc::Rc;

use steadfast_image::{
    Array, Builder, Chain, Damage, MAX_PART, Manifest, Opening, PAGE, Parent, Place, Root,
};
use wire::Random;

/// Files of images: data and manifest.
#[derive(Clone, Default)]
struct Disk {
    data: BTreeMap<Place, Rc<Vec<u8>>>,
    manifests: BTreeMap<Place, Rc<Vec<u8>>>,
}

/// A rank, its state, and the images that were committed.
struct Rank {
    place: Place,
    arrays: Vec<(Array, Vec<u8>)>,
    committed: Vec<Commit>,
}

#[derive(Clone)]
struct Commit {
    place: Place,
    root: Root,
    state: Vec<Vec<u8>>,
}

impl Rank {
    fn new(rank: u32, random: &mut Random) -> Rank {
        let array = |name: &str, length: u64| {
            let form = format!("|u1 ({length},)");
            (Array { name: name.into(), form, length }, vec![0; length as usize])
        };
        let mut arrays = vec![array("a", 5 * PAGE + 17), array("b", 300_000), array("c", 3)];
        arrays.iter_mut().for_each(|(_, bytes)| bytes.fill_with(|| random.next_u64() as u8));
        let place = Place { job: 7, rank, start: 1, generation: 0 };
        Rank { place, arrays, committed: Vec::new() }
    }

    /// Computes: some pages become others. Returns them, by array and number.
    fn compute(&mut self, random: &mut Random) -> Vec<(usize, u64)> {
        let mut dirty = Vec::new();
        for (number, (array, bytes)) in self.arrays.iter_mut().enumerate() {
            for page in 0..array.length.div_ceil(PAGE) {
                if random.below(10) == 0 {
                    let from = (page * PAGE) as usize;
                    let to = bytes.len().min(from + PAGE as usize);
                    bytes[from..to].fill_with(|| random.next_u64() as u8);
                    dirty.push((number, page));
                }
            }
        }
        dirty
    }

    /// Saves the pages that have changed, or all of them.
    fn save(&mut self, disk: &mut Disk, dirty: Option<&[(usize, u64)]>) {
        self.place.generation += 1;
        let last = self.committed.last().filter(|_| dirty.is_some());
        let parent = last.map(|commit| Parent { place: commit.place, root: commit.root });
        let arrays = self.arrays.iter().map(|(array, _)| array.clone()).collect();
        let mut builder = Builder::new(self.place, parent, arrays);
        let mut file = Vec::new();
        for (number, (_, bytes)) in self.arrays.iter().enumerate() {
            let pieces: Vec<(usize, usize)> = match dirty {
                None => (0..bytes.len())
                    .step_by(MAX_PART)
                    .map(|from| (from, bytes.len().min(from + MAX_PART)))
                    .collect(),
                Some(dirty) => dirty
                    .iter()
                    .filter(|(array, _)| *array == number)
                    .map(|(_, page)| (page * PAGE) as usize)
                    .map(|from| (from, bytes.len().min(from + PAGE as usize)))
                    .collect(),
            };
            for (from, to) in pieces {
                let at = builder.part(number as u32, from as u64, &bytes[from..to]);
                file.resize(at as usize, 0);
                file.extend_from_slice(&bytes[from..to]);
            }
        }
        let manifest = builder.finish(self.place.generation * 10);
        disk.data.insert(self.place, Rc::new(file));
        disk.manifests.insert(self.place, Rc::new(manifest.encode()));
        let state = self.arrays.iter().map(|(_, bytes)| bytes.clone()).collect();
        self.committed.push(Commit { place: self.place, root: manifest.root(), state });
    }
}

/// Restores an image as its reader does.
fn restore(disk: &Disk, commit: &Commit) -> Result<Vec<Vec<u8>>, Damage> {
    let mut opening = Opening::new(commit.place, commit.root);
    while let Some(place) = opening.wanted() {
        opening.take(disk.manifests.get(&place).ok_or(Damage::Missing(place))?)?;
    }
    let chain = opening.finish()?;
    let mut state: Vec<Vec<u8>> =
        chain.arrays().iter().map(|array| vec![0; array.length as usize]).collect();
    for read in chain.reads() {
        let file = disk.data.get(&read.place).map_or(&[][..], |file| file.as_slice());
        let from = file.len().min(read.at as usize);
        let to = file.len().min(from + read.length as usize);
        chain.accept(&read, &file[from..to])?;
        let place = read.offset as usize;
        state[read.array as usize][place..place + read.length as usize]
            .copy_from_slice(&file[from..to]);
    }
    Ok(state)
}

/// Two ranks, the first of which has started twice, with a chain of five images each.
fn computed(random: &mut Random) -> (Disk, Vec<Commit>) {
    let (mut disk, mut commits) = (Disk::default(), Vec::new());
    for rank in 0..2 {
        let mut rank = Rank::new(rank, random);
        for start in 1..=2 {
            rank.place.start = start;
            rank.save(&mut disk, None);
            for _ in 0..4 {
                let dirty = rank.compute(random);
                rank.save(&mut disk, Some(&dirty));
            }
        }
        commits.extend(rank.committed);
    }
    (disk, commits)
}

fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize].clone()
}

#[test]
fn what_is_restored_is_what_was_saved() {
    let (disk, commits) = computed(&mut Random::new(1));
    for commit in &commits {
        assert!(restore(&disk, commit).unwrap() == commit.state, "{}", commit.place);
    }
}

#[test]
fn nothing_damaged_is_restored() {
    let mut random = Random::new(2);
    let (whole, commits) = computed(&mut random);
    let mut seen = BTreeMap::new();
    for _ in 0..2_000 {
        let (mut disk, commit) = (whole.clone(), pick(&mut random, &commits));
        let other = pick(&mut random, &commits).place;
        let place = commit.place;
        let (kind, matters) = match random.below(8) {
            0 => {
                let file = Rc::make_mut(disk.data.get_mut(&place).unwrap());
                let byte = random.below(file.len() as u64) as usize;
                file[byte] ^= 1 << random.below(8);
                // Between the parts there is padding.
                ("a bit of the data", false)
            }
            1 => {
                let file = Rc::make_mut(disk.manifests.get_mut(&place).unwrap());
                let byte = random.below(file.len() as u64) as usize;
                file[byte] ^= 1 << random.below(8);
                ("a bit of the manifest", true)
            }
            2 => {
                let file = Rc::make_mut(disk.data.get_mut(&place).unwrap());
                file.truncate(random.below(file.len() as u64) as usize);
                ("data cut short", true)
            }
            3 => {
                let file = Rc::make_mut(disk.manifests.get_mut(&place).unwrap());
                file.truncate(random.below(file.len() as u64) as usize);
                ("a manifest cut short", true)
            }
            4 => {
                let data = disk.data[&other].clone();
                disk.data.insert(place, data);
                ("another image's data", other != place)
            }
            5 => {
                let manifest = disk.manifests[&other].clone();
                disk.manifests.insert(place, manifest);
                ("another image's manifest", other != place)
            }
            6 => {
                let file = Rc::make_mut(disk.data.get_mut(&place).unwrap());
                let pages = file.len() as u64 / PAGE;
                let [one, two] = [(); 2].map(|()| (random.below(pages) * PAGE) as usize);
                for byte in 0..PAGE as usize {
                    file.swap(one + byte, two + byte);
                }
                ("two pages in each other's place", one != two)
            }
            _ => {
                disk.data.insert(place, Rc::default());
                disk.manifests.insert(other, Rc::default());
                ("lost files", true)
            }
        };
        match restore(&disk, &commit) {
            Ok(state) => {
                assert!(state == commit.state, "{kind}: {place} was restored, and is another");
                assert!(!matters, "{kind}: nobody sees it");
            }
            Err(_) => *seen.entry(kind).or_insert(0) += 1,
        }
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
    assert!(seen.values().sum::<u32>() > 1_700, "{seen:?}");
}

#[test]
fn a_manifest_that_nobody_committed_is_refused() {
    let mut random = Random::new(3);
    let (mut disk, commits) = computed(&mut random);
    let commit = &commits[7];
    // An older start goes on writing: the file is whole, and of another life.
    let mut manifest = Manifest::decode(&disk.manifests[&commit.place]).unwrap();
    manifest.step += 1;
    disk.manifests.insert(commit.place, Rc::new(manifest.encode()));
    assert_eq!(restore(&disk, commit), Err(Damage::Root(commit.place)));
}

/// The chain of these images, the newest first.
fn open(place: Place, manifests: &[Manifest]) -> Result<Chain, Damage> {
    let mut opening = Opening::new(place, manifests[0].root());
    manifests.iter().try_for_each(|manifest| opening.take(&manifest.encode()))?;
    opening.finish()
}

#[test]
fn a_chain_without_all_bytes_is_no_state() {
    let place = Place { job: 1, rank: 0, start: 1, generation: 1 };
    let array = Array { name: "a".into(), form: String::new(), length: 3 * PAGE };
    let mut builder = Builder::new(place, None, vec![array]);
    let page = [1; PAGE as usize];
    builder.part(0, 0, &page);
    builder.part(0, 2 * PAGE, &page);
    let manifest = builder.finish(0);
    let chain = open(place, &[manifest]);
    assert_eq!(chain.unwrap_err(), Damage::Gap { array: "a".into(), offset: PAGE });
}

#[test]
fn an_array_that_changes_its_form_takes_nothing_from_older_images() {
    let place = |generation| Place { job: 1, rank: 0, start: 1, generation };
    let array = |length| Array { name: "a".into(), form: format!("({length},)"), length };
    let mut builder = Builder::new(place(1), None, vec![array(PAGE)]);
    builder.part(0, 0, &[1; PAGE as usize]);
    let old = builder.finish(0);
    let parent = Some(Parent { place: place(1), root: old.root() });
    let grown = Builder::new(place(2), parent, vec![array(2 * PAGE)]).finish(1);
    let chain = open(place(2), &[grown, old]);
    assert_eq!(chain.unwrap_err(), Damage::Gap { array: "a".into(), offset: 0 });
}

#[test]
fn an_array_that_was_gone_takes_nothing_from_before() {
    let place = |generation| Place { job: 1, rank: 0, start: 1, generation };
    let array = |name: &str| Array { name: name.into(), form: String::new(), length: 2 * PAGE };
    let full = |builder: &mut Builder| {
        builder.part(0, 0, &[1; 2 * PAGE as usize]);
    };
    let on = |parent: &Manifest| Some(Parent { place: parent.place, root: parent.root() });
    let mut first = Builder::new(place(1), None, vec![array("a")]);
    full(&mut first);
    let first = first.finish(1);
    let mut without = Builder::new(place(2), on(&first), vec![array("b")]);
    full(&mut without);
    let without = without.finish(2);
    let mut again = Builder::new(place(3), on(&without), vec![array("a")]);
    again.part(0, 0, &[2; PAGE as usize]);
    let again = again.finish(3);
    let chain = open(place(3), &[again, without, first]);
    assert_eq!(chain.unwrap_err(), Damage::Gap { array: "a".into(), offset: PAGE });
}
