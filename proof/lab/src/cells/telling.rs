//! Times of a part, told.

use std::time::Duration;

use harness::figures::quantile;
use harness::{Run, name};
use serde_json::{Value, json};

/// Milliseconds.
pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Tells the median, the 99th percentile and the worst of times in milliseconds.
pub(super) fn tell(run: &Run, measure: &str, what: &str, of: Value, times: Vec<f64>) {
    let at = |share| quantile(times.clone(), share).unwrap_or_default();
    let (n, p50, p99, worst) = (times.len(), at(0.5), at(0.99), at(1.0));
    let mut line = json!({ "peer": "steadfast", "measure": measure });
    let figures = json!({ "n": n, "p50_ms": p50, "p99_ms": p99, "worst_ms": worst });
    for fields in [of, figures] {
        if let (Value::Object(fields), Some(line)) = (fields, line.as_object_mut()) {
            line.extend(fields);
        }
    }
    run.tell(&line, || {
        format!("{what:<58} p50 {p50:8.1}  p99 {p99:8.1}  worst {worst:8.1}  ({n})")
    });
}

/// A part's name in figures.
pub(super) fn spelt(part: impl clap::ValueEnum) -> Value {
    name(part).into()
}
