//! Waiting for what a command is about.

use std::thread;
use std::time::{Duration, Instant};

use wire::limits::MAX_DEADLINE;

use super::Failure;

/// How often is looked.
const PERIOD: Duration = Duration::from_millis(50);

/// The result of a look at something that is waited for.
pub enum Look {
    /// It is so.
    Done,
    /// Not yet, and why.
    NotYet(String),
    /// It will never be, and why.
    Never(String),
}

/// Looks until it is so, or the time is over: then the last reason says why it is not. Without a
/// time it looks once, and takes what there is.
pub fn until<T>(
    limit: Option<Duration>,
    look: impl FnMut() -> Result<T, Failure>,
    missing: impl Fn(&T) -> Option<String>,
) -> Result<T, Failure> {
    until_known(limit, look, |found| match missing(found) {
        None => Look::Done,
        Some(why) => Look::NotYet(why),
    })
}

/// The same, and ends as soon as it is known that it will never be so.
pub fn until_known<T>(
    limit: Option<Duration>,
    mut look: impl FnMut() -> Result<T, Failure>,
    mut judge: impl FnMut(&T) -> Look,
) -> Result<T, Failure> {
    let Some(limit) = limit else { return look() };
    let deadline = Instant::now() + limit;
    loop {
        let why = match look() {
            Ok(found) => match judge(&found) {
                Look::Done => return Ok(found),
                Look::Never(why) => return Err(Failure::Failed(why)),
                Look::NotYet(why) => why,
            },
            Err(Failure::Failed(why)) => why,
            Err(wrong) => return Err(wrong),
        };
        if Instant::now() >= deadline {
            return Err(Failure::Failed(format!("after {limit:?}: {why}")));
        }
        thread::sleep(PERIOD);
    }
}

/// The longest wait for something that may take several steps of a minute each.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A time with its unit, at most a minute.
pub fn duration(text: &str) -> Result<Duration, String> {
    at_most(MAX_DEADLINE, text)
}

/// A time with its unit, at most an hour.
pub fn long_duration(text: &str) -> Result<Duration, String> {
    at_most(LONGEST, text)
}

fn at_most(most: Duration, text: &str) -> Result<Duration, String> {
    let wrong = || "give a number and a unit, such as 500us, 250ms, 1.5s or 1m".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match &text[digits..] {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(wrong()),
    };
    let duration = Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())?;
    if duration.is_zero() || duration > most {
        return Err(format!("a time is more than nothing and at most {most:?}"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("1m"), Ok(Duration::from_secs(60)));
        for wrong in
            ["", "1", "s", "1h", "0s", "-1s", "1.2.3s", "1 s", "61s", "9999999999999999999999m"]
        {
            duration(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn a_deployment_may_be_waited_for_longer_than_a_roll_back_takes() {
        assert_eq!(long_duration("10m"), Ok(Duration::from_secs(600)));
        long_duration("61m").expect_err("too long");
    }

    #[test]
    fn what_will_never_be_is_not_waited_for() {
        let limit = Some(Duration::from_secs(60));
        let never = until_known(limit, || Ok(1), |_| Look::Never("refused".into()));
        assert_eq!(never, Err(Failure::Failed("refused".into())));
    }

    #[test]
    fn it_is_looked_until_it_is_so_or_the_last_reason_is_told() {
        let limit = Some(Duration::from_secs(60));
        let mut looks = 0;
        let mut look = || {
            looks += 1;
            if looks == 1 { Err(Failure::Failed("nobody".into())) } else { Ok(looks) }
        };
        let found = until(limit, &mut look, |looks| (*looks < 3).then(|| "few".into()));
        assert_eq!(found, Ok(3));
        let never = until(Some(Duration::from_micros(1)), || Ok(1), |_| Some("one alone".into()));
        assert!(matches!(never, Err(Failure::Failed(why)) if why.ends_with("one alone")));
        assert_eq!(until(None, || Ok(1), |_| Some("not asked".into())), Ok(1));
    }
}
