//! What a node knows of the cluster and of itself, as people and tools read it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use wire::ordered::{Hold, Style};
use wire::{Incarnation, Malformed, Member, NodeId, RingId, ViewNumber};

use crate::realtime::RealtimeStatus;

/// What a node knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// This node.
    pub node: NodeId,
    /// Which of its lives.
    pub incarnation: Incarnation,
    /// The cluster's name.
    pub cluster: String,
    /// Where clients connect.
    pub client: Option<SocketAddr>,
    /// The ring.
    pub ring: RingStatus,
    /// The groups that this node knows, in order of name.
    pub groups: Vec<GroupStatus>,
    /// What of the wishes in `[realtime]` the system has granted.
    #[serde(default)]
    pub realtime: RealtimeStatus,
    /// TLS at the ports for clients and administrators.
    #[serde(default)]
    pub tls: TlsStatus,
    /// How the ring's datagrams are sealed; `None`: not at all.
    #[serde(default)]
    pub seal: Option<SealStatus>,
    /// The ring's sockets.
    #[serde(default)]
    pub sockets: SocketStatus,
    /// What was counted since the start.
    pub counters: Counters,
}

/// What the system grants the ring's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketStatus {
    /// The other nodes, on each link.
    pub peers: usize,
    /// To so many of them runs of datagrams leave in one system call (`UDP_SEGMENT`); to the rest
    /// one by one.
    pub runs_out: usize,
    /// Runs of datagrams are read in one system call (`UDP_GRO`).
    pub runs_in: bool,
    /// Bytes that the kernel keeps of what one peer has sent until it is read, its own
    /// bookkeeping included.
    pub receive_buffer: usize,
}

impl SocketStatus {
    /// Of two links together.
    pub(crate) fn and(self, other: SocketStatus) -> SocketStatus {
        SocketStatus {
            peers: self.peers + other.peers,
            runs_out: self.runs_out + other.runs_out,
            runs_in: self.runs_in && other.runs_in,
            receive_buffer: self.receive_buffer.min(other.receive_buffer),
        }
    }
}

/// What a node knows of its ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingStatus {
    /// `operational`, `gather`, `commit`, `recovery`, or `stopped` when the node runs no more.
    pub state: String,
    /// Its id.
    pub id: RingId,
    /// The nodes of the cluster, as this node's configuration lists them, in order of id.
    pub configured: Vec<NodeId>,
    /// Its members, in order of id.
    pub members: Vec<Member>,
    /// It has the quorum; `None` until the announcements are in.
    pub quorate: Option<bool>,
    /// The number of the last quorate component that this node was in.
    pub epoch: u64,
    /// The last sequence number delivered here.
    pub delivered: u64,
    /// The links to each of the other configured nodes, in order of id.
    #[serde(default)]
    pub links: Vec<NodeLinks>,
}

/// What a node knows of the links to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeLinks {
    /// The other node.
    pub node: NodeId,
    /// Each link, as the configuration lists them.
    pub links: Vec<LinkStatus>,
}

/// What a node knows of one link to another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// It carries from here to there, as far as is known; of a node that is silent, what was known
    /// last.
    pub up: bool,
    /// Milliseconds since anything came by it from there; none if nothing ever did.
    pub heard_ms: Option<f64>,
}

/// How a node's datagrams are sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealStatus {
    /// The number of the cluster key that seals.
    pub key: u8,
    /// Its fingerprint, in hexadecimal digits.
    pub fingerprint: String,
    /// The numbers of all cluster keys that open.
    pub opens: Vec<u8>,
    /// The change of the key that is under way.
    #[serde(default)]
    pub change: Option<KeyChange>,
    /// What was counted since the start.
    pub counters: SealCounters,
}

/// A change of the cluster's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    /// The next key's number.
    pub key: u8,
    /// Its fingerprint, in hexadecimal digits.
    pub fingerprint: String,
    /// It seals already; the last one still opens.
    pub switched: bool,
    /// Nodes that are away are not waited for.
    pub forced: bool,
    /// Who is waited for.
    pub lacking: Vec<NodeId>,
}

