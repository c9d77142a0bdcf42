//! `steadfast gateway`: the way in for programs in every language.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, PoisonError, RwLock};

use gateway::{Door, Listen, Options, Place};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde_json::json;
use steadfast::{NodeConfig, Tls};
use tls::{Credentials, Denied, Server};
use tokio::signal::unix::{SignalKind, signal};

use super::at::host_port;
use super::context::Context;
use super::node::read_config;
use super::{Failure, finish, log, print};

const EXAMPLES: &str = "\
Examples:
  steadfast gateway --at 10.0.0.1:7100,10.0.0.2:7100
  steadfast gateway --listen unix:/run/steadfast/gateway.sock --at 10.0.0.1:7100 --tls client-app
  curl -d '[5]' -H content-type:application/json http://127.0.0.1:7443/v1/groups/counter/add
  steadfast gateway --bootstrap 10.0.0.1:7443,10.0.0.2:7443 > bootstrap.json
  GRPC_XDS_BOOTSTRAP=bootstrap.json python client.py       with the target xds:///counter

`steadfast node` runs a gateway itself where its configuration has [listen] grpc. docs/gateway.md
tells how programs in each language call by it.";

/// Has programs in any language call groups: by gRPC, without a library of ours, or by HTTP with
/// JSON. It runs beside the programs, as a client of the cluster.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// Where programs connect: IP:PORT, or unix:PATH for a Unix socket.
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:7443", value_parser = listen)]
    listen: Listen,
    /// Client addresses of one or more nodes. Default: the addresses of the context (see `steadfast
    /// context`).
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = host_port)]
    at: Vec<String>,
    /// Connect to nodes by TLS with the certificate in this folder, which `steadfast init` made for a
    /// client. Callers then have the rights of that client.
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,
    /// Permit callers from other hosts, who need no certificate.
    #[arg(long)]
    insecure: bool,
    /// Prints the bootstrap file for gRPC clients that find gateways by xDS, and ends. The addresses
    /// are those of nodes' gateways, the first tried first. With --tls clients show this certificate.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = host_port)]
    bootstrap: Vec<String>,
    /// The configuration of the node that the gateway belongs to.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with_all = ["at", "tls", "bootstrap"])]
    config: Option<PathBuf>,
    /// Stop when the process that has started it does.
    #[arg(long, hide = true)]
    tied: bool,
    /// The log level, as of `steadfast node`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

fn listen(text: &str) -> Result<Listen, String> {
    match text.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => Ok(Listen::Unix(path.into())),
        Some(_) => Err("write unix:PATH, such as unix:/run/steadfast/gateway.sock".into()),
        None => text
            .parse()
            .map(Listen::Tcp)
            .map_err(|_| "write IP:PORT, such as 127.0.0.1:7443, or unix:PATH".into()),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match args.bootstrap.is_empty() {
        true => serve(args),
        false => bootstrap(&args.bootstrap, args.tls.as_deref()),
    })
}

/// Prints the file in which gRPC clients find their gateways. grpc-js wants a locality.
fn bootstrap(gateways: &[String], tls: Option<&Path>) -> Result<(), Failure> {
    let credentials = match tls {
        None => json!([{ "type": "insecure" }]),
        Some(folder) => {
            // Clients may run in other folders.
            let folder = std::path::absolute(folder).map_err(Failure::usage)?;
            let files = Credentials::files_in(&folder).map_err(Failure::usage)?;
            let [authority, certificate, key] = files.map(|path| path.display().to_string());
            json!([{ "type": "tls", "config": {
                "ca_certificate_file": authority,
                "certificate_file": certificate,
                "private_key_file": key,
            }}])
        }
    };
    let server = |gateway: &String| {
        json!({
            "server_uri": gateway,
            "channel_creds": credentials,
            "server_features": ["xds_v3"],
        })
    };
    let bootstrap = json!({
        "xds_servers": gateways.iter().map(server).collect::<Vec<_>>(),
        "node": { "id": "steadfast", "locality": { "region": "steadfast" } },
    });
    print(&format!("{bootstrap:#}\n"))
}

fn serve(args: &Args) -> Result<(), Failure> {
    if args.tied {
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(Failure::failed)?;
    }
    let options = match &args.config {
        Some(path) => of_node(&read_config(path)?)?,
        None => beside_client(args)?,
    };
    let log = log::start(args.log.as_deref())?;
    // Those at the other ends of its connections see its death at once.
    os::closer::begin();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    let ended = runtime.block_on(run_until_told(options, args.config.as_deref()));
    log.flush();
    ended
}

