//! The results of the experiment, for people, for programs, and as charts.

use serde::Serialize;
use serde_json::{Value, json};
use steadfast::NodeId;

use super::customer::Seen;
use super::scene::{Scene, Strategy};
use harness::chart::{Chart, Series};
use harness::{Findings, Run, name};

/// The steady phase begins so long after a fault, or after a client's begin: monitors measure over
/// a second.
const SETTLES: f64 = 4.0;

/// One run.
pub struct Course {
    pub strategy: Strategy,
    /// The calls of each client.
    pub seen: Vec<(&'static str, Seen)>,
    /// When, whose processor, percent of it.
    pub used: Vec<(f64, NodeId, f64)>,
    /// When processors failed.
    pub failed: f64,
    /// Actions of managers, and when.
    pub told: Vec<(f64, String)>,
}

/// All runs.
pub struct Found {
    pub scene: &'static Scene,
    pub seconds: f64,
    pub processor: u32,
    pub courses: Vec<Course>,
}

/// Percentiles of some calls, in milliseconds.
#[derive(Clone, Copy, Serialize)]
struct Part {
    p50_ms: f64,
    p95_ms: f64,
}

impl Course {
    /// Calls of a client that began within.
    fn part(&self, client: &str, from: f64, to: f64) -> Option<Part> {
        let (_, seen) = self.seen.iter().find(|(name, _)| *name == client)?;
        let within = seen.made.iter().filter(|made| (from..to).contains(&made.at));
        let mut took: Vec<f64> = within.map(|made| made.took).collect();
        took.sort_by(f64::total_cmp);
        let last = took.len().checked_sub(1)?;
        let at = |share: f64| took[(last as f64 * share) as usize];
        Some(Part { p50_ms: at(0.5), p95_ms: at(0.95) })
    }

    /// The longest call around the fault, minus the usual time before it: detection and fail-over.
    fn delay(&self, client: &str) -> Option<f64> {
        let usual = self.part(client, self.failed / 2.0, self.failed - 1.0)?.p50_ms;
        let (_, seen) = self.seen.iter().find(|(name, _)| *name == client)?;
        let near = seen.made.iter().filter(|it| (it.at - self.failed).abs() < 1.5);
        near.map(|made| made.took).max_by(f64::total_cmp).map(|most| most - usual)
    }

    /// When a host was seen to have too much to do after the fault, and when a primary was moved
    /// for it.
    fn relief(&self) -> Option<(f64, f64)> {
        let after = self.told.iter().filter(|(at, _)| *at > self.failed);
        let mut crossed = None;
        for (at, what) in after {
            match crossed {
                None if what.ends_with("overloaded") => crossed = Some(*at),
                Some(crossed) if what.contains("primary from") => return Some((crossed, *at)),
                _ => {}
            }
        }
        None
    }

    /// After how many seconds the last second was over in which half of the calls took longer than
    /// nineteen of twenty did before the fault.
    fn back(&self, client: &str, (from, to): (f64, f64)) -> Option<f64> {
        let usual = self.part(client, from, to)?.p95_ms;
        let (_, seen) = self.seen.iter().find(|(name, _)| *name == client)?;
        let end = seen.made.last()?.at - self.failed;
        let is_slow = |second: &f64| {
            let begin = self.failed + second;
            self.part(client, begin, begin + 1.0).is_some_and(|part| part.p50_ms > usual)
        };
        let mut slow = (0..end.max(0.0) as u32).map(f64::from).filter(is_slow);
        Some(slow.next_back().map_or(0.0, |second| second + 1.0))
    }

    fn failures(&self) -> usize {
        self.seen.iter().map(|(_, seen)| seen.failed.len()).sum()
    }

    /// Mean use of a processor within.
    fn used(&self, node: NodeId, from: f64, to: f64) -> Option<f64> {
        let within = self.used.iter().filter(|(at, of, _)| *of == node && (from..to).contains(at));
        let used: Vec<f64> = within.map(|(_, _, used)| *used).collect();
        (!used.is_empty()).then(|| used.iter().sum::<f64>() / used.len() as f64)
    }
}

impl Found {
    /// The two spans that are compared: from when the last client has settled up to the fault, and
    /// from when the fault has settled to the end.
    fn spans(&self, course: &Course) -> [(f64, f64); 2] {
        let last = self.scene.servers.iter().map(|it| it.from).fold(0.0, f64::max);
        [(last * self.seconds + SETTLES, course.failed), (course.failed + SETTLES, self.seconds)]
    }

    fn paper(&self, course: &Course, client: &str) -> &'static str {
        let row = self.scene.paper.iter().find(|(name, ..)| *name == client);
        row.map_or("", |(_, fixed, proactive)| match course.strategy {
            Strategy::Static => fixed,
            Strategy::Paper | Strategy::Proactive => proactive,
        })
    }

