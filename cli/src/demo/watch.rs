//! The conductor's view of the nodes, from their admin sockets.

use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use node::admin::{AdminError, Client};
use node::{EventKind, EventRecord, Status};

use super::plan::GROUP;
use super::timeline::{NodeEvent, Seen};

/// A node that is stopped takes a connection and never answers; one that runs answers at once.
const TIMEOUT: Duration = Duration::from_millis(500);

fn ask(admin: &Path) -> Result<Client, AdminError> {
    let client = Client::connect(admin)?;
    client.set_timeout(Some(TIMEOUT))?;
    Ok(client)
}

/// The node's status.
pub fn status(admin: &Path) -> Result<Status, AdminError> {
    ask(admin)?.status()
}

/// How many nodes can have replicas of what is deployed, as the node knows.
pub fn hosts(admin: &Path) -> Result<usize, AdminError> {
    Ok(ask(admin)?.deployments()?.nodes.len())
}

/// The state of the node's replica of a group.
pub fn state(admin: &Path, group: &str) -> Result<Vec<u8>, AdminError> {
    Ok(ask(admin)?.state(group)?.1)
}

/// Sends on what the node sees, until it ends.
pub fn follow(node: u32, admin: &Path, events: Sender<NodeEvent>) -> Result<(), AdminError> {
    let followed = Client::connect(admin)?.events(true, false)?;
    std::thread::Builder::new().name(format!("events of node {node}")).spawn(move || {
        for record in followed {
            let Ok(record) = record else { break };
            let Some(event) = event(node, record) else { continue };
            if events.send(event).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

fn event(node: u32, record: EventRecord) -> Option<NodeEvent> {
    let what = match record.kind {
        EventKind::Unreachable { member } => Seen::Unreachable(member.node.0),
        EventKind::Silent { member } => Seen::Silent(member.node.0),
        EventKind::TokenLost { .. } => Seen::TokenLost,
        EventKind::Installed { .. } => Seen::Ring,
        EventKind::View { group, view, replicas, primary } if group == GROUP => Seen::View {
            number: view.0,
            replicas: replicas.iter().map(|r| (r.member.node.0, r.synced)).collect(),
            primary: primary.map(|member| member.node.0),
        },
        EventKind::Transferred { bytes, .. } => Seen::Transferred { bytes: bytes as u64 },
        _ => return None,
    };
    Some(NodeEvent { at: record.time, node, what })
}

/// The part of a status that interests a waiting person.
pub fn summary(status: &Status) -> String {
    let ring = &status.ring;
    let groups = status.groups.iter().map(|group| {
        let synced = group.replicas.iter().filter(|replica| replica.synced).count();
        format!("{}: {synced} of {} replicas have the state", group.name, group.replicas.len())
    });
    let groups = groups.collect::<Vec<_>>().join(", ");
    format!(
        "node {}: ring {} with {} members; {groups}",
        status.node.0,
        ring.state,
        ring.members.len()
    )
}
