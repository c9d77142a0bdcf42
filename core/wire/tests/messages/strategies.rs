//! Any message that a sender may write.

mod backup;
mod frames;
mod hosts;
mod identity;
mod kept;
mod keys;
mod log;
mod poison;
mod roster;
mod versions;

use std::net::SocketAddr;

use bytes::Bytes;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use wire::bench;
use wire::keys::KeyStep;
use wire::limits::{
    MAX_MEMBERS, MAX_NAME, MAX_NESTED_DEPTH, MAX_REPLICAS, MAX_RETRANSMIT_REQUESTS,
};
use wire::ordered::{
    self, AckLevel, Announce, Component, Durability, GroupEntry, GroupOptions, Install, JoinGroup,
    Place,
};
use wire::ordered::{Absent, Ballot, Change, Difference, Digest, Edit, StateChunk, StateHead};
use wire::ordered::{Activate, Going};
use wire::ordered::{
    Demote, End, KeptReply, LeaveGroup, Move, NestedEnd, Ordered, Recall, Recalled, ReplicaEntry,
    ReplicaState, Restyle, Style, nested_client, nested_number,
};
use wire::ordered::{PrimaryChunk, Relay, SessionState, StateDeclined, StateOffer, Synced, Told};
use wire::ordered::{Update, UpdateEntry, UpdateHead};
use wire::ring::{
    Ack, Beacon, Charge, Commit, CommitMember, CommitStep, Data, Datagram, Join, MAX_CHARGES,
    Message,
};
use wire::ring::{
    Confirm, Confirmed, Level, MAX_ENTRIES, Origin, Pulse, Stable, Stored, Token, Want, push_chunk,
};
use wire::roster::Roster;
use wire::{ClientId, GroupId, Incarnation, Member, MethodId, NodeId, RingId, Time, ViewNumber};

use crate::samples::CLUSTER;
pub use frames::frame;
use frames::refusal;
use hosts::{of_states, rank, shedding, usage};
use versions::{extension, program, speaks};

pub use kept::{node_record, recollection};
pub use log::logged_state;
use poison::{died, poison, poisoned, progress};

fn member() -> impl Strategy<Value = Member> {
    any::<(u32, u64)>()
        .prop_map(|(node, life)| Member { node: NodeId(node), incarnation: Incarnation(life) })
}

fn ring() -> impl Strategy<Value = RingId> {
    any::<(u64, u32)>()
        .prop_map(|(sequence, node)| RingId { sequence, representative: NodeId(node) })
}

fn bytes(limit: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=limit).prop_map(Bytes::from)
}

fn chunks() -> impl Strategy<Value = Bytes> {
    let level = any::<bool>().prop_map(|safe| if safe { Level::Safe } else { Level::Agreed });
    let chunks = vec((any::<bool>(), any::<bool>(), bytes(40)), 0..6);
    (level, chunks).prop_map(|(level, chunks)| {
        let mut body = Vec::new();
        for (first, last, bytes) in chunks {
            push_chunk(&mut body, first, last, level, &bytes);
        }
        body.into()
    })
}

fn data() -> impl Strategy<Value = Data> {
    let origin = (ring(), member(), 1..u64::MAX).prop_map(|(ring, sender, sequence)| Origin {
        ring,
        sender,
        sequence,
    });
    let head = (ring(), any::<[bool; 2]>(), any::<u64>(), 1..u64::MAX, any::<u64>());
    (head, option::of(origin), chunks()).prop_map(
        |((ring, [ack_wanted, complete], hop, sequence, stable), origin, body)| Data {
            ring,
            ack_wanted,
            complete,
            hop,
            sequence,
            stable,
            origin,
            body,
        },
    )
}

fn token() -> impl Strategy<Value = Token> {
    let arus = vec(any::<u64>(), 1..=MAX_MEMBERS);
    let missing = vec(any::<u64>(), 0..=MAX_RETRANSMIT_REQUESTS);
    (ring(), any::<[u64; 5]>(), arus, any::<prop::sample::Index>(), missing, any::<u16>()).prop_map(
        |(ring, [hop, sequence, done, received, wants], arus, home, missing, following)| Token {
            ring,
            hop,
            sequence,
            home: home.index(arus.len()) as u8,
            arus,
            done,
            received,
            wants,
            missing,
            following,
        },
    )
}

