//! A node's configuration, as text for people.

use std::fmt::Write;

use steadfast::NodeConfig;
use wire::NodeId;

use super::plan::Plan;
use crate::commands::Failure;

/// The folder of what the node writes, beside its configuration.
pub const DATA: &str = "data";

/// The text; checked, so that it starts as written.
pub fn text(plan: &Plan, node: NodeId, trial: bool) -> Result<String, Failure> {
    let sockets = plan.sockets(node);
    let label = plan.identity(node).label().to_owned();
    let mut text = format!(
        "# Node {id} of cluster \"{cluster}\", made by `steadfast init`. All keys: `steadfast node\n\
         # --print-config --all`. Relative paths lie in this file's folder; of what the node writes,\n\
         # under systemd, in the unit's StateDirectory and RuntimeDirectory.\n\
         node = {id}\n\
         cluster = \"{cluster}\"\n\
         data_dir = \"{DATA}\"\n\
         admin = \"node.sock\"\n\
         \n\
         # Deployments, names and groups on disk: the same at every node.\n\
         [manager]\n\
         on = true\n\
         [registry]\n\
         on = true\n\
         [storage]\n\
         folder = \"store\"\n\
         \n\
         [security]\n\
         cluster_key = \"cluster.key\"\n\
         authority = \"authority.pem\"\n\
         certificate = \"{label}.pem\"\n\
         key = \"{label}.key\"\n\
         \n\
         [listen]\n\
         client = \"{client}\"\n\
         admin = \"{admin}\"\n",
        id = node.0,
        cluster = plan.cluster,
        client = sockets.client,
        admin = sockets.admin,
    );
    if let Some(grpc) = sockets.grpc {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "grpc = \"{grpc}\"");
    }
    text += &system(plan, node);
    for other in &plan.nodes {
        text += &entry(plan, other.id);
    }
    text += "\n# A built-in service, to try. Services of your own run in a program of your own.\n";
    let off = if trial { "" } else { "#" };
    for line in ["[[replica]]", "group = \"counter\"", "service = \"counter\""] {
        let _ = writeln!(text, "{off}{line}");
    }
    NodeConfig::from_toml(&text).map_err(Failure::usage)?;
    Ok(text)
}

/// Finds out what cannot be before anything is written.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    plan.nodes.iter().try_for_each(|node| text(plan, node.id, false).map(drop))
}

/// The place of a cell in its system.
fn system(plan: &Plan, node: NodeId) -> String {
    let (Some(links), Some(listen)) = (&plan.links, plan.sockets(node).links) else {
        return String::new();
    };
    let mut text =
        format!("\n[system]\n# UDP and TCP: links from other cells.\nlisten = \"{listen}\"\n");
    if links.parent.is_empty() {
        return text + "# This is the root: no cell is above.\n";
    }
    let parent: Vec<String> = links.parent.iter().map(|parent| format!("\"{parent}\"")).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "# Nodes of the cell above take them there.\nparent = [{}]",
        parent.join(", ")
    );
    text
}

/// A node in the list that each has.
fn entry(plan: &Plan, node: NodeId) -> String {
    format!("\n[[nodes]]\nid = {}\nring = \"{}\"\n", node.0, plan.sockets(node).ring)
}
