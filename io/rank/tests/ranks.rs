//! A rank on a real disk: what has changed is found, what was saved is restored, and nothing that
//! was damaged is.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::{Array, PAGE, Parent, Place};
use steadfast_rank::{
    Arena, Commit, Kind, RestoreError, Saver, Snapshot, Stretch, Tracker, restore,
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

fn trackers(arena: &Arena) -> Vec<Tracker> {
    // Where the kernel does not tell, the best is the one that compares: then it is tried twice.
    let compared = Tracker::of(Kind::Compared, arena).expect("it needs no permission");
    vec![Tracker::new(arena), compared]
}

#[test]
fn each_tracker_finds_the_pages_that_have_changed_and_no_others() {
    for number in 0..2 {
        let (mut random, mut arena) = (Random::new(1), Arena::new(arrays()).unwrap());
        let mut tracker = trackers(&arena).remove(number);
        assert!(tracker.kind() == Kind::Written || number == 1 || tracker.instead().is_some());
        let all = tracker.changed(&arena).unwrap();
        assert_eq!((all.len(), all[0].to()), (1, 1_504 * PAGE), "nothing was saved yet");
        for round in 0..40 {
            tracker.saved();
            let before = state(&arena).concat();
            compute(&mut arena, &mut random, [1, 2, 50, 10_000][round % 4]);
            let mut seen = vec![false; 1_600];
            for stretch in tracker.changed(&arena).unwrap() {
                for page in stretch.from() / PAGE..stretch.to() / PAGE {
                    seen[page as usize] = true;
                }
            }
            let now = state(&arena);
            let mut page = 0;
            let mut byte = 0;
            for array in &now {
                for chunk in array.chunks(PAGE as usize) {
                    let changed = before[byte..byte + chunk.len()] != *chunk;
                    assert_eq!(seen[page], changed, "{:?}, page {page}", tracker.kind());
                    (page, byte) = (page + 1, byte + chunk.len());
                }
            }
        }
    }
}

#[test]
fn what_the_kernel_writes_is_a_change_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    fs::write(&path, [7; 3]).unwrap();
    let file = fs::File::open(&path).unwrap();
    for number in 0..2 {
        let mut arena = Arena::new(arrays()).unwrap();
        let mut tracker = trackers(&arena).remove(number);
        tracker.saved();
        file.read_exact_at(arena.bytes_mut(1), 0).unwrap();
        let b = 1_501 * PAGE;
        assert_eq!(ends(&tracker.changed(&arena).unwrap()), [(b, b + PAGE)]);
        tracker.saved();
        assert_eq!(tracker.changed(&arena).unwrap(), []);
    }
}

fn ends(stretches: &[Stretch]) -> Vec<(u64, u64)> {
    stretches.iter().map(|stretch| (stretch.from(), stretch.to())).collect()
}

#[test]
fn more_stretches_are_found_than_the_kernel_tells_at_once() {
    let array = Array { name: "a".into(), form: String::new(), length: 3_000 * PAGE };
    for number in 0..2 {
        let mut arena = Arena::new(vec![array.clone()]).unwrap();
        let mut tracker = trackers(&arena).remove(number);
        tracker.saved();
        for page in (0..3_000).step_by(2) {
            arena.bytes_mut(0)[page * PAGE as usize] = 1;
        }
        let changed = tracker.changed(&arena).unwrap();
        let every_second = (0..1_500).map(|it| (2 * it * PAGE, (2 * it + 1) * PAGE));
        assert!(ends(&changed).into_iter().eq(every_second), "{:?}", tracker.kind());
    }
}

#[test]
fn a_checkpoint_that_fails_loses_no_change() {
    for number in 0..2 {
        let mut arena = Arena::new(arrays()).unwrap();
        let mut tracker = trackers(&arena).remove(number);
        tracker.saved();
        arena.bytes_mut(2)[0] = 1;
        let first = tracker.changed(&arena).unwrap();
        // It is not saved: the disk is full.
        arena.bytes_mut(0)[0] = 1;
        let both = tracker.changed(&arena).unwrap();
        assert_eq!(ends(&both), [(0, PAGE), ends(&first)[0]]);
        let other = Arena::new(arrays()).unwrap();
        assert!(tracker.changed(&other).is_err(), "it does not see that one");
    }
}

#[test]
fn arrays_that_no_image_could_have_are_refused() {
    let array = |name: &str| Array { name: name.into(), form: String::new(), length: 1 };
    for wrong in [vec![array("a"), array("a")], vec![array(&"x".repeat(257))]] {
        assert!(Arena::new(wrong).is_err());
    }
}

/// A rank that saves after each step: its commits, and its states then.
fn computed(folder: &Path, steps: u64) -> Vec<(Commit, Vec<Vec<u8>>)> {
    let (mut random, mut arena) = (Random::new(2), Arena::new(arrays()).unwrap());
    let (saver, mut tracker) = (Saver::new(folder), Tracker::new(&arena));
    let (mut commits, mut snapshot) = (Vec::<(Commit, Vec<Vec<u8>>)>::new(), Snapshot::default());
    for step in 1..=steps {
        compute(&mut arena, &mut random, 20);
        let changed = tracker.changed(&arena).unwrap();
        // A chain has eight images at most.
        let last = commits.last().filter(|_| step % 5 != 1);
        let parent = last.map(|(commit, _)| Parent { place: commit.place, root: commit.root });
        snapshot.take(&arena, step, parent.is_some().then_some(&changed));
        let commit = saver.save(&snapshot, place(step), parent).unwrap();
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
        let (arena, restored_step) = restore(folder.path(), *commit).unwrap();
        assert!(state(&arena) == *state_then && restored_step == step, "step {step}");
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
        match restore(folder.path(), *commit) {
            Ok((arena, _)) => assert!(state(&arena) == *state_then, "{}", path.display()),
            Err(RestoreError::Damaged(_)) => refused += 1,
            Err(RestoreError::Io(error)) => panic!("{error}"),
        }
        fs::write(&path, &whole).unwrap();
    }
    assert!(refused > 150, "{refused} of 200");
    for (commit, state_then) in &commits {
        assert!(state(&restore(folder.path(), *commit).unwrap().0) == *state_then);
    }
}
