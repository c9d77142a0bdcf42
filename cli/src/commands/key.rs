//! `steadfast key`: the key that seals the ring's datagrams.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Subcommand;
use steadfast::admin::{Client as AdminClient, KeyAsk};
use steadfast::key_file;
use steadfast::status::SealStatus;

use super::at::At;
use super::{Failure, finish, human, print};

const EXAMPLES: &str = "\
Examples:
  steadfast key rotate                       a new key for the whole cluster, while it works
  steadfast key status                       which key seals, and whom a change waits for
  steadfast key rotate --force               go on without the nodes that are away
  steadfast key status --connect 10.0.0.1:7101 --tls plant/admin-ops      asked of another host
  steadfast key abort                        give the change up, while nobody seals with the new key
  steadfast key show cluster.key             numbers and fingerprints of a file's keys
  steadfast key new cluster.key              a file with a new key, for a cluster's first start

No command shows a key: fingerprints tell keys apart and cannot be turned back. A node that was away
when a change was forced needs the new key file of another node before it can come back.

Exit codes:
  0  it is done; of `rotate`: all nodes seal with the new key
  1  it failed, or is not over after --wait: standard error says who is waited for
  2  the command line or the configuration is wrong";

/// How often a change is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Changes the cluster's key, or tells how it stands.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Makes a new key, and changes to it: all nodes keep it, then all seal with it, then the old
    /// one is forgotten. Waits for every configured node.
    Rotate {
        #[command(flatten)]
        at: At,
        /// Let the change that is under way go on without nodes that are away.
        #[arg(long)]
        force: bool,
        /// How long to wait for the end. The change goes on all the same.
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        wait: u64,
    },
    /// Tells which key seals, and how far a change is.
    Status {
        #[command(flatten)]
        at: At,
        /// One JSON object instead of a text for people; its digits are no secret.
        #[arg(long)]
        json: bool,
    },
    /// Gives the change up.
    Abort {
        #[command(flatten)]
        at: At,
    },
    /// Tells the numbers and fingerprints of a key file. The last key seals.
    Show {
        /// The file.
        file: PathBuf,
    },
    /// Makes a key file with one new key.
    New {
        /// The file; it must not exist.
        file: PathBuf,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.what {
        What::Rotate { at, force, wait } => rotate(at, *force, Duration::from_secs(*wait)),
        What::Status { at, json } => status(at, *json),
        What::Abort { at } => abort(at),
        What::Show { file } => show(file),
        What::New { file } => new(file),
    })
}

fn seal(client: &mut AdminClient) -> Result<SealStatus, Failure> {
    let status = client.status().map_err(Failure::failed)?;
    status.seal.ok_or_else(|| {
        Failure::Failed(
            "this node seals nothing: set [security] cluster_key at every node".to_owned(),
        )
    })
}

fn told(seal: &SealStatus) -> String {
    let change = match &seal.change {
        Some(change) => format!("{}\n", human::key_change(change)),
        None => String::new(),
    };
    format!("key {} ({}) seals\n{change}", seal.key, seal.fingerprint)
}

fn rotate(at: &At, force: bool, wait: Duration) -> Result<(), Failure> {
    let mut client = at.connect()?;
    let ask = if force { KeyAsk::Force } else { KeyAsk::Rotate };
    let key = client.key(ask).map_err(Failure::failed)?.key;
    let deadline = Instant::now() + wait;
    let mut begun = false;
    loop {
        let seal = seal(&mut client)?;
        begun |= seal.change.is_some();
        if begun && is_given_up(&seal, key) {
            return Err(Failure::Failed(
                "the change was given up (`steadfast key abort`), and the old key stays: ask again"
                    .into(),
            ));
        }
        if seal.key == key && seal.change.is_none() && seal.opens == [key] {
            return print(&told(&seal));
        }
        if Instant::now() >= deadline {
            let how_far =
                seal.change.as_ref().map_or("it has not begun".to_owned(), human::key_change);
            return Err(Failure::Failed(format!(
                "not over yet: {how_far}. It goes on by itself when they come; `steadfast key rotate \
                 --force` goes on without them, `steadfast key abort` gives it up"
            )));
        }
        thread::sleep(GLANCE);
    }
}

/// A change to this key had begun, and the node knows neither of it nor of the key.
fn is_given_up(seal: &SealStatus, key: u8) -> bool {
    seal.change.is_none() && !seal.opens.contains(&key)
}

fn status(at: &At, json: bool) -> Result<(), Failure> {
    let seal = seal(&mut at.connect()?)?;
    if json {
        let json = serde_json::to_string_pretty(&seal).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&told(&seal))
}

fn abort(at: &At) -> Result<(), Failure> {
    let key = at.connect()?.key(KeyAsk::Abort).map_err(Failure::failed)?.key;
    print(&format!("the change to key {key} is given up\n"))
}

fn show(file: &Path) -> Result<(), Failure> {
    let keys = key_file::read(file).map_err(Failure::failed)?;
    let line = |key: &_| format!("{key:?}\n");
    print(&keys.iter().map(line).collect::<String>())
}

fn new(file: &Path) -> Result<(), Failure> {
    if file.exists() {
        return Err(Failure::Failed(format!(
            "{} exists and was not changed: give another name, or remove it if nobody needs it",
            file.display()
        )));
    }
    let fingerprint = key_file::create(file).map_err(Failure::failed)?;
    print(&format!("key 1 ({fingerprint}) in {}: give every node this file\n", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_was_given_up_is_not_waited_for() {
        let status = |text: &str| serde_json::from_str::<SealStatus>(text).unwrap();
        let counters = serde_json::to_string(&steadfast::status::SealCounters::default()).unwrap();
        let seal = |opens: &str, change: &str| {
            status(&format!(
                r#"{{"key":1,"fingerprint":"aa","opens":{opens},"change":{change},"counters":{counters}}}"#
            ))
        };
        let change =
            r#"{"key":2,"fingerprint":"bb","switched":false,"forced":false,"lacking":[3]}"#;
        assert!(!is_given_up(&seal("[1,2]", change), 2), "under way");
        assert!(!is_given_up(&seal("[1,2]", "null"), 2), "over, and the old key still opens");
        assert!(is_given_up(&seal("[1]", "null"), 2));
    }
}
