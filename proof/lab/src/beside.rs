//! Calls of a small service on a node whose agent runs a rank: without a job, with a job that
//! computes, and with one that also saves its memory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use harness::cluster::Plan;
use harness::echo::ECHO;
use harness::figures::Times;
use harness::jobs::{Changes, Memory, Scene, per_millisecond};
use harness::process::Role;
use harness::{Experiment, Outcome, Run, ensure};
use job::{Command, Spec};
use node::{EventKind, EventRecord};
use serde_json::json;
use steadfast::{Client, Invocation, NodeId};
use wire::rank::Every;

/// The group: three replicas, whose primary is on the rank's node.
const GROUP: &str = "inline";

const SIZE: usize = 64;
const DEADLINE: Duration = Duration::from_secs(30);

/// The least that is slept between two calls that are due.
const PERIOD: Duration = Duration::from_millis(1);

/// Calls of a small service beside a job that saves its memory on the same node.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Mebibytes of the rank's memory, all of which changes between two checkpoints.
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// Seconds between two checkpoints.
    #[arg(long, default_value_t = 10.0)]
    every: f64,
    /// Seconds of calls in each part of a round.
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    /// Rounds: without a job, with one that computes, with one that saves.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Copies of each image, on so many of the three nodes.
    #[arg(long, default_value_t = 1)]
    copies: u8,
    /// Folder of images.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
}

/// The work beside the calls.
const PARTS: [&str; 3] = ["nothing", "computes", "saves"];

/// All that was seen of one of them.
#[derive(Default)]
struct Seen {
    times: Times,
    /// Images that were saved during the calls.
    images: u64,
    /// Times that a node suspected another, and that it had another configuration.
    suspected: usize,
    configurations: usize,
}

impl Seen {
    fn note(&mut self, told: &[EventRecord]) {
        let count = |wanted: fn(&EventKind) -> bool| {
            told.iter().filter(|event| wanted(&event.kind)).count()
        };
        self.suspected += count(|kind| matches!(kind, EventKind::Suspected { .. }));
        self.configurations += count(|kind| matches!(kind, EventKind::Configuration { .. }));
    }
}

impl Experiment for Options {
    const NAME: &'static str = "beside";
    const SMOKE: &'static str = "--mib 4 --every 0.1 --seconds 0.3 --rounds 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        let mut scene = Scene::start(Plan::of(3, 3, &[GROUP]), &self.storage)?;
        let client = scene.cluster.connect()?;
        let memory = Memory {
            bytes: self.mib << 20,
            dirty: 100,
            changes: Changes::EachTurn,
            work: per_millisecond() * 20,
            pause_us: 0,
            turns: u64::MAX / 2,
            trace: false,
        };
        let command = Role::Rank(memory).command()?;
        let primary = scene.cluster.view(GROUP).primary.unwrap_or(NodeId(1));
        let labels = vec![Scene::label(primary)];
        let copies = self.copies;
        let spec = Spec { command, ranks: 1, copies, labels, ..Spec::default() };
        scene.cluster.take_events();
        let mut seen: [Seen; 3] = Default::default();
        for round in 0..self.rounds {
            for place in 0..PARTS.len() {
                // Another part is the first one each time, so that what drifts falls on all.
                let part = (place + round) % PARTS.len();
                self.part(&mut scene, &client, (PARTS[part], &spec), &mut seen[part])?;
                seen[part].note(&scene.cluster.take_events());
            }
        }
        run.begin(&format!(
            "calls of {SIZE} bytes to a group of 3 ({GROUP}), one each millisecond; the rank with {} \
             MiB is on the primary's node, changes all and saves every {} s; {} rounds of {} s each; \
             {copies} copies in {}; ms",
            self.mib,
            self.every,
            self.rounds,
            self.seconds,
            self.storage.display()
        ));
        let table = run.table(
            "job:<10, calls=n:9, p50=p50_ms:9.3, p99=p99_ms:9.3, p99.9=p999_ms:9.3, max=max_ms:9.2, \
             images:8, suspected:10, views=configurations:7",
        );
        for (it, part) in seen.iter().zip(PARTS) {
            let all = it.times.summary().ok_or("no calls")?;
            table.row(&json!({
                "peer": "steadfast", "measure": "beside", "job": part, "mib": self.mib,
                "every_s": self.every, "rounds": self.rounds, "n": all.n, "p50_ms": all.p50 / 1e3,
                "p99_ms": all.p99 / 1e3, "p999_ms": all.p999 / 1e3, "max_ms": all.max / 1e3,
                "images": it.images, "suspected": it.suspected, "configurations": it.configurations,
            }));
        }
        let well = seen.iter().all(|it| it.suspected + it.configurations == 0);
        ensure!(well, "a member was suspected, or went");
        Ok(())
    }
}

impl Options {
    /// Calls beside one of the parts.
    fn part(
        &self,
        scene: &mut Scene,
        client: &Client,
        (part, spec): (&str, &Spec),
        seen: &mut Seen,
    ) -> Outcome<()> {
        let every = match part {
            "saves" => Every::Micros((self.every * 1e6) as u64),
            _ => Every::Never,
        };
        let job = match part {
            "nothing" => None,
            _ => Some(scene.submit(Spec { every, ..spec.clone() })?),
        };
        if let Some(job) = job {
            // The first image is a whole one, and warms what is cold.
            scene.computes(job)?;
            scene.take(&Command::Save { job })?;
            images(scene, job, 1)?;
        }
        self.call(client, &mut seen.times)?;
        let Some(job) = job else { return Ok(()) };
        seen.images += images(scene, job, 1)? - 1;
        scene.end(job)
    }

    fn call(&self, client: &Client, times: &mut Times) -> Outcome<()> {
        let body = Bytes::from_static(&[7; SIZE]);
        let until = Instant::now() + Duration::from_secs_f64(self.seconds);
        let mut due = Instant::now();
        while due < until {
            client.call(Invocation::new(GROUP, ECHO).body(body.clone()).within(DEADLINE))?;
            // From when it was due: a call that waits for the one before it is late as well.
            times.push(due.elapsed());
            due += PERIOD;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}

/// Images that the rank has saved, once there are so many.
fn images(scene: &mut Scene, job: u64, least: u64) -> Outcome<u64> {
    scene.wait("an image", |jobs| {
        let saved = jobs.job(job)?.ranks[0].images.next() - 1;
        (saved >= least).then_some(saved)
    })
}
