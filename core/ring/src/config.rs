//! The knobs of the ring, each with its formula.

use alloc::vec::Vec;

use wire::limits::{DEFAULT_DATAGRAM, MAX_DATAGRAM, MAX_MEMBERS, MAX_WINDOW, MIN_DATAGRAM};
use wire::{ClusterId, Duration, Incarnation, Member, NodeId, Speaks};

use crate::bug::Planted;

/// The largest sequence of a ring that is believed. A node that claims a larger one would take
/// the numbers for new rings away from all others.
pub(crate) const MAX_RING_SEQUENCE: u64 = u64::MAX / 2;

/// The rarest that an idle ring may show itself, whatever a datagram says.
pub(crate) const MAX_HEARTBEAT: Duration = Duration::from_secs(1);

/// This node, the nodes that it may meet, and its knobs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster: datagrams of another one are malformed.
    pub cluster: ClusterId,
    /// This node, in this life.
    pub me: Member,
    /// Every node that may be in the ring, this one included, in order of id.
    pub nodes: Vec<NodeId>,
    /// The timers.
    pub timing: Timing,
    /// Bytes of the largest datagram to send.
    pub datagram: usize,
    /// Datagrams that may be on the ring and not yet everywhere. Buffers are bounded by it.
    pub window: usize,
    /// Datagrams that a holder may send in one turn while others want the token.
    pub turn: usize,
    /// The part of them that may leave after the token when it goes on at once; 0 for none. The
    /// next member's turn then begins while this one's datagrams still travel (the accelerated
    /// ring). As many as leave while the token travels: its delay divided by the time that a
    /// datagram takes to be sent. The same at all nodes: it also determines how late a datagram may
    /// come before it is missed.
    pub accelerated: usize,
    /// Percent of the time for which a member may hold up the others' sending for ever; beyond it,
    /// for
    /// [`Timing::slow_limit`] at most. With 50 a ring is at least half as quick as it would be
    /// without its slowest member. 100: nobody is excluded for being slow.
    pub slow_share: u32,
    /// An idle token rests with the last sender. Off: it circulates always, as in the paper.
    pub parking: bool,
    /// The versions that this node speaks, and the rules in force that its disk knows of.
    pub speaks: Speaks,
    /// Seed of the jitter of timers.
    pub seed: u64,
    /// A mistake to make, so that a simulation can prove that it would find it.
    pub planted: Planted,
}

impl Config {
    /// Default knobs for `me` among `nodes`.
    pub fn new(cluster: ClusterId, me: Member, nodes: Vec<NodeId>) -> Self {
        Config {
            cluster,
            me,
            nodes,
            timing: Timing::default(),
            datagram: DEFAULT_DATAGRAM,
            window: 256,
            turn: 64,
            accelerated: 16,
            slow_share: 50,
            parking: true,
            speaks: Speaks::ALL,
            seed: me.incarnation.0 ^ u64::from(me.node.0),
            planted: Planted::default(),
        }
    }

    /// Checks the knobs. An error has the remedy.
    ///
    /// # Errors
    /// The first knob that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.me.incarnation.0 > MAX_RING_SEQUENCE / 2 {
            return Err(ConfigError::Incarnation(self.me.incarnation));
        }
        if !self.nodes.contains(&self.me.node) {
            return Err(ConfigError::MeMissing(self.me.node));
        }
        if !self.nodes.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(ConfigError::Order);
        }
        if self.nodes.len() > MAX_MEMBERS {
            return Err(ConfigError::TooManyNodes(self.nodes.len()));
        }
        if !(MIN_DATAGRAM..=MAX_DATAGRAM).contains(&self.datagram) {
            return Err(ConfigError::Datagram(self.datagram));
        }
        if !(1..=MAX_WINDOW).contains(&self.window) {
            return Err(ConfigError::Window(self.window));
        }
        if !(1..=self.window).contains(&self.turn) {
            return Err(ConfigError::Turn(self.turn));
        }
        if self.accelerated > MAX_WINDOW {
            return Err(ConfigError::Accelerated(self.accelerated));
        }
        if !(1..=100).contains(&self.slow_share) {
            return Err(ConfigError::SlowShare(self.slow_share));
        }
        self.timing.check()
    }

    /// The longest time that one of so many `members` waits for the token, if the others have more
    /// to send than they can and no message is lost:
    /// `D + window * t + (members - 1) * (D + turn * t + ack_wait)`, where `D` is the longest
    /// one-way `delay` and `t` the time that a `datagram` takes to leave for all. A Want that is
    /// lost, or overtaken by an older datagram of its sender, adds `want_retry`. See
    /// docs/protocol/ring.md, "Longest wait for the token".
    pub fn longest_wait(&self, members: usize, delay: Duration, datagram: Duration) -> Duration {
        let visit = delay + datagram * self.turn as u32 + self.timing.ack_wait;
        delay + datagram * self.window as u32 + visit * (members.saturating_sub(1) as u32)
    }

    /// How many datagrams of a turn may leave after the token.
    pub(crate) fn overlap(&self) -> usize {
        self.accelerated.min(self.turn)
    }
}

