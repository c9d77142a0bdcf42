//! How links use QUIC.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{ClientConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt, crypto};

/// Bytes of a class on their way: a message of the largest size, so that a window of it takes no
/// more than one round trip.
pub(super) const WINDOW: u32 = 1280 << 10;

/// The same before there is a link: a greeting, or the answer and some first messages. So visitors
/// bind little memory.
const FIRST_WINDOW: u32 = 16 << 10;

/// A peer that says nothing for so long is gone. Those who use links find out sooner: see the pulse
/// in docs/protocol/cells.md.
const IDLE: VarInt = VarInt::from_u32(30_000);

/// An idle connection says so often that it lives, in time for a second try. A link has four, three
/// of which are idle as a rule.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Between hosts of a site and of neighbouring ones; the default is for the whole Internet. A first
/// datagram that is lost is sent again after three times this.
const FIRST_GUESS: Duration = Duration::from_millis(50);

/// Bytes that datagrams may bring before their connection is accepted: all are at once.
const MAX_EARLY: u64 = 64 << 10;

/// For those who come.
pub(crate) fn server(crypto: Arc<dyn crypto::ServerConfig>) -> Arc<ServerConfig> {
    let mut config = ServerConfig::with_crypto(crypto);
    config
        .transport_config(Arc::new(transport(1)))
        // Links are between hosts that stay where they are.
        .migration(false)
        .incoming_buffer_size(MAX_EARLY)
        .incoming_buffer_size_total(16 * MAX_EARLY);
    Arc::new(config)
}

/// For those who are dialled.
pub(crate) fn client(crypto: Arc<dyn crypto::ClientConfig>) -> ClientConfig {
    let mut config = ClientConfig::new(crypto);
    config.transport_config(Arc::new(transport(0)));
    config
}

/// The dialler opens the one stream.
fn transport(streams: u32) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_idle_timeout(Some(IdleTimeout::from(IDLE)))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(FIRST_WINDOW))
        .send_window(u64::from(WINDOW))
        .initial_rtt(FIRST_GUESS)
        // Without a ban on fragments, probes would find sizes that are none.
        .mtu_discovery_config(None)
        .datagram_receive_buffer_size(None);
    config
}
