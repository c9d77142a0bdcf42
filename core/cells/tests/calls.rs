//! Calls of other cells at a node: whose they are, and which is which.

use std::net::SocketAddr;

use bytes::Bytes;
use steadfast_cells::{
    Call, Carrier, Carry, Cell, Command, Course, End, Epoch, Event, Hello, LinkId, Made, Message,
    OLDEST, Origin, Output, Path, Reading, Router, Sight, Tree, VERSION,
};
use wire::{ClientId, Duration, Incarnation, Member, MethodId, NodeId, Time};

const BEGIN: Time = Time(1_700_000_000_000_000_000);
const SECOND: Duration = Duration::from_secs(1);

fn path(text: &str) -> Path {
    text.parse().expect("a path")
}

/// The seat of `line.porto`.
struct Seat {
    book: Cell,
    router: Router<Tree>,
    links: u64,
}

impl Seat {
    fn new() -> Seat {
        Seat::with_router(Router::new(NodeId(1), Tree))
    }

    fn with_router(router: Router<Tree>) -> Seat {
        let mut book = Cell::new(path("line.porto"));
        let member = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let at = SocketAddr::from(([127, 0, 0, 1], 1));
        book.apply(BEGIN, Command::Carry(Carrier { member, links: at, calls: at })).unwrap();
        Seat { book, router, links: LinkId::ACCEPTED.0 }
    }

