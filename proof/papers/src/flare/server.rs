//! A service whose call takes so much processor time as it says.

use std::time::Duration;

use bytes::Bytes;
use harness::echo::Handler;
use harness::work::compute;
use rustix::process::setpriority_process;
use steadfast::{
    Call, Context, Execution, GroupOptions, HostOptions, MethodId, ServiceOutcome, Style,
};

/// The one method: take this much processor time.
pub const TAKE: MethodId = MethodId::of("take");

/// How such a group is replicated, if one is called so: as in the paper, the primary alone
/// executes.
pub fn hosted(group: &str) -> Option<HostOptions> {
    group.strip_prefix("flare/")?;
    let group = GroupOptions { style: Style::WarmPassive, ..GroupOptions::default() };
    Some(HostOptions { group, execution: Execution::Thread })
}

/// The arguments of a call: processor time in microseconds, and `nice`.
pub fn order(work: Duration, nice: i8) -> Bytes {
    let work = u64::try_from(work.as_micros()).expect("a call takes less than an age");
    let mut body = work.to_le_bytes().to_vec();
    body.push(nice.to_le_bytes()[0]);
    body.into()
}

/// Takes processor time.
#[derive(Default)]
pub struct Taker {
    /// The `nice` of the thread that it runs on.
    nice: Option<i8>,
}

impl Handler for Taker {
    fn handle(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        let (Some(work), Some(&[nice])) = (call.body.first_chunk(), call.body.get(8..)) else {
            return ServiceOutcome::Error(Bytes::from_static(b"nine bytes are wanted"));
        };
        let nice = i8::from_le_bytes([nice]);
        if self.nice != Some(nice) {
            // On Linux it is the thread's alone. Where it may not be changed all have the same
            // weight.
            let _ = setpriority_process(None, nice.into());
            self.nice = Some(nice);
        }
        compute(Duration::from_micros(u64::from_le_bytes(*work)));
        ServiceOutcome::Ok(Bytes::new())
    }
}
