//! Many datagrams in one system call.
//!
//! The kernel takes a run of equal datagrams as one packet and cuts it as late as it can
//! (`UDP_SEGMENT`), and hands over as one what came as one (`UDP_GRO`): between processes of one
//! host, and through virtual links, 64 KiB then cost little more than one datagram. See udp(7) and
//! the kernel's `Documentation/networking/segmentation-offloads.rst`.

use std::io::{IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg, setsockopt,
    sockopt,
};

/// Datagrams that the kernel takes in one call: its `UDP_MAX_SEGMENTS`.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Bytes that it takes in one call: what fits into the length field of IP.
pub(crate) const MAX_RUN: usize = 65_507;

/// Bytes that one reading may bring.
pub(crate) const MAX_READ: usize = 1 << 16;

/// Room for what the kernel says beside the bytes: the size of the datagrams.
#[derive(Debug)]
pub(crate) struct Control(Vec<u8>);

impl Control {
    pub fn new() -> Control {
        Control(nix::cmsg_space!(i32))
    }
}

/// Whether the kernel knows how to take runs of datagrams.
pub(crate) fn takes_runs(socket: &UdpSocket) -> bool {
    getsockopt(socket, sockopt::UdpGsoSegment).is_ok()
}

/// Asks for what came as one to be handed over as one. False where the kernel cannot.
pub(crate) fn join_arrivals(socket: &UdpSocket) -> bool {
    setsockopt(socket, sockopt::UdpGroSegment, &true).is_ok()
}

/// Makes room for datagrams that wait to be read, beyond the system's limit where this process
/// may. Returns what the kernel grants, its own bookkeeping included.
pub(crate) fn make_room(socket: &UdpSocket, bytes: usize) -> usize {
    if setsockopt(socket, sockopt::RcvBufForce, &bytes).is_err() {
        let _ = setsockopt(socket, sockopt::RcvBuf, &bytes);
    }
    // Best effort: less room costs repeats under load, nothing else.
    let _ = setsockopt(socket, sockopt::SndBuf, &bytes);
    getsockopt(socket, sockopt::RcvBuf).unwrap_or(0)
}

/// Sends datagrams of `size` bytes each that lie one after the other; the last may be shorter.
/// All are taken or none.
pub(crate) fn send_run(socket: &UdpSocket, run: &[u8], size: usize) -> Result<(), Errno> {
    debug_assert!(run.len() <= MAX_RUN && run.len().div_ceil(size) <= MAX_SEGMENTS);
    let size = u16::try_from(size).expect("a datagram fits in a packet");
    let sizes = [ControlMessage::UdpGsoSegments(&size)];
    let fd = socket.as_raw_fd();
    sendmsg::<()>(fd, &[IoSlice::new(run)], &sizes, MsgFlags::empty(), None).map(|_| ())
}

/// The result of one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Bytes in all.
    pub length: usize,
    /// Bytes of each datagram but the last, which may be shorter.
    pub size: usize,
    /// The kernel had more than there was room for.
    pub cut: bool,
}

/// Reads one datagram, or a run of them.
pub(crate) fn receive_run(
    socket: &UdpSocket,
    buffer: &mut [u8],
    control: &mut Control,
) -> Result<Arrival, Errno> {
    let fd = socket.as_raw_fd();
    let mut room = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(fd, &mut room, Some(&mut control.0), MsgFlags::empty())?;
    let told = message.cmsgs()?.find_map(|told| match told {
        ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
        _ => None,
    });
    let length = message.bytes;
    let size = told.filter(|size| *size > 0).unwrap_or(length);
    Ok(Arrival { length, size, cut: message.flags.contains(MsgFlags::MSG_TRUNC) })
}
