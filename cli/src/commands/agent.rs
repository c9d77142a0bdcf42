//! `steadfast agent`: the process beside a node that runs ranks of jobs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use agent::{Node, Options, Port};
use job::Host;
use os::sched::{Class, set_class};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tls::Denied;
use tls::{Client, Credentials, Server};

use super::{Failure, finish, log};

const EXAMPLES: &str = "\
Examples:
  steadfast agent --admin /run/steadfast/node.sock --folder /var/lib/steadfast/jobs --runtime /run/steadfast/jobs

`steadfast node` starts it where its configuration has [jobs], and starts it again when it ends. Run
it yourself where your own program embeds the node. The agent ends, and its ranks with it, when its
node ends; the ranks go on at another node. When the agent alone is killed, its ranks compute on,
and the next agent finds them.";

/// Runs ranks of jobs for a node, and saves and restores what they have.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The admin socket of the node.
    #[arg(long, value_name = "PATH")]
    admin: PathBuf,
    /// The folder for images and for what ranks print.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// The folder for the ranks' socket and for records of processes. It need not outlast the host.
    #[arg(long, value_name = "DIR")]
    runtime: PathBuf,
    /// Where agents of other hosts get copies of images, over TLS with the nodes' certificates. Without
    /// it, agents of this machine get them at a socket.
    #[arg(long, value_name = "IP:PORT", requires_all = ["authority", "certificate", "key"])]
    copies: Option<SocketAddr>,
    /// The authority of the nodes' certificates.
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// The node's certificate.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A list of denied certificates, as of the node's `[security] denied`.
    #[arg(long, value_name = "FILE")]
    denied: Option<PathBuf>,
    /// A label of this host, for jobs that ask for it. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// The log level, as of `steadfast node`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

impl Args {
    fn port(&self) -> Result<Option<Port>, Failure> {
        let (Some(address), Some(authority), Some(certificate), Some(key)) =
            (self.copies, &self.authority, &self.certificate, &self.key)
        else {
            return Ok(None);
        };
        let credentials = || Credentials::from_files(authority, certificate, key);
        let server = credentials().and_then(|it| Server::new(&it, tls::Port::Copies));
        let client = credentials().and_then(|it| Client::new(&it, tls::Port::Copies));
        let tls = (server.map_err(Failure::usage)?, client.map_err(Failure::usage)?);
        if let Some(path) = &self.denied {
            let denied = Denied::from_file(path, tls.0.cluster()).map_err(Failure::usage)?;
            tls.0.deny(denied.into());
        }
        Ok(Some(Port { address, tls }))
    }
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(serve(args))
}

fn serve(args: &Args) -> Result<(), Failure> {
    let log = log::start(args.log.as_deref())?;
    // The node may have a priority: ranks must not.
    if let Err(error) = set_class(None, Class::Ordinary) {
        tracing::warn!(%error, "ranks have the node's priority");
    }
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Failure::Failed(format!("cannot handle signals: {error}")))?;
    let port = args.port()?;
    let options = Options {
        port,
        folder: args.folder.clone(),
        runtime: args.runtime.clone(),
        host: Host {
            labels: args.label.clone(),
            memory: agent::host::memory(),
            kind: agent::host::kind(),
            copies: String::new(),
            processors: thread::available_parallelism().map_or(1, |count| count.get() as u32),
        },
    };
    let ended = agent::run(
        options,
        || Node::new(&args.admin),
        |stop| {
            thread::spawn(move || {
                for _ in signals.forever() {
                    stop.stop();
                }
            });
        },
    );
    log.flush();
    ended.map_err(Failure::failed)
}
