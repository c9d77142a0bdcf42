//! `steadfast conform`: plays the node, and tries a program that serves a replica.

use std::process::ExitCode;
use std::time::Duration;

use steadfast::Contract;
use wire::attach::Outcome;
use wire::client::Refusal;

use self::check::{Check, Trial};
use self::plan::{Call, Plan};
use self::report::Report;
use self::session::{How, told};
use self::verdict::Flaw;
use super::wait::duration;
use super::{Failure, finish};

mod check;
mod checks;
mod link;
mod odd;
mod plan;
mod process;
mod report;
mod session;
mod types;
mod verdict;

const EXAMPLES: &str = "\
Examples:
  steadfast conform -- ./counter
  steadfast conform -- python3 examples/attach/counter.py
  steadfast conform --only same-answers --only same-states --seed 7 -- ./counter
  steadfast conform --except shut-down -- ./counter
  steadfast conform --call 'add=[5]' --call 'get=[]' -- ./counter --verbose
  steadfast conform --json -- ./counter

The command starts the program once or twice for each check, gives it the commands that a node
gives, and compares its answers with the protocol (docs/protocol/attach.md). No node is needed. The
calls follow from the program's contract; a program that tells none needs --call.

Three checks are of what arrives whole. odd-arguments calls with text that is not Unicode, numbers
that do not fit and deep nesting, all of which are refused. odd-values gives the state that each
call leaves to a second program. state-form gives the state with fields in another order, missing,
of another type and unknown, as another version of the program might.

Exit codes:
  0  no check failed; those that could not be tried are listed with the reason
  1  a check failed: it is listed with the expected and the seen behaviour
  2  the command line is wrong";

/// Tries whether a program, in any language, serves a replica as a node expects.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Make this check alone. May be repeated.
    #[arg(long, value_name = "CHECK", value_parser = check_name)]
    only: Vec<String>,
    /// A call that the checks make, with its arguments in JSON. May be repeated.
    #[arg(long, value_name = "METHOD=ARGUMENTS", value_parser = Call::parse)]
    call: Vec<Call>,
    /// A method that is never called, because it ends the program or acts outside. May be repeated.
    #[arg(long, value_name = "METHOD")]
    except: Vec<String>,
    /// The seed of the arguments and of the order of the calls.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The longest wait for each answer, and for the program's end.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    wait: Duration,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(conform(args))
}

fn conform(args: &Args) -> Result<(), Failure> {
    let mut trial = Trial { command: args.command.clone(), wait: args.wait, plan: Plan::default() };
    let mut report = Report::new(args.json, args.seed, &args.command);
    let first = (checks::FIRST.run)(&trial);
    let attaches = first.is_ok();
    if wanted(args, checks::FIRST) || !attaches {
        report.add(checks::FIRST, first)?;
    }
    if attaches {
        // A contract that is no answer at all is the business of the check "contract".
        let contract = ask_contract(&trial);
        let told = contract.as_ref().ok().and_then(Clone::clone);
        known(&args.except, told.as_ref())?;
        trial.plan = Plan::new(told, &args.call, &args.except, args.seed);
        for check in checks::others().filter(|check| wanted(args, check)) {
            let result = match &contract {
                Err(flaw) if check.name == "contract" => Err(flaw.clone()),
                _ => (check.run)(&trial),
            };
            report.add(check, result)?;
        }
    } else {
        for check in checks::others().filter(|check| wanted(args, check)) {
            report.add(check, Err(Flaw::not_tried("the program does not attach")))?;
        }
    }
    report.finish(&trial.plan.untried)
}

fn wanted(args: &Args, check: &Check) -> bool {
    args.only.is_empty() || args.only.iter().any(|name| name == check.name)
}

/// The contract, or `None` if the program tells none.
fn ask_contract(trial: &Trial) -> Result<Option<Contract>, Flaw> {
    let mut session = trial.session()?;
    match session.execute(&Call::describe(), How::Read)? {
        Outcome::Ok(bytes) => {
            let contract = Contract::from_json(&bytes);
            contract.map(Some).map_err(|why| Flaw::wrong("a contract", why.to_string()))
        }
        Outcome::Refused(Refusal::NoSuchMethod | Refusal::NotReadOnly, _) => Ok(None),
        other => Err(Flaw::wrong("a contract, or refusal 3 (NoSuchMethod)", told(&other))),
    }
}

/// A method that is left out must be there: a slip of the pen would have it called.
fn known(except: &[String], contract: Option<&Contract>) -> Result<(), Failure> {
    let Some(contract) = contract else { return Ok(()) };
    let names: Vec<_> = contract.methods.iter().map(|method| method.name.as_str()).collect();
    match except.iter().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "--except {name}: the contract has no such method, it has {}",
            names.join(", ")
        ))),
    }
}

fn check_name(text: &str) -> Result<String, String> {
    let names: Vec<_> = std::iter::once(checks::FIRST).chain(checks::others()).collect();
    if names.iter().any(|check| check.name == text) {
        return Ok(text.into());
    }
    let names: Vec<_> = names.iter().map(|check| check.name).collect();
    Err(format!("the checks are: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_check_has_a_name_of_its_own_and_a_section_that_exists() {
        let protocol = include_str!("../../../docs/protocol/attach.md");
        let mut names = BTreeSet::new();
        for check in std::iter::once(checks::FIRST).chain(checks::others()) {
            assert!(names.insert(check.name), "two checks named {}", check.name);
            let heading = format!("\n## {}\n", check.section);
            assert!(protocol.contains(&heading), "{}: no section {}", check.name, check.section);
        }
        assert!(check_name("same-answers").is_ok());
        assert!(check_name("sameness").is_err_and(|error| error.contains("same-answers")));
    }
}
