//! A socket in the file system, for one process at a time.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// Why a path cannot be listened at.
#[derive(Debug)]
pub enum Unheard {
    /// A file of another kind has the name.
    NotASocket,
    /// Another process serves it.
    Served,
    /// The system refuses it.
    Io(io::Error),
}

/// Listens at this path. A socket file that a killed process has left is replaced. The file has
/// this mode from the first moment on: Linux makes it with the socket's own.
///
/// # Errors
/// Another process serves it, the name is taken, or the system refuses it.
pub fn listen_at(path: &Path, mode: u32) -> Result<UnixListener, Unheard> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(Unheard::NotASocket),
        // One that lives answers there.
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(Unheard::Served),
        Ok(_) => fs::remove_file(path).map_err(Unheard::Io)?,
        // Binding says what is wrong, if it is not just that nothing is there.
        Err(_) => {}
    }
    let listener = || {
        let address = SocketAddrUnix::new(path)?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        fchmod(&socket, Mode::from_raw_mode(mode))?;
        bind(&socket, &address)?;
        listen(&socket, BACKLOG)?;
        Ok(UnixListener::from(socket))
    };
    listener().map_err(|error: rustix::io::Errno| Unheard::Io(error.into()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_left_over_socket_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.sock");
        let first = listen_at(&path, 0o640).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(matches!(listen_at(&path, 0o600), Err(Unheard::Served)));
        drop(first);
        let _second = listen_at(&path, 0o600).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert!(matches!(listen_at(&file, 0o600), Err(Unheard::NotASocket)));
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        let nowhere = folder.path().join("no folder").join("it.sock");
        assert!(matches!(listen_at(&nowhere, 0o600), Err(Unheard::Io(_))));
    }
}
