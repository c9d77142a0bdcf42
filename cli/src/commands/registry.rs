//! `steadfast registry`: the addresses of names.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use steadfast::registry::{Address, Binding, Epoch, Technique, Terms};
use steadfast::status::RegistryStatus;

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast registry list --config node.toml
  steadfast registry look-up orders --json | jq '.bindings[].address'
  steadfast registry bind printer 10.0.0.7:631 --technique notification
  steadfast registry unbind printer 10.0.0.7:631
  steadfast registry watch --config node.toml          a line for each new or ended binding

All nodes need [registry] on. Any node answers from its own copy. The nodes bind their replicas
under the groups' names ([registry] bind). The asked node keeps your binding until you unbind it or
the node ends: the node refreshes the lease, and the other nodes detect its failure.

Exit codes:
  0  the command succeeded
  1  it failed: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// How long the node is to wait for something new before it says that nothing is.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Looks up, binds and unbinds the addresses of names.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Shows all bindings.
    #[command(after_help = "Examples:\n  steadfast registry list --config node.toml")]
    List {
        #[command(flatten)]
        how: How,
    },
    /// Shows the bindings of one name. Fails if there is none.
    #[command(
        after_help = "Examples:\n  steadfast registry look-up orders --json | jq '.bindings[].address'"
    )]
    LookUp {
        /// The name.
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Binds an address to a name. The name keeps its other addresses.
    #[command(
        after_help = "Examples:\n  steadfast registry bind printer 10.0.0.7:631 --technique lease --lease-ms 3000 --refresh-ms 1000"
    )]
    Bind {
        /// The name, 1 to 128 bytes.
        name: String,
        /// The address, in any form that its readers understand, 1 to 128 bytes.
        address: String,
        /// How the binding ends when the node dies. Default: the technique of the node's
        /// configuration.
        #[arg(long, value_enum)]
        technique: Option<By>,
        /// Milliseconds until the binding ends without a refresh.
        #[arg(long, default_value_t = 3_000)]
        lease_ms: u32,
        /// Milliseconds between refreshes.
        #[arg(long, default_value_t = 1_000)]
        refresh_ms: u32,
        #[command(flatten)]
        how: How,
    },
    /// Unbinds an address from a name, whichever client or node bound it.
    #[command(after_help = "Examples:\n  steadfast registry unbind printer 10.0.0.7:631")]
    Unbind {
        /// The name.
        name: String,
        /// The address.
        address: String,
        #[command(flatten)]
        how: How,
    },
    /// Prints each new and each ended binding on a line, until it is interrupted. The node answers
    /// as soon as a binding changes.
    #[command(after_help = "Examples:\n  steadfast registry watch --json --config node.toml")]
    Watch {
        /// Show this name only.
        name: Option<String>,
        #[command(flatten)]
        how: How,
    },
}

#[derive(clap::Args)]
struct How {
    #[command(flatten)]
    at: At,
    /// Print JSON, one object a line, instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Lease,
    Notification,
    Both,
}

impl From<By> for Technique {
    fn from(how: By) -> Technique {
        match how {
            By::Lease => Technique::Lease,
            By::Notification => Technique::Notification,
            By::Both => Technique::Both,
        }
    }
}

/// One change.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Change {
    epoch: Epoch,
    bound: bool,
    binding: Binding,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.what {
        What::List { how } => show(how, None),
        What::LookUp { name, how } => show(how, Some(name)),
        What::Bind { name, address, technique, lease_ms, refresh_ms, how } => {
            let (lease_ms, refresh_ms) = (*lease_ms, *refresh_ms);
            let terms = technique.map(|technique| Terms {
                technique: technique.into(),
                lease_ms,
                refresh_ms,
            });
            bind(how, name, address, terms)
        }
        What::Unbind { name, address, how } => unbind(how, name, address),
        What::Watch { name, how } => watch(how, name.as_deref()),
    })
}

fn show(how: &How, name: Option<&str>) -> Result<(), Failure> {
    let found = how.at.connect()?.registry(name, None, Duration::ZERO).map_err(Failure::failed)?;
    if let (Some(name), Some([])) = (name, found.bindings.as_deref()) {
        return Err(Failure::Failed(format!(
            "{name} has no binding ({}): `steadfast registry list` shows all names",
            found.epoch
        )));
    }
    if how.json {
        return print_json(&found);
    }
    print(&text(&found))
}

fn bind(how: &How, name: &str, address: &str, terms: Option<Terms>) -> Result<(), Failure> {
    let answer = how.at.connect()?.bind(name, address, terms).map_err(Failure::failed)?;
    said(how, &answer, &format!("{name} is bound to {address}"))
}

