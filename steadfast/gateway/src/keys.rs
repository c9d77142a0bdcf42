//! A call's key: the metadata by which an interceptor has a call executed exactly once.
//!
//! | metadata | value |
//! | --- | --- |
//! | `steadfast-session` | 1 to 16 hexadecimal digits, drawn at random for each channel |
//! | `steadfast-call` | the call's number in its session, from 1; the same in each attempt |
//! | `steadfast-unanswered` | all calls below this number have ended for their caller |

use client::Key;
use http::HeaderMap;
use wire::ClientId;

pub(crate) const SESSION: &str = "steadfast-session";
pub(crate) const CALL: &str = "steadfast-call";
pub(crate) const UNANSWERED: &str = "steadfast-unanswered";

/// The session and the number of a call.
pub(crate) type Identity = (ClientId, Key);

/// Reads a call's key. `None`: it has none.
///
/// # Errors
/// A part of the key is missing or makes no sense: which one, and what it should be.
pub(crate) fn identity(headers: &HeaderMap) -> Result<Option<Identity>, String> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let (session, number) = match (text(SESSION), text(CALL)) {
        (None, None) => return Ok(None),
        (Some(session), Some(number)) => (session, number),
        (None, Some(_)) => return Err(format!("{CALL} without {SESSION}: send both or neither")),
        (Some(_), None) => return Err(format!("{SESSION} without {CALL}: send both or neither")),
    };
    let is_session =
        (1..=16).contains(&session.len()) && session.bytes().all(|byte| byte.is_ascii_hexdigit());
    let session = u64::from_str_radix(session, 16).ok().filter(|_| is_session);
    let session = session.filter(|session| *session > 0).ok_or_else(|| {
        format!("{SESSION} is 1 to 16 hexadecimal digits, drawn at random, and not 0")
    })?;
    let number = count(CALL, number)?;
    let unanswered = text(UNANSWERED).map_or(Ok(number), |text| count(UNANSWERED, text))?;
    Ok(Some((ClientId(session), Key { number, unanswered })))
}

fn count(name: &str, text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{name} is a number from 1 in decimal digits, and not `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn read(pairs: &[(&'static str, &str)]) -> Result<Option<Identity>, String> {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        identity(&pairs.iter().map(pair).collect())
    }

    #[test]
    fn a_key_has_a_session_and_numbers() {
        assert_eq!(read(&[]), Ok(None));
        let key = |number, unanswered| Key { number, unanswered };
        let all = [(SESSION, "00fF"), (CALL, "7"), (UNANSWERED, "3")];
        assert_eq!(read(&all), Ok(Some((ClientId(255), key(7, 3)))));
        assert_eq!(read(&all[..2]), Ok(Some((ClientId(255), key(7, 7)))));
    }

    #[test]
    fn half_a_key_and_nonsense_are_refused() {
        for bad in [
            &[(SESSION, "ff")][..],
            &[(CALL, "1")],
            &[(SESSION, ""), (CALL, "1")],
            &[(SESSION, "0"), (CALL, "1")],
            &[(SESSION, "+ff"), (CALL, "1")],
            &[(SESSION, "11112222333344445"), (CALL, "1")],
            &[(SESSION, "ff"), (CALL, "0")],
            &[(SESSION, "ff"), (CALL, "-1")],
            &[(SESSION, "ff"), (CALL, "99999999999999999999")],
            &[(SESSION, "ff"), (CALL, "2"), (UNANSWERED, "0")],
        ] {
            let refused = read(bad).expect_err("no key");
            assert!(refused.contains("steadfast-"), "{refused}");
        }
    }
}
