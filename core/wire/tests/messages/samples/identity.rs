//! Messages by rules that compare calls.

use bytes::Bytes;
use wire::ordered::{
    self, EntryKey, ForgottenSession, Identity, KeysState, ReplicaState, SessionKeys, StateHead,
    Update, UpdateHead,
};
use wire::{ClientId, GroupId, MethodId, Time};

/// A request that its session knows again so.
pub fn request(identity: Identity) -> ordered::Request {
    ordered::Request {
        group: GroupId(0xa1),
        method: MethodId(0xb1),
        json: true,
        read: false,
        client: ClientId(0xc1),
        number: 9,
        unanswered: 8,
        time: Time(0xd1),
        seed: 0xe1,
        proven: 0x65,
        timeout_us: 0x71,
        priority: 3,
        identity,
        origin: None,
        body: Bytes::from_static(b"body"),
    }
}

/// An update by rules that compare calls.
pub fn update() -> Update {
    let Update { head, change } = super::update();
    let keys = vec![EntryKey { identity: Identity::Key, asked: 0x92 }];
    Update { head: UpdateHead { keys, ..head }, change }
}

/// A state by rules that compare calls.
pub fn replica_state() -> ReplicaState {
    let ReplicaState { head, service } = super::replica_state();
    let (client, last_used) = (ClientId(0xc1), Time(0xd0));
    let session = SessionKeys { client, has_keys: true, asked: vec![(7, 0x92)] };
    let forgotten = ForgottenSession { client: ClientId(0xc2), last: 5, last_used };
    let keys = KeysState { sessions: vec![session], forgotten: vec![forgotten], dropped: 0x41 };
    ReplicaState { head: StateHead { keys: Some(keys), ..head }, service }
}
