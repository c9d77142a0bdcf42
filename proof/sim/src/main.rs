//! The simulator's program: `docs/simulator.md` says how to use it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::{Value, json};
use steadfast_sim::campaign::{self, Campaign, Listener, Report};
use steadfast_sim::cluster::Operation;
use steadfast_sim::draw::Draw;
use steadfast_sim::explore;
use steadfast_sim::forest;
use steadfast_sim::options::World;
use steadfast_sim::plants;
use steadfast_sim::run::{Outcome, Plant, Settings, Summary, catch_panics, run_seed};

/// Runs whole clusters in virtual time, each from one seed, and checks every promise.
///
/// Exit status: 0 if no promise was broken (with --bug, --bugs: if every planted mistake was
/// found), else 1.
#[derive(Parser)]
#[command(name = "steadfast-sim")]
struct Arguments {
    /// How many seeds to run; of each planted mistake, how many at most.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first of them, so that many can be run in pieces: --from 0 --seeds 250000, then --from
    /// 250000 ...
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run this seed alone and print all that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; one per processor if not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Only this kind of world; else three of four seeds are clusters, one of 32 with disks,
    /// one of 32 is of jobs, and one of channels.
    #[arg(long)]
    world: Option<WorldName>,
    /// After so many failures no further seed is begun.
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// Plant this mistake (a part of its name) and tell how many seeds find it; with --seed, run
    /// that seed with it.
    #[arg(long)]
    bug: Option<String>,
    /// Plant each mistake in turn. The seed that found it last is tried first, unless --world or
    /// --from says otherwise.
    #[arg(long)]
    bugs: bool,
    /// With --bugs: write the seeds that found something to this file (proof/sim/planted.txt), for
    /// the next time.
    #[arg(long, value_name = "FILE", requires = "bugs")]
    record: Option<PathBuf>,
    /// With --world forest: one system of so many peers in cells of 16, for ten virtual minutes.
    #[arg(long)]
    peers: Option<usize>,
    /// With --peers: so many faults.
    #[arg(long, default_value_t = 1_000, requires = "peers")]
    faults: u64,
    /// With --seed: only the verdict, not the events.
    #[arg(long)]
    quiet: bool,
    /// Print one JSON object on standard output, progress on standard error.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    explorer: explore::Options,
}

#[derive(Clone, Copy, ValueEnum)]
enum WorldName {
    Cluster,
    Disks,
    Decay,
    Poison,
    Versions,
    Growth,
    Gateways,
    Everything,
    Interruptions,
    Rings,
    Links,
    Stores,
    Jobs,
    Channels,
    Cells,
    Forest,
}

impl Arguments {
    fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(processors)
    }

    fn settings(&self) -> Settings {
        let world = self.world.map(|name| match name {
            WorldName::Cluster => World::Cluster,
            WorldName::Disks => World::Disks,
            WorldName::Everything => World::Everything,
            WorldName::Interruptions => World::Interruptions,
            WorldName::Decay => World::Decay,
            WorldName::Poison => World::Poison,
            WorldName::Versions => World::Versions,
            WorldName::Growth => World::Growth,
            WorldName::Gateways => World::Gateways,
            WorldName::Rings => World::Rings,
            WorldName::Links => World::Links,
            WorldName::Stores => World::Stores,
            WorldName::Jobs => World::Jobs,
            WorldName::Channels => World::Channels,
            WorldName::Cells => World::Cells,
            WorldName::Forest => World::Forest,
        });
        Settings { world, ..Settings::default() }
    }

    fn campaign(&self, seeds: u64) -> Campaign {
        Campaign {
            first: self.from,
            seeds: self.seeds.unwrap_or(seeds),
            jobs: self.jobs(),
            failures: self.failures,
            settings: self.settings(),
        }
    }

    /// The command that repeats a seed.
    fn repeat(&self, seed: u64) -> String {
        let world = match self.world {
            None => "",
            Some(WorldName::Cluster) => " --world cluster",
            Some(WorldName::Disks) => " --world disks",
            Some(WorldName::Everything) => " --world everything",
            Some(WorldName::Interruptions) => " --world interruptions",
            Some(WorldName::Decay) => " --world decay",
            Some(WorldName::Poison) => " --world poison",
            Some(WorldName::Versions) => " --world versions",
            Some(WorldName::Growth) => " --world growth",
            Some(WorldName::Gateways) => " --world gateways",
            Some(WorldName::Rings) => " --world rings",
            Some(WorldName::Links) => " --world links",
            Some(WorldName::Stores) => " --world stores",
            Some(WorldName::Jobs) => " --world jobs",
            Some(WorldName::Channels) => " --world channels",
            Some(WorldName::Cells) => " --world cells",
            Some(WorldName::Forest) => " --world forest",
        };
        format!("cargo run --release -p steadfast-sim -- --seed {seed}{world}")
    }

    fn say(&self, words: &str) {
        if self.json { eprintln!("{words}") } else { println!("{words}") }
    }
}