/// A knob that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The sequences of rings start at the incarnation, and need room to grow.
    #[error("incarnation {0} is too large: it must be at most a quarter of 2^64")]
    Incarnation(Incarnation),
    /// The node is not in its own list.
    #[error("node {0} is not in the list of nodes: add it there, or correct its id")]
    MeMissing(NodeId),
    /// The list is not in order, or names a node twice.
    #[error("the list of nodes must be in order of id and name each once")]
    Order,
    /// More nodes than a ring can have.
    #[error("{0} nodes, a ring has at most {MAX_MEMBERS}: split the cluster")]
    TooManyNodes(usize),
    /// Datagram size out of range.
    #[error("datagram = {0} is not within {MIN_DATAGRAM} to {MAX_DATAGRAM} bytes")]
    Datagram(usize),
    /// Window out of range.
    #[error("window = {0} is not within 1 to {MAX_WINDOW} datagrams")]
    Window(usize),
    /// Turn out of range.
    #[error("turn = {0} is not within 1 and the window")]
    Turn(usize),
    /// Datagrams after the token out of range.
    #[error("accelerated = {0} is more than {MAX_WINDOW} datagrams")]
    Accelerated(usize),
    /// Share of the slow out of range.
    #[error("slow_share = {0} is not within 1 to 100 percent")]
    SlowShare(u32),
    /// Timers that contradict each other.
    #[error("{0}")]
    Timing(&'static str),
}

/// The timers of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The shortest time for which a member may leave the token unanswered, or a resting token's
    /// heartbeat may fail to come, before the ring is given up. The time-out follows what is
    /// measured: `max(mean + 4 * deviation, 2 * longest)` of the waits of the last seconds, from
    /// this to `token_timeout_max`. Must exceed the longest time that a healthy node is often held
    /// up for: a shorter one gives false suspicions.
    pub token_timeout: Duration,
    /// The longest that the time-out grows to where hosts are held up. Not above `token_timeout`:
    /// the time-out is fixed.
    pub token_timeout_max: Duration,
    /// A resting token shows itself after this long, so that its loss is seen. At most
    /// `token_timeout`.
    pub heartbeat: Duration,
    /// While a ring stays idle the interval doubles, from `heartbeat` up to this. A silent host of
    /// an idle ring is found so much later, and each node wakes up `1 / heartbeat_max` times a
    /// second, the token's holder twice as often. At most a second. Not above `heartbeat`: the
    /// interval is fixed.
    pub heartbeat_max: Duration,
    /// A token that shows no sign of arrival is sent again after this long. At most a quarter of
    /// `token_timeout`.
    pub token_retransmit: Duration,
    /// A holder that still misses acknowledgements after this long sends the token round. Some
    /// round trips.
    pub ack_wait: Duration,
    /// A node that wants the token asks again after this long, then after twice as long each time,
    /// at most `heartbeat`. Some round trips.
    pub want_retry: Duration,
    /// While a membership is gathered, the proposal is repeated this often.
    pub join_interval: Duration,
    /// A member that did not answer the token, and does not answer the proposal for this long
    /// either while others do, is left out. From `join_interval` to `consensus_timeout`.
    pub suspect_wait: Duration,
    /// A node that has not agreed to the proposed membership for this long is left out.
    /// Several times `join_interval`.
    pub consensus_timeout: Duration,
    /// How often a ring's representative shows itself to nodes outside.
    pub beacon_interval: Duration,
    /// A member that is lost again and again is held off for `beacon_interval * 2^(times - 1)`,
    /// and at most for this long. Zero: it is always taken back at once.
    pub hold_off_max: Duration,
    /// A member that keeps up worse than a majority may keep a sender waiting for this long beyond
    /// its share of the time ([`Config::slow_share`]); then it is excluded, and held off for twice
    /// that, doubling. If it is less than `token_timeout_max` it is that: who is silent is to be
    /// found by its silence.
    pub slow_limit: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            token_timeout: Duration::from_millis(50),
            token_timeout_max: Duration::from_millis(200),
            heartbeat: Duration::from_millis(20),
            heartbeat_max: Duration::from_millis(200),
            token_retransmit: Duration::from_millis(3),
            ack_wait: Duration::from_millis(2),
            want_retry: Duration::from_millis(2),
            join_interval: Duration::from_millis(5),
            suspect_wait: Duration::from_millis(10),
            consensus_timeout: Duration::from_millis(50),
            beacon_interval: Duration::from_millis(100),
            hold_off_max: Duration::from_secs(10),
            slow_limit: Duration::from_millis(500),
        }
    }
}

