//! How much of an error has room among the headers of an answer by gRPC.
//!
//! Clients take a list of headers of 8 KiB (grpc-java; one that is longer can end the connection)
//! or 16 KiB (grpcio). `grpc-message` has percent signs: three bytes for each byte that is not plain
//! ASCII. The service's own error stands beside it, in base64.

use http::HeaderMap;

/// The list of headers and trailers of one answer. Clients take 8 KiB; the rest is for what a proxy
/// adds.
pub(crate) const MOST: usize = 7 << 10;

/// All that has a short value: the status, the date, names of fields, whether the call was executed.
const PLAIN: usize = 576;

/// Both copies of an error, as encoded.
const ROOM: usize = MOST - PLAIN;

/// An error that is told whole leaves so much of the message at least.
const MESSAGE: usize = 512;

/// The parts of an error that are told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Copies {
    /// The text, or its beginning.
    pub(crate) message: String,
    /// The service's own error stands beside it, whole.
    pub(crate) has_error: bool,
    /// The part that is not told whole.
    pub(crate) cut: Option<&'static str>,
}

/// The error goes before the message: it is never cut, but left out where it has no room.
pub(crate) fn copies(message: &str, error: Option<&[u8]>) -> Copies {
    let coded = error.map_or(0, |error| error.len().div_ceil(3) * 4);
    let has_error = error.is_some() && coded + MESSAGE <= ROOM;
    let room = if has_error { ROOM - coded } else { ROOM };
    let is_whole = encoded(message) <= room;
    let cut = match (error.is_some() && !has_error, is_whole) {
        (true, _) => Some("error"),
        (false, false) => Some("message"),
        (false, true) => None,
    };
    let message = if is_whole { message.to_owned() } else { beginning(message, room) };
    Copies { message, has_error, cut }
}

/// As much of a text as has room as encoded, and a word that it is cut.
pub(crate) fn beginning(text: &str, room: usize) -> String {
    let note = format!("... (cut: {} bytes in all)", text.len());
    let room = room.saturating_sub(encoded(&note));
    let mut taken = 0;
    let end = text.char_indices().find(|(at, letter)| {
        taken += encoded(&text[*at..at + letter.len_utf8()]);
        taken > room
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    format!("{}{note}", &text[..end])
}

/// The length of a text in `grpc-message`, as the tonic library encodes it: more bytes with percent
/// signs than gRPC demands.
fn encoded(text: &str) -> usize {
    let length = |byte: u8| match byte {
        b' ' | b'"' | b'#' | b'%' | b'<' | b'>' | b'`' | b'?' | b'{' | b'}' => 3,
        0x21..=0x7e => 1,
        _ => 3,
    };
    text.bytes().map(length).sum()
}

/// The size of a list of headers as HTTP/2 counts it (RFC 9113, 6.5.2).
pub(crate) fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_copies_are_whole_as_long_as_they_fit() {
        let error = "e".repeat(1_500);
        let both = copies(&error, Some(error.as_bytes()));
        assert_eq!(both, Copies { message: error, has_error: true, cut: None });
    }

    #[test]
    fn then_the_message_is_cut_and_then_the_error_is_left_out() {
        let long = "漢".repeat(1_000);
        let told = copies(&long, Some(long.as_bytes()));
        assert!(told.has_error && told.cut == Some("message"), "{told:?}");
        assert!(told.message.ends_with("漢... (cut: 3000 bytes in all)"), "{}", told.message);
        let longer = "漢".repeat(2_000);
        let told = copies(&longer, Some(longer.as_bytes()));
        assert!(!told.has_error && told.cut == Some("error"), "{told:?}");
        assert!(told.message.starts_with("漢") && encoded(&told.message) <= ROOM);
        let told = copies(&longer, None);
        assert_eq!(told.cut, Some("message"));
    }

    #[test]
    fn a_short_message_beside_a_long_error_is_whole() {
        let error = vec![b'e'; 6_000];
        let told = copies("short", Some(&error));
        assert_eq!(told, Copies { message: "short".into(), has_error: false, cut: Some("error") });
    }

    #[test]
    fn the_length_is_that_of_the_header() {
        for letter in (0..=127_u8).map(char::from).chain(['ü', '漢', '😀']) {
            let text = letter.to_string();
            let response = tonic::Status::internal(&text).into_http::<()>();
            let header = response.headers().get("grpc-message").expect("it is told");
            assert_eq!(header.len(), encoded(&text), "{letter:?}");
        }
    }
}
