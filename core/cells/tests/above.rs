//! A cell learns what is above it, whatever overtakes what.

use std::net::SocketAddr;

use bytes::Bytes;
use steadfast_cells::{
    Attached, Attachment, Call, Carrier, Cell, Command, Epoch, Hello, LinkId, Made, Message,
    Output, Path, Place, Reading, Router, Sight, Tree, VERSION,
};
use wire::{ClientId, Duration, Incarnation, Member, MethodId, NodeId, Time};

const BEGIN: Time = Time(1_700_000_000_000_000_000);

fn path(text: &str) -> Path {
    text.parse().expect("a path")
}

fn place(text: &str) -> Place {
    Place { path: path(text), at: vec![SocketAddr::from(([127, 0, 0, 1], 7_102))] }
}

/// The seat of `line.north.porto`, with its book.
struct Seat {
    book: Cell,
    router: Router<Tree>,
    nodes: u16,
}

impl Seat {
    fn new() -> Seat {
        let mut book = Cell::new(path("line.north.porto"));
        let member = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let at = SocketAddr::from(([127, 0, 0, 1], 1));
        book.apply(BEGIN, Command::Carry(Carrier { member, links: at, calls: at })).unwrap();
        Seat { book, router: Router::new(NodeId(1), Tree), nodes: 1 }
    }

