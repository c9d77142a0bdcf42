//! Which pages have changed.

use std::io;

use wire::rank::PAGE;

use crate::arena::Arena;
use crate::mapping::Mapping;
use crate::stretch::{Stretch, union};

mod compared;
mod written;

use compared::Compared;
use written::Written;

/// How changes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel marks pages as they are written (PAGEMAP_SCAN with asynchronous write protection,
    /// Linux 6.7): some microsecond for the first write to a page.
    Written,
    /// Pages are compared with a copy: it costs as much memory again, and 50 ms a GiB.
    Compared,
}

/// Finds what has changed in an arena.
///
/// All that it has told is owed until it is [saved](Tracker::saved): a checkpoint that fails loses
/// nothing. At first it owes all.
#[derive(Debug)]
pub struct Tracker {
    way: Way,
    /// Where the memory is that it looks at, and how many bytes of it.
    memory: u64,
    seen: u64,
    /// The process whose memory that is.
    process: u32,
    owed: Vec<Stretch>,
    /// Why no better one is in force.
    instead: Option<String>,
}

#[derive(Debug)]
enum Way {
    Written(Written),
    Compared(Compared),
}

impl Tracker {
    /// The best that works here. From here on all changes are seen.
    pub fn new(arena: &Arena) -> Tracker {
        match proved().and_then(|()| Written::new(arena.memory())) {
            Ok(written) => Tracker::by(Way::Written(written), arena),
            Err(error) => Tracker {
                instead: Some(format!(
                    "the kernel does not tell which pages are written ({error}): it takes Linux 6.7, a \
                     process that may read its own page map, and one tracker for an arena"
                )),
                ..Tracker::by(Way::Compared(Compared::new(arena.memory())), arena)
            },
        }
    }

    /// One of this kind.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn of(kind: Kind, arena: &Arena) -> io::Result<Tracker> {
        let way = match kind {
            Kind::Written => Way::Written(Written::new(arena.memory())?),
            Kind::Compared => Way::Compared(Compared::new(arena.memory())),
        };
        Ok(Tracker::by(way, arena))
    }

    fn by(way: Way, arena: &Arena) -> Tracker {
        let (memory, seen) = (arena.memory().address(), end(arena));
        let (owed, process) = (all(0, seen), std::process::id());
        Tracker { way, memory, seen, process, owed, instead: None }
    }

    /// The kind that is in force.
    pub fn kind(&self) -> Kind {
        match self.way {
            Way::Written(_) => Kind::Written,
            Way::Compared(_) => Kind::Compared,
        }
    }

    /// Why no better one is in force, and what it would take.
    pub fn instead(&self) -> Option<&str> {
        self.instead.as_deref()
    }

    /// The stretches of the arena that have changed since they were last saved, in order, by whole
    /// pages.
    ///
    /// # Errors
    /// The system does not tell, and then all is owed; or the arena is another one, or another
    /// process's.
    pub fn changed(&mut self, arena: &Arena) -> io::Result<Vec<Stretch>> {
        if self.memory != arena.memory().address() || self.process != std::process::id() {
            let why = "a tracker sees the arena for which it was made, in the process that made it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let (known, now) = (self.seen, end(arena));
        let changed = match &mut self.way {
            Way::Written(written) => written.changed(arena.memory(), known),
            Way::Compared(compared) => Ok(compared.changed(arena.memory(), known)),
        };
        let changed = changed.and_then(|changed| {
            // New memory is owed as a whole.
            if known < now
                && let Way::Written(written) = &mut self.way
            {
                written.protect(arena.memory(), known, now)?;
            }
            Ok(union(&changed, &all(known, now)))
        });
        self.seen = now;
        self.owed = match &changed {
            Ok(changed) => union(&self.owed, changed),
            Err(_) => all(0, now),
        };
        changed.map(|_| self.owed.clone())
    }

    /// All that was told is in an image that was committed, or was restored from one.
    pub fn saved(&mut self) {
        self.owed.clear();
    }
}

fn end(arena: &Arena) -> u64 {
    arena.memory().bytes().len() as u64
}

fn all(from: u64, to: u64) -> Vec<Stretch> {
    if from < to { vec![Stretch::new(from, to)] } else { Vec::new() }
}

/// Tries whether the kernel tells the truth: the one page that is written, and no other.
fn proved() -> io::Result<()> {
    const PAGES: usize = 4;
    let mut mapping = Mapping::new(PAGES * PAGE as usize)?;
    mapping.bytes_mut().fill(1);
    let mut written = Written::new(&mapping)?;
    mapping.bytes_mut()[2 * PAGE as usize] = 2;
    let end = PAGES as u64 * PAGE;
    let seen = [written.changed(&mapping, end)?, written.changed(&mapping, end)?];
    match seen == [vec![Stretch::new(2 * PAGE, 3 * PAGE)], vec![]] {
        true => Ok(()),
        false => Err(io::Error::other(format!("it tells {seen:?} of one written page"))),
    }
}
