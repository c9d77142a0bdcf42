//! The charts of the study.

use super::density::Density;
use super::law::Kind;
use super::point::{Measured, Prediction, Speakers, Study, Way};
use harness::chart::{Chart, Series};

/// A point with what the equations say of it.
type Pair = (Measured, Option<Prediction>);

/// Every chart, by the name of its file.
pub fn all(study: &Study) -> Vec<(&'static str, Chart)> {
    vec![
        ("density.svg", density(study)),
        ("density-parked.svg", parked(study)),
        ("density-random.svg", random(study)),
        ("latency.svg", latency(study)),
        ("delays.svg", delays(study)),
        ("place.svg", place(study)),
        ("overhead.svg", overhead(study)),
        ("think.svg", think(study)),
    ]
}

fn colour(speakers: Speakers) -> usize {
    match speakers {
        Speakers::SemiActive(place) => place as usize - 1,
        Speakers::Active => 3,
    }
}

/// Points in which all is fixed, and the client does not think.
fn served(study: &Study, way: Way, speakers: Speakers) -> impl Iterator<Item = &Pair> {
    study.points.iter().filter(move |(measured, _)| {
        let point = &measured.point;
        let fixed = point.service.kind == Kind::Fixed && point.think.kind == Kind::Fixed;
        fixed && point.think.mean_us == 0.0 && point.way == way && point.speakers == speakers
    })
}

fn everybody() -> [Speakers; 4] {
    [Speakers::SemiActive(1), Speakers::SemiActive(2), Speakers::SemiActive(3), Speakers::Active]
}

/// A line through one figure of each point, by the server time.
fn by_service<'a>(
    name: impl Into<String>,
    colour: usize,
    points: impl Iterator<Item = &'a Pair>,
    figure: impl Fn(&'a Pair) -> Option<f64>,
) -> Series {
    let points = points.filter_map(|pair| Some((pair.0.point.service.mean_us, figure(pair)?)));
    Series::line(name, colour, points.collect())
}

fn curve(name: impl Into<String>, colour: usize, density: &Density) -> Series {
    Series::line(name, colour, density.curve().collect())
}

/// The series of both ways of the token: the server at 2, and active; with a number for its colour.
fn ways() -> impl Iterator<Item = (usize, Way, Speakers)> {
    let both = |way| [(way, Speakers::SemiActive(2)), (way, Speakers::Active)];
    let all = [both(Way::Classic), both(Way::Parked)].into_iter().flatten();
    all.enumerate().map(|(colour, (way, speakers))| (colour, way, speakers))
}

fn name_of(way: Way, speakers: Speakers) -> String {
    format!("{way:?}: {}", speakers.style()).to_lowercase()
}

const LATENCY: &str = "latency of a call, µs";
const SERVICE: &str = "server time, µs";
const DENSITY: &str = "probability density, 1/µs";
const PEAK: &str = "Where the density of the latency has its peak";

fn density(study: &Study) -> Chart {
    let first = |speakers| served(study, Way::Classic, speakers).next();
    let series = everybody().into_iter().filter_map(|speakers| {
        Some(curve(speakers.name(), colour(speakers), &first(speakers)?.0.latency))
    });
    let title = "The token always circulates; nobody thinks, nobody serves";
    Chart::new(title, LATENCY, DENSITY, series.collect())
}

fn parked(study: &Study) -> Chart {
    let series = ways().filter_map(|(colour, way, speakers)| {
        let (measured, _) = served(study, way, speakers).next()?;
        Some(curve(name_of(way, speakers), colour, &measured.latency))
    });
    let title = "What parking is worth; nobody thinks, nobody serves";
    Chart::new(title, LATENCY, DENSITY, series.collect())
}

fn random(study: &Study) -> Chart {
    let random = study.points.iter().filter(|(measured, _)| {
        measured.point.think.kind == Kind::Exponential && measured.point.way == Way::Classic
    });
    let mean = |measured: &Measured| measured.point.think.mean_us;
    let longest = random.clone().map(|(measured, _)| mean(measured)).fold(0.0, f64::max);
    let (mut series, mut to) = (Vec::new(), 0.0_f64);
    for (measured, predicted) in random.filter(|(measured, _)| mean(measured) == longest) {
        let (name, colour) = (measured.point.speakers.name(), colour(measured.point.speakers));
        let predicted = predicted.as_ref().map(|predicted| {
            curve(format!("{name}, by the equations"), colour, &predicted.latency).dashed()
        });
        to = measured.latency.curve().map(|(at, _)| at).fold(to, f64::max);
        series.push(curve(name, colour, &measured.latency));
        series.extend(predicted);
    }
    let title =
        format!("The token always circulates; exponential think time, {longest:.0} µs on average");
    Chart { x_to: (to > 0.0).then_some(to), ..Chart::new(title, LATENCY, DENSITY, series) }
}

