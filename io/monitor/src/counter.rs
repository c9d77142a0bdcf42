//! A small file of the kernel that is read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::MonitorError;

/// The most that is read: the wanted part stands at the beginning.
const MOST: usize = 4096;

/// So much of a file that is not understood is told.
const TOLD: usize = 80;

/// The file, open.
#[derive(Debug)]
pub(crate) struct Counter {
    path: PathBuf,
    file: File,
}

impl Counter {
    pub fn open(path: PathBuf) -> Result<Counter, MonitorError> {
        match File::open(&path) {
            Ok(file) => Ok(Counter { path, file }),
            Err(source) => Err(MonitorError::Unreadable { path, source }),
        }
    }

    /// Returns the present value, parsed by `read`.
    pub fn read<T>(&self, read: impl Fn(&str) -> Option<T>) -> Result<T, MonitorError> {
        let mut bytes = [0; MOST];
        let length = self.file.read_at(&mut bytes, 0).map_err(|source| self.unreadable(source))?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        read(&text).ok_or_else(|| MonitorError::Strange {
            path: self.path.clone(),
            text: text.chars().take(TOLD).collect(),
        })
    }

    fn unreadable(&self, source: io::Error) -> MonitorError {
        MonitorError::Unreadable { path: self.path.clone(), source }
    }
}

/// The first number of a text.
pub(crate) fn first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}
