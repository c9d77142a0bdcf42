//! The standard output of a program, which happens once.
//!
//! Each image has what was printed until then. A start that goes on from it has its file made so, and
//! prints nothing until it is where the image was taken: all that comes before was printed. The file
//! is the agent's, which the environment names; what goes elsewhere is left alone.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write, stdout};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{OFlags, fcntl_getfl};
use wire::rank::{Array, OUTPUT_VARIABLE, PAGE};

use crate::staging::{Bytes, Extra};
use crate::stretch::in_ring;

/// The array with the last bytes that were printed: byte `n` of the output is at `n` modulo the
/// array's length.
pub(crate) const RING: &str = "steadfast.output";

/// The array that says how many bytes were printed, and where the image was taken.
pub(crate) const PRINTED: &str = "steadfast.printed";

/// The most bytes of it in an image.
const MOST: u64 = 32 << 20;

/// A place at which an image is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The begin of a turn, with so many loops open.
    Turn(usize),
    /// A safe point of the program's own, with so many loops open.
    Own(usize),
    /// The end.
    End,
}

impl Point {
    /// A start that goes on from an image of this place has come there, by what it does now.
    fn is_reached(self, now: Point) -> bool {
        match (self, now) {
            (Point::Turn(loops), Point::Turn(open)) => open >= loops,
            // Its turn begins again before it; a loop within, or another turn, comes behind it.
            (Point::Own(loops), Point::Turn(open)) => open > loops,
            (Point::Turn(loops) | Point::Own(loops), Point::Own(open)) => open >= loops,
            (Point::End, now) => now == Point::End,
            (_, Point::End) => true,
        }
    }
}

/// How far the output was when an image was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    length: u64,
    at: Point,
}

impl Printed {
    fn encode(self) -> Vec<u8> {
        let (name, loops) = match self.at {
            Point::Turn(loops) => ("turn", loops),
            Point::Own(loops) => ("point", loops),
            Point::End => ("end", 0),
        };
        format!("{} {name} {loops}\n", self.length).into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Printed> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut words = text.split_ascii_whitespace();
        let length = words.next()?.parse().ok()?;
        let (name, loops) = (words.next()?, words.next()?.parse().ok()?);
        let at = match name {
            "turn" => Point::Turn(loops),
            "point" => Point::Own(loops),
            "end" => Point::End,
            _ => return None,
        };
        Some(Printed { length, at })
    }
}

/// The standard output of a rank.
#[derive(Debug)]
pub(crate) struct Output {
    /// The agent's file, also while the standard output goes nowhere. `None`: it is another one.
    file: Option<File>,
    /// The last safe point.
    last: Point,
    /// The standard output goes nowhere until this place.
    until: Option<Point>,
    /// Capacity and bytes of the ring as it was saved last, and as it is being saved.
    saved: Option<(u64, u64)>,
    saving: Option<(u64, u64)>,
}

impl Output {
    /// The output of a start; takes what an image has of it out of the notes. `restored`: there is
    /// an image.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(
        restored: bool,
        notes: &mut BTreeMap<String, (String, Vec<u8>)>,
    ) -> io::Result<Output> {
        stdout().flush()?;
        let ring = notes.remove(RING).map(|(_, ring)| ring);
        let printed = notes.remove(PRINTED).and_then(|(_, bytes)| Printed::decode(&bytes));
        let mut output = Output::of(own_file()?);
        if let Some(file) = output.file.as_ref().filter(|_| restored) {
            match printed.zip(ring) {
                Some((printed, ring)) => {
                    rewrite(file, &ring, printed.length)?;
                    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
                    output.until = Some(printed.at);
                    output.saved = Some((ring.len() as u64, printed.length));
                }
                None => file.set_len(0)?,
            }
        }
        Ok(output)
    }

    fn of(file: Option<File>) -> Output {
        Output { file, last: Point::Own(0), until: None, saved: None, saving: None }
    }

    /// The present output was printed before.
    pub fn repeats(&self) -> bool {
        self.until.is_some()
    }

    /// The program is at this place. `new`: it was never there before, so it may print.
    pub fn reach(&mut self, now: Point, new: bool) -> io::Result<()> {
        self.last = now;
        if let (Some(until), Some(file)) = (self.until, &self.file)
            && (new || until.is_reached(now))
        {
            stdout().flush()?;
            rustix::stdio::dup2_stdout(file)?;
            self.until = None;
        }
        Ok(())
    }

    /// Has what was printed go to the file, and says how far it is. `None`: nothing was printed, or
    /// it is not kept.
    pub fn measure(&self) -> io::Result<Option<Printed>> {
        let Some(file) = &self.file else { return Ok(None) };
        stdout().flush()?;
        let length = file.metadata()?.len();
        // An image that is taken on the way is one of the same place.
        let at = self.until.unwrap_or(self.last);
        Ok((length > 0).then_some(Printed { length, at }))
    }

    /// The output, for an image, with what has changed since the last one that was saved.
    pub fn save(&mut self, printed: Printed) -> Option<Saving<'_>> {
        let length = printed.length;
        let capacity = length.next_power_of_two().clamp(PAGE, MOST);
        let changed = match self.saved {
            Some((its, before)) if its == capacity && before <= length => {
                in_ring(capacity, before, length)
            }
            _ => vec![(0, capacity)],
        };
        self.saving = Some((capacity, length));
        let ring = Array { name: RING.into(), form: "output".into(), length: capacity };
        let file = self.file.as_ref()?;
        Some(Saving { printed: printed.encode(), file, length, ring, changed })
    }

    /// The output that was saved last is part of the newest image, or there is none.
    pub fn saved(&mut self, done: bool) {
        let saving = self.saving.take();
        if done {
            self.saved = saving;
        }
    }
}

