//! How many gateways there are, and how callers use them.

use wire::Duration;

/// The draws of a seed's gateways.
#[derive(Clone, Copy, Debug)]
pub struct GatewayPlan {
    /// Gateways of each caller.
    pub each: usize,
    /// One gateway in so many is beside its caller, the others at nodes. 0: all are at nodes.
    pub beside: u64,
    /// A caller waits so long for an attempt at first, then twice as long.
    pub patience: Duration,
    /// One attempt in so many is cancelled when its caller goes on. 0: none.
    pub cancels: u64,
    /// One call in so many is given up long before its deadline. 0: none.
    pub leaves: u64,
    /// One attempt in so many is long on its way to the gateway. 0: none.
    pub delays: u64,
    /// One time in so many a caller uses a key for another call, or once more. 0: never.
    pub strays: u64,
    /// More than a day passes at once.
    pub leaps: bool,
}
