//! A program's output, line by line and within bounds, for the node's log.

use std::collections::VecDeque;

use wire::limits::{MAX_LAST_LINES, MAX_LINE, MAX_LINES_A_SECOND};
use wire::{Duration, Time};

/// Cuts what one pipe brings into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    part: Vec<u8>,
}

impl Lines {
    /// Takes what has come, and gives each line that it ends. Overlong lines come in several.
    pub fn push(&mut self, mut bytes: &[u8], mut give: impl FnMut(String)) {
        while !bytes.is_empty() {
            let room = MAX_LINE - self.part.len();
            let looked_at = &bytes[..bytes.len().min(room)];
            let end = looked_at.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(looked_at.len());
            self.part.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken + usize::from(end.is_some())..];
            if end.is_some() || self.part.len() == MAX_LINE {
                give(printable(&self.part));
                self.part.clear();
            }
        }
    }

    /// Returns the text after the last line's end.
    pub fn finish(&mut self) -> Option<String> {
        let part = std::mem::take(&mut self.part);
        (!part.is_empty()).then(|| printable(&part))
    }
}

/// A line as it may stand in a log: nothing in it can move the cursor or begin another line.
fn printable(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    if !text.contains(|c: char| c.is_control() && c != '\t') {
        return text.into_owned();
    }
    let shown = |c: char| match c {
        '\t' => "\t".to_owned(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// How much of one program's output is told, and its last lines.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Lines that may be told until `until`.
    left: u32,
    until: Time,
    /// Lines that were not told, since the beginning and since it was said.
    dropped: u64,
    unsaid: u64,
    last: VecDeque<String>,
}

const SECOND: Duration = Duration::from_secs(1);

impl Flow {
    pub fn new() -> Flow {
        Flow { left: 0, until: Time::ZERO, dropped: 0, unsaid: 0, last: VecDeque::new() }
    }

    /// Takes a line; true if it is to be told.
    pub fn take(&mut self, now: Time, line: &str) -> bool {
        if self.last.len() == MAX_LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
        if now >= self.until {
            (self.left, self.until) = (MAX_LINES_A_SECOND, now + SECOND);
        }
        if self.left == 0 {
            self.dropped += 1;
            self.unsaid += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// Whether what comes now would be dropped.
    pub fn is_full(&self, now: Time) -> bool {
        self.left == 0 && now < self.until
    }

    /// How many lines were dropped, if that is to be said now.
    pub fn say(&mut self, now: Time) -> Option<u64> {
        if self.unsaid == 0 || now < self.until {
            return None;
        }
        Some(std::mem::take(&mut self.unsaid))
    }

    /// When [`say`](Flow::say) has something.
    pub fn next_timeout(&self) -> Time {
        if self.unsaid > 0 { self.until } else { Time::FAR }
    }

    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn last(&self) -> impl Iterator<Item = &str> {
        self.last.iter().map(String::as_str)
    }

    /// A new process writes: what the last one said explains nothing of it.
    pub fn begin(&mut self) {
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut given) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |line| given.push(line));
        }
        given.extend(lines.finish());
        given
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        let whole = cut(&[b"one\ntwo\r\n\nthree"]);
        assert_eq!(whole, ["one", "two", "", "three"]);
        let bytes: Vec<&[u8]> = b"one\ntwo\r\n\nthree".chunks(1).collect();
        assert_eq!(cut(&bytes), whole);
    }

    #[test]
    fn a_line_without_an_end_is_cut_and_takes_no_more_room() {
        let long = vec![b'x'; 3 * MAX_LINE + 1];
        let lines = cut(&[&long, b"\n"]);
        assert_eq!(
            lines.iter().map(String::len).collect::<Vec<_>>(),
            [MAX_LINE, MAX_LINE, MAX_LINE, 1]
        );
    }

    #[test]
    fn nothing_in_a_line_can_pose_as_another_or_move_the_cursor() {
        assert_eq!(cut(&[b"a\x1b[2Jb\rc\n"]), ["a\\u{1b}[2Jb\\rc"]);
        assert_eq!(cut(&[b"\xff\xfe\n"]), ["\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn a_flood_is_dropped_counted_and_told_of_and_the_last_lines_are_kept() {
        let mut flow = Flow::new();
        let now = Time(5);
        let told = (0..2_000).filter(|n| flow.take(now, &n.to_string())).count();
        assert_eq!(told, MAX_LINES_A_SECOND as usize);
        assert_eq!(flow.dropped(), 2_000 - u64::from(MAX_LINES_A_SECOND));
        assert!(flow.is_full(now) && flow.say(now).is_none());
        let later = flow.next_timeout();
        assert_eq!(later, now + SECOND);
        assert_eq!(flow.say(later), Some(1_500));
        assert!(!flow.is_full(later) && flow.take(later, "again"));
        assert_eq!(flow.last().count(), MAX_LAST_LINES);
        assert_eq!(flow.last().last(), Some("again"));
    }
}
