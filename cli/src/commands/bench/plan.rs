//! Which measures the command line means.

use std::time::Duration;

use steadfast::NodeId;
use steadfast::bench::{Ask, Level, Pace as AskedPace, Until};
use steadfast::status::Status;

use crate::commands::Failure;

/// Messages of a sender without a pace, at most: the time ends a measure, not this.
const MANY: u64 = 100_000_000;

/// When the next message is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    Full,
    Window(u32),
    Every(Duration),
}

impl Pace {
    /// One measure.
    pub fn ask(
        self,
        senders: &[NodeId],
        size: u32,
        level: Level,
        latency: Until,
        span: Duration,
    ) -> Ask {
        let sparse = matches!(self, Pace::Every(pause) if pause >= Duration::from_millis(20));
        Ask {
            senders: senders.to_vec(),
            size,
            count: MANY,
            warm: if sparse { 1 } else { 100 },
            span_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
            level,
            pace: match self {
                Pace::Full => AskedPace::Full,
                Pace::Window(window) => AskedPace::Window(window),
                Pace::Every(pause) => {
                    AskedPace::EveryUs(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX))
                }
            },
            // A full ring is not kept waiting for anything but itself.
            until: if self == Pace::Full { Until::Own } else { latency },
        }
    }
}

/// Reads a pace.
pub fn pace(text: &str) -> Result<Pace, String> {
    let wrong = || {
        format!(
            "\"{text}\" is no pace: one, full, window=N, rate=N (a second) or every=MS, all above zero"
        )
    };
    let (word, number) = match text.split_once('=') {
        None => (text, 0.0),
        Some((word, number)) => {
            let number = number.trim_end_matches("ms").parse::<f64>().map_err(|_| wrong())?;
            (word, number)
        }
    };
    let sane = number.is_finite() && number > 0.0 && number < 1e9;
    match word {
        "one" if number == 0.0 => Ok(Pace::Window(1)),
        "full" if number == 0.0 => Ok(Pace::Full),
        "window" if sane && number.fract() == 0.0 => Ok(Pace::Window(number as u32)),
        "rate" if sane && number <= 1e6 => Ok(Pace::Every(Duration::from_secs_f64(1.0 / number))),
        "every" if sane && number >= 0.001 => {
            Ok(Pace::Every(Duration::from_secs_f64(number / 1_000.0)))
        }
        _ => Err(wrong()),
    }
}

/// Reads a level.
pub fn level(text: &str) -> Result<Level, String> {
    match text {
        "agreed" => Ok(Level::Agreed),
        "held" => Ok(Level::Held),
        "safe" => Ok(Level::Safe),
        _ => Err(format!("\"{text}\" is no level: agreed, held or safe")),
    }
}

/// Reads what a latency ends with.
pub fn until(text: &str) -> Result<Until, String> {
    match text {
        "own" => Ok(Until::Own),
        "all" => Ok(Until::All),
        "echo" => Ok(Until::Echo),
        _ => Err(format!("\"{text}\" does not end a latency: own, all or echo")),
    }
}

/// Reads a time.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("\"{text}\" is no number of seconds"))?;
    if !(0.01..=600.0).contains(&seconds) {
        return Err(format!("{text} s is not within 0.01 and 600 s"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// The groups of senders, among the ring's members.
pub fn senders(
    numbers: &[usize],
    from: &[u32],
    status: &Status,
) -> Result<Vec<Vec<NodeId>>, Failure> {
    let members: Vec<NodeId> = status.ring.members.iter().map(|member| member.node).collect();
    let names = || members.iter().map(NodeId::to_string).collect::<Vec<_>>().join(" ");
    if !from.is_empty() {
        let mut senders: Vec<NodeId> = from.iter().copied().map(NodeId).collect();
        senders.sort_unstable();
        senders.dedup();
        return match senders.iter().find(|node| !members.contains(node)) {
            Some(stranger) => Err(Failure::Usage(format!(
                "--from names {stranger}, which is not in the ring; its members are {}",
                names()
            ))),
            None => Ok(vec![senders]),
        };
    }
    let group = |number: &usize| match members.get(..*number) {
        Some(senders) if !senders.is_empty() => Ok(senders.to_vec()),
        _ => Err(Failure::Usage(format!(
            "--senders {number}: the ring has {} members, {}; at least one sends",
            members.len(),
            names()
        ))),
    };
    numbers.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_read() {
        assert_eq!(pace("one"), Ok(Pace::Window(1)));
        assert_eq!(pace("full"), Ok(Pace::Full));
        assert_eq!(pace("window=32"), Ok(Pace::Window(32)));
        assert_eq!(pace("rate=2000"), Ok(Pace::Every(Duration::from_micros(500))));
        assert_eq!(pace("every=200"), Ok(Pace::Every(Duration::from_millis(200))));
        assert_eq!(pace("every=0.5ms"), Ok(Pace::Every(Duration::from_micros(500))));
        for wrong in ["", "two", "one=1", "window", "window=0", "window=1.5", "rate=0", "every=-1"]
        {
            let error = pace(wrong).expect_err(wrong);
            assert!(error.contains("is no pace: one, full"), "{error}");
        }
    }

    #[test]
    fn a_full_ring_waits_for_nothing_but_itself() {
        let span = Duration::from_secs(1);
        let ask = |pace: Pace| pace.ask(&[NodeId(1)], 64, Level::Agreed, Until::Echo, span);
        assert_eq!(ask(Pace::Full).until, Until::Own);
        assert_eq!(ask(Pace::Window(1)).until, Until::Echo);
        assert_eq!(ask(Pace::Every(Duration::from_millis(200))).warm, 1);
    }
}
