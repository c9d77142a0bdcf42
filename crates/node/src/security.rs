//! What this node shows of itself, and the loud word if that is nothing.

use std::time::Duration;

use tls::{Credentials, CredentialsError, Identity, Server};

use crate::config::Config;
use crate::status::TlsStatus;

/// Whoever reads the log has this long to renew the certificate.
const EXPIRES_SOON: Duration = Duration::from_secs(60 * 86_400);

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

/// What the status says of it.
pub(crate) fn status(credentials: Option<&Credentials>) -> TlsStatus {
    let certificate = credentials.map(|credentials| credentials.identity.to_string());
    let expires_soon = credentials.is_some_and(|it| Server::expires_within(it, EXPIRES_SOON));
    if expires_soon {
        tracing::warn!(
            "this node's certificate ends within two months: `steadfast init --renew` makes new ones"
        );
    }
    TlsStatus { certificate, expires_soon, clients: Vec::new() }
}
