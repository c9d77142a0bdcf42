//! What a person sees while the demo runs, on standard error.

use std::io::{IsTerminal, Write};

use super::paint::Paint;

/// Standard error: one line that changes if it is a terminal, and notes that stay.
pub struct Progress {
    terminal: bool,
    paint: Paint,
    shown: bool,
}

impl Progress {
    /// Looks at what standard error is.
    pub fn new() -> Progress {
        let error = std::io::stderr();
        let terminal = error.is_terminal();
        Progress { terminal, paint: Paint::for_stream(terminal), shown: false }
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
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K{text}");
            let _ = std::io::stderr().flush();
            self.shown = true;
        }
    }

    /// Takes the line that changes away.
    pub fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
            let _ = std::io::stderr().flush();
            self.shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
