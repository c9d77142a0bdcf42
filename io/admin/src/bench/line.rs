//! An outcome as one flat JSON object, to be compared with those of other programs.

use std::time::Instant;

use serde_json::{Map, Value, json};
use wire::Duration;
use wire::bench::Load;
use wire::ordered::Ordered;

use super::outcome::{Outcome, Pace, Summary};

impl Outcome {
    /// The object: what was measured, then the figures. `n`, `min_us`, `p50_us`, `p99_us`,
    /// `p999_us` and `max_us` are those of [`latency`](Outcome::latency); `send_`, `own_`, `all_`
    /// and `echo_` go before the others.
    pub fn line(&self) -> Map<String, Value> {
        let ask = &self.ask;
        let mut line = Map::new();
        let mut put = |name: &str, value: Value| line.insert(name.into(), value);
        put("peer", json!("steadfast"));
        // One at a time is measured for its latency, many for their number.
        let many = matches!(ask.pace, Pace::Window(2..) | Pace::Full);
        put("measure", json!(if many { "ring-throughput" } else { "ring-latency" }));
        put("nodes", json!(self.nodes.len()));
        put("senders", json!(ask.senders.len()));
        put("size", json!(ask.size));
        put("level", json!(ask.level));
        put("pace", json!(ask.pace.to_string()));
        put("latency", json!(ask.until));
        put("verified", json!(self.is_verified()));
        put("msgs_s", json!(self.msgs_s.round()));
        put("mib_s", tenths(self.msgs_s * f64::from(ask.size) / f64::from(1 << 20)));
        if matches!(ask.pace, Pace::EveryUs(_)) {
            put("late_us", tenths(self.late_us));
        }
        put_summary(&mut line, "", self.latency());
        let times = &self.times;
        for (name, times) in
            [("send_", times.send), ("own_", times.own), ("all_", times.all), ("echo_", times.echo)]
        {
            put_summary(&mut line, name, times);
        }
        line
    }
}

fn put_summary(line: &mut Map<String, Value>, before: &str, summary: Option<Summary>) {
    let Some(summary) = summary else { return };
    line.insert(format!("{before}n"), json!(summary.n));
    let figures = [
        ("min_us", summary.min_us),
        ("p50_us", summary.p50_us),
        ("p99_us", summary.p99_us),
        ("p999_us", summary.p999_us),
        ("max_us", summary.max_us),
    ];
    line.extend(figures.map(|(name, figure)| (format!("{before}{name}"), tenths(figure))));
}

fn tenths(figure: f64) -> Value {
    json!((figure * 10.0).round() / 10.0)
}

/// The benchmark's own time for each message on this host now: to make one, and to check one. A
/// receiver checks every message; a sender makes its own and checks it too.
pub fn own_cost(size: u32) -> (Duration, Duration) {
    const ROUNDS: u32 = 2_000;
    let number = |round| u64::from(round);
    let start = Instant::now();
    let mut last = Load::message(1, 0, 0, size as usize);
    for round in 1..ROUNDS {
        last = std::hint::black_box(Load::message(1, 0, number(round), size as usize));
    }
    let making = start.elapsed() / ROUNDS;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let Ok(Ordered::Load(load)) = Ordered::decode(std::hint::black_box(&last)) else { break };
        assert!(std::hint::black_box(load.is_right()), "it was made here");
    }
    (making, start.elapsed() / ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_cost_is_measured() {
        let (making, checking) = own_cost(1_024);
        assert!(making > Duration::ZERO && checking > Duration::ZERO);
        assert!(making < Duration::from_millis(1) && checking < Duration::from_millis(1));
    }
}
