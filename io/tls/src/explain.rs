//! Explains a failed handshake to a client's owner, with the remedy.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError};

/// Why TLS with a node failed, as its client sees it, with the remedy.
pub fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => theirs(error),
        Error::AlertReceived(alert) => ours(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType)
        | Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => {
            "it does not speak TLS here: connect without TLS, or give the node its [security]"
                .into()
        }
        other => format!("TLS failed ({other}): is this a Steadfast node's port?"),
    }
}

/// A certificate that only the holder of a cell's key can have made.
pub(crate) const BEYOND: &str = "its cell's authority may not make this name: was its key stolen?";

/// An authority made a name that it may not make.
pub(crate) fn is_beyond(error: &OtherError) -> bool {
    let error = error.0.downcast_ref::<webpki::Error>();
    matches!(error, Some(webpki::Error::NameConstraintViolation))
}

/// The node's certificate is not good.
fn theirs(error: &CertificateError) -> String {
    let why = match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not by the authority that this client was given: is this the right cluster, and \
             the right authority.pem?"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired: renew it (`steadfast init --renew`), or set this host's clock right"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet: set the clocks of both hosts right"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is not that of a node of the cluster that this client's own certificate is for: is \
             the address right?"
        }
        CertificateError::Other(other) if is_beyond(other) => BEYOND,
        other => return format!("the node's certificate is refused: {other}"),
    };
    format!("the node's certificate is refused: {why}")
}

/// The node says that this side's certificate is not good.
fn ours(alert: AlertDescription) -> String {
    let why = match alert {
        // An authority of the same name, but another: its signature does not fit.
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "it is not by the node's authority: use one that the cluster's `steadfast init` made"
        }
        AlertDescription::CertificateExpired => {
            "it has expired, or is not valid yet by the node's clock: renew it (`steadfast init \
             --renew`), or set the clocks right"
        }
        AlertDescription::CertificateRequired => "the node demands one, and none was given",
        AlertDescription::NoApplicationProtocol => {
            return "this port is for something else (clients and `steadfast status` have different \
                    ports): check the address"
                .into();
        }
        AlertDescription::ProtocolVersion => {
            return "the two sides have no version of TLS in common: Steadfast speaks TLS 1.3"
                .into();
        }
        other => return format!("the node ended TLS ({other:?}): see its log"),
    };
    format!("the node refuses this client's certificate: {why}")
}
