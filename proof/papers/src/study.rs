//! The latency study of the FT-CORBA paper, repeated: groups that call groups, on a ring whose
//! token always circulates, as the paper's, and on ours, where it parks (`docs/study.md`).

use std::iter;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast::admin::Client as Admin;
use steadfast::{Client, Invocation, NodeId};

use harness::cluster::{Cluster, Plan};
use harness::echo::Counted;
use harness::wires::Wires;
use harness::{Experiment, Outcome, Run, ensure, machine, report};
use node::Node;

mod cables;
mod charts;
mod density;
mod law;
mod model;
mod point;
mod services;

use density::Density;
use law::{Kind, Law};
use point::{Calibration, Look, Measured, Point, Prediction, Speakers, Study, Way, node_at};
use services::{CALLEES, CALLERS, Callee, Caller, MAKE, Made, SERVE, Side, Task};

/// The ring: three callers and three callees, as in the paper the first client on a node of its
/// own.
const NODES: u32 = 4;
const REPLICAS: u32 = 3;

/// As many calls in one task as a handler may make.
const BATCH: usize = 250;

/// Calls before anything is counted.
const WARM: u8 = 50;

/// The idle ring is observed for so long before each point: other load on the machine may change a
/// pass of the token.
const IDLE: Duration = Duration::from_millis(200);

/// A node that is silent for so long is gone. No fault is measured here.
const TIMEOUT: Duration = Duration::from_secs(20);

const DEADLINE: Duration = Duration::from_secs(50);

/// So often a point is measured if the ring changes meanwhile.
const ATTEMPTS: usize = 3;

/// The latency study of the FT-CORBA paper: groups that call groups, measured beside its equations
/// (1) to (7).
#[derive(Debug, clap::Args)]
pub struct Options {
    /// All points of the study, with 10,000 calls each: most of an hour.
    #[arg(long)]
    full: bool,
    /// Calls of each point [default: 400; 10,000 with --full].
    #[arg(long)]
    calls: Option<usize>,
    /// Server times, in rotations of the idle ring [default: 0 to 2 by halves; 0 to 3 by quarters
    /// with --full].
    #[arg(long, value_delimiter = ',')]
    services: Vec<f64>,
    /// Fixed think times, in such rotations [default: 1,2; 0.5 to 3 by halves with --full].
    #[arg(long, value_delimiter = ',')]
    thinks: Vec<f64>,
    /// Means of random think and server times, in such rotations [default: 1; 0.5,1,2 with --full].
    #[arg(long, value_delimiter = ',')]
    random: Vec<f64>,
    /// Bytes of each request and reply.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Microseconds that a datagram is under way between two nodes; 0: as on loopback.
    #[arg(long, default_value_t = 100)]
    delay_us: u64,
    /// A folder for study.json and the charts.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// The grid of measured points, in rotations.
struct Grid {
    calls: usize,
    services: Vec<f64>,
    thinks: Vec<f64>,
    random: Vec<f64>,
}

impl Grid {
    fn of(options: &Options, run: &Run) -> Grid {
        let or = |asked: &Vec<f64>, full: &[f64], short: &[f64]| match options.full {
            _ if !asked.is_empty() => asked.clone(),
            true => full.to_vec(),
            false => short.to_vec(),
        };
        let quarters: Vec<f64> = (0..=12).map(|quarter| f64::from(quarter) / 4.0).collect();
        let halves: Vec<f64> = (1..=6).map(|half| f64::from(half) / 2.0).collect();
        Grid {
            calls: options.calls.unwrap_or(if options.full { 10_000 } else { 400 }),
            services: or(&options.services, &quarters, &[0.0, 0.5, 1.0, 1.5, 2.0]),
            thinks: or(&options.thinks, &halves, run.sized(&[1.0, 2.0], &[])),
            random: or(&options.random, &[0.5, 1.0, 2.0], run.sized(&[1.0], &[])),
        }
    }

