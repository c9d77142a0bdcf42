//! Processes that a node keeps beside itself.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use steadfast::NodeConfig;

use crate::commands::Failure;
use crate::jobs::minder::Minder;

/// Keeps an agent beside the node, if it has a part in jobs.
pub(super) fn agent(config: &NodeConfig) -> Result<Option<Minder>, Failure> {
    let (Some(folder), Some(admin)) = (&config.jobs.folder, &config.admin) else { return Ok(None) };
    let runtime = admin.with_extension("jobs");
    let (folder, admin) = (folder.clone(), admin.clone());
    let labels: Vec<String> =
        config.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let tls = config.jobs.listen.zip(config.security.tls()).map(|(at, files)| {
        let file = |path: &Path| path.as_os_str().to_owned();
        [
            ("--copies", at.to_string().into()),
            ("--authority", file(files.authority)),
            ("--certificate", file(files.certificate)),
            ("--key", file(files.key)),
        ]
    });
    let denied = config.security.denied.clone();
    let make = move || {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("agent").arg("--admin").arg(&admin).arg("--folder").arg(&folder);
        command.arg("--runtime").arg(&runtime);
        command.args(labels.iter().flat_map(|label| ["--label", label]));
        let words =
            |(name, value): &(&'static str, OsString)| [OsString::from(name), value.clone()];
        command.args(tls.iter().flatten().flat_map(words));
        command.args(denied.iter().flat_map(|path| [OsStr::new("--denied"), path.as_os_str()]));
        command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
        Ok(command)
    };
    let agent = Minder::start("the agent of jobs".into(), make).map_err(|error| {
        Failure::Failed(format!("the agent of jobs cannot be started: {error}"))
    })?;
    Ok(Some(agent))
}

/// Keeps the process beside the node that has its links to other cells, if it takes any.
pub(super) fn carrier(config: &NodeConfig, path: &Path) -> Result<Option<Minder>, Failure> {
    if config.system.as_ref().and_then(|system| system.listen).is_none() {
        return Ok(None);
    }
    if config.admin.is_none() || config.client.is_none() {
        let why = "[system] listen needs the admin socket and [listen] client: links to other cells are made by a process beside \
                   the node, which talks with it there";
        return Err(Failure::Usage(why.into()));
    }
    let (path, admin) = (path.to_owned(), config.admin.clone());
    let make = move || {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("carry").arg("--tied").arg("--config").arg(&path);
        // Where it lies is the node's business: its folders may be others.
        command.args(admin.iter().flat_map(|path| [OsStr::new("--admin"), path.as_os_str()]));
        command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
        Ok(command)
    };
    let carrier = Minder::start("the links to other cells".into(), make).map_err(|error| {
        Failure::Failed(format!("the links to other cells cannot be started: {error}"))
    })?;
    Ok(Some(carrier))
}

/// Keeps a gateway beside the node, if programs call by gRPC there. It is a process of its own:
/// whatever callers send, the node's threads and its memory have no part in it.
pub(super) fn gateway(config: &NodeConfig, path: &Path) -> Result<Option<Minder>, Failure> {
    if config.grpc.is_none() {
        return Ok(None);
    }
    let path = path.to_owned();
    let make = move || {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("gateway").arg("--tied").arg("--config").arg(&path);
        command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
        Ok(command)
    };
    let gateway = Minder::start("the gateway".into(), make)
        .map_err(|error| Failure::Failed(format!("the gateway cannot be started: {error}")))?;
    Ok(Some(gateway))
}
