//! The runs as charts: figure 2 of each way to learn, and of one number of clients the time around
//! the first crash, as figures 9 and 10.

use super::callers::Made;
use super::findings::{Course, Fault, Span};
use super::way::Way;
use harness::chart::{Chart, Series};
use harness::figures::quantile;
use harness::name;

/// As many clients as in figures 9 and 10: of the runs the nearest is drawn.
const PAPER_CLIENTS: usize = 56;

/// Calls are drawn together that end within so many microseconds: some spans of the quota.
const BIN: u64 = 50_000;

/// So many microseconds before the crash are drawn.
const BEFORE: u64 = 400_000;

/// All charts, with the names of their files.
pub fn all(courses: &[Course]) -> Vec<(String, Chart)> {
    let mut charts = Vec::new();
    for way in Way::ALL {
        let runs: Vec<&Course> = courses.iter().filter(|course| course.way == way).collect();
        let nearest = runs.iter().min_by_key(|course| course.clients.abs_diff(PAPER_CLIENTS));
        let Some(course) = nearest else { continue };
        charts.push((format!("response-{}.svg", name(way)), response(way, &runs)));
        if let [fault, ..] = &course.faults[..] {
            charts.push((format!("course-{}.svg", name(way)), around(course, fault)));
            charts.push((format!("servers-{}.svg", name(way)), servers(course, fault)));
        }
    }
    charts
}

/// Response time by the servers that have returned, which are those that clients do not know
/// without an update.
fn response(way: Way, runs: &[&Course]) -> Chart {
    let lines = runs.iter().enumerate().map(|(colour, course)| {
        let means = course.phases.iter().map(|span| course.steady(*span).mean_ms).enumerate();
        let points = means.map(|(returned, mean)| (returned as f64, mean)).collect();
        Series::line(format!("{} clients", course.clients), colour, points).marked()
    });
    Chart::new(
        format!("{}: calls after servers crashed and returned", learns(way)),
        "servers of four that have returned",
        "mean response time, ms",
        lines.collect(),
    )
}

fn learns(way: Way) -> &'static str {
    match way {
        Way::None => "No update",
        Way::Periodic => "Periodic refresh",
        Way::View => "View refresh",
        Way::Push => "View refresh, and told by servers",
    }
}

/// The span that is drawn around a fault: until the middle of the measurement after the return.
fn drawn(course: &Course, fault: &Fault) -> Span {
    let next = course.phases.iter().find(|span| span.from > fault.returned);
    let to = next.map_or(fault.returned + BEFORE, |span| (span.from + span.to) / 2);
    Span { from: fault.crashed.saturating_sub(BEFORE), to }
}

/// Response time around a crash and a return.
fn around(course: &Course, fault: &Fault) -> Chart {
    let span = drawn(course, fault);
    let each = |figure: &dyn Fn(Vec<f64>) -> Option<f64>| -> Vec<(f64, f64)> {
        let bins = bins(course, span, |_| true).into_iter();
        let took = |(at, took): (f64, Vec<f64>)| Some((at, figure(took)?));
        bins.filter_map(took).collect()
    };
    let mean =
        |took: Vec<f64>| (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64);
    let series = vec![
        Series::line("mean", 0, each(&mean)),
        Series::line("95th percentile", 4, each(&|took| quantile(took, 0.95))),
    ];
    chart(course, fault, span, "how long calls took", "response time, ms", series)
}

/// The servers that answer, around a crash and a return.
fn servers(course: &Course, fault: &Fault) -> Chart {
    let span = drawn(course, fault);
    let answered: Vec<u32> = course.answered(span).map(|made| made.by.0).collect();
    let servers = 1..=answered.into_iter().max().unwrap_or(0);
    let series = servers.map(|server| {
        let bins = bins(course, span, |made| made.by.0 == server);
        let rate = bins.into_iter().map(|(at, took)| (at, took.len() as f64 * 1e6 / BIN as f64));
        Series::line(format!("server {server}"), server as usize - 1, rate.collect())
    });
    let series = series.collect();
    chart(course, fault, span, "calls by the server that answered", "calls/s", series)
}

/// For each bin of a span: its middle in seconds from the span's beginning, and the milliseconds of
/// the calls that ended in it.
fn bins(course: &Course, span: Span, wanted: impl Fn(&Made) -> bool) -> Vec<(f64, Vec<f64>)> {
    let count = (span.to - span.from) / BIN;
    let middle = |bin: u64| ((bin * BIN + BIN / 2) as f64 / 1e6, Vec::new());
    let mut bins: Vec<(f64, Vec<f64>)> = (0..count).map(middle).collect();
    for made in course.answered(span).filter(|made| wanted(made)) {
        let bin = (made.at + made.took - span.from) / BIN;
        if let Some((_, took)) = bins.get_mut(bin as usize) {
            took.push(made.took as f64 / 1e3);
        }
    }
    bins
}

/// With a dashed line where the server crashed, and one where it had returned.
fn chart(
    course: &Course,
    fault: &Fault,
    span: Span,
    what: &str,
    y: &str,
    mut series: Vec<Series>,
) -> Chart {
    let most = series.iter().flat_map(|it| &it.points).map(|(_, y)| *y).fold(0.0, f64::max);
    let moment = |name: &str, colour, at: u64| {
        let x = (at - span.from) as f64 / 1e6;
        Series::line(name, colour, vec![(x, 0.0), (x, most)]).dashed()
    };
    series.push(moment("server 1 crashes", 6, fault.crashed));
    series.push(moment("it is back", 5, fault.returned));
    let title = format!("{}, {} clients: {what}", learns(course.way), course.clients);
    let x_to = Some((span.to - span.from) as f64 / 1e6);
    Chart { x_to, ..Chart::new(title, "time, s", y, series) }
}