    fn with(&mut self, give: impl FnOnce(&mut Router<Tree>, &Sight<'_>)) -> Vec<Output> {
        let sight = Sight {
            cell: &self.book,
            rank: Some(0),
            order: &[NodeId(1)],
            parent: &place("north.porto").at,
            nodes: self.nodes,
            wall: BEGIN,
        };
        give(&mut self.router, &sight);
        std::iter::from_fn(|| self.router.poll_output()).collect()
    }

    fn hear(&mut self, now: Time, link: LinkId, message: Message) -> Vec<Command> {
        rises(self.with(|router, sight| router.handle_message(now, link, message, sight)))
    }

    fn look(&mut self, now: Time) -> Vec<Command> {
        rises(self.with(|router, sight| router.look(now, sight)))
    }

    /// Makes a call; the links that it is sent by.
    fn call(&mut self, now: Time, to: &str) -> Vec<LinkId> {
        let call = Call {
            client: ClientId(7),
            number: 1,
            unanswered: 1,
            group: "boards".into(),
            method: MethodId(1),
            json: false,
            reading: Reading::No,
            priority: 0,
            body: Bytes::new(),
        };
        let made = Made { to: path(to), call, left: Duration::from_secs(9), caller: None };
        carried(&self.with(|router, sight| router.call(now, 1, made, sight)))
    }

    fn apply(&mut self, mut orders: Vec<Command>) {
        let only = orders.pop().filter(|_| orders.is_empty()).expect("one order");
        self.book.apply(BEGIN, only).expect("it is possible");
    }
}

/// The links that calls are sent by.
fn carried(outputs: &[Output]) -> Vec<LinkId> {
    let link = |output: &Output| match output {
        Output::Send { link, message: Message::Carry(_), .. } => Some(*link),
        _ => None,
    };
    outputs.iter().filter_map(link).collect()
}

fn rises(outputs: Vec<Output>) -> Vec<Command> {
    let rise = |output| match output {
        Output::Order { command: command @ Command::Rise { .. }, .. } => Some(command),
        _ => None,
    };
    outputs.into_iter().filter_map(rise).collect()
}

/// A seat whose link to the cell above is up.
fn linked() -> (Seat, LinkId) {
    let mut seat = Seat::new();
    let outputs = seat.with(|router, sight| router.look(BEGIN, sight));
    let dialled = outputs.into_iter().find_map(|output| match output {
        Output::Dial { link, .. } => Some(link),
        _ => None,
    });
    let link = dialled.expect("it dials the cell above");
    seat.with(|router, sight| router.handle_link_up(BEGIN, link, None, sight));
    let hello = Hello { version: VERSION, path: path("north.porto"), node: NodeId(1) };
    seat.hear(BEGIN, link, Message::Hello(hello));
    (seat, link)
}

#[test]
fn news_that_come_before_the_book_has_the_attachment_are_learned_after_it() {
    let (mut seat, link) = linked();
    let (lease, above) = (Duration::from_secs(3), vec![place("north.porto")]);
    let attached = Attached { epoch: Epoch(5), lease, seen: 0, above };
    let attached = seat.hear(BEGIN, link, Message::Attached(attached));
    // The cell above is attached itself, before the order comes back.
    let all = vec![place("north.porto"), place("porto")];
    assert_eq!(seat.hear(BEGIN, link, Message::Above(all.clone())), []);
    seat.apply(attached);
    assert_eq!(seat.book.above().len(), 1);
    let news = seat.look(BEGIN);
    // That order is lost: it is given again after a while.
    assert_eq!(seat.look(BEGIN + Duration::from_millis(1)), []);
    let again = seat.look(BEGIN + Duration::from_millis(300));
    assert_eq!((news.len(), &again), (1, &news));
    seat.apply(again);
    assert_eq!(seat.book.above(), all);
    assert_eq!(seat.look(BEGIN + Duration::from_millis(700)), []);
}

#[test]
fn the_cell_above_is_told_of_other_nodes_at_once_and_with_a_ping_that_the_cell_lives() {
    let (mut seat, link) = linked();
    let (lease, above) = (Duration::from_secs(3), vec![place("north.porto")]);
    let attached = Attached { epoch: Epoch(5), lease, seen: 0, above };
    let rise = seat.hear(BEGIN, link, Message::Attached(attached));
    seat.apply(rise);
    let mut told = |nodes: u16, ms: u64| {
        seat.nodes = nodes;
        let now = BEGIN + Duration::from_millis(ms);
        seat.hear(now, link, Message::Pong { at: 0 });
        let outputs = seat.with(|router, sight| router.look(now, sight));
        let pings = |it: &Output| matches!(it, Output::Send { message: Message::Ping { .. }, .. });
        let pings = outputs.iter().any(pings);
        let told = outputs.into_iter().find_map(|output| match output {
            Output::Send { message: Message::Attach(wanted), .. } => {
                Some((wanted.epoch, wanted.nodes))
            }
            Output::Send { message: Message::Renew(epoch), .. } => Some((epoch, 0)),
            _ => None,
        });
        (pings, told)
    };
    assert_eq!(told(1, 900), (true, None), "it is not due");
    assert_eq!(told(1, 1_100), (false, None), "it waits for a ping");
    assert_eq!(told(1, 1_600), (true, Some((Epoch(5), 0))));
    assert_eq!(told(2, 1_700), (false, Some((Epoch(5), 2))));
    assert_eq!(told(2, 2_300), (true, None));
    assert_eq!(told(2, 3_000), (true, Some((Epoch(5), 0))));
}

/// Seed 273 of the world `forest`: the parent's next attachment had the number of the former one, and
/// the parent took what had changed since for all.
#[test]
fn a_cell_that_goes_back_to_its_parent_reports_nothing_before_it_is_attached_there() {
    let mut seat = Seat::new();
    let above = vec![place("porto")];
    seat.book.apply(BEGIN, Command::Rise { epoch: Epoch(5), seen: 0, above }).unwrap();
    seat.book.apply(BEGIN, Command::Export("boards".into())).unwrap();
    let outputs = seat.with(|router, sight| router.look(BEGIN, sight));
    let dialled = outputs.into_iter().find_map(|output| match output {
        Output::Dial { link, .. } => Some(link),
        _ => None,
    });
    let link = dialled.expect("it dials the parent");
    seat.with(|router, sight| router.handle_link_up(BEGIN, link, None, sight));
    let said = |outputs: Vec<Output>| {
        let messages = outputs.into_iter().filter_map(|output| match output {
            Output::Send { message: Message::Attach(wanted), .. } => Some((true, wanted.epoch)),
            Output::Send { message: Message::Report { epoch, .. }, .. } => Some((false, epoch)),
            _ => None,
        });
        messages.collect::<Vec<_>>()
    };
    let hello = Hello { version: VERSION, path: path("north.porto"), node: NodeId(1) };
    let outputs = seat.with(|router, sight| {
        router.handle_message(BEGIN, link, Message::Hello(hello), sight);
    });
    assert_eq!(said(outputs), [(true, Epoch(0))]);
    let above = vec![place("north.porto"), place("porto")];
    seat.book.apply(BEGIN, Command::Rise { epoch: Epoch(5), seen: 0, above }).unwrap();
    let outputs = seat.with(|router, sight| router.look(BEGIN, sight));
    assert!(said(outputs).contains(&(false, Epoch(5))), "now it reports");
}

/// The order may be lost, and nobody else may say that time has gone on.
#[test]
fn the_end_of_a_lease_is_ordered_until_the_book_has_it() {
    let mut seat = Seat::new();
    let wanted =
        Attachment { place: place("stop.line.north.porto"), epoch: Epoch(0), founded: 7, nodes: 3 };
    seat.book.apply(BEGIN, Command::Attach(wanted)).unwrap();
    let mut ticks = |ms: u64| {
        let now = BEGIN + Duration::from_millis(ms);
        let sight = Sight {
            cell: &seat.book,
            rank: Some(0),
            order: &[NodeId(1)],
            parent: &[],
            nodes: 1,
            wall: now,
        };
        seat.router.look(now, &sight);
        let due = seat.router.next_timeout(now, &sight).expect("a lease will end");
        let outputs = std::iter::from_fn(|| seat.router.poll_output());
        let is_tick = |it: &Output| matches!(it, Output::Order { command: Command::Tick, .. });
        (outputs.filter(is_tick).count(), due > now)
    };
    assert_eq!(ticks(2_999), (0, true));
    assert_eq!(ticks(3_000), (1, true));
    assert_eq!(ticks(3_100), (0, true), "it is under way");
    assert_eq!(ticks(3_250), (1, true), "it was lost");
}

/// The cells that are dialled.
fn dialled(outputs: &[Output]) -> Vec<String> {
    let cell = |output: &Output| match output {
        Output::Dial { cell, .. } => Some(cell.to_string()),
        _ => None,
    };
    outputs.iter().filter_map(cell).collect()
}

/// A seat that is attached, whose link is lost at the given moment, and what it does then. Hardly
/// any round trip exceeds 60 ms: 20, and four spreads of 10.
fn lost() -> (Seat, Time, Vec<Output>) {
    let (mut seat, link) = linked();
    let (lease, above) = (Duration::from_secs(3), vec![place("north.porto"), place("porto")]);
    let attached = Attached { epoch: Epoch(5), lease, seen: 0, above };
    let rise = seat.hear(BEGIN, link, Message::Attached(attached));
    seat.apply(rise);
    let lost = BEGIN + Duration::from_millis(20);
    seat.hear(lost, link, Message::Pong { at: BEGIN.0 });
    seat.look(lost);
    let outputs = seat.with(|router, sight| router.handle_link_down(lost, link, sight));
    (seat, lost, outputs)
}

#[test]
fn a_parent_that_was_linked_and_answers_no_dial_is_soon_passed_over() {
    let (mut seat, lost, outputs) = lost();
    let of = |cell: &str| {
        outputs.iter().find_map(|output| match output {
            Output::Dial { link, cell: dialled, .. } if dialled.as_str() == cell => Some(*link),
            _ => None,
        })
    };
    let (other, above) = (of("north.porto").unwrap(), of("porto").unwrap());
    // The one above has answered by the time that its turn comes.
    let now = lost + Duration::from_millis(50);
    seat.with(|router, sight| router.handle_link_up(now, above, None, sight));
    let hello = Hello { version: VERSION, path: path("porto"), node: NodeId(1) };
    seat.hear(now, above, Message::Hello(hello));
    let until = lost + Duration::from_millis(40 + 2 * 60);
    seat.hear(until, above, Message::Pong { at: now.0 });
    assert_eq!(seat.call(until, "other.porto"), [], "it waits for a way");
    let mut look = |now| -> Vec<LinkId> {
        let outputs = seat.with(|router, sight| router.look(now, sight));
        let attaches = |output| match output {
            Output::Send { link, message: Message::Attach(_) | Message::Carry(_), .. } => {
                Some(link)
            }
            Output::Close(link) => Some(link),
            _ => None,
        };
        outputs.into_iter().filter_map(attaches).collect()
    };
    assert_eq!(look(Time(until.0 - 1)), []);
    // It attaches there, sends the call, and dials no more where nobody answers.
    assert_eq!(look(until), [above, above, other]);
}

#[test]
fn a_parent_whose_other_node_answers_stays_the_parent() {
    let (mut seat, lost, outputs) = lost();
    assert_eq!(dialled(&outputs), ["north.porto", "porto"]);
    let link = outputs.iter().find_map(|output| match output {
        Output::Dial { link, .. } => Some(*link),
        _ => None,
    });
    let link = link.unwrap();
    seat.with(|router, sight| router.handle_link_up(lost, link, None, sight));
    let hello = Hello { version: VERSION, path: path("north.porto"), node: NodeId(2) };
    let outputs = seat.with(|router, sight| {
        router.handle_message(lost, link, Message::Hello(hello), sight);
    });
    let closed = outputs.iter().filter(|output| matches!(output, Output::Close(_))).count();
    let asks = |output: &&Output| matches!(output, Output::Send { link: by, message: Message::Attach(_), .. } if *by == link);
    assert_eq!((closed, outputs.iter().filter(asks).count()), (1, 1), "{outputs:?}");
}

#[test]
fn a_call_that_waits_for_a_way_goes_when_the_first_one_is_up() {
    let mut seat = Seat::new();
    let outputs = seat.with(|router, sight| router.look(BEGIN, sight));
    let link = outputs.iter().find_map(|output| match output {
        Output::Dial { link, .. } => Some(*link),
        _ => None,
    });
    let link = link.unwrap();
    assert_eq!(seat.call(BEGIN, "other.porto"), []);
    seat.with(|router, sight| router.handle_link_up(BEGIN, link, None, sight));
    let hello = Hello { version: VERSION, path: path("north.porto"), node: NodeId(1) };
    let outputs = seat.with(|router, sight| {
        router.handle_message(BEGIN, link, Message::Hello(hello), sight);
    });
    assert_eq!(carried(&outputs), [link]);
}

/// A view changes: a second carrier that closed its link then left its callers without a way for
/// some round trips, at the moment when the seat was lost.
#[test]
fn a_node_that_loses_its_place_for_a_moment_keeps_its_links() {
    let (mut seat, link) = linked();
    let mut closed = |rank: Option<usize>, ms: u64| {
        let now = BEGIN + Duration::from_millis(ms);
        let order: &[NodeId] = if rank.is_some() { &[NodeId(1)] } else { &[] };
        let parent = &place("north.porto").at;
        let sight = Sight { cell: &seat.book, rank, order, parent, nodes: 1, wall: BEGIN };
        let heard = Message::Pong { at: 0 };
        seat.router.handle_message(now, link, heard, &sight);
        seat.router.look(now, &sight);
        let due = seat.router.next_timeout(now, &sight);
        let outputs: Vec<Output> = std::iter::from_fn(|| seat.router.poll_output()).collect();
        let count = |is: fn(&Output) -> bool| outputs.iter().filter(|it| is(it)).count();
        let asks = |it: &Output| matches!(it, Output::Send { message: Message::Attach(_), .. });
        assert_eq!(count(asks), usize::from(rank == Some(0)), "a seat asks how things are by now");
        (count(|it| matches!(it, Output::Close(_))), due.is_some())
    };
    assert_eq!(closed(None, 10), (0, true));
    assert_eq!(closed(Some(0), 20), (0, true));
    assert_eq!(closed(Some(1), 200), (0, true));
    assert_eq!(closed(None, 600), (0, true));
    assert_eq!(closed(None, 1_099), (0, true));
    assert_eq!(closed(None, 1_100).0, 1, "it has no majority");
    assert_eq!(closed(Some(2), 1_200).0, 0);
}
