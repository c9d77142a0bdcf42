//! Looking again and again, until something is so or there is no timeout left.

use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Looks every `pause` until `look` finds something; reports the missing thing after `timeout`.
pub fn until<T>(
    timeout: Duration,
    pause: Duration,
    mut look: impl FnMut() -> Outcome<Result<T, String>>,
) -> Outcome<T> {
    let deadline = Instant::now() + timeout;
    loop {
        match look()? {
            Ok(found) => return Ok(found),
            Err(missing) if Instant::now() > deadline => return Err(missing.into()),
            Err(_) => thread::sleep(pause),
        }
    }
}

/// As [`until`], where nothing is found but that it is so.
pub fn until_so(
    timeout: Duration,
    pause: Duration,
    missing: &str,
    mut is_so: impl FnMut() -> Outcome<bool>,
) -> Outcome<()> {
    until(timeout, pause, || Ok(if is_so()? { Ok(()) } else { Err(missing.to_owned()) }))
}