/// What became of sealed datagrams since the node's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealCounters {
    /// Sealed. One that goes to several nodes counts once.
    pub sealed: u64,
    /// Opened.
    pub opened: u64,
    /// Contact messages opened.
    pub contacts_in: u64,
    /// Contact messages sent.
    pub contacts_out: u64,
    /// Lives of other nodes that proved to be going on.
    pub met: u64,
    /// Refused: no envelope at all, nor a datagram of the ring.
    pub malformed: u64,
    /// Refused: a datagram of the ring without envelope.
    pub plain: u64,
    /// Refused: sealed with a key that this node does not have.
    pub unknown_key: u64,
    /// Refused: for another node, or of a node that is not configured.
    pub misaddressed: u64,
    /// Refused: not what a holder of the key sealed.
    pub forged: u64,
    /// Refused: it had come before. With two links that is the other link's copy.
    pub duplicates: u64,
    /// Refused: older than what this node has taken, or of a life that is over.
    pub replayed: u64,
    /// Dropped: genuine, but of a life that had not proved to be going on.
    pub unmet: u64,
}

impl SealStatus {
    pub(crate) fn new(seal: &seal::Seal) -> SealStatus {
        let key = seal.keys().sealing();
        SealStatus {
            key: key.number(),
            fingerprint: key.fingerprint().to_string(),
            opens: seal.keys().iter().map(seal::ClusterKey::number).collect(),
            change: None,
            counters: SealCounters::from(seal.counters()),
        }
    }

    pub(crate) fn with_change(self, keys: Option<&engine::KeyStatus>) -> SealStatus {
        let change = keys.and_then(|keys| keys.change.as_ref()).map(|change| KeyChange {
            key: change.key.number,
            fingerprint: seal::Fingerprint(change.key.fingerprint).to_string(),
            switched: change.switched,
            forced: change.forced,
            lacking: change.lacking.clone(),
        });
        SealStatus { change, ..self }
    }
}

impl From<seal::Counters> for SealCounters {
    fn from(counters: seal::Counters) -> Self {
        SealCounters {
            sealed: counters.sealed,
            opened: counters.opened,
            contacts_in: counters.contacts_in,
            contacts_out: counters.contacts_out,
            met: counters.met,
            malformed: counters.malformed,
            plain: counters.plain,
            unknown_key: counters.unknown_key,
            misaddressed: counters.misaddressed,
            forged: counters.forged,
            duplicates: counters.duplicates,
            replayed: counters.replayed,
            unmet: counters.unmet,
        }
    }
}

/// What a node knows of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// How it is replicated.
    pub style: Style,
    /// When a reply may leave.
    pub hold: Hold,
    /// The number of its view.
    pub view: ViewNumber,
    /// The primary, if any replica has the state.
    pub primary: Option<Member>,
    /// The replicas in order of rank.
    pub replicas: Vec<ReplicaStatus>,
    /// Sessions kept by this node's replica, if it has one.
    pub sessions: Option<usize>,
    /// Requests executed in the group's history, by this node's replica, if it has one.
    pub executed: Option<u64>,
}

/// One replica of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Its node.
    pub node: NodeId,
    /// Which of the node's lives.
    pub incarnation: Incarnation,
    /// It has the state.
    pub synced: bool,
}

