//! The configuration as it stands in a file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use engine::{Checkpoints, HangRule, Quorum};
use os::realtime::Realtime;
use serde::{Deserialize, Serialize};
use wire::ordered::{Durability, GroupOptions, Hold, Style};
use wire::{Duration, NodeId};

use crate::config::Config;
use crate::error::{ConfigError, Problem};
use crate::knobs::{ManagerTable, RegistryTable, RingKnobs};
use crate::nodes::NodeAddress;
use crate::place::line_of;
use crate::program::ProgramConfig;
use crate::replica::{Execution, ReplicaConfig};
use crate::security::Security;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    node: u32,
    #[serde(default = "default_cluster")]
    cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    quorum: QuorumName,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<PathBuf>,
    #[serde(default)]
    storage: StorageTable,
    #[serde(default)]
    security: SecurityFiles,
    #[serde(default)]
    listen: Listen,
    nodes: Vec<NodeEntry>,
    #[serde(default)]
    ring: Ring,
    #[serde(default)]
    voting: Voting,
    #[serde(default)]
    hung: Hung,
    #[serde(default)]
    manager: ManagerTable,
    #[serde(default)]
    registry: RegistryTable,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    realtime: RealtimeTable,
    #[serde(default)]
    checkpoints: CheckpointsTable,
    #[serde(default)]
    replica: Vec<Replica>,
    #[serde(default)]
    program: Vec<Program>,
}

