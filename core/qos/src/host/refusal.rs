//! Why a host does not admit a reserve.

use alloc::string::String;

use wire::Share;

/// Reserves of a host: one for each data plane, and one for each replica.
pub const MAX_RESERVES: usize = 4_096;

/// Bytes of a path.
pub const MAX_PATH: usize = 256;

/// Ports of a reserve.
pub const MAX_PORTS: usize = 8;

/// The reason, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The path is none.
    #[error(
        "`{0}` is no path of a reserve: two or more parts of letters, digits, `-`, `_` and `.`, with \
         `/` between them, at most {MAX_PATH} bytes"
    )]
    Path(String),
    /// No host could give it.
    #[error(
        "the reserve is impossible: its runtime is above zero and at most its deadline, its deadline \
         at most its period, its memory at most its limit; a rate of packets has 1 to {MAX_PORTS} ports"
    )]
    Impossible,
    /// Too little processor time is left.
    #[error(
        "{asked} of a processor does not fit: {left} is left, and a thread runs on one processor at a \
         time; reserve less, or use another host"
    )]
    Processors {
        /// The share that was asked for.
        asked: Share,
        /// The share of all processors together that is left.
        left: Share,
    },
    /// Too little memory is left.
    #[error(
        "{asked} bytes of memory do not fit: {left} are left; reserve less, or use another host"
    )]
    Memory {
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// A device is too slow.
    #[error(
        "device {device} cannot {way} {asked} bytes a second for it: {left} are left; reserve less, \
         or use another host"
    )]
    Device {
        /// Its number.
        device: String,
        /// `read` or `write`.
        way: &'static str,
        /// Bytes a second that were asked for.
        asked: u64,
        /// Bytes a second that are left.
        left: u64,
    },
    /// A network interface is too slow.
    #[error(
        "network {network} cannot carry {asked} bytes a second for it: {left} are left; reserve less, \
         or use another host"
    )]
    Network {
        /// The interface.
        network: String,
        /// Bytes a second that were asked for.
        asked: u64,
        /// Bytes a second that are left.
        left: u64,
    },
    /// Another reserve has the port.
    #[error("another reserve has the packets of port {0}: a port has one rate")]
    Port(u16),
    /// Too many.
    #[error("the host has {MAX_RESERVES} reserves, the limit: release one")]
    TooMany,
    /// The kernel's own admission refused it.
    #[error(
        "the kernel has no room for it (EBUSY): programs outside Steadfast have reserved time \
         (`chrt -p`); end them, or use another host"
    )]
    Kernel,
}
