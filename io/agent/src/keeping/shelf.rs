//! Kept logs in folders: which there are, and which are of no use any more.
//!
//! ```text
//! FOLDER/JOB/FROM-TO-START-NUMBER.kept     messages from a rank to another, of a start; numbers grow
//! ```
//!
//! Numbers are hexadecimal. A log goes when a later one of its route has all that it has, or when its
//! job is over.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memlog::{FoundKept, Kept};
use wire::agents::Route;

use crate::exchange::RankId;
use crate::images::numbered;

/// The end of a kept log's name.
const END: &str = "kept";

/// All kept logs of an agent, for the threads that write them.
#[derive(Clone, Debug)]
pub(crate) struct Shelf(Arc<Mutex<Shelved>>);

#[derive(Debug)]
struct Shelved {
    folder: PathBuf,
    /// The number of the last log.
    last: u64,
    logs: BTreeMap<Route, Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    start: u64,
    path: PathBuf,
    /// The number of its last message that is on the disk.
    reaches: u64,
    /// An earlier agent has left it.
    found: bool,
}

impl Entry {
    fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A place on the shelf: of a route, and the log's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(Route, u64);

impl Shelf {
    /// The shelf in this folder, with what earlier agents have left.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn open(folder: &Path) -> io::Result<Shelf> {
        let (mut logs, mut last) = (BTreeMap::<Route, Vec<Entry>>::new(), 0);
        for (job, inside) in numbered(folder)? {
            for entry in fs::read_dir(inside)? {
                let path = entry?.path();
                if path.extension().is_none_or(|end| end != END) {
                    continue;
                }
                let found = parse(job, &path).and_then(|(route, start, number)| {
                    let reaches = FoundKept::open(&path).ok()?.last();
                    let (path, found) = (path.clone(), true);
                    (reaches > 0).then_some((route, Entry { number, start, path, reaches, found }))
                });
                match found {
                    Some((route, entry)) => {
                        last = last.max(entry.number);
                        logs.entry(route).or_default().push(entry);
                    }
                    None => fs::remove_file(path)?,
                }
            }
        }
        logs.values_mut().for_each(|entries| entries.sort_by_key(|entry| entry.number));
        Ok(Shelf(Arc::new(Mutex::new(Shelved { folder: folder.into(), last, logs }))))
    }

    fn lock(&self) -> MutexGuard<'_, Shelved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new log, of a start's messages, with a ring of this capacity from this byte on.
    ///
    /// # Errors
    /// The disk has no room for it.
    pub fn create(
        &self,
        route: Route,
        start: u64,
        (capacity, at): (u64, u64),
    ) -> io::Result<(Ticket, Kept)> {
        let mut shelved = self.lock();
        shelved.last += 1;
        let number = shelved.last;
        let path = path_of(&shelved.folder, route, start, number);
        let folder = path.parent().unwrap_or(&shelved.folder).to_owned();
        fs::create_dir_all(&folder)?;
        let kept = Kept::create(&path, capacity, at)?;
        // Its name outlives a loss of power, too.
        File::open(&folder)?.sync_all()?;
        File::open(&shelved.folder)?.sync_all()?;
        let entry = Entry { number, start, path, reaches: 0, found: false };
        let entries = shelved.logs.entry(route).or_default();
        // One of this start that has nothing, or of an earlier one, never will.
        retain(entries, |it| it.reaches > 0 || it.start > start);
        entries.push(entry);
        Ok((Ticket(route, number), kept))
    }

    /// A log has messages up to this one on the disk: older ones that have no more are needless.
    pub fn reaches(&self, Ticket(route, number): Ticket, message: u64) {
        let mut shelved = self.lock();
        let Some(entries) = shelved.logs.get_mut(&route) else { return };
        let Some(entry) = entries.iter_mut().find(|entry| entry.number == number) else { return };
        entry.reaches = message;
        let start = entry.start;
        retain(entries, |it| (it.start, it.number) >= (start, number) || it.reaches > message);
    }

    /// The logs of a rank's earlier starts, for those who receive from it: of each route the one that
    /// reaches farthest, with its start and its last message.
    pub fn of(&self, (job, rank): RankId, before: u64) -> Vec<(Route, (u64, u64), Arc<File>)> {
        let first = Route { job, from: rank, to: 0 };
        let shelved = self.lock();
        let its = shelved.logs.range(first..=Route { to: u32::MAX, ..first });
        let farthest = |(route, entries): (&Route, &Vec<Entry>)| {
            let earlier = entries.iter().filter(|entry| entry.start < before && entry.reaches > 0);
            let best = earlier.max_by_key(|entry| (entry.reaches, entry.number))?;
            let file = File::open(&best.path).ok()?;
            if best.found {
                file.sync_data().ok()?;
                FoundKept::open(&best.path).ok()?.show();
            }
            Some((*route, (best.start, best.reaches), Arc::new(file)))
        };
        its.filter_map(farthest).collect()
    }

