//! The bytes of a stream.

use std::io::{self, Read, Write};

use engine::Transfer;
use os::memory::prefer_huge_pages;
use wire::versions::RING;
use wire::{GroupId, NodeId, Payload, RingId, ViewNumber};

/// Bytes between two checks.
const PIECE: usize = 1 << 20;

/// Bytes of a request.
pub const ASK: usize = 40;

const MAGIC: [u8; 4] = *b"SFST";

/// The request for a state.
pub fn ask(transfer: Transfer) -> [u8; ASK] {
    let Transfer { ring, group, view } = transfer;
    let mut bytes = [0; ASK];
    bytes[..4].copy_from_slice(&MAGIC);
    // Nobody answers with a version: all neighbours read the oldest.
    bytes[4] = RING.least;
    bytes[8..16].copy_from_slice(&ring.sequence.to_le_bytes());
    bytes[16..20].copy_from_slice(&ring.representative.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&group.0.to_le_bytes());
    bytes[32..].copy_from_slice(&view.0.to_le_bytes());
    bytes
}

/// Reads a request. `None`: it is none.
pub fn asked(bytes: &[u8; ASK]) -> Option<Transfer> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let node = u32::from_le_bytes(bytes[16..20].try_into().expect("four bytes"));
    let known = bytes[..4] == MAGIC && RING.contains(bytes[4]);
    let zeros = bytes[5..8] == [0; 3] && bytes[20..24] == [0; 4];
    let ring = RingId { sequence: number(8), representative: NodeId(node) };
    let transfer = Transfer { ring, group: GroupId(number(24)), view: ViewNumber(number(32)) };
    (known && zeros).then_some(transfer)
}

/// Writes a state, or that there is none. `goes_on` is asked before each piece.
///
/// # Errors
/// The stream fails, or is not read; it is not to go on.
pub fn write_state(
    state: Option<&Payload>,
    stream: &mut impl Write,
    goes_on: impl Fn() -> bool,
) -> io::Result<()> {
    let length = state.map_or(0, Payload::len);
    stream.write_all(&(length as u64).to_le_bytes())?;
    let (mut from, mut check) = (0, 0);
    while let Some(state) = state.filter(|state| from < state.len()) {
        if !goes_on() {
            return Err(io::Error::other("the node stops"));
        }
        let count = PIECE.min(length - from);
        for part in state.range(from, count) {
            check = crc32c::crc32c_append(check, part);
            stream.write_all(part)?;
        }
        stream.write_all(&check.to_le_bytes())?;
        from += count;
    }
    stream.flush()
}

/// Reads a state of so many bytes. `goes_on` is asked before each piece.
///
/// # Errors
/// It is not there, has another size, or has changed on its way; the stream fails or is silent; it
/// is not wanted any more.
pub fn read_state(
    stream: &mut impl Read,
    bytes: u64,
    goes_on: impl Fn() -> bool,
) -> io::Result<Vec<u8>> {
    let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    match u64::from_le_bytes(length) {
        0 => return Err(io::Error::new(io::ErrorKind::NotFound, "the state is not there")),
        length if length != bytes => return Err(bad("the state has another size than was told")),
        _ => {}
    }
    let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut state = Vec::new();
    state.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    prefer_huge_pages(state.spare_capacity_mut());
    let mut check = 0;
    while state.len() < length {
        if !goes_on() {
            return Err(io::Error::other("the state is not wanted any more"));
        }
        let from = state.len();
        let count = PIECE.min(length - from);
        stream.by_ref().take(count as u64).read_to_end(&mut state)?;
        if state.len() < from + count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        check = crc32c::crc32c_append(check, &state[from..]);
        let mut told = [0; 4];
        stream.read_exact(&mut told)?;
        if u32::from_le_bytes(told) != check {
            return Err(bad("the state has changed on its way"));
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const TRANSFER: Transfer = Transfer {
        ring: RingId { sequence: 0x0807_0605_0403_0201, representative: NodeId(0x0c0b_0a09) },
        group: GroupId(0x1817_1615_1413_1211),
        view: ViewNumber(0x2827_2625_2423_2221),
    };

    fn state(length: usize) -> Payload {
        let body: Vec<u8> = (0..length).map(|at| (at / 7) as u8).collect();
        Payload { head: Bytes::from_static(b"head"), body: body.into() }
    }

    fn written(state: &Payload) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_state(Some(state), &mut bytes, || true).expect("memory takes all");
        bytes
    }

    fn read(bytes: &[u8], length: usize) -> Result<Vec<u8>, io::ErrorKind> {
        read_state(&mut &*bytes, length as u64, || true).map_err(|error| error.kind())
    }

    #[test]
    fn a_request_has_its_bytes_and_no_other_is_one() {
        let bytes = ask(TRANSFER);
        let text: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            text.concat(),
            "53465354010000000102030405060708090a0b0c000000001112131415161718\
             2122232425262728"
        );
        assert_eq!(asked(&bytes), Some(TRANSFER));
        for at in (0..8).chain(20..24) {
            let mut other = bytes;
            other[at] ^= 0x80;
            assert_eq!(asked(&other), None, "byte {at}");
        }
    }

    #[test]
    fn a_state_comes_as_it_was() {
        for length in [1, PIECE - 4, PIECE - 3, 2 * PIECE + 9] {
            let state = state(length);
            let bytes = written(&state);
            assert_eq!(read(&bytes, state.len()), Ok(state.clone().whole().to_vec()), "{length}");
        }
    }

    #[test]
    fn what_is_damaged_cut_or_of_another_size_is_refused() {
        let state = state(PIECE + 100);
        let bytes = written(&state);
        for at in [8, PIECE / 2, PIECE + 8, PIECE + 13, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(read(&other, state.len()), Err(io::ErrorKind::InvalidData), "byte {at}");
        }
        for end in [0, 7, 8, 100, PIECE + 10, bytes.len() - 1] {
            let cut = read(&bytes[..end], state.len());
            assert_eq!(cut, Err(io::ErrorKind::UnexpectedEof), "cut at {end}");
        }
        assert_eq!(read(&bytes, state.len() + 1), Err(io::ErrorKind::InvalidData));
    }

    #[test]
    fn a_state_that_is_not_there_is_told() {
        let mut bytes = Vec::new();
        write_state(None, &mut bytes, || true).expect("memory takes all");
        assert_eq!(read(&bytes, 100), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn nobody_reads_on_what_is_not_wanted_any_more() {
        let state = state(100);
        let read = read_state(&mut &*written(&state), state.len() as u64, || false);
        assert_eq!(read.expect_err("it is not wanted").kind(), io::ErrorKind::Other);
        let mut bytes = Vec::new();
        assert!(write_state(Some(&state), &mut bytes, || false).is_err(), "nor writes");
    }
}
