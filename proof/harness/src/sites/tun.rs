//! A network interface whose packets this process takes and gives.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsFd;

use rustix::ioctl::{Opcode, Updater, ioctl};

use crate::Outcome;

/// `TUNSETIFF` of linux/if_tun.h: `_IOW('T', 202, int)`.
const SET_INTERFACE: Opcode = 0x4004_54ca;

/// Packets of IP, with nothing before them.
const PLAIN: i16 = 0x0001 | 0x1000;

/// `struct ifreq`: a name, and here the flags of the interface.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

/// Makes the interface in the namespace of the calling thread. It is gone with the file.
pub fn open(name: &str) -> Outcome<File> {
    let mut request = Request { name: [0; 16], flags: PLAIN, rest: [0; 22] };
    // The last byte stays 0: the kernel reads a string.
    request.name[..15].iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: the opcode takes a pointer to a `struct ifreq` of 40 bytes, which the kernel reads and
    // writes, and does not keep.
    let updater = unsafe { Updater::<SET_INTERFACE, Request>::new(&mut request) };
    // SAFETY: as above; the file is a tun device that has no interface yet.
    unsafe { ioctl(file.as_fd(), updater) }?;
    rustix::io::ioctl_fionbio(file.as_fd(), true)?;
    Ok(file)
}
