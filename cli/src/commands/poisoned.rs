//! `steadfast poisoned`: the calls that killed a group's services.

use std::fmt::Write;
use std::process::ExitCode;

use steadfast::NodeId;
use steadfast::admin::{PoisonedAnswer, PoisonedCall};
use steadfast::status::GroupStatus;

use super::at::At;
use super::human::aligned;
use super::state::moment;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast poisoned counter                     from this host's node
  steadfast poisoned counter --connect 10.0.0.2:7101 --tls plant/admin-ops
  steadfast poisoned counter --admin node.sock --json | jq -r '.calls[-1].arguments_hex' | xxd -r -p

A call that killed two services is poisonous: every replica refuses it. The call changed nothing,
and its caller gets `Refused: Poisoned`. A group stores its last 64 such calls, with the first
64 KiB of their arguments (`truncated` marks longer ones). They are part of the group's state: ask
any node with a synced replica. A cold passive group's backup only has those of the last checkpoint:
ask the primary's node.

What to do: examine the arguments and the logs of the named nodes. Correct the service before a
client sends the call again.

A method is shown by its id, which clients compute from its name. Arguments are JSON, or in the
encoding of the client's stub (postcard in Rust).

Exit codes:
  0  the list is complete, or empty
  1  there is no list: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Lists the calls that killed a group's services.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The group; `steadfast status` lists them.
    group: String,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text, with the arguments.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let mut node = args.at.connect()?;
    let status = node.status().map_err(Failure::failed)?;
    knows(status.node, &status.groups, &args.group)?;
    let answer = node.poisoned(&args.group).map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string_pretty(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&text(&answer))
}

/// The node has the group's state; else who has it is named.
fn knows(node: NodeId, groups: &[GroupStatus], name: &str) -> Result<(), Failure> {
    let group = groups.iter().find(|group| group.name == name).ok_or_else(|| {
        Failure::Failed(format!(
            "the cluster has no group {name}: `steadfast status` lists the groups"
        ))
    })?;
    let synced = || group.replicas.iter().filter(|replica| replica.synced);
    if synced().any(|replica| replica.node == node) {
        return Ok(());
    }
    let others: Vec<NodeId> = synced().map(|replica| replica.node).collect();
    let remedy = match &others[..] {
        [] => "no node has it: start the nodes and programs of its replicas".to_owned(),
        others => format!(
            "ask {}, with `--admin PATH` on its host or `--connect HOST:PORT --tls DIR`",
            list(others, " or ")
        ),
    };
    Err(Failure::Failed(format!("{node} has no replica with the state of {name}; {remedy}")))
}

fn text(answer: &PoisonedAnswer) -> String {
    let PoisonedAnswer { node, group, calls } = answer;
    if calls.is_empty() {
        return format!("{group}: no poisonous calls ({node})\n");
    }
    let mut text = format!("{group}: calls that killed its services ({node}):\n");
    let heads = ["NUMBER", "CLIENT", "CALL", "METHOD", "TIME (UTC)", "DIED AT", "ARGUMENTS"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(calls.iter().map(row));
    for row in aligned(&rows) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {row}");
    }
    text
}

fn row(call: &PoisonedCall) -> [String; 7] {
    let form = if call.json { "JSON" } else { "binary" };
    [
        call.number.to_string(),
        call.client.to_string(),
        call.call.to_string(),
        call.method.to_string(),
        moment(call.time.0 / 1_000),
        list(&call.nodes, " "),
        format!("{} bytes, {form}", call.size),
    ]
}

fn list(nodes: &[NodeId], between: &str) -> String {
    let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    names.join(between)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use steadfast::{ClientId, MethodId, Time};

    use super::*;

    fn answer(calls: Vec<PoisonedCall>) -> PoisonedAnswer {
        PoisonedAnswer { node: NodeId(2), group: "counter".into(), calls }
    }

    #[test]
    fn each_call_has_a_line() {
        let first = PoisonedCall {
            number: 5,
            client: ClientId(7),
            call: 9,
            method: MethodId(3),
            json: true,
            time: Time(1_795_572_000_123_456_789),
            nodes: vec![NodeId(1), NodeId(3)],
            size: 3,
            truncated: false,
            arguments_hex: "5b315d".into(),
        };
        let nodes = vec![NodeId(1), NodeId(2), NodeId(1)];
        let second = PoisonedCall {
            number: 1_234_567,
            json: false,
            size: 100_000,
            truncated: true,
            nodes,
            ..first.clone()
        };
        expect![[r#"
            counter: calls that killed its services (n2):
              NUMBER   CLIENT             CALL  METHOD     TIME (UTC)            DIED AT   ARGUMENTS
              5        c0000000000000007  9     m00000003  2026-11-25T02:00:00Z  n1 n3     3 bytes, JSON
              1234567  c0000000000000007  9     m00000003  2026-11-25T02:00:00Z  n1 n2 n1  100000 bytes, binary
        "#]].assert_eq(&text(&answer(vec![first, second])));
    }

    #[test]
    fn none_is_said_in_words() {
        expect![[r"
            counter: no poisonous calls (n2)
        "]]
        .assert_eq(&text(&answer(Vec::new())));
    }

    #[test]
    fn who_does_not_know_names_who_does() {
        let replica = |node: u32, synced: bool| serde_json::json!({ "node": node, "incarnation": 1, "synced": synced });
        let group: GroupStatus = serde_json::from_value(serde_json::json!({
            "name": "counter", "style": "semi-active", "ack": "majority", "view": 3,
            "primary": null, "sessions": null, "executed": null,
            "replicas": [replica(1, true), replica(2, false), replica(3, true)],
        }))
        .expect("a group's status");
        let ask = |node, name| knows(NodeId(node), std::slice::from_ref(&group), name);
        assert_eq!(ask(1, "counter"), Ok(()));
        for node in [2, 4] {
            let Err(Failure::Failed(why)) = ask(node, "counter") else { panic!("n{node} knows") };
            assert!(why.contains("ask n1 or n3, with"), "{why}");
        }
        let Err(Failure::Failed(why)) = ask(1, "other") else { panic!("no such group") };
        assert!(why.contains("`steadfast status` lists the groups"), "{why}");
    }
}
