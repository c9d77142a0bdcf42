//! Waiting for what a command is about.

use std::thread;
use std::time::{Duration, Instant};

use wire::limits::MAX_DEADLINE;

use super::Failure;

/// How often is looked.
const PERIOD: Duration = Duration::from_millis(50);

/// Looks until it is so, or the time is over: then the last reason says why it is not. Without a
/// time it looks once, and takes what there is.
pub fn until<T>(
    limit: Option<Duration>,
    mut look: impl FnMut() -> Result<T, Failure>,
    missing: impl Fn(&T) -> Option<String>,
) -> Result<T, Failure> {
    let Some(limit) = limit else { return look() };
    let deadline = Instant::now() + limit;
    loop {
        let why = match look() {
            Ok(found) => match missing(&found) {
                None => return Ok(found),
                Some(why) => why,
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

/// A time with its unit, at most a minute.
pub fn duration(text: &str) -> Result<Duration, String> {
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
    if duration.is_zero() || duration > MAX_DEADLINE {
        return Err(format!("a time is more than nothing and at most {MAX_DEADLINE:?}"));
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
