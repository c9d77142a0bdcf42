//! `steadfast describe`: what a group's service takes and returns.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use steadfast::contract::{FieldContract, MAX_CONTRACT, TypeContract};
use steadfast::{Client, Contract};

use super::cluster::Cluster;
use super::wait::duration;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast describe counter                                  in the context's cluster
  steadfast describe counter --at 127.0.0.1:7100
  steadfast describe counter --at 127.0.0.1:7100 --json > counter.json
  steadfast describe counter --at 127.0.0.1:7100 --check counter.json
  steadfast describe counter --at 127.0.0.1:7100 --proto > counter.proto
  steadfast describe counter --at 10.0.0.1:7100 --tls plant/client-app

A method that reads may be called with `steadfast call --read`. --check tells whether programs that
were built from the kept contract can still call the group: run it before you deploy clients, and
against a test cluster before you deploy a new version of the service.

Exit codes:
  0  the contract is on standard output; with --check: nothing breaks
  1  there is no contract, or standard error lists what breaks callers
  2  the command line or the kept contract is wrong";

/// Shows the contract of a group: its service's methods and types, with their documentation.
///
/// A replica of the group answers without ordering.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The group's name; `steadfast status` lists them.
    group: String,
    #[command(flatten)]
    cluster: Cluster,
    /// How long to wait for the answer, such as 250ms or 1.5s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    deadline: Duration,
    /// Print the contract as JSON, as --check reads it.
    #[arg(long)]
    json: bool,
    /// Print the contract as a file of protobuf, for gRPC clients of a gateway.
    #[arg(long, conflicts_with_all = ["json", "check"])]
    proto: bool,
    /// Compare with the contract in this file, and list the changes that break its callers.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    check: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(describe(args).and_then(|text| print(&text)))
}

fn describe(args: &Args) -> Result<String, Failure> {
    let kept = args.check.as_deref().map(kept).transpose()?;
    let client = args.cluster.connect(Client::builder())?;
    let answer = client.call(Contract::ask(&args.group).within(args.deadline));
    let contract = Contract::read(answer).map_err(Failure::failed)?;
    match kept {
        Some(kept) => compare(&args.group, &kept, &contract),
        None if args.json => Ok(contract.to_json()),
        None if args.proto => gateway::proto_of(&args.group, &contract).map_err(Failure::Failed),
        None => Ok(text(&contract)),
    }
}

/// Reads a contract that was kept.
fn kept(path: &Path) -> Result<Contract, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!(
            "{}: {error}; `steadfast describe GROUP --json` prints a contract to keep",
            path.display()
        ))
    };
    let mut json = Vec::new();
    // One byte more than is allowed tells a file that is too long.
    let most = MAX_CONTRACT as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut json));
    read.map_err(|error| wrong(&error))?;
    Contract::from_json(&json).map_err(|error| wrong(&error))
}

fn compare(group: &str, kept: &Contract, now: &Contract) -> Result<String, Failure> {
    let breaks = kept.breaks(now);
    if breaks.is_empty() {
        return Ok(format!("{group}: nothing breaks callers of the kept contract\n"));
    }
    let list: String = breaks.iter().map(|change| format!("\n  {}", printable(change))).collect();
    Err(Failure::Failed(format!(
        "{group} has changed, and callers of the kept contract break:{list}\nKeep the old methods, \
         and give the new ones other names. Or build all callers anew, and keep the new contract."
    )))
}

