//! The form of this program's digests.

use std::fs::File;
use std::io::Read;
use std::sync::LazyLock;

use crate::service::FNV;

/// Bytes at the beginning of a program: with the sizes of all its parts, and often with the name of
/// its build.
const HEAD: u64 = 4096;

/// The program in which this process runs, as a word: other versions of it, which may write the same
/// state otherwise, have another. `None`: it cannot be told.
pub fn form() -> Option<u64> {
    static FORM: LazyLock<Option<u64>> = LazyLock::new(|| {
        let file = File::open("/proc/self/exe").ok()?;
        let length = file.metadata().ok()?.len();
        let mut head = length.to_le_bytes().to_vec();
        file.take(HEAD).read_to_end(&mut head).ok()?;
        let mixed = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(FNV.1);
        Some(head.iter().fold(FNV.0, mixed))
    });
    *FORM
}
