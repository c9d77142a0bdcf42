//! The progress that a person sees on standard error while the demo runs.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::paint::Paint;

/// Nobody reads faster.
const REDRAW: Duration = Duration::from_millis(100);

/// Standard error: one line that changes if it is a terminal, and notes that stay.
pub struct Progress {
    terminal: bool,
    paint: Paint,
    shown: Option<Instant>,
}

impl Progress {
    /// Looks at what standard error is.
    pub fn new() -> Progress {
        let error = std::io::stderr();
        let terminal = error.is_terminal();
        Progress { terminal, paint: Paint::for_stream(terminal), shown: None }
    }

    /// Colours for standard error.
    pub fn paint(&self) -> Paint {
        self.paint
    }

    /// A line that stays. A failing standard error stops nothing.
    pub fn note(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// The line that changes.
    pub fn show(&mut self, text: &str) {
        let stale = self.shown.is_none_or(|moment| moment.elapsed() >= REDRAW);
        if self.terminal && stale {
            let _ = write!(std::io::stderr(), "\r\x1b[2K{text}");
            let _ = std::io::stderr().flush();
            self.shown = Some(Instant::now());
        }
    }

    /// Takes the line that changes away.
    pub fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
