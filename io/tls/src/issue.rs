//! Makes authorities and certificates.
//!
//! Keys are ECDSA on P-256: every TLS stack, hardware module and rule book of plants and grids has
//! it, and a signature takes some tens of microseconds.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::name::{Identity, NameError, Role, check_cluster};

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
    /// The cryptographic library refuses.
    #[error("no certificate could be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// The authority of a cluster. Its owner can make nodes, clients and administrators.
#[derive(Debug)]
pub struct Authority {
    cluster: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both PEM.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
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
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let params = authority_params(cluster)?;
        let issued =
            Issued { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        Ok((Authority { cluster: cluster.into(), issuer: Issuer::new(params, key) }, issued))
    }

    /// The authority of a cluster that was made before, by its key.
    ///
    /// # Errors
    /// This is no key.
    pub fn from_key(cluster: &str, key: &str) -> Result<Authority, IssueError> {
        let key = KeyPair::from_pem(key).map_err(IssueError::Key)?;
        let issuer = Issuer::new(authority_params(cluster)?, key);
        Ok(Authority { cluster: cluster.into(), issuer })
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
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
    }
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
