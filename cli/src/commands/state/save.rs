//! `steadfast state save`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steadfast::admin::Client as AdminClient;
use steadfast::status::{GroupStatus, Status};
use steadfast::{Backup, Style, write_backup};
use wire::system::is_system;

use super::super::at::At;
use super::super::{Failure, print};
use super::file::Summary;

const EXAMPLES: &str = "\
Examples:
  steadfast state save counter counter.state             through this host's node; the group goes on
  steadfast state save --all /var/backups/steadfast      every group, one file each
  steadfast state save --all day --connect 10.0.0.1:7101 --also 10.0.0.2:7101 --tls plant/admin-ops

The state comes from a replica at one of the asked nodes, preferably a backup: a replica executes
nothing while its service writes its state. A file is replaced only when the new one is complete.
The groups steadfast.* are not saved.

Exit codes:
  0  the group is saved; with --all: every group is
  1  it is not: standard error has the reason and the remedy; with --all it names the groups
  2  the command line or the configuration is wrong";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The group.
    #[arg(required_unless_present = "all", requires = "file")]
    group: Option<String>,
    /// The file. It is replaced only when the new one is complete.
    file: Option<PathBuf>,
    /// Save every group that has a state in its own file in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["group", "file"])]
    all: Option<PathBuf>,
    /// Another node to ask, by its admin socket or port: for groups without a replica, or with
    /// only the primary, at the first node. May be repeated.
    #[arg(long, value_name = "PATH|HOST:PORT")]
    also: Vec<String>,
    #[command(flatten)]
    at: At,
    /// Print JSON, one object for each file, instead of text.
    #[arg(long)]
    json: bool,
}

/// The nodes that can be asked, each with what it knew when it was asked first.
struct Sources(Vec<(AdminClient, Status)>);

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut sources = Sources::connect(args)?;
    match (&args.all, &args.group, &args.file) {
        (Some(folder), _, _) => save_all(args, &mut sources, folder),
        (None, Some(group), Some(file)) => save(args, &mut sources, group, file),
        _ => Err(Failure::Usage("name a group and a file, or --all and a folder".into())),
    }
}

fn save_all(args: &Args, sources: &mut Sources, folder: &Path) -> Result<(), Failure> {
    let groups = sources.groups();
    let mut failed = Vec::new();
    for group in &groups {
        let file = folder.join(file_name(group));
        match save(args, sources, group, &file) {
            Ok(()) => {}
            Err(Failure::Failed(why) | Failure::Usage(why)) => {
                eprintln!("error: {group}: {why}");
                failed.push(group.as_str());
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let (count, all) = (failed.len(), groups.len());
    let names = failed.join(", ");
    Err(Failure::Failed(format!("{count} of {all} groups are not saved: {names}")))
}

fn save(args: &Args, sources: &mut Sources, group: &str, path: &Path) -> Result<(), Failure> {
    let file = sources.best(group).save(group).map_err(Failure::failed)?;
    let file = file.into();
    let (backup, content) = Backup::decode(&file).map_err(Failure::failed)?;
    write_backup(path, &file)
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))?;
    let summary = Summary::new(path, &backup, &content);
    match args.json {
        true => print(&format!("{}\n", serde_json::to_string(&summary).map_err(Failure::failed)?)),
        false => print(&summary.line()),
    }
}

impl Sources {
    fn connect(args: &Args) -> Result<Sources, Failure> {
        let others = args.also.iter().map(|other| args.at.connect_to(other));
        let nodes = std::iter::once(args.at.connect()).chain(others).map(|node| {
            let mut node = node?;
            let status = node.status().map_err(Failure::failed)?;
            Ok((node, status))
        });
        Ok(Sources(nodes.collect::<Result<_, Failure>>()?))
    }

    /// The groups that have a state of people's own.
    fn groups(&self) -> BTreeSet<String> {
        let groups = self.0.iter().flat_map(|(_, status)| &status.groups);
        let saved =
            |group: &&GroupStatus| group.style != Style::Stateless && !is_system(&group.name);
        groups.filter(saved).map(|group| group.name.clone()).collect()
    }

    /// Returns the node to ask: one with a backup, or else the one with the primary. If no node has
    /// a replica with the state, the first node's refusal names those that have.
    fn best(&mut self, group: &str) -> &mut AdminClient {
        let rank = |status: &Status| {
            let group = status.groups.iter().find(|known| known.name == group);
            let is_primary = |group: &GroupStatus| {
                group.primary.is_some_and(|primary| primary.node == status.node)
            };
            let has_state = |group: &GroupStatus| {
                group.replicas.iter().any(|it| it.node == status.node && it.synced)
            };
            match group.filter(|group| has_state(group)) {
                Some(group) if is_primary(group) => 1,
                Some(_) => 0,
                None => 2,
            }
        };
        let nodes = self.0.iter().enumerate();
        let best = nodes.min_by_key(|(_, (_, status))| rank(status)).map_or(0, |(best, _)| best);
        &mut self.0[best].0
    }
}

/// A group's file: its name, with whatever a file's name cannot have as `%` and two digits.
fn file_name(group: &str) -> String {
    let mut name = String::new();
    for (place, byte) in group.bytes().enumerate() {
        match byte {
            b'.' if place == 0 => name.push_str("%2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name + ".state"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_a_file_of_its_own_in_the_folder() {
        for (group, file) in [
            ("counter", "counter.state"),
            ("a/b", "a%2fb.state"),
            ("..", "%2e..state"),
            ("50%", "50%25.state"),
            ("grün", "gr%c3%bcn.state"),
        ] {
            assert_eq!(file_name(group), file);
        }
    }
}
