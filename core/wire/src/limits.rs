//! The limit of every list, queue and size. Reaching one is an explicit refusal, never growth.

use core::time::Duration;

/// Members of one ring. The token carries one word for each.
pub const MAX_MEMBERS: usize = 64;

/// Networks between the nodes of a ring, each with an address of every node.
pub const MAX_RING_LINKS: usize = 4;

/// Nodes that have gone whose numbers a roster remembers.
pub const MAX_RETIRED: usize = 256;

/// Those among them that are told if they come back.
pub const MAX_TOLD: usize = 16;

/// Bytes of a part of a roster: its datagram fits into the smallest that a node may send.
pub const MAX_ROSTER_PART: usize = 1_200;

/// Parts of the longest roster.
pub const MAX_ROSTER_PARTS: u8 = 8;

/// Components that a node remembers of its history, where each side of a partition goes on: if two
/// sides have parted before, it is not known how much one of them lacks.
pub const MAX_LINEAGE: usize = 64;

/// Bytes that a newer program may add to a message whose form is frozen.
pub const MAX_EXTENSION: usize = 64;

/// The same of a client's first words, which may name a cell.
pub const MAX_HELLO_EXTENSION: usize = 128;

/// Bytes of the name of a program's release.
pub const MAX_RELEASE: usize = 64;

/// Bytes of a datagram between nodes, without IP and UDP headers. Fits a jumbo frame.
pub const MAX_DATAGRAM: usize = 8_900;

/// Bytes of a datagram by default: an Ethernet frame of 1,500 less IPv6 and UDP headers, and a
/// reserve of 52 for the encryption to come.
pub const DEFAULT_DATAGRAM: usize = 1_400;

/// Smallest datagram that a node may be configured to send: the token of a full ring must fit.
pub const MIN_DATAGRAM: usize = 1_400;

/// Bytes of the arguments of a call or of its reply.
pub const MAX_BODY: usize = 1 << 20;

/// Bytes of one ordered message: a body and its headers. Larger ones are refused by the ring.
pub const MAX_MESSAGE: usize = MAX_BODY + 4_096;

/// Bytes of one frame between a client and a node.
pub const MAX_FRAME: usize = MAX_BODY + 4_096;

/// Messages that may wait in a node for the ring. More are refused as busy.
pub const MAX_SEND_QUEUE: usize = 4_096;

/// Bytes that may wait in a node for the ring.
pub const MAX_SEND_QUEUE_BYTES: usize = 64 << 20;

/// Datagrams on the ring that are not yet known to be everywhere: what each node may have to
/// keep for retransmission (flow control's window).
pub const MAX_WINDOW: usize = 1_024;

/// Sequence numbers in the token's or an acknowledgement's list of missing messages.
pub const MAX_RETRANSMIT_REQUESTS: usize = 64;

/// Messages of each sender in a benchmark of the ring.
pub const MAX_BENCH_COUNT: u64 = 100_000_000;

/// How long a benchmark of the ring may last.
pub const MAX_BENCH_SPAN: Duration = Duration::from_secs(600);

/// A sender's messages under way in a benchmark of the ring. Half of [`MAX_SEND_QUEUE`]: the other
/// half is for what the node is there for.
pub const MAX_BENCH_WINDOW: u32 = MAX_SEND_QUEUE as u32 / 2;

/// Bytes of a sender's messages in a benchmark that wait to be sent, where it keeps a pace: if the
/// ring is slower than that, the sender is late, and neither what the node orders besides nor the
/// benchmark's end waits for all that was due.
pub const MAX_BENCH_BACKLOG: u64 = 64 * 1024;

/// A sender's messages in a benchmark of which something is still to be measured: at the limit it
/// sends no more until that has come.
pub const MAX_BENCH_MEASURED: usize = 1 << 16;

/// Other cells whose groups a client calls.
pub const MAX_CELLS: usize = 64;

/// Groups in a cluster.
pub const MAX_GROUPS: usize = 1_024;

/// Replicas of which a node tells what they use: those that use most.
pub const MAX_USAGE_REPLICAS: usize = 256;

/// Facts about the states of its replicas that a node tells to the others.
pub const MAX_NOTES: usize = 64;

/// Nodes with room that a host is told of which refuses calls: those with the most.
pub const MAX_SHEDDING_ROOM: usize = 16;