async fn run_until_told(options: Options, config: Option<&Path>) -> Result<(), Failure> {
    let (tls, door) = (options.tls.clone(), options.door.clone());
    let bound = gateway::bind(options).await.map_err(|error| match error {
        gateway::Failed::Options(_) => Failure::usage(error),
        _ => Failure::failed(error),
    })?;
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [mut terminate, mut interrupt, mut hangup] =
        kinds.map(|kind| signal(kind).expect("these signals can be handled"));
    match bound.address() {
        Some(address) => tracing::info!(grpc = %address, "the gateway is ready"),
        None => tracing::info!("the gateway is ready"),
    }
    let stop = async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = interrupt.recv() => return,
                _ = hangup.recv() => {}
            }
            let Some(path) = config else { continue };
            match renew(path, tls.as_ref(), door.as_ref()) {
                Ok(()) => tracing::info!("certificates and rights are those of {}", path.display()),
                Err(error) => tracing::error!("nothing is renewed: {}", error.text()),
            }
        }
    };
    bound.serve(stop).await.map_err(Failure::failed)
}

/// Takes certificates, the list of denied ones and rights anew.
fn renew(path: &Path, tls: Option<&Tls>, door: Option<&Door>) -> Result<(), Failure> {
    let fresh = of_node(&read_config(path)?)?;
    if let (Some(tls), Some(fresh)) = (tls, &fresh.tls) {
        tls.renew(fresh);
    }
    if let (Some(door), Some(fresh)) = (door, &fresh.door) {
        door.server.renew(&fresh.server);
        door.server.deny(fresh.server.denied());
        let rights = fresh.rights.read().unwrap_or_else(PoisonError::into_inner).clone();
        *door.rights.write().unwrap_or_else(PoisonError::into_inner) = rights;
    }
    Ok(())
}

/// Threads that serve callers.
const WORKERS: usize = 2;

fn beside_client(args: &Args) -> Result<Options, Failure> {
    let (at, folder) = match args.at.is_empty() {
        false => (args.at.clone(), args.tls.clone()),
        true => {
            let context = Context::load()?;
            (context.clients, args.tls.clone().or(context.client_tls))
        }
    };
    let tls = folder.map(Tls::from_dir).transpose().map_err(Failure::usage)?;
    Ok(Options {
        listen: args.listen.clone(),
        nodes: resolved(&at)?,
        tls,
        door: None,
        place: None,
        insecure: args.insecure,
    })
}

fn resolved(at: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    let mut found = Vec::new();
    for host in at {
        let addresses = host.to_socket_addrs();
        found.extend(
            addresses
                .map_err(|error| Failure::Failed(format!("{host} is not known here: {error}")))?,
        );
    }
    Ok(found)
}

/// The gateway of a node: callers need the node's TLS, and have the rights that its clients have.
fn of_node(config: &NodeConfig) -> Result<Options, Failure> {
    let (Some(grpc), Some(client)) = (config.grpc, config.client) else {
        let why = "the configuration has no [listen] grpc: add it, or leave out --config";
        return Err(Failure::Usage(why.into()));
    };
    let (mut tls, mut door) = (None, None);
    if let Some(files) = config.security.tls() {
        let credentials = || Credentials::from_files(files.authority, files.certificate, files.key);
        let own = credentials().and_then(|it| Tls::new(&it, tls::Port::Client));
        tls = Some(own.map_err(Failure::usage)?);
        let server = credentials().and_then(|it| Server::new(&it, tls::Port::Gateway));
        let server = server.map_err(Failure::usage)?;
        if let Some(path) = &config.security.denied {
            let denied = Denied::from_file(path, server.cluster()).map_err(Failure::usage)?;
            server.deny(denied.into());
        }
        let rights = Arc::new(RwLock::new(config.rights.clone()));
        door = Some(Door { server, rights });
    }
    let ring = config.ring_addresses().first().map_or(client.ip(), SocketAddr::ip);
    let told = config.advertise.map_or(ring, |address| address.ip());
    let reach = |address: SocketAddr, ip| match address.ip().is_unspecified() {
        true => SocketAddr::new(ip, address.port()),
        false => address,
    };
    let place = Place {
        node: config.node,
        address: reach(grpc, told),
        client: config.advertise.unwrap_or(reach(client, told)),
    };
    Ok(Options {
        listen: Listen::Tcp(grpc),
        nodes: vec![reach(client, ring)],
        tls,
        door,
        place: Some(place),
        insecure: config.insecure,
    })
}
