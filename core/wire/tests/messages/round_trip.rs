//! Every message is read as it was written.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::client::Frame;
use wire::kept::{NodeRecord, Recollection};
use wire::ordered::{Change, LoggedState, Ordered, ReplicaState, Update};
use wire::ring::{Data, Datagram, Level, Message, push_chunk};

use wire::versions::RING;

use crate::samples::CLUSTER;
use crate::strategies;

proptest! {
    #[test]
    fn datagrams_come_back(datagram in strategies::datagram()) {
        prop_assert_eq!(Datagram::decode(CLUSTER, RING, &datagram.encode()), Ok(datagram));
    }

    #[test]
    fn ordered_messages_come_back(message in strategies::ordered()) {
        prop_assert_eq!(Ordered::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn what_a_node_keeps_comes_back(
        record in strategies::node_record(),
        recollection in strategies::recollection(),
    ) {
        prop_assert_eq!(NodeRecord::decode(&record.encode()), Ok(record));
        prop_assert_eq!(Recollection::decode(&recollection.encode()), Ok(recollection));
    }

    #[test]
    fn replica_states_come_back(state in strategies::replica_state()) {
        prop_assert_eq!(ReplicaState::decode(&state.encode().whole()), Ok(state));
    }

    #[test]
    fn updates_come_back(update in strategies::update(), change in strategies::change()) {
        prop_assert_eq!(Update::decode(&update.encode()), Ok(update));
        prop_assert_eq!(Change::decode(&change.encode()), Ok(change));
    }

    #[test]
    fn logged_states_come_back(state in strategies::logged_state()) {
        prop_assert_eq!(LoggedState::decode(&state.encode().whole()), Ok(state));
    }

    #[test]
    fn chunks_come_back(
        chunks in vec((any::<bool>(), any::<bool>(), vec(any::<u8>(), 0..50)), 0..8),
        datagram in strategies::datagram(),
    ) {
        let mut body = Vec::new();
        for (first, last, bytes) in &chunks {
            push_chunk(&mut body, *first, *last, Level::Safe, bytes);
        }
        let data = Data {
            ring: Default::default(),
            ack_wanted: false,
            complete: false,
            hop: 0,
            sequence: 1,
            stable: 0,
            origin: None,
            body: body.into(),
        };
        let sent = Datagram::new(CLUSTER, 1, datagram.sender, Message::Data(data));
        let Message::Data(data) = Datagram::decode(CLUSTER, RING, &sent.encode()).unwrap().message else {
            panic!("data came back as something else");
        };
        let back: Vec<_> =
            data.chunks().map(|chunk| (chunk.first, chunk.last, chunk.bytes.to_vec())).collect();
        prop_assert!(data.chunks().all(|chunk| chunk.level == data.level()));
        prop_assert_eq!(back, chunks);
    }

    /// A stream brings bytes in pieces of any size: the frames are the same, and nothing is left.
    #[test]
    fn frames_come_back_however_the_stream_cuts_them(
        frames in vec(strategies::frame(), 1..4),
        piece in 1..200usize,
    ) {
        let stream: Bytes = frames.iter().flat_map(Frame::encode).collect();
        let mut buffer = BytesMut::new();
        let mut back = Vec::new();
        for piece in stream.chunks(piece) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = Frame::take(&mut buffer).unwrap() {
                back.push(frame);
            }
        }
        prop_assert_eq!(back, frames);
        prop_assert!(buffer.is_empty());
    }
}
