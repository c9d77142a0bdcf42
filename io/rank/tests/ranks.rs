//! A rank's memory: what has changed is found, and nothing else.

use std::fs;
use std::os::unix::fs::FileExt;

use steadfast_rank::{Arena, Kind, Stretch, Tracker};
use wire::Random;
use wire::rank::{Array, PAGE};

fn arrays() -> Vec<Array> {
    [("a", 1_500 * PAGE + 9), ("b", 3), ("c", 2 * PAGE)]
        .map(|(name, length)| Array { name: name.into(), form: "|u1".into(), length })
        .to_vec()
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
fn another_language_is_told_where_an_array_is() {
    let mut arena = Arena::new(arrays()).unwrap();
    let before: Vec<*mut [u8]> = (0..3).map(|array| arena.pointer(array)).collect();
    arena.add(Array { name: "d".into(), form: String::new(), length: 9 * PAGE }).unwrap();
    for (array, pointer) in before.into_iter().enumerate() {
        let bytes = arena.bytes(array);
        assert_eq!((pointer.cast_const().cast(), pointer.len()), (bytes.as_ptr(), bytes.len()));
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

#[test]
fn an_array_that_is_new_is_owed_as_a_whole_and_then_tracked() {
    let array = |name: &str| Array { name: name.into(), form: String::new(), length: 3 * PAGE };
    for number in 0..2 {
        let mut arena = Arena::new(vec![array("a")]).unwrap();
        let mut tracker = trackers(&arena).remove(number);
        tracker.changed(&arena).unwrap();
        tracker.saved();
        let before = arena.bytes(0).as_ptr();
        let new = arena.add(array("b")).unwrap();
        assert_eq!(arena.bytes(0).as_ptr(), before, "no array moves");
        arena.bytes_mut(new)[0] = 1;
        arena.bytes_mut(0)[PAGE as usize] = 1;
        let changed = tracker.changed(&arena).unwrap();
        assert_eq!(ends(&changed), [(PAGE, 2 * PAGE), (3 * PAGE, 6 * PAGE)]);
        tracker.saved();
        arena.bytes_mut(new)[2 * PAGE as usize] = 1;
        assert_eq!(ends(&tracker.changed(&arena).unwrap()), [(5 * PAGE, 6 * PAGE)]);
    }
}
