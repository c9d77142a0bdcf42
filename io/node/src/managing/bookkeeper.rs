//! This node's replica of the book (`docs/protocol/deployment.md`): an ordinary service of an ordinary group, run on the data plane, which other threads
//! may look into.

use std::sync::{Arc, Mutex, PoisonError};

use manager::book::{Book, Command};
use wire::client::Refusal;

use crate::service::{Call, Context, Service};
use engine::ServiceOutcome;

/// The book as this node's replica has it. Whether that is the group's state, the table of groups says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf(Arc<Mutex<Arc<Book>>>);

impl Shelf {
    /// What is there now.
    pub fn book(&self) -> Arc<Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever looks at the old one keeps it; else nothing is copied.
        change(Arc::make_mut(&mut book))
    }
}

/// The service.
pub(crate) struct Bookkeeper(Shelf);

impl Bookkeeper {
    /// With an empty book, which is on the shelf from now on.
    pub fn new(shelf: Shelf) -> Bookkeeper {
        shelf.change(|book| *book = Book::default());
        Bookkeeper(shelf)
    }
}

impl Service for Bookkeeper {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        if call.method != Command::METHOD {
            let reason = "the manager's group takes commands of nodes alone";
            return ServiceOutcome::Refused(Refusal::NoSuchMethod, reason.into());
        }
        let command = match Command::decode(call.body) {
            Ok(command) => command,
            Err(error) => {
                let reason = format!("no command of this version: {error}");
                return ServiceOutcome::Refused(Refusal::BadArguments, reason);
            }
        };
        match self.0.change(|book| book.apply(context.now(), command)) {
            Ok(answer) => {
                let bytes = postcard::to_allocvec(&answer).expect("an answer is plain data");
                ServiceOutcome::Ok(bytes.into())
            }
            Err(refusal) => ServiceOutcome::Error(refusal.to_string().into()),
        }
    }

    fn snapshot(&self) -> Result<Vec<u8>, String> {
        Ok(self.0.book().encode())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let book = Book::decode(state).map_err(|error| format!("no book: {error}"))?;
        self.0.change(|old| *old = book);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use manager::book::Answer;
    use wire::{ClientId, NodeId, Share, Time};

    use super::*;

    #[test]
    fn what_is_said_is_on_the_shelf_and_in_the_state() {
        let shelf = Shelf::default();
        let mut bookkeeper = Bookkeeper::new(shelf.clone());
        let say = |bookkeeper: &mut Bookkeeper, command: &Command| {
            let context = Context::new(Time(7), 1, ClientId(1), 1);
            let body = command.encode();
            bookkeeper.call(&context, Call { method: Command::METHOD, json: false, body: &body })
        };
        let (node, labels, capacity) = (NodeId(3), Default::default(), Share::ONE);
        let introduce = Command::Introduce { node, labels, capacity };
        let done = postcard::to_allocvec(&Answer::Done).unwrap();
        assert_eq!(say(&mut bookkeeper, &introduce), ServiceOutcome::Ok(done.into()));
        assert!(shelf.book().node(node).is_some());
        let refused = say(&mut bookkeeper, &Command::Return { node });
        assert!(matches!(refused, ServiceOutcome::Error(_)), "{refused:?}");

        let other = Shelf::default();
        let mut replica = Bookkeeper::new(other.clone());
        replica.restore(&bookkeeper.snapshot().unwrap()).unwrap();
        assert_eq!(other.book(), shelf.book());
        replica.restore(&[255; 9]).unwrap_err();
        assert_eq!(other.book(), shelf.book(), "a bad state changes nothing");
        drop(Bookkeeper::new(shelf.clone()));
        assert_eq!(*shelf.book(), Book::default(), "it begins anew");
    }
}
