//! What a group's members must agree on.

use core::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a group is replicated (`docs/protocol/group.md`, "Styles"; `ft-corba-totem.txt`, section 2.1).
///
/// In text it is its [name](Style::name), in messages its number. The numbers never change, and are in the
/// order of what a style spends on a fault that has not happened yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Style {
    /// Nothing is ordered: whichever replica a call comes to executes it at once and answers. A retry may be
    /// executed again. Replicas have no state in common, and serve with or without a quorum.
    Stateless = 1,
    /// The primary alone executes, what is ordered. The others log the requests, keep its last checkpoint, and run no
    /// service until one of them becomes primary: that one restores the checkpoint and replays the log.
    ColdPassive = 2,
    /// The primary alone executes, when a call comes, and its replies wait until the others hold what that has
    /// changed. Handlers need not be deterministic.
    WarmPassive = 3,
    /// Every replica executes in the same order; the primary orders and answers.
    #[default]
    SemiActive = 4,
    /// Every replica executes in the same order; any of them orders and answers the calls of the clients
    /// that come to it, and a client may ask two of them at a time.
    Active = 5,
    /// As active, and an answer leaves when a majority of the replicas has told that it has the same. A replica that
    /// has another, or tells none, is taken out and given the state anew.
    Voting = 6,
}

impl Style {
    /// Every style.
    pub const ALL: [Style; 6] = [
        Style::Stateless,
        Style::ColdPassive,
        Style::WarmPassive,
        Style::SemiActive,
        Style::Active,
        Style::Voting,
    ];

    /// Its name in configurations and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Style::Stateless => "stateless",
            Style::ColdPassive => "cold-passive",
            Style::WarmPassive => "warm-passive",
            Style::SemiActive => "semi-active",
            Style::Active => "active",
            Style::Voting => "voting",
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Style {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(self.name())
        } else {
            serializer.serialize_u8(*self as u8)
        }
    }
}

impl<'de> Deserialize<'de> for Style {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Style, D::Error> {
        let by_name = deserializer.is_human_readable();
        if by_name {
            return deserializer.deserialize_str(Name);
        }
        let number = u8::deserialize(deserializer)?;
        let style = Style::ALL.into_iter().find(|style| *style as u8 == number);
        style.ok_or_else(|| D::Error::custom("no style has this number"))
    }
}

/// Reads a style's name.
struct Name;

impl serde::de::Visitor<'_> for Name {
    type Value = Style;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a style of replication: ")?;
        let mut between = "";
        for style in Style::ALL {
            write!(f, "{between}`{style}`")?;
            between = ", ";
        }
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Style, E> {
        let style = Style::ALL.into_iter().find(|style| style.name() == name);
        style.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(name), &self))
    }
}

/// Who must hold a request before its reply may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckLevel {
    /// The node alone that ordered it (agreed delivery): quickest; a crash may lose an answered request.
    One,
    /// A majority of the configuration, and of the group's synced replicas: as long as half of these live, no
    /// answered request is lost.
    Majority,
    /// Every member of the configuration (safe delivery).
    All,
}

/// What a group's requests survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// They are kept in the memory of the replicas' nodes: an answered request survives as long as
    /// [`AckLevel`] says.
    #[default]
    Memory,
    /// They are on the disks of the replicas' nodes before the reply leaves: an answered request survives the loss of
    /// power at every node at once.
    Disk,
}

/// What a group's members must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupOptions {
    /// How the group is replicated.
    pub style: Style,
    /// When a reply may leave. Means nothing to a stateless group, whose members must agree on it all the same.
    pub ack: AckLevel,
    /// Where its requests are kept. In text it may be left out.
    #[serde(default)]
    pub durability: Durability,
}

impl Default for GroupOptions {
    fn default() -> Self {
        GroupOptions {
            style: Style::default(),
            ack: AckLevel::Majority,
            durability: Durability::Memory,
        }
    }
}
