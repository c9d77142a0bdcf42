//! `[ring]`: the timers, and how much is under way.

use ring::{LinkTiming, Timing};
use serde::{Deserialize, Serialize};
use wire::{ClusterId, Duration, Incarnation, Member, NodeId};

use crate::error::Problem;

/// States each knob of the ring once. A timer has the key in the file and the field that it sets;
/// another knob has the field of [`ring::Config`], which is the key too.
macro_rules! knobs {
    (
        timers {
            $(
                $(#[$timers_doc:meta])*
                $timers:ident: $type:ident { $($timer:ident = $field:ident,)* }
            )*
        }
        others { $($(#[$doc:meta])* $knob:ident: $value:ty,)* }
    ) => {
        /// The ring's knobs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct RingKnobs {
            $($(#[$timers_doc])* pub $timers: $type,)*
            $($(#[$doc])* pub $knob: $value,)*
        }

        impl Default for RingKnobs {
            fn default() -> Self {
                // The ring owns its defaults; who and where do not matter to them.
                let me = Member { node: NodeId(1), incarnation: Incarnation(0) };
                let ring = ring::Config::new(ClusterId::of(""), me, vec![me.node]);
                RingKnobs { $($timers: Default::default(),)* $($knob: ring.$knob,)* }
            }
        }

        impl RingKnobs {
            /// Gives the ring its knobs.
            pub(crate) fn apply(&self, ring: &mut ring::Config) {
                ring.timing = self.timing;
                $(ring.$knob = self.$knob;)*
            }
        }

        /// As it stands in a file.
        #[derive(Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct Table {
            $($($timer: f64,)*)*
            $($knob: $value,)*
        }

        /// The timers' keys.
        pub(crate) const TIMERS: &[&str] = &[$($(stringify!($timer),)*)*];

        impl From<RingKnobs> for Table {
            fn from(knobs: RingKnobs) -> Self {
                let ms = |span: Duration| span.as_secs_f64() * 1e3;
                Table {
                    $($($timer: ms(knobs.$timers.$field),)*)*
                    $($knob: knobs.$knob,)*
                }
            }
        }

        impl TryFrom<&Table> for RingKnobs {
            type Error = Problem;

            fn try_from(table: &Table) -> Result<Self, Problem> {
                Ok(RingKnobs {
                    $($timers: $type {
                        $($field: span(stringify!($timer), table.$timer)?,)*
                    },)*
                    $($knob: table.$knob,)*
                })
            }
        }
    };
}

knobs! {
    timers {
        /// The timers.
        timing: Timing {
            token_timeout_ms = token_timeout,
            token_timeout_max_ms = token_timeout_max,
            heartbeat_ms = heartbeat,
            heartbeat_max_ms = heartbeat_max,
            token_retransmit_ms = token_retransmit,
            ack_wait_ms = ack_wait,
            want_retry_ms = want_retry,
            join_interval_ms = join_interval,
            suspect_wait_ms = suspect_wait,
            consensus_timeout_ms = consensus_timeout,
            beacon_interval_ms = beacon_interval,
            hold_off_max_ms = hold_off_max,
            slow_limit_ms = slow_limit,
        }
        /// The timers of links, where nodes have several.
        links: LinkTiming {
            link_probe_ms = probe,
            link_timeout_ms = timeout,
        }
    }
    others {
        /// Bytes of the largest datagram to send.
        datagram: usize,
        /// Datagrams that may be on the ring and not yet everywhere.
        window: usize,
        /// Datagrams that a holder may send in one turn while others want the token.
        turn: usize,
        /// Those of `turn` that may leave after the token.
        accelerated: usize,
        /// Percent of the time for which a member may hold up the others' sending for ever.
        slow_share: u32,
        /// An idle token rests.
        parking: bool,
    }
}

impl Default for Table {
    fn default() -> Self {
        RingKnobs::default().into()
    }
}

impl RingKnobs {
    /// Bytes that the kernel must be able to keep of what one peer sends while this node does not
    /// read: at most a full window, of which it charges up to twice each datagram's size. Each peer
    /// has a socket of its own, so senders do not share it.
    pub fn receive_room(&self) -> usize {
        2 * self.window * self.datagram
    }
}

fn span(key: &'static str, millis: f64) -> Result<Duration, Problem> {
    if (0.01..=60_000.0).contains(&millis) {
        Ok(Duration::from_nanos((millis * 1e6).round() as u64))
    } else {
        Err(Problem::Millis { key, millis })
    }
}
