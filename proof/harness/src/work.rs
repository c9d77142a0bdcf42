//! Work for a handler.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Takes so much of the calling thread's processor time.
pub fn compute(work: Duration) {
    let used = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    };
    let end = used() + work;
    while used() < end {
        for _ in 0..1_000 {
            std::hint::spin_loop();
        }
    }
}