/// Lives of nodes, in order, each node once.
fn lives(count: core::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Member>> {
    let life = |(node, life)| Member { node: NodeId(node), incarnation: Incarnation(life) };
    btree_map(any::<u32>(), any::<u64>(), count)
        .prop_map(move |lives| lives.into_iter().map(life).collect())
}

fn low_bits(bits: u64, count: usize) -> u64 {
    if count >= 64 { bits } else { bits & !(u64::MAX << count) }
}

fn join() -> impl Strategy<Value = Join> {
    let figures = vec(any::<(u8, [u32; 3], u8)>(), 0..=MAX_CHARGES);
    let said = (speaks(), extension());
    (lives(0..=MAX_MEMBERS), any::<[u64; 4]>(), figures, said).prop_map(
        |(proposed, words, figures, said)| {
            let [failed, slow, heard, ring_sequence] = words;
            let failed = low_bits(failed, proposed.len());
            let heard = low_bits(heard, proposed.len());
            let slow = slow & failed;
            let named = (0..64).filter(|place| slow >> place & 1 == 1);
            let charge = |(member, figures): (u8, (u8, [u32; 3], u8))| {
                let (by, [stopped, within, limit_us], share) = figures;
                Charge {
                    member,
                    by: (usize::from(by) % proposed.len()) as u8,
                    stopped_us: stopped.min(within),
                    within_us: stopped.max(within),
                    limit_us,
                    share: share % 101,
                }
            };
            let charges = named.zip(figures).map(charge).collect();
            let (speaks, extension) = said;
            Join { proposed, failed, slow, heard, ring_sequence, charges, speaks, extension }
        },
    )
}

fn commit() -> impl Strategy<Value = Commit> {
    let entry = |(member, old_ring, [aru, high, stable, obliged]): (Member, RingId, [u64; 4])| {
        CommitMember { member, old_ring, aru, high, stable, obliged }
    };
    let entries = (lives(1..=MAX_ENTRIES), ring(), any::<[u64; 4]>()).prop_map(
        move |(lives, ring, words)| {
            lives.into_iter().map(|member| entry((member, ring, words))).collect()
        },
    );
    let step = prop_oneof![
        lives(1..=MAX_MEMBERS).prop_map(CommitStep::Call),
        (member(), ring(), any::<[u64; 4]>()).prop_map(entry).prop_map(CommitStep::Entry),
        entries.prop_map(CommitStep::Entries),
    ];
    (ring(), step).prop_map(|(ring, step)| Commit { ring, step })
}

fn beacon() -> impl Strategy<Value = Beacon> {
    let nodes = || {
        btree_set(any::<u32>(), 0..=MAX_MEMBERS)
            .prop_map(|nodes| nodes.into_iter().map(NodeId).collect::<Vec<_>>())
    };
    let said = (speaks(), extension());
    (ring(), nodes(), nodes(), any::<u64>(), said).prop_map(
        |(ring, members, heard, welcome, said)| {
            let welcome = low_bits(welcome, heard.len());
            let (speaks, extension) = said;
            Beacon { ring, members, heard, welcome, speaks, extension }
        },
    )
}

pub fn datagram() -> impl Strategy<Value = Datagram> {
    let missing = vec(any::<u64>(), 0..=MAX_RETRANSMIT_REQUESTS);
    let ack = (ring(), any::<[u64; 2]>(), missing).prop_map(|(ring, [hop, aru], missing)| Ack {
        ring,
        hop,
        aru,
        missing,
    });
    let message = prop_oneof![
        data().prop_map(Message::Data),
        token().prop_map(Message::Token),
        ack.prop_map(Message::Ack),
        ring().prop_map(|ring| Message::Want(Want { ring })),
        join().prop_map(Message::Join),
        commit().prop_map(Message::Commit),
        beacon().prop_map(Message::Beacon),
        roster::part().prop_map(Message::RosterPart),
        (ring(), any::<[u64; 2]>()).prop_map(|(ring, [hop, stable])| Message::Stable(Stable {
            ring,
            hop,
            stable
        })),
        (ring(), any::<[u64; 5]>(), any::<u8>()).prop_map(
            |(ring, [hop, number, stable, sequence, next], home)| {
                Message::Pulse(Pulse { ring, hop, number, home, stable, sequence, next })
            }
        ),
        (ring(), any::<u64>(), any::<bool>()).prop_map(|(ring, stored, question)| {
            Message::Stored(Stored { ring, stored, question })
        }),
        (ring(), any::<u64>()).prop_map(|(ring, round)| Message::Confirm(Confirm { ring, round })),
        (ring(), any::<[u64; 2]>()).prop_map(|(ring, [round, aru])| {
            Message::Confirmed(Confirmed { ring, round, aru })
        }),
    ];
    (member(), message).prop_map(|(sender, message)| Datagram::new(CLUSTER, 1, sender, message))
}

fn name() -> impl Strategy<Value = String> {
    // Four bytes are the longest character of UTF-8.
    vec(any::<char>(), 0..=MAX_NAME / 4).prop_map(String::from_iter)
}

fn style() -> impl Strategy<Value = Style> {
    (0..Style::ALL.len()).prop_map(|place| Style::ALL[place])
}

fn options() -> impl Strategy<Value = GroupOptions> {
    let ack = prop_oneof![Just(AckLevel::One), Just(AckLevel::Majority), Just(AckLevel::All)];
    let durability = prop_oneof![Just(Durability::Memory), Just(Durability::Disk)];
    (style(), ack, durability).prop_map(|(style, ack, durability)| GroupOptions {
        style,
        ack,
        durability,
    })
}

fn component() -> impl Strategy<Value = Component> {
    (any::<u64>(), ring(), vec(member(), 0..8)).prop_map(|(epoch, ring, members)| Component {
        epoch,
        ring,
        members,
    })
}

fn place() -> impl Strategy<Value = Place> {
    (any::<[u64; 2]>(), ring()).prop_map(|([epoch, sequence], ring)| Place {
        epoch,
        ring,
        sequence,
    })
}

fn announce() -> impl Strategy<Value = Announce> {
    let attempts = vec(component(), 0..4);
    let replicas = vec((any::<u64>().prop_map(GroupId), place()), 0..4);
    let ahead = vec(any::<u64>().prop_map(GroupId), 0..4);
    let fixed = (ring(), any::<bool>(), component(), any::<u64>());
    let optional = (option::of(address()), option::of(recall()));
    let said = (program(), any::<u8>(), extension());
    (fixed, attempts, replicas, ahead, optional, said).prop_map(
        |(
            (ring, first_life, last, position),
            attempts,
            replicas,
            ahead,
            (address, recall),
            said,
        )| {
            let (program, level, extension) = said;
            Announce {
                ring,
                first_life,
                last,
                attempts,
                position,
                replicas,
                ahead,
                address,
                recall,
                program,
                level,
                extension,
                roster: Roster::default(),
            }
        },
    )
}

fn recall() -> impl Strategy<Value = Recall> {
    let groups = vec((group(), place()), 0..3);
    let waiting = vec(any::<u64>().prop_map(GroupId), 0..3);
    (any::<u64>(), any::<[bool; 2]>(), groups, waiting).prop_map(
        |(since, [restarted, volatile], groups, waiting)| Recall {
            since: Incarnation(since),
            restarted,
            volatile,
            groups,
            waiting,
        },
    )
}

fn group() -> impl Strategy<Value = GroupEntry> {
    let replica =
        (member(), any::<bool>()).prop_map(|(member, synced)| ReplicaEntry { member, synced });
    let members = || vec(member(), 0..=MAX_REPLICAS);
    let replicas = vec(replica, 0..=MAX_REPLICAS);
    let places = (place(), place());
    let others = (members(), members(), backup::deposit());
    (name(), options(), any::<u64>(), places, replicas, others).prop_map(
        |(name, options, view, (last, floor), replicas, (asleep, awaited, deposit))| {
            let view = ViewNumber(view);
            GroupEntry { name, options, view, last, floor, replicas, asleep, awaited, deposit }
        },
    )
}

fn install() -> impl Strategy<Value = Install> {
    let programs = vec((any::<u32>().prop_map(NodeId), program()), 0..3);
    (ring(), any::<u64>(), vec(group(), 0..4), option::of(keys::key_table()), programs).prop_map(
        |(ring, epoch, groups, keys, programs)| {
            let roster = Roster::default();
            Install { ring, epoch, groups, keys, programs, roster }
        },
    )
}

/// A call's number and a smaller or equal `unanswered`.
fn numbers() -> impl Strategy<Value = (u64, u64)> {
    (1..=u64::MAX).prop_flat_map(|number| (Just(number), 0..=number))
}

fn ordered_request() -> impl Strategy<Value = ordered::Request> {
    (any::<[u64; 5]>(), any::<[u32; 2]>(), any::<bool>(), numbers(), bytes(64)).prop_map(
        |(
            [group, client, time, seed, proven],
            [method, timeout_us],
            json,
            (number, unanswered),
            body,
        )| {
            ordered::Request {
                group: GroupId(group),
                method: MethodId(method),
                json,
                read: number % 3 == 0,
                client: ClientId(client),
                number,
                unanswered,
                time: Time(time),
                seed,
                proven: proven >> 1,
                timeout_us,
                priority: number as u8,
                identity: identity::any(seed),
                origin: None,
                body,
            }
        },
    )
}

fn ballot_positions() -> impl Strategy<Value = (Option<u64>, u64)> {
    (prop::option::of(0..u64::MAX / 2), 1..u64::MAX / 2)
}

/// A call that a group makes: its client and number follow from its parent's.
fn nested_request() -> impl Strategy<Value = ordered::Request> {
    let origin = (any::<u64>(), vec(any::<u64>(), 1..=MAX_NESTED_DEPTH));
    (ordered_request(), origin, 1u64..1 << 40, 1u8..).prop_map(
        |(request, (client, path), parent, call)| {
            let path: Vec<GroupId> = path.into_iter().map(GroupId).collect();
            let origin = ordered::Origin { client: ClientId(client), path };
            ordered::Request {
                client: nested_client(origin.caller(), origin.client),
                number: nested_number(parent, call).expect("a small number"),
                unanswered: 0,
                origin: Some(Box::new(origin)),
                ..request
            }
        },
    )
}

fn nested_end() -> impl Strategy<Value = NestedEnd> {
    let end = prop_oneof![
        kept_reply().prop_map(End::Reply),
        Just(End::Diverged),
        Just(End::Deadline),
        Just(End::NoReplica),
        Just(End::NoSuchGroup),
        Just(End::Split),
    ];
    (any::<[u64; 4]>(), 1u64.., 1u8.., end).prop_map(
        |([callee, caller, client, asked], number, call, end)| NestedEnd {
            callee: GroupId(callee),
            caller: GroupId(caller),
            client: ClientId(client),
            number,
            call,
            asked,
            end,
        },
    )
}

pub fn ordered() -> impl Strategy<Value = Ordered> {
    let chunk = (any::<[u64; 2]>(), any::<u32>(), any::<bool>(), bytes(64)).prop_map(
        |([group, transfer], index, last, bytes)| StateChunk {
            group: GroupId(group),
            transfer: ViewNumber(transfer),
            index,
            last,
            bytes,
        },
    );
    let what = prop_oneof![Just(Told::Update), Just(Told::Checkpoint)];
    let piece = (any::<u32>(), any::<bool>(), bytes(64));
    let update = (any::<[u64; 2]>(), what, place(), piece).prop_map(
        |([group, number], what, since, (index, last, bytes))| PrimaryChunk {
            group: GroupId(group),
            what,
            since,
            number,
            index,
            last,
            bytes,
        },
    );
    let load = (any::<u32>(), any::<u16>(), any::<u64>(), any::<bool>(), bytes(64)).prop_map(
        |(id, place, number, echo, content)| bench::Load { id, place, number, echo, content },
    );
    let going = prop_oneof![Just(Going::ForGood), Just(Going::Returns), Just(Going::IfSpared)];
    prop_oneof![
        load.prop_map(Ordered::Load),
        (any::<u32>(), any::<u64>())
            .prop_map(|(id, sent)| Ordered::Bench(Box::new(bench::Word::Done { id, sent }))),
        ordered_request().prop_map(Ordered::Request),
        nested_request().prop_map(Ordered::Request),
        nested_end().prop_map(Ordered::NestedEnd),
        announce().prop_map(|announce| Ordered::Announce(Box::new(announce))),
        keys::offered_key().prop_map(|key| Ordered::Key(KeyStep::Offer(key))),
        keys::key_name().prop_map(|name| Ordered::Key(KeyStep::Sealing(name))),
        install().prop_map(|install| Ordered::Install(Box::new(install))),
        (name(), options())
            .prop_map(|(name, options)| Ordered::JoinGroup(JoinGroup { name, options })),
        (any::<u64>(), going, option::of(died())).prop_map(|(group, going, died)| {
            Ordered::LeaveGroup(LeaveGroup { group: GroupId(group), going, died })
        }),
        chunk.prop_map(Ordered::StateChunk),
        (any::<u64>(), place()).prop_map(|(group, taken)| {
            Ordered::Recalled(Recalled { group: GroupId(group), taken })
        }),
        (any::<[u64; 2]>(), member()).prop_map(|([group, view], to)| Ordered::Move(Move {
            group: GroupId(group),
            to,
            view: ViewNumber(view)
        })),
        (any::<[u64; 2]>(), style()).prop_map(|([group, view], style)| Ordered::Restyle(Restyle {
            group: GroupId(group),
            view: ViewNumber(view),
            style
        })),
        (any::<[u64; 2]>(), died()).prop_map(|([group, view], died)| {
            Ordered::Demote(Demote { group: GroupId(group), view: ViewNumber(view), died })
        }),
        progress().prop_map(Ordered::Progress),
        poisoned().prop_map(Ordered::Poisoned),
        usage().prop_map(Ordered::Usage),
        rank().prop_map(Ordered::Rank),
        shedding().prop_map(Ordered::Shedding),
        of_states(),
        backup::step().prop_map(Ordered::Backup),
        any::<u8>().prop_map(|level| Ordered::Activate(Activate { level })),
        roster::ordered(),
        update.prop_map(Ordered::PrimaryChunk),
        relay().prop_map(Ordered::Relay),
        (any::<[u64; 3]>(), ballot_positions(), prop::collection::vec(any::<[u8; 16]>(), 0..9))
            .prop_map(|([group, since, proven], (opening, first), digests)| Ordered::Ballot(
                Ballot {
                    group: GroupId(group),
                    since,
                    opening,
                    first,
                    proven: proven >> 1,
                    begun: proven & 1 == 1,
                    digests: digests.into_iter().map(Digest).collect(),
                }
            )),
        (any::<[u64; 2]>(), member()).prop_map(|([group, position], member)| Ordered::Absent(
            Absent { group: GroupId(group), member, position }
        )),
        (any::<[u64; 2]>(), 0..3_u64 << 28).prop_map(|([group, transfer], bytes)| {
            let (group, transfer) = (GroupId(group), ViewNumber(transfer));
            match bytes % 3 {
                0 => Ordered::Synced(Synced { group, transfer }),
                1 => Ordered::StateDeclined(StateDeclined { group, transfer }),
                _ => Ordered::StateOffer(StateOffer { group, transfer, bytes }),
            }
        }),
    ]
}

fn kept_reply() -> impl Strategy<Value = KeptReply> {
    prop_oneof![
        bytes(32).prop_map(|bytes| KeptReply::Ok(bytes.to_vec())),
        bytes(32).prop_map(|bytes| KeptReply::Service(bytes.to_vec())),
        (refusal(), name()).prop_map(|(refusal, reason)| KeptReply::Refused(refusal, reason)),
    ]
}

fn relay() -> impl Strategy<Value = Relay> {
    (any::<[u64; 3]>(), place(), kept_reply()).prop_map(
        |([group, client, number], since, reply)| Relay {
            group: GroupId(group),
            since,
            client: ClientId(client),
            number,
            reply,
            asked: if client % 2 == 0 { 0 } else { client },
        },
    )
}

pub fn update() -> impl Strategy<Value = Update> {
    let entry = (any::<[u64; 4]>(), kept_reply()).prop_map(
        |([client, number, unanswered, asked], reply)| UpdateEntry {
            client: ClientId(client),
            number,
            unanswered,
            asked,
            reply,
        },
    );
    (any::<u64>(), vec(entry, 0..4), vec(poison(), 0..2), bytes(64)).prop_map(
        |(clock, entries, poisoned, change)| {
            let compared = entries.iter().filter(|_| clock % 2 == 0);
            let keys = compared.map(identity::key).collect();
            Update { head: UpdateHead { clock: Time(clock), entries, poisoned, keys }, change }
        },
    )
}

pub fn change() -> impl Strategy<Value = Change> {
    let edit = any::<[u32; 3]>().prop_map(|[keep, drop, put]| Edit { keep, drop, put });
    let difference = (any::<u64>(), vec(edit, 0..5), bytes(64))
        .prop_map(|(base, edits, put)| Difference { base, edits, put });
    prop_oneof![
        bytes(64).prop_map(Change::Whole),
        difference.prop_map(Change::Difference),
        bytes(64).prop_map(Change::Own),
    ]
}

pub fn replica_state() -> impl Strategy<Value = ReplicaState> {
    let replies = vec((any::<u64>(), kept_reply()), 0..4);
    let session = (any::<[u64; 3]>(), replies, vec(any::<(u64, u64)>(), 0..3)).prop_map(
        |([client, unanswered, last_used], replies, asked)| SessionState {
            client: ClientId(client),
            unanswered,
            last_used: Time(last_used),
            replies,
            asked,
        },
    );
    (any::<[u64; 4]>(), vec(session, 0..4), vec(poison(), 0..3), bytes(64)).prop_map(
        |([executed, asks, updates, clock], sessions, poisoned, service)| ReplicaState {
            head: StateHead {
                executed,
                asks,
                updates,
                clock: Time(clock),
                keys: (executed % 2 == 0).then(|| identity::of(&sessions)),
                sessions,
                poisoned,
            },
            service,
        },
    )
}

/// An IPv6 address without scope and flow: those name an interface of one host and are not sent.
fn address() -> impl Strategy<Value = SocketAddr> {
    any::<(std::net::IpAddr, u16)>().prop_map(SocketAddr::from)
}
