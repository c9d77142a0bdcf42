//! Choices: the steps that a world may take next, and their words in a trace.

use std::fmt;

/// One thing that happens. Nodes and calls are counted from 0, in words from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// These nodes form a configuration.
    Form(Vec<usize>),
    /// The client of this call asks this node.
    Ask(usize, usize),
    /// The node receives its next message, sends its own next one, or enters its configuration.
    Receive(usize),
    /// The node learns how far another is in the order, and with its disk.
    Hear(usize, usize),
    /// The node's disk has the first thing that it was given.
    Write(usize),
    /// The node's program ends the command that it executes.
    Run(usize),
    /// The next program of the node is there.
    Attach(usize),
    /// The node starts again.
    Boot(usize),
    /// The node cut off is reached again.
    Heal,
    /// The node's next timer is due.
    Tick(usize),
    /// The node's process dies. What its disk was given comes to the disk.
    Kill(usize),
    /// The node's host loses power. What its disk has not written is lost.
    Power(usize),
    /// The node's program dies.
    Fall(usize),
    /// The node is cut off.
    Cut(usize),
    /// The node gives its replica up, and hosts another one when that is gone.
    Leave(usize),
}

/// The actor of a step. It has at most one thing to do next, but for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// Those who form configurations.
    Membership,
    /// The client of a call.
    Client(usize),
    /// The order, as it comes to a node.
    Order(usize),
    /// A node's knowledge of another.
    Ear(usize, usize),
    /// A node's disk.
    Disk(usize),
    /// A node's program.
    Program(usize),
    /// The starter of a node's next program.
    Starter(usize),
    /// The starter of a node.
    Host(usize),
    /// The network's healing.
    Network,
    /// Time.
    Clock,
    /// Faults wait for nobody.
    Fate,
}

impl Choice {
    /// Returns its actor.
    pub fn actor(&self) -> Actor {
        match *self {
            Choice::Form(_) => Actor::Membership,
            Choice::Ask(call, _) => Actor::Client(call),
            Choice::Receive(node) => Actor::Order(node),
            Choice::Hear(node, of) => Actor::Ear(node, of),
            Choice::Write(node) => Actor::Disk(node),
            Choice::Run(node) => Actor::Program(node),
            Choice::Attach(node) => Actor::Starter(node),
            Choice::Boot(node) => Actor::Host(node),
            Choice::Heal => Actor::Network,
            Choice::Tick(_) => Actor::Clock,
            Choice::Kill(_)
            | Choice::Power(_)
            | Choice::Fall(_)
            | Choice::Cut(_)
            | Choice::Leave(_) => Actor::Fate,
        }
    }

    /// It is a fault, which has a budget of its own.
    pub fn is_fault(&self) -> bool {
        self.actor() == Actor::Fate
    }

    /// Reads a line of a trace.
    pub fn read(line: &str) -> Result<Choice, String> {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let numbers: Result<Vec<usize>, _> = words.map(str::parse::<usize>).collect();
        let numbers = numbers.map_err(|_| format!("{line:?}: numbers follow the verb"))?;
        if numbers.contains(&0) {
            return Err(format!("{line:?}: nodes and calls are counted from 1"));
        }
        let numbers: Vec<usize> = numbers.into_iter().map(|number| number - 1).collect();
        Ok(match (verb, &numbers[..]) {
            ("form", [_, ..]) => Choice::Form(numbers),
            ("ask", &[call, node]) => Choice::Ask(call, node),
            ("receive", &[node]) => Choice::Receive(node),
            ("hear", &[node, of]) => Choice::Hear(node, of),
            ("write", &[node]) => Choice::Write(node),
            ("run", &[node]) => Choice::Run(node),
            ("attach", &[node]) => Choice::Attach(node),
            ("boot", &[node]) => Choice::Boot(node),
            ("heal", &[]) => Choice::Heal,
            ("tick", &[node]) => Choice::Tick(node),
            ("kill", &[node]) => Choice::Kill(node),
            ("power", &[node]) => Choice::Power(node),
            ("fall", &[node]) => Choice::Fall(node),
            ("cut", &[node]) => Choice::Cut(node),
            ("leave", &[node]) => Choice::Leave(node),
            _ => {
                return Err(format!(
                    "{line:?} is no step: form, ask, receive, hear, write, run, attach, boot, heal, tick, \
                     kill, power, fall, cut or leave, and numbers"
                ));
            }
        })
    }

