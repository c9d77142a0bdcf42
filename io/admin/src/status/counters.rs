//! A node's counters.

use serde::{Deserialize, Serialize};
use wire::Malformed;

/// A node's counters, from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// System calls that each sent several datagrams (`UDP_SEGMENT`).
    #[serde(default)]
    pub runs_out: u64,
    /// Datagrams that the kernel did not take: the socket was full, or there was no route.
    pub datagrams_unsent: u64,
    /// Datagrams dropped, by reason.
    pub malformed: MalformedCounters,
    /// Times that a peer's host reported that the peer's process is gone.
    pub unreachable: u64,
    /// Refused datagrams that did not count as such a report, because the connection to the peer
    /// was open. The refusal was forged, or arrived just before the end of the connection.
    #[serde(default)]
    pub unreachable_doubted: u64,
    /// Times that a link to a node was lost while another one worked.
    #[serde(default)]
    pub links_lost: u64,
    /// Times that the other members excluded this node because it could not keep up.
    #[serde(default)]
    pub excluded_slow: u64,
    /// Times that another node was excluded because it could not keep up.
    #[serde(default)]
    pub others_slow: u64,
    /// Times that a lost link worked again.
    #[serde(default)]
    pub links_back: u64,
    /// Frames received from clients.
    pub frames_in: u64,
    /// Calls refused because their clients have no right to make them.
    #[serde(default)]
    pub calls_denied: u64,
    /// Frames written to clients.
    pub frames_out: u64,
    /// Client connections closed because they sent malformed bytes, by reason.
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
    /// Client connections closed because the client did not read its frames.
    pub clients_slow: u64,
    /// Open client connections.
    pub clients: u64,
    /// Commands sent to the services of replicas.
    pub commands: u64,
    /// Repeated calls that a replica recognized and did not execute again: retries, or the same
    /// call through another entry node.
    #[serde(default)]
    pub copies: u64,
    /// States of replicas here that came by streams beside the ring.
    #[serde(default)]
    pub states_fetched: u64,
    /// Streams that brought no state: it came by the ring, if it was still wanted.
    #[serde(default)]
    pub fetches_failed: u64,
    /// Nested calls that handlers on this node made.
    #[serde(default)]
    pub nested_calls: u64,
    /// Ordered ends of nested calls whose callee has a replica here.
    #[serde(default)]
    pub nested_ends: u64,
    /// Redundant ends: another replica of the callee had sent the same end before.
    #[serde(default)]
    pub nested_copies: u64,
    /// Handlers that panicked.
    pub handlers_panicked: u64,
    /// Replicas that left their group because they could not keep up.
    pub replicas_overloaded: u64,
    /// Replicas that left their group because their service was hung.
    #[serde(default)]
    pub replicas_hung: u64,
    /// Unrequested exits of programs that served a replica.
    #[serde(default)]
    pub programs_lost: u64,
    /// Times that a socket or another thread woke the sleeping data plane.
    #[serde(default)]
    pub wakeups: u64,
    /// Wake-ups by another thread of this process, which had a result or a command.
    #[serde(default)]
    pub wakeups_by_threads: u64,
    /// Times that the data plane polled for work before it slept.
    #[serde(default)]
    pub spins: u64,
    /// Polls that found work, so that the data plane did not sleep.
    #[serde(default)]
    pub spins_won: u64,
    /// Events dropped because a subscriber did not read them in time.
    pub events_dropped: u64,
    /// Requests at the admin socket.
    pub admin_requests: u64,
    /// Requests at the admin socket that were refused.
    pub admin_malformed: u64,
}

/// The outcomes of TLS handshakes at one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeCounters {
    /// Completed handshakes.
    pub done: u64,
    /// Completed handshakes that resumed a session by its ticket.
    pub resumed: u64,
    /// Connections that did not begin a TLS handshake.
    pub plaintext: u64,
    /// Failed handshakes: the certificate was missing, expired or of another authority, or the
    /// bytes were not valid TLS.
    pub failed: u64,
    /// Refused connections: the certificate was valid, but for another cluster or role.
    pub refused: u64,
    /// Handshakes that took too long.
    pub late: u64,
    /// Handshakes ended in favour of new ones, because too many were under way.
    pub crowded: u64,
}

/// Why received bytes were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MalformedCounters {
    /// They do not begin with Steadfast's magic number.
    pub magic: u64,
    /// Another version of the protocol.
    pub version: u64,
    /// Another cluster.
    pub cluster: u64,
    /// An unknown kind of message.
    pub kind: u64,
    /// A message that is too short or too long.
    pub length: u64,
    /// An invalid value in a field.
    pub field: u64,
}

impl MalformedCounters {
    /// Counts one message.
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

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.magic + self.version + self.cluster + self.kind + self.length + self.field
    }
}
