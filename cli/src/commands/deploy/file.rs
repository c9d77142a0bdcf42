//! Reads a deployment from its TOML file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use steadfast::cluster_state::{
    Deployment, Disk, Distribution, Need, Program, Refusal, Replication, Reservation,
};
use steadfast::{AckLevel, Durability, GroupOptions, NodeId, Style};

use crate::commands::Failure;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: String,
    command: Vec<String>,
    folder: Option<PathBuf>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    style: Option<Style>,
    ack: Option<AckLevel>,
    durability: Option<Durability>,
    replicas: u32,
    #[serde(default)]
    priority: u8,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    need: Option<NeedTable>,
    reserve: Option<ReserveTable>,
    #[serde(default)]
    distribution: DistributionTable,
    #[serde(default)]
    replication: ReplicationTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeedTable {
    cost_us: f64,
    period_ms: f64,
    deadline_ms: Option<f64>,
}

/// Megabytes have a million bytes.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReserveTable {
    memory_mb: u64,
    memory_most_mb: u64,
    disk: Vec<DiskTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskTable {
    folder: String,
    #[serde(default)]
    read_mb_s: u64,
    #[serde(default)]
    write_mb_s: u64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DistributionTable {
    #[serde(default)]
    policy: DistributionName,
    over: Option<String>,
    nodes: Option<Vec<u32>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DistributionName {
    #[default]
    LeastLoaded,
    Spread,
    Pinned,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicationTable {
    #[serde(default)]
    policy: ReplicationName,
    after_s: Option<f64>,
    least: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReplicationName {
    #[default]
    Keep,
    KeepAfter,
    Minimum,
}

/// An error in a file: the key that is wrong, and the text.
#[derive(Debug, PartialEq, Eq)]
struct Wrong(&'static str, String);

/// Reads a file.
pub fn read(path: &Path) -> Result<Deployment, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!(
            "cannot read {shown}: {error}; examples/deploy/service.toml is an example"
        ))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let here =
        std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
            .map_err(Failure::usage)?;
    parse(&text, &here).map_err(|(line, words)| match line {
        Some(line) => Failure::Usage(format!("{shown}, line {line}: {words}")),
        None => Failure::Usage(format!("{shown}: {words}")),
    })
}

/// Parses a file. An error has its line, from 1, and its text. A relative `folder` is relative to
/// `here`, the file's own folder.
fn parse(text: &str, here: &Path) -> Result<Deployment, (Option<usize>, String)> {
    let line_at = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        let words = format!("{}; examples/deploy/service.toml shows every key", error.message());
        (error.span().map(|span| line_at(span.start)), words)
    })?;
    let line_of = |key: &str| {
        let mut lines = text.lines().enumerate();
        let is_it = |line: &str| {
            let line = line.trim_start();
            let line = line.strip_prefix('[').unwrap_or(line);
            line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', ']']))
        };
        lines.find(|(_, line)| is_it(line)).map(|(index, _)| index + 1)
    };
    let deployment = deployment(file, here).map_err(|Wrong(key, words)| (line_of(key), words))?;
    deployment.check().map_err(|refusal| (line_of(key_of(&refusal)), refusal.to_string()))?;
    Ok(deployment)
}

fn key_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Name(_) => "group",
        Refusal::NoCommand => "command",
        Refusal::Replicas(_) => "replicas",
        Refusal::Least { .. } => "least",
        Refusal::Need => "need",
        Refusal::Reservation => "reserve",
        _ => "labels",
    }
}

fn reservation(table: ReserveTable) -> Reservation {
    let bytes = |mega: u64| mega.saturating_mul(1_000_000);
    let disk = |it: DiskTable| Disk {
        folder: it.folder,
        read: bytes(it.read_mb_s),
        write: bytes(it.write_mb_s),
    };
    Reservation {
        memory: bytes(table.memory_mb),
        memory_most: bytes(table.memory_most_mb),
        disks: table.disk.into_iter().map(disk).collect(),
    }
}

fn span(key: &'static str, value: f64, each: f64) -> Result<Duration, Wrong> {
    let seconds = value * each;
    // A day.
    if (1e-6..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(Wrong(key, format!("{key} = {value} is out of range: one microsecond to one day")))
    }
}

