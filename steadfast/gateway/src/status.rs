//! How a call's end is told: in gRPC, and in HTTP.

use bytes::Bytes;
use client::{CallError, ConnectError};
use http::header::{ACCEPT_ENCODING, ALLOW, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};
use wire::client::Refusal;

use crate::fit::{self, Copies};
use crate::refusals::{Kind, word};

/// Whether the call was executed: `yes`, `no` or `unknown`.
pub(crate) const EXECUTED: &str = "steadfast-executed";

/// The service's own error, as JSON.
const ERROR: &str = "steadfast-error-bin";

/// The part that had no room among the headers: `message`, or `error`.
const CUT: &str = "steadfast-cut";

/// When to call again, in milliseconds; negative: not at all.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// The encodings of messages that are spoken here.
const ACCEPTED: &str = "grpc-accept-encoding";

/// A busy node's clients come back after this time.
const BUSY_MS: i32 = 50;

/// The same in HTTP, which has whole seconds.
const BUSY_S: HeaderValue = HeaderValue::from_static("1");

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// The service's own error, as JSON.
    pub(crate) error: Option<Bytes>,
    pushback_ms: Option<i32>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), error: None, pushback_ms: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Invalid, message)
    }

    /// The same, where only a question before the call may have been executed.
    pub(crate) fn of_a_question(self) -> Failure {
        let kind = match self.kind.row().executed {
            Some(false) => self.kind,
            _ => Kind::Unavailable,
        };
        Failure { kind, ..self }
    }

    /// This gateway has no room.
    pub(crate) fn full() -> Failure {
        let why = "this gateway has too many calls or bytes under way: call later, or less at once";
        Failure { pushback_ms: Some(BUSY_MS), ..Failure::new(Kind::Full, why) }
    }

    /// All headers together are no more than every client takes, whatever the texts.
    pub(crate) fn to_status(&self) -> Status {
        let mut metadata = MetadataMap::new();
        metadata.insert(EXECUTED, self.executed_word().parse().expect("a word"));
        if let Some(ms) = self.pushback_ms {
            metadata.insert(PUSHBACK, ms.into());
        }
        if self.kind == Kind::Media {
            metadata.insert(ACCEPTED, MetadataValue::from_static("identity"));
        }
        let Copies { message, has_error, cut } = fit::copies(&self.message, self.error.as_deref());
        if let Some(error) = self.error.as_ref().filter(|_| has_error) {
            metadata.insert_bin(ERROR, MetadataValue::from_bytes(error));
        }
        if let Some(cut) = cut {
            metadata.insert(CUT, MetadataValue::from_static(cut));
        }
        Status::with_metadata(self.kind.row().code, message, metadata)
    }

    /// The headers of an answer in HTTP.
    pub(crate) fn headers(&self) -> HeaderMap {
        let executed = HeaderValue::from_static(self.executed_word());
        let mut headers = HeaderMap::from_iter([(HeaderName::from_static(EXECUTED), executed)]);
        match self.kind {
            Kind::Full => headers.insert(RETRY_AFTER, BUSY_S),
            Kind::Verb => headers.insert(ALLOW, HeaderValue::from_static("GET, POST")),
            Kind::Media => headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity")),
            _ => None,
        };
        headers
    }

    pub(crate) fn executed_word(&self) -> &'static str {
        word(self.kind.row().executed)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let (kind, pushback_ms) = match &error {
            CallError::DeadlineExceeded | CallError::RetriesSpent | CallError::Closed => {
                (Kind::Late, None)
            }
            CallError::NoSuchGroup(_) => (Kind::NoGroup, None),
            CallError::Refused { refusal, .. } => refused(*refusal),
            CallError::Service(_) => (Kind::Service, None),
            CallError::TooManyCalls => (Kind::Full, Some(BUSY_MS)),
            CallError::DeadlineTooLong(_) => (Kind::Invalid, None),
            CallError::Repeated | CallError::NumberTaken(_) => (Kind::GivenUp, None),
            _ => (Kind::Unavailable, None),
        };
        let (message, error) = match error {
            CallError::Service(json) => (String::from_utf8_lossy(&json).into_owned(), Some(json)),
            other => (other.to_string(), None),
        };
        Failure { kind, message, error, pushback_ms }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        Failure::new(Kind::Unavailable, error.to_string())
    }
}

