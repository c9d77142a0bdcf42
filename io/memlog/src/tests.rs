//! Logs, mirrors and bells.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use channel::Head;

use crate::{Bell, Full, Mirror, Reader, Writer};

fn bytes(number: u64) -> Vec<u8> {
    let length = number.wrapping_mul(0x9e37_79b9) % 3_000;
    (0..length).map(|at| (at ^ number) as u8).collect()
}

#[test]
fn messages_go_around_the_ring_as_they_were_sent() {
    let mut writer = Writer::new(1 << 14, None).unwrap();
    let mut reader = Reader::open(writer.file()).unwrap();
    assert!(reader.advance().unwrap().is_none());
    let mut ends = std::collections::VecDeque::new();
    for number in 1..2_000 {
        let message = bytes(number);
        while let Err(full) = writer.push((number, 7, 3), [&message, &[]]) {
            assert_eq!(full, Full::Now);
            writer.release(ends.pop_front().unwrap());
        }
        let end = writer.push((number + 10_000, 7, 3), [&[], &[]]).unwrap_or(writer.written());
        let mark = writer.written();
        writer.publish(mark);
        ends.push_back(end);
        while let Some(found) = reader.advance().unwrap() {
            if found.head.number > 10_000 {
                continue;
            }
            let head = Head { number, tag: 7, check: 3, length: message.len() as u64 };
            assert_eq!(found.head, head);
            let mut copy = vec![0; message.len()];
            assert!(found.copy(0, &mut copy));
            assert_eq!(copy, message);
        }
    }
}

#[test]
fn a_later_reader_begins_with_the_oldest_message_that_is_kept() {
    let mut writer = Writer::new(1 << 14, None).unwrap();
    let first = writer.push((1, 0, 0), [b"one", &[]]).unwrap();
    let second = writer.push((2, 0, 0), [b"two", &[]]).unwrap();
    writer.publish(second);
    writer.release(first);
    let mut reader = Reader::open(writer.file()).unwrap();
    assert_eq!(reader.advance().unwrap().unwrap().head.number, 2);
    assert!(reader.advance().unwrap().is_none());
    assert_eq!(writer.bytes(), 64);
    assert_eq!(writer.push((3, 0, 0), [&vec![0; 1 << 14], &[]]), Err(Full::Ever));
}

#[test]
fn what_is_not_published_is_not_seen() {
    let mut writer = Writer::new(1 << 14, None).unwrap();
    let first = writer.push((1, 0, 0), [b"one", &[]]).unwrap();
    let second = writer.push((2, 0, 0), [b"two", &[]]).unwrap();
    let mut reader = Reader::open(writer.file()).unwrap();
    assert!(reader.advance().unwrap().is_none());
    writer.publish(first);
    assert_eq!(reader.advance().unwrap().unwrap().head.number, 1);
    assert!(reader.advance().unwrap().is_none());
    writer.publish(second);
    assert_eq!(reader.advance().unwrap().unwrap().head.number, 2);
}

