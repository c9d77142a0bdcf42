//! The keys that a running node takes anew.

use crate::config::Config;

/// Keys of `[security]` whose files are read again.
const FILES: [&str; 4] = ["authority", "certificate", "key", "denied"];

impl Config {
    /// The keys with other values in `other` that a running node does not take anew: a restart does.
    pub fn needs_restart(&self, other: &Config) -> Vec<String> {
        let (mut ours, mut theirs) = (self.table(), other.table());
        // Other nodes may be elsewhere now; nodes come and go by the cluster's order.
        let own = |config: &Config| (config.node_ids(), config.ring_addresses().to_vec());
        let same_nodes = own(self) == own(other);
        for table in [&mut ours, &mut theirs] {
            table.remove("rights");
            table.remove("labels");
            if same_nodes {
                table.remove("nodes");
            }
            if let Some(security) = table.get_mut("security").and_then(toml::Value::as_table_mut) {
                FILES.iter().for_each(|file| _ = security.remove(*file));
            }
        }
        let keys = ours.keys().chain(theirs.keys().filter(|key| !ours.contains_key(*key)));
        keys.filter(|key| ours.get(*key) != theirs.get(*key)).cloned().collect()
    }

    /// Takes these keys from `other`.
    pub fn take_anew(&mut self, other: Config) {
        let Config { rights, labels, security, nodes, .. } = other;
        (self.rights, self.labels) = (rights, labels);
        if nodes.iter().map(|node| node.id).eq(self.nodes.iter().map(|node| node.id)) {
            self.nodes = nodes;
        }
        self.security.authority = security.authority;
        self.security.certificate = security.certificate;
        self.security.key = security.key;
        self.security.denied = security.denied;
    }

    fn table(&self) -> toml::Table {
        self.to_toml().parse().expect("a configuration is printed as TOML")
    }
}

#[cfg(test)]
mod tests {
    use wire::NodeId;

    use super::*;
    use crate::NodeAddress;

    #[test]
    fn files_rights_and_labels_need_no_restart_and_all_else_does() {
        let config = Config::single();
        let mut other = config.clone();
        other.security.certificate = Some("new.pem".into());
        other.labels.insert("rack".into(), "a".into());
        other.rights.others = crate::Others::Refuse;
        let elsewhere = NodeAddress::new(NodeId(2), "127.0.0.2:7201".parse().unwrap());
        let config = Config { nodes: [config.nodes, vec![elsewhere]].concat(), ..config };
        other.nodes = config.nodes.clone();
        other.nodes[1] = NodeAddress::new(NodeId(2), "127.0.0.3:7201".parse().unwrap());
        assert!(config.needs_restart(&other).is_empty());
        other.ring.window = 17;
        other.client = None;
        assert_eq!(config.needs_restart(&other), ["listen", "ring"]);
        let mut renewed = config;
        renewed.take_anew(other.clone());
        assert_eq!(renewed.needs_restart(&other), ["listen", "ring"], "these still wait");
        assert_eq!((renewed.labels, renewed.rights), (other.labels, other.rights));
    }
}