    /// The points of a ring, with a rotation of so many microseconds.
    fn points(&self, way: Way, rotation: f64) -> Vec<Point> {
        let idle = Law::default();
        let middle = Speakers::SemiActive(2);
        let both = [middle, Speakers::Active];
        let point = |speakers, think, service| Point { way, speakers, think, service };
        let places = match way {
            // Where the token parks the place on the ring means nothing.
            Way::Parked => both.to_vec(),
            Way::Classic => {
                (1..NODES).map(Speakers::SemiActive).chain([Speakers::Active]).collect()
            }
        };
        let fixed = |share: &f64| Law::fixed(share * rotation);
        let mut points = Vec::new();
        for service in self.services.iter().map(fixed) {
            points.extend(places.iter().map(|speakers| point(*speakers, idle, service)));
        }
        for think in self.thinks.iter().map(fixed) {
            points.extend(both.map(|speakers| point(speakers, think, idle)));
        }
        for kind in [Kind::Exponential, Kind::Uniform] {
            for law in self.random.iter().map(|share| Law { mean_us: share * rotation, kind }) {
                points.extend(both.map(|speakers| point(speakers, law, idle)));
                points.extend(both.map(|speakers| point(speakers, idle, law)));
            }
        }
        points
    }
}

impl Experiment for Options {
    const NAME: &'static str = "study";
    const SMOKE: &'static str = "--calls 20 --services 0";

    fn run(&self, run: &Run) -> Outcome<()> {
        let grid = Grid::of(self, run);
        let machine = machine::description();
        eprintln!("on {machine}");
        let study = measure(self, &grid)?;
        let load = machine::description();
        let lines = study.points.iter().map(|(measured, predicted)| {
            point::line(measured, predicted.as_ref(), study.alone(&measured.point.service))
        });
        let lines: Vec<Value> = lines.collect();
        tell(run, &study, &lines);
        if let Some(out) = &self.out {
            let whole = json!({
                "machine": machine, "afterwards": load, "nodes": NODES, "replicas": REPLICAS,
                "size": self.size, "calls": grid.calls, "delay_us": self.delay_us,
                "calibration": study.calibration, "unreplicated": study.alone, "points": lines,
            });
            report::write(out, "study.json", &whole, charts::all(&study))?;
        }
        Ok(())
    }