/// How long a host may refuse calls before it is told so again.
pub const MAX_SHEDDING_TERM: Duration = Duration::from_secs(3_600);

/// Replicas of one group, unless it is one of the system's own:
/// [`most_replicas`](crate::system::most_replicas).
pub const MAX_REPLICAS: usize = 16;

/// Bytes of a group's or cluster's name.
pub const MAX_NAME: usize = 128;

/// Bytes of a state on which a new program is tried before an old one ends. A larger one would take too
/// long, and too much memory: the new program only has to start.
pub const MAX_TRIED_STATE: usize = 64 << 20;

/// Bytes of the text that explains a refusal.
pub const MAX_REASON: usize = 512;

/// Calls of one client that may be under way at a time: replies that a replica keeps for it.
pub const MAX_SESSION_WINDOW: u64 = 64;

/// Calls that one handler may make of other groups.
pub const MAX_NESTED_CALLS: u8 = 255;

/// Groups above a nested call: a client's call may go through so many and one more.
pub const MAX_NESTED_DEPTH: usize = 3;

/// Kept replies of one session. A client's session has at most [`MAX_SESSION_WINDOW`]. A group's
/// handlers make several calls for each call of the client's; replies beyond this limit are
/// refused.
pub const MAX_SESSION_REPLIES: usize =
    MAX_SESSION_WINDOW as usize * (MAX_NESTED_CALLS as usize + 1);

/// Bytes of the ends of nested calls that a replica keeps because its executor is behind. A replica
/// that falls further behind is taken out of its group.
pub const MAX_NESTED_BYTES: usize = 64 << 20;

/// Nested calls that a node's replicas have taken and that have no end yet in the order. More are
/// not answered: their callers wait until their deadlines.
pub const MAX_NESTED_OWED: usize = 65_536;

/// Sessions without keys that a group keeps. At the limit the one unused for longest (in ordered
/// time) goes, or, if a call of it may still be under way, new clients are refused as busy.
pub const MAX_SESSIONS: usize = 65_536;

/// Sessions with keys that a group keeps beside them. At the limit the replies of the one unused for
/// longest go, and it is [remembered](MAX_FORGOTTEN) as forgotten.
pub const MAX_KEYED_SESSIONS: usize = 65_536;

/// Forgotten sessions with keys of which a group remembers their last calls, so that none is
/// executed again. At the limit the oldest goes if it is older than [`KEY_EXPIRY`], else new
/// sessions with keys are refused as busy.
pub const MAX_FORGOTTEN: usize = 4 * MAX_KEYED_SESSIONS;

/// Bytes of kept replies in one group: half for sessions with keys, half for the others, so that
/// neither costs the other a reply. At the limit the oldest go; a retry of their calls is told that
/// it was executed.
pub const MAX_KEPT_BYTES: usize = 256 << 20;

/// The longest deadline that a call may have. Far below [`SESSION_EXPIRY`], so that no retry can
/// come after its session is forgotten and be executed a second time.
pub const MAX_DEADLINE: Duration = Duration::from_secs(60);

/// A node with a replica learns so often that it is in its component with a majority, if it does not
/// learn that by the way: as long before it is cut off, its stale reads are of a later time.
pub const CONFIRM_EVERY: Duration = Duration::from_secs(10);

/// A session without keys that is idle for this long, in ordered time, is forgotten: its client
/// makes no attempt after a call's deadline.
pub const SESSION_EXPIRY: Duration = Duration::from_secs(300);

/// The same of a session with keys, whose client may repeat a call after an outage. Later its calls
/// are refused: it is remembered as forgotten.
pub const KEY_EXPIRY: Duration = Duration::from_secs(24 * 3_600);

/// Client connections of one node.
pub const MAX_CALLERS: usize = 4_096;

/// Groups that clients of one node watch, over all clients. One that wants more is told of newer
/// views with its replies.
pub const MAX_WATCHES: usize = 16 * MAX_CALLERS;

/// TLS handshakes under way at one port of a node. At the limit the oldest of the address that has
/// most of them ends.
pub const MAX_HANDSHAKES: usize = 256;

/// Connections whose handshake is over, and that wait for the data plane. The gate waits with them.
pub const MAX_GUESTS: usize = 64;

