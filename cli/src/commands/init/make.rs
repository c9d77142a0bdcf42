//! Makes one cluster's files, and more for one that was made before.

use std::net::IpAddr;
use std::path::PathBuf;

use tls::Identity;
use tls::issue::Authority;

use super::files::{Folder, new_cluster_key};
use super::node_file;
use super::plan::{NodeSpec, Plan};
use super::report::Report;
use crate::commands::Failure;
use crate::commands::context::Context;

/// Clients and administrators, by name.
#[derive(Clone, Debug, Default)]
pub struct People {
    pub clients: Vec<String>,
    pub admins: Vec<String>,
}

/// The changes of a cluster that was made before.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Its name, to make sure.
    pub cluster: Option<String>,
    pub add: Vec<NodeSpec>,
    pub retired: Vec<u32>,
    pub people: People,
    pub renew: bool,
}

impl People {
    /// At first there is one of each.
    pub fn or_default(mut self) -> People {
        if self.clients.is_empty() {
            self.clients.push("app".to_owned());
        }
        if self.admins.is_empty() {
            self.admins.push("ops".to_owned());
        }
        self
    }

    fn of(&self, cluster: &str) -> Result<Vec<Identity>, Failure> {
        let clients = self.clients.iter().map(|name| Identity::client(cluster, name));
        let admins = self.admins.iter().map(|name| Identity::admin(cluster, name));
        clients.chain(admins).collect::<Result<_, _>>().map_err(Failure::usage)
    }
}

impl Changes {
    /// Nothing changes.
    pub fn is_none(&self) -> bool {
        let Changes { cluster: _, add, retired, people, renew } = self;
        let People { clients, admins } = people;
        add.is_empty() && retired.is_empty() && clients.is_empty() && admins.is_empty() && !renew
    }
}

/// A new cluster, with an authority of its own.
pub fn found_cluster(
    folder: &Folder,
    plan: &Plan,
    people: &People,
    local: bool,
) -> Result<Report, Failure> {
    check(folder, plan, people)?;
    let authority = folder.found_authority(&plan.cluster)?;
    found(folder, plan, people, &authority, local)
}

/// Finds out what is in the way of a new cluster, before anything is written.
pub fn check(folder: &Folder, plan: &Plan, people: &People) -> Result<(), Failure> {
    let mut owners = people.of(&plan.cluster)?;
    owners.extend(plan.nodes.iter().map(|node| plan.identity(node.id)));
    folder.expect_free(&owners)?;
    node_file::check(plan)
}

/// A new cluster, by an authority that is there.
pub fn found(
    folder: &Folder,
    plan: &Plan,
    people: &People,
    authority: &Authority,
    local: bool,
) -> Result<Report, Failure> {
    let mut report = Report::new(folder.path(), plan, local);
    let key = new_cluster_key()?;
    for node in &plan.nodes {
        let name = plan.identity(node.id);
        folder.issue(authority, &name, &[node.address])?;
        folder.write_secret(name.label(), "cluster.key", &key)?;
        folder.write_config(plan, node.id, local)?;
        folder.write_founder(plan, node.id)?;
        report.add_node(node.id);
    }
    issue_people(folder, authority, plan, people, &mut report)?;
    folder.write_plan(plan)?;
    folder.write_context(&context(plan, people)?)?;
    Ok(report)
}

/// How the first client and the first administrator reach the cluster.
fn context(plan: &Plan, people: &People) -> Result<Context, Failure> {
    let label = |owner: Identity| PathBuf::from(owner.label());
    let client = people.clients.first().map(|name| Identity::client(&plan.cluster, name));
    let admin = people.admins.first().map(|name| Identity::admin(&plan.cluster, name));
    Ok(Context {
        clients: (plan.nodes.iter()).map(|node| plan.sockets(node.id).client.to_string()).collect(),
        client_tls: client.transpose().map_err(Failure::usage)?.map(label),
        // On one machine by the sockets, by which one may deploy.
        admins: (plan.nodes.iter())
            .map(|node| match node.address.is_loopback() {
                true => format!("{}/node.sock", plan.identity(node.id).label()),
                false => plan.sockets(node.id).admin.to_string(),
            })
            .collect(),
        admin_tls: admin.transpose().map_err(Failure::usage)?.map(label),
    })
}

/// More for a cluster that was made before.
pub fn extend(folder: &Folder, changes: &Changes) -> Result<Report, Failure> {
    prepare(folder, changes.clone())?.make()
}

/// Changes of a cluster that are possible.
pub struct Extension {
    folder: Folder,
    authority: Authority,
    /// With the changes.
    plan: Plan,
    is_local: bool,
    changes: Changes,
}

/// Finds out what is in the way of changes, before anything is written.
pub fn prepare(folder: &Folder, changes: Changes) -> Result<Extension, Failure> {
    let mut plan = folder.read_plan()?;
    if changes.cluster.as_ref().is_some_and(|cluster| *cluster != plan.cluster) {
        return Err(Failure::Usage(format!(
            "{} is that of cluster \"{}\": leave --cluster out, or give another --out",
            folder.path().display(),
            plan.cluster
        )));
    }
    let authority = folder.authority(&plan.cluster)?;
    let is_local = plan.is_local();
    plan.retire(&changes.retired)?;
    plan.add(&changes.add)?;
    node_file::check(&plan)?;
    let mut wanted = changes.people.of(&plan.cluster)?;
    wanted.extend(changes.add.iter().map(|node| plan.identity(node.id)));
    folder.expect_free(&wanted)?;
    Ok(Extension { folder: folder.clone(), authority, plan, is_local, changes })
}

impl Extension {
    /// Makes what changes.
    pub fn make(self) -> Result<Report, Failure> {
        let Extension { folder, authority, plan, is_local, changes } = self;
        let mut report = Report::new(folder.path(), &plan, is_local);
        if changes.renew {
            for owner in folder.owners(&plan.cluster)? {
                folder.renew(&authority, &owner, &plan.addresses(&owner))?;
                report.renewed(&owner);
            }
        }
        for NodeSpec { id, .. } in changes.add {
            let name = plan.identity(id);
            folder.issue(&authority, &name, &plan.addresses(&name))?;
            folder.write_secret(name.label(), "cluster.key", &folder.cluster_key(&plan)?)?;
            folder.write_config(&plan, id, is_local)?;
            let token = folder.write_token(&plan, id)?;
            report.add_later(id, token);
        }
        issue_people(&folder, &authority, &plan, &changes.people, &mut report)?;
        folder.write_plan(&plan)?;
        Ok(report)
    }
}

fn issue_people(
    folder: &Folder,
    authority: &Authority,
    plan: &Plan,
    people: &People,
    report: &mut Report,
) -> Result<(), Failure> {
    const NO_ADDRESS: &[IpAddr] = &[];
    for owner in people.of(&plan.cluster)? {
        folder.issue(authority, &owner, NO_ADDRESS)?;
        report.add_owner(&owner);
    }
    Ok(())
}
