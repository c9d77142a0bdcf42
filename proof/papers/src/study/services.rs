//! The two groups of the study: one that thinks and calls, one that serves.
//!
//! Times are slept, not computed (decision 0037). Measurements are no part of a replica's state:
//! each process keeps those of its own replicas, and returns them when it is asked.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use harness::echo::Handler;
use rustix::thread::set_current_timer_slack;
use serde::{Deserialize, Serialize};
use steadfast::{
    AckLevel, Call, Context, Execution, GroupOptions, HostOptions, Invocation, MethodId,
    ServiceOutcome, Style,
};
use wire::client::Refusal;

use super::law::Law;

/// The method of a caller: make these calls.
pub const MAKE: MethodId = MethodId::of("make");

/// The method of a callee: serve so long.
pub const SERVE: MethodId = MethodId::of("serve");

/// Far beyond what a call takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The callers, each on the first nodes.
pub const CALLERS: [&str; 2] = ["caller/semi-active", "caller/active"];

/// The callees, each on the last nodes.
pub const CALLEES: [&str; 3] = ["callee/semi-active", "callee/active", "callee/stateless"];

/// Which of the two services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Caller,
    Callee,
}

/// The side and options of a group of this name, if it is one of the study.
pub fn hosted(group: &str) -> Option<(Side, HostOptions)> {
    let (side, style) = group.split_once('/')?;
    let side = match side {
        "caller" => Side::Caller,
        "callee" => Side::Callee,
        _ => return None,
    };
    let style = match style {
        "semi-active" => Style::SemiActive,
        "active" => Style::Active,
        "stateless" => Style::Stateless,
        _ => return None,
    };
    // As in the paper: delivered is enough, nobody waits until others have it.
    let group = GroupOptions { style, ack: AckLevel::One, ..GroupOptions::default() };
    Some((side, HostOptions { group, execution: Execution::Thread }))
}

/// A request to a caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Which measurement it belongs to.
    pub series: u64,
    /// So many calls, one after the other.
    pub calls: u8,
    /// The called group.
    pub callee: String,
    /// How long the caller thinks before each.
    pub think: Law,
    /// How long the callee serves each.
    pub service: Law,
    /// Bytes of each request and reply.
    pub size: usize,
}

/// A call that a replica has made, as it has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Its task's.
    pub series: u64,
    /// Microseconds from the reply before until the handler called; `None` of a task's first call.
    pub think: Option<f64>,
    /// Microseconds from the call until the handler had the reply.
    pub latency: f64,
}

static CALLS: Mutex<Vec<Made>> = Mutex::new(Vec::new());

/// The calls that this process's replicas have made since this was called last.
pub fn take_calls() -> Vec<Made> {
    std::mem::take(&mut *CALLS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The arguments of a call that takes so long to serve.
pub fn request(service_us: f64, size: usize) -> Bytes {
    let mut body = vec![0; size.max(8)];
    body[..8].copy_from_slice(&service_us.to_le_bytes());
    body.into()
}

/// Sleeps as exactly as the kernel can.
fn sleep(microseconds: f64) {
    thread_local! {
        static EXACT: Cell<bool> = const { Cell::new(false) };
    }
    if !EXACT.replace(true) {
        // Without it the kernel may add 50 µs: then times are a little longer, and the measurement
        // says so.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
    }
    if microseconds > 0.0 {
        thread::sleep(Duration::from_nanos((microseconds * 1_000.0) as u64));
    }
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64 / 1_000.0
}

/// Thinks and calls, as often as it is told.
#[derive(Default)]
pub struct Caller;

impl Caller {
    fn make(context: &Context, task: &Task) -> Result<(), String> {
        let mut random = context.random();
        let mut made = Vec::with_capacity(task.calls.into());
        let mut back: Option<Instant> = None;
        for _ in 0..task.calls {
            let (think, service) = (task.think.draw(&mut random), task.service.draw(&mut random));
            let body = request(service, task.size);
            sleep(think);
            let think = back.map(micros);
            let start = Instant::now();
            let reply = context
                .call(Invocation::new(&task.callee, SERVE).body(body.clone()).within(TIMEOUT));
            let latency = micros(start);
            back = Some(Instant::now());
            if reply.map_err(|error| error.to_string())? != body {
                return Err("the reply is another".into());
            }
            made.push(Made { series: task.series, think, latency });
        }
        CALLS.lock().unwrap_or_else(PoisonError::into_inner).extend(made);
        Ok(())
    }
}

impl Handler for Caller {
    fn handle(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        let Ok(task) = serde_json::from_slice(call.body) else {
            return ServiceOutcome::Refused(Refusal::BadArguments, "no task".into());
        };
        match Caller::make(context, &task) {
            Ok(()) => ServiceOutcome::Ok(Bytes::new()),
            Err(error) => ServiceOutcome::Error(error.into()),
        }
    }
}

/// Serves as long as a request says, and gives it back.
#[derive(Default)]
pub struct Callee;

impl Handler for Callee {
    fn handle(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        let Some((service, _)) = call.body.split_first_chunk::<8>() else {
            return ServiceOutcome::Refused(Refusal::BadArguments, "no time".into());
        };
        sleep(f64::from_le_bytes(*service));
        ServiceOutcome::Ok(Bytes::copy_from_slice(call.body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_hosted_by_their_names() {
        for group in CALLERS {
            let (side, options) = hosted(group).expect("a group of the study");
            assert_eq!((side, options.execution), (Side::Caller, Execution::Thread));
        }
        let (side, options) = hosted("callee/active").expect("a group of the study");
        assert_eq!((side, options.group.style), (Side::Callee, Style::Active));
        assert!(CALLEES.iter().all(|group| hosted(group).is_some()));
        assert!(
            ["inline", "thread-1", "caller/", "other/active"]
                .iter()
                .all(|group| hosted(group).is_none())
        );
    }

    #[test]
    fn a_callee_serves_at_least_as_long_as_it_is_told_and_gives_all_back() {
        let body = request(2_000.0, 100);
        let context = Context::new(wire::Time(1), 1, steadfast::ClientId(1), 1);
        let start = Instant::now();
        let outcome = Callee.handle(&context, Call { method: SERVE, json: false, body: &body });
        assert!(start.elapsed() >= Duration::from_millis(2));
        assert_eq!(outcome, ServiceOutcome::Ok(body));
    }
}