/// Requests that a node holds while it waits for a view or an execution.
pub const MAX_WAITING: usize = 8_192;

/// Bytes of one chunk of a state transfer.
pub const STATE_CHUNK: usize = 32 << 10;

/// Bytes from which on a state is fetched by a stream instead of being ordered in chunks. A smaller
/// one is there before a connection would be.
pub const STREAMED_STATE: usize = 256 << 10;

/// Bytes of one piece of a passive group's update.
pub const UPDATE_CHUNK: usize = 256 << 10;

/// Calls in one update of a passive group: no more are executed before those are ordered.
pub const MAX_UPDATE_CALLS: usize = 256;

/// Bytes of one update: the largest state, and the replies to all its calls.
pub const MAX_UPDATE: usize = MAX_STATE + MAX_UPDATE_CALLS * MAX_MESSAGE;

/// Bytes of the updates that a replica keeps while its state, or a snapshot of it, is on the way.
/// At the limit a joiner begins again, and a donor gives its transfer up. One update may wait
/// whatever its size.
pub const MAX_UPDATE_BACKLOG: usize = 256 << 20;

/// Bytes of a state that a group merges with its own: each replica has it in memory, as a call. That of
/// a larger one is given up, and told as discarded.
pub const MAX_MERGE: usize = 64 << 20;

/// States of given up histories that a node keeps until they are merged.
pub const MAX_PARTED: usize = 64;

/// Bytes of them together. Those of a further one are given up, and told as discarded.
pub const MAX_PARTED_BYTES: usize = 256 << 20;

/// Calls that a passive group's primary keeps until it may execute them. More are refused as busy.
pub const MAX_ARRIVALS: usize = MAX_WAITING;

/// Requests since the last checkpoint that a cold passive group may have logged before its
/// primary's node refuses further ones as busy.
pub const MAX_LOG: usize = 16_384;

/// Bytes of their arguments. As [`MAX_LOG`].
pub const MAX_LOG_BYTES: usize = 64 << 20;

/// Requests since the last checkpoint that its replicas log at most: those that were under way when
/// the first was refused may come beyond [`MAX_LOG`]. Later ones are ordered again when there is
/// room.
pub const MAX_LOG_ORDERED: usize = MAX_LOG + MAX_SEND_QUEUE;

/// Bytes of their arguments. As [`MAX_LOG_ORDERED`].
pub const MAX_LOG_ORDERED_BYTES: usize = MAX_LOG_BYTES + MAX_SEND_QUEUE_BYTES;

/// Requests that a replica keeps that did not get all of the last checkpoint, and has to keep those
/// before it.
pub const MAX_LOG_KEPT: usize = 2 * MAX_LOG_ORDERED;

/// Bytes of the ends of calls, each with [`LOGGED_END`], that a log has before no further requests
/// are begun without a checkpoint first. With twice as many its handlers' calls are refused as
/// busy.
pub const MAX_LOG_ENDS_BYTES: usize = 32 << 20;

/// Bytes that an end of a call takes in a log beside its reply.
pub const LOGGED_END: usize = 128;

/// Logged requests that the service of a cold passive group's primary is given at a time.
pub const MAX_LOG_GIVEN: usize = 256;

/// Edits that make one state of another. Where more would be needed the state is sent whole.
pub const MAX_EDITS: usize = 65_536;

/// Bytes of one replica's state, with its sessions.
pub const MAX_STATE: usize = 2 << 30;

/// Bytes of what a replica of a cold passive group keeps: a checkpoint, and the log.
pub const MAX_LOGGED_STATE: usize = MAX_STATE + 2 * MAX_LOG_ORDERED_BYTES + 4 * MAX_LOG_ENDS_BYTES;
/// Bytes of a snapshot in a node's store: the largest state, and the style in which it was taken.
pub const MAX_SNAPSHOT: usize = MAX_LOGGED_STATE + 1;

/// Ordered messages that a joining replica keeps while its state is on the way. Half of what an
/// executor may be given at once ([`MAX_COMMANDS`]): it is given all of them when the state is
/// there.
pub const MAX_JOIN_BACKLOG: usize = MAX_COMMANDS / 2;

/// Addresses that a client may be given to start from.
pub const MAX_ADDRESSES: usize = 64;

/// Connections of one client. More nodes than a cluster has are never needed at a time.
pub const MAX_LINKS: usize = 128;

