//! Load reports of gRPC (ORCA, gRFC A51): a client that balances by load asks for them.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use prost::Message;
use tokio::time::MissedTickBehavior;
use tonic::body::Body;
use tonic::{Status, Streaming};

use crate::call::Gateway;
use crate::load::{Observer, Seen};
use crate::streams::{self, Asker};
use crate::xds::Span;

/// The path of the one method.
pub(crate) const PATH: &str = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics";

/// Reports come no more often, whatever is asked for: the kernel counts in steps of 10 ms.
const SHORTEST: Duration = Duration::from_millis(100);

/// And no less often: a report is a sign of life.
const LONGEST: Duration = Duration::from_secs(3600);

/// Between reports where nothing is asked for, as in gRPC's own servers.
const USUAL: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Message)]
struct LoadReportRequest {
    #[prost(message, optional, tag = "1")]
    report_interval: Option<Span>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct LoadReport {
    #[prost(double, tag = "1")]
    cpu_utilization: f64,
    #[prost(double, tag = "6")]
    rps_fractional: f64,
    #[prost(double, tag = "7")]
    eps: f64,
}

impl From<Seen> for LoadReport {
    fn from(seen: Seen) -> LoadReport {
        let Seen { processors, calls, failed } = seen;
        LoadReport { cpu_utilization: processors, rps_fractional: calls, eps: failed }
    }
}

/// Serves one stream.
pub(crate) async fn serve<B>(gateway: Arc<Gateway>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    streams::serve(request, move |requests, answers| {
        let gateway = gateway.clone();
        async move {
            let _room = gateway.stream().map_err(|full| full.to_status())?;
            report(&gateway, requests, &answers).await
        }
    })
    .await
}

async fn report(
    gateway: &Gateway,
    mut requests: Streaming<LoadReportRequest>,
    answers: &Asker<LoadReport>,
) -> Result<(), Status> {
    let Some(asked) = requests.message().await? else { return Ok(()) };
    let unknown = |error: monitor::MonitorError| Status::unavailable(error.to_string());
    let mut observer = Observer::new(gateway.load()).map_err(unknown)?;
    let mut ticks = tokio::time::interval(interval(asked));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = answers.closed() => return Ok(()),
        }
        let report = observer.look(gateway.load()).map_err(unknown)?;
        if answers.send(Ok(report.into())).await.is_err() {
            return Ok(());
        }
    }
}

fn interval(asked: LoadReportRequest) -> Duration {
    let span = asked.report_interval.and_then(|Span { seconds, nanos }| {
        Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?))
    });
    span.filter(|span| !span.is_zero()).unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_bounded() {
        let of = |seconds, nanos| {
            interval(LoadReportRequest { report_interval: Some(Span { seconds, nanos }) })
        };
        assert_eq!(of(2, 500_000_000), Duration::from_millis(2500));
        assert_eq!(of(0, 1), SHORTEST);
        assert_eq!(of(i64::MAX, i32::MAX), LONGEST);
        for unsaid in [of(0, 0), of(-1, 0), of(0, -5), interval(LoadReportRequest::default())] {
            assert_eq!(unsaid, USUAL);
        }
    }
}