/// The output in an image.
pub(crate) struct Saving<'a> {
    printed: Vec<u8>,
    file: &'a File,
    length: u64,
    ring: Array,
    changed: Vec<(u64, u64)>,
}

impl Saving<'_> {
    /// The arrays beside the arena.
    pub fn arrays(&self) -> [Extra<'_>; 2] {
        let length = self.printed.len() as u64;
        let array = Array { name: PRINTED.into(), form: String::new(), length };
        let printed = Extra { array, bytes: Bytes::Slice(&self.printed), changed: None };
        let (array, changed) = (self.ring.clone(), Some(self.changed.clone()));
        let bytes = Bytes::Printed(self.file, self.length, self.ring.length);
        [printed, Extra { array, bytes, changed }]
    }
}

/// The standard output, if it is the file that the agent has for it.
fn own_file() -> io::Result<Option<File>> {
    let Ok(named) = env::var(OUTPUT_VARIABLE) else { return Ok(None) };
    let Ok(file) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3) else {
        return Ok(None);
    };
    let file = File::from(file);
    let data = file.metadata()?;
    let both = fcntl_getfl(&file)?.contains(OFlags::RDWR);
    let own = data.is_file() && both && named == format!("{}:{}", data.dev(), data.ino());
    Ok(own.then_some(file))
}

/// Makes a file what it was when it had so many bytes, of which the ring has the last ones.
fn rewrite(mut file: &File, ring: &[u8], length: u64) -> io::Result<()> {
    let capacity = ring.len() as u64;
    let from = length.saturating_sub(capacity);
    file.set_len(0)?;
    // The oldest were forgotten: they are a hole.
    file.set_len(from)?;
    file.seek(SeekFrom::End(0))?;
    let (begin, end) = ((from % capacity) as usize, (length - from) as usize);
    let until = ring.len().min(begin + end);
    file.write_all(&ring[begin..until])?;
    file.write_all(&ring[..begin + end - until])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_ring::copy_ring;

    #[test]
    fn a_place_is_reached_where_it_was_saved_and_not_before() {
        use Point::{End, Own, Turn};
        for (saved, not_yet, reached) in [
            (Turn(2), vec![Turn(1), Own(0), Own(1)], vec![Turn(2), End]),
            // Its turn begins again. The loops before the point are over, so they have no turns.
            (Own(1), vec![Turn(1), Own(0)], vec![Own(1), Turn(2), End]),
            (Own(0), vec![], vec![Own(0), Turn(1), End]),
            (End, vec![Turn(1), Own(0), Own(1)], vec![End]),
        ] {
            let is_reached = |now: &Point| saved.is_reached(*now);
            assert!(!not_yet.iter().any(is_reached), "{saved:?}");
            assert!(reached.iter().all(is_reached), "{saved:?}");
            let printed = Printed { length: 70_000, at: saved };
            assert_eq!(Printed::decode(&printed.encode()), Some(printed));
        }
        assert_eq!(Printed::decode(b"7 somewhere 0"), None);
    }

    #[test]
    fn what_changed_in_the_ring_makes_the_same_file_elsewhere() {
        let (mut here, mut there) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut output = Output::of(Some(here.try_clone().unwrap()));
        assert_eq!(output.measure().unwrap(), None, "nothing was printed");
        let (mut ring, mut copied) = (Vec::new(), 0);
        for round in 1..200_u64 {
            here.write_all(&vec![round as u8; 113 * round as usize % 9_000]).unwrap();
            let printed = output.measure().unwrap().unwrap();
            let saving = output.save(printed).unwrap();
            ring.resize(saving.ring.length as usize, 0);
            for (from, to) in &saving.changed {
                let bytes = &mut ring[*from as usize..*to as usize];
                copy_ring(&here, (saving.length, saving.ring.length), *from, bytes);
                copied += bytes.len() as u64;
            }
            // One that was not saved is part of the next one.
            if round % 3 == 0 {
                output.saved(true);
            }
            rewrite(&there, &ring, printed.length).unwrap();
            assert!(content(&here) == content(&there), "in round {round}");
        }
        assert!(copied < 12 * content(&there).len() as u64, "{copied}: as a whole each time");
        there.write_all(b"more").unwrap();
        rewrite(&there, &ring, here.metadata().unwrap().len()).unwrap();
        assert!(content(&here) == content(&there), "the end is cut off");
    }

    #[test]
    fn a_ring_has_the_last_bytes_of_a_longer_file() {
        let (mut here, there) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut ring = vec![0; 2 * PAGE as usize];
        for length in (0..40_000_u64).step_by(1_000) {
            let place = (length, ring.len() as u64);
            let (first, second) = ring.split_at_mut(1_234);
            copy_ring(&here, place, 0, first);
            copy_ring(&here, place, 1_234, second);
            rewrite(&there, &ring, length).unwrap();
            let (all, last) = (content(&here), content(&there));
            let forgotten = all.len().saturating_sub(ring.len());
            assert_eq!((all.len(), &all[forgotten..]), (last.len(), &last[forgotten..]));
            here.write_all(&(0..1_000).map(|it| (it / 7) as u8 ^ length as u8).collect::<Vec<_>>())
                .unwrap();
        }
    }

    fn content(mut file: &File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        io::Read::read_to_end(&mut file, &mut bytes).unwrap();
        bytes
    }
}
