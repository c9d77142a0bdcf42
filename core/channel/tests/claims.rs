//! The claims of `star.txt`, sections 4.2 and 4.3, one for each test. With faults of all kinds they are
//! tried by the simulator's world `channels`.

use steadfast_channel::{Arrival, ChannelError, Channels, Choice, Head, Notes, Taken, Vector};

type Rank = Channels<&'static str>;

const FIRST: u32 = 0;
const OTHER: u32 = 1;

fn noted<const MANY: usize>(choices: [Choice; MANY]) -> Notes {
    Notes { after: 0, choices: choices.to_vec() }
}

/// A message goes from one rank's log to the other.
fn carry(from: (&Rank, u32, u64), to: (&mut Rank, u32)) -> Vec<Arrival> {
    let (sender, rank, start) = from;
    let (receiver, number) = to;
    let wanted = receiver.wanted(rank);
    let messages: Vec<_> = sender.log(number, wanted).unwrap().map(|(h, p)| (h, *p)).collect();
    let arrived = |(head, place)| receiver.arrived(rank, start, head, place, body).unwrap();
    messages.into_iter().map(arrived).collect()
}

/// Stands for a checksum of a message's bytes.
fn body(words: &&'static str) -> u32 {
    words.len() as u32
}

/// The head of a first message of one byte.
fn first() -> Head {
    Head::after(0, 1, (7, 1, 1))
}

fn send(rank: &mut Rank, to: u32, words: &'static str) -> Head {
    rank.send(to, (7, words.len() as u64, words.len() as u32), words).unwrap()
}

fn took(rank: &mut Rank, from: u32) -> Option<&'static str> {
    rank.take(Some(from), None).unwrap().map(|Taken { place, .. }| place)
}

/// The choices of a rank that are noted, if all are that may be.
fn notes(rank: &Rank) -> Notes {
    let made = rank.vector().choices;
    Notes { after: made - rank.vector().unnoted.len() as u64, choices: Vec::new() }
}

/// Saved, and restored from that.
fn restored(rank: &Rank, generation: u64) -> Rank {
    let vector = Vector::decode(&rank.vector().encode(), 2).unwrap();
    let log = |to| rank.whole_log(to, rank.first(to)).map(|(head, words)| (head, *words)).collect();
    Rank::restored(vector, vec![log(FIRST), log(OTHER)], generation, notes(rank)).unwrap()
}

/// "A recovered process refers to this backup to access old messages. Thus, old valid senders are not
/// concerned by the recovery of a process."
#[test]
fn a_receiver_that_goes_back_finds_its_messages_in_the_senders_log() {
    let (mut sender, mut receiver) = (Rank::new(2), Rank::new(2));
    send(&mut sender, OTHER, "one");
    carry((&sender, FIRST, 1), (&mut receiver, OTHER));
    assert_eq!(took(&mut receiver, FIRST), Some("one"));
    let image = restored(&receiver, 1);
    send(&mut sender, OTHER, "two");
    carry((&sender, FIRST, 1), (&mut receiver, OTHER));
    assert_eq!(took(&mut receiver, FIRST), Some("two"));
    let mut again = image;
    carry((&sender, FIRST, 1), (&mut again, OTHER));
    assert_eq!((took(&mut again, FIRST), took(&mut again, FIRST)), (Some("two"), None));
}

/// "A recovered process sends again all messages since its last checkpoint [...] to discard already
/// received messages."
#[test]
fn what_a_sender_sends_again_is_discarded() {
    let (mut sender, mut receiver) = (Rank::new(2), Rank::new(2));
    send(&mut sender, OTHER, "one");
    let mut again = restored(&sender, 1);
    send(&mut sender, OTHER, "two");
    carry((&sender, FIRST, 1), (&mut receiver, OTHER));
    assert_eq!(
        (took(&mut receiver, FIRST), took(&mut receiver, FIRST)),
        (Some("one"), Some("two"))
    );
    let two = send(&mut again, OTHER, "two");
    assert_eq!(two.number, 2, "it has the same number");
    let three = send(&mut again, OTHER, "three");
    for (head, words) in [(two, "two"), (three, "three")] {
        let arrival = receiver.arrived(FIRST, 2, head, words, body).unwrap();
        assert_eq!(arrival == Arrival::New, words == "three");
    }
    assert_eq!(took(&mut receiver, FIRST), Some("three"));
}

