//! Messages in a stream of bytes: a length of 32 bits, lower bytes first, and so many bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use wire::limits::MAX_LINK_MESSAGE;

use crate::refusal::Malformed;

/// Bytes of the length.
pub(crate) const HEADER: usize = 4;

/// Messages up to this length are copied: behind their length on the way out, so that they are one
/// piece, and out of the buffer on the way in, so that none of them keeps a large buffer.
const COPIED: usize = 4 << 10;

/// Gives the pieces of a message, in order.
pub(crate) fn pieces(message: Bytes, mut give: impl FnMut(Bytes)) {
    let length = u32::try_from(message.len()).expect("the length was checked");
    let copied = if message.len() <= COPIED { message.len() } else { 0 };
    let mut first = BytesMut::with_capacity(HEADER + copied);
    first.put_u32_le(length);
    if copied > 0 {
        first.put_slice(&message);
    }
    give(first.freeze());
    if copied == 0 {
        give(message);
    }
}

/// Takes the next message, if all of it is there.
///
/// # Errors
/// The length is not one of a message. Nothing after it can be read.
pub(crate) fn take(input: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
    let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
    let told = u32::from_le_bytes(*header);
    let length = told as usize;
    if length == 0 || length > MAX_LINK_MESSAGE {
        return Err(Malformed::Length(told));
    }
    if input.len() < HEADER + length {
        // Room at once, not by doubling; the limit above bounds it.
        input.reserve(HEADER + length - input.len());
        return Ok(None);
    }
    input.advance(HEADER);
    if length <= COPIED {
        let message = Bytes::copy_from_slice(&input[..length]);
        input.advance(length);
        return Ok(Some(message));
    }
    Ok(Some(input.split_to(length).freeze()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(messages: &[Bytes]) -> BytesMut {
        let mut stream = BytesMut::new();
        messages
            .iter()
            .for_each(|message| pieces(message.clone(), |piece| stream.put_slice(&piece)));
        stream
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_the_bytes_are_cut(
            lengths in prop::collection::vec(1..3 * COPIED, 1..8),
            cut in 1..2 * COPIED,
        ) {
            let message = |(at, length): (usize, &usize)| Bytes::from(vec![at as u8; *length]);
            let sent: Vec<Bytes> = lengths.iter().enumerate().map(message).collect();
            let (mut input, mut got) = (BytesMut::new(), Vec::new());
            for piece in framed(&sent).chunks(cut) {
                input.put_slice(piece);
                while let Some(message) = take(&mut input).unwrap() {
                    got.push(message);
                }
            }
            prop_assert_eq!(got, sent);
            prop_assert!(input.is_empty());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut input = BytesMut::from(&bytes[..]);
            while let Ok(Some(message)) = take(&mut input) {
                prop_assert!(!message.is_empty());
            }
        }
    }

    #[test]
    fn the_largest_message_is_taken_and_a_larger_or_empty_one_is_not() {
        let largest = Bytes::from(vec![7; MAX_LINK_MESSAGE]);
        assert_eq!(take(&mut framed(std::slice::from_ref(&largest))), Ok(Some(largest)));
        for told in [0, MAX_LINK_MESSAGE as u32 + 1, u32::MAX] {
            let mut input = BytesMut::from(&told.to_le_bytes()[..]);
            assert_eq!(take(&mut input), Err(Malformed::Length(told)));
            assert!(input.capacity() < 1024, "nothing is kept for {told} bytes");
        }
    }
}
