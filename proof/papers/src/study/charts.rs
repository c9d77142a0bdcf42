//! What is drawn of the study.

use super::Study;
use super::density::Density;
use super::law::Kind;
use super::point::{Measured, Prediction, Speakers, Way};
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
    name: String,
    colour: usize,
    dashed: bool,
    points: impl Iterator<Item = &'a Pair>,
    figure: impl Fn(&'a Pair) -> Option<f64>,
) -> Series {
    let points = points.filter_map(|pair| Some((pair.0.point.service.mean_us, figure(pair)?)));
    Series { name, colour, dashed, marked: !dashed, points: points.collect() }
}

fn curve(name: String, colour: usize, dashed: bool, density: &Density) -> Series {
    Series { name, colour, dashed, marked: false, points: density.curve().collect() }
}

fn chart(title: &str, x: &str, y: &str, series: Vec<Series>) -> Chart {
    Chart { title: title.into(), x: x.into(), y: y.into(), x_to: None, series }
}

const LATENCY: &str = "latency of a call, µs";
const SERVICE: &str = "server time, µs";
const DENSITY: &str = "probability density, 1/µs";

fn density(study: &Study) -> Chart {
    let first = |speakers| served(study, Way::Classic, speakers).next();
    let series = everybody().into_iter().filter_map(|speakers| {
        Some(curve(speakers.name(), colour(speakers), false, &first(speakers)?.0.latency))
    });
    chart(
        "The token always circulates; nobody thinks, nobody serves",
        LATENCY,
        DENSITY,
        series.collect(),
    )
}

fn parked(study: &Study) -> Chart {
    let mut series = Vec::new();
    for (way, first) in [(Way::Classic, 0), (Way::Parked, 2)] {
        for (place, speakers) in [Speakers::SemiActive(2), Speakers::Active].into_iter().enumerate()
        {
            if let Some((measured, _)) = served(study, way, speakers).next() {
                let name = format!("{way:?}: {}", speakers.style()).to_lowercase();
                series.push(curve(name, first + place, false, &measured.latency));
            }
        }
    }
    chart("What parking is worth; nobody thinks, nobody serves", LATENCY, DENSITY, series)
}

fn random(study: &Study) -> Chart {
    let mut series = Vec::new();
    let random = study.points.iter().filter(|(measured, _)| {
        measured.point.think.kind == Kind::Exponential && measured.point.way == Way::Classic
    });
    let longest =
        random.clone().map(|(measured, _)| measured.point.think.mean_us).fold(0.0, f64::max);
    let mut to = 0.0_f64;
    for (measured, predicted) in
        random.filter(|(measured, _)| measured.point.think.mean_us == longest)
    {
        let (name, colour) = (measured.point.speakers.name(), colour(measured.point.speakers));
        series.push(curve(name.clone(), colour, false, &measured.latency));
        to = measured.latency.curve().map(|(at, _)| at).fold(to, f64::max);
        if let Some(predicted) = predicted {
            series.push(curve(
                format!("{name}, by the equations"),
                colour,
                true,
                &predicted.latency,
            ));
        }
    }
    let title =
        format!("The token always circulates; exponential think time, {longest:.0} µs on average");
    Chart { x_to: (to > 0.0).then_some(to), ..chart(&title, LATENCY, DENSITY, series) }
}

fn latency(study: &Study) -> Chart {
    let mut series = Vec::new();
    for speakers in everybody() {
        let points = || served(study, Way::Classic, speakers);
        let (name, colour) = (speakers.name(), colour(speakers));
        series
            .push(by_service(name.clone(), colour, false, points(), |pair| pair.0.latency.peak()));
        let predicted = |pair: &Pair| pair.1.as_ref()?.latency.mean();
        series.push(by_service(format!("{name}, (7)"), colour, true, points(), predicted));
    }
    for (speakers, colour) in [(Speakers::SemiActive(2), 4), (Speakers::Active, 5)] {
        let points = served(study, Way::Parked, speakers);
        let name = format!("parked, {}", speakers.style());
        series.push(by_service(name, colour, false, points, |pair| pair.0.latency.peak()));
    }
    let series = series.into_iter().filter(|series| !series.points.is_empty());
    chart("Where the density of the latency has its peak", SERVICE, "peak, µs", series.collect())
}