/// "This method totally suppresses the domino-effect": both go back, each to a state of its own.
#[test]
fn both_may_go_back_at_once() {
    let (mut one, mut other) = (Rank::new(2), Rank::new(2));
    let other_before = restored(&other, 1);
    send(&mut one, OTHER, "one");
    carry((&one, FIRST, 1), (&mut other, OTHER));
    took(&mut other, FIRST).unwrap();
    let one_after = restored(&one, 1);
    send(&mut other, FIRST, "answer");
    let (one, mut other) = (one_after, other_before);
    carry((&one, FIRST, 2), (&mut other, OTHER));
    assert_eq!(took(&mut other, FIRST), Some("one"), "it is in the log of the sender's image");
}

/// "A log is completely deleted after each checkpoint": here after two, because the newest image may be
/// found damaged.
#[test]
fn a_log_goes_when_no_state_of_the_receiver_needs_it() {
    let (mut sender, mut receiver) = (Rank::new(2), Rank::new(2));
    for (generation, words) in [(1, "one"), (2, "two")] {
        send(&mut sender, OTHER, words);
        carry((&sender, FIRST, 1), (&mut receiver, OTHER));
        took(&mut receiver, FIRST).unwrap();
        let vector = receiver.vector();
        receiver.committed(generation, &vector);
    }
    let below = receiver.retired(1).unwrap().messages[FIRST as usize];
    assert_eq!(sender.release(OTHER, below).map(|(_, words)| words).collect::<Vec<_>>(), ["one"]);
    assert_eq!((sender.first(OTHER), sender.logged()), (2, 3));
    let gone = sender.log(OTHER, 1).err();
    assert!(matches!(gone, Some(ChannelError::Gap { wanted: 1, first: 2, .. })), "{gone:?}");
    // A later start does not know what an earlier one's states need.
    let mut later = restored(&receiver, 3);
    assert_eq!(later.retired(2), None);
    assert_eq!(later.retired(3).unwrap().messages, [2, 0]);
}

/// A choice that nobody knows may be made otherwise after a loss: so what follows on it waits.
#[test]
fn a_message_leaves_when_the_choices_before_it_are_noted() {
    let (mut rank, head) = (Rank::new(2), first());
    send(&mut rank, OTHER, "before");
    rank.arrived(OTHER, 1, head, "x", body).unwrap();
    rank.take(None, None).unwrap().unwrap();
    send(&mut rank, OTHER, "after");
    assert_eq!((rank.left(OTHER), rank.unsaid()), (1, vec![(1, Choice::From(OTHER))]));
    let mut again = restored(&rank, 1);
    assert_eq!((again.left(OTHER), again.unsaid()), (0, vec![(1, Choice::From(OTHER))]));
    rank.noted(1);
    again.noted(1);
    assert_eq!((rank.left(OTHER), again.left(OTHER)), (2, 2));
}

#[test]
fn notes_move_to_another_host_and_go_when_no_state_needs_them() {
    let mut rank = Rank::new(2);
    for number in 1..=3 {
        rank.number(|| number).unwrap();
        let vector = rank.vector();
        rank.committed(number, &vector);
    }
    assert_eq!((rank.unsaid().len(), rank.is_noted()), (3, false));
    rank.noted(3);
    assert!(rank.is_noted());
    assert_eq!(rank.retired(2).unwrap().choices, 2);
    rank.move_notes();
    assert_eq!((rank.unsaid(), rank.is_noted()), (vec![(3, Choice::Number(3))], false));
    // An image that was made before any of them was needless.
    let lost = Notes { after: 0, choices: Vec::new() };
    let vector = Vector { needless: 0, ..rank.vector() };
    let lost = Rank::restored(vector, vec![Vec::new(), Vec::new()], 3, lost);
    assert!(matches!(lost, Err(ChannelError::Notes { wanted: 2, .. })), "{lost:?}");
    send(&mut rank, OTHER, "gated");
    assert_eq!(rank.left(OTHER), 0);
    // All states have the choice by now: nobody will be told of it.
    rank.retired(3).unwrap();
    assert_eq!(rank.left(OTHER), 1);
}