/// One large system of cells.
fn large(arguments: &Arguments, peers: usize) -> bool {
    let seed = arguments.seed.unwrap_or(0);
    let options = forest::Options::large(peers, arguments.faults);
    let outcome = forest::run_with(options, &mut Draw::new(seed), Plant::default(), false);
    let (faults, answered) = (outcome.summary.deaths, outcome.summary.answered);
    if let Err(violation) = &outcome.verdict {
        println!("seed {seed}: VIOLATION of {}: {}", violation.property, violation.text);
    }
    println!("{peers} peers, {faults} faults, {answered} calls answered");
    outcome.verdict.is_ok()
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    catch_panics();
    let well = if arguments.explorer.explore {
        explore::run(&arguments.explorer, arguments.bug.as_deref(), arguments.json)
    } else if let Some(peers) = arguments.peers {
        large(&arguments, peers)
    } else if let Some(seed) = arguments.seed {
        one(&arguments, seed)
    } else if arguments.bugs || arguments.bug.is_some() {
        plant(&arguments)
    } else {
        many(&arguments)
    };
    ExitCode::from(u8::from(!well))
}

fn one(arguments: &Arguments, seed: u64) -> bool {
    let plant = match arguments.bug.as_deref().map(|bug| plants::named(Some(bug))) {
        None => Plant::default(),
        Some(found) if found.len() == 1 => found[0].1,
        Some(found) => {
            let names: Vec<_> = found.into_iter().map(|(name, _)| name).collect();
            eprintln!(
                "--bug must name one planted mistake, not {names:?} (--features planted-bugs)"
            );
            return false;
        }
    };
    let settings = Settings { aloud: !arguments.quiet, plant, ..arguments.settings() };
    let outcome = run_seed(seed, settings);
    match &outcome.verdict {
        Ok(()) => arguments.say(&format!("seed {seed}: no promise was broken")),
        Err(violation) => arguments.say(&format!("seed {seed}: VIOLATION of {violation}")),
    }
    arguments.say(&format!("{:?}", outcome.summary));
    arguments.say(&format!("hash of all events: {:016x}", outcome.hash));
    outcome.verdict.is_ok()
}

fn many(arguments: &Arguments) -> bool {
    let campaign = arguments.campaign(1_000);
    let report = campaign::run(&campaign, &Reporter(arguments, campaign));
    if arguments.json {
        println!("{}", as_json(arguments, &report));
    } else {
        println!("{}", in_words(&report));
        let Summary { rotten, full, .. } = report.total;
        if rotten + full > 0 {
            println!("{rotten} rotten disks replaced, {full} nodes left with full ones");
        }
        if report.total.repeated > 0 {
            println!("{} times a caller made a call again by a gateway", report.total.repeated);
        }
        if report.total.interrupted > 0 {
            println!("{}", of_steps(&report.total));
        }
    }
    // A history that the checker gives up is not known to be in order.
    report.failed.is_empty() && report.total.undecided == 0
}

/// The number of steps of each operation, and of the steps after which the leader died.
fn of_steps(total: &Summary) -> String {
    let each = Operation::ALL.iter().zip(total.steps_of);
    let each: Vec<String> = each.map(|(it, steps)| format!("{it:?} {steps}")).collect();
    let Summary { interrupted, uncovered, .. } = total;
    format!(
        "steps of operations: {}; after {interrupted} of them whoever led died, after {uncovered} nobody may",
        each.join(", ")
    )
}

/// Tells of a campaign while it runs.
struct Reporter<'a>(&'a Arguments, Campaign);

impl Listener for Reporter<'_> {
    fn failed(&self, seed: u64, outcome: &Outcome) {
        if let Err(violation) = &outcome.verdict {
            let at = outcome.summary.virtual_time;
            let repeat = self.0.repeat(seed);
            self.0.say(&format!("seed {seed}, at {at}: {violation}\n  {repeat}"));
        }
    }

    fn progress(&self, report: &Report) {
        let Report { seeds, failed, took, .. } = report;
        let (rate, failed) = (*seeds as f64 / took.as_secs_f64(), failed.len());
        let left = Duration::from_secs_f64((self.1.seeds - seeds) as f64 / rate);
        eprintln!(
            "{seeds} of {} seeds, {rate:.0} a second, {failed} failed, {left:.0?} to go",
            self.1.seeds
        );
    }
}