/// What was counted since the node's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Runs of datagrams that left in one system call each.
    #[serde(default)]
    pub runs_out: u64,
    /// Datagrams that could not be sent: the socket was full, or the host knows no way.
    pub datagrams_unsent: u64,
    /// Datagrams dropped, by reason.
    pub malformed: MalformedCounters,
    /// Times that a node's host said that its process is gone.
    pub unreachable: u64,
    /// Those among them that were not believed, because the connection to the node stood: forged,
    /// or just ahead of the connection's end.
    #[serde(default)]
    pub unreachable_doubted: u64,
    /// Times that a link to a node was lost while another one worked.
    #[serde(default)]
    pub links_lost: u64,
    /// Times that a lost link came back.
    #[serde(default)]
    pub links_back: u64,
    /// Frames received from clients.
    pub frames_in: u64,
    /// Frames written to clients.
    pub frames_out: u64,
    /// Client connections closed because of what they sent, by reason.
    pub frames_malformed: MalformedCounters,
    /// Client connections accepted.
    pub connections: u64,
    /// Client connections refused or ended because a limit was reached.
    pub connections_refused: u64,
    /// Handshakes at the port for clients.
    #[serde(default)]
    pub handshakes: HandshakeCounters,
    /// Handshakes at the port for administrators.
    #[serde(default)]
    pub admin_handshakes: HandshakeCounters,
    /// Client connections closed because the client does not read.
    pub clients_slow: u64,
    /// Client connections now.
    pub clients: u64,
    /// Commands given to replicas.
    pub commands: u64,
    /// Handlers that panicked.
    pub handlers_panicked: u64,
    /// Replicas taken out because they could not keep up.
    pub replicas_overloaded: u64,
    /// Times that the data plane slept and was woken by a socket or another thread.
    #[serde(default)]
    pub wakeups: u64,
    /// Those of them that were by another thread of this process: a result, or an order.
    #[serde(default)]
    pub wakeups_by_threads: u64,
    /// Times that the data plane looked for work before it slept.
    #[serde(default)]
    pub spins: u64,
    /// Those of them that found work, and so saved a wake-up.
    #[serde(default)]
    pub spins_won: u64,
    /// Events that a subscriber did not take in time.
    pub events_dropped: u64,
    /// Requests at the admin socket.
    pub admin_requests: u64,
    /// Requests at the admin socket that were refused.
    pub admin_malformed: u64,
}

/// What became of those who began a TLS handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeCounters {
    /// They came in.
    pub done: u64,
    /// Those of them whose handshake was a short one, by a ticket.
    pub resumed: u64,
    /// They did not speak TLS.
    pub plaintext: u64,
    /// The handshake failed: no certificate, one of another authority or out of its time, or nonsense.
    pub failed: u64,
    /// The certificate was genuine, and of another cluster or role.
    pub refused: u64,
    /// They took too long.
    pub late: u64,
    /// They had to go for others: too many handshakes were under way.
    pub crowded: u64,
}

/// How this node is secured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsStatus {
    /// Whom the node's certificate is for; `None`: there is none, and clients are not encrypted.
    pub certificate: Option<String>,
    /// The certificate has less than two months left.
    pub expires_soon: bool,
    /// Connections by the names in clients' certificates, in order of name, the first 64.
    pub clients: Vec<(String, u64)>,
}

/// What made bytes worthless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MalformedCounters {
    /// Another program's bytes.
    pub magic: u64,
    /// Another version of the protocol.
    pub version: u64,
    /// Another cluster.
    pub cluster: u64,
    /// An unknown kind of message.
    pub kind: u64,
    /// Too short or too long.
    pub length: u64,
    /// An impossible value in a field.
    pub field: u64,
}

impl MalformedCounters {
    /// Counts one.
    pub fn count(&mut self, reason: &Malformed) {
        *match reason {
            Malformed::Magic => &mut self.magic,
            Malformed::Version { .. } => &mut self.version,
            Malformed::Cluster => &mut self.cluster,
            Malformed::Kind(_) => &mut self.kind,
            Malformed::Length => &mut self.length,
            Malformed::Field(_) => &mut self.field,
        } += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.magic + self.version + self.cluster + self.kind + self.length + self.field
    }
}

impl RingStatus {
    /// The configured nodes that are not in the ring.
    pub fn absent(&self) -> Vec<NodeId> {
        absent(&self.configured, &self.members)
    }

    /// If the ring is known to lack the quorum: why, and what to do.
    pub fn no_quorum(&self) -> Option<String> {
        (self.quorate == Some(false)).then(|| no_quorum(&self.configured, &self.members))
    }
}

