//! The folder that `steadfast init` fills, and with which modes.

use std::fmt::Display;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use os::clock::wall_clock;
use rustix::rand::{GetRandomFlags, getrandom};
use seal::{ClusterKey, Keys};
use steadfast::founder;
use tls::Identity;
use tls::issue::{Authority, Issued, SystemAuthority};
use wire::{NodeId, Secret, Time};

use super::node_file;
use super::plan::Plan;
use crate::commands::Failure;
use crate::commands::context::{self, Context};
use crate::commands::join::invitation::{CLUSTER_KEY, CONFIG, Invitation, InvitedFile};

const AUTHORITY: &str = "authority";
const AUTHORITY_PEM: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority.key";
/// The certificate of a cell's authority, by its system's.
const CELL_PEM: &str = "cell.pem";
const PLAN: &str = "cluster.toml";
const SYSTEM: &str = "system.toml";

/// For its owner alone.
const SECRET: u32 = 0o600;
/// For all to read.
const PUBLIC: u32 = 0o644;

/// The folder.
#[derive(Clone)]
pub struct Folder {
    path: PathBuf,
    force: bool,
}

impl Folder {
    pub fn new(path: &Path, force: bool) -> Folder {
        Folder { path: path.into(), force }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that nothing is half made before it turns out that something is in the way.
    pub fn expect_free(&self, owners: &[Identity]) -> Result<(), Failure> {
        let folders = owners.iter().map(|owner| self.path.join(owner.label()));
        match folders.into_iter().find(|folder| folder.exists()) {
            Some(folder) if !self.force => Err(exists(&folder)),
            _ => Ok(()),
        }
    }

    /// A new authority. Its key is in a folder of its own, to be taken away.
    pub fn found_authority(&self, cluster: &str) -> Result<Authority, Failure> {
        self.expect_no_authority()?;
        let (authority, own) = Authority::new(cluster).map_err(Failure::failed)?;
        self.write(AUTHORITY, AUTHORITY_KEY, &own.key, SECRET, self.force)?;
        self.write(AUTHORITY, AUTHORITY_PEM, &own.certificate, PUBLIC, self.force)?;
        Ok(authority)
    }

    /// The authority that was made before.
    pub fn authority(&self, cluster: &str) -> Result<Authority, Failure> {
        let key = self.authority_key()?;
        match tls::path_of(cluster) {
            Some(path) => Authority::of_cell(path, &key, &self.read(AUTHORITY, CELL_PEM)?),
            None => Authority::from_key(cluster, &key),
        }
        .map_err(Failure::failed)
    }

    fn authority_key(&self) -> Result<String, Failure> {
        let path = self.path.join(AUTHORITY).join(AUTHORITY_KEY);
        fs::read_to_string(&path).map_err(|error| {
            Failure::Failed(format!(
                "cannot read {}: {error}; bring the authority's key back from where you keep it",
                path.display()
            ))
        })
    }

    /// Makes sure that no authority is there.
    pub fn expect_no_authority(&self) -> Result<(), Failure> {
        let path = self.path.join(AUTHORITY);
        if path.exists() && !self.force { Err(exists(&path)) } else { Ok(()) }
    }

    /// A new authority of a system, and the system's file.
    pub fn found_system(&self, system: &str) -> Result<SystemAuthority, Failure> {
        self.expect_no_authority()?;
        let (authority, own) = SystemAuthority::new(system).map_err(Failure::failed)?;
        self.write(AUTHORITY, AUTHORITY_KEY, &own.key, SECRET, self.force)?;
        self.write(AUTHORITY, AUTHORITY_PEM, &own.certificate, PUBLIC, self.force)?;
        let text = format!("# What `steadfast init` made here.\nsystem = \"{system}\"\n");
        self.write("", SYSTEM, &text, PUBLIC, true)?;
        Ok(authority)
    }

    /// The name of the system that was made before. `None`: there is none.
    pub fn read_system(&self) -> Result<Option<String>, Failure> {
        if !self.path.join(SYSTEM).exists() {
            return Ok(None);
        }
        let wrong = |error: &dyn Display| unusable(&self.path.join(SYSTEM), error);
        let text = self.read("", SYSTEM)?;
        let table: toml::Table = toml::from_str(&text).map_err(|error| wrong(&error))?;
        match table.get("system").and_then(toml::Value::as_str) {
            Some(system) => Ok(Some(system.to_owned())),
            None => Err(wrong(&"it lacks its `system`")),
        }
    }

    /// The authority of the system that was made before.
    pub fn system_authority(&self, system: &str) -> Result<SystemAuthority, Failure> {
        SystemAuthority::from_key(system, &self.authority_key()?).map_err(Failure::failed)
    }

    /// A new authority of a cell, by that of its system, whose folder this is not.
    pub fn found_cell(
        &self,
        above: (&Folder, &SystemAuthority),
        path: &str,
        replace: bool,
    ) -> Result<Authority, Failure> {
        let replace = replace || self.force;
        let system_pem = above.0.read(AUTHORITY, AUTHORITY_PEM)?;
        let (authority, own) = above.1.cell(path).map_err(Failure::failed)?;
        self.write(AUTHORITY, AUTHORITY_KEY, &own.key, SECRET, replace)?;
        self.write(AUTHORITY, CELL_PEM, &own.certificate, PUBLIC, replace)?;
        self.write(AUTHORITY, AUTHORITY_PEM, &system_pem, PUBLIC, replace)?;
        Ok(authority)
    }

    /// The cells that were made here before.
    pub fn cells(&self) -> Result<Vec<Plan>, Failure> {
        let mut plans = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|error| unusable(&self.path, &error))? {
            let path = entry.map_err(|error| unusable(&self.path, &error))?.path();
            if path.join(PLAN).exists() {
                plans.push(Folder::new(&path, false).read_plan()?);
            }
        }
        Ok(plans)
    }