/// Calls of one client that wait for a place in their group's window, or for the group to be found.
pub const MAX_QUEUED_CALLS: usize = 1_024;

/// Bytes of the arguments of one client's calls, waiting and under way.
pub const MAX_CALL_BYTES: usize = 64 << 20;

/// Bytes that a client keeps for a node that does not read them. At the limit the node counts
/// as lost.
pub const MAX_LINK_BACKLOG: usize = 128 << 20;

/// Events that a client keeps until they are taken. Older ones go first, and are counted.
pub const MAX_CLIENT_EVENTS: usize = 1_024;

/// Bytes that a node keeps for a client that does not read them. At the limit the connection is
/// closed; the client's retry finds its replies kept.
pub const MAX_CALLER_BACKLOG: usize = 16 << 20;

/// Bytes that all of a node's client connections together may have in its buffers, in both
/// directions. At the limit the connection that holds most is closed.
pub const MAX_CALLERS_BYTES: usize = 512 << 20;

/// Commands that wait for a replica's executor. A replica that falls this far behind is taken out
/// of its group: it could never be primary in time.
pub const MAX_COMMANDS: usize = 65_536;

/// Bytes of the requests that wait for a replica's executor. As [`MAX_COMMANDS`].
pub const MAX_COMMAND_BYTES: usize = 256 << 20;

/// Moves of primaries that a node was asked for and that are not over.
pub const MAX_MOVES: usize = 64;

/// Changes of style that a node was asked for and that are not over.
pub const MAX_RESTYLES: usize = 64;

/// Saves of groups' states that a node was asked for and that are not over.
pub const MAX_SAVES: usize = 16;

/// States that a node was asked to restore and that no replica has taken yet.
pub const MAX_DEPOSITS: usize = 64;

/// Bytes of all of them. One has its place whatever its size.
pub const MAX_DEPOSITS_BYTES: usize = MAX_LOGGED_STATE;

/// Bytes of a saved state's file beside the state.
pub const MAX_BACKUP_HEAD: usize = 4_096;

/// Bytes of a saved state's file.
pub const MAX_BACKUP: usize = MAX_BACKUP_HEAD + MAX_LOGGED_STATE;

/// Calls that one replica of a stateless group is given at a time. Further ones are refused as
/// busy, those of less urgent [lanes](crate::Lane::room) first.
pub const MAX_SERVING: usize = 4_096;

/// Bytes of their arguments. As [`MAX_SERVING`].
pub const MAX_SERVING_BYTES: usize = MAX_COMMAND_BYTES / 4;

/// Messages since the last state that a node keeps for a program that may die, and their bytes:
/// beyond that it keeps nothing until there is another state.
pub const MAX_JOURNAL: usize = 65_536;
/// As [`MAX_JOURNAL`].
pub const MAX_JOURNAL_BYTES: usize = 128 << 20;

/// Poisonous calls of a group that are kept for people: the oldest is forgotten first.
pub const MAX_POISONED: usize = 64;
/// Calls that nobody executes, of those that a replica may be given once more by its log.
pub const MAX_CONDEMNED: usize = 4_096;

/// Bytes of a poisonous call's arguments that are kept for people.
pub const MAX_POISON_BYTES: usize = 64 << 10;
/// Services that died of one call, as they are named: a call is tried again while it is not certain
/// that two did.
pub const MAX_DEATHS: usize = 16;

/// Votes in one message of a voting group's replica.
pub const MAX_BALLOT: usize = 1_024;

/// Outcomes and asks that a voting group's replica may vote on beyond the last one that is settled;
/// further votes wait. A replica whose votes are so far behind the settled ones is taken out.
pub const MAX_UNSETTLED: u64 = 16_384;

/// Requests of a program to its own node that wait for the data plane.
pub const MAX_ORDERS: usize = 64;

/// Events that wait for one subscriber. More are dropped, and counted.
pub const MAX_EVENTS: usize = 8_192;

/// Past events that a node keeps for later subscribers.
pub const MAX_EVENT_HISTORY: usize = 512;

/// Subscribers to a node's events.
pub const MAX_SUBSCRIBERS: usize = 16;

/// Connections at a node's admin socket.
pub const MAX_ADMIN_CONNECTIONS: usize = 16;

