//! The cell as the node beside shows it.

use std::net::SocketAddr;

use admin::cell::{CellStatus, Ranks};
use cells::{Carrier, Cell, Command, Path, Sight};
use os::clock::wall_clock;
use wire::client::Targets;
use wire::{Member, NodeId, Time, ViewNumber};

/// The last that the node has shown.
#[derive(Debug)]
pub(crate) struct Seen {
    book: Cell,
    me: Option<Member>,
    rank: Option<usize>,
    view: ViewNumber,
    /// The carriers, the seat first.
    order: Vec<NodeId>,
    members: Vec<Member>,
    parent: Vec<SocketAddr>,
}

impl Seen {
    /// Nothing is known yet.
    pub fn new(path: Path, parent: Vec<SocketAddr>) -> Seen {
        Seen {
            book: Cell::new(path),
            me: None,
            rank: None,
            view: ViewNumber::default(),
            order: Vec::new(),
            members: Vec::new(),
            parent,
        }
    }

    /// The node shows this.
    pub fn see(&mut self, status: CellStatus, book: Cell) {
        let CellStatus { node, ranks, .. } = status;
        let ranks = ranks.unwrap_or(Ranks { view: self.view, order: vec![], members: vec![] });
        let Ranks { view, order, members } = ranks;
        // A node that hosts the book and does not carry is passed over by all.
        self.order = book.carriers_among(&order, &members).map(|it| it.member.node).collect();
        self.rank = self.order.iter().position(|it| *it == node.node);
        (self.me, self.view, self.members, self.book) = (Some(node), view, members, book);
    }

    /// The node does not answer: it may have no majority.
    pub fn lose_sight(&mut self) {
        (self.me, self.rank) = (None, None);
    }

    pub fn sight(&self) -> Sight<'_> {
        Sight {
            cell: &self.book,
            rank: self.rank,
            order: &self.order,
            parent: &self.parent,
            nodes: u16::try_from(self.members.len()).unwrap_or(u16::MAX),
            wall: Time(wall_clock()),
        }
    }

    /// The nodes at which callers of this cell call other ones.
    pub fn doors(&self) -> Targets {
        self.book.doors(self.view, &self.order, &self.members)
    }

    /// The book is to have what it lacks: that this node carries, at these addresses, and that
    /// others do not any more.
    pub fn corrections(&self, links: SocketAddr, calls: SocketAddr) -> Vec<Command> {
        // Without a majority there are no members.
        let Some(member) = self.me.filter(|me| self.members.contains(me)) else {
            return Vec::new();
        };
        let own = Carrier { member, links, calls };
        let is_there = self.book.carrier(member.node) == Some(&own);
        let carry = (!is_there).then_some(Command::Carry(own));
        let gone = self.book.carriers_beyond(&self.members);
        let gone = (self.rank == Some(0) && !gone.is_empty()).then_some(Command::Gone(gone));
        carry.into_iter().chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use wire::Incarnation;

    use super::*;

    fn member(node: u32, life: u64) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(life) }
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn status(node: Member, order: &[u32], members: &[Member], book: &Cell) -> CellStatus {
        let order = order.iter().copied().map(NodeId).collect();
        let ranks = Ranks { view: ViewNumber(1), order, members: members.to_vec() };
        CellStatus::new(node, 1, Some(ranks), book)
    }

    #[test]
    fn a_node_that_does_not_carry_is_passed_over_and_says_so_itself() {
        let mut book = Cell::new("porto".parse().unwrap());
        let (one, two) = (member(1, 1), member(2, 1));
        let mut seen = Seen::new(book.path().clone(), Vec::new());
        assert_eq!(seen.corrections(at(1), at(2)), [], "nothing is known");
        seen.see(status(two, &[1, 2], &[one, two], &book), book.clone());
        let carry = |member| Command::Carry(Carrier { member, links: at(1), calls: at(2) });
        assert_eq!(seen.sight().rank, None);
        assert_eq!(seen.corrections(at(1), at(2)), [carry(two)]);
        book.apply(Time(7_000), carry(two)).unwrap();
        seen.see(status(two, &[1, 2], &[one, two], &book), book.clone());
        assert_eq!(seen.sight().rank, Some(0), "node 1 has no links");
        assert_eq!(seen.corrections(at(1), at(2)), []);
        seen.lose_sight();
        assert_eq!((seen.sight().rank, seen.corrections(at(1), at(9))), (None, vec![]));
    }

    #[test]
    fn the_seat_says_which_lives_have_ended() {
        let mut book = Cell::new("porto".parse().unwrap());
        let (one, old, new) = (member(1, 1), member(2, 1), member(2, 2));
        for member in [one, old] {
            let carry = Command::Carry(Carrier { member, links: at(1), calls: at(2) });
            book.apply(Time(7_000), carry).unwrap();
        }
        let mut seen = Seen::new(book.path().clone(), Vec::new());
        seen.see(status(one, &[1, 2], &[one, new], &book), book.clone());
        assert_eq!(seen.corrections(at(1), at(2)), [Command::Gone(vec![old])]);
        assert_eq!(seen.sight().order, [NodeId(1)], "the new life has not said that it carries");
        seen.see(status(one, &[2, 1], &[one, old], &book), book);
        assert_eq!((seen.sight().rank, seen.corrections(at(1), at(2))), (Some(1), vec![]));
    }
}