    /// A certificate with its key and the authority's certificate, in the owner's folder.
    pub fn issue(
        &self,
        authority: &Authority,
        owner: &Identity,
        addresses: &[IpAddr],
    ) -> Result<(), Failure> {
        self.put(authority, owner, addresses, self.force)
    }

    /// As `issue`, in place of what is there.
    pub fn renew(
        &self,
        authority: &Authority,
        owner: &Identity,
        addresses: &[IpAddr],
    ) -> Result<(), Failure> {
        self.put(authority, owner, addresses, true)
    }

    fn put(
        &self,
        authority: &Authority,
        owner: &Identity,
        addresses: &[IpAddr],
        replace: bool,
    ) -> Result<(), Failure> {
        let Issued { certificate, key } =
            authority.issue(owner, addresses).map_err(Failure::failed)?;
        let label = owner.label();
        let authority = self.read(AUTHORITY, AUTHORITY_PEM)?;
        self.write(label, &format!("{label}.key"), &key, SECRET, replace)?;
        self.write(label, &format!("{label}.pem"), &certificate, PUBLIC, replace)?;
        self.write(label, AUTHORITY_PEM, &authority, PUBLIC, replace)
    }

    /// Everybody who has a folder here.
    pub fn owners(&self, cluster: &str) -> Result<Vec<Identity>, Failure> {
        let mut owners = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|error| unusable(&self.path, &error))? {
            let name = entry.map_err(|error| unusable(&self.path, &error))?.file_name();
            let label = name.to_string_lossy().into_owned();
            let certificate = self.path.join(&label).join(format!("{label}.pem"));
            let owner = match label.split_once('-') {
                Some(("node", id)) => {
                    id.parse().ok().and_then(|id| Identity::node(cluster, NodeId(id)).ok())
                }
                Some(("client", name)) => Identity::client(cluster, name).ok(),
                Some(("admin", name)) => Identity::admin(cluster, name).ok(),
                _ => None,
            };
            owners.extend(owner.filter(|_| certificate.exists()));
        }
        owners.sort_by_key(|owner| (owner.role, owner.label().to_owned()));
        Ok(owners)
    }

    /// The ring's keys, from a node that was made before.
    pub fn cluster_key(&self, plan: &Plan) -> Result<String, Failure> {
        let labels = plan.nodes.iter().map(|node| plan.identity(node.id).label().to_owned());
        let found = labels.into_iter().find_map(|label| self.read(&label, CLUSTER_KEY).ok());
        found.ok_or_else(|| {
            Failure::Failed(format!(
                "no node's folder in {} has a {CLUSTER_KEY}: copy one from a running node to \
                 {}/node-ID/",
                self.path.display(),
                self.path.display()
            ))
        })
    }

    pub fn write_secret(&self, folder: &str, name: &str, text: &str) -> Result<(), Failure> {
        self.write(folder, name, text, SECRET, self.force)
    }

    pub fn write_config(&self, plan: &Plan, node: NodeId, trial: bool) -> Result<(), Failure> {
        let text = node_file::text(plan, node, trial)?;
        self.write(plan.identity(node).label(), CONFIG, &text, PUBLIC, self.force)
    }

    /// The node's folder as one line, for `steadfast join` at its host; returns its file.
    pub fn write_token(&self, plan: &Plan, node: NodeId) -> Result<PathBuf, Failure> {
        let label = plan.identity(node).label().to_owned();
        let file = |(name, secret): (String, bool)| {
            Ok(InvitedFile { text: self.read(&label, &name)?, name, secret })
        };
        let files = [
            (CONFIG.to_owned(), false),
            (AUTHORITY_PEM.to_owned(), false),
            (format!("{label}.pem"), false),
            (format!("{label}.key"), true),
            (CLUSTER_KEY.to_owned(), true),
        ];
        let others = plan.nodes.iter().filter(|other| other.id != node);
        let invitation = Invitation {
            node,
            admins: others.map(|other| plan.sockets(other.id).admin.to_string()).collect(),
            files: files.into_iter().map(file).collect::<Result<_, Failure>>()?,
        };
        let name = format!("{label}.token");
        self.write("", &name, &(invitation.token()? + "\n"), SECRET, true)?;
        Ok(self.path.join(name))
    }

    /// The node founds the cluster, together with a majority of the others.
    pub fn write_founder(&self, plan: &Plan, node: NodeId) -> Result<(), Failure> {
        let data = format!("{}/{}", plan.identity(node).label(), node_file::DATA);
        let text = founder::text(Time(wall_clock()));
        self.write(&data, founder::FILE, &text, PUBLIC, self.force)
    }

    pub fn write_plan(&self, plan: &Plan) -> Result<(), Failure> {
        let plan = toml::to_string(plan).map_err(Failure::failed)?;
        let text = format!("# What `steadfast init` made here, for --add and --renew.\n{plan}");
        self.write("", PLAN, &text, PUBLIC, true)
    }

    /// Where the nodes are, for `steadfast context use`.
    pub fn write_context(&self, context: &Context) -> Result<(), Failure> {
        self.write("", context::FILE, &context.to_toml()?, PUBLIC, true)
    }

    pub fn read_plan(&self) -> Result<Plan, Failure> {
        let text = self.read("", PLAN).map_err(|_| {
            Failure::Usage(format!(
                "{} was not made by `steadfast init`: name the nodes to make it, such as 1=10.0.0.1",
                self.path.display()
            ))
        })?;
        toml::from_str(&text).map_err(|error| unusable(&self.path.join(PLAN), &error))
    }

    fn read(&self, folder: &str, name: &str) -> Result<String, Failure> {
        let path = self.path.join(folder).join(name);
        fs::read_to_string(&path).map_err(|error| unusable(&path, &error))
    }

    /// Written beside and moved into place: nobody ever finds half of a key, or one that others
    /// could read for a moment.
    fn write(
        &self,
        folder: &str,
        name: &str,
        text: &str,
        mode: u32,
        replace: bool,
    ) -> Result<(), Failure> {
        let folder = self.path.join(folder);
        let path = folder.join(name);
        let wrap = |error: io::Error| unusable(&path, &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(wrap)?;
        if path.exists() && !replace {
            return Err(exists(&path));
        }
        let beside = folder.join(format!(".{name}.new"));
        // A file that a crash has left there may have another mode.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrap(error)),
            _ => {}
        }
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside);
        let mut file = made.map_err(wrap)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrap)?;
        fs::rename(&beside, &path).map_err(wrap)
    }
}

/// The text of a key file with one new key.
pub fn new_cluster_key() -> Result<String, Failure> {
    let mut bytes = [0; Secret::LENGTH];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty()).map_err(|error| {
            Failure::Failed(format!("the system gives no random bytes: {error}"))
        })?;
    }
    Ok(Keys::single(ClusterKey::new(1, Secret::new(bytes))).print().to_string())
}

fn exists(path: &Path) -> Failure {
    Failure::Failed(format!(
        "{} exists, and nothing was changed: give another --out, or --force to overwrite it",
        path.display()
    ))
}

fn unusable(path: &Path, error: &dyn Display) -> Failure {
    Failure::Failed(format!("{}: {error}", path.display()))
}
