//! Nodes whose hosts are named: the names of those that are not in the ring are looked up now and
//! then, for a host may have got another address.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use config::{Config, NodeAddress};
use os::threads;

use crate::control::Control;
use crate::error::StartError;
use crate::order::Order;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);

/// The thread that looks names up. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Names {
    _end: Sender<()>,
}

/// Looks all names of a configuration up. Other nodes' may be unknown for now.
pub(crate) fn look_up(config: &mut Config) -> Result<(), StartError> {
    for node in config.look_up_names().map_err(StartError::Name)? {
        tracing::warn!(%node, "the name of this node's host is not known: it is looked up again");
    }
    Ok(())
}

impl Names {
    /// Looks names up, if the configuration has any.
    pub fn start(config: &Config, control: Arc<Control>) -> io::Result<Option<Names>> {
        let mut nodes: Vec<NodeAddress> = config
            .nodes
            .iter()
            .filter(|it| it.ring.is_named() && it.id != config.node)
            .cloned()
            .collect();
        if nodes.is_empty() {
            return Ok(None);
        }
        let like = config.ring_addresses().first().copied();
        let (end, ended) = channel();
        // A stop does not wait for it: a name may take longer.
        let body = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
                let members = control.status().ring.members;
                let away = |node: &&mut NodeAddress| members.iter().all(|it| it.node != node.id);
                let mut moved = Vec::new();
                for node in nodes.iter_mut().filter(away) {
                    let before = node.ring.clone();
                    // A name that is not known now may be later.
                    if node.ring.look_up(like).is_ok() && node.ring != before {
                        tracing::info!(node = %node.id, at = ?&node.ring[..], "this node's host has another address");
                        moved.push(node.clone());
                    }
                }
                if !moved.is_empty() && control.order(Order::Addresses(moved)).is_err() {
                    return;
                }
            }
        };
        threads::spawn("steadfast names", body)?;
        Ok(Some(Names { _end: end }))
    }
}
