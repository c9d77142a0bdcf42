//! A process with memory, for CRIU.

use std::io::stdin;

use harness::Outcome;
use harness::jobs::change_spread;
use serde::{Deserialize, Serialize};

/// The orders of a process with memory, which no agent knows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Arena {
    /// Its memory.
    pub bytes: u64,
    /// Percent of its pages that it changes at a time.
    pub dirty: u64,
}

impl Arena {
    /// Its life: it changes its pages when it is told to, and says so.
    pub fn live(self) -> Outcome<()> {
        let mut bytes = vec![1_u8; usize::try_from(self.bytes)?];
        println!("ready");
        for line in stdin().lines() {
            change_spread(&mut bytes, self.dirty, line?.len() as u8 | 1);
            println!("changed");
        }
        Ok(())
    }
}
