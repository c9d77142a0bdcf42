//! `steadfast call`: tries a method by hand.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use steadfast::{Answer, Balancing, BytesCallError, Client, Invocation, Policy, Reading};

use super::cluster::Cluster;
use super::wait::duration;
use super::{Failure, finish, print};

mod indented;

use indented::indented;

const EXAMPLES: &str = "\
Examples:
  steadfast call counter get                                   in the context's cluster
  steadfast call counter get --at 127.0.0.1:7100
  steadfast call counter add '[5]' --at 127.0.0.1:7100,127.0.0.1:7101
  steadfast call counter add '{\"n\": 5}' --at 127.0.0.1:7100 --deadline 250ms
  steadfast call counter get --at 127.0.0.1:7100 --read
  steadfast call counter get --at 127.0.0.1:7100 --stale 500ms
  steadfast call thermometer read --at 127.0.0.1:7100 --replies all
  steadfast call plant shut-down --at 127.0.0.1:7100 --priority 200
  steadfast call echo anything - --at 127.0.0.1:7100 < arguments.json
  steadfast call counter get --at 10.0.0.1:7100,10.0.0.2:7100 --tls plant/client-app

`steadfast describe` shows a group's methods. The result is JSON on standard output.

Exit codes:
  0  the call was executed, and its result is on standard output
  1  there is no result: standard error has the reason, and whether the call was executed
  2  the command line is wrong";

/// Calls a method of a service by hand: JSON in, JSON out.
///
/// This is a normal call: it is ordered, and a method may change the service's state. With --read
/// or --stale one replica answers without ordering; a method that may change the state is then
/// refused.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The group's name; `steadfast status` lists them.
    group: String,
    /// The method's name, as in the service's trait.
    method: String,
    /// The arguments: a JSON array in order, or an object by their names; `-` reads them from
    /// standard input.
    #[arg(value_name = "JSON-ARGS", default_value = "[]", allow_hyphen_values = true)]
    arguments: String,
    #[command(flatten)]
    cluster: Cluster,
    /// How long to wait for the result, such as 250ms or 1.5s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    deadline: Duration,
    /// Linearizable read without ordering. Only for methods that change nothing.
    #[arg(long, conflicts_with = "replies")]
    read: bool,
    /// Read from a state that is at most this old, such as 500ms or 2s. A replica answers also
    /// during a fail-over. Only for methods that change nothing.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "replies")]
    stale: Option<Duration>,
    /// Send the call to all replicas at once, and print the answer of each node. Wait for the
    /// first answer, a majority of equal answers, or all answers. An ordered call has one answer.
    #[arg(long, value_enum, value_name = "HOW MANY")]
    replies: Option<HowMany>,
    /// The call's priority, 0 to 255. An overloaded host refuses calls of lower priority first.
    /// Nested calls have the same priority.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    priority: u8,
}

/// How many replies are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum HowMany {
    First,
    Majority,
    All,
}

impl From<HowMany> for Balancing {
    fn from(many: HowMany) -> Balancing {
        match many {
            HowMany::First => Balancing::FirstReply,
            HowMany::Majority => Balancing::Majority,
            HowMany::All => Balancing::All,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(call(args).and_then(|result| print(&result)))
}

fn call(args: &Args) -> Result<String, Failure> {
    let body = arguments(&args.arguments)?;
    let policy = Policy::default().priority(args.priority);
    let client = args.cluster.connect(Client::builder().policy(policy))?;
    let invocation = Invocation::new(&args.group, args.method.as_str());
    let invocation = invocation.json().body(body).within(args.deadline);
    let reading = match args.stale {
        Some(most) => Some(Reading::Stale(most)),
        None => args.read.then_some(Reading::Linearizable),
    };
    if let Some(replies) = args.replies {
        let answers = client.gather(invocation.balancing(replies.into()));
        return list(answers.map_err(Failure::failed)?);
    }
    let invocation = match reading {
        Some(reading) => invocation.reading(reading),
        None => invocation,
    };
    match client.call(invocation) {
        Ok(json) => pretty(&json),
        Err(BytesCallError::Service(json)) => Err(Failure::Failed(format!(
            "the service returned an error: {}",
            pretty(&json)?.trim_end()
        ))),
        Err(error) => Err(Failure::failed(error)),
    }
}

/// Lists the answer of each node's replica: its result, or why it has none.
fn list(mut answers: Vec<Answer>) -> Result<String, Failure> {
    answers.sort_by_key(|answer| answer.node);
    let said = |answer: Answer| {
        let (name, said) = match answer.result {
            Ok(json) => ("result", value(&json)?),
            Err(BytesCallError::Service(json)) => ("service_error", value(&json)?),
            Err(error) => ("error", to_raw_value(&error.to_string()).map_err(Failure::failed)?),
        };
        Ok((answer.node.to_string(), BTreeMap::from([(name, said)])))
    };
    let list = answers.into_iter().map(said).collect::<Result<BTreeMap<_, _>, Failure>>()?;
    pretty(&serde_json::to_vec(&list).map_err(Failure::failed)?)
}

/// The arguments, checked here: a node would only refuse them later.
fn arguments(given: &str) -> Result<String, Failure> {
    let text = if given == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::Failed(format!("cannot read standard input: {error}")))?;
        text
    } else {
        given.to_owned()
    };
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::Usage(format!(
            "the arguments are not JSON ({error}): give an array in order or an object by names, \
             in quotes for the shell, such as '[5]' or '{{\"n\": 5}}'"
        ))),
    }
}

fn pretty(json: &[u8]) -> Result<String, Failure> {
    Ok(indented(json).map_err(no_json)? + "\n")
}

fn value(json: &[u8]) -> Result<Box<RawValue>, Failure> {
    serde_json::from_slice(json).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> Failure {
    Failure::Failed(format!("the call was executed, but its answer is not JSON ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_json_or_a_usage_error() {
        assert_eq!(arguments("{\"n\": 5}"), Ok("{\"n\": 5}".to_owned()));
        assert!(matches!(arguments("n=5"), Err(Failure::Usage(_))));
    }
}
