//! Which pages have changed.

use std::io;

use image::PAGE;

use crate::arena::Arena;
use crate::mapping::Mapping;
use crate::stretch::Stretch;

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
#[derive(Debug)]
pub struct Tracker {
    way: Way,
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
            Ok(written) => Tracker { way: Way::Written(written), instead: None },
            Err(error) => Tracker {
                instead: Some(format!(
                    "the kernel does not tell which pages are written ({error}): it takes Linux 6.7, \
                     and a process that may read its own page map"
                )),
                ..Tracker::of(Kind::Compared, arena).expect("comparing needs no permission")
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
        Ok(Tracker { way, instead: None })
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

    /// The stretches of the arena that have changed since the last time, in order, by whole pages.
    ///
    /// # Errors
    /// The system does not tell. What has changed is unknown, so all of it is to be saved.
    pub fn changed(&mut self, arena: &Arena) -> io::Result<Vec<Stretch>> {
        match &mut self.way {
            Way::Written(written) => written.changed(arena.memory()),
            Way::Compared(compared) => Ok(compared.changed(arena.memory())),
        }
    }
}

/// Tries whether the kernel tells the truth: the one page that is written, and no other.
fn proved() -> io::Result<()> {
    const PAGES: usize = 4;
    let mut mapping = Mapping::new(PAGES * PAGE as usize)?;
    mapping.bytes_mut().fill(1);
    let mut written = Written::new(&mapping)?;
    mapping.bytes_mut()[2 * PAGE as usize] = 2;
    let seen = [written.changed(&mapping)?, written.changed(&mapping)?];
    match seen == [vec![Stretch { from: 2 * PAGE, to: 3 * PAGE }], vec![]] {
        true => Ok(()),
        false => Err(io::Error::other(format!("it tells {seen:?} of one written page"))),
    }
}
