//! Where in the file a problem stands, so that its line can be told.

use toml::de::{DeTable, DeValue};

use crate::error::Problem;
use crate::knobs::TIMERS;

/// Where in the file a problem is: a path of keys, list places as numbers.
pub(crate) enum Step {
    Key(&'static str),
    Index(usize),
}

impl Problem {
    /// The path of the knob to look at.
    pub(crate) fn place(&self) -> Vec<Step> {
        use Step::{Index, Key};
        match self {
            Problem::Name { key, .. } => vec![Key(key)],
            Problem::Millis { key, .. } => vec![Key("ring"), Key(key)],
            Problem::RightLacks { index, key } => {
                vec![Key("rights"), Key("rule"), Index(*index), Key(key)]
            }
            Problem::RightTwice { index, .. } | Problem::RightNameLong { index, .. } => {
                vec![Key("rights"), Key("rule"), Index(*index), Key("name")]
            }
            Problem::RightsWithoutTls => vec![Key("rights")],
            Problem::Settle(_) => vec![Key("upgrade"), Key("settle_ms")],
            Problem::VoteTimeout(_) => vec![Key("voting"), Key("timeout_ms")],
            Problem::Hung(_) => vec![Key("hung"), Key("within_ms")],
            Problem::Registry(_) => vec![Key("registry"), Key("lease_ms")],
            Problem::CopiesWithoutTls => vec![Key("jobs"), Key("listen")],
            Problem::JobsWithoutAdmin => vec![Key("jobs"), Key("folder")],
            Problem::System(problem) => {
                [Key("system")].into_iter().chain(problem.key().map(Key)).collect()
            }
            Problem::Labels(_) => vec![Key("labels")],
            Problem::Manager { key, .. } => vec![Key("manager"), Key(key)],
            Problem::MeMissing(_) => vec![Key("node")],
            Problem::NodeTwice { index, .. } => vec![Key("nodes"), Index(*index), Key("id")],
            Problem::RingAddressTwice { index, .. }
            | Problem::RingAddressUnusable { index, .. }
            | Problem::RingName { index, .. }
            | Problem::RingLinks { index, .. }
            | Problem::RingLinksDiffer { index, .. }
            | Problem::RingHostTwice { index, .. }
            | Problem::RingPortZero { index }
            | Problem::Mixed { index, .. }
            | Problem::InsecureRing { index, .. } => {
                vec![Key("nodes"), Index(*index), Key("ring")]
            }
            Problem::AdvertiseWithoutClient | Problem::Advertise(_) => {
                vec![Key("listen"), Key("advertise")]
            }
            Problem::AdminWithoutTls(_)
            | Problem::AdminPortTaken(_)
            | Problem::InsecureAdmin { .. } => vec![Key("listen"), Key("admin")],
            Problem::GrpcWithoutClient(_) | Problem::GrpcPort(_) | Problem::InsecureGrpc { .. } => {
                vec![Key("listen"), Key("grpc")]
            }
            Problem::TlsIncomplete(_) => vec![Key("security")],
            Problem::ClientIsRing(_) | Problem::InsecureClient { .. } => {
                vec![Key("listen"), Key("client")]
            }
            Problem::TooManyReplicas(_) => vec![Key("replica")],
            Problem::GroupName { index, .. } | Problem::ReplicaTwice { index, .. } => {
                vec![Key("replica"), Index(*index), Key("group")]
            }
            Problem::Checkpoints => vec![Key("checkpoints")],
            Problem::AckOfStateless { index } => vec![Key("replica"), Index(*index), Key("ack")],
            Problem::LanesOfOrdered { index } => {
                vec![Key("replica"), Index(*index), Key("execution")]
            }
            Problem::DiskOfStateless { index } => {
                vec![Key("replica"), Index(*index), Key("durability")]
            }
            Problem::NoStorage { table, index } => {
                vec![Key(table), Index(*index), Key("durability")]
            }
            Problem::StorageWithoutDataDir => vec![Key("storage")],
            Problem::ProgramsWithoutAdmin | Problem::TooManyPrograms(_) => vec![Key("program")],
            Problem::Program { index, .. } => vec![Key("program"), Index(*index)],
            Problem::ProgramTwice { index, .. } => {
                vec![Key("program"), Index(*index), Key("group")]
            }
            Problem::Priority { key, .. } => vec![Key("realtime"), Key(key)],
            Problem::Spin(_) => vec![Key("realtime"), Key("spin_us")],
            Problem::WakeWithin(_) => vec![Key("realtime"), Key("wake_within_us")],
            Problem::Reserve { .. } => vec![Key("realtime"), Key("runtime_us")],
            Problem::Network(_) | Problem::NetworkWithoutDaemon => {
                vec![Key("realtime"), Key("network_mb_s")]
            }
            Problem::ReserveMost(_) => vec![Key("realtime"), Key("runtime_most_us")],
            Problem::ReservePinned => vec![Key("realtime"), Key("cpus")],
            Problem::Ring(error) => ring_place(error),
        }
    }
}

fn ring_place(error: &ring::ConfigError) -> Vec<Step> {
    use Step::Key;
    let key = match error {
        ring::ConfigError::Datagram(_) => "datagram",
        ring::ConfigError::Window(_) => "window",
        ring::ConfigError::Turn(_) => "turn",
        ring::ConfigError::Accelerated(_) => "accelerated",
        ring::ConfigError::SlowShare(_) => "slow_share",
        // A rule about timers begins with the name of the one that breaks it.
        ring::ConfigError::Timing(rule) => TIMERS
            .iter()
            .copied()
            .find(|key| rule.starts_with(key.trim_end_matches("_ms")))
            .unwrap_or("token_timeout_ms"),
        _ => return vec![Key("nodes")],
    };
    vec![Key("ring"), Key(key)]
}

/// The line of the value at this path, or of as much of the path as the file has.
pub(crate) fn line_of(text: &str, path: &[Step]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut start = None;
    let mut here: Option<&DeValue<'_>> = None;
    for step in path {
        let next = match (step, here) {
            (Step::Key(key), None) => table.get_ref().get(*key),
            (Step::Key(key), Some(DeValue::Table(table))) => table.get(*key),
            (Step::Index(index), Some(DeValue::Array(array))) => array.get(*index),
            _ => None,
        };
        let Some(value) = next else { break };
        start = Some(value.span().start);
        here = Some(value.get_ref());
    }
    start.map(|start| text[..start].matches('\n').count() + 1)
}
