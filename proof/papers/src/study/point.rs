//! One point of the study: its measurements, and the results of the equations for it.

use serde::Serialize;
use steadfast::NodeId;
use steadfast::status::Status;
use wire::Random;
use wire::histogram::Times;

use super::density::Density;
use super::law::{Kind, Law};
use super::model::{Conversation, Parts, Predicted, Ring};
use super::services::Made;

/// Which way the token goes when nobody wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Always round, as in the paper.
    Classic,
    /// Nowhere.
    Parked,
}

/// The replicas that send for the two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speakers {
    /// The primaries: the caller's at place 0, the callee's at this place.
    SemiActive(u32),
    /// The replica that has the token first.
    Active,
}

impl Speakers {
    /// As it is told.
    pub fn name(self) -> String {
        match self {
            Speakers::SemiActive(place) => format!("semi-active, server at {place}"),
            Speakers::Active => "active".into(),
        }
    }

    /// The style as groups are named by it.
    pub fn style(self) -> &'static str {
        match self {
            Speakers::SemiActive(_) => "semi-active",
            Speakers::Active => "active",
        }
    }
}

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    pub way: Way,
    pub speakers: Speakers,
    pub think: Law,
    pub service: Law,
}

/// A quantity that was measured, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    pub n: u64,
    pub peak: f64,
    pub median: f64,
    pub mean: f64,
}

impl Figures {
    fn of(density: &Density) -> Option<Figures> {
        Some(Figures {
            n: density.count(),
            peak: density.peak()?,
            median: density.median()?,
            mean: density.mean()?,
        })
    }
}

/// The statuses of all nodes before a point, or after it.
pub struct Look(pub Vec<Status>);

/// The measurements of a point.
pub struct Measured {
    pub point: Point,
    /// Rotations just before, when nobody sent anything.
    pub idle: Density,
    pub latency: Density,
    pub client_delay: Density,
    pub server_delay: Density,
    pub services: Density,
    pub think: Density,
    pub rotations: Density,
    /// How many replies the node at each place has sent.
    pub senders: Vec<u64>,
    /// Requests, and replies, that were sent once more than needed.
    pub copies: (u64, u64),
    /// Messages of calls in each rotation.
    pub messages: f64,
}

/// Times of all nodes, together.
fn together(times: impl Iterator<Item = Times>) -> Density {
    let mut all = wire::histogram::Histogram::default();
    times.for_each(|times| all.add(&times));
    Density::of_times(&all.times())
}

fn count(times: &Times) -> u64 {
    times.spans().map(|(_, count)| count).sum()
}

impl Measured {
    /// From the calls of a caller's replica, and from the growth of the nodes' figures meanwhile.
    pub fn new(
        point: Point,
        idle: Density,
        made: &[Made],
        (before, after): (&Look, &Look),
    ) -> Measured {
        let pairs = || before.0.iter().zip(&after.0);
        let grown = |of: fn(&Status) -> &Times| pairs().map(move |(a, b)| of(b).since(of(a)));
        let senders: Vec<u64> =
            grown(|status| &status.nested.end_delays).map(|times| count(&times)).collect();
        let requests: u64 =
            grown(|status| &status.nested.call_delays).map(|times| count(&times)).sum();
        let rotations = pairs().map(|(a, b)| {
            let earlier = a.ring.rotations.clone().unwrap_or_default();
            b.ring.rotations.as_ref().map_or_else(Times::default, |times| times.since(&earlier))
        });
        // The first node's tell enough: all see the same token.
        let rotations = rotations.take(1).next().unwrap_or_default();
        // On the last node there is no caller, whose own client may ask again.
        let last = |of: fn(&Status) -> u64| {
            pairs().next_back().map_or(0, |(before, after)| of(after) - of(before))
        };
        let copies = (last(|node| node.counters.copies), last(|node| node.counters.nested_copies));
        let sent = requests + senders.iter().sum::<u64>() + copies.0 + copies.1;
        // A task's first call begins wherever the token is.
        let steady = made.iter().filter(|call| call.think.is_some());
        Measured {
            point,
            idle,
            latency: Density::of(steady.clone().map(|call| call.latency)),
            client_delay: together(grown(|status| &status.nested.call_delays)),
            server_delay: together(grown(|status| &status.nested.end_delays)),
            services: together(grown(|status| &status.nested.services)),
            think: Density::of(steady.filter_map(|call| call.think)),
            messages: sent as f64 / count(&rotations).max(1) as f64,
            rotations: Density::of_times(&rotations),
            senders,
            copies,
        }
    }