fn default_cluster() -> String {
    Config::default().cluster
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum QuorumName {
    #[default]
    Majority,
    Off,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listen {
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advertise: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<SocketAddr>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StorageTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecurityFiles {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_key: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authority: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    id: u32,
    #[serde(with = "crate::nodes::addresses")]
    ring: Vec<SocketAddr>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Ring {
    token_timeout_ms: f64,
    token_timeout_max_ms: f64,
    heartbeat_ms: f64,
    heartbeat_max_ms: f64,
    token_retransmit_ms: f64,
    ack_wait_ms: f64,
    want_retry_ms: f64,
    join_interval_ms: f64,
    suspect_wait_ms: f64,
    consensus_timeout_ms: f64,
    beacon_interval_ms: f64,
    hold_off_max_ms: f64,
    slow_limit_ms: f64,
    link_probe_ms: f64,
    link_timeout_ms: f64,
    datagram: usize,
    window: usize,
    turn: usize,
    accelerated: usize,
    slow_share: u32,
    parking: bool,
}

impl Default for Ring {
    fn default() -> Self {
        Ring::from(RingKnobs::default())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Voting {
    patience_ms: u64,
}

impl Voting {
    fn of(patience: Duration) -> Voting {
        Voting { patience_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX) }
    }
}

impl Default for Voting {
    fn default() -> Self {
        Voting::of(Config::default().vote_patience)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Hung {
    within_ms: u64,
    misses: u32,
}

impl From<HangRule> for Hung {
    fn from(rule: HangRule) -> Hung {
        let within_ms = u64::try_from(rule.within.as_millis()).unwrap_or(u64::MAX);
        Hung { within_ms, misses: rule.misses }
    }
}

impl Default for Hung {
    fn default() -> Self {
        Hung::from(Config::default().hang)
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RealtimeTable {
    priority: u8,
    executor_priority: u8,
    lock_memory: bool,
    cpus: Vec<usize>,
    spin_us: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_within_us: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CheckpointsTable {
    requests: u64,
    bytes: usize,
    interval_ms: u64,
}

impl Default for CheckpointsTable {
    fn default() -> Self {
        Checkpoints::default().into()
    }
}

impl From<Checkpoints> for CheckpointsTable {
    fn from(checkpoints: Checkpoints) -> Self {
        let Checkpoints { requests, bytes, interval } = checkpoints;
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        CheckpointsTable { requests, bytes, interval_ms }
    }
}

impl From<CheckpointsTable> for Checkpoints {
    fn from(table: CheckpointsTable) -> Self {
        let CheckpointsTable { requests, bytes, interval_ms } = table;
        Checkpoints { requests, bytes, interval: Duration::from_millis(interval_ms) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replica {
    group: String,
    service: String,
    #[serde(default)]
    style: Style,
    /// Left out: as by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<Hold>,
    #[serde(default)]
    durability: Durability,
    #[serde(default)]
    execution: Execution,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    group: String,
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
    #[serde(default = "default_style")]
    style: Style,
    #[serde(default = "default_hold")]
    hold: Hold,
    #[serde(default)]
    durability: Durability,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<String, String>,
}

fn default_style() -> Style {
    GroupOptions::default().style
}

fn default_hold() -> Hold {
    GroupOptions::default().hold
}

impl Config {
    /// Reads a configuration file's text.
    ///
    /// # Errors
    /// What is wrong, in which line, and the remedy.
    pub fn from_toml(text: &str) -> Result<Config, ConfigError> {
        let config = parse(text)?;
        config.check().map_err(|problem| {
            let line = line_of(text, &problem.place());
            ConfigError::Value { line, problem }
        })?;
        Ok(config)
    }

    /// The file's text that gives this configuration.
    pub fn to_toml(&self) -> String {
        print(self)
    }
}

/// Reads a file's text. What single values cannot show is left to [`Config::check`].
fn parse(text: &str) -> Result<Config, ConfigError> {
    let file: File = toml::from_str(text)?;
    let ring = RingKnobs::try_from(&file.ring)
        .map_err(|problem| ConfigError::Value { line: line_of(text, &problem.place()), problem })?;
    let node = |node: NodeEntry| NodeAddress { id: NodeId(node.id), ring: node.ring };
    let replica = |replica: Replica| ReplicaConfig {
        group: replica.group,
        service: replica.service,
        style: replica.style,
        hold: replica.hold,
        durability: replica.durability,
        execution: replica.execution,
    };
    let program = |program: Program| ProgramConfig {
        group: program.group,
        command: program.command,
        folder: program.folder,
        environment: program.environment,
        options: GroupOptions {
            style: program.style,
            hold: program.hold,
            durability: program.durability,
        },
    };
    Ok(Config {
        node: NodeId(file.node),
        cluster: file.cluster,
        data_dir: file.data_dir,
        insecure: file.insecure,
        security: Security {
            cluster_key: file.security.cluster_key,
            authority: file.security.authority,
            certificate: file.security.certificate,
            key: file.security.key,
        },
        quorum: match file.quorum {
            QuorumName::Majority => Quorum::Majority,
            QuorumName::Off => Quorum::Off,
        },
        storage: file.storage.folder,
        admin: file.admin,
        admin_tls: file.listen.admin,
        client: file.listen.client,
        advertise: file.listen.advertise,
        nodes: file.nodes.into_iter().map(node).collect(),
        ring,
        vote_patience: Duration::from_millis(file.voting.patience_ms),
        hang: HangRule {
            within: Duration::from_millis(file.hung.within_ms),
            misses: file.hung.misses,
        },
        manager: file.manager.into(),
        registry: file.registry.into(),
        labels: file.labels,
        realtime: file.realtime.into(),
        checkpoints: file.checkpoints.into(),
        replicas: file.replica.into_iter().map(replica).collect(),
        programs: file.program.into_iter().map(program).collect(),
    })
}

/// The text that [`parse`] reads as `config`.
fn print(config: &Config) -> String {
    let replica = |replica: &ReplicaConfig| Replica {
        group: replica.group.clone(),
        service: replica.service.clone(),
        style: replica.style,
        hold: replica.hold,
        durability: replica.durability,
        execution: replica.execution,
    };
    let program = |program: &ProgramConfig| Program {
        group: program.group.clone(),
        command: program.command.clone(),
        folder: program.folder.clone(),
        style: program.options.style,
        hold: program.options.hold,
        durability: program.options.durability,
        environment: program.environment.clone(),
    };
    let file = File {
        node: config.node.0,
        cluster: config.cluster.clone(),
        data_dir: config.data_dir.clone(),
        insecure: config.insecure,
        quorum: match config.quorum {
            Quorum::Majority => QuorumName::Majority,
            Quorum::Off => QuorumName::Off,
        },
        admin: config.admin.clone(),
        storage: StorageTable { folder: config.storage.clone() },
        security: SecurityFiles {
            cluster_key: config.security.cluster_key.clone(),
            authority: config.security.authority.clone(),
            certificate: config.security.certificate.clone(),
            key: config.security.key.clone(),
        },
        listen: Listen {
            client: config.client,
            advertise: config.advertise,
            admin: config.admin_tls,
        },
        nodes: config
            .nodes
            .iter()
            .map(|node| NodeEntry { id: node.id.0, ring: node.ring.clone() })
            .collect(),
        ring: Ring::from(config.ring),
        voting: Voting::of(config.vote_patience),
        hung: Hung::from(config.hang),
        manager: config.manager.into(),
        registry: config.registry.into(),
        labels: config.labels.clone(),
        realtime: RealtimeTable::from(&config.realtime),
        checkpoints: config.checkpoints.into(),
        replica: config.replicas.iter().map(replica).collect(),
        program: config.programs.iter().map(program).collect(),
    };
    // Only paths that are not UTF-8 could fail, and no TOML file could name them.
    toml::to_string(&file).expect("a configuration has a TOML form")
}

impl From<RingKnobs> for Ring {
    fn from(knobs: RingKnobs) -> Self {
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        let timing = knobs.timing;
        Ring {
            token_timeout_ms: ms(timing.token_timeout),
            token_timeout_max_ms: ms(timing.token_timeout_max),
            heartbeat_ms: ms(timing.heartbeat),
            heartbeat_max_ms: ms(timing.heartbeat_max),
            token_retransmit_ms: ms(timing.token_retransmit),
            ack_wait_ms: ms(timing.ack_wait),
            want_retry_ms: ms(timing.want_retry),
            join_interval_ms: ms(timing.join_interval),
            suspect_wait_ms: ms(timing.suspect_wait),
            consensus_timeout_ms: ms(timing.consensus_timeout),
            beacon_interval_ms: ms(timing.beacon_interval),
            hold_off_max_ms: ms(timing.hold_off_max),
            slow_limit_ms: ms(timing.slow_limit),
            link_probe_ms: ms(knobs.links.probe),
            link_timeout_ms: ms(knobs.links.timeout),
            datagram: knobs.datagram,
            window: knobs.window,
            turn: knobs.turn,
            accelerated: knobs.accelerated,
            slow_share: knobs.slow_share,
            parking: knobs.parking,
        }
    }
}

impl TryFrom<&Ring> for RingKnobs {
    type Error = Problem;

    fn try_from(ring: &Ring) -> Result<Self, Problem> {
        let span = |key, millis: f64| {
            if (0.01..=60_000.0).contains(&millis) {
                Ok(Duration::from_nanos((millis * 1e6).round() as u64))
            } else {
                Err(Problem::Millis { key, millis })
            }
        };
        Ok(RingKnobs {
            timing: ring::Timing {
                token_timeout: span("token_timeout_ms", ring.token_timeout_ms)?,
                token_timeout_max: span("token_timeout_max_ms", ring.token_timeout_max_ms)?,
                heartbeat: span("heartbeat_ms", ring.heartbeat_ms)?,
                heartbeat_max: span("heartbeat_max_ms", ring.heartbeat_max_ms)?,
                token_retransmit: span("token_retransmit_ms", ring.token_retransmit_ms)?,
                ack_wait: span("ack_wait_ms", ring.ack_wait_ms)?,
                want_retry: span("want_retry_ms", ring.want_retry_ms)?,
                join_interval: span("join_interval_ms", ring.join_interval_ms)?,
                suspect_wait: span("suspect_wait_ms", ring.suspect_wait_ms)?,
                consensus_timeout: span("consensus_timeout_ms", ring.consensus_timeout_ms)?,
                beacon_interval: span("beacon_interval_ms", ring.beacon_interval_ms)?,
                hold_off_max: span("hold_off_max_ms", ring.hold_off_max_ms)?,
                slow_limit: span("slow_limit_ms", ring.slow_limit_ms)?,
            },
            links: ring::LinkTiming {
                probe: span("link_probe_ms", ring.link_probe_ms)?,
                timeout: span("link_timeout_ms", ring.link_timeout_ms)?,
            },
            datagram: ring.datagram,
            window: ring.window,
            turn: ring.turn,
            accelerated: ring.accelerated,
            slow_share: ring.slow_share,
            parking: ring.parking,
        })
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

impl From<&Realtime> for RealtimeTable {
    fn from(realtime: &Realtime) -> Self {
        RealtimeTable {
            priority: realtime.priority,
            executor_priority: realtime.executor_priority,
            lock_memory: realtime.lock_memory,
            cpus: realtime.cpus.clone(),
            spin_us: micros(realtime.spin),
            wake_within_us: realtime.wake_within.map(micros),
        }
    }
}

impl From<RealtimeTable> for Realtime {
    fn from(table: RealtimeTable) -> Self {
        Realtime {
            priority: table.priority,
            executor_priority: table.executor_priority,
            lock_memory: table.lock_memory,
            cpus: table.cpus,
            spin: Duration::from_micros(table.spin_us.into()),
            wake_within: table.wake_within_us.map(|micros| Duration::from_micros(micros.into())),
        }
    }
}
