//! `steadfast call`: tries a method by hand.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value, json};
use steadfast::{Answer, Balancing, BytesCallError, Client, Invocation, Policy, Reading, Tls};

use super::at::host_port;
use super::context::Context;
use super::wait::duration;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast call counter get                                   where `steadfast context` says
  steadfast call counter get --at 127.0.0.1:7100
  steadfast call counter add '[5]' --at 127.0.0.1:7100,127.0.0.1:7101
  steadfast call counter add '{\"n\": 5}' --at 127.0.0.1:7100 --deadline 250ms
  steadfast call counter get --at 127.0.0.1:7100 --read
  steadfast call counter get --at 127.0.0.1:7100 --stale 500ms
  steadfast call thermometer read --at 127.0.0.1:7100 --replies all
  steadfast call plant shut-down --at 127.0.0.1:7100 --priority 200
  steadfast call echo anything - --at 127.0.0.1:7100 < arguments.json
  steadfast call counter get --at 10.0.0.1:7100,10.0.0.2:7100 --tls plant/client-app

A method that the service does not have is refused with a list of those that it has.
The result is JSON on standard output.

Exit codes:
  0  it was executed, and this is its result
  1  there is no result: standard error says why, and whether it was executed
  2  the command line is wrong";

/// Calls a method of a service by hand: JSON in, JSON out.
///
/// This is a call like any other: it is ordered, executed by every replica, and changes the
/// service's state if the method does. With --read or --stale one replica answers it without
/// ordering; a method that may change the state is then refused.
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
    /// Client addresses of one or more nodes. Any node finds the group. Without them the context
    /// says where: see `steadfast context`.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = host_port)]
    at: Vec<String>,
    /// Talks TLS with the identity in this folder: one that `steadfast init` made for a client.
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,
    /// How long to wait for the result, such as 250ms or 1.5s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    deadline: Duration,
    /// Answers without ordering, by what is true now. Only for methods that change nothing.
    #[arg(long, conflicts_with = "replies")]
    read: bool,
    /// The same, perhaps by what was true so long ago, such as 500ms or 2s: answered also while the
    /// cluster forms anew.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "replies")]
    stale: Option<Duration>,
    /// Asks all replicas at once, and prints what each node's says once the first, so many as make
    /// a majority of like answers, or all have answered. Where calls are ordered there is one
    /// answer.
    #[arg(long, value_enum, value_name = "HOW MANY")]
    replies: Option<HowMany>,
    /// How critical the call is, 0 to 255: where a host has more to do than it can, calls of less
    /// are refused first. The calls that its handler makes have the same.
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

/// The nodes, and the folder of the certificate.
fn whom(args: &Args) -> Result<(Vec<String>, Option<PathBuf>), Failure> {
    if !args.at.is_empty() {
        return Ok((args.at.clone(), args.tls.clone()));
    }
    let context = Context::load()?;
    if context.clients.is_empty() {
        let why = "say where the cluster is: --at HOST:PORT, or `steadfast context use DIR`";
        return Err(Failure::Usage(why.into()));
    }
    Ok((context.clients, args.tls.clone().or(context.client_tls)))
}

fn call(args: &Args) -> Result<String, Failure> {
    let body = arguments(&args.arguments)?;
    let (at, tls) = whom(args)?;
    let mut builder = Client::builder().policy(Policy::default().priority(args.priority));
    if let Some(folder) = &tls {
        builder = builder.tls(Tls::from_dir(folder).map_err(Failure::usage)?);
    }
    let client = builder.connect(&at).map_err(Failure::failed)?;
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
        Err(BytesCallError::Service(json)) => {
            Err(Failure::Failed(format!("the service answered: {}", pretty(&json)?.trim_end())))
        }
        Err(error) => Err(Failure::failed(error)),
    }
}

/// Lists the answer of each node's replica: its result, or why it has none.
fn list(mut answers: Vec<Answer>) -> Result<String, Failure> {
    answers.sort_by_key(|answer| answer.node);
    let said = |answer: Answer| {
        let said = match answer.result {
            Ok(json) => json!({ "result": value(&json)? }),
            Err(BytesCallError::Service(json)) => json!({ "service_error": value(&json)? }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        Ok((answer.node.to_string(), said))
    };
    let list = answers.into_iter().map(said).collect::<Result<Map<_, _>, Failure>>()?;
    Ok(format!("{:#}\n", Value::Object(list)))
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
    Ok(format!("{:#}\n", value(json)?))
}

fn value(json: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(json).map_err(|error| {
        Failure::Failed(format!(
            "executed, but the service answered something else than JSON ({error})"
        ))
    })
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