    fn with(&mut self, give: impl FnOnce(&mut Router<Tree>, &Sight<'_>)) -> Vec<Output> {
        let (order, wall) = (&[NodeId(1)], BEGIN);
        let sight = Sight { cell: &self.book, rank: Some(0), order, parent: &[], nodes: 1, wall };
        give(&mut self.router, &sight);
        std::iter::from_fn(|| self.router.poll_output()).collect()
    }

    /// A link comes from a node of this cell, which speaks this version.
    fn linked(&mut self, from: &str, version: u8) -> LinkId {
        let link = LinkId(self.links);
        self.links += 1;
        let proven = Some((path(from), NodeId(1)));
        self.with(|router, sight| router.handle_link_up(BEGIN, link, proven, sight));
        let hello = Hello { version, path: path(from), node: NodeId(1) };
        self.hear(link, Message::Hello(hello));
        link
    }

    fn hear(&mut self, link: LinkId, message: Message) -> Vec<Output> {
        self.with(|router, sight| router.handle_message(BEGIN, link, message, sight))
    }
}

fn call(group: &str, number: u64) -> Call {
    Call {
        client: ClientId(7),
        number,
        unanswered: 1,
        group: group.into(),
        method: MethodId(1),
        json: false,
        reading: Reading::No,
        priority: 0,
        body: Bytes::new(),
    }
}

fn carry(to: &str, group: &str, number: u64) -> Carry {
    let (to, left, course) = (path(to), SECOND, Course::default());
    Carry { id: number, to, left, hops: 4, course, call: call(group, number) }
}

fn origin(cell: &str) -> Origin {
    Origin { cell: path(cell), name: "client-hmi".into() }
}

/// Executions, and whose each is.
type Executed = Vec<(u64, Option<Origin>)>;

fn executed(outputs: &[Output]) -> Executed {
    let executed = outputs.iter().filter_map(|output| match output {
        Output::Execute { call, origin, .. } => Some((*call, origin.clone())),
        _ => None,
    });
    executed.collect()
}

/// Calls of one number to two groups, and what is executed for each.
fn two_groups(seat: &mut Seat) -> (LinkId, Executed, Executed) {
    let link = seat.linked("porto", VERSION);
    let mut calls = [carry("line.porto", "one", 1), carry("line.porto", "other", 1)];
    calls[1].id = 2;
    let [one, other] = calls.map(|carry| executed(&seat.hear(link, Message::Carry(carry))));
    (link, one, other)
}

#[test]
fn the_two_links_of_a_cell_below_end_at_two_nodes() {
    let mut seat = Seat::new();
    let at = SocketAddr::from(([127, 0, 0, 1], 2));
    let member = Member { node: NodeId(2), incarnation: Incarnation(1) };
    seat.book.apply(BEGIN, Command::Carry(Carrier { member, links: at, calls: at })).unwrap();
    let (first, other) =
        (seat.linked("a.line.porto", VERSION), seat.linked("b.line.porto", VERSION));
    let renew = |seat: &mut Seat, order: &[NodeId], ms: u64, link| -> Vec<LinkId> {
        let (now, parent) = (BEGIN + Duration::from_millis(ms), &[]);
        let sight = Sight { cell: &seat.book, rank: Some(0), order, parent, nodes: 2, wall: BEGIN };
        seat.router.handle_message(now, link, Message::Renew(Epoch(1)), &sight);
        let outputs = std::iter::from_fn(|| seat.router.poll_output());
        let closed = outputs.filter_map(|output| match output {
            Output::Close(link) => Some(link),
            _ => None,
        });
        closed.collect()
    };
    let both = [NodeId(1), NodeId(2)];
    assert_eq!(renew(&mut seat, &both, 0, first), [], "each cell has one");
    let second = seat.linked("a.line.porto", VERSION);
    assert_eq!(renew(&mut seat, &[NodeId(1)], 1, first), [], "there is no other node");
    assert_eq!(renew(&mut seat, &both, 2, first), [second]);
    let again = seat.linked("a.line.porto", VERSION);
    assert_eq!(renew(&mut seat, &both, 3, first), [], "it has found no other");
    assert_eq!(renew(&mut seat, &both, 10_002, first), [again]);
    assert_eq!(renew(&mut seat, &both, 10_003, other), []);
}

#[test]
fn calls_of_one_number_to_two_groups_are_two() {
    let mut seat = Seat::new();
    let (link, one, other) = two_groups(&mut seat);
    assert_eq!((one.len(), other.len()), (1, 1));
    let again = executed(&seat.hear(link, Message::Carry(carry("line.porto", "one", 1))));
    assert_eq!(again, [], "it is being executed");
    let end = End::Answer(Bytes::from_static(b"1"));
    let told = seat.with(|router, sight| router.handle_executed(one[0].0, end.clone(), sight));
    let ends: Vec<_> = told
        .into_iter()
        .map(|output| match output {
            Output::Send { message: Message::Carried { id, end }, .. } => (id, end),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ends, [(1, end)], "the other call has not ended");
}

#[test]
fn a_cell_vouches_for_its_own_callers_and_those_below_it() {
    let mut seat = Seat::new();
    let (above, below) = (seat.linked("porto", VERSION), seat.linked("a.line.porto", VERSION));
    let mut number = 0;
    let mut from = |seat: &mut Seat, link, cell: &str| {
        number += 1;
        let carry = carry("line.porto", "boards", number);
        let outputs = seat.hear(link, Message::CarryFor(origin(cell), carry));
        let misbehaved =
            |output: &Output| matches!(output, Output::Event(Event::Misbehaved { .. }));
        let is_closed = outputs.iter().any(misbehaved);
        (executed(&outputs).pop().map(|(_, origin)| origin), is_closed)
    };
    let named = |cell: &str| (Some(Some(origin(cell))), false);
    assert_eq!(from(&mut seat, above, "porto"), named("porto"));
    assert_eq!(from(&mut seat, above, "line-b.porto"), named("line-b.porto"));
    // By way of a cell above, when a cell below has lost its way: nobody vouches for that.
    for own in ["line.porto", "b.line.porto"] {
        assert_eq!(from(&mut seat, above, own), (Some(None), false), "{own}");
    }
    assert_eq!(from(&mut seat, below, "a.line.porto"), named("a.line.porto"));
    assert_eq!(from(&mut seat, below, "x.a.line.porto"), named("x.a.line.porto"));
    for other in ["line.porto", "porto", "b.line.porto"] {
        let below = seat.linked("a.line.porto", VERSION);
        assert_eq!(from(&mut seat, below, other), (None, true), "{other}");
    }
}

#[test]
fn a_neighbour_of_the_former_version_carries_calls_without_names() {
    let mut seat = Seat::new();
    let (old, new) = (seat.linked("a.line.porto", OLDEST), seat.linked("b.line.porto", VERSION));
    let mut goes = |to: &str, number| {
        let caller = Some("client-hmi".into());
        let made = Made { to: path(to), call: call("boards", number), left: SECOND, caller };
        seat.with(|router, sight| router.call(BEGIN, number, made, sight))
    };
    let sent = |outputs: &[Output], by: LinkId, is: fn(&Message) -> bool| {
        let sent = |output: &Output| matches!(output, Output::Send { link, message, .. } if *link == by && is(message));
        outputs.iter().filter(|output| sent(output)).count()
    };
    let outputs = goes("a.line.porto", 1);
    assert_eq!(sent(&outputs, old, |message| matches!(message, Message::Carry(_))), 1);
    let outputs = goes("b.line.porto", 2);
    let named = |message: &Message| matches!(message, Message::CarryFor(from, _) if *from == origin("line.porto"));
    assert_eq!(sent(&outputs, new, named), 1);
    // Its own calls come without a name, and the version before that is not understood.
    let outputs = seat.hear(old, Message::Carry(carry("line.porto", "boards", 3)));
    assert_eq!(executed(&outputs).pop().unwrap().1, None);
    let link = LinkId(seat.links);
    seat.with(|router, sight| router.handle_link_up(BEGIN, link, None, sight));
    let hello = Hello { version: OLDEST - 1, path: path("c.line.porto"), node: NodeId(1) };
    let outputs = seat.hear(link, Message::Hello(hello));
    let why = outputs.iter().find_map(|output| match output {
        Output::Event(Event::Misbehaved { why, .. }) => Some(*why),
        _ => None,
    });
    assert_eq!(why, Some("its version is too old"));
}

#[cfg(feature = "planted-bugs")]
#[test]
fn each_planted_mistake_breaks_a_claim() {
    use steadfast_cells::Bug;

    for bug in Bug::CALLS {
        let mut seat = Seat::with_router(Router::with_bug(NodeId(1), Tree, *bug));
        let is_found = match bug {
            Bug::BelieveOrigins => {
                let below = seat.linked("a.line.porto", VERSION);
                let forged = Message::CarryFor(origin("porto"), carry("line.porto", "boards", 1));
                executed(&seat.hear(below, forged)).len() == 1
            }
            Bug::KeyWithoutGroup => two_groups(&mut seat).2.is_empty(),
            other => panic!("{other:?} is none of calls"),
        };
        assert!(is_found, "{bug:?}");
    }
}
