//! The side that is connected to.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, CommonState, Error, HandshakeKind, ServerConfig, ServerConnection};

use crate::credentials::{Credentials, CredentialsError};
use crate::denied::{Denied, Peer};
use crate::explain::{BEYOND, is_beyond};
use crate::name::{Identity, Role};
use crate::reach::Reach;
use crate::records::Records;
use crate::{Port, provider};

/// A node's part of TLS. Clones share it, and get its renewals.
#[derive(Clone, Debug)]
pub struct Server {
    present: Arc<RwLock<Present>>,
    identity: Identity,
    port: Port,
    reach: Reach,
}

/// The things that a renewal replaces.
#[derive(Clone, Debug)]
struct Present {
    config: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
    denied: Arc<Denied>,
}

/// The decision on a new connection, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visitor {
    /// It may come in.
    Welcome(Identity),
    /// It may not; the text says why and what to do.
    Refused(String),
}

impl Server {
    /// From what one side shows and checks.
    ///
    /// # Errors
    /// The certificate is of no use: not by the authority, expired, or not with this key.
    pub fn new(credentials: &Credentials, port: Port) -> Result<Server, CredentialsError> {
        Server::reaching(credentials, port, Reach::Cluster)
    }

    /// As [`new`](Server::new), for others within this reach.
    ///
    /// # Errors
    /// As there, or its own is no cell's and others are asked for.
    pub fn reaching(
        credentials: &Credentials,
        port: Port,
        reach: Reach,
    ) -> Result<Server, CredentialsError> {
        reach.check(&credentials.identity)?;
        let unusable =
            |error: &dyn std::fmt::Display| CredentialsError::Unusable(error.to_string());
        let authorities = credentials.authorities.clone();
        let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider())
            .build()
            .map_err(|error| unusable(&error))?;
        let identity = credentials.identity.clone();
        // Every client would meet this error: report it at the start.
        check(&*verifier, &credentials.chain, UnixTime::now()).map_err(|error| {
            CredentialsError::Unusable(format!("{identity}: {}", own_fault(&error)))
        })?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(&error))?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(credentials.chain.clone(), credentials.key.clone_key())
            .map_err(|error| unusable(&error))?;
        // Sealed with a key that this process draws and changes every six hours: nothing is kept
        // here.
        config.ticketer = Ticketer::new().map_err(|error| unusable(&error))?;
        if port == Port::Cell {
            // Links live long: a ticket would spare little, and outlive a certificate.
            config.send_tls13_tickets = 0;
        }
        config.alpn_protocols = port.protocols();
        let denied = Arc::default();
        let present = Present { config: Arc::new(config), verifier, denied };
        Ok(Server { present: Arc::new(RwLock::new(present)), identity, port, reach })
    }

    /// New connections show and check what `other` does; those that are there go on.
    pub fn renew(&self, other: &Server) {
        let denied = self.present().denied;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) =
            Present { denied, ..other.present() };
    }

    /// The cluster of its certificate.
    pub fn cluster(&self) -> &str {
        &self.identity.cluster
    }

    /// Whether the other side's certificate is in the list.
    pub fn denies(&self, records: &Records) -> bool {
        records.peer().is_some_and(|peer| self.denies_peer(&peer))
    }

    /// Whether this certificate is in the list.
    pub fn denies_peer(&self, peer: &Peer) -> bool {
        self.present().denied.denies(peer)
    }

    /// Certificates of this list are not accepted from now on.
    pub fn deny(&self, denied: Arc<Denied>) {
        self.present.write().unwrap_or_else(PoisonError::into_inner).denied = denied;
    }

    /// The list of certificates that are not accepted.
    pub fn denied(&self) -> Arc<Denied> {
        self.present().denied
    }

    fn present(&self) -> Present {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a certificate that is good now will have expired after this time.
    pub fn expires_within(credentials: &Credentials, span: Duration) -> bool {
        let then = UnixTime::since_unix_epoch(
            Duration::from_secs(UnixTime::now().as_secs()).saturating_add(span),
        );
        let authorities = credentials.authorities.clone();
        WebPkiClientVerifier::builder_with_provider(authorities, provider())
            .build()
            .is_ok_and(|verifier| check(&*verifier, &credentials.chain, then).is_err())
    }

    /// Begins a connection with a new client.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn accept(&self) -> Result<Records, Error> {
        Ok(Records::new(ServerConnection::new(self.present().config)?.into()))
    }

    /// The configuration of new connections, for those who drive rustls themselves. They ask
    /// [`admit_connection`](Server::admit_connection) after each handshake.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.present().config
    }

    /// Decides on a client that has done its handshake.
    pub fn admit(&self, records: &Records) -> Visitor {
        self.admit_connection(records.connection())
    }

    /// The same for a connection that rustls has.
    pub fn admit_connection(&self, connection: &CommonState) -> Visitor {
        let chain = connection.peer_certificates().unwrap_or_default();
        // A ticket lives for hours, and a certificate may expire meanwhile.
        if connection.handshake_kind() == Some(HandshakeKind::Resumed) {
            return self.admit_chain(chain);
        }
        self.admit_checked(chain)
    }

    /// The same for one that has shown these certificates, its own first, in a handshake that proved
    /// that it has the key: for those whose connections are not rustls' own (QUIC), and for nodes
    /// that this side has connected to.
    pub fn admit_chain(&self, chain: &[CertificateDer<'static>]) -> Visitor {
        match check(&*self.present().verifier, chain, UnixTime::now()) {
            Ok(()) => self.admit_checked(chain),
            Err(error) => Visitor::Refused(format!("your certificate is not valid now: {error}")),
        }
    }

    fn admit_checked(&self, chain: &[CertificateDer<'static>]) -> Visitor {
        let denied = self.denied();
        let Some(peer) = Peer::showing(chain) else {
            return Visitor::Refused(crate::NameError::None.to_string());
        };
        let theirs = &peer.identity;
        if denied.denies(&peer) {
            return Visitor::Refused(format!(
                "your certificate is that of {theirs}, which is denied here: ask for a new one"
            ));
        }
        if !self.reach.takes(&self.identity, theirs) {
            let place = match (self.reach, self.identity.system()) {
                (Reach::System, Some(system)) => format!("system \"{system}\""),
                _ => format!("cluster \"{}\"", self.identity.cluster),
            };
            return Visitor::Refused(format!(
                "your certificate is that of {theirs}, and this is {}: use a certificate of the \
                 {place}",
                self.identity
            ));
        }
        // A node that is to join asks for that.
        if self.port == Port::Admin && theirs.role == Role::Client {
            return Visitor::Refused(format!(
                "your certificate is that of {theirs}, and this port is for administrators: use one \
                 that `steadfast init` made as admin"
            ));
        }
        Visitor::Welcome(peer.identity)
    }
}

fn check(
    verifier: &dyn ClientCertVerifier,
    chain: &[CertificateDer<'static>],
    now: UnixTime,
) -> Result<(), Error> {
    let (end, between) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
    verifier.verify_client_cert(end, between, now).map(drop)
}

fn own_fault(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "it is not by the authority in [security] authority: use that which it was made with (a \
             cell's certificate file also has its cell's authority, behind its own)"
            .into(),
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "it has expired: `steadfast init --renew` makes new ones (or is the clock wrong?)"
            .into(),
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "it is not valid yet: is the clock of this host right?".into(),
        Error::InvalidCertificate(CertificateError::Other(other)) if is_beyond(other) => {
            BEYOND.into()
        }
        other => other.to_string(),
    }
}
