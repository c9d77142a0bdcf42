//! The explorer's command line: `steadfast-sim --explore`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::plan::{Plan, STYLES, Victims, style_named};
use super::search::{Bound, Coverage, explore};
use super::trace::{Trace, read, repeat, shorten};
use crate::plant::Plant;
use crate::plants;
use wire::ordered::Style;

/// A trace is shortened for so long.
const SHORTENED: Duration = Duration::from_secs(20);

/// The options of the explorer.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Explore every order of small worlds: three nodes, one group, the real machines above an ideal
    /// order. --bug plants a mistake.
    #[arg(long)]
    pub explore: bool,
    /// With --explore: only this style (active, semi-active, voting, warm-passive, cold-passive).
    #[arg(long, requires = "explore")]
    style: Option<String>,
    /// With --explore: calls, each of a client of its own. Without this and the other options of a
    /// world: the worlds that CI explores.
    #[arg(long, requires = "explore")]
    calls: Option<usize>,
    /// With --explore: deaths of programs, nodes and, with --disks, of hosts that lose power.
    #[arg(long, requires = "explore")]
    deaths: Option<usize>,
    /// With --explore: times that a node is cut off.
    #[arg(long, requires = "explore")]
    cuts: Option<usize>,
    /// With --explore: times that a replica is given up, and hosted again.
    #[arg(long, requires = "explore")]
    leaves: Option<usize>,
    /// With --explore: the group is on disks.
    #[arg(long, requires = "explore")]
    disks: bool,
    /// With --explore: a death need not be known before the next.
    #[arg(long, requires = "explore")]
    hasty: bool,
    /// With --explore: the first call kills every program that executes it.
    #[arg(long, requires = "explore")]
    deadly: bool,
    /// With --explore: the first call is asked for at a backup, the next ones at others.
    #[arg(long, requires = "explore")]
    spread: bool,
    /// With --explore: programs are quicker than the network.
    #[arg(long, requires = "explore")]
    quick: bool,
    /// With --explore: faults strike, too, when all calls are answered and what was lost comes back.
    #[arg(long, requires = "explore")]
    late: bool,
    /// With --explore: what dies.
    #[arg(long, value_enum, requires = "explore")]
    victims: Option<Victims>,
    /// With --explore: how often a way departs from the usual order at most; `all`: every order. If
    /// not given, 0, then 1 and so on, as long as there is time.
    #[arg(long, requires = "explore")]
    delays: Option<String>,
    /// With --explore: so many seconds for each style.
    #[arg(long, default_value_t = 12, requires = "explore")]
    seconds: u64,
    /// With --explore: repeat the steps of this file, and print what happens.
    #[arg(long, value_name = "FILE", requires = "explore")]
    replay: Option<PathBuf>,
    /// With --explore: write the trace of a broken promise to this file.
    #[arg(long, value_name = "FILE", requires = "explore")]
    trace: Option<PathBuf>,
}