    /// The mean place of the senders of replies, as in the paper's figure 4 (b).
    pub fn position(&self) -> f64 {
        mean_place(self.senders.iter().enumerate().map(|(place, count)| (place as u32, *count)))
    }

    /// The share of requests and of replies that were sent more than once.
    pub fn copied(&self) -> (f64, f64) {
        let calls = self.senders.iter().sum::<u64>().max(1) as f64;
        (self.copies.0 as f64 / calls, self.copies.1 as f64 / calls)
    }
}

fn mean_place(places: impl Iterator<Item = (u32, u64)>) -> f64 {
    let (sum, count) = places.fold((0.0, 0), |(sum, all), (place, count)| {
        (sum + f64::from(place) * count as f64, all + count)
    });
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The constants of the equations, measured once for a ring. All are medians: a few calls that were
/// held up do not move them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Calibration {
    /// A rotation in which nothing is sent.
    pub idle_rotation: f64,
    /// T_0.
    pub pass: f64,
    /// T_m: the time that a message adds to a rotation.
    pub message: f64,
    /// How much longer than that it takes until a message is delivered elsewhere. Where senders
    /// share a medium, as in the paper, the token waits for the message's end; on other networks
    /// both are under way at the same time.
    pub flight: f64,
    /// The time of handlers that do nothing: two hand-overs between threads.
    pub handler: f64,
}

impl Calibration {
    /// From a point in which nobody thinks and nobody serves.
    pub fn new(nodes: u32, point: &Measured) -> Option<Calibration> {
        let idle_rotation = point.idle.median()?;
        let handler = point.services.median()?;
        let delays = point.client_delay.median()? + point.server_delay.median()?;
        // By equations (4) and (1).
        let message = (point.rotations.median()? - idle_rotation) / point.messages;
        let under_way = (point.latency.median()? - delays - 2.0 * handler) / 2.0;
        let pass = idle_rotation / f64::from(nodes);
        Some(Calibration { idle_rotation, pass, message, flight: under_way - message, handler })
    }

    /// T_cproc of a client that does not think, T_sproc of a server to which a call takes so long.
    fn processing(&self, handler: f64) -> f64 {
        self.flight + handler
    }
}

/// A figure by an equation, and as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The number of the paper's equation: (1) to (7).
    pub equation: u8,
    pub predicted: f64,
    pub measured: f64,
    /// The error in percent of the measured value.
    pub error: f64,
}

impl Beside {
    fn new(equation: u8, predicted: f64, measured: f64) -> Beside {
        let error = (predicted / measured - 1.0) * 100.0;
        Beside { equation, predicted, measured, error }
    }
}

/// The results of the equations for a point.
pub struct Prediction {
    pub latency: Density,
    pub client_delay: Density,
    pub server_delay: Density,
    /// As [`Measured::position`].
    pub position: f64,
    /// Each equation beside its measurement.
    pub equations: Vec<Beside>,
}

/// Calls that are computed.
const COMPUTED: usize = 10_000;

impl Prediction {
    pub fn new(nodes: u32, known: &Calibration, measured: &Measured) -> Option<Prediction> {
        let pass = measured.idle.median()? / f64::from(nodes);
        let ring = Ring { nodes, pass, message: known.message };
        let Point { speakers, think, service, .. } = measured.point;
        // As in the paper, how long somebody was busy is measured: sleeps last longer than they
        // should.
        let beyond = measured.think.median()? - think.median();
        let server = known.processing(measured.services.median()? - service.median());
        let (clients, servers) = match speakers {
            Speakers::SemiActive(place) => (vec![0], vec![place]),
            Speakers::Active => ((0..nodes - 1).collect(), (1..nodes).collect()),
        };
        let client = known.processing(known.handler + beyond);
        let conversation = Conversation { clients, servers, client, server, think, service };
        let calls = conversation.calls(&ring, COMPUTED, &mut Random::new(1));
        let density = |of: fn(&Predicted) -> f64| Density::of(calls.iter().map(of));
        let latency = |call: &Predicted| {
            // The think time beyond its law is no part of the latency.
            let parts = Parts { client: known.processing(known.handler), ..call.parts };
            ring.latency(&parts)
        };
        let mut prediction = Prediction {
            latency: Density::of(calls.iter().map(latency)),
            client_delay: density(|call| call.parts.client_delay),
            server_delay: density(|call| call.parts.server_delay),
            position: mean_place(calls.iter().map(|call| (call.sender, 1))),
            equations: Vec::new(),
        };
        prediction.equations = prediction.beside(&ring, known, measured, &calls, beyond)?;
        Some(prediction)
    }

