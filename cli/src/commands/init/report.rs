//! The report of the created files, and of the next steps.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tls::{Identity, Role};
use wire::NodeId;

use super::plan::{Plan, Sockets};
use crate::commands::Failure;

/// The created files.
#[derive(Serialize)]
pub struct Report {
    cluster: String,
    out: PathBuf,
    /// Made now.
    nodes: Vec<MadeNode>,
    /// Folders of clients and administrators that were made now.
    clients: Vec<String>,
    admins: Vec<String>,
    /// Folders whose certificates were made anew.
    renewed: Vec<String>,
    /// Files with a line for `steadfast join`, if nodes were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<String>,
    #[serde(skip)]
    plan: Plan,
    #[serde(skip)]
    local: bool,
    #[serde(skip)]
    founded: bool,
}

#[derive(Serialize)]
struct MadeNode {
    id: NodeId,
    folder: String,
    config: PathBuf,
    #[serde(flatten)]
    sockets: Sockets,
}

impl Report {
    pub fn new(out: &Path, plan: &Plan, local: bool) -> Report {
        Report {
            cluster: plan.cluster.clone(),
            out: out.into(),
            nodes: Vec::new(),
            clients: Vec::new(),
            admins: Vec::new(),
            renewed: Vec::new(),
            tokens: Vec::new(),
            next: Vec::new(),
            plan: plan.clone(),
            local,
            founded: false,
        }
    }

    pub fn add_node(&mut self, id: NodeId) {
        self.founded = true;
        self.node(id);
    }

    /// A node that the others do not know yet.
    pub fn add_later(&mut self, id: NodeId, token: PathBuf) {
        self.tokens.push(token);
        self.node(id);
    }

    fn node(&mut self, id: NodeId) {
        let folder = self.plan.identity(id).label().to_owned();
        let config = self.out.join(&folder).join("steadfast.toml");
        self.nodes.push(MadeNode { id, folder, config, sockets: self.plan.sockets(id) });
    }

    pub fn add_owner(&mut self, owner: &Identity) {
        match owner.role {
            Role::Client => self.clients.push(owner.label().to_owned()),
            Role::Admin => self.admins.push(owner.label().to_owned()),
            Role::Node(_) => {}
        }
    }

    pub fn renewed(&mut self, owner: &Identity) {
        self.renewed.push(owner.label().to_owned());
    }

    pub fn json(mut self) -> Result<String, Failure> {
        self.next = self.steps();
        let json = serde_json::to_string_pretty(&self).map_err(Failure::failed)?;
        Ok(json + "\n")
    }

    pub fn text(&self) -> String {
        let out = self.out.display();
        let mut text = format!("Cluster \"{}\", in {out}:\n", self.cluster);
        let made = self.nodes.iter().map(|node| &node.folder);
        for folder in made.chain(&self.clients).chain(&self.admins) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  made     {out}/{folder}/");
        }
        for folder in &self.renewed {
            let _ = writeln!(text, "  renewed  {out}/{folder}/");
        }
        text += "\nNext:\n";
        for (index, step) in self.steps().iter().enumerate() {
            let _ = writeln!(text, "  {}. {}", index + 1, step.replace('\n', "\n     "));
        }
        text
    }

    /// The created files, in short.
    pub fn summary(&self) -> String {
        let people = [&self.clients[..], &self.admins].concat();
        match &self.renewed[..] {
            [] if self.adds() => {
                let folders: Vec<&str> = self.nodes.iter().map(|node| &*node.folder).collect();
                format!("made {}:", folders.join(", "))
            }
            [] => format!("made {} nodes, {}:", self.nodes.len(), people.join(", ")),
            renewed => format!("renewed {} certificates:", renewed.len()),
        }
    }

    /// It is of nodes that come to a cluster that was made before.
    pub fn adds(&self) -> bool {
        !self.tokens.is_empty()
    }

    pub fn steps(&self) -> Vec<String> {
        let out = self.out.display();
        let mut steps = Vec::new();
        for (token, node) in self.tokens.iter().zip(&self.nodes) {
            let out = if self.local {
                format!("--out {}/{}", self.out.display(), node.folder)
            } else {
                "--out /etc/steadfast".into()
            };
            let host =
                if self.local { "here".into() } else { format!("at {}", node.sockets.ring.ip()) };
            steps.push(format!(
                "Have {} come, while the cluster runs; {host}, with the one line of this file (it is as \
                 secret as a key):\nsteadfast join --token @{} {out}",
                node.folder,
                token.display()
            ));
        }
        if !self.nodes.is_empty() && !self.adds() {
            self.start(&mut steps);
        }
        if !self.renewed.is_empty() {
            steps.push(
                "Copy each renewed folder's .pem and .key to where the old ones are; restart nodes one \
                 after the other, and clients."
                    .into(),
            );
        }
        for folder in self.clients.iter().chain(&self.admins).filter(|_| !self.founded) {
            steps
                .push(format!("Give {out}/{folder}/ to its owner, over a channel that you trust."));
        }
        if self.founded {
            self.use_it(&mut steps);
        }
        if !self.local {
            steps.push(format!(
                "Take {out}/authority/authority.key offline, to a safe place: whoever has it can make \
                 nodes and administrators. It is needed only for new certificates: --add, --client, \
                 --admin, --renew, and `steadfast cell join`."
            ));
        }
        steps
    }

    fn start(&self, steps: &mut Vec<String>) {
        let out = self.out.display();
        let mut start = String::from("Start:");
        for node in &self.nodes {
            if self.local {
                let _ = write!(start, "\nsteadfast node --config {} &", node.config.display());
            } else {
                let host = node.sockets.ring.ip();
                let folder = &node.folder;
                let _ =
                    write!(start, "\non {host}: steadfast node --config {folder}/steadfast.toml");
            }
        }
        if !self.local {
            steps.push(format!(
                "Copy each node's folder to its host, over a channel that you trust, for the user that \
                 runs the node alone: scp -pr {out}/node-ID HOST:"
            ));
        }
        steps.push(start);
    }

    fn use_it(&self, steps: &mut Vec<String>) {
        let out = self.out.display();
        steps.push(format!("Have the commands find the cluster: steadfast context use {out}"));
        steps.push("Look: steadfast status".into());
        let off = "\n(with the [[replica]] lines of steadfast.toml switched on)";
        let off = if self.local { "" } else { off };
        steps.push(format!("Call: steadfast call counter add '[5]'{off}"));
        steps.push("Run a service of your own: steadfast deploy service.toml".into());
    }
}
