//! A service that notices lost and repeated executions at once, with a state of any size.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Each writer numbers its entries from 1 on, and the ledger takes the next one only.
#[steadfast::service]
pub trait Ledger {
    /// Takes an entry.
    fn enter(&mut self, writer: u32, number: u64) -> Result<(), String>;
}

/// The state.
#[derive(Serialize, Deserialize)]
pub struct Pages {
    last: BTreeMap<u32, u64>,
    /// Bytes that make the state large.
    ballast: String,
}

impl Pages {
    /// An empty ledger, of so many bytes.
    pub fn new(bytes: usize) -> Pages {
        Pages { last: BTreeMap::new(), ballast: "b".repeat(bytes) }
    }
}

impl Ledger for Pages {
    fn enter(&mut self, writer: u32, number: u64) -> Result<(), String> {
        let last = self.last.entry(writer).or_default();
        if number != *last + 1 {
            return Err(format!("entry {number} of writer {writer} comes after {last}"));
        }
        *last = number;
        Ok(())
    }
}