#[test]
fn a_rank_that_goes_back_chooses_as_before() {
    let mut rank =
        Rank::again(3, noted([Choice::From(2), Choice::There(false), Choice::Number(3)])).unwrap();
    rank.arrived(OTHER, 1, first(), "other", |_| 1).unwrap();
    assert_eq!(rank.take(None, None), Ok(None), "it had taken one of rank 2");
    rank.arrived(2, 1, first(), "two", |_| 1).unwrap();
    assert_eq!(rank.take(None, None).unwrap().unwrap().place, "two");
    assert_eq!(rank.probe(None, None), Ok(false), "it had not come by then");
    assert_eq!(rank.number(|| 5), Ok(3));
    assert!(!rank.replays() && rank.unsaid().is_empty());
}

#[test]
fn a_program_that_does_not_repeat_itself_is_named() {
    let (mut receiver, head) = (Rank::new(2), first());
    receiver.arrived(OTHER, 1, head, "x", body).unwrap();
    let other = Head { check: 6, ..head };
    let error = receiver.arrived(OTHER, 2, other, "y", body).unwrap_err();
    assert_eq!(error, ChannelError::Diverged { from: OTHER, number: 1, tag: 7 });
    assert!(error.to_string().contains("message 1 of rank 1 (tag 7)"), "{error}");
    let mut rank = Rank::again(2, noted([Choice::Number(3)])).unwrap();
    assert_eq!(rank.probe(None, None), Err(ChannelError::Choice(1)));
    assert_eq!(rank.number(|| 5), Ok(3));
}

#[test]
fn nonsense_is_refused() {
    let mut rank = Rank::new(2);
    assert_eq!(rank.send(2, (0, 0, 0), "x"), Err(ChannelError::NoRank(2, 2)));
    assert_eq!(rank.take(Some(9), None), Err(ChannelError::NoRank(9, 2)));
    assert!(matches!(Vector::decode(&[1, 2, 3], 2), Err(ChannelError::Vector(_))));
    let bytes = Rank::new(3).vector().encode();
    assert!(matches!(Vector::decode(&bytes, 2), Err(ChannelError::Vector(_))));
    send(&mut rank, OTHER, "one");
    let lost = Rank::restored(rank.vector(), vec![Vec::new(), Vec::new()], 1, Notes::default());
    assert!(matches!(lost, Err(ChannelError::Vector(_))), "its log is missing");
}

#[test]
fn who_takes_from_anybody_leaves_nobody_out() {
    let mut rank: Channels<()> = Channels::new(3);
    let mut head = Head::after(0, 1, (7, 0, 0));
    for _ in 1..=2 {
        for from in 0..3 {
            rank.arrived(from, 1, head, (), |()| 0).unwrap();
        }
        head = Head::after(head.check, 2, (7, 0, 0));
    }
    let took: Vec<u32> = (0..6).map(|_| rank.take(None, None).unwrap().unwrap().from).collect();
    assert_eq!(took, [1, 2, 0, 1, 2, 0]);
}

#[test]
fn too_many_messages_that_are_taken_early_are_refused_until_the_oldest_is_taken() {
    let mut rank: Channels<()> = Channels::new(2);
    let mut before = 0;
    for number in 1..=steadfast_channel::MAX_AHEAD as u64 + 2 {
        let head = Head::after(before, number, (u32::from(number > 1), 0, 0));
        rank.arrived(1, 1, head, (), |()| 0).unwrap();
        before = head.check;
    }
    for _ in 0..steadfast_channel::MAX_AHEAD {
        rank.take(Some(1), Some(1)).unwrap().unwrap();
    }
    assert_eq!(rank.take(None, Some(1)), Err(ChannelError::Ahead(1, 0)));
    assert!(rank.unsaid().is_empty(), "nothing was chosen");
    assert_eq!(rank.take(Some(1), Some(0)).unwrap().unwrap().head.number, 1);
    assert!(rank.take(None, Some(1)).unwrap().is_some());
}
