//! `steadfast doctor`: checks whether this host suits a node, and gives remedies.
//!
//! - here: the command, and how findings are shown
//! - `doctor/system.rs`: what the kernel permits and how it is set up
//! - `doctor/sleep.rs`: how deeply idle processors sleep
//! - `doctor/groups.rs`: what control groups can limit
//! - `doctor/network.rs`: buffers, addresses, the other nodes
//! - `doctor/timing.rs`: what is measured: wake-ups, timers, stalls, the disk
//! - `doctor/node.rs`: what a running node has in force

mod finding;
mod groups;
mod network;
mod node;
mod reserve;
mod sleep;
mod system;
mod timing;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use steadfast::NodeConfig;

use super::node::read_config;
use super::{Failure, finish, print};
use finding::{Finding, Verdict};

const EXAMPLES: &str = "\
Examples:
  steadfast doctor                        this host, for a node with the default configuration
  steadfast doctor --config node.toml     this host, for that node, and the node itself if it runs
  steadfast doctor --json | jq '.findings[] | select(.verdict != \"good\")'

Run the command as the node's user, because it tries the permissions. It changes nothing on the
host, sends some bytes over loopback, and connects to the other nodes' ring ports.

Exit codes:
  0  a node with this configuration works here; there may be advice and warnings
  1  a node with this configuration would not start here, or would not work
  2  the command line or the configuration is wrong";

/// Checks this host for a node: permissions, buffers, clocks, measured wake-ups.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The node's configuration. Default: the built-in one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Leave out the measurements (about two seconds).
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    node: u32,
    cluster: &'a str,
    worst: Verdict,
    findings: &'a [Finding],
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    match examine(args) {
        Ok(Verdict::Failure) => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => finish(Err(failure)),
    }
}

fn examine(args: &Args) -> Result<Verdict, Failure> {
    let config = match &args.config {
        Some(path) => read_config(path)?,
        None => NodeConfig::default(),
    };
    let mut findings = system::examine(&config);
    findings.extend(groups::examine());
    findings.extend(network::examine(&config));
    if !args.quick {
        findings.extend(timing::examine(&config));
        findings.extend(reserve::prove(&config));
    }
    findings.extend(node::examine(&config));
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Good);
    let report =
        Report { node: config.node.0, cluster: &config.cluster, worst, findings: &findings };
    if args.json {
        let json = serde_json::to_string_pretty(&report).map_err(Failure::failed)?;
        print(&format!("{json}\n"))?;
    } else {
        print(&text(&report))?;
    }
    Ok(worst)
}

/// For people: one line a finding, the remedy below it.
fn text(report: &Report<'_>) -> String {
    let mut text = format!("this host, for node {} of cluster {}\n\n", report.node, report.cluster);
    for finding in report.findings {
        let mark = match finding.verdict {
            Verdict::Good => "ok",
            Verdict::Advice => "advice",
            Verdict::Warning => "WARNING",
            Verdict::Failure => "FAILURE",
        };
        let _ = writeln!(text, "  {mark:<8} {:<20} {}", finding.name, finding.says);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "  {:<8} {:<20} -> {remedy}", "", "");
        }
    }
    let last = match report.worst {
        Verdict::Good => "nothing to do",
        Verdict::Advice => "nothing is wrong; the advice may save some microseconds",
        Verdict::Warning => "a node works here, but may be late, or may suspect others wrongly",
        Verdict::Failure => "a node with this configuration does not work here",
    };
    let _ = writeln!(text, "\n{last}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_shown_with_its_remedy_and_the_worst_decides() {
        let findings = [
            Finding::good("clock", "tsc"),
            Finding::new(Verdict::Warning, "receive buffer", "too small", "sysctl -w x=1"),
        ];
        let report =
            Report { node: 3, cluster: "depot", worst: Verdict::Warning, findings: &findings };
        let text = text(&report);
        for expected in ["node 3 of cluster depot", "ok       clock", "WARNING", "-> sysctl -w x=1"]
        {
            assert!(text.contains(expected), "{text}");
        }
        assert!(text.ends_with("may be late, or may suspect others wrongly\n"), "{text}");
    }
}
