//! The first words on a connection.
//!
//! ```text
//! dialler   "SFlink/1" (8 bytes), the link (16 random bytes), the class (1 byte)
//! acceptor  once it has all four connections of the link: 0, or why it refuses the link
//! ```
//!
//! The dialler chooses the link's number, so no connection can be taken for one of another link. It
//! speaks only on the transport that it has chosen: the acceptor never sees a link twice.

use bytes::{Buf, Bytes, BytesMut};

use crate::class::Class;
use crate::refusal::{Malformed, Refusal};

/// The protocol and its version.
const MAGIC: &[u8; 8] = b"SFlink/1";

/// Bytes of a link's number.
const TOKEN: usize = 16;

/// Bytes of a greeting.
const LENGTH: usize = MAGIC.len() + TOKEN + 1;

/// A link's random number, which its dialler draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(pub [u8; TOKEN]);

/// The first words of a dialler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub token: Token,
    pub class: Class,
}

impl Greeting {
    pub fn encode(self) -> Bytes {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.token.0);
        bytes.push(self.class.index() as u8);
        bytes.into()
    }

    /// Takes a greeting, if all of it is there.
    ///
    /// # Errors
    /// These bytes begin no greeting, or more came with it.
    pub fn take(input: &mut BytesMut) -> Result<Option<Greeting>, Malformed> {
        let count = input.len().min(MAGIC.len());
        if input[..count] != MAGIC[..count] {
            return Err(Malformed::Magic);
        }
        if input.len() < LENGTH {
            return Ok(None);
        }
        if input.len() > LENGTH {
            // The dialler waits for the answer.
            return Err(Malformed::Early);
        }
        let mut token = [0; TOKEN];
        token.copy_from_slice(&input[MAGIC.len()..MAGIC.len() + TOKEN]);
        let byte = input[LENGTH - 1];
        let class = Class::from_byte(byte).ok_or(Malformed::Class(byte))?;
        input.clear();
        Ok(Some(Greeting { token: Token(token), class }))
    }
}

/// The answer on a connection whose link is up.
pub(crate) const WELCOME: u8 = 0;

/// Takes the answer, if it is there.
///
/// # Errors
/// This is no answer.
pub(crate) fn take_answer(input: &mut BytesMut) -> Result<Option<Result<(), Refusal>>, Malformed> {
    let Some(&byte) = input.first() else { return Ok(None) };
    input.advance(1);
    match byte {
        WELCOME => Ok(Some(Ok(()))),
        byte => Refusal::from_byte(byte).map(|it| Some(Err(it))).ok_or(Malformed::Answer(byte)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GREETING: Greeting = Greeting { token: Token([9; TOKEN]), class: Class::Alarm };

    #[test]
    fn a_greeting_is_read_once_all_of_it_is_there() {
        let bytes = GREETING.encode();
        for count in 0..bytes.len() {
            assert_eq!(Greeting::take(&mut BytesMut::from(&bytes[..count])), Ok(None));
        }
        let mut input = BytesMut::from(&bytes[..]);
        assert_eq!(Greeting::take(&mut input), Ok(Some(GREETING)));
        assert!(input.is_empty());
    }

    #[test]
    fn a_wrong_byte_is_seen_at_once_and_nothing_may_follow() {
        let bytes = GREETING.encode();
        assert_eq!(Greeting::take(&mut BytesMut::from(&b"SG"[..])), Err(Malformed::Magic));
        let mut other = BytesMut::from(&bytes[..]);
        other[LENGTH - 1] = 4;
        assert_eq!(Greeting::take(&mut other), Err(Malformed::Class(4)));
        let mut more = BytesMut::from(&bytes[..]);
        more.extend_from_slice(b"x");
        assert_eq!(Greeting::take(&mut more), Err(Malformed::Early));
    }

    #[test]
    fn answers_are_read_as_they_were_given() {
        let take = |bytes: &[u8]| take_answer(&mut BytesMut::from(bytes));
        assert_eq!(take(&[]), Ok(None));
        assert_eq!(take(&[WELCOME, 1]), Ok(Some(Ok(()))));
        for refusal in Refusal::ALL {
            assert_eq!(take(&[refusal.byte()]), Ok(Some(Err(refusal))));
        }
        assert_eq!(take(&[200]), Err(Malformed::Answer(200)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Greeting::take(&mut BytesMut::from(&bytes[..]));
            let _ = take_answer(&mut BytesMut::from(&bytes[..]));
        }
    }
}
