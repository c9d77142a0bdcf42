//! The neighbours: programs that take all of one resource.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use harness::Outcome;

/// Bytes that are written at a time.
const BLOCK: usize = 1 << 20;
/// Bytes of the file that is written, and of the one that is read.
const WRITTEN: u64 = 256 << 20;
const READ: u64 = 4 << 30;
/// Bytes of a datagram.
const DATAGRAM: usize = 1_400;

/// The orders of a neighbour's process.
#[derive(Serialize, Deserialize)]
pub enum Orders {
    /// Write blocks to this file, past the cache.
    Write(PathBuf),
    /// Read this file through the cache. It is all holes: the disk has nothing to do.
    Read(PathBuf),
    /// Send datagrams to these addresses in turn.
    Send { to: Vec<SocketAddr> },
}

/// The life of such a process.
pub fn live(orders: &Orders) -> Outcome<()> {
    match orders {
        Orders::Write(file) => write(file),
        Orders::Read(file) => read(file),
        Orders::Send { to } => send(to),
    }
}

fn write(file: &Path) -> Outcome<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(file)?;
    // Writes past the cache begin at a page.
    let buffer = vec![7; BLOCK + 4_096];
    let page = buffer.as_ptr().align_offset(4_096);
    let block = &buffer[page..page + BLOCK];
    loop {
        file.write_all(block)?;
        if file.stream_position()? >= WRITTEN {
            file.seek(SeekFrom::Start(0))?;
        }
    }
}

fn read(file: &Path) -> Outcome<()> {
    File::create(file)?.set_len(READ)?;
    let (mut file, mut block) = (File::open(file)?, vec![0; BLOCK]);
    loop {
        if file.read(&mut block)? == 0 {
            file.rewind()?;
        }
    }
}

fn send(to: &[SocketAddr]) -> Outcome<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let datagram = [7; DATAGRAM];
    loop {
        for to in to {
            // A refusal of an earlier one is told here.
            let _ = socket.send_to(&datagram, to);
        }
    }
}

/// Bytes that a process has read and written so far: the neighbour's files.
pub fn moved(process: u32) -> Outcome<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/io"))?;
    let bytes = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        Outcome::Ok(line.ok_or("its io has no such count")?.trim().parse::<u64>()?)
    };
    Ok(bytes("rchar: ")? + bytes("wchar: ")?)
}