/// Runs the explorer. True if no promise was broken, or the planted mistake was found.
pub fn run(options: &Options, bug: Option<&str>, as_json: bool) -> bool {
    match try_run(options, bug, as_json) {
        Ok(well) => well,
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

fn try_run(options: &Options, bug: Option<&str>, as_json: bool) -> Result<bool, String> {
    let plant = bug.map_or(Ok(Plant::default()), planted)?;
    if let Some(file) = &options.replay {
        return replay(file, plant, as_json);
    }
    let styles = match &options.style {
        Some(name) => vec![style_named(name)?],
        None => STYLES.to_vec(),
    };
    let mut found = None;
    let mut results = Vec::new();
    'all: for style in styles {
        let worlds = options.worlds(style, plant);
        let end = Instant::now() + Duration::from_secs(options.seconds);
        for (at, plan) in worlds.iter().enumerate() {
            // The time that one leaves is for the others.
            let left = end.saturating_duration_since(Instant::now());
            let deadline = Instant::now() + left / (worlds.len() - at) as u32;
            let (said, finding) = one_world(options, *plan, deadline, as_json)?;
            results.push(said);
            found = finding;
            if found.is_some() {
                break 'all;
            }
        }
    }
    if let (Some(file), Some(trace)) = (&options.trace, &found) {
        std::fs::write(file, &trace.text)
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    if as_json {
        println!("{}", json!({ "explored": results, "broken": found.as_ref().map(broken) }));
    }
    Ok(found.is_some() == bug.is_some())
}

fn broken(trace: &Trace) -> Value {
    let violation = trace.violation.as_ref();
    json!({
        "property": violation.map(|it| it.property),
        "text": violation.map(|it| it.text.clone()),
        "steps": trace.steps.len(),
        "trace": trace.text,
    })
}

/// The planted mistake of this name.
fn planted(name: &str) -> Result<Plant, String> {
    match &plants::named(Some(name))[..] {
        [(_, plant)] => Ok(*plant),
        many => {
            let names: Vec<_> = many.iter().map(|(name, _)| name).collect();
            Err(format!(
                "--bug must name one planted mistake, not {names:?} (--features planted-bugs)"
            ))
        }
    }
}

fn replay(file: &PathBuf, plant: Plant, as_json: bool) -> Result<bool, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let (plan, steps) = read(&text, plant)?;
    let trace = repeat(plan, &steps, true)?;
    if as_json {
        println!("{}", broken(&trace));
    } else {
        print!("{}", trace.text);
    }
    Ok(trace.violation.is_none())
}

impl Options {
    /// The worlds of a style: the one that was asked for, or those that CI explores.
    fn worlds(&self, style: Style, plant: Plant) -> Vec<Plan> {
        let Options { disks, hasty, deadly, spread, quick, late, .. } = *self;
        let numbers = [self.calls, self.deaths, self.cuts, self.leaves];
        let asked = numbers.iter().any(Option::is_some)
            || [disks, hasty, deadly, spread, quick, late, self.victims.is_some()].contains(&true);
        if !asked {
            return Plan::usual(style).into_iter().map(|plan| Plan { plant, ..plan }).collect();
        }
        let few = Plan::new(style);
        vec![Plan {
            style,
            calls: self.calls.unwrap_or(few.calls),
            deaths: self.deaths.unwrap_or(few.deaths),
            cuts: self.cuts.unwrap_or(few.cuts),
            leaves: self.leaves.unwrap_or(few.leaves),
            disks,
            hasty,
            deadly,
            spread,
            quick,
            late,
            victims: self.victims.unwrap_or_default(),
            plant,
        }]
    }

    fn bounds(&self) -> Result<Vec<Bound>, String> {
        Ok(match self.delays.as_deref() {
            None => (0..usize::from(u8::MAX)).map(Bound::Delays).collect(),
            Some("all") => vec![Bound::All],
            Some(number) => {
                let number = number.parse().map_err(|_| "--delays takes a number, or all")?;
                vec![Bound::Delays(number)]
            }
        })
    }
}

/// Explores one world, with ever more departures from the usual.
fn one_world(
    options: &Options,
    plan: Plan,
    deadline: Instant,
    as_json: bool,
) -> Result<(Value, Option<Trace>), String> {
    let say = |words: String| if as_json { eprintln!("{words}") } else { println!("{words}") };
    say(plan.in_words());
    let mut levels = Vec::new();
    let mut found = None;
    for bound in options.bounds()? {
        let began = Instant::now();
        let (coverage, finding) = explore(plan, bound, &|| Instant::now() >= deadline)
            .map_err(|violation| format!("before any call: {violation}"))?;
        let took = began.elapsed();
        say(in_words(bound, &coverage, finding.is_some(), took));
        levels.push(level(bound, &coverage, took));
        if let Some(finding) = finding {
            say(format!("BROKEN {}, after {} steps", finding.violation, finding.steps.len()));
            let end = Instant::now() + SHORTENED;
            let trace = shorten(plan, &finding, &|| Instant::now() >= end);
            say(trace.text.clone());
            found = Some(trace);
            break;
        }
        if !coverage.whole || !coverage.bounded {
            break;
        }
    }
    Ok((json!({ "world": plan.in_words(), "levels": levels }), found))
}

fn in_words(bound: Bound, coverage: &Coverage, is_broken: bool, took: Duration) -> String {
    let Coverage { states, transitions, depth, ends, whole, bounded } = coverage;
    let bound = match bound {
        Bound::Delays(delays) => format!("{delays} departures"),
        Bound::All => "every order".to_owned(),
    };
    let rest = match (whole, bounded) {
        (true, true) => "all of it",
        (true, false) => "all there is",
        (false, _) if is_broken => "until a promise was broken",
        (false, _) => "CUT: the time is up",
    };
    format!(
        "  {bound}: {states} states, {transitions} steps, {ends} ends, longest way {depth}, {took:.1?}: {rest}"
    )
}

fn level(bound: Bound, coverage: &Coverage, took: Duration) -> Value {
    let delays = match bound {
        Bound::Delays(delays) => json!(delays),
        Bound::All => json!("all"),
    };
    json!({
        "delays": delays,
        "states": coverage.states,
        "steps": coverage.transitions,
        "ends": coverage.ends,
        "longest": coverage.depth,
        "whole": coverage.whole,
        "bounded": coverage.bounded,
        "seconds": took.as_secs_f64(),
    })
}
