//! Good messages, and what becomes of them on the way.

use bytes::Bytes;
use wire::client::{Access, Bind, Frame, Hello, Request as Call};
use wire::ring::{
    Ack, Beacon, Commit, CommitMember, CommitStep, Confirm, Confirmed, Data, Datagram, Join, Level,
    Message, Pulse, Stable, Stored, Token, Want, push_chunk,
};
use wire::versions::{Extension, RING, Speaks};
use wire::{
    ClientId, ClusterId, GroupId, Incarnation, Member, MethodId, NodeId, Random, RingId, ViewNumber,
};

/// A node that is in nobody's configuration. Forged datagrams of a member can do harm until
/// datagrams are authenticated; that is another experiment.
const STRANGER: Member = Member { node: NodeId(0x0909), incarnation: Incarnation(0x0909) };

/// A datagram of each kind.
pub fn datagrams(cluster: &str) -> Vec<Bytes> {
    let ring = RingId { sequence: 7, representative: NodeId(1) };
    let mut body = Vec::new();
    push_chunk(&mut body, true, true, Level::Agreed, b"ordered");
    let data = Data {
        ring,
        ack_wanted: true,
        complete: true,
        hop: 3,
        sequence: 4,
        stable: 2,
        origin: None,
        body: body.into(),
    };
    let token = Token {
        ring,
        hop: 4,
        sequence: 4,
        arus: vec![4; 3],
        done: 0,
        received: 0,
        wants: 1,
        home: 1,
        missing: vec![3],
        following: 0,
    };
    let entry = |node| CommitMember {
        member: Member { node: NodeId(node), incarnation: Incarnation(1) },
        old_ring: ring,
        aru: 4,
        high: 4,
        stable: 4,
        obliged: 0,
    };
    let messages = [
        Message::Data(data),
        Message::Token(token),
        Message::Ack(Ack { ring, hop: 4, aru: 4, missing: vec![1, 2] }),
        Message::Want(Want { ring }),
        Message::Join(Join {
            proposed: vec![STRANGER],
            failed: 0,
            slow: 0,
            heard: 1,
            ring_sequence: 9,
            charges: vec![],
            speaks: Speaks::ALL,
            extension: Extension::default(),
        }),
        Message::Commit(Commit { ring, step: CommitStep::Entry(entry(1)) }),
        Message::Commit(Commit { ring, step: CommitStep::Entries(vec![entry(1), entry(2)]) }),
        Message::Beacon(Beacon {
            ring,
            members: vec![STRANGER.node],
            heard: vec![NodeId(1)],
            welcome: 1,
            speaks: Speaks::ALL,
            extension: Extension::default(),
        }),
        Message::Stable(Stable { ring, hop: 4, stable: 4 }),
        Message::Pulse(Pulse {
            ring,
            hop: 4,
            number: 2,
            home: 0,
            stable: 4,
            sequence: 4,
            next: 40_000,
        }),
        Message::Stored(Stored { ring, stored: 4, question: true }),
        Message::Confirm(Confirm { ring, round: 1 }),
        Message::Confirmed(Confirmed { ring, round: 1, aru: 4 }),
    ];
    let cluster = ClusterId::of(cluster);
    let encode = |message| Datagram::new(cluster, RING.least, STRANGER, message).encode();
    messages.into_iter().map(encode).collect()
}

/// Clients' streams, with a good hello first or without.
pub fn streams(group: &str) -> Vec<Bytes> {
    let hello = Frame::Hello(Hello::new(ClientId(0x0909))).encode();
    let bind = Frame::Bind(Bind { name: group.into() }).encode();
    let call = Call {
        group: GroupId::of(group),
        client: ClientId(0x0909),
        number: 1,
        unanswered: 1,
        view: ViewNumber(1),
        method: MethodId::of("nothing"),
        timeout_us: 1_000,
        priority: 0,
        json: false,
        beside: false,
        has_key: false,
        access: Access::Read,
        body: Bytes::from_static(b"arguments"),
    };
    let call = Frame::Request(call).encode();
    let both = |frame: &Bytes| Bytes::from([&hello[..], &frame[..]].concat());
    vec![both(&bind), both(&call), hello.clone(), bind, call]
}

/// Requests at the admin socket.
pub fn lines(group: &str) -> Vec<Bytes> {
    let state = format!("{{\"state\":{{\"group\":\"{group}\"}}}}\n");
    let fixed = ["{\"status\":{}}\n", "{\"events\":{\"follow\":false}}\n", "{\"status\":{}}"];
    fixed.into_iter().map(str::to_owned).chain([state]).map(Bytes::from).collect()
}

/// Cuts the message, changes bytes of it, or makes it longer.
pub fn spoil(good: &Bytes, random: &mut Random) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let place = |random: &mut Random, length: usize| random.below(length.max(1) as u64) as usize;
    match random.below(4) {
        0 => bytes.truncate(place(random, bytes.len())),
        1 => bytes.extend((0..place(random, 64)).map(|_| random.next_u64() as u8)),
        _ => {
            for _ in 0..=random.below(4) {
                let place = place(random, bytes.len());
                bytes[place] = random.next_u64() as u8;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_what_is_spoilt_is_no_message_any_more() {
        let mut random = Random::new(1);
        let good = datagrams("trial");
        let cluster = ClusterId::of("trial");
        assert!(good.iter().all(|bytes| Datagram::decode(cluster, RING, bytes).is_ok()));
        let bad = (0..1_000).filter(|i| {
            let bytes = spoil(&good[i % good.len()], &mut random);
            Datagram::decode(cluster, RING, &bytes.into()).is_err()
        });
        assert!(bad.count() > 500);
    }
}
