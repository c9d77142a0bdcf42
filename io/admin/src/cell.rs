//! A node's copy of its cell's book, and what may be told to it.

use cells::limits::MAX_LINKS;
use cells::{Call, Cell, Command, End, Path, Refusal, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Duration, Member, NodeId, ViewNumber};

use crate::hex::{from_hex, hex};

/// A node's copy of its cell's book. Without ranks the node has no majority, or not the state: the
/// book may be old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellStatus {
    /// The node that was asked.
    pub node: Member,
    /// It grows with each change of what follows, as long as the node lives.
    pub version: u64,
    /// The nodes and their ranks; `None` if it is not current.
    pub ranks: Option<Ranks>,
    /// The links of the node, as the process beside it has told last.
    pub neighbours: Vec<Neighbour>,
    /// The book's bytes, in hexadecimal digits.
    pub book_hex: String,
}

/// The nodes of a cell, as the table of groups has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranks {
    /// The view of the book's group.
    pub view: ViewNumber,
    /// The nodes whose replicas have the book, the seat first.
    pub order: Vec<NodeId>,
    /// The nodes of the ring.
    pub members: Vec<Member>,
}

/// The other end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its cell.
    pub cell: Path,
    /// The node there.
    pub node: NodeId,
    /// The usual round trip, in microseconds.
    pub round_trip_us: u64,
}

/// A call that a handler at the node makes of a group of another cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerCall {
    /// The node's number of it.
    pub number: u64,
    /// The cell that is called.
    pub to: Path,
    /// The handler waits so long, in microseconds.
    pub left_us: u64,
    /// The call's bytes, in hexadecimal digits.
    pub call_hex: String,
}

impl HandlerCall {
    /// With this call.
    pub fn new(number: u64, to: Path, left: Duration, call: &Call) -> HandlerCall {
        let bytes = postcard::to_allocvec(call).expect("a call is plain data");
        let left_us = u64::try_from(left.as_micros()).unwrap_or(u64::MAX);
        HandlerCall { number, to, left_us, call_hex: hex(&bytes) }
    }

    /// The call; `None` if another version of the program has written it.
    pub fn call(&self) -> Option<Call> {
        postcard::from_bytes(&from_hex(&self.call_hex)?).ok()
    }
}

/// The end of a call of [`HandlerCall`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerCallEnd {
    /// The node's number of the call.
    pub number: u64,
    /// The end's bytes, in hexadecimal digits.
    pub end_hex: String,
}

impl HandlerCallEnd {
    /// With this end.
    pub fn new(number: u64, end: &End) -> HandlerCallEnd {
        let bytes = postcard::to_allocvec(end).expect("an end is plain data");
        HandlerCallEnd { number, end_hex: hex(&bytes) }
    }

    /// The end; `None` if another version of the program has written it.
    pub fn end(&self) -> Option<End> {
        postcard::from_bytes(&from_hex(&self.end_hex)?).ok()
    }
}

/// The most links that a node has.
pub const MAX_NEIGHBOURS: usize = MAX_LINKS;

impl CellStatus {
    /// The node's status, with this book.
    pub fn new(node: Member, version: u64, ranks: Option<Ranks>, book: &Cell) -> CellStatus {
        let (neighbours, book_hex) = (Vec::new(), hex(&book.encode()));
        CellStatus { node, version, ranks, neighbours, book_hex }
    }

    /// The book; `None` if another version of the program has written it.
    pub fn book(&self) -> Option<Cell> {
        Cell::decode(&from_hex(&self.book_hex)?).ok()
    }
}

/// The book's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellAnswer {
    /// It has the command.
    Verdict(Verdict),
    /// The command changes nothing.
    Refused(Refusal),
}

impl From<Result<Verdict, Refusal>> for CellAnswer {
    fn from(result: Result<Verdict, Refusal>) -> CellAnswer {
        match result {
            Ok(verdict) => CellAnswer::Verdict(verdict),
            Err(refusal) => CellAnswer::Refused(refusal),
        }
    }
}

impl From<CellAnswer> for Result<Verdict, Refusal> {
    fn from(answer: CellAnswer) -> Result<Verdict, Refusal> {
        match answer {
            CellAnswer::Verdict(verdict) => Ok(verdict),
            CellAnswer::Refused(refusal) => Err(refusal),
        }
    }
}

/// People give these commands, and the cell's own processes all others.
pub fn is_by_people(command: &Command) -> bool {
    use Command::{Export, Promote, Unexport, Want};
    matches!(command, Export(_) | Unexport(_) | Want { .. } | Promote)
}

#[cfg(test)]
mod tests {
    use wire::{Incarnation, Time};

    use super::*;

    #[test]
    fn the_book_comes_back_as_it_was() {
        let mut book = Cell::new("line-a.porto".parse().unwrap());
        book.apply(Time(7_000_000), Command::Export("boards".into())).unwrap();
        let node = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let ranks = Ranks { view: ViewNumber(2), order: vec![NodeId(1)], members: vec![node] };
        let status = CellStatus::new(node, 3, Some(ranks.clone()), &book);
        let json = serde_json::to_string(&status).unwrap();
        let read: CellStatus = serde_json::from_str(&json).unwrap();
        assert_eq!(read.book(), Some(book));
        assert_eq!(read.ranks, Some(ranks));
        let spoilt = CellStatus { book_hex: "zz".into(), ..read };
        assert_eq!(spoilt.book(), None);
    }

    #[test]
    fn all_commands_and_answers_are_json() {
        let verdict = CellAnswer::from(Ok(Verdict::Shunned));
        let json = serde_json::to_string(&verdict).unwrap();
        assert_eq!(json, r#"{"verdict":"Shunned"}"#);
        assert_eq!(serde_json::from_str::<CellAnswer>(&json).unwrap(), verdict);
        let gone = Command::Gone(Vec::new());
        let read: Command = serde_json::from_str(&serde_json::to_string(&gone).unwrap()).unwrap();
        assert_eq!(read, gone);
        assert!(!is_by_people(&gone) && is_by_people(&Command::Promote));
    }
}
