//! How a call's end is told: in gRPC, and in HTTP.

use bytes::Bytes;
use client::{CallError, ConnectError};
use http::{HeaderMap, HeaderValue, StatusCode};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use wire::client::Refusal;

/// Whether the call was executed: `yes`, `no` or `unknown`.
pub(crate) const EXECUTED: &str = "steadfast-executed";

/// The service's own error, as JSON.
const ERROR: &str = "steadfast-error-bin";

/// When to call again, in milliseconds; negative: not at all.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// A busy node's clients come back after this time.
const BUSY_MS: i32 = 50;

/// Bytes of a service's own error in the words of a status. Headers have no room for more.
const MAX_WORDS: usize = 2 << 10;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) executed: Option<bool>,
    /// The service's own error, as JSON.
    pub(crate) error: Option<Bytes>,
    pushback_ms: Option<i32>,
}

impl Failure {
    /// A call that was not begun.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failure {
        let (message, executed) = (message.into(), Some(false));
        Failure { code, message, executed, error: None, pushback_ms: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(Code::InvalidArgument, message)
    }

    /// The same for a call that was executed, or was not.
    pub(crate) fn of_a_call(self, executed: bool) -> Failure {
        Failure { executed: Some(executed), ..self }
    }

    /// This gateway has no room.
    pub(crate) fn full() -> Failure {
        let why = "this gateway has too many calls or bytes under way: call later, or less at once";
        Failure { pushback_ms: Some(BUSY_MS), ..Failure::new(Code::ResourceExhausted, why) }
    }

    pub(crate) fn to_status(&self) -> Status {
        let mut metadata = MetadataMap::new();
        metadata.insert(EXECUTED, self.executed_word().parse().expect("a word"));
        if let Some(ms) = self.pushback_ms {
            metadata.insert(PUSHBACK, ms.into());
        }
        if let Some(error) = self.error.as_ref().filter(|error| error.len() <= MAX_WORDS) {
            metadata.insert_bin(ERROR, tonic::metadata::MetadataValue::from_bytes(error));
        }
        Status::with_metadata(self.code, self.message.clone(), metadata)
    }

    pub(crate) fn http(&self) -> StatusCode {
        match self.code {
            Code::InvalidArgument => StatusCode::BAD_REQUEST,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::NotFound | Code::Unimplemented => StatusCode::NOT_FOUND,
            Code::Aborted => StatusCode::CONFLICT,
            Code::FailedPrecondition => StatusCode::UNPROCESSABLE_ENTITY,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The headers of an answer in HTTP.
    pub(crate) fn headers(&self) -> HeaderMap {
        let executed = HeaderValue::from_static(self.executed_word());
        HeaderMap::from_iter([(http::HeaderName::from_static(EXECUTED), executed)])
    }

    pub(crate) fn executed_word(&self) -> &'static str {
        match self.executed {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let (code, pushback_ms) = match &error {
            CallError::DeadlineExceeded | CallError::RetriesSpent => (Code::DeadlineExceeded, None),
            CallError::NoSuchGroup(_) => (Code::NotFound, None),
            CallError::Refused { refusal, .. } => refused(*refusal),
            CallError::Service(_) => (Code::FailedPrecondition, None),
            CallError::TooManyCalls => (Code::ResourceExhausted, Some(BUSY_MS)),
            CallError::DeadlineTooLong(_) => (Code::InvalidArgument, None),
            CallError::Repeated | CallError::NumberTaken(_) => (Code::Aborted, None),
            _ => (Code::Unavailable, None),
        };
        let executed = error.was_executed();
        let (message, error) = match error {
            CallError::Service(json) => (words(&json), Some(json)),
            other => (other.to_string(), None),
        };
        Failure { code, message, executed, error, pushback_ms }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        Failure::new(Code::Unavailable, error.to_string())
    }
}

fn refused(refusal: Refusal) -> (Code, Option<i32>) {
    match refusal {
        Refusal::Busy => (Code::ResourceExhausted, Some(BUSY_MS)),
        // The host does not want this call at all.
        Refusal::Shed => (Code::ResourceExhausted, Some(-1)),
        Refusal::Window => (Code::ResourceExhausted, None),
        Refusal::NoSuchMethod => (Code::Unimplemented, None),
        Refusal::BadArguments | Refusal::TooLarge | Refusal::NotReadOnly => {
            (Code::InvalidArgument, None)
        }
        Refusal::Denied => (Code::PermissionDenied, None),
        Refusal::Stale | Refusal::Split | Refusal::KeyReused => (Code::Aborted, None),
        Refusal::Failed | Refusal::ReplyTooLarge | Refusal::Poisoned => (Code::Internal, None),
    }
}

/// A service's own error for people.
fn words(json: &Bytes) -> String {
    let text = String::from_utf8_lossy(json);
    match text.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_error_comes_whole_and_in_words() {
        let failure = Failure::from(CallError::Service(Bytes::from_static(b"\"full\"")));
        let status = failure.to_status();
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "\"full\""));
        let error = status.metadata().get_bin(ERROR).expect("it is there").to_bytes();
        assert_eq!(&*error.expect("it is base64"), b"\"full\"");
        assert_eq!(status.metadata().get(EXECUTED).expect("told"), "yes");
        assert_eq!(failure.http(), StatusCode::UNPROCESSABLE_ENTITY);
    }

    #[test]
    fn only_calls_that_were_not_executed_are_unavailable() {
        let refusals = (1..=14).map(|number| match number {
            1 => Refusal::Busy,
            2 => Refusal::TooLarge,
            3 => Refusal::NoSuchMethod,
            4 => Refusal::BadArguments,
            5 => Refusal::Failed,
            6 => Refusal::Stale,
            7 => Refusal::ReplyTooLarge,
            8 => Refusal::Window,
            9 => Refusal::Split,
            10 => Refusal::NotReadOnly,
            11 => Refusal::Shed,
            12 => Refusal::Poisoned,
            13 => Refusal::Denied,
            _ => Refusal::KeyReused,
        });
        let refused = refusals.map(|refusal| CallError::Refused { refusal, reason: "no".into() });
        let others = [
            CallError::DeadlineExceeded,
            CallError::NoSuchGroup("x".into()),
            CallError::NoReplica,
            CallError::Service(Bytes::new()),
            CallError::Unreachable("x".into()),
            CallError::TooManyCalls,
            CallError::Repeated,
        ];
        for error in refused.chain(others) {
            let failure = Failure::from(error.clone());
            let retried = failure.code == Code::Unavailable;
            assert!(!retried || failure.executed == Some(false), "{error:?}");
        }
    }

    #[test]
    fn a_key_of_another_call_is_a_conflict_and_was_not_executed() {
        let reused = CallError::Refused { refusal: Refusal::KeyReused, reason: "other".into() };
        let failure = Failure::from(reused);
        assert_eq!((failure.code, failure.http()), (Code::Aborted, StatusCode::CONFLICT));
        assert_eq!(failure.executed_word(), "no");
        let forgotten = CallError::Refused { refusal: Refusal::Stale, reason: "old".into() };
        let failure = Failure::from(forgotten);
        assert_eq!((failure.code, failure.executed_word()), (Code::Aborted, "unknown"));
    }

    #[test]
    fn a_host_that_sheds_is_not_called_again() {
        let shed = CallError::Refused { refusal: Refusal::Shed, reason: "full".into() };
        let status = Failure::from(shed).to_status();
        assert_eq!(status.metadata().get(PUSHBACK).expect("told"), "-1");
    }
}