impl Timing {
    /// The longest that a silent host stays in a ring of so many `members`, from its last datagram
    /// to the next ring at all the others, in a network that is otherwise good: `heartbeat +
    /// ack_wait + 2 n d + T + W + 10 d`, where `d` is the longest one-way `delay`, `T` the
    /// `time_out` in force (`token_timeout`, or up to `token_timeout_max` where longer waits have
    /// been measured), and `W` is `suspect_wait * T / token_timeout`. See docs/protocol/ring.md,
    /// "Failure detection".
    pub fn silent_host(&self, members: usize, delay: Duration, time_out: Duration) -> Duration {
        // Until the token is due at it, and has come there; until it is missed; until all agree.
        let visit = self.heartbeat + self.ack_wait + delay * 2 * members as u32;
        visit + time_out + self.in_proportion(self.suspect_wait, time_out) + delay * 10
    }

    /// The wait for others while a ring is formed, where this time-out is in force. Hosts whose
    /// signs of life come late are as late with their answers to proposals.
    pub(crate) fn in_proportion(&self, wait: Duration, time_out: Duration) -> Duration {
        wait.mul_f64(time_out.as_secs_f64() / self.token_timeout.as_secs_f64())
    }

    /// The same in a ring that is idle, whose signs of life come more rarely: `heartbeat_max +
    /// ack_wait * (1 + n/8) + 2 n d + T + W + 10 d`, with the same letters. As soon as anything is
    /// sent, [`silent_host`](Timing::silent_host) holds from then on.
    pub fn silent_host_when_idle(
        &self,
        members: usize,
        delay: Duration,
        time_out: Duration,
    ) -> Duration {
        // Until the next pulse, and until it should be back.
        let pulse = self.rarest_heartbeat() + self.back_within(members);
        pulse + self.silent_host(members, delay, time_out) - self.heartbeat - self.ack_wait
    }

    /// How long a pulse may take to be back: some round trips, and an eighth of that for each
    /// member that hands it on; and never so long that the round after it would be missed.
    pub(crate) fn back_within(&self, members: usize) -> Duration {
        (self.ack_wait + self.ack_wait * members as u32 / 8).min(self.heartbeat / 2)
    }

    /// How often a node changes its membership at most in a time `span` in which one link fails and
    /// works by turns: `2 * (2 + d + span / hold_off_max)`, where `d` is how often
    /// `beacon_interval` doubles until it is `hold_off_max`. Two for each time that somebody is
    /// lost and comes back; the first time it may do so at once. See
    /// docs/protocol/ring-evidence.md, "Bounds and their checkers".
    pub fn flapping(&self, span: Duration) -> usize {
        if self.hold_off_max.is_zero() {
            return usize::MAX; // Nobody is held off.
        }
        let doubled = |times: &u32| self.beacon_interval * (1 << times) >= self.hold_off_max;
        let doublings = (0..16).find(doubled).unwrap_or(16) as usize;
        2 * (2 + doublings + span.as_nanos().div_ceil(self.hold_off_max.as_nanos()) as usize)
    }

    /// The longest that the token's time-out may be.
    pub(crate) fn ceiling(&self) -> Duration {
        self.token_timeout_max.max(self.token_timeout)
    }

    /// How long a member may keep a sender waiting beyond its share.
    pub fn longest_stall(&self) -> Duration {
        self.slow_limit.max(self.ceiling())
    }

    /// The longest that an idle ring may show nothing.
    pub(crate) fn rarest_heartbeat(&self) -> Duration {
        self.heartbeat_max.max(self.heartbeat)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let rules = [
            (!self.ack_wait.is_zero(), "ack_wait must be longer than zero"),
            (!self.want_retry.is_zero(), "want_retry must be longer than zero"),
            (!self.join_interval.is_zero(), "join_interval must be longer than zero"),
            (!self.beacon_interval.is_zero(), "beacon_interval must be longer than zero"),
            (!self.heartbeat.is_zero(), "heartbeat must be longer than zero"),
            (!self.token_retransmit.is_zero(), "token_retransmit must be longer than zero"),
            (self.heartbeat <= self.token_timeout, "heartbeat must be at most token_timeout"),
            (self.rarest_heartbeat() <= MAX_HEARTBEAT, "heartbeat_max must be at most a second"),
            (
                self.token_retransmit * 4 <= self.token_timeout,
                "token_retransmit must be at most a quarter of token_timeout",
            ),
            (
                self.join_interval * 3 <= self.consensus_timeout,
                "join_interval must be at most a third of consensus_timeout",
            ),
            (
                (self.join_interval..=self.consensus_timeout).contains(&self.suspect_wait),
                "suspect_wait must be from join_interval to consensus_timeout",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(ConfigError::Timing(rule)),
            None => Ok(()),
        }
    }
}