/// The configured nodes that are not among the members.
pub(crate) fn absent(configured: &[NodeId], members: &[Member]) -> Vec<NodeId> {
    let is_member = |node: &&NodeId| members.iter().any(|member| member.node == **node);
    configured.iter().filter(|node| !is_member(node)).copied().collect()
}

/// Why these members have no quorum, and what to do.
pub(crate) fn no_quorum(configured: &[NodeId], members: &[Member]) -> String {
    let absent = absent(configured, members);
    let (all, here) = (configured.len(), configured.len() - absent.len());
    let needed = all / 2 + 1;
    let names: Vec<String> = absent.iter().map(NodeId::to_string).collect();
    let names = names.join(" ");
    if here < needed {
        return format!(
            "no quorum: nothing is answered until {needed} of {all} nodes are in the ring, here \
             {here}; start {names}, or see why this node cannot reach them"
        );
    }
    format!(
        "no quorum: waiting for {names}; {here} of {all} nodes are here, but those that were \
         restarted have forgotten what they acknowledged, and the others may still know it. Start \
         {names}, or, if a host is lost for good, a node with its id on another"
    )
}

impl Status {
    /// The engine's status, and who says it. The porch adds what it knows of itself.
    pub(crate) fn new(
        status: engine::Status,
        cluster: &str,
        configured: Vec<NodeId>,
        client: Option<SocketAddr>,
        counters: Counters,
    ) -> Status {
        let ring = status.ring;
        Status {
            node: status.me.node,
            incarnation: status.me.incarnation,
            cluster: cluster.into(),
            client,
            ring: RingStatus {
                state: ring.state.into(),
                id: ring.id,
                configured,
                members: ring.members,
                quorate: ring.quorate,
                epoch: ring.epoch,
                delivered: ring.delivered,
                links: Vec::new(),
            },
            groups: status.groups.into_iter().map(GroupStatus::from).collect(),
            realtime: RealtimeStatus::default(),
            tls: TlsStatus::default(),
            seal: None,
            sockets: SocketStatus::default(),
            counters,
        }
    }

    /// What is left to say of a node that runs no more.
    pub(crate) fn stopped(me: Member, cluster: &str) -> Status {
        let ring = RingStatus { state: "stopped".into(), ..RingStatus::default() };
        Status {
            node: me.node,
            incarnation: me.incarnation,
            cluster: cluster.into(),
            client: None,
            ring,
            groups: Vec::new(),
            realtime: RealtimeStatus::default(),
            tls: TlsStatus::default(),
            seal: None,
            sockets: SocketStatus::default(),
            counters: Counters::default(),
        }
    }
}

impl From<engine::GroupStatus> for GroupStatus {
    fn from(group: engine::GroupStatus) -> Self {
        let replica = |replica: engine::ReplicaStatus| ReplicaStatus {
            node: replica.member.node,
            incarnation: replica.member.incarnation,
            synced: replica.synced,
        };
        GroupStatus {
            name: group.name,
            style: group.options.style,
            hold: group.options.hold,
            view: group.view,
            primary: group.primary,
            replicas: group.replicas.into_iter().map(replica).collect(),
            sessions: group.sessions,
            executed: group.executed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_quorum_names_the_nodes_that_are_waited_for() {
        let configured = [1, 2, 3].map(NodeId);
        let member = |node| Member { node, incarnation: Incarnation(7) };
        let why = |here: &[NodeId]| {
            no_quorum(&configured, &here.iter().copied().map(member).collect::<Vec<_>>())
        };
        let too_few = why(&configured[1..2]);
        assert!(too_few.contains("until 2 of 3 nodes are in the ring, here 1"), "{too_few}");
        assert!(too_few.contains("start n1 n3"), "{too_few}");
        let forgotten = why(&configured[..2]);
        assert!(forgotten.starts_with("no quorum: waiting for n3;"), "{forgotten}");
        assert!(forgotten.contains("Start n3"), "{forgotten}");
    }
}