fn deployment(file: File, here: &Path) -> Result<Deployment, Wrong> {
    let only = |key, policy: &str| Wrong(key, format!("{key} is for policy = \"{policy}\" alone"));
    let needs = |key, policy: &str| Wrong("policy", format!("policy = \"{policy}\" needs {key}"));
    let distribution =
        match (file.distribution.policy, file.distribution.over, file.distribution.nodes) {
            (DistributionName::LeastLoaded, None, None) => Distribution::LeastLoaded,
            (DistributionName::Spread, Some(label), None) => Distribution::Spread(label),
            (DistributionName::Pinned, None, Some(nodes)) => {
                Distribution::Pinned(nodes.into_iter().map(NodeId).collect())
            }
            (DistributionName::Spread, None, None) => {
                return Err(needs("over = \"LABEL\"", "spread"));
            }
            (DistributionName::Pinned, None, None) => return Err(needs("nodes = [...]", "pinned")),
            (DistributionName::Spread | DistributionName::LeastLoaded, _, Some(_)) => {
                return Err(only("nodes", "pinned"));
            }
            (_, Some(_), _) => return Err(only("over", "spread")),
        };
    let replication =
        match (file.replication.policy, file.replication.after_s, file.replication.least) {
            (ReplicationName::Keep, None, None) => Replication::Keep,
            (ReplicationName::KeepAfter, Some(after), None) => {
                Replication::KeepAfter(span("after_s", after, 1.0)?)
            }
            (ReplicationName::Minimum, None, Some(least)) => Replication::Minimum(least),
            (ReplicationName::KeepAfter, None, None) => return Err(needs("after_s", "keep-after")),
            (ReplicationName::Minimum, None, None) => return Err(needs("least", "minimum")),
            (ReplicationName::Minimum | ReplicationName::Keep, Some(_), _) => {
                return Err(only("after_s", "keep-after"));
            }
            (_, _, Some(_)) => return Err(only("least", "minimum")),
        };
    let need = match file.need {
        None => None,
        Some(need) => Some(Need {
            cost: span("cost_us", need.cost_us, 1e-6)?,
            period: span("period_ms", need.period_ms, 1e-3)?,
            deadline: span("deadline_ms", need.deadline_ms.unwrap_or(need.period_ms), 1e-3)?,
        }),
    };
    let defaults = GroupOptions::default();
    let folder: PathBuf = here.join(file.folder.unwrap_or_default()).components().collect();
    Ok(Deployment {
        group: file.group,
        program: Program {
            command: file.command,
            folder: Some(folder.to_string_lossy().into_owned()),
            environment: file.environment,
        },
        options: GroupOptions {
            style: file.style.unwrap_or(defaults.style),
            ack: file.ack.unwrap_or(defaults.ack),
            durability: file.durability.unwrap_or(defaults.durability),
        },
        replicas: file.replicas,
        need,
        reserve: file.reserve.map(|table| Box::new(reservation(table))),
        priority: file.priority,
        labels: file.labels,
        distribution,
        replication,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../../examples/deploy/service.toml");

    #[test]
    fn the_example_says_every_key() {
        let it = parse(EXAMPLE, Path::new("/here")).expect("it is right");
        assert_eq!((it.group.as_str(), it.replicas), ("orders", 3));
        assert_eq!(it.program.folder.as_deref(), Some("/srv/orders"));
        assert_eq!(it.distribution, Distribution::Spread("rack".into()));
        assert_eq!(it.replication, Replication::KeepAfter(Duration::from_secs(30)));
        let ms = Duration::from_millis(10);
        let need = Need { cost: Duration::from_micros(200), period: ms, deadline: ms };
        assert_eq!(it.need, Some(need));
        let keys = ["style", "ack", "durability", "priority", "deadline_ms", "nodes", "least"];
        for key in keys {
            assert!(EXAMPLE.contains(&format!("#{key} = ")), "{key}");
        }
    }

    #[test]
    fn what_is_left_out_is_as_by_default() {
        let text = "group = \"g\"\ncommand = [\"x\"]\nreplicas = 2\n";
        let it = parse(text, Path::new("/here")).expect("it is right");
        assert_eq!((it.options, it.need), (GroupOptions::default(), None));
        assert_eq!(it.program.folder.as_deref(), Some("/here"));
        assert_eq!(
            (it.distribution, it.replication),
            (Distribution::LeastLoaded, Replication::Keep)
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let head = "group = \"g\"\ncommand = [\"x\"]\nreplicas = 2\n";
        let cases = [
            ("replica = 3", 4, "unknown field `replica`"),
            ("[distribution]\npolicy = \"spread\"", 5, "needs over"),
            ("[distribution]\nnodes = [1]", 5, "for policy = \"pinned\" alone"),
            ("[distribution]\npolicy = \"far\"", 5, "least-loaded"),
            ("[replication]\npolicy = \"minimum\"\nleast = 3", 6, "no minimum"),
            ("[replication]\npolicy = \"keep-after\"\nafter_s = -1.0", 6, "after_s = -1"),
            ("[need]\ncost_us = 5\nperiod_ms = 1.0\ndeadline_ms = 2.0", 4, "at most its period"),
            ("labels = { a = \"\" }", 4, "a label's name and value"),
        ];
        for (rest, line, words) in cases {
            let (at, said) = parse(&format!("{head}{rest}\n"), Path::new("/")).expect_err(rest);
            assert!(at == Some(line) && said.contains(words), "{rest}: {at:?} {said}");
        }
        let (at, said) = parse(&head.replace("= 2", "= 0"), Path::new("/")).expect_err("none");
        assert!(at == Some(3) && said.contains("1 to 64"), "{at:?} {said}");
        let (at, _) =
            parse(&head.replace("\"g\"", "\"steadfast.g\""), Path::new("/")).expect_err("own");
        assert_eq!(at, Some(1));
    }
}
