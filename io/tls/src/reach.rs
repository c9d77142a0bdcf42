//! How far a side reaches: to its own cluster, or to all cells of the system that it is one of.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::credentials::CredentialsError;
use crate::name::{Identity, Role, any_node, cell, check_path, root_of, top_of};
use crate::provider;

/// The others that may be at the far end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Those of the same cluster.
    #[default]
    Cluster,
    /// Those of all cells of the same system: for links between cells, and calls from other cells.
    System,
}

impl Reach {
    /// Whether `theirs` is within reach of `ours`, as far as names tell.
    pub(crate) fn takes(self, ours: &Identity, theirs: &Identity) -> bool {
        match self {
            Reach::Cluster => theirs.cluster == ours.cluster,
            Reach::System => theirs.shares_system(ours),
        }
    }

    /// Makes sure that this one has such a reach.
    pub(crate) fn check(self, ours: &Identity) -> Result<(), CredentialsError> {
        match self {
            Reach::System if ours.path().is_none() => {
                Err(CredentialsError::NoCell { ours: ours.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// The name that a client of this reach demands of a server.
    pub(crate) fn demand(self, ours: &Identity) -> ServerName<'static> {
        match (self, ours.system()) {
            (Reach::System, Some(system)) => server_name(top_of(system)),
            _ => server_name(any_node(&ours.cluster)),
        }
    }
}

/// The name that a node of the cell of this path has, if that is of the same system.
pub(crate) fn demand_cell(ours: &Identity, path: &str) -> Option<ServerName<'static>> {
    let near = check_path(path).is_ok() && ours.system() == Some(root_of(path));
    near.then(|| server_name(any_node(&cell(path))))
}

fn server_name(name: String) -> ServerName<'static> {
    ServerName::try_from(name).expect("a cluster's name was checked")
}

/// Takes the nodes of all cells of a system. The demanded name is the system's alone for any node,
/// or that of the nodes of one cell.
#[derive(Debug)]
pub(crate) struct NodesOfSystem {
    pub(crate) ours: Identity,
    pub(crate) authorities: Arc<RootCertStore>,
    /// They must be of these clusters, if any are named.
    only: Option<[String; 2]>,
    provider: Arc<CryptoProvider>,
}

impl NodesOfSystem {
    pub(crate) fn new(
        ours: Identity,
        authorities: Arc<RootCertStore>,
        only: Option<[String; 2]>,
    ) -> NodesOfSystem {
        NodesOfSystem { ours, authorities, only, provider: provider() }
    }

    fn takes(&self, theirs: &Identity) -> bool {
        matches!(theirs.role, Role::Node(_))
            && Reach::System.takes(&self.ours, theirs)
            && self.only.as_ref().is_none_or(|only| only.contains(&theirs.cluster))
    }
}

impl ServerCertVerifier for NodesOfSystem {
    /// As rustls' own verifier, but for the name.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.authorities,
            intermediates,
            now,
            algorithms,
        )?;
        if !Identity::of(end_entity).is_ok_and(|theirs| self.takes(&theirs)) {
            return Err(CertificateError::NotValidForName.into());
        }
        if *server_name != Reach::System.demand(&self.ours) {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
