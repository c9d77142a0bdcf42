//! A log of requests, as it goes to disk.

use bytes::Bytes;
use wire::ordered::{End, KeptReply, LoggedState, NestedEnd};
use wire::{ClientId, GroupId, MethodId, NodeId, Time};

use super::replica_state;

/// A checkpoint, and the two requests after it.
pub fn logged_state() -> LoggedState {
    let request = |number| {
        let body = Bytes::from_static(b"arguments");
        let (group, method, client) = (GroupId(0xa1), MethodId(0xe1), ClientId(0xc1));
        let (time, seed, unanswered) = (Time(0xd1), 0x5eed, 7);
        wire::ordered::Request {
            group,
            method,
            json: false,
            read: false,
            client,
            number,
            unanswered,
            time,
            seed,
            proven: 0x65,
            timeout_us: 0x71,
            priority: 3,
            identity: wire::ordered::Identity::Number,
            origin: None,
            body,
        }
    };
    let log = vec![request(9), request(10)];
    let end = NestedEnd {
        callee: GroupId(0xa2),
        caller: GroupId(0xa1),
        client: ClientId(0xc1),
        number: 9,
        call: 2,
        asked: 0x91,
        end: End::Reply(KeptReply::Ok(b"result".to_vec())),
    };
    let (checkpoint, ends) = (replica_state().encode().whole(), vec![(0x102, end)]);
    let poisoned = vec![(0x103, vec![NodeId(1), NodeId(3)])];
    let blamed = Vec::new();
    LoggedState {
        logged: 0x102,
        cut: 0x101,
        proven: 0x104,
        poisoned,
        checkpoint,
        log,
        ends,
        blamed,
    }
}
