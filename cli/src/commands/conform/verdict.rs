//! How a check ends.

/// The reason why a check did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The program does not do as the protocol says.
    Wrong {
        /// Behaviour that the protocol demands.
        expected: String,
        /// Behaviour of the program.
        seen: String,
    },
    /// The check needs something that the program does not offer.
    NotTried(String),
}

impl Flaw {
    pub fn wrong(expected: impl Into<String>, seen: impl Into<String>) -> Flaw {
        Flaw::Wrong { expected: expected.into(), seen: seen.into() }
    }

    pub fn not_tried(why: impl Into<String>) -> Flaw {
        Flaw::NotTried(why.into())
    }
}

/// Refuses what differs from the expected.
pub fn same<T: PartialEq>(
    expected: &T,
    seen: &T,
    tell: impl Fn(&T) -> String,
    place: &str,
) -> Result<(), Flaw> {
    if expected == seen {
        return Ok(());
    }
    Err(Flaw::wrong(format!("{place}: {}", tell(expected)), tell(seen)))
}

/// Bytes that people can read: control characters are escaped, long ones cut.
pub fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 160;
    let cut = &bytes[..bytes.len().min(MOST)];
    let text: String =
        String::from_utf8_lossy(cut).chars().flat_map(|c| escaped(c).into_iter()).collect();
    match bytes.len() {
        0 => "nothing".into(),
        length if length > MOST => format!("{text}... ({length} bytes)"),
        _ => text,
    }
}

fn escaped(letter: char) -> Vec<char> {
    if letter.is_control() { letter.escape_default().collect() } else { vec![letter] }
}

/// A state in words: its beginning and length. Two that differ show the place.
pub fn same_state(expected: &[u8], seen: &[u8], place: &str) -> Result<(), Flaw> {
    if expected == seen {
        return Ok(());
    }
    let alike = expected.iter().zip(seen).take_while(|(a, b)| a == b).count();
    // A little of the common part shows where it is.
    let from = alike.saturating_sub(20);
    Err(Flaw::wrong(
        format!("{place}: a state of {} bytes, {}", expected.len(), shown(&expected[from..])),
        format!("one of {} bytes that differs from byte {alike} on, {}", seen.len(), {
            shown(&seen[from..])
        }),
    ))
}
