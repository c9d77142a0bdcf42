//! `steadfast carry`: the process beside a node that has its links to other cells.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use celld::{Carrying, Options, Security};
use cells::Shape;
use rustix::process::{Signal, set_parent_process_death_signal};
use steadfast::{NodeConfig, Tls};
use tls::{Credentials, Denied, Server};
use tokio::signal::unix::{SignalKind, signal};

use super::node::read_config;
use super::{Failure, finish, log};

/// Threads that carry calls; links have one of their own.
const WORKERS: usize = 2;

/// Makes the links of a node to other cells. `steadfast node` starts it.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration of the node.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The node's admin socket, if it is not where the configuration says.
    #[arg(long, value_name = "PATH")]
    admin: Option<PathBuf>,
    /// Stop when the process that has started it does.
    #[arg(long)]
    tied: bool,
    /// The log level, as of `steadfast node`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(carry(args))
}

fn carry(args: &Args) -> Result<(), Failure> {
    if args.tied {
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(Failure::failed)?;
    }
    let options = options(&read_config(&args.config)?, args.admin.as_deref())?;
    let log = log::start(args.log.as_deref())?;
    // Those at the other ends of its connections see its death at once.
    os::closer::begin();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    let ended = runtime.block_on(carry_until_told(options, &args.config));
    log.flush();
    ended
}

async fn carry_until_told(options: Options, config: &Path) -> Result<(), Failure> {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [mut terminate, mut interrupt, mut hangup] =
        kinds.map(|kind| signal(kind).expect("these signals can be handled"));
    let door = options.door.clone();
    let carrying = Carrying::start(options).map_err(Failure::failed)?;
    let (links, calls) = (carrying.address(), carrying.calls_address());
    tracing::info!(%links, %calls, "links to other cells are ready");
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = hangup.recv() => {}
        }
        match renew(&carrying, door.as_deref(), config) {
            Ok(()) => tracing::info!("certificates are those of {}", config.display()),
            Err(error) => tracing::error!("nothing is renewed: {}", error.text()),
        }
    }
}

/// Takes certificates and the list of denied ones anew.
fn renew(carrying: &Carrying, door: Option<&Server>, config: &Path) -> Result<(), Failure> {
    let config = read_config(config)?;
    let certificates = security(&config)?;
    carrying.permit(config.rights);
    let Some((security, (_, fresh))) = certificates else { return Ok(()) };
    if let Some(door) = door {
        door.renew(&fresh);
        door.deny(fresh.denied());
    }
    carrying.renew(security).map_err(Failure::failed)
}

fn options(config: &NodeConfig, admin: Option<&Path>) -> Result<Options, Failure> {
    let admin = admin.or(config.admin.as_deref());
    let system = config.system.as_ref();
    let listen = system.and_then(|system| system.listen);
    let (Some(admin), Some(system), Some(listen)) = (admin, system, listen) else {
        let why = "the configuration lacks [system] listen, or the admin socket: see \
                   `steadfast node --print-config --all`";
        return Err(Failure::Usage(why.into()));
    };
    let (security, door) = security(config)?.unzip();
    let (tls, door) = door.unzip();
    let ring = config.ring_addresses().first().map(SocketAddr::ip);
    let told = config.advertise.map(|address| address.ip()).or(ring).unwrap_or(listen.ip());
    let beside = config.client.map_or(told, |client| client.ip());
    Ok(Options {
        admin: admin.into(),
        listen,
        told,
        calls: system.calls.unwrap_or(SocketAddr::new(beside, 0)),
        security,
        tls,
        door,
        rights: config.rights.clone(),
        direct: system.direct,
        parent: system.parent.clone(),
        shape: if system.overlay.is_tree() { Shape::Tree } else { Shape::Mesh },
    })
}

/// The certificates for links, and those that are shown to the cell's own nodes and callers.
type Certificates = (Security, (Tls, Arc<Server>));

/// The node's certificates; `None`: there are none.
fn security(config: &NodeConfig) -> Result<Option<Certificates>, Failure> {
    let Some(files) = config.security.tls() else { return Ok(None) };
    let read = || Credentials::from_files(files.authority, files.certificate, files.key);
    let credentials = read().map_err(Failure::usage)?;
    let own = Tls::new(&credentials, tls::Port::Client).map_err(Failure::usage)?;
    let server = Server::new(&credentials, tls::Port::Client).map_err(Failure::usage)?;
    let mut security = Security::new(credentials);
    if let Some(path) = &config.security.denied {
        let denied = Denied::from_file(path, &config.cluster).map_err(Failure::usage)?;
        security.denied = denied.into();
        server.deny(security.denied.clone());
    }
    Ok(Some((security, (own, Arc::new(server)))))
}