    /// Returns its meaning.
    pub fn in_words(&self) -> String {
        let n = |node: &usize| node + 1;
        match self {
            Choice::Form(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(|node| n(node).to_string()).collect();
                format!("nodes {} form a configuration", nodes.join(", "))
            }
            Choice::Ask(call, node) => format!("client {} asks node {}", n(call), n(node)),
            Choice::Receive(node) => format!("node {} goes on in the order", n(node)),
            Choice::Hear(node, of) => format!("node {} learns what node {} has", n(node), n(of)),
            Choice::Write(node) => format!("the disk of node {} writes", n(node)),
            Choice::Run(node) => format!("the program of node {} ends a command", n(node)),
            Choice::Attach(node) => format!("the next program of node {} is there", n(node)),
            Choice::Boot(node) => format!("node {} starts", n(node)),
            Choice::Heal => "the network is whole".into(),
            Choice::Tick(node) => format!("a timer of node {} is due", n(node)),
            Choice::Kill(node) => format!("NODE {} DIES", n(node)),
            Choice::Power(node) => format!("NODE {} LOSES POWER", n(node)),
            Choice::Fall(node) => format!("THE PROGRAM OF NODE {} DIES", n(node)),
            Choice::Cut(node) => format!("NODE {} IS CUT OFF", n(node)),
            Choice::Leave(node) => format!("THE REPLICA OF NODE {} IS TO LEAVE", n(node)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, numbers) = match self {
            Choice::Form(nodes) => ("form", nodes.clone()),
            Choice::Ask(call, node) => ("ask", vec![*call, *node]),
            Choice::Receive(node) => ("receive", vec![*node]),
            Choice::Hear(node, of) => ("hear", vec![*node, *of]),
            Choice::Write(node) => ("write", vec![*node]),
            Choice::Run(node) => ("run", vec![*node]),
            Choice::Attach(node) => ("attach", vec![*node]),
            Choice::Boot(node) => ("boot", vec![*node]),
            Choice::Heal => ("heal", Vec::new()),
            Choice::Tick(node) => ("tick", vec![*node]),
            Choice::Kill(node) => ("kill", vec![*node]),
            Choice::Power(node) => ("power", vec![*node]),
            Choice::Fall(node) => ("fall", vec![*node]),
            Choice::Cut(node) => ("cut", vec![*node]),
            Choice::Leave(node) => ("leave", vec![*node]),
        };
        f.write_str(verb)?;
        numbers.iter().try_for_each(|number| write!(f, " {}", number + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_was_told() {
        let all = [
            Choice::Form(vec![0, 2]),
            Choice::Ask(1, 2),
            Choice::Receive(0),
            Choice::Hear(0, 1),
            Choice::Write(1),
            Choice::Run(2),
            Choice::Attach(0),
            Choice::Boot(1),
            Choice::Heal,
            Choice::Tick(2),
            Choice::Kill(0),
            Choice::Power(1),
            Choice::Fall(2),
            Choice::Cut(0),
            Choice::Leave(1),
        ];
        for choice in all {
            assert_eq!(Choice::read(&choice.to_string()), Ok(choice.clone()));
            assert!(!choice.in_words().is_empty());
        }
        assert!(Choice::read("jump 1").unwrap_err().contains("form, ask"));
        assert!(Choice::read("kill 0").unwrap_err().contains("from 1"));
        assert!(Choice::read("kill two").is_err() && Choice::read("kill 1 2").is_err());
    }
}
