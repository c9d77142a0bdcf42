//! Random bytes from the system.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use wire::Secret;

/// Draws a secret that nobody else has.
///
/// # Errors
/// The system's own.
pub fn secret() -> io::Result<Secret> {
    let mut bytes = zeroize::Zeroizing::new([0; Secret::LENGTH]);
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(Secret::new(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_secrets_are_alike() {
        assert_ne!(secret().unwrap(), secret().unwrap());
    }
}
