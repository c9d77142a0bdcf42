//! Images on a real disk: what was saved is restored, and nothing that was damaged is.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::{Array, PAGE, Parent, Place};
use rank::{Arena, Staging, Tracker};
use steadfast_agent::images::{
    Commit, RestoreError, Restored, Saver, folder_of, list, restore, sweep,
};
use wire::Random;

fn arrays() -> Vec<Array> {
    [("a", 1_500 * PAGE + 9), ("b", 3), ("c", 2 * PAGE)]
        .map(|(name, length)| Array { name: name.into(), form: "|u1".into(), length })
        .to_vec()
}

fn place(generation: u64) -> Place {
    Place { job: 5, rank: 1, start: 1, generation }
}

/// The state of all arrays.
fn state(arena: &Arena) -> Vec<Vec<u8>> {
    (0..arena.arrays().len()).map(|array| arena.bytes(array).to_vec()).collect()
}

/// Writes a byte here and there: to about one page in `one_in`.
fn compute(arena: &mut Arena, random: &mut Random, one_in: u64) {
    let count = arena.arrays().len();
    for array in 0..count {
        for page in arena.bytes_mut(array).chunks_mut(PAGE as usize) {
            if random.below(one_in) == 0 {
                let byte = random.below(page.len() as u64) as usize;
                page[byte] = page[byte].wrapping_add(1);
            }
        }
    }
}

/// The state that a commit names.
fn restored(folder: &Path, commit: &Commit) -> Result<(Vec<Vec<u8>>, u64), RestoreError> {
    let Restored { file, arrays, step } = restore(folder, commit.place, commit.root)?;
    Ok((state(&Arena::restored(file, arrays).unwrap()), step))
}

/// A rank that saves after each step: its commits, and its states then.
fn computed(folder: &Path, steps: u64) -> Vec<(Commit, Vec<Vec<u8>>)> {
    let (mut random, mut arena) = (Random::new(2), Arena::new(arrays()).unwrap());
    let (saver, mut tracker) = (Saver::new(folder), Tracker::new(&arena));
    let mut commits = Vec::<(Commit, Vec<Vec<u8>>)>::new();
    let mut staging = Staging::new().unwrap();
    for step in 1..=steps {
        compute(&mut arena, &mut random, 20);
        let changed = tracker.changed(&arena).unwrap();
        // A chain has eight images at most.
        let last = commits.last().filter(|_| step % 5 != 1);
        let parent = last.map(|(commit, _)| Parent { place: commit.place, root: commit.root });
        let changed = parent.is_some().then_some(&changed[..]);
        let snapshot = staging.take(&arena, &[], step, changed).unwrap();
        let commit = saver.save((&snapshot, staging.file()), place(step), parent).unwrap();
        tracker.saved();
        commits.push((commit, state(&arena)));
    }
    commits
}

#[test]
fn an_increment_has_what_has_changed_and_each_image_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let commits = computed(folder.path(), 12);
    let whole = commits[0].0.bytes;
    for (step, (commit, state_then)) in (1..).zip(&commits) {
        let (state, restored_step) = restored(folder.path(), commit).unwrap();
        assert!(state == *state_then && restored_step == step, "step {step}");
        let full = step % 5 == 1;
        assert!(full == (commit.bytes == whole) && (full || commit.bytes < whole / 10), "{step}");
    }
}

#[test]
fn files_that_were_damaged_are_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let commits = computed(folder.path(), 10);
    let mut random = Random::new(3);
    let mut refused = 0;
    for _ in 0..200 {
        let (commit, state_then) = &commits[random.below(10) as usize];
        let other = commits[random.below(10) as usize].0.place.generation;
        let kind = ["data", "manifest"][random.below(2) as usize];
        let path = |generation| folder.path().join(format!("{generation:016x}-{:016x}.{kind}", 1));
        let (path, other) = (path(commit.place.generation), path(other));
        let whole = fs::read(&path).unwrap();
        match random.below(4) {
            3 => fs::remove_file(&path).unwrap(),
            0 => {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                let byte = random.below(whole.len() as u64);
                file.write_all_at(&[whole[byte as usize] ^ 4], byte).unwrap();
            }
            1 => {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(random.below(whole.len() as u64)).unwrap();
            }
            _ => fs::write(&path, fs::read(&other).unwrap()).unwrap(),
        }
        match restored(folder.path(), commit) {
            Ok((state, _)) => assert!(state == *state_then, "{}", path.display()),
            Err(RestoreError::Damaged(_)) => refused += 1,
            Err(RestoreError::Io(error)) => panic!("{error}"),
        }
        fs::write(&path, &whole).unwrap();
    }
    assert!(refused > 150, "{refused} of 200");
    for (commit, state_then) in &commits {
        assert!(restored(folder.path(), commit).unwrap().0 == *state_then);
    }
}

#[test]
fn the_images_of_a_folder_are_listed_but_for_torn_ones() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder_of(root.path(), 5, 1);
    fs::create_dir_all(&folder).unwrap();
    let commits = computed(&folder, 3);
    let known: Vec<_> = commits.iter().map(|(it, _)| (it.place, it.root)).collect();
    assert_eq!(list(root.path()).unwrap().images, known);
    let torn = folder.join(format!("{:016x}-{:016x}.manifest", 2, 1));
    OpenOptions::new().write(true).open(&torn).unwrap().set_len(40).unwrap();
    // One that belongs to another rank is none of this one.
    let other = folder_of(root.path(), 5, 2);
    fs::create_dir_all(&other).unwrap();
    let name = format!("{:016x}-{:016x}.manifest", 1, 1);
    fs::copy(folder.join(&name), other.join(&name)).unwrap();
    let listed = list(root.path()).unwrap();
    assert_eq!(listed.images, [known[0], known[2]]);
    assert_eq!(listed.torn, [torn.clone(), other.join(&name)]);
    // An agent that begins removes them, which nobody else would.
    sweep(root.path()).unwrap();
    let listed = list(root.path()).unwrap();
    assert_eq!((&listed.images[..], listed.torn.len()), (&[known[0], known[2]][..], 0));
    assert!(!torn.with_extension("data").exists());
}

#[test]
fn a_writer_that_was_killed_leaves_nothing_that_lasts() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder_of(root.path(), 5, 1);
    fs::create_dir_all(&folder).unwrap();
    let commits = computed(&folder, 1);
    let half = folder.join(format!("{:016x}-{:016x}.data", 2, 1));
    fs::write(&half, b"half").unwrap();
    // The next try has the same name.
    let (arena, mut staging) = (Arena::new(arrays()).unwrap(), Staging::new().unwrap());
    let snapshot = staging.take(&arena, &[], 2, None).unwrap();
    Saver::new(&folder).save((&snapshot, staging.file()), place(2), None).unwrap();
    assert!(Saver::new(&folder).save((&snapshot, staging.file()), place(2), None).is_err());
    let left = [3, 4].map(|image| folder.join(format!("{image:016x}-{:016x}.data", 1)));
    left.iter().for_each(|path| fs::write(path, b"half").unwrap());
    sweep(root.path()).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
    assert_eq!(list(root.path()).unwrap().images.len(), 2);
    assert_eq!(restored(&folder, &commits[0].0).unwrap().1, 1);
}
