//! How a client is made that is to do more than plain frames.

use std::net::SocketAddr;

use crate::buffers::draw;
use crate::secure::Tls;
use crate::{Config, ConnectError, Hedging};

/// What a client is to be like, before it connects.
///
/// ```no_run
/// # #[cfg(all(feature = "net", feature = "tls"))]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use steadfast_client::{Client, Tls};
///
/// let tls = Tls::from_dir("/etc/plant/client-hmi")?;
/// let client = Client::builder().tls(tls).connect(["192.0.2.1:7100", "192.0.2.2:7100"])?;
/// # drop(client);
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "net", feature = "tls")))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub(crate) tls: Option<Tls>,
    pub(crate) hedging: Hedging,
    pub(crate) spread_reads: bool,
    pub(crate) deputies: bool,
}

impl Builder {
    /// Talks TLS with the nodes, and shows them this certificate.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(self, tls: tls::Client) -> Builder {
        Builder { tls: Some(tls), ..self }
    }

    /// When calls to groups of the active style go to a second replica as well.
    #[must_use]
    pub fn hedging(self, hedging: Hedging) -> Builder {
        Builder { hedging, ..self }
    }

    /// Calls that change nothing go to all replicas in turn, so that these share the work. Without it they go where other calls
    /// go, to the first in rank, with whom this client has a connection in any case.
    #[must_use]
    pub fn spread_reads(self) -> Builder {
        Builder { spread_reads: true, ..self }
    }

    /// Whether the second target of a semi-active group of three may answer a call in the primary's place: it has the answer a message
    /// earlier. By default it does not, and all answers come from whoever was asked: where processors are shared the message saved gains
    /// nothing, and with many clients the second connection's wake-ups cost a tenth of the calls a second (decision 0041). Measure both.
    #[must_use]
    pub fn deputies(self, deputies: bool) -> Builder {
        Builder { deputies, ..self }
    }

    /// What a session begins with.
    pub(crate) fn config(&self, addresses: Vec<SocketAddr>) -> Result<Config, ConnectError> {
        let Builder { hedging, spread_reads, deputies, .. } = self;
        let (hedging, spread_reads, deputies) = (*hedging, *spread_reads, *deputies);
        Ok(Config { hedging, spread_reads, deputies, ..draw(addresses)? })
    }

    /// Connects to the first of these addresses that answers. One node's is enough; with several,
    /// the client can also start while a node is down.
    ///
    /// # Errors
    /// If none answers: what each did.
    #[cfg(feature = "net")]
    pub fn connect<A: std::net::ToSocketAddrs>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<crate::Client, ConnectError> {
        crate::Client::connect_by(addresses, self)
    }

    /// As [`connect`](Builder::connect), for an asynchronous client.
    ///
    /// # Errors
    /// If none answers: what each did. If this is not within a tokio runtime.
    #[cfg(feature = "tokio")]
    pub async fn connect_async<A: tokio::net::ToSocketAddrs>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<crate::AsyncClient, ConnectError> {
        crate::AsyncClient::connect_by(addresses, self).await
    }
}
