//! Makes authorities and certificates.
//!
//! Keys are ECDSA on P-256: every TLS stack, hardware module and rule book of plants and grids has
//! it, and a signature takes some tens of microseconds.
//!
//! A cluster has an [`Authority`]. So has each cell of a system, but that one's certificate is by
//! the [`SystemAuthority`], and says which names it may make (RFC 5280, 4.2.1.10): whoever steals it
//! can pose as others of that cell alone. It says nothing of addresses, since no check relies on
//! them.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
    PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::{Duration, OffsetDateTime};
use webpki::EndEntityCert;

use crate::name::{Identity, NameError, Role, cell, check_cluster, check_path, root_of, top_of};

/// An authority must outlive the plant's next overhaul.
const AUTHORITY_DAYS: i64 = 20 * 365;

/// A node says so when its certificate has less than two months left.
const CERTIFICATE_DAYS: i64 = 5 * 365;

/// A clock that is a day behind does not shut its host out.
const SKEW_DAYS: i64 = 1;

/// Why nothing could be made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A name cannot stand in a certificate.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The key of the authority is not one.
    #[error("the authority's key cannot be used: {0}; restore it from where you keep it")]
    Key(rcgen::Error),
    /// A cell cannot be its own authority.
    #[error(
        "\"{0}\" is a cell, whose certificates are by the authority of its system: use `steadfast \
         init --system`"
    )]
    Cell(String),
    /// The cell is of another system.
    #[error("\"{path}\" is no cell of the system \"{system}\": its path ends in another label")]
    OtherSystem {
        /// The cell's path.
        path: String,
        /// The authority's system.
        system: String,
    },
    /// A cell's certificate and its key are not from one hand.
    #[error(
        "the cell's authority has a certificate that is not of its key: restore both from where you \
         keep them, or make the cell anew"
    )]
    Pair,
    /// The cryptographic library refuses.
    #[error("no certificate could be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// The authority of a cluster. Its owner can make nodes, clients and administrators.
#[derive(Debug)]
pub struct Authority {
    cluster: String,
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, PEM, if there is an authority above that checks go to.
    chain: String,
}

/// The authority of a system of cells. Its owner can make the authorities of cells.
#[derive(Debug)]
pub struct SystemAuthority {
    system: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both PEM.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate, and behind it those between it and the authority that checks go to.
    pub certificate: String,
    /// The private key (PKCS #8).
    pub key: String,
}

/// From when to when a certificate is good, in days from now.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// First.
    pub from: i64,
    /// Last.
    pub to: i64,
}

