//! Plans: the contents of a world of the explorer, and the faults that may strike it.

use clap::ValueEnum;
use engine::{Checkpoints, Quorum};
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};
use wire::{Duration, GroupId};

use super::order::NODES;
use crate::cluster::DiskPlan;
use crate::draw::Draw;
use crate::options::{GroupPlan, Options, World as Kind};
use crate::plant::Plant;

/// The name of the group.
pub const GROUP: &str = "g";

/// A world of the explorer: three nodes, one group, one client for each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How the group is replicated.
    pub style: Style,
    /// Calls, each of a client of its own.
    pub calls: usize,
    /// Deaths at most: of programs, of nodes, and of disks' hosts.
    pub deaths: usize,
    /// The group is on the nodes' disks. A node that dies may lose power.
    pub disks: bool,
    /// Times that a node is cut off from the others, at most.
    pub cuts: usize,
    /// Times that a replica is given up and hosted again, at most.
    pub leaves: usize,
    /// Deaths wait for nothing but the quorum's promise: a program's death need not be known before
    /// the next death.
    pub hasty: bool,
    /// The first call kills every program that executes it, as far as the promise covers that.
    pub deadly: bool,
    /// The first call is asked for at a backup, the next ones at others.
    pub spread: bool,
    /// Programs are quicker than the network, unless they are held back; else they are slower.
    pub quick: bool,
    /// Faults strike, too, when all calls are answered and what was lost is coming back.
    pub late: bool,
    /// Which deaths there are.
    pub victims: Victims,
    /// A mistake planted on purpose.
    pub plant: Plant,
}

/// The victims of deaths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Victims {
    /// Programs and nodes.
    #[default]
    All,
    /// Nodes alone.
    Nodes,
    /// Programs alone.
    Programs,
}

impl Plan {
    /// The smallest world of this style.
    pub fn new(style: Style) -> Plan {
        Plan {
            style,
            calls: 2,
            deaths: 1,
            disks: false,
            cuts: 0,
            leaves: 0,
            hasty: false,
            deadly: false,
            spread: false,
            quick: false,
            late: false,
            victims: Victims::All,
            plant: Plant::default(),
        }
    }

    /// The worlds that CI explores.
    pub fn usual(style: Style) -> [Plan; 6] {
        let few = Plan::new(style);
        [
            few,
            Plan { quick: true, ..few },
            Plan { calls: 3, deaths: 2, spread: true, ..few },
            Plan { cuts: 1, ..few },
            Plan { disks: true, ..few },
            Plan { calls: 1, deaths: 2, leaves: 1, victims: Victims::Programs, ..few },
        ]
    }

    /// The group.
    pub fn group() -> GroupId {
        GroupId::of(GROUP)
    }

    /// The group as checkers and executors know it.
    pub fn group_plan(&self) -> GroupPlan {
        let durability = if self.disks { Durability::Disk } else { Durability::Memory };
        GroupPlan {
            name: GROUP.into(),
            hosts: (0..NODES).collect(),
            options: GroupOptions { style: self.style, ack: AckLevel::Majority, durability },
            tells: false,
            checkpoints: Checkpoints {
                requests: 2,
                bytes: 1 << 20,
                interval: Duration::from_secs(10),
            },
            padding: 0,
            lies: None,
            callee: None,
            styles: Vec::new(),
            program: true,
            poisonous: false,
        }
    }

    /// Returns the options by which checkers of clusters know the world.
    pub fn options(&self) -> Options {
        let mut draw = Draw::new(0);
        let drawn = Options::draw(&mut draw, Kind::Cluster);
        Options {
            nodes: NODES,
            groups: vec![self.group_plan()],
            quorum: Quorum::Majority,
            disks: self.disks.then(|| DiskPlan::draw(&mut draw)),
            restyles: None,
            deploy: None,
            compare: None,
            ..drawn
        }
    }

    /// The world in words, as the head of a trace has it.
    pub fn in_words(&self) -> String {
        let Plan { style, calls, deaths, cuts, leaves, .. } = self;
        let mut words =
            format!("world {style} calls {calls} deaths {deaths} cuts {cuts} leaves {leaves}");
        for (word, is) in [
            (" disks", self.disks),
            (" hasty", self.hasty),
            (" deadly", self.deadly),
            (" spread", self.spread),
            (" quick", self.quick),
            (" late", self.late),
            (" nodes", self.victims == Victims::Nodes),
            (" programs", self.victims == Victims::Programs),
        ] {
            words += if is { word } else { "" };
        }
        words
    }

    /// Reads those words; says what is wrong with them.
    pub fn read(words: &str) -> Result<Plan, String> {
        let mut words = words.split_whitespace();
        let wrong =
            || "a trace begins with: world STYLE calls N deaths N cuts N leaves N".to_owned();
        if words.next() != Some("world") {
            return Err(wrong());
        }
        let style = words.next().ok_or_else(wrong)?;
        let mut plan = Plan::new(style_named(style)?);
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong);
            match word {
                "calls" => plan.calls = number()?,
                "deaths" => plan.deaths = number()?,
                "cuts" => plan.cuts = number()?,
                "leaves" => plan.leaves = number()?,
                "disks" => plan.disks = true,
                "hasty" => plan.hasty = true,
                "deadly" => plan.deadly = true,
                "spread" => plan.spread = true,
                "quick" => plan.quick = true,
                "late" => plan.late = true,
                "nodes" => plan.victims = Victims::Nodes,
                "programs" => plan.victims = Victims::Programs,
                other => return Err(format!("{other:?} is no word of a world: {}", wrong())),
            }
        }
        Ok(plan)
    }
}

/// The styles that order calls, each by its name.
pub const STYLES: [Style; 5] =
    [Style::Active, Style::SemiActive, Style::Voting, Style::WarmPassive, Style::ColdPassive];

/// The style of this name.
pub fn style_named(name: &str) -> Result<Style, String> {
    let found = STYLES.into_iter().find(|style| style.to_string() == name);
    let names = STYLES.map(|style| style.to_string()).join(", ");
    found.ok_or_else(|| format!("{name:?} is no style that orders calls: take one of {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_read_as_it_was_told() {
        for style in STYLES {
            let plan = Plan { calls: 3, deaths: 2, cuts: 1, leaves: 1, ..Plan::new(style) };
            let disks = Plan { disks: true, hasty: true, victims: Victims::Nodes, ..plan };
            let other = Plan { deadly: true, spread: true, late: true, quick: true, ..plan };
            for plan in [plan, disks, other] {
                assert_eq!(Plan::read(&plan.in_words()), Ok(plan));
            }
        }
        assert!(Plan::read("world sideways calls 2").unwrap_err().contains("semi-active"));
        assert!(Plan::read("call 1 2").unwrap_err().contains("begins with"));
        assert!(Plan::read("world active calls many").is_err());
    }
}
