//! Large buffers are freed by a thread of their own: else the ring's token waits.

use bytes::Bytes;
use os::memory::free_in_steps;
use os::threads;

/// Buffers of fewer bytes are freed where they are.
const HEAVY: usize = 8 << 20;

struct Heavy(Vec<u8>);

impl AsRef<[u8]> for Heavy {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Heavy {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // Without a thread the closure is dropped here, with the buffer.
        let _ = threads::spawn_behind("steadfast free", || free_in_steps(buffer));
    }
}

/// These bytes, whose last owner does not wait for the system to take them back.
pub(crate) fn bytes(buffer: Vec<u8>) -> Bytes {
    if buffer.len() < HEAVY { buffer.into() } else { Bytes::from_owner(Heavy(buffer)) }
}