    fn beside(
        &self,
        ring: &Ring,
        known: &Calibration,
        measured: &Measured,
        calls: &[Predicted],
        beyond: f64,
    ) -> Option<Vec<Beside>> {
        let Point { speakers, think, service, .. } = measured.point;
        let fixed = think.kind == Kind::Fixed && service.kind == Kind::Fixed;
        // For fixed times the peak is the best figure, as in the paper; for random ones it is a
        // poor one.
        let of = |density: &Density| if fixed { density.peak() } else { density.mean() };
        let parts = Parts {
            client: known.processing(known.handler),
            server: known.processing(of(&measured.services)?),
            client_delay: of(&measured.client_delay)?,
            server_delay: of(&measured.server_delay)?,
        };
        let latency = of(&measured.latency)?;
        let mut all = vec![Beside::new(1, ring.latency(&parts), latency)];
        let delays = [
            (2, &self.server_delay, parts.server_delay),
            (3, &self.client_delay, parts.client_delay),
        ];
        for (equation, predicted, measured) in delays {
            all.push(Beside::new(equation, of(predicted)?, measured));
        }
        let rotation = ring.rotation(measured.messages);
        all.push(Beside::new(4, rotation, measured.rotations.mean()?));
        if matches!(speakers, Speakers::SemiActive(_)) {
            let whole =
                calls.iter().map(|call| f64::from(call.whole)).sum::<f64>() / calls.len() as f64;
            let extra = (measured.copies.0 + measured.copies.1) as f64
                / measured.rotations.count().max(1) as f64;
            let thought = think.mean_us + beyond;
            all.push(Beside::new(5, ring.latency_of_rotations(whole, extra, thought), latency));
            all.push(Beside::new(6, ring.latency_alone(whole, thought), latency));
            if think.mean_us == 0.0 {
                all.push(Beside::new(7, ring.latency_alone(whole, 0.0), latency));
            }
        }
        Some(all)
    }
}

/// All that was measured.
pub struct Study {
    pub calibration: Calibration,
    pub points: Vec<(Measured, Option<Prediction>)>,
    /// Calls that nobody orders: the server time, and the median, in microseconds.
    pub alone: Vec<(f64, f64)>,
}

impl Study {
    /// The time of an unreplicated call with this server time.
    pub fn alone(&self, service: &Law) -> Option<f64> {
        let same = |(time, _): &&(f64, f64)| (time - service.mean_us).abs() < 1e-6;
        self.alone
            .iter()
            .find(same)
            .filter(|_| service.kind == Kind::Fixed)
            .map(|(_, alone)| *alone)
    }
}

/// One JSON object of all that is known of a point.
pub fn line(
    measured: &Measured,
    predicted: Option<&Prediction>,
    alone: Option<f64>,
) -> serde_json::Value {
    let figures = |density: &Density| Figures::of(density);
    let (requests, replies) = measured.copied();
    let latency = figures(&measured.latency);
    let overhead = alone.zip(latency).map(|(alone, latency)| latency.median / alone - 1.0);
    serde_json::json!({
        "point": measured.point,
        "style": measured.point.speakers.name(),
        "thinks": measured.point.think.to_string(),
        "serves": measured.point.service.to_string(),
        "latency_us": latency,
        "client_delay_us": figures(&measured.client_delay),
        "server_delay_us": figures(&measured.server_delay),
        "service_us": figures(&measured.services),
        "think_us": figures(&measured.think),
        "idle_rotation_us": figures(&measured.idle),
        "rotation_us": figures(&measured.rotations),
        "messages_per_rotation": measured.messages,
        "senders": measured.senders,
        "position": measured.position(),
        "copied_requests": requests,
        "copied_replies": replies,
        "unreplicated_us": alone,
        "overhead": overhead,
        "predicted": predicted.map(|predicted| serde_json::json!({
            "latency_us": figures(&predicted.latency),
            "client_delay_us": figures(&predicted.client_delay),
            "server_delay_us": figures(&predicted.server_delay),
            "position": predicted.position,
            "equations": predicted.equations,
        })),
    })
}

/// The place of a node on the ring: in order of ids, from 0.
pub fn node_at(place: u32) -> NodeId {
    NodeId(place + 1)
}
