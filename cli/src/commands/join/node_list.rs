//! The list of nodes in a configuration's text.

use std::fmt::Write;

use steadfast::{NodeAddress, NodeConfig};

use crate::commands::Failure;

/// The text with these nodes, and with its own node, in place of those that it lists.
pub fn replace(text: &str, nodes: &[NodeAddress]) -> Result<String, Failure> {
    let config = NodeConfig::from_toml(text).map_err(Failure::usage)?;
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        inside = match line.trim() {
            "[[nodes]]" => true,
            line => inside && !line.starts_with(['[', '#']),
        };
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let own = config.nodes.iter().filter(|it| it.id == config.node);
    let others = nodes.iter().filter(|it| it.id != config.node);
    // The cluster may not know now where a node is: then the file does, if anybody.
    let written = |node| config.nodes.iter().find(|it: &&NodeAddress| it.id == node);
    let known = |node: &'_ NodeAddress| match node.ring.links() {
        0 => written(node.id).cloned(),
        _ => Some(node.clone()),
    };
    let mut all: Vec<NodeAddress> = own.chain(others).filter_map(known).collect();
    all.sort_by_key(|node| node.id);
    for node in all {
        let text = toml::to_string(&node).map_err(Failure::failed)?;
        // Writing to a string cannot fail.
        let _ = write!(kept, "\n[[nodes]]\n{text}");
    }
    NodeConfig::from_toml(&kept).map_err(Failure::usage)?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use steadfast::NodeId;

    use super::*;

    #[test]
    fn the_list_is_replaced_and_all_else_stays() {
        let text = "node = 4\ncluster = \"plant\"\ninsecure = true\n\n[[nodes]]\nid = 1\nring = \"10.0.0.1:7201\"\n\n\
                    [[nodes]]\nid = 4\nring = \"10.0.0.4:7201\"\n\n# Services.\n[[replica]]\n\
                    group = \"counter\"\nservice = \"counter\"\n";
        let now = [2, 3]
            .map(|id| NodeAddress::new(NodeId(id), format!("10.0.0.{id}:7201").parse().unwrap()));
        let replaced = replace(text, &now).unwrap();
        let config = NodeConfig::from_toml(&replaced).unwrap();
        let ids: Vec<u32> = config.nodes.iter().map(|node| node.id.0).collect();
        assert_eq!(ids, [2, 3, 4]);
        assert!(replaced.contains("# Services.\n[[replica]]"), "{replaced}");
        assert_eq!(replace(&replaced, &now).unwrap().matches("[[nodes]]").count(), 3);
    }
}
