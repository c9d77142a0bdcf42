//! Calls of other cells: made in this one, by the caller's session and number.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cells::{Call, End, Origin, Path, Reading};
use client::{CallError, Invocation, Key};
use config::Rights;
use tokio::sync::watch;
use wire::GroupId;
use wire::client::Refusal;
use wire::limits::MAX_DEADLINE;

use crate::inbound::{Inbound, Tell};
use crate::own::Own;
use crate::sessions::Sessions;

/// Makes calls in the cell.
#[derive(Debug)]
pub(crate) struct Calls {
    own: Path,
    sessions: Arc<Sessions>,
    rights: watch::Receiver<Rights>,
    tell: Tell,
}

impl Calls {
    pub fn new(path: Path, own: Own, rights: watch::Receiver<Rights>, tell: Tell) -> Calls {
        Calls { own: path, sessions: Arc::new(Sessions::new(own)), rights, tell }
    }

    /// Why this caller may not make this call, if it may not. The node itself asks nothing: this
    /// process shows the node's certificate.
    pub fn refuse(&self, origin: Option<&Origin>, call: &Call) -> Option<End> {
        let name = origin.map(|it| match it.cell == self.own {
            true => it.name.clone(),
            false => it.to_string(),
        });
        let group = GroupId::of(&call.group);
        let reason = self.rights.borrow().refuse(name.as_deref(), group, call.method)?;
        Some(End::Refused(Refusal::Denied, reason))
    }

    /// Makes a call, and tells its end.
    pub fn execute(&self, call: u64, request: Call, left: Duration) {
        let (sessions, tell) = (self.sessions.clone(), self.tell.clone());
        tokio::spawn(async move {
            let end = match tokio::time::timeout(left, make(&sessions, request, left)).await {
                Ok(end) => end,
                // The client has given it up, and a replica may still execute it.
                Err(_) => End::Lost,
            };
            // Nobody listens when the process ends: the caller asks another node.
            let _ = tell.send(Inbound::Executed { call, end }).await;
        });
    }
}

async fn make(sessions: &Sessions, request: Call, left: Duration) -> End {
    let Some(session) = sessions.client(request.client).await else { return End::NoWay };
    let Some(client) = session.get() else { return End::NoWay };
    let key = Key { number: request.number, unanswered: request.unanswered };
    let mut invocation = Invocation::new(&request.group, request.method)
        .body(request.body)
        .priority(request.priority)
        .within(left.min(MAX_DEADLINE))
        .keyed(key);
    if request.json {
        invocation = invocation.json();
    }
    invocation.reading = match request.reading {
        Reading::No => None,
        Reading::Linearizable => Some(client::Reading::Linearizable),
        Reading::Stale(ms) => Some(client::Reading::Stale(Duration::from_millis(ms.into()))),
    };
    end_of(client.call(invocation).await)
}

/// The end of a call, as its caller is told.
fn end_of(result: Result<Bytes, CallError>) -> End {
    match result {
        Ok(result) => End::Answer(result),
        Err(CallError::Service(error)) => End::Error(error),
        Err(CallError::NoSuchGroup(_)) => End::NoSuchGroup,
        // Neighbours of older versions know no other word for it.
        Err(CallError::Refused { refusal: Refusal::KeyReused, reason }) => {
            End::Refused(Refusal::Stale, reason)
        }
        Err(error @ CallError::NumberTaken(_)) => End::Refused(Refusal::Stale, error.to_string()),
        Err(CallError::Refused { refusal, reason }) => End::Refused(refusal, reason),
        // Another way may do, and it is no second execution.
        Err(error) if error.was_executed() == Some(false) => End::NoWay,
        Err(_) => End::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_is_said_only_of_what_was_certainly_not_executed() {
        let refused = CallError::Refused { refusal: Refusal::NoSuchMethod, reason: "no".into() };
        for (error, end) in [
            (CallError::NoReplica, End::NoWay),
            (CallError::TooManyCalls, End::NoWay),
            (CallError::DeadlineExceeded, End::Lost),
            (CallError::Repeated, End::Lost),
            (CallError::Closed, End::Lost),
            (CallError::NoSuchGroup("x".into()), End::NoSuchGroup),
            (CallError::Service(Bytes::from_static(b"e")), End::Error(Bytes::from_static(b"e"))),
            (refused, End::Refused(Refusal::NoSuchMethod, "no".into())),
        ] {
            assert_eq!(end_of(Err(error)), end);
        }
    }
}