/// A line for each of the parked ring's two.
fn both_parked(study: &Study, figure: impl Fn(&Pair) -> Option<f64>) -> Vec<Series> {
    let line = |(speakers, colour): (Speakers, usize)| {
        let name = format!("parked, {}", speakers.style());
        by_service(name, colour, served(study, Way::Parked, speakers), &figure).marked()
    };
    [(Speakers::SemiActive(2), 4), (Speakers::Active, 5)].map(line).into()
}

fn latency(study: &Study) -> Chart {
    let mut series = Vec::new();
    for speakers in everybody() {
        let points = || served(study, Way::Classic, speakers);
        let (name, colour) = (speakers.name(), colour(speakers));
        let predicted = |pair: &Pair| pair.1.as_ref()?.latency.mean();
        let predicted = by_service(format!("{name}, (7)"), colour, points(), predicted).dashed();
        series.push(by_service(name, colour, points(), |pair| pair.0.latency.peak()).marked());
        series.push(predicted);
    }
    series.extend(both_parked(study, |pair| pair.0.latency.peak()));
    series.retain(|series| !series.points.is_empty());
    Chart::new(PEAK, SERVICE, "peak, µs", series)
}

fn delays(study: &Study) -> Chart {
    type Delay = fn(&Pair) -> Option<f64>;
    let sides: [(&str, Delay, Delay); 2] = [
        ("request", |pair| pair.0.client_delay.mean(), |pair| pair.1.as_ref()?.client_delay.mean()),
        ("reply", |pair| pair.0.server_delay.mean(), |pair| pair.1.as_ref()?.server_delay.mean()),
    ];
    let mut series = Vec::new();
    for (speakers, first) in [(Speakers::SemiActive(2), 0), (Speakers::Active, 2)] {
        let points = || served(study, Way::Classic, speakers);
        for (place, (side, measured, predicted)) in sides.into_iter().enumerate() {
            let (name, colour) = (format!("{}, {side}", speakers.style()), first + place);
            let predicted = by_service(format!("{name}, (2), (3)"), colour, points(), predicted);
            series.push(by_service(name, colour, points(), measured).marked());
            series.push(predicted.dashed());
        }
    }
    let title = "How long messages wait for the token, the server at 2";
    Chart::new(title, SERVICE, "mean send delay, µs", series)
}

fn place(study: &Study) -> Chart {
    let points = || served(study, Way::Classic, Speakers::Active);
    let measured = by_service("active", 3, points(), |pair| Some(pair.0.position())).marked();
    let predicted = |pair: &Pair| Some(pair.1.as_ref()?.position);
    let predicted = by_service("by the equations", 3, points(), predicted).dashed();
    let series = vec![measured, predicted];
    Chart::new("Whose reply goes out first", SERVICE, "mean place on the ring", series)
}

fn overhead(study: &Study) -> Chart {
    let over = |pair: &Pair| {
        let alone = study.alone(&pair.0.point.service)?;
        Some((pair.0.latency.median()? / alone - 1.0) * 100.0)
    };
    let line = |speakers: Speakers| {
        let points = served(study, Way::Classic, speakers);
        by_service(speakers.name(), colour(speakers), points, over).marked()
    };
    let mut series = Vec::from(everybody().map(line));
    series.extend(both_parked(study, over));
    let title = "Above a call of a stateless replica by a client outside";
    Chart::new(title, SERVICE, "overhead, %", series)
}

fn think(study: &Study) -> Chart {
    let mut series = Vec::new();
    for (colour, way, speakers) in ways() {
        let points = || {
            study.points.iter().filter(move |(measured, _)| {
                let point = &measured.point;
                let fixed = point.think.kind == Kind::Fixed && point.service.kind == Kind::Fixed;
                let same = point.way == way && point.speakers == speakers;
                fixed && same && point.service.mean_us == 0.0
            })
        };
        let line = |figure: fn(&Pair) -> Option<f64>| {
            let at = |pair: &Pair| Some((pair.0.point.think.mean_us, figure(pair)?));
            points().filter_map(at).collect::<Vec<_>>()
        };
        let name = name_of(way, speakers);
        let predicted = line(|pair| pair.1.as_ref()?.latency.mean());
        series.push(Series::line(&*name, colour, line(|pair| pair.0.latency.peak())).marked());
        if !predicted.is_empty() {
            series.push(Series::line(format!("{name}, (6)"), colour, predicted).dashed());
        }
    }
    Chart::new(PEAK, "think time, µs", "peak, µs", series)
}