    fn host(node: &Node, group: &str) -> Outcome<bool> {
        match services::hosted(group) {
            Some((Side::Caller, options)) => {
                node.host(group, options, Counted::<Caller>::default)?
            }
            Some((Side::Callee, options)) => {
                node.host(group, options, Counted::<Callee>::default)?
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    fn kept() -> Value {
        json!(services::take_calls())
    }
}

fn measure(options: &Options, grid: &Grid) -> Outcome<Study> {
    let mut bench = Bench::start(Way::Classic, options)?;
    let calibration = bench.calibrate(grid.calls)?;
    let rotation = calibration.idle_rotation;
    let Calibration { pass, message, flight, handler, .. } = calibration;
    eprintln!(
        "an idle rotation takes {rotation:.0} µs, a pass {pass:.0}; a message adds {message:.0}, \
         and is {flight:.0} longer under way; handlers take {handler:.0}"
    );
    let (classic, parked) =
        (grid.points(Way::Classic, rotation), grid.points(Way::Parked, rotation));
    let all = classic.len() + parked.len();
    let mut points = Vec::with_capacity(all);
    for point in classic {
        progress(points.len(), all, &point);
        let measured = bench.measure(point, grid.calls)?;
        let predicted = Prediction::new(NODES, &calibration, &measured);
        points.push((measured, predicted));
    }
    drop(bench);
    let mut bench = Bench::start(Way::Parked, options)?;
    for point in parked {
        progress(points.len(), all, &point);
        points.push((bench.measure(point, grid.calls)?, None));
    }
    let alone = grid.services.iter().map(|share| bench.alone(share * rotation, grid.calls));
    let alone = alone.collect::<Outcome<_>>()?;
    Ok(Study { calibration, points, alone })
}

fn progress(done: usize, all: usize, point: &Point) {
    let Point { way, speakers, think, service } = point;
    eprintln!(
        "{:3} of {all}: {way:?}, {}, thinks {think}, serves {service}",
        done + 1,
        speakers.name()
    );
}

/// A cluster on which points are measured.
struct Bench {
    way: Way,
    size: usize,
    cluster: Cluster,
    client: Client,
    admins: Vec<Admin>,
    /// Measurements so far.
    series: u64,
}

impl Bench {
    fn start(way: Way, options: &Options) -> Outcome<Bench> {
        let (size, classic) = (options.size, way == Way::Classic);
        let plan = Plan {
            nodes: NODES,
            replicas: REPLICAS,
            groups: CALLERS.to_vec(),
            on_last: &CALLEES,
            classic,
            // The paper's token follows the last message of a turn.
            accelerated: classic.then_some(0),
            // A busy machine is no fault.
            token_timeout: Some(TIMEOUT),
            ..Plan::default()
        };
        let delay = Duration::from_micros(options.delay_us);
        let cluster = match options.delay_us {
            0 => Cluster::start(plan)?,
            _ => {
                Cluster::start_behind(plan, |nodes| cables::start(nodes, delay), Wires::seen_by)?.0
            }
        };
        let first = cluster.client(node_at(0)).ok_or("the first node takes no clients")?;
        let client = Client::connect([first])?;
        let admins = (0..NODES).map(|place| cluster.node(node_at(place)));
        let admins = admins.collect::<Outcome<_>>()?;
        let mut bench = Bench { way, size, cluster, client, admins, series: 0 };
        bench.lead(CALLERS[0], 0)?;
        Ok(bench)
    }

    /// Makes the node at this place a group's primary.
    fn lead(&mut self, group: &str, place: u32) -> Outcome<()> {
        if self.cluster.view(group).primary != Some(node_at(place)) {
            self.admins[place as usize].move_primary(group, node_at(place))?;
        }
        let leads = |node: Option<NodeId>| node == Some(node_at(place));
        self.cluster.wait("a primary to move", |cluster| leads(cluster.view(group).primary))
    }

    fn look(&mut self) -> Outcome<Look> {
        let all = self.admins.iter_mut().map(|admin| Ok(admin.status()?));
        Ok(Look(all.collect::<Outcome<_>>()?))
    }

    /// The rotations of the ring while nobody sends anything; none where it parks.
    fn idle(&mut self) -> Outcome<Density> {
        if self.way == Way::Parked {
            return Ok(Density::default());
        }
        let rotations = |admin: &mut Admin| admin.status().map(|status| status.ring.rotations);
        let before = rotations(&mut self.admins[0])?.unwrap_or_default();
        let deadline = Instant::now() + TIMEOUT;
        loop {
            thread::sleep(IDLE);
            let after = rotations(&mut self.admins[0])?.unwrap_or_default();
            let seen = Density::of_times(&after.since(&before));
            // A busy machine may hold the token up for as long.
            if seen.count() > 0 || Instant::now() > deadline {
                return Ok(seen);
            }
        }
    }

    /// From a point in which nobody thinks nor serves.
    fn calibrate(&mut self, calls: usize) -> Outcome<Calibration> {
        let speakers = Speakers::SemiActive(2);
        let (think, service) = (Law::default(), Law::default());
        let point = self.measure(Point { way: self.way, speakers, think, service }, calls)?;
        Ok(Calibration::new(NODES, &point).ok_or("the token did not circulate")?)
    }

    /// Measures a point, once more if the ring changes.
    fn measure(&mut self, point: Point, calls: usize) -> Outcome<Measured> {
        for _ in 0..ATTEMPTS {
            if let Speakers::SemiActive(place) = point.speakers {
                self.lead(CALLEES[0], place)?;
            }
            let style = point.speakers.style();
            self.make(style, &point, WARM, 0)?;
            let idle = self.idle()?;
            let before = self.look()?;
            self.series += 1;
            let (mut left, mut expected) = (calls, 0);
            while left > 0 {
                let batch = left.min(BATCH);
                // Each task's first call is not counted.
                self.make(style, &point, batch as u8 + 1, self.series)?;
                (left, expected) = (left - batch, expected + batch + 1);
            }
            let made = self.made(expected)?;
            let after = self.look()?;
            self.cluster.take_events();
            if iter::zip(&before.0, &after.0).all(|(a, b)| a.ring.id == b.ring.id) {
                return Ok(Measured::new(point, idle, &made, (&before, &after)));
            }
            eprintln!("the ring has changed meanwhile: once more");
        }
        Err(format!(
            "the ring changed {ATTEMPTS} times: other programs leave too little processor time"
        )
        .into())
    }

    /// The calls of this series, as the first node's replica has seen them. It may be behind:
    /// another may have answered the client.
    fn made(&mut self, expected: usize) -> Outcome<Vec<Made>> {
        let (mut made, until) = (Vec::new(), Instant::now() + TIMEOUT);
        while made.len() < expected {
            let more = self.cluster.kept::<Options>(node_at(0))?;
            let more: Vec<Made> = serde_json::from_value(more)?;
            made.extend(more.into_iter().filter(|call| call.series == self.series));
            ensure!(
                Instant::now() <= until,
                "the first replica made {} of {expected} calls",
                made.len()
            );
        }
        Ok(made)
    }

    /// Has a caller make so many calls.
    fn make(&self, style: &str, point: &Point, calls: u8, series: u64) -> Outcome<()> {
        let (callee, size) = (format!("callee/{style}"), self.size);
        let task = Task { series, calls, callee, think: point.think, service: point.service, size };
        let body = serde_json::to_vec(&task)?;
        self.client
            .call(Invocation::new(format!("caller/{style}"), MAKE).body(body).within(DEADLINE))?;
        Ok(())
    }

    /// The median of calls that nobody orders, from a client outside to one replica.
    fn alone(&self, service: f64, calls: usize) -> Outcome<(f64, f64)> {
        let body = services::request(service, self.size);
        let client = Client::connect(self.cluster.clients())?;
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls + usize::from(WARM) {
            let start = Instant::now();
            let reply = client
                .call(Invocation::new(CALLEES[2], SERVE).body(body.clone()).within(DEADLINE))?;
            if reply != body {
                return Err("the reply is another".into());
            }
            if call >= usize::from(WARM) {
                times.push(start.elapsed().as_nanos() as f64 / 1_000.0);
            }
        }
        Ok((service, Density::of(times).median().ok_or("nothing was measured")?))
    }
}

fn tell(run: &Run, study: &Study, lines: &[Value]) {
    if !run.json {
        println!(
            "times in µs; pred: by the equations, mean; delays: mean, until request and reply are \
             sent; place: of who sent the reply; overhead: above a call that nobody orders; \
             copied: share of requests and replies sent more than once"
        );
    }
    let table = run.table(
        "ring=point/way:<8, style:<26, thinks:10, serves:10, peak=latency_us/peak:9.0, \
         median=latency_us/median:9.0, mean=latency_us/mean:9.0, \
         pred=predicted/latency_us/mean:9.0, request=client_delay_us/mean:9.0, \
         pred=predicted/client_delay_us/mean:9.0, reply=server_delay_us/mean:9.0, \
         pred=predicted/server_delay_us/mean:9.0, place=position:7.2, pred=predicted/position:7.2, \
         overhead:10.2, copied=copied_requests:9.3, =copied_replies:7.3",
    );
    lines.iter().for_each(|line| table.row(line));
    if !run.json {
        equations(study);
    }
}

/// The error of each equation against the measurements.
fn equations(study: &Study) {
    println!("equation  points  median error  worst");
    let all = study.points.iter().filter_map(|(_, predicted)| predicted.as_ref());
    let all: Vec<_> = all.flat_map(|predicted| &predicted.equations).collect();
    for equation in 1..=7 {
        let of = all.iter().filter(|beside| beside.equation == equation);
        let errors: Vec<f64> = of.map(|beside| beside.error.abs()).collect();
        let count = errors.len();
        if let Some((median, worst)) = harness::figures::median_and_worst(errors) {
            println!("({equation})     {count:8}{median:12.1} %{worst:8.1} %");
        }
    }
}
