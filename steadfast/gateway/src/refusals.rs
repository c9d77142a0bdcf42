//! Every way in which a call has no result. What is told of each stands here alone: in gRPC, in
//! HTTP, and whether the call was executed. `docs/gateway.md` has the same table, and a test
//! compares them.

use http::StatusCode;
use tonic::Code;

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The service's own error.
    Service,
    /// The handler failed, or what it returned cannot be told.
    Failed,
    /// Replicas of a voting group disagree.
    Split,
    /// It has changed nothing, and nobody tries it again.
    Poisoned,
    /// The key names another call.
    KeyReused,
    /// The caller has said that it wants no answer any more, or the key is forgotten.
    GivenUp,
    /// No answer in time.
    Late,
    /// The call itself did not come in time.
    Slow,
    /// Nobody is there who could execute it.
    Unavailable,
    /// There is no room for it.
    Full,
    /// Its headers are too long.
    Headers,
    /// Its message is too long.
    Large,
    /// It makes no sense.
    Invalid,
    NoGroup,
    NoMethod,
    /// Its bytes are encoded in a way that is not spoken here.
    Media,
    /// A method of HTTP that is not spoken here.
    Verb,
    Denied,
}

/// All that is told of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) code: Code,
    pub(crate) http: StatusCode,
    /// `None`: nobody knows.
    pub(crate) executed: Option<bool>,
    /// For people.
    pub(crate) meaning: &'static str,
}

impl Kind {
    /// Its row in the table.
    pub(crate) fn row(self) -> Row {
        let (code, http, executed, meaning) = match self {
            Kind::Service => (
                Code::FailedPrecondition,
                StatusCode::UNPROCESSABLE_ENTITY,
                Some(true),
                "the service's own [error](#errors-of-services)",
            ),
            Kind::Failed => (
                Code::Internal,
                StatusCode::INTERNAL_SERVER_ERROR,
                Some(true),
                "the handler failed, or its result is too long or not as the contract says",
            ),
            Kind::Split => (
                Code::Aborted,
                StatusCode::CONFLICT,
                Some(true),
                "the replicas of a voting group disagree",
            ),
            Kind::Poisoned => (
                Code::Internal,
                StatusCode::INTERNAL_SERVER_ERROR,
                Some(false),
                "the call killed two replicas, or the contract has no form in protobuf",
            ),
            Kind::KeyReused => {
                (Code::Aborted, StatusCode::CONFLICT, Some(false), "the key names another call")
            }
            Kind::GivenUp => (
                Code::Aborted,
                StatusCode::CONFLICT,
                None,
                "the key was given up or is forgotten, or the caller has repeated the call meanwhile",
            ),
            Kind::Late => {
                (Code::DeadlineExceeded, StatusCode::GATEWAY_TIMEOUT, None, "no answer in time")
            }
            Kind::Slow => (
                Code::DeadlineExceeded,
                StatusCode::REQUEST_TIMEOUT,
                Some(false),
                "the message did not come within 10 s",
            ),
            Kind::Unavailable => (
                Code::Unavailable,
                StatusCode::SERVICE_UNAVAILABLE,
                Some(false),
                "no node, or no replica, in time",
            ),
            Kind::Full => (
                Code::ResourceExhausted,
                StatusCode::TOO_MANY_REQUESTS,
                Some(false),
                "no room; `grpc-retry-pushback-ms` or `retry-after` says when to call again",
            ),
            Kind::Headers => (
                Code::ResourceExhausted,
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                Some(false),
                "headers of more than 16 KiB",
            ),
            Kind::Large => (
                Code::OutOfRange,
                StatusCode::PAYLOAD_TOO_LARGE,
                Some(false),
                "a message of more than 1 MiB",
            ),
            Kind::Invalid => (
                Code::InvalidArgument,
                StatusCode::BAD_REQUEST,
                Some(false),
                "wrong arguments or headers; no message, or more than one",
            ),
            Kind::NoGroup => (Code::NotFound, StatusCode::NOT_FOUND, Some(false), "no such group"),
            Kind::NoMethod => {
                (Code::Unimplemented, StatusCode::NOT_FOUND, Some(false), "no such method, or path")
            }
            Kind::Media => (
                Code::Unimplemented,
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                Some(false),
                "a compressed message, or another content type",
            ),
            Kind::Verb => (
                Code::Unimplemented,
                StatusCode::METHOD_NOT_ALLOWED,
                Some(false),
                "another method of HTTP; `allow` names those that may be used",
            ),
            Kind::Denied => (
                Code::PermissionDenied,
                StatusCode::FORBIDDEN,
                Some(false),
                "`[rights]`, or a denied certificate",
            ),
        };
        Row { code, http, executed, meaning }
    }
}

/// Whether a call was executed, as callers are told.
pub(crate) fn word(executed: Option<bool>) -> &'static str {
    match executed {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 18] = [
        Kind::Service,
        Kind::Failed,
        Kind::Split,
        Kind::Poisoned,
        Kind::KeyReused,
        Kind::GivenUp,
        Kind::Late,
        Kind::Slow,
        Kind::Unavailable,
        Kind::Full,
        Kind::Headers,
        Kind::Large,
        Kind::Invalid,
        Kind::NoGroup,
        Kind::NoMethod,
        Kind::Media,
        Kind::Verb,
        Kind::Denied,
    ];

    /// A code as gRPC's documents write it: `NotFound` is NOT_FOUND.
    fn screaming(code: Code) -> String {
        let mut text = String::new();
        for letter in format!("{code:?}").chars() {
            if letter.is_ascii_uppercase() && !text.is_empty() {
                text.push('_');
            }
            text.push(letter.to_ascii_uppercase());
        }
        text
    }

    #[test]
    fn the_document_has_the_same_table() {
        let document = include_str!("../../../docs/gateway.md");
        let head = "| gRPC | HTTP | executed | meaning |\n| --- | --- | --- | --- |\n";
        let table = document.split_once(head).expect("docs/gateway.md has the table").1;
        let told: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
        let row = |kind: Kind| {
            let Row { code, http, executed, meaning } = kind.row();
            let (code, http) = (screaming(code), http.as_u16());
            format!("| {code} | {http} | {} | {meaning} |", word(executed))
        };
        assert_eq!(told, ALL.map(row), "in docs/gateway.md, and in Kind::row");
    }

    #[test]
    fn no_kind_is_missing_above() {
        assert!(ALL.is_sorted() && ALL.len() == Kind::Denied as usize + 1);
    }

    #[test]
    fn only_calls_that_were_not_executed_may_be_sent_again_unasked() {
        // Stock clients repeat such calls by their own policies.
        for kind in ALL {
            let repeated = matches!(kind.row().code, Code::Unavailable | Code::ResourceExhausted);
            assert!(!repeated || kind.row().executed == Some(false), "{kind:?}");
        }
    }
}
