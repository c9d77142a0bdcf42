//! This node's replica of the cell's book: an ordinary service of an ordinary group, run on the data
//! plane, which other threads may look into, and wait for.

use cells::{Cell, Command, Path};
use engine::ServiceOutcome;
use wire::client::Refusal;

use crate::service::{BoxError, Call, Context, Service};
use crate::shared::Shared;

/// The book as this node's replica has it. `None`: it is not hosted yet.
pub(crate) type SharedBook = Shared<Option<Cell>>;

/// The service.
pub(crate) struct CellService {
    path: Path,
    shared: SharedBook,
}

impl CellService {
    /// With the book of a cell that begins, which is on the shared from now on.
    pub fn new(path: Path, shared: SharedBook) -> CellService {
        shared.change(|book| *book = Some(Cell::new(path.clone())));
        CellService { path, shared }
    }
}

impl Service for CellService {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        if call.method != Command::METHOD {
            let reason = "the cell's book takes commands of nodes alone";
            return ServiceOutcome::Refused(Refusal::NoSuchMethod, reason.into());
        }
        let command = match Command::decode(call.body) {
            Ok(command) => command,
            Err(error) => {
                let reason = format!("no command of this version: {error}");
                return ServiceOutcome::Refused(Refusal::BadArguments, reason);
            }
        };
        let verdict = self.shared.change(|book| {
            let begun = || Cell::new(self.path.clone());
            book.get_or_insert_with(begun).apply(context.now(), command)
        });
        let bytes = postcard::to_allocvec(&verdict).expect("a verdict is plain data");
        ServiceOutcome::Ok(bytes.into())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.shared.get().as_ref().as_ref().map(Cell::encode).unwrap_or_default())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        let book = Cell::decode(state).map_err(|error| format!("no book of a cell: {error}"))?;
        if *book.path() != self.path {
            let other = book.path();
            return Err(format!("the book is of {other}, and this cell is {}", self.path).into());
        }
        self.shared.change(|held| *held = Some(book));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cells::{Refusal as CellRefusal, Verdict};
    use wire::{ClientId, Duration, Time};

    use super::*;

    fn say(service: &mut CellService, command: &Command) -> Result<Verdict, CellRefusal> {
        let context = Context::new(Time(7_000_000), 1, ClientId(1), 1);
        let body = command.encode();
        match service.call(&context, Call { method: Command::METHOD, json: false, body: &body }) {
            ServiceOutcome::Ok(bytes) => postcard::from_bytes(&bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_book_is_shared_and_in_the_state_and_wakes_who_waits() {
        let (path, shared) = ("line-a.porto".parse::<Path>().unwrap(), SharedBook::default());
        let mut service = CellService::new(path.clone(), shared.clone());
        let (seen, waiting) = (shared.wait(u64::MAX, Duration::ZERO).unwrap(), shared.clone());
        let waiter = std::thread::spawn(move || waiting.wait(seen, Duration::from_secs(60)));
        assert_eq!(say(&mut service, &Command::Export("boards".into())), Ok(Verdict::Done));
        assert!(waiter.join().unwrap().unwrap() > seen, "there is another version");
        assert!(shared.get().as_ref().as_ref().unwrap().exports("boards"));
        let refused = say(&mut service, &Command::Export("a:b".into()));
        assert_eq!(refused, Err(CellRefusal::Group(3)));

        let (other, state) = (SharedBook::default(), service.snapshot().unwrap());
        let mut replica = CellService::new(path, other.clone());
        replica.restore(&state).unwrap();
        assert_eq!(other.get(), shared.get());
        replica.restore(&[255; 9]).unwrap_err();
        CellService::new("porto".parse().unwrap(), SharedBook::default())
            .restore(&state)
            .unwrap_err();
        assert_eq!(other.get(), shared.get(), "a bad state changes nothing");
    }
}
