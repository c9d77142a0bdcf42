//! This node's credentials, and a loud warning if it has none.

use std::time::Duration;

use admin::status::TlsStatus;
use config::{Config, key_file};
use seal::Seal;
use tls::{Credentials, CredentialsError, Identity, Server};
use wire::Member;

use crate::error::StartError;

/// The owner has this long to renew the certificate after the warning.
const EXPIRES_SOON: Duration = Duration::from_secs(60 * 86_400);

/// Seals the ring's datagrams in this life of the node, if it has keys; warns if not.
pub(crate) fn seal(config: &Config, me: Member) -> Result<Option<Seal>, StartError> {
    let Some(path) = &config.security.cluster_key else {
        tracing::warn!(
            "the ring is neither encrypted nor authenticated: [security] names no cluster_key \
             (`steadfast init` makes all keys)"
        );
        return Ok(None);
    };
    let keys = key_file::read(path)?;
    let random = os::random::secret();
    let seed = random.map_err(|source| StartError::System { what: "random bytes", source })?;
    let ring::Config { cluster, nodes, .. } = config.ring_config(me);
    Ok(Some(Seal::new(seal::Config { cluster, me, nodes, keys, seed })))
}

/// The node's certificate and key, if it has any; says so if not.
pub(crate) fn credentials(config: &Config) -> Result<Option<Credentials>, CredentialsError> {
    let Some(files) = config.security.tls() else {
        if config.client.is_some() {
            tracing::warn!(
                "clients are neither encrypted nor authenticated: [security] names no certificate \
                 (`steadfast init` makes all keys)"
            );
        }
        return Ok(None);
    };
    let ours = Identity::node(&config.cluster, config.node)
        .map_err(|source| CredentialsError::Name { what: "[security]".into(), source })?;
    let credentials =
        Credentials::from_files(files.authority, files.certificate, files.key)?.expect(&ours)?;
    Ok(Some(credentials))
}

/// The status of TLS.
pub(crate) fn status(credentials: Option<&Credentials>) -> TlsStatus {
    let certificate = credentials.map(|credentials| credentials.identity.to_string());
    let expires_soon = credentials.is_some_and(|it| Server::expires_within(it, EXPIRES_SOON));
    if expires_soon {
        tracing::warn!(
            "this node's certificate expires within two months: `steadfast init --renew` makes new ones"
        );
    }
    TlsStatus { certificate, expires_soon, clients: Vec::new() }
}
