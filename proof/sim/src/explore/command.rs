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
    /// With --explore: calls, each of a client of its own.
    #[arg(long, default_value_t = 2, requires = "explore")]
    calls: usize,
    /// With --explore: deaths of programs, nodes and, with --disks, of hosts that lose power.
    #[arg(long, default_value_t = 1, requires = "explore")]
    deaths: usize,
    /// With --explore: times that a node is cut off.
    #[arg(long, default_value_t = 0, requires = "explore")]
    cuts: usize,
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
    /// With --explore: faults strike, too, when all calls are answered and what was lost comes back.
    #[arg(long, requires = "explore")]
    late: bool,
    /// With --explore: what dies.
    #[arg(long, value_enum, default_value = "all", requires = "explore")]
    victims: Victims,
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
    for style in styles {
        let (said, finding) = one_style(options, style, plant, as_json)?;
        results.push(said);
        found = finding;
        if found.is_some() {
            break;
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

/// Explores one style, with ever more departures from the usual.
fn one_style(
    options: &Options,
    style: Style,
    plant: Plant,
    as_json: bool,
) -> Result<(Value, Option<Trace>), String> {
    let Options { calls, deaths, cuts, disks, hasty, deadly, spread, late, victims, .. } = *options;
    let plan =
        Plan { style, calls, deaths, cuts, disks, hasty, deadly, spread, late, victims, plant };
    let say = |words: String| if as_json { eprintln!("{words}") } else { println!("{words}") };
    let deadline = Instant::now() + Duration::from_secs(options.seconds);
    let bounds = match options.delays.as_deref() {
        None => (0..usize::from(u8::MAX)).map(Bound::Delays).collect(),
        Some("all") => vec![Bound::All],
        Some(number) => {
            let number = number.parse().map_err(|_| "--delays takes a number, or all")?;
            vec![Bound::Delays(number)]
        }
    };
    say(plan.in_words());
    let mut levels = Vec::new();
    for bound in bounds {
        let (coverage, finding) = explore(plan, bound, deadline)
            .map_err(|violation| format!("before any call: {violation}"))?;
        say(in_words(bound, &coverage));
        levels.push(level(bound, &coverage));
        if let Some(finding) = finding {
            say(format!("BROKEN {}, after {} steps", finding.violation, finding.steps.len()));
            let trace = shorten(plan, &finding, Instant::now() + SHORTENED);
            say(trace.text.clone());
            return Ok((json!({ "world": plan.in_words(), "levels": levels }), Some(trace)));
        }
        if !coverage.whole || !coverage.bounded {
            break;
        }
    }
    Ok((json!({ "world": plan.in_words(), "levels": levels }), None))
}

fn in_words(bound: Bound, coverage: &Coverage) -> String {
    let Coverage { states, transitions, depth, ends, whole, bounded, took } = coverage;
    let bound = match bound {
        Bound::Delays(delays) => format!("{delays} departures"),
        Bound::All => "every order".to_owned(),
    };
    let rest = match (whole, bounded) {
        (true, true) => "all of it",
        (true, false) => "all there is",
        (false, _) => "CUT: the time is up",
    };
    format!(
        "  {bound}: {states} states, {transitions} steps, {ends} ends, longest way {depth}, {took:.1?}: {rest}"
    )
}

fn level(bound: Bound, coverage: &Coverage) -> Value {
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
        "seconds": coverage.took.as_secs_f64(),
    })
}