    /// Clients whose primary's processor fails.
    fn struck(&self) -> impl Iterator<Item = &'static str> {
        let struck = self.scene.servers.iter().filter(|it| self.scene.fail.contains(&it.on[0]));
        struck.map(|it| it.client)
    }

    /// How many times lower a client's response time is after the fault where targets are told by
    /// load.
    fn ratio(&self, client: &str) -> Option<f64> {
        let of = |strategy| {
            let course = self.courses.iter().find(|it| it.strategy == strategy)?;
            let [_, (from, to)] = self.spans(course);
            Some(course.part(client, from, to)?.p50_ms)
        };
        Some(of(Strategy::Static)? / of(Strategy::Proactive)?)
    }

    /// A run for programs.
    fn course(&self, course: &Course) -> Value {
        let [before, after] = self.spans(course);
        let clients = course.seen.iter().map(|(client, seen)| {
            let part = |(from, to)| course.part(client, from, to);
            let (old, new) = (part(before), part(after));
            let change = old.zip(new).map(|(old, new)| 100.0 * (new.p50_ms / old.p50_ms - 1.0));
            json!({
                "client": client, "before": old, "after": new, "change_pct": change,
                "paper": self.paper(course, client), "calls": seen.made.len(),
                "delay_ms": course.delay(client), "back_s": course.back(client, before),
                "failed": seen.failed,
            })
        });
        let processors = self.scene.processors.iter().enumerate().map(|(place, name)| {
            let used = |(from, to)| course.used(NodeId(place as u32 + 1), from, to);
            json!({ "processor": name, "before_pct": used(before), "after_pct": used(after) })
        });
        json!({
            "strategy": name(course.strategy), "failed_s": course.failed,
            "relief_s": course.relief(), "told": course.told,
            "clients": clients.collect::<Vec<_>>(), "processors": processors.collect::<Vec<_>>(),
        })
    }

    /// For each run what clients saw and what processors did, as the paper draws it, by the names
    /// of the files.
    pub fn charts(&self) -> Vec<(String, Chart)> {
        let of = |course: &Course| {
            let name = name(course.strategy);
            let response = (format!("response-{name}.svg"), self.response(course));
            [response, (format!("use-{name}.svg"), self.usage(course))]
        };
        self.courses.iter().flat_map(of).collect()
    }

    fn response(&self, course: &Course) -> Chart {
        let lines = course.seen.iter().enumerate().map(|(colour, (client, seen))| {
            let points = seen.made.iter().map(|made| (made.at, made.took));
            Series::line(*client, colour, points.collect())
        });
        self.chart(course, "what clients see", "response time, ms", lines.collect())
    }

    fn usage(&self, course: &Course) -> Chart {
        let names = self.scene.processors.iter().enumerate();
        let lines = names.map(|(colour, name)| {
            let of = course.used.iter().filter(|(_, node, _)| node.0 as usize == colour + 1);
            Series::line(*name, colour, of.map(|(at, _, used)| (*at, *used)).collect())
        });
        self.chart(course, "processors", "used, percent", lines.collect())
    }

    fn chart(&self, course: &Course, what: &str, y: &str, series: Vec<Series>) -> Chart {
        let (strategy, at) = (name(course.strategy), course.failed);
        Chart::new(format!("{strategy}: {what}; fault after {at:.0} s"), "time, s", y, series)
    }
}

impl Findings for Found {
    fn print(&self, run: &Run) {
        println!(
            "{}; {} s, each processor {} % of one of this machine's; milliseconds:",
            self.scene.source, self.seconds, self.processor
        );
        for course in &self.courses {
            let [before, _] = self.spans(course);
            println!("\n{}", name(course.strategy));
            let told = self.course(course);
            let table = run.table(
                "=client:8, before p50=before/p50_ms:12.1, p95=before/p95_ms:8.1, \
                 after p50=after/p50_ms:12.1, p95=after/p95_ms:8.1, change %=change_pct:10.0, \
                 the paper=paper:<0",
            );
            told["clients"].as_array().into_iter().flatten().for_each(|it| table.row(it));
            let table =
                run.table("=processor:8, used before %=before_pct:20.0, after=after_pct:20.0");
            told["processors"].as_array().into_iter().flatten().for_each(|it| table.row(it));
            let delays = self
                .struck()
                .filter_map(|client| Some(format!("{client} {:.1}", course.delay(client)?)));
            println!(
                "the call that met the fault took longer by: {} (the paper: 10.2)",
                delays.collect::<Vec<_>>().join(", ")
            );
            println!("calls that failed: {}", course.failures());
            if let Some((crossed, decided)) = course.relief() {
                let ms = |span: f64| span * 1e3;
                println!(
                    "overload: seen {:.0} ms after the fault, and a primary moved {:.1} ms after \
                     that (the paper: within 500)",
                    ms(crossed - course.failed),
                    ms(decided - crossed)
                );
            }
            for client in self.struck() {
                let back = course.back(client, before);
                println!("{client}: as before {:.0} s after the fault", back.unwrap_or(0.0));
            }
            for (at, what) in &course.told {
                println!("  {at:>7.3} s  {what}");
            }
            println!("  {:>7.3} s  the fault", course.failed);
        }
        if let Some(ratio) = self.ratio("CL-2") {
            println!("\nCL-2 after the fault, static over proactive: {ratio:.1} (p50)");
        }
    }

    fn json(&self) -> Value {
        json!({
            "peer": "steadfast", "measure": "flare", "source": self.scene.source,
            "seconds": self.seconds, "processor_pct": self.processor,
            "courses": self.courses.iter().map(|course| self.course(course)).collect::<Vec<_>>(),
            "cl2_static_over_proactive": self.ratio("CL-2"),
        })
    }
}
