//! Tells systemd how the daemon fares (`sd_notify`), if it wants to know.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// How long a message may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Sends `message` (such as `READY=1`) to the socket that systemd names in the environment of a
/// unit of `Type=notify`. Does nothing anywhere else.
///
/// # Errors
/// The socket is named but cannot be reached: systemd would wait in vain.
pub fn systemd(message: &str) -> io::Result<()> {
    match env::var_os("NOTIFY_SOCKET") {
        Some(name) if !name.is_empty() => send(&name, message),
        _ => Ok(()),
    }
}

fn send(name: &OsStr, message: &str) -> io::Result<()> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // The listener may be stuck; the node must not be stuck with it.
    socket.set_write_timeout(Some(TIMEOUT))?;
    loop {
        match socket.send_to_addr(message.as_bytes(), &address) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => return sent.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names_are_reached() {
        let directory = tempfile::tempdir().expect("a directory for the socket");
        let path = directory.path().join("notify");
        let abstract_name = format!("@steadfast-test-{}", std::process::id());
        for (name, address) in [
            (path.as_os_str(), SocketAddr::from_pathname(&path)),
            (OsStr::new(&abstract_name), SocketAddr::from_abstract_name(&abstract_name[1..])),
        ] {
            let address = address.expect("a valid name");
            let socket = UnixDatagram::bind_addr(&address).expect("a free name");
            send(name, "READY=1").expect("the socket is there");
            let mut buffer = [0; 16];
            let length = socket.recv(&mut buffer).expect("it was sent");
            assert_eq!(&buffer[..length], b"READY=1");
        }
    }
}
