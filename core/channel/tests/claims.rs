//! The claims of `star.txt`, sections 4.2 and 4.3, one for each test. With faults of all kinds they are
//! tried by the simulator's world `channels`.

use steadfast_channel::{Arrival, ChannelError, Channels, Choice, Head, Taken, Vector};

type Rank = Channels<&'static str>;

const FIRST: u32 = 0;
const OTHER: u32 = 1;

/// A message goes from one rank's log to the other.
fn carry(from: (&Rank, u32, u64), to: (&mut Rank, u32)) -> Vec<Arrival> {
    let (sender, rank, start) = from;
    let (receiver, number) = to;
    let wanted = receiver.wanted(rank);
    let messages: Vec<_> = sender.log(number, wanted).unwrap().map(|(h, p)| (h, *p)).collect();
    let arrived = |(head, place)| receiver.arrived(rank, start, head, place).unwrap();
    messages.into_iter().map(arrived).collect()
}

fn send(rank: &mut Rank, to: u32, words: &'static str) -> Head {
    rank.send(to, (7, words.len() as u64, words.len() as u32), words).unwrap()
}

fn took(rank: &mut Rank, from: u32) -> Option<&'static str> {
    rank.take(Some(from), None).unwrap().map(|Taken { place, .. }| place)
}

/// Saved, and restored from that.
fn restored(rank: &Rank, generation: u64) -> Rank {
    let vector = Vector::decode(&rank.vector().encode(), 2).unwrap();
    let log = |to| rank.whole_log(to, rank.first(to)).map(|(head, words)| (head, *words)).collect();
    Rank::restored(vector, vec![log(FIRST), log(OTHER)], generation, []).unwrap()
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
    assert_eq!(send(&mut again, OTHER, "two").number, 2, "it has the same number");
    let head = send(&mut again, OTHER, "three");
    for (head, words) in [(Head { number: 2, ..head }, "two"), (head, "three")] {
        let check = words.len() as u32;
        let head = Head { check, length: words.len() as u64, ..head };
        let arrival = receiver.arrived(FIRST, 2, head, words).unwrap();
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
    let below = receiver.retired(1)[FIRST as usize];
    assert_eq!(sender.release(OTHER, below).map(|(_, words)| words).collect::<Vec<_>>(), ["one"]);
    assert_eq!((sender.first(OTHER), sender.logged()), (2, 3));
    let gone = sender.log(OTHER, 1).err();
    assert!(matches!(gone, Some(ChannelError::Gap { wanted: 1, first: 2, .. })), "{gone:?}");
    // A later start does not know what an earlier one's states need.
    let mut later = restored(&receiver, 3);
    assert_eq!(later.retired(2), []);
    assert_eq!(later.retired(3), [2, 0]);
}

/// A choice that nobody knows may be made otherwise after a loss: so what follows on it waits.
#[test]
fn a_message_leaves_when_the_choices_before_it_are_noted() {
    let (mut rank, head) = (Rank::new(2), Head { number: 1, tag: 7, length: 1, check: 1 });
    send(&mut rank, OTHER, "before");
    rank.arrived(OTHER, 1, head, "x").unwrap();
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
fn a_rank_that_goes_back_chooses_as_before() {
    let mut rank = Rank::again(3, [Choice::From(2), Choice::There(false), Choice::Number(3)]);
    let head = Head { number: 1, tag: 7, length: 1, check: 1 };
    rank.arrived(OTHER, 1, head, "other").unwrap();
    assert_eq!(rank.take(None, None), Ok(None), "it had taken one of rank 2");
    rank.arrived(2, 1, head, "two").unwrap();
    assert_eq!(rank.take(None, None).unwrap().unwrap().place, "two");
    assert_eq!(rank.probe(None, None), Ok(false), "it had not come by then");
    assert_eq!(rank.number(|| 5), Ok(3));
    assert!(!rank.replays() && rank.unsaid().is_empty());
}

#[test]
fn a_program_that_does_not_repeat_itself_is_named() {
    let (mut receiver, head) = (Rank::new(2), Head { number: 1, tag: 7, length: 8, check: 5 });
    receiver.arrived(OTHER, 1, head, "x").unwrap();
    let other = Head { check: 6, ..head };
    let error = receiver.arrived(OTHER, 2, other, "y").unwrap_err();
    assert_eq!(error, ChannelError::Diverged { from: OTHER, number: 1, tag: 7 });
    assert!(error.to_string().contains("message 1 of rank 1 (tag 7)"), "{error}");
    let mut rank = Rank::again(2, [Choice::Number(3)]);
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
    let lost = Rank::restored(rank.vector(), vec![Vec::new(), Vec::new()], 1, []);
    assert!(matches!(lost, Err(ChannelError::Vector(_))), "its log is missing");
}