impl Authority {
    /// A new authority of a cluster, and its certificate with its key.
    ///
    /// # Errors
    /// The cluster's name cannot stand in a certificate.
    pub fn new(cluster: &str) -> Result<(Authority, Issued), IssueError> {
        if Identity::client(cluster, "any")?.path().is_some() {
            return Err(IssueError::Cell(cluster.into()));
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let params = authority_params(cluster)?;
        let issued =
            Issued { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        let issuer = Issuer::new(params, key);
        Ok((Authority { cluster: cluster.into(), issuer, chain: String::new() }, issued))
    }

    /// The authority of a cluster that was made before, by its key.
    ///
    /// # Errors
    /// This is no key.
    pub fn from_key(cluster: &str, key: &str) -> Result<Authority, IssueError> {
        let key = KeyPair::from_pem(key).map_err(IssueError::Key)?;
        let issuer = Issuer::new(authority_params(cluster)?, key);
        Ok(Authority { cluster: cluster.into(), issuer, chain: String::new() })
    }

    /// The authority of a cell that was made before, by its key and its certificate.
    ///
    /// # Errors
    /// This is no key, or not that of the certificate.
    pub fn of_cell(path: &str, key: &str, certificate: &str) -> Result<Authority, IssueError> {
        let authority = Authority::from_key(&cell(path), key)?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes());
        let der = der.map_err(|_| IssueError::Pair)?;
        let theirs = EndEntityCert::try_from(&der).map_err(|_| IssueError::Pair)?;
        let ours = authority.issuer.key().subject_public_key_info();
        if theirs.subject_public_key_info().as_ref() != ours {
            return Err(IssueError::Pair);
        }
        Ok(Authority { chain: certificate.into(), ..authority })
    }

    /// The cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// A new key, and a certificate for it. A node's also names its addresses, for tools that
    /// demand to find there what they dialled.
    ///
    /// # Errors
    /// The cryptographic library refuses.
    pub fn issue(&self, to: &Identity, addresses: &[IpAddr]) -> Result<Issued, IssueError> {
        self.issue_for(to, addresses, Validity { from: -SKEW_DAYS, to: CERTIFICATE_DAYS })
    }

    /// As [`issue`](Authority::issue), for a time of your own.
    ///
    /// # Errors
    /// The cryptographic library refuses.
    pub fn issue_for(
        &self,
        to: &Identity,
        addresses: &[IpAddr],
        validity: Validity,
    ) -> Result<Issued, IssueError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(to.names())?;
        params.subject_alt_names.extend(addresses.iter().map(|ip| SanType::IpAddress(*ip)));
        params.distinguished_name = distinguished(&to.to_string(), &to.cluster);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match to.role {
            Role::Node(_) => {
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]
            }
            Role::Client | Role::Admin => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = period(validity);
        let certificate = params.signed_by(&key, &self.issuer)?;
        let certificate = certificate.pem() + &self.chain;
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

impl SystemAuthority {
    /// A new authority of a system, and its certificate with its key.
    ///
    /// # Errors
    /// The system's name cannot be the path of its root.
    pub fn new(system: &str) -> Result<(SystemAuthority, Issued), IssueError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let params = system_params(system)?;
        let issued =
            Issued { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        let issuer = Issuer::new(params, key);
        Ok((SystemAuthority { system: system.into(), issuer }, issued))
    }

    /// The authority of a system that was made before, by its key.
    ///
    /// # Errors
    /// This is no key.
    pub fn from_key(system: &str, key: &str) -> Result<SystemAuthority, IssueError> {
        let key = KeyPair::from_pem(key).map_err(IssueError::Key)?;
        let issuer = Issuer::new(system_params(system)?, key);
        Ok(SystemAuthority { system: system.into(), issuer })
    }

    /// The system.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// A new authority for the cell of this path, and its certificate with its key.
    ///
    /// # Errors
    /// No cell of this system can have this path.
    pub fn cell(&self, path: &str) -> Result<(Authority, Issued), IssueError> {
        self.cell_for(path, Validity { from: -SKEW_DAYS, to: AUTHORITY_DAYS })
    }

    /// As [`cell`](SystemAuthority::cell), for a time of your own.
    ///
    /// # Errors
    /// No cell of this system can have this path.
    pub fn cell_for(
        &self,
        path: &str,
        validity: Validity,
    ) -> Result<(Authority, Issued), IssueError> {
        let cluster = cell(path);
        let mut params = authority_params(&cluster)?;
        if root_of(path) != self.system {
            let (path, system) = (path.into(), self.system.clone());
            return Err(IssueError::OtherSystem { path, system });
        }
        params.name_constraints = only(top_of(&cluster));
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = period(validity);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        let issued = Issued { certificate: certificate.clone(), key: key.serialize_pem() };
        let issuer = Issuer::new(params, key);
        Ok((Authority { cluster, issuer, chain: certificate }, issued))
    }
}

/// The same for each authority of a system, but for the time.
fn system_params(system: &str) -> Result<CertificateParams, IssueError> {
    check_path(system)?;
    if root_of(system) != system {
        let why = "a system's name is one label, that of its root".into();
        return Err(
            NameError::Path(wire::path::NameError::Path { path: system.into(), why }).into()
        );
    }
    let mut params = authority_params(&cell(system))?;
    params.distinguished_name = distinguished("Steadfast system", system);
    // It makes authorities, and these make certificates of owners.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    // It counts where two systems' authorities are trusted.
    params.name_constraints = only(top_of(system));
    Ok(params)
}

/// No DNS name but this and those that end in it.
fn only(top: String) -> Option<NameConstraints> {
    let permitted_subtrees = vec![GeneralSubtree::DnsName(top)];
    Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() })
}

/// The same for each authority of a cluster, but for the time: who holds the key is the issuer.
fn authority_params(cluster: &str) -> Result<CertificateParams, IssueError> {
    check_cluster(cluster)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished("Steadfast authority", cluster);
    // It makes certificates of owners, not of further authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let validity = Validity { from: -SKEW_DAYS, to: AUTHORITY_DAYS };
    (params.not_before, params.not_after) = period(validity);
    Ok(params)
}

fn distinguished(name: &str, cluster: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::OrganizationName, cluster);
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn period(validity: Validity) -> (OffsetDateTime, OffsetDateTime) {
    let now = OffsetDateTime::now_utc();
    (now + Duration::days(validity.from), now + Duration::days(validity.to))
}
