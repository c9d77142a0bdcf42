//! A group's options: style, ack level, durability.

use core::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a group is replicated (`docs/protocol/group.md`, "Styles"; `ft-corba-totem.txt`, section
/// 2.1).
///
/// Text has the style's [name](Style::name), messages have its number. The numbers never change.
/// Their order is that of the effort without faults: later styles spend more to fail over faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Style {
    /// Calls are not ordered. The replica that receives a call executes it at once and replies. A
    /// retry may be executed again. Replicas share no state, and serve with or without a quorum.
    Stateless = 1,
    /// Only the primary executes the ordered calls. The backups keep its last checkpoint and the
    /// log of requests, and run no service. A new primary restores the checkpoint and replays the
    /// log.
    ColdPassive = 2,
    /// Only the primary executes, as calls arrive. Its replies wait until the backups hold the
    /// update. Handlers need not be deterministic.
    WarmPassive = 3,
    /// Every replica executes in the same order; the primary orders and replies.
    #[default]
    SemiActive = 4,
    /// Every replica executes in the same order. Each orders the calls that clients send to it, and
    /// replies to them. A client may send a call to two replicas.
    Active = 5,
    /// As active, but a reply leaves only when a majority of the replicas reports the same outcome.
    /// A replica that reports another outcome, or none, is removed and receives the state anew.
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

/// Which nodes must have a request before its reply may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckLevel {
    /// Only the node that ordered it (agreed delivery). This is the fastest level, but a crash may
    /// lose an acknowledged request.
    One,
    /// A majority of the configuration, and of the group's synced replicas. No acknowledged request
    /// is lost as long as half of them live.
    Majority,
    /// Every member of the configuration (safe delivery).
    All,
}

/// Which faults a group's acknowledged requests survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Requests are in the memory of the replicas' nodes. [`AckLevel`] states which failures of
    /// nodes they survive.
    #[default]
    Memory,
    /// Requests are on the disks of the replicas' nodes before the reply leaves. They survive the
    /// loss of power at all nodes at once.
    Disk,
}

/// A group's options. All its replicas must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupOptions {
    /// How the group is replicated.
    pub style: Style,
    /// When a reply may leave. It has no effect in a stateless group, but its replicas must have
    /// the same all the same.
    pub ack: AckLevel,
    /// Where its requests are kept. Optional in text.
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