fn delays(study: &Study) -> Chart {
    let mut series = Vec::new();
    for (speakers, first) in [(Speakers::SemiActive(2), 0), (Speakers::Active, 2)] {
        let points = || served(study, Way::Classic, speakers);
        let style = speakers.style();
        type Delay = fn(&Pair) -> Option<f64>;
        let sides: [(&str, Delay, Delay); 2] = [
            (
                "request",
                |pair| pair.0.client_delay.mean(),
                |pair| pair.1.as_ref()?.client_delay.mean(),
            ),
            (
                "reply",
                |pair| pair.0.server_delay.mean(),
                |pair| pair.1.as_ref()?.server_delay.mean(),
            ),
        ];
        for (place, (side, measured, predicted)) in sides.into_iter().enumerate() {
            let name = format!("{style}, {side}");
            series.push(by_service(name.clone(), first + place, false, points(), measured));
            series.push(by_service(
                format!("{name}, (2), (3)"),
                first + place,
                true,
                points(),
                predicted,
            ));
        }
    }
    chart(
        "How long messages wait for the token, the server at 2",
        SERVICE,
        "mean send delay, µs",
        series,
    )
}

fn place(study: &Study) -> Chart {
    let points = || served(study, Way::Classic, Speakers::Active);
    let measured = by_service("active".into(), 3, false, points(), |pair| Some(pair.0.position()));
    let predicted = |pair: &Pair| Some(pair.1.as_ref()?.position);
    let predicted = by_service("by the equations".into(), 3, true, points(), predicted);
    chart(
        "Whose reply goes out first",
        SERVICE,
        "mean place on the ring",
        vec![measured, predicted],
    )
}

fn overhead(study: &Study) -> Chart {
    let over = |pair: &Pair| {
        let alone = study.alone(&pair.0.point.service)?;
        Some((pair.0.latency.median()? / alone - 1.0) * 100.0)
    };
    let mut series: Vec<Series> = everybody()
        .map(|speakers| {
            let points = served(study, Way::Classic, speakers);
            by_service(speakers.name(), colour(speakers), false, points, over)
        })
        .into();
    for (speakers, colour) in [(Speakers::SemiActive(2), 4), (Speakers::Active, 5)] {
        let points = served(study, Way::Parked, speakers);
        series.push(by_service(
            format!("parked, {}", speakers.style()),
            colour,
            false,
            points,
            over,
        ));
    }
    chart("Above a call of a stateless replica by a client outside", SERVICE, "overhead, %", series)
}

fn think(study: &Study) -> Chart {
    let mut series = Vec::new();
    for (way, first) in [(Way::Classic, 0), (Way::Parked, 2)] {
        for (place, speakers) in [Speakers::SemiActive(2), Speakers::Active].into_iter().enumerate()
        {
            let points = || {
                study.points.iter().filter(move |(measured, _)| {
                    let point = &measured.point;
                    let fixed =
                        point.think.kind == Kind::Fixed && point.service.kind == Kind::Fixed;
                    let same = point.way == way && point.speakers == speakers;
                    fixed && same && point.service.mean_us == 0.0
                })
            };
            let line = |figure: fn(&Pair) -> Option<f64>| {
                points()
                    .filter_map(|pair| Some((pair.0.point.think.mean_us, figure(pair)?)))
                    .collect()
            };
            let name = format!("{way:?}: {}", speakers.style()).to_lowercase();
            let colour = first + place;
            let measured = line(|pair| pair.0.latency.peak());
            series.push(Series {
                name: name.clone(),
                colour,
                dashed: false,
                marked: true,
                points: measured,
            });
            let predicted: Vec<(f64, f64)> = line(|pair| pair.1.as_ref()?.latency.mean());
            if !predicted.is_empty() {
                let name = format!("{name}, (6)");
                series.push(Series {
                    name,
                    colour,
                    dashed: true,
                    marked: false,
                    points: predicted,
                });
            }
        }
    }
    chart("Where the density of the latency has its peak", "think time, µs", "peak, µs", series)
}
