//! A call that all replicas are asked has the result that its number of replies says, and each
//! replica said what the client is told of it.
//!
//! Source: docs/protocol/client.md, "Multicast".

use super::hashed::HashSet;

use bytes::Bytes;
use client::{Answer, Balancing, CallError};
use wire::client::{Outcome, Refusal, Reply, Targets};
use wire::ordered::Style;
use wire::{ClientId, GroupId, NodeId};

use super::{Verdict, demand};

const PROPERTY: &str = "multicast";

/// Results that nodes have sent to clients.
#[derive(Clone, Default)]
pub struct Multicasts {
    told: HashSet<(ClientId, GroupId, NodeId, Bytes)>,
}

/// How a call has ended.
#[derive(Clone)]
pub struct Ended<'a> {
    /// The group that was called.
    pub group: GroupId,
    /// It changes nothing.
    pub reads: bool,
    /// The targets that the client knows. `None` if the group's style changes: which style this
    /// call met is not known.
    pub targets: Option<&'a Targets>,
    /// The result that the client reports.
    pub result: &'a Result<Bytes, CallError>,
    /// The answer of each replica.
    pub answers: &'a [Answer],
}

impl Multicasts {
    /// A node's reply leaves.
    pub fn replied(&mut self, by: NodeId, client: ClientId, reply: &Reply) {
        if let Outcome::Ok(bytes) | Outcome::Service(bytes) = &reply.outcome {
            self.told.insert((client, reply.group, by, bytes.clone()));
        }
    }

    /// A call of a client that chooses replicas so has ended.
    pub fn ended(&self, client: ClientId, balancing: Balancing, ended: &Ended<'_>) -> Verdict {
        let Ended { group, reads, targets, result, answers } = *ended;
        for answer in answers {
            let (Ok(bytes) | Err(CallError::Service(bytes))) = &answer.result else { continue };
            let told = (client, group, answer.node, bytes.clone());
            demand(self.told.contains(&told), PROPERTY, || {
                format!(
                    "{} has never told {client} what it is said to have: {answer:?}",
                    answer.node
                )
            })?;
        }
        let Some(targets) = targets else { return Ok(()) };
        let free = matches!(targets.style, Style::Stateless | Style::Active | Style::Voting);
        if !(free || reads && balancing == Balancing::FirstReply) || targets.nodes.is_empty() {
            return Ok(()); // it was a call of the group's primary, or of one that is gone
        }
        let count = |result: &Result<Bytes, CallError>| {
            answers.iter().filter(|answer| answer.result == *result).count()
        };
        let (alike, all) = (count(result), targets.nodes.len());
        let has_all = targets
            .nodes
            .iter()
            .all(|target| answers.iter().any(|answer| answer.node == target.node));
        let most = answers.iter().map(|answer| count(&answer.result)).max().unwrap_or(0);
        let split = matches!(result, Err(CallError::Refused { refusal: Refusal::Split, .. }));
        let executed = matches!(result, Ok(_) | Err(CallError::Service(_)));
        let right = match balancing {
            _ if !executed && !split => true, // whether it may fail is for others to judge
            Balancing::FirstReply => alike >= 1,
            // A voting group's replicas may say so themselves.
            Balancing::Majority | Balancing::All if split && alike > 0 => true,
            Balancing::Majority if split => has_all && 2 * most <= all,
            Balancing::Majority => {
                let is_target = |node| targets.nodes.iter().any(|target| target.node == node);
                let said = answers.iter().filter(|answer| answer.result == *result);
                2 * said.filter(|answer| is_target(answer.node)).count() > all
            }
            Balancing::All if split => has_all && most < answers.len(),
            Balancing::All => has_all && alike == answers.len(),
            _ => true, // it went to one replica
        };
        demand(right, PROPERTY, || {
            format!(
                "{client} waits for {balancing:?} of {all} in {group}, is told {answers:?}, and says {result:?}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ViewNumber;
    use wire::client::Target;

    const CLIENT: ClientId = ClientId(1);
    const GROUP: GroupId = GroupId(2);

    fn targets(count: u32) -> Targets {
        let address = ([127, 0, 0, 1], 7_001).into();
        let nodes = (1..=count).map(|node| Target { node: NodeId(node), address }).collect();
        Targets { view: ViewNumber(1), style: Style::Stateless, nodes }
    }

    fn ok(text: &'static str) -> Result<Bytes, CallError> {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    fn split() -> Result<Bytes, CallError> {
        Err(CallError::Refused { refusal: Refusal::Split, reason: String::new() })
    }

    /// Nodes 1, 2 and 3 say these, and the client that.
    fn say(
        balancing: Balancing,
        said: &[&'static str],
        result: &Result<Bytes, CallError>,
    ) -> Verdict {
        let mut multicasts = Multicasts::default();
        let answers: Vec<Answer> =
            (1..).zip(said).map(|(node, text)| Answer::new(NodeId(node), ok(text))).collect();
        for answer in &answers {
            let outcome = Outcome::Ok(answer.result.clone().unwrap());
            let (view, targets) = (ViewNumber(1), None);
            let reply = Reply { number: 1, group: GROUP, view, targets, outcome };
            multicasts.replied(answer.node, CLIENT, &reply);
        }
        let targets = targets(3);
        let (targets, answers) = (Some(&targets), &answers[..]);
        let ended = Ended { group: GROUP, reads: false, targets, result, answers };
        multicasts.ended(CLIENT, balancing, &ended)
    }

    #[test]
    fn results_that_the_answers_do_not_give_are_seen() {
        use Balancing::{All, FirstReply, Majority};
        say(FirstReply, &["a"], &ok("a")).unwrap();
        say(FirstReply, &["a"], &ok("b")).unwrap_err();
        say(Majority, &["a", "a"], &ok("a")).unwrap();
        say(Majority, &["a", "b"], &ok("a")).unwrap_err();
        say(Majority, &["a", "b", "c"], &split()).unwrap();
        say(Majority, &["a", "b", "b"], &split()).unwrap_err();
        say(Majority, &["a", "b"], &split()).unwrap_err();
        say(All, &["a", "a", "a"], &ok("a")).unwrap();
        say(All, &["a", "a"], &ok("a")).unwrap_err();
        say(All, &["a", "a", "b"], &ok("a")).unwrap_err();
        say(All, &["a", "a", "b"], &split()).unwrap();
        say(All, &["a", "a", "a"], &split()).unwrap_err();
    }

    #[test]
    fn what_a_node_has_never_told_is_seen() {
        let answers = &[Answer::new(NodeId(1), ok("a"))][..];
        let (targets, result) = (None, &ok("a"));
        let ended = Ended { group: GROUP, reads: false, targets, result, answers };
        Multicasts::default().ended(CLIENT, Balancing::FirstReply, &ended).unwrap_err();
    }
}