/// The contract for people.
fn text(contract: &Contract) -> String {
    let mut text = printable(&contract.service);
    // Writing to a string cannot fail.
    let _ = writeln!(text, ", in {}", contract.encodings.join(" or "));
    docs(&mut text, "  ", &contract.docs);
    for method in &contract.methods {
        let reads = if method.reads { "   (reads)" } else { "" };
        let _ = writeln!(text, "\n{}{reads}", printable(&method.signature()));
        docs(&mut text, "    ", &method.docs);
    }
    for (name, definition) in &contract.types {
        match definition {
            TypeContract::Struct { docs: said, fields } => {
                let _ = writeln!(text, "\nstruct {name}{}", unnamed(fields));
                docs(&mut text, "    ", said);
                named(&mut text, "  ", fields);
            }
            TypeContract::Enum { docs: said, variants } => {
                let _ = writeln!(text, "\nenum {name}");
                docs(&mut text, "    ", said);
                for variant in variants {
                    let _ = writeln!(text, "  {}{}", variant.name, unnamed(&variant.fields));
                    docs(&mut text, "      ", &variant.docs);
                    named(&mut text, "    ", &variant.fields);
                }
            }
        }
    }
    text
}

/// The fields without names, in parentheses.
fn unnamed(fields: &[FieldContract]) -> String {
    let types: Vec<&str> =
        fields.iter().filter(|field| field.name.is_empty()).map(|field| &*field.ty).collect();
    match types.is_empty() {
        true => String::new(),
        false => format!("({})", types.join(", ")),
    }
}

/// The fields with names, a line each.
fn named(text: &mut String, margin: &str, fields: &[FieldContract]) {
    for field in fields.iter().filter(|field| !field.name.is_empty()) {
        let _ = writeln!(text, "{margin}{}: {}", field.name, field.ty);
        docs(text, &format!("{margin}    "), &field.docs);
    }
}

fn docs(text: &mut String, margin: &str, docs: &str) {
    for line in docs.lines() {
        let line = printable(line);
        let _ = writeln!(text, "{}", format!("{margin}{line}").trim_end());
    }
}

/// A program's text for a terminal, which obeys control characters.
fn printable(text: &str) -> String {
    let escaped = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::services::{CounterService, Tally};

    #[test]
    fn people_read_methods_and_types_with_their_documentation() {
        expect![[r#"
            Counter, in named or postcard or json
              A number that is added to.

            add(n: u64) -> Result<u64, CounterError>
                Adds `n` and returns the sum.

                # Errors
                The sum would not fit.

            get() -> u64   (reads)
                The sum.

            enum CounterError
                Why a counter does not count.
              Overflow(u64)
                  The sum would not fit.
        "#]]
        .assert_eq(&text(&CounterService::<Tally>::contract()));
    }

    #[test]
    fn every_form_of_a_type_is_shown() {
        let json = br#"{"service": "Shop", "encodings": ["json"], "methods": [], "types": {
            "Pair": {"kind": "struct", "fields": [{"type": "u8"}, {"type": "u8"}]},
            "Line": {"kind": "struct", "docs": "A line.", "fields": [
                {"name": "price", "type": "u64", "docs": "In cents."}]},
            "Kind": {"kind": "enum", "variants": [{"name": "A"}, {"name": "B", "fields": [
                {"name": "it", "type": "Pair"}]}]}}}"#;
        let contract = Contract::from_json(json).expect("it is one");
        expect![[r#"
            Shop, in json

            enum Kind
              A
              B
                it: Pair

            struct Line
                A line.
              price: u64
                  In cents.

            struct Pair(u8, u8)
        "#]]
        .assert_eq(&text(&contract));
    }

    #[test]
    fn a_hostile_text_cannot_command_the_terminal() {
        let mut contract = CounterService::<Tally>::contract();
        contract.docs = "a\u{1b}[2Jb\rc".to_owned();
        let text = text(&contract);
        assert!(text.contains("a\\u{1b}[2Jb\\rc"), "{text}");
    }

    #[test]
    fn a_check_lists_what_breaks_and_what_to_do() {
        let kept = CounterService::<Tally>::contract();
        assert!(compare("counter", &kept, &kept).is_ok());
        let mut now = kept.clone();
        now.methods.pop();
        let Err(Failure::Failed(why)) = compare("counter", &kept, &now) else {
            panic!("a method is gone");
        };
        assert!(why.contains("\n  get is gone\n"), "{why}");
    }
}
