use std::os::unix::fs::FileExt;

use super::*;
use crate::Reader;

/// A log with some messages, as their sender writes it; each message has its number's bytes.
struct Sender {
    writer: Writer,
    source: Reader,
    last: Head,
}

impl Sender {
    fn new() -> Sender {
        let writer = Writer::new(1 << 13, None).unwrap();
        let source = Reader::open(writer.file()).unwrap();
        Sender { writer, source, last: Head { number: 0, tag: 0, length: 0, check: 0 } }
    }

    /// Sends a message; the oldest ones go where there is no room.
    fn send(&mut self, kept: &mut Kept) {
        let body = vec![self.last.number as u8; 40 * (self.last.number % 7) as usize];
        let crc = crc32c::crc32c(&body);
        let head = Head::after(self.last.check, self.last.number + 1, (7, body.len() as u64, crc));
        while self.writer.push((head.number, 7, head.check), [&body, &[]]).is_err() {
            let (_, end) = self.writer.records().unwrap()[0];
            self.writer.release(end);
        }
        self.last = head;
        self.writer.publish(self.writer.written());
        let mut piece = Vec::new();
        while let Some((at, released)) = self.source.copy_next(256, &mut piece).unwrap() {
            kept.release(released).unwrap();
            kept.push(at, &piece).unwrap();
        }
    }
}

/// The log of a process that has ended, for readers, and its last message.
fn restored(path: &Path) -> (File, u64) {
    let found = super::Found::open(path).unwrap();
    found.show();
    (File::open(path).unwrap(), found.last())
}

/// The numbers of the messages that a reader of this memory sees.
fn seen(file: &File) -> Vec<u64> {
    let mut reader = Reader::open(file).unwrap();
    std::iter::from_fn(|| reader.advance().unwrap()).map(|found| found.head.number).collect()
}

#[test]
fn readers_see_what_is_on_the_disk_and_shown() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut kept = Kept::create(&folder.path().join("a"), 1 << 13, 0).unwrap();
    let word = LastKept::open(kept.file()).unwrap();
    let mut sender = Sender::new();
    (0..3).for_each(|_| sender.send(&mut kept));
    assert_eq!((kept.show(u64::MAX), kept.is_dirty()), (0, true));
    let place = kept.flush().unwrap();
    assert!(seen(kept.file()).is_empty() && !kept.is_dirty());
    // A part of the last message is none.
    assert_eq!((kept.show(place - 32), word.number()), (2, 2));
    assert_eq!(seen(kept.file()), [1, 2]);
    assert_eq!((kept.show(place), word.number()), (3, 3));
    assert!(Kept::create(&folder.path().join("a"), 1 << 13, 0).is_err(), "the name is taken");
    assert!(Kept::create(&folder.path().join("b"), 5_000, 0).is_err());
}

#[test]
fn a_kept_log_is_found_again_as_far_as_it_is_whole() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("log");
    let mut kept = Kept::create(&path, 1 << 13, 0).unwrap();
    let mut sender = Sender::new();
    for number in 1..400 {
        sender.send(&mut kept);
        if number % 3 == 0 {
            kept.flush().unwrap();
        }
        // Its process has ended: all that was written is there, also what was never flushed.
        let (file, last) = restored(&path);
        assert_eq!(last, number);
        let all = sender.writer.records().unwrap();
        assert_eq!(seen(&file), all.iter().map(|(head, _)| head.number).collect::<Vec<_>>());
    }
}

#[test]
fn nothing_behind_a_damaged_message_is_believed() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("log");
    let mut kept = Kept::create(&path, 1 << 13, 0).unwrap();
    let mut sender = Sender::new();
    (0..8).for_each(|_| sender.send(&mut kept));
    kept.flush().unwrap();
    let all = sender.writer.records().unwrap();
    drop(kept);
    let file = File::options().write(true).open(&path).unwrap();
    for (head, end) in all.iter().rev().filter(|(head, _)| head.length > 0) {
        file.write_all_at(&[99], HEADER as u64 + end - 32).unwrap();
        let (readers, last) = restored(&path);
        assert_eq!(last, head.number - 1);
        assert_eq!(seen(&readers), (1..head.number).collect::<Vec<_>>());
    }
    file.write_all_at(&[0; 8], 0).unwrap();
    super::Found::open(&path).unwrap_err();
}