    /// Only these jobs go on.
    pub fn keep(&self, jobs: impl Fn(u64) -> bool) {
        self.retain(|route, _| jobs(route.job));
    }

    /// Logs of starts before this one of each sender count no more.
    pub fn drop_before(&self, since: impl Fn(RankId) -> u64) {
        self.retain(|route, start| start >= since((route.job, route.from)));
    }

    fn retain(&self, stays: impl Fn(&Route, u64) -> bool) {
        self.lock().logs.retain(|route, entries| {
            retain(entries, |entry| stays(route, entry.start));
            !entries.is_empty()
        });
    }
}

/// Only these stay.
fn retain(entries: &mut Vec<Entry>, stays: impl Fn(&Entry) -> bool) {
    entries.extract_if(.., |entry| !stays(entry)).for_each(|entry| entry.remove());
}

fn path_of(folder: &Path, Route { job, from, to }: Route, start: u64, number: u64) -> PathBuf {
    folder.join(format!("{job:016x}")).join(format!("{from:x}-{to:x}-{start:x}-{number:x}.{END}"))
}

fn parse(job: u64, path: &Path) -> Option<(Route, u64, u64)> {
    let stem = path.file_stem()?.to_str()?;
    let mut numbers = stem.split('-').map(|number| u64::from_str_radix(number, 16));
    let mut next = || numbers.next()?.ok();
    let (from, to, start, number) = (next()?, next()?, next()?, next()?);
    let rank = |rank| u32::try_from(rank).ok();
    Some((Route { job, from: rank(from)?, to: rank(to)? }, start, number))
}

#[cfg(test)]
mod tests {
    use memlog::{Head, Reader, Writer};

    use super::*;

    const ROUTE: Route = Route { job: 7, from: 0, to: 1 };

    /// Keeps so many messages of a start.
    fn keep(shelf: &Shelf, start: u64, messages: u64) -> (Ticket, Kept) {
        let mut log = Writer::new(1 << 12, None).unwrap();
        let mut head = Head { number: 0, tag: 0, length: 0, check: 0 };
        for number in 1..=messages {
            head = Head::after(head.check, number, (0, 0, 0));
            let end = log.push((number, 0, head.check), [&[], &[]]).unwrap();
            log.publish(end);
        }
        let (ticket, mut kept) = shelf.create(ROUTE, start, (1 << 12, 0)).unwrap();
        let (mut reader, mut piece) = (Reader::open(log.file()).unwrap(), Vec::new());
        while let Some((at, _)) = reader.copy_next(1 << 12, &mut piece).unwrap() {
            kept.push(at, &piece).unwrap();
        }
        let whole = kept.flush().unwrap();
        shelf.reaches(ticket, kept.show(whole));
        (ticket, kept)
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder.join("0000000000000007")).map_or(0, Iterator::count)
    }

    #[test]
    fn a_log_goes_when_a_later_one_has_all_that_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::open(folder.path()).unwrap();
        let of = |shelf: &Shelf, before| {
            let found = shelf.of((7, 0), before).into_iter();
            found.map(|(route, (start, _), _)| (route, start)).collect::<Vec<_>>()
        };
        let _first = keep(&shelf, 1, 5);
        assert_eq!((of(&shelf, 2), of(&shelf, 1)), (vec![(ROUTE, 1)], vec![]));
        let (second, _kept) = keep(&shelf, 2, 3);
        assert_eq!((of(&shelf, 3), files(folder.path())), (vec![(ROUTE, 1)], 2));
        shelf.reaches(second, 5);
        assert_eq!((of(&shelf, 3), files(folder.path())), (vec![(ROUTE, 2)], 1));
        let third = keep(&shelf, 3, 4);
        drop((third, shelf));
        // Another agent finds them; a file that is none goes.
        fs::write(folder.path().join("0000000000000007/0-2-1-9.kept"), "nothing").unwrap();
        let shelf = Shelf::open(folder.path()).unwrap();
        assert_eq!((of(&shelf, 4), files(folder.path())), (vec![(ROUTE, 3)], 2));
        shelf.drop_before(|_| 3);
        assert_eq!((of(&shelf, 4), files(folder.path())), (vec![(ROUTE, 3)], 1));
        shelf.keep(|job| job != 7);
        assert_eq!((of(&shelf, 4), files(folder.path())), (vec![], 0));
    }
}
