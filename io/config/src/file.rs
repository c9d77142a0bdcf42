//! The configuration as it stands in a file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use engine::{Checkpoints, HangRule, Quorum};
use os::realtime::Realtime;
use serde::{Deserialize, Serialize};
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};
use wire::{Duration, NodeId};

use crate::config::Config;
use crate::error::ConfigError;
use crate::knobs::{JobsKnobs, ManagerKnobs, RegistryTable, RingKnobs, RingTable};
use crate::nodes::NodeAddress;
use crate::place::line_of;
use crate::program::ProgramConfig;
use crate::replica::ReplicaConfig;
use crate::rights::Rights;
use crate::security::Security;
use crate::spans::{maybe_micros, micros, millis};
use crate::system::System;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    node: NodeId,
    #[serde(default = "default_cluster")]
    cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
    #[serde(default, with = "QuorumName")]
    quorum: Quorum,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<PathBuf>,
    #[serde(default)]
    storage: StorageTable,
    #[serde(default)]
    security: Security,
    #[serde(default)]
    listen: Listen,
    nodes: Vec<NodeAddress>,
    #[serde(default)]
    ring: RingTable,
    #[serde(default)]
    upgrade: Upgrade,
    #[serde(default)]
    voting: Voting,
    #[serde(default, with = "Hung")]
    hung: HangRule,
    #[serde(default)]
    rights: Rights,
    #[serde(default)]
    manager: ManagerKnobs,
    #[serde(default)]
    registry: RegistryTable,
    #[serde(default)]
    jobs: JobsKnobs,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, with = "RealtimeTable")]
    realtime: Realtime,
    #[serde(default, with = "CheckpointsTable")]
    checkpoints: Checkpoints,
    #[serde(default)]
    replica: Vec<ReplicaConfig>,
    #[serde(default)]
    program: Vec<Program>,
}

fn default_cluster() -> String {
    Config::default().cluster
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Quorum", rename_all = "kebab-case")]
enum QuorumName {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc: Option<SocketAddr>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StorageTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Upgrade {
    #[serde(rename = "settle_ms", with = "millis")]
    settle: Duration,
}

impl Default for Upgrade {
    fn default() -> Self {
        Upgrade { settle: Config::default().settle }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Voting {
    #[serde(rename = "timeout_ms", with = "millis")]
    timeout: Duration,
}

impl Default for Voting {
    fn default() -> Self {
        Voting { timeout: Config::default().vote_timeout }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "HangRule", deny_unknown_fields, default = "HangRule::default")]
struct Hung {
    #[serde(rename = "within_ms", with = "millis")]
    within: Duration,
    misses: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Realtime", deny_unknown_fields, default = "Realtime::default")]
struct RealtimeTable {
    #[serde(rename = "runtime_us", with = "micros")]
    runtime: Duration,
    #[serde(rename = "runtime_most_us", with = "micros")]
    runtime_most: Duration,
    #[serde(rename = "period_us", with = "micros")]
    period: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<PathBuf>,
    network_mb_s: u64,
    priority: u8,
    executor_priority: u8,
    helper_priority: u8,
    lock_memory: bool,
    cpus: Vec<usize>,
    #[serde(rename = "spin_us", with = "micros")]
    spin: Duration,
    #[serde(
        rename = "wake_within_us",
        with = "maybe_micros",
        skip_serializing_if = "Option::is_none"
    )]
    wake_within: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Checkpoints", deny_unknown_fields, default = "Checkpoints::default")]
struct CheckpointsTable {
    requests: u64,
    bytes: usize,
    #[serde(rename = "interval_ms", with = "millis")]
    interval: Duration,
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
    #[serde(default = "default_ack")]
    ack: AckLevel,
    #[serde(default)]
    durability: Durability,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<String, String>,
}

fn default_style() -> Style {
    GroupOptions::default().style
}

fn default_ack() -> AckLevel {
    GroupOptions::default().ack
}

impl Config {
    /// Reads a configuration file's text.
    ///
    /// # Errors
    /// The problem with its line, and the remedy.
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

/// Reads a file's text. Checks across several values are left to [`Config::check`].
fn parse(text: &str) -> Result<Config, ConfigError> {
    let file: File = toml::from_str(text)?;
    let ring = RingKnobs::try_from(&file.ring)
        .map_err(|problem| ConfigError::Value { line: line_of(text, &problem.place()), problem })?;
    let program = |program: Program| ProgramConfig {
        group: program.group,
        command: program.command,
        folder: program.folder,
        environment: program.environment,
        options: GroupOptions {
            style: program.style,
            ack: program.ack,
            durability: program.durability,
        },
    };
    Ok(Config {
        node: file.node,
        cluster: file.cluster,
        data_dir: file.data_dir,
        insecure: file.insecure,
        security: file.security,
        quorum: file.quorum,
        storage: file.storage.folder,
        admin: file.admin,
        admin_tls: file.listen.admin,
        client: file.listen.client,
        advertise: file.listen.advertise,
        grpc: file.listen.grpc,
        nodes: file.nodes,
        ring,
        settle: file.upgrade.settle,
        vote_timeout: file.voting.timeout,
        hang: file.hung,
        rights: file.rights,
        manager: file.manager,
        registry: file.registry.into(),
        jobs: file.jobs,
        system: file.system,
        labels: file.labels,
        realtime: file.realtime,
        checkpoints: file.checkpoints,
        replicas: file.replica,
        programs: file.program.into_iter().map(program).collect(),
    })
}

/// The text that [`parse`] reads as `config`.
fn print(config: &Config) -> String {
    let program = |program: ProgramConfig| Program {
        group: program.group,
        command: program.command,
        folder: program.folder,
        style: program.options.style,
        ack: program.options.ack,
        durability: program.options.durability,
        environment: program.environment,
    };
    let config = config.clone();
    let file = File {
        node: config.node,
        cluster: config.cluster,
        data_dir: config.data_dir,
        insecure: config.insecure,
        quorum: config.quorum,
        admin: config.admin,
        storage: StorageTable { folder: config.storage },
        security: config.security,
        listen: Listen {
            client: config.client,
            advertise: config.advertise,
            admin: config.admin_tls,
            grpc: config.grpc,
        },
        nodes: config.nodes,
        ring: config.ring.into(),
        upgrade: Upgrade { settle: config.settle },
        voting: Voting { timeout: config.vote_timeout },
        hung: config.hang,
        rights: config.rights,
        manager: config.manager,
        registry: config.registry.into(),
        jobs: config.jobs,
        system: config.system,
        labels: config.labels,
        realtime: config.realtime,
        checkpoints: config.checkpoints,
        replica: config.replicas,
        program: config.programs.into_iter().map(program).collect(),
    };
    // Only paths that are not UTF-8 could fail, and no TOML file could name them.
    toml::to_string(&file).expect("a configuration has a TOML form")
}