#[test]
fn threads_see_whole_messages() {
    let mut writer = Writer::new(1 << 16, None).unwrap();
    let mut reader = Reader::open(writer.file()).unwrap();
    let (told, taken) = std::sync::mpsc::channel();
    let body = move || {
        for number in 1..4_000 {
            let found = loop {
                match reader.advance().unwrap() {
                    Some(found) => break found,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(found.head.number, number);
            let mut copy = vec![0; found.head.length as usize];
            assert!(found.copy(0, &mut copy));
            assert_eq!(copy, bytes(number));
            told.send(reader.place()).unwrap();
        }
    };
    let reads = thread::spawn(body);
    for number in 1..4_000 {
        let message = bytes(number);
        while let Err(full) = writer.push((number, 0, 0), [&message, &[]]) {
            assert_eq!(full, Full::Now);
            writer.release(taken.recv().unwrap());
        }
        let all = writer.written();
        writer.publish(all);
    }
    reads.join().unwrap();
}

#[test]
fn a_log_that_makes_no_sense_is_refused_and_nobody_else_writes_there() {
    use std::io::Write;

    let none = tempfile::tempfile().unwrap();
    none.set_len(8_192).unwrap();
    assert!(Reader::open(&none).is_err(), "its memory could be taken away");
    let writer = Writer::new(1 << 14, None).unwrap();
    assert!(writer.file().try_clone().unwrap().write(b"x").is_err());
    writer.file().set_len(0).unwrap_err();
    for forged in [
        (33, 0),
        (1 << 40, 0),
        ((1 << 14) + 31, (1 << 14) - 1),
        (u64::MAX - 31, u64::MAX - 63),
        (u64::MAX, 0),
    ] {
        writer.forge(forged);
        let mut reader = Reader::open(writer.file()).unwrap();
        assert!(reader.advance().is_err(), "{forged:?}");
    }
}

#[test]
fn a_reader_passes_over_what_was_let_go() {
    let mut writer = Writer::new(1 << 13, None).unwrap();
    let mut reader = Reader::open(writer.file()).unwrap();
    let mut found = None;
    for number in 1..100 {
        let end = writer.push((number, 0, 0), [&[number as u8; 1_000], &[]]).unwrap();
        // The first is not looked at for long.
        found = found.or_else(|| reader.advance().unwrap());
        writer.publish(end);
        if number % 4 == 0 {
            writer.release(end);
        }
    }
    let old = found.unwrap();
    assert_eq!(old.head.number, 1);
    assert!(!old.copy(0, &mut [0; 1_000]), "it is overwritten");
    assert_eq!(reader.advance().unwrap().unwrap().head.number, 97);
    // One that may not leave yet is let go: nobody needs it.
    let end = writer.push((100, 0, 0), [b"gated", &[]]).unwrap();
    writer.release(end);
    let mut later = Reader::open(writer.file()).unwrap();
    assert!(later.advance().unwrap().is_none() && reader.advance().unwrap().is_none());
}

#[test]
fn a_mirror_has_the_log_and_is_never_full_before_it() {
    let mut writer = Writer::new(1 << 13, None).unwrap();
    let mut source = Reader::open(writer.file()).unwrap();
    let mut mirror = Mirror::new(writer.capacity(), 0).unwrap();
    let mut reader = Reader::open(mirror.file()).unwrap();
    let mut piece = Vec::new();
    for number in 1..500 {
        let message = bytes(number);
        let head: &[u8] = &[9; 16];
        let end = loop {
            match writer.push((number, 7, 3), [head, &message]) {
                Ok(end) => break end,
                Err(full) => {
                    assert_eq!(full, Full::Now);
                    writer.release(writer.written());
                }
            }
        };
        writer.publish(end);
        let mut found = None;
        while let Some((at, released)) = source.copy_next(1_000, &mut piece).unwrap() {
            mirror.release(released);
            assert!(piece.len() <= 1_000 && found.is_none());
            mirror.push(at, &piece).unwrap();
            found = reader.advance().unwrap();
        }
        let found = found.expect("it is there");
        assert_eq!((found.head.number, found.head.length), (number, message.len() as u64 + 16));
        let mut copy = vec![0; message.len()];
        assert!(found.copy(16, &mut copy));
        assert_eq!(copy, message);
    }
    mirror.push(0, &piece).unwrap_err();
    assert!(Mirror::new(5_000, 0).is_err() && Mirror::new(1 << 13, 7).is_err());
}

#[test]
fn a_bell_wakes_whoever_sleeps_or_is_about_to() {
    let bell = Bell::new().unwrap();
    let opened = || Bell::open(bell.file().try_clone().unwrap()).unwrap();
    let (other, third) = (opened(), opened());
    let (ends, ended) = mpsc::channel::<()>();
    // Somebody rings for what this reader does not look at, and takes no wake-up from others by that.
    let rings = thread::spawn(move || {
        while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
            third.ring();
            thread::yield_now();
        }
    });
    let mut writer = Writer::new(1 << 14, None).unwrap();
    let mut reader = Reader::open(writer.file()).unwrap();
    let sends = thread::spawn(move || {
        for number in 1..20_000 {
            while writer.push((number, 0, 0), [&[], &[]]).is_err() {
                writer.release(writer.written() - (1 << 13));
                // As if it had been read: the reader says which it has.
                thread::yield_now();
            }
            writer.publish(writer.written());
            other.ring();
        }
        writer
    });
    let mut last = 0;
    while last < 19_999 {
        let heard = bell.begin();
        match reader.advance().unwrap() {
            Some(found) => last = found.head.number,
            // A ring that was lost would end this test by its time.
            None => bell.sleep(heard, Duration::from_secs(600)),
        }
        bell.end();
    }
    sends.join().unwrap();
    drop(ends);
    rings.join().unwrap();
}

#[test]
fn the_first_who_rings_wakes_the_reader() {
    let bell = Bell::new().unwrap();
    let other = Bell::open(bell.file().try_clone().unwrap()).unwrap();
    let heard = bell.begin();
    assert!(bell.is_asleep());
    other.ring();
    assert!(!bell.is_asleep(), "others need not ring");
    bell.sleep(heard, Duration::from_secs(600));
    bell.end();
    other.ring();
    let heard = bell.begin();
    other.ring();
    bell.sleep(heard, Duration::from_secs(600));
}

#[test]
fn a_log_is_restored_from_its_ring() {
    let mut writer = Writer::new(1 << 13, None).unwrap();
    let mut ends = Vec::new();
    for number in 1..40 {
        let message = bytes(number);
        while writer.push((number, 7, 3), [&message, &[]]).is_err() {
            writer.release(ends.remove(0));
        }
        ends.push(writer.written());
    }
    let mut ring = vec![0; 1 << 13];
    writer.copy_ring(0, &mut ring);
    let copy = Writer::restored(&ring, writer.place(), None).unwrap();
    let records = copy.records().unwrap();
    assert_eq!(records.len(), ends.len());
    for ((head, end), wanted) in records.iter().zip(&ends) {
        assert_eq!(end, wanted);
        let mut message = vec![0; head.length as usize];
        copy.copy(*end, &mut message);
        assert_eq!(message, bytes(head.number));
    }
    assert!(
        Reader::open(copy.file()).unwrap().advance().unwrap().is_none(),
        "nothing may leave yet"
    );
    Writer::restored(&ring[1..], writer.place(), None).unwrap_err();
    Writer::restored(&[0; 1 << 13], writer.place(), None).unwrap().records().unwrap_err();
}

#[test]
fn a_mirror_follows_a_log_that_has_let_go_what_was_not_read() {
    let mut writer = Writer::new(1 << 13, None).unwrap();
    let mut source = Reader::open(writer.file()).unwrap();
    let mut mirror = Mirror::new(writer.capacity(), 0).unwrap();
    let mut piece = Vec::new();
    for number in 1..200 {
        let end = writer.push((number, 0, 0), [&bytes(number)[..], &[]]);
        let Ok(end) = end else {
            writer.release(writer.written());
            continue;
        };
        writer.publish(end);
        if number % 7 == 0 {
            while let Some((at, released)) = source.copy_next(1 << 12, &mut piece).unwrap() {
                // Messages that were let go before they were read are passed over.
                mirror.release(released);
                mirror.push(at, &piece).unwrap();
            }
        }
    }
}

#[test]
fn a_long_log_is_on_a_disk() {
    let folder = tempfile::tempdir_in(".").unwrap();
    assert!(crate::is_on_disk(folder.path()) && !crate::is_on_disk("/proc/self".as_ref()));
    let long = 2 * crate::IN_MEMORY as usize;
    let mut writer = Writer::new(long, Some(folder.path())).unwrap();
    let disk = rustix::fs::fstatfs(writer.file()).unwrap();
    assert!(disk.f_type as u64 != 0x0102_1994, "it is in memory");
    let mut reader = Reader::open(writer.file()).unwrap();
    let end = writer.push((1, 7, 3), [&[5; 64], b"six"]).unwrap();
    writer.publish(end);
    let found = reader.advance().unwrap().unwrap();
    let mut bytes = [0; 67];
    assert!(found.copy(0, &mut bytes) && bytes[..64] == [5; 64] && bytes[64..] == *b"six");
    // Its reader can neither write nor shorten it, and one who could is not believed.
    assert!(writer.file().set_len(0).is_err());
    let named = std::fs::File::create(folder.path().join("log")).unwrap();
    named.set_len(1 << 20).unwrap();
    assert!(Reader::open(&named).is_err());
    // A log that is short stays in memory.
    let short = Writer::new(1 << 13, Some(folder.path())).unwrap();
    let memory = rustix::fs::fstatfs(short.file()).unwrap();
    assert_eq!(memory.f_type as u64, 0x0102_1994);
}