fn in_words(report: &Report) -> String {
    let Report { seeds, failed, total, took } = report;
    let Summary { datagrams, answered, failed: unanswered, executed, .. } = total;
    let (hours, rate) = (total.virtual_time.0 / 1_000_000_000, *seeds as f64 / took.as_secs_f64());
    format!(
        "{seeds} seeds, {} with a broken promise, in {took:.1?} ({rate:.0} a second)\n\
         {hours} virtual seconds, {} happenings, {datagrams} datagrams, {} deaths\n\
         {answered} calls answered, {unanswered} not (within their deadlines), {executed} executions\n\
         {} states transferred ({} streams), {} primaries moved, {} hung replicas out, {} orders of backups, {} calls refused by priority, {} changes of style, {} calls between groups ended ({} copies of ends)\n\
         {} replicas changed over to another program, {} upgrades taken back\n\
         {} copies of replies, {} calls sent again\
         {}",
        failed.len(),
        total.steps,
        total.deaths,
        total.transfers,
        total.streams,
        total.moves,
        total.demotions,
        total.ranks,
        total.refused,
        total.restyles,
        total.nested,
        total.nested_copies,
        total.upgrades,
        total.undone,
        total.copies,
        total.retries,
        match total.undecided {
            0 => String::new(),
            some => format!("\nUNDECIDED: {some} histories would take too long to be judged"),
        },
    )
}

fn as_json(arguments: &Arguments, report: &Report) -> Value {
    let Report { seeds, failed, total, took } = report;
    let failed: Vec<Value> = failed
        .iter()
        .filter_map(|(seed, outcome)| {
            let violation = outcome.verdict.as_ref().err()?;
            Some(json!({
                "seed": seed,
                "property": violation.property,
                "text": violation.text,
                "hash": format!("{:016x}", outcome.hash),
                "repeat": arguments.repeat(*seed),
            }))
        })
        .collect();
    json!({
        "seeds": seeds,
        "failed": failed,
        "from": arguments.from,
        "seconds": took.as_secs_f64(),
        "seeds_per_second": *seeds as f64 / took.as_secs_f64(),
        "virtual_seconds": total.virtual_time.0 / 1_000_000_000,
        "happenings": total.steps,
        "datagrams": total.datagrams,
        "deaths": total.deaths,
        "calls": { "answered": total.answered, "failed": total.failed },
        "executed": total.executed,
        "transfers": total.transfers,
        "streams": total.streams,
        "moves": total.moves,
        "demotions": total.demotions,
        "poison": { "kills": total.kills, "programs": total.falls, "revived": total.revived, "refusals": total.refusals },
        "ranks": total.ranks,
        "upgrades": { "changed_over": total.upgrades, "taken_back": total.undone },
        "refused": total.refused,
        "copies": total.copies,
        "steps": total.steps_of,
        "disks": { "replaced": total.rotten, "full": total.full },
        "interrupted": { "after_a_step": total.interrupted, "uncovered": total.uncovered },
        "retries": total.retries,
        "repeated": total.repeated,
        "nested": { "ends": total.nested, "copies": total.nested_copies },
        "restyles": total.restyles,
        "undecided": total.undecided,
    })
}

fn plant(arguments: &Arguments) -> bool {
    let chosen = plants::named(arguments.bug.as_deref());
    if chosen.is_empty() {
        eprintln!("no such mistake is planted: build with --features planted-bugs");
        return false;
    }
    let campaign = arguments.campaign(plants::WITHIN);
    let seeds = campaign.seeds;
    let many = chosen.len() > 1;
    let mut found = Vec::new();
    let mut missed = 0;
    let mut record = String::new();
    for (name, plant) in chosen {
        let drawn = arguments.world.is_some() || arguments.from > 0;
        let find = match plants::recorded(&name).filter(|_| arguments.bugs && !drawn) {
            Some(seed) => plants::find_again(plant, &campaign, seed),
            None => plants::find(plant, &campaign),
        };
        if let Some(find) = &find {
            record += &format!("{name} {}\n", find.seed);
        }
        match find {
            Some(find) => {
                let said = find.violation.to_string();
                let said = if many { beginning(&said) } else { said };
                arguments.say(&format!("{name}: {} seeds: {said}", find.seeds));
                found.push(json!({
                    "bug": name, "seeds": find.seeds, "seed": find.seed,
                    "property": find.violation.property,
                }));
            }
            None => {
                missed += 1;
                arguments.say(&format!("{name}: NOT FOUND in {seeds} seeds"));
                found.push(json!({ "bug": name, "seeds": Value::Null }));
            }
        }
    }
    if arguments.json {
        println!("{}", json!({ "bugs": found, "missed": missed }));
    }
    if let Some(file) = &arguments.record
        && let Err(error) = std::fs::write(file, record)
    {
        eprintln!("{} cannot be written: {error}", file.display());
        return false;
    }
    missed == 0
}

/// The beginning of a checker's message, as much as fits on a line of a list. The whole is printed
/// only for a mistake that is planted alone.
fn beginning(said: &str) -> String {
    const WIDTH: usize = 120;
    let line = said.lines().next().unwrap_or_default();
    let short: String = line.chars().take(WIDTH).collect();
    if short.len() == said.len() { short } else { format!("{short} ...") }
}