/// Bytes of one request at the admin socket: one that has a program run carries its arguments and
/// its environment, and one of a cell as many exports as a report has.
pub const MAX_ADMIN_REQUEST: usize = 256 << 10;

/// Programs that a node runs.
pub const MAX_PROGRAMS: usize = 64;

/// Threads of hung services that a node leaves behind: they cannot be ended, and more replicas than
/// these are not hosted anew.
pub const MAX_STUCK: usize = 8;

/// Bytes of one piece of a state between a node and a program.
pub const ATTACH_PIECE: usize = 256 << 10;

/// Connections at the programs' socket that have not shown a token yet. At the limit the oldest
/// ends.
pub const MAX_VISITORS: usize = 16;

/// Bytes of one line of a program's output in the node's log. Longer lines are cut into several.
pub const MAX_LINE: usize = 2_048;

/// Last lines of a program's output that are kept to explain its end.
pub const MAX_LAST_LINES: usize = 20;

/// Lines of a program's output that the node's log takes at once, and each second after that.
/// Further lines are dropped, and counted.
pub const MAX_LINES_A_SECOND: u32 = 500;

/// Lines of the node's log that wait for a reader. Further lines are dropped, and counted.
pub const MAX_LOG_LINES: usize = 8_192;

/// Bytes of one record of the store's log: an ordered message.
pub const MAX_RECORD: usize = MAX_MESSAGE;

/// Bytes of the records that one write to the store's log carries, heads included.
pub const MAX_BATCH: usize = 4 << 20;

/// Records that wait for the store's disk. More are refused as busy.
pub const MAX_STORE_QUEUE: usize = 65_536;

/// Bytes of the records that wait for the store's disk.
pub const MAX_STORE_QUEUE_BYTES: usize = 64 << 20;

/// Bytes of one segment of the store's log. Recovery reads one at a time into memory; the keepers
/// of recovered records have copies of those alone.
pub const MAX_SEGMENT: u64 = 64 << 20;

/// Segments of the store's log. At the limit appends are refused until snapshots free the oldest.
pub const MAX_SEGMENTS: usize = 4_096;

/// Snapshots that wait for the store's disk. More are refused as busy.
pub const MAX_SNAPSHOTS_WAITING: usize = 16;

/// Strands of the store's log that have a snapshot, or were forgotten and still have records.
pub const MAX_STRANDS: usize = 2 * MAX_GROUPS;

/// Bytes of the store's manifest.
pub const MAX_MANIFEST: usize = 256 << 10;

/// Files in the store's folder. More are not ours.
pub const MAX_STORE_FILES: usize = 16_384;

/// Deployments that the manager keeps.
pub const MAX_DEPLOYMENTS: usize = 256;

/// Bytes of one command to the manager: a deployment carries its program's arguments and
/// environment.
pub const MAX_COMMAND: usize = 32 << 10;

/// Labels of a node, and labels that a deployment demands.
pub const MAX_LABELS: usize = 16;

/// Disks of a reservation.
pub const MAX_DISKS: usize = 8;

/// Bytes of a label's name, and of its value.
pub const MAX_LABEL: usize = 64;

/// Bindings that the registry keeps: a list of all, at most some 300 bytes each, fits an answer.
pub const MAX_BINDINGS: usize = 2_048;

/// Bytes of an address in the registry.
pub const MAX_ADDRESS: usize = 128;

/// Ended bindings whose end the registry knows. The registry knows only the last end of the oldest
/// ones beyond this limit.
pub const MAX_FENCES: usize = 2_048;

/// Links that a process accepts from other cells. Each has four connections.
pub const MAX_LINKS_ACCEPTED: usize = 64;

/// Links that a process dials at a time.
pub const MAX_LINKS_DIALLED: usize = 256;

/// Bytes of a message on a link: the largest call, and what a layer above says about it.
pub const MAX_LINK_MESSAGE: usize = MAX_BODY + (64 << 10);

/// Bytes of one class of a link that wait to be sent. A message beyond is refused as full.
pub const MAX_CLASS_BACKLOG: usize = 4 << 20;

/// Connections that may become links: they shake hands, or wait for the others of their link. Twice
/// those of all links, so that all can come back at once.
pub const MAX_LINK_VISITORS: usize = 8 * MAX_LINKS_ACCEPTED;