fn refused(refusal: Refusal) -> (Kind, Option<i32>) {
    match refusal {
        Refusal::Busy => (Kind::Full, Some(BUSY_MS)),
        // The host does not want this call at all.
        Refusal::Shed => (Kind::Full, Some(-1)),
        Refusal::Window => (Kind::Full, None),
        Refusal::NoSuchMethod => (Kind::NoMethod, None),
        Refusal::TooLarge => (Kind::Large, None),
        Refusal::BadArguments | Refusal::NotReadOnly => (Kind::Invalid, None),
        Refusal::Denied => (Kind::Denied, None),
        Refusal::Stale => (Kind::GivenUp, None),
        Refusal::KeyReused => (Kind::KeyReused, None),
        Refusal::Split => (Kind::Split, None),
        Refusal::Failed | Refusal::ReplyTooLarge => (Kind::Failed, None),
        Refusal::Poisoned => (Kind::Poisoned, None),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn a_service_error_comes_whole_and_in_words() {
        let failure = Failure::from(CallError::Service(Bytes::from_static(b"\"full\"")));
        let status = failure.to_status();
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "\"full\""));
        let error = status.metadata().get_bin(ERROR).expect("it is there").to_bytes();
        assert_eq!(&*error.expect("it is base64"), b"\"full\"");
        assert_eq!(status.metadata().get(EXECUTED).expect("told"), "yes");
        assert!(status.metadata().get(CUT).is_none());
    }

    #[test]
    fn what_is_told_of_a_call_is_what_became_of_it() {
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
            CallError::RetriesSpent,
            CallError::NoSuchGroup("x".into()),
            CallError::NoReplica,
            CallError::Service(Bytes::new()),
            CallError::Unreachable("x".into()),
            CallError::TooManyCalls,
            CallError::DeadlineTooLong(std::time::Duration::MAX),
            CallError::Repeated,
            CallError::NumberTaken(4),
            CallError::Closed,
        ];
        for error in refused.chain(others) {
            let failure = Failure::from(error.clone());
            assert_eq!(failure.kind.row().executed, error.was_executed(), "{error:?}");
        }
    }

    #[test]
    fn a_key_of_another_call_is_a_conflict_and_was_not_executed() {
        let reused = CallError::Refused { refusal: Refusal::KeyReused, reason: "other".into() };
        let failure = Failure::from(reused);
        let row = failure.kind.row();
        assert_eq!((row.code, row.http.as_u16()), (Code::Aborted, 409));
        assert_eq!(failure.executed_word(), "no");
        let forgotten = CallError::Refused { refusal: Refusal::Stale, reason: "old".into() };
        let failure = Failure::from(forgotten);
        let row = failure.kind.row();
        assert_eq!((row.code, failure.executed_word()), (Code::Aborted, "unknown"));
    }

    #[test]
    fn a_host_that_sheds_is_not_called_again() {
        let shed = CallError::Refused { refusal: Refusal::Shed, reason: "full".into() };
        let status = Failure::from(shed).to_status();
        assert_eq!(status.metadata().get(PUSHBACK).expect("told"), "-1");
    }

    #[test]
    fn all_headers_of_an_answer_fit_whatever_is_told() {
        let alphabets = ["a", "\"", "ü", "漢", "😀", "\u{7}", "%", " ", "x漢\n"];
        let lengths = (0..80).chain((80..9_000).step_by(37)).chain([100_000, 1 << 20]);
        for length in lengths {
            for alphabet in alphabets {
                let text = alphabet.repeat(length);
                let json = Bytes::from(serde_json::to_vec(&text).expect("a text"));
                let own = Failure::from(CallError::Service(json));
                let reason = format!("no: {text}");
                let refusal = CallError::Refused { refusal: Refusal::Shed, reason };
                for failure in [own, refusal.into(), Failure::new(Kind::Media, text)] {
                    let response = failure.to_status().into_http::<()>();
                    // The status and the date are added by hyper.
                    let size = fit::size(response.headers()) + 42 + 65;
                    assert!(size <= fit::MOST, "{size} bytes of {length} times {alphabet:?}");
                    let seen = Status::from_header_map(response.headers()).expect("a status");
                    assert_eq!(seen.code(), failure.kind.row().code);
                    let cut = seen.metadata().get(CUT).map(|it| it.to_str().expect("a word"));
                    let is_whole = seen.message() == failure.message;
                    let error = seen.metadata().get_bin(ERROR);
                    let error = error.map(|it| it.to_bytes().expect("base64"));
                    let is_right = match cut {
                        None => is_whole && error == failure.error,
                        Some("message") => !is_whole && error == failure.error,
                        _ => error.is_none() && failure.error.is_some(),
                    };
                    assert!(is_right, "{length} times {alphabet:?}: {cut:?}");
                }
            }
        }
    }
}