fn unbind(how: &How, name: &str, address: &str) -> Result<(), Failure> {
    let mut admin = how.at.connect()?;
    let address = Address::At(address.into());
    let answer = admin.unbind(name, address).map_err(Failure::failed)?;
    said(how, &answer, &format!("{name} is no longer bound to that address"))
}

fn said(how: &How, answer: &steadfast::registry::Answer, words: &str) -> Result<(), Failure> {
    use steadfast::registry::Verdict;
    let epoch = answer.epoch;
    match answer.verdict {
        _ if how.json => print_json(answer),
        Verdict::Bound(_) | Verdict::Done => print(&format!("{words} ({epoch})\n")),
        Verdict::Void => print(&format!("no change was necessary ({epoch})\n")),
        Verdict::Fenced => Err(Failure::Failed(format!(
            "the binding changed meanwhile ({epoch}): see `steadfast registry list`, and repeat the command if necessary"
        ))),
    }
}

fn watch(how: &How, name: Option<&str>) -> Result<(), Failure> {
    let mut admin = how.at.connect()?;
    let (mut since, mut before) = (None, Vec::new());
    loop {
        let found = admin.registry(name, since, TIMEOUT).map_err(Failure::failed)?;
        since = Some(found.epoch);
        let Some(bindings) = found.bindings else { continue };
        for change in changes(found.epoch, &before, &bindings) {
            if how.json {
                print_json(&change)?;
            } else {
                let sign = if change.bound { '+' } else { '-' };
                print(&format!("{} {sign} {}\n", change.epoch, line(&change.binding)))?;
            }
        }
        before = bindings;
    }
}

/// First what has ended, then what was made.
fn changes(epoch: Epoch, before: &[Binding], after: &[Binding]) -> Vec<Change> {
    let missing = |from: &[Binding], it: &Binding| {
        !from.iter().any(|other| other.identity() == it.identity())
    };
    let change = |bound: bool| move |it: &Binding| Change { epoch, bound, binding: it.clone() };
    let ended = before.iter().filter(|it| missing(after, it)).map(change(false));
    ended.chain(after.iter().filter(|it| missing(before, it)).map(change(true))).collect()
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(value).map_err(Failure::failed)?;
    print(&format!("{json}\n"))
}

/// For people.
fn text(found: &RegistryStatus) -> String {
    let mut text = format!("epoch {} at {}", found.epoch.0, found.node);
    text += match (found.current, found.leads) {
        (false, _) => ", which has no majority: the bindings may be old\n".into(),
        (true, Some(leads)) => format!("; {leads} ends dead bindings\n"),
        (true, None) => "\n".into(),
    }
    .as_str();
    let bindings = found.bindings.as_deref().unwrap_or_default();
    if bindings.is_empty() {
        text += "no bindings\n";
    }
    for binding in bindings {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}", line(binding));
    }
    text
}

fn line(it: &Binding) -> String {
    let Terms { technique, lease_ms, refresh_ms } = it.terms;
    let lease = format!("lease {lease_ms} ms, refreshed every {refresh_ms} ms");
    let ends = match (technique, it.until) {
        (Technique::Lease, _) => lease,
        (Technique::Notification, _) => "by notification".into(),
        (Technique::Both, None) => "by notification; the last one by lease".into(),
        (Technique::Both, Some(_)) => format!("the last one: {lease}"),
    };
    format!("{:<24} {:<24} {ends} ({})", it.name, it.address.to_string(), it.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(name: &str, epoch: u64) -> Binding {
        Binding {
            name: name.into(),
            address: Address::At("10.0.0.7:631".into()),
            keeper: None,
            terms: Terms::lease(300, 100),
            epoch: Epoch(epoch),
            until: None,
        }
    }

    #[test]
    fn what_was_made_anew_has_ended_before() {
        let (before, after) = ([binding("a", 1), binding("b", 2)], [binding("b", 4)]);
        let signs: Vec<_> = changes(Epoch(4), &before, &after)
            .into_iter()
            .map(|it| (it.bound, it.binding.name, it.binding.epoch.0))
            .collect();
        assert_eq!(signs, [(false, "a".into(), 1), (false, "b".into(), 2), (true, "b".into(), 4)]);
        assert!(changes(Epoch(4), &after, &after).is_empty());
    }

    #[test]
    fn people_are_told_where_it_is_and_how_it_ends() {
        assert_eq!(
            line(&binding("printer", 3)),
            "printer                  10.0.0.7:631             lease 300 ms, refreshed every 100 ms (e3)"
        );
    }
}
