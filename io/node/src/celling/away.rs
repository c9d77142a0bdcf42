//! Calls that handlers here make of groups of other cells. The process beside the node makes them,
//! and tells how they end; if it begins anew it makes them once more, under the same names.

use std::collections::BTreeMap;
use std::sync::Arc;

use admin::cell::HandlerCall;
use cells::{Call, End, Reading};
use engine::{AwayCall, AwayWait};
use wire::Time;
use wire::client::Refusal;
use wire::ordered::{End as NestedEnd, KeptReply};

use crate::shared::Shared;

/// Calls under way at once. More wait until their handlers give up.
const MAX_CALLS: usize = 1_024;

/// The calls, for other threads.
pub(crate) type SharedCalls = Shared<AwayCalls>;

/// The calls under way, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwayCalls {
    calls: BTreeMap<u64, (Arc<AwayCall>, Time)>,
    last: u64,
}

impl AwayCalls {
    /// A handler makes a call. One that has made it before is served by the new one.
    pub fn make(&mut self, now: Time, call: AwayCall) {
        self.calls.retain(|_, (other, until)| *until > now && other.wait != call.wait);
        if self.calls.len() < MAX_CALLS {
            self.last += 1;
            let until = now + call.left;
            self.calls.insert(self.last, (Arc::new(call), until));
        }
    }

    /// There is a call beyond this number.
    pub fn has_beyond(&self, since: u64) -> bool {
        self.calls.last_key_value().is_some_and(|(last, _)| *last > since)
    }

    /// The calls beyond this number.
    pub fn beyond(&self, now: Time, since: u64) -> Vec<HandlerCall> {
        let calls = self.calls.range(since.saturating_add(1)..);
        let calls = calls.map(|(number, (call, until))| {
            let left = until.since(now);
            HandlerCall::new(*number, call.cell.clone(), left, &as_of_client(call))
        });
        calls.collect()
    }

    /// A call has ended: who waits for it, and what it is told. Ends that say neither are left to
    /// the handler's deadline.
    pub fn ended(&mut self, number: u64, end: End) -> Option<(AwayWait, NestedEnd)> {
        let (call, _) = self.calls.remove(&number)?;
        let reply = |reply| Some((call.wait, NestedEnd::Reply(reply)));
        match end {
            End::Answer(result) => reply(KeptReply::Ok(result.into())),
            End::Error(error) => reply(KeptReply::Service(error.into())),
            End::Refused(refusal, reason) => reply(KeptReply::Refused(refusal, reason)),
            End::NoSuchGroup => Some((call.wait, NestedEnd::NoSuchGroup)),
            End::TooFar => {
                let reason = "the way to the other cell takes longer than the handler has";
                reply(KeptReply::Refused(Refusal::Busy, reason.into()))
            }
            End::NoWay => Some((call.wait, NestedEnd::NoReplica)),
            End::Lost => None,
        }
    }
}

fn as_of_client(call: &AwayCall) -> Call {
    let AwayCall { client, number, unanswered, method, json, priority, .. } = *call;
    let (group, reading, body) = (call.group.clone(), Reading::No, call.body.clone());
    Call { client, number, unanswered, group, method, json, reading, priority, body }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wire::{ClientId, Duration, GroupId, MethodId};

    use super::*;

    fn call(number: u64) -> AwayCall {
        AwayCall {
            wait: AwayWait { caller: GroupId(1), child: (ClientId(7), number, 1), asked: 9 },
            cell: "line-a.porto".parse().unwrap(),
            group: "boards".into(),
            client: ClientId(8),
            number,
            unanswered: 1,
            method: MethodId(3),
            json: true,
            priority: 200,
            body: Bytes::from_static(b"[1]"),
            left: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_call_is_there_until_it_ends_or_nobody_waits() {
        let (mut calls, now) = (AwayCalls::default(), Time(1_000_000_000));
        assert!(!calls.has_beyond(0));
        calls.make(now, call(1));
        calls.make(now, call(2));
        let made = calls.beyond(now + Duration::from_millis(400), 0);
        let [first, second] = &made[..] else { panic!("{made:?}") };
        assert_eq!((first.number, second.number, first.left_us), (1, 2, 600_000));
        assert_eq!((first.to.as_str(), first.call().unwrap().number), ("line-a.porto", 1));
        assert_eq!(calls.beyond(now, 1).len(), 1);
        // The handler asks again: the former one is of no use.
        calls.make(now, call(1));
        assert!(calls.ended(1, End::NoSuchGroup).is_none() && calls.has_beyond(2));
        let ended = calls.ended(3, End::Answer(Bytes::from_static(b"2")));
        assert_eq!(ended, Some((call(1).wait, NestedEnd::Reply(KeptReply::Ok(b"2".to_vec())))));
        assert_eq!(calls.ended(2, End::Lost), None, "nobody knows");
        calls.make(now, call(4));
        calls.make(now + Duration::from_secs(2), call(5));
        assert_eq!(calls.beyond(now, 0).len(), 1, "one has waited long enough");
    }
}
