//! Golden traces: the events, a line each, beside the text that a test expects.

use std::fmt::Write as _;

use expect_test::Expect;
use wire::Time;

/// The events since a moment.
#[derive(Debug)]
pub struct Trace {
    since: Time,
    text: String,
}

impl Trace {
    /// A trace whose clock starts now.
    pub fn new(now: Time) -> Trace {
        Trace { since: now, text: String::new() }
    }

    /// Something happens.
    pub fn note(&mut self, now: Time, line: &str) {
        // Left-aligned: a golden trace is compared without its indentation.
        let micros = now.since(self.since).as_micros();
        let _ = writeln!(self.text, "{micros:<4} us  {line}");
    }

    /// All lines.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// It must read so.
    pub fn check(&self, expected: Expect) {
        expected.assert_eq(&self.text);
    }

    /// Its lines with one of these words must read so.
    pub fn check_only(&self, words: &[&str], expected: Expect) {
        let wanted = |line: &&str| words.iter().any(|word| line.contains(word));
        expected.assert_eq(&self.text.split_inclusive('\n').filter(wanted).collect::<String>());
    }

    /// Its lines from the first with this word on must read so.
    pub fn check_from(&self, word: &str, expected: Expect) {
        let before = |line: &&str| !line.contains(word);
        expected.assert_eq(&self.text.split_inclusive('\n').skip_while(before).collect::<String>());
    }
}
