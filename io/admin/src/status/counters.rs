//! What a node has counted since its start.

use serde::{Deserialize, Serialize};
use wire::Malformed;

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
    /// Times that this node was excluded because it could not keep up, as others told it.
    #[serde(default)]
    pub excluded_slow: u64,
    /// Times that another node was excluded because it could not keep up.
    #[serde(default)]
    pub others_slow: u64,
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
    /// Calls that came to a replica again, by a retry or from another entry, and were not executed again.
    #[serde(default)]
    pub copies: u64,
    /// Calls that handlers here made of other groups.
    #[serde(default)]
    pub nested_calls: u64,
    /// Ends of groups' calls that were ordered, of groups with a replica here.
    #[serde(default)]
    pub nested_ends: u64,
    /// The same, once more than needed.
    #[serde(default)]
    pub nested_copies: u64,
    /// Handlers that panicked.
    pub handlers_panicked: u64,
    /// Replicas taken out because they could not keep up.
    pub replicas_overloaded: u64,
    /// Replicas taken out because their services were hung.
    #[serde(default)]
    pub replicas_hung: u64,
    /// Times that the program of a replica went without having been told to.
    #[serde(default)]
    pub programs_lost: u64,
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
