//! The executor of one replica: commands in order, one at a time, each taking its time.

use std::collections::VecDeque;

use engine::{Command, Executed, Ticket};
use wire::{Duration, RingId};

use crate::draw::Draw;
use crate::service::{Call, Entry, Log};

/// A replica's service with the commands that wait for it.
pub struct Executor {
    /// The service.
    pub log: Log,
    queue: VecDeque<(Command, RingId)>,
    busy: bool,
    /// Which of the executors of this run.
    pub serial: u64,
}

/// What a command did.
pub struct Done {
    /// Whose result it is; a reset has none.
    pub answer: Option<(Ticket, Executed)>,
    /// What checkers want to know.
    pub effect: Effect,
}

/// What a command did to the history.
pub enum Effect {
    /// It went on by one, in this component, from this hash.
    Executed(Entry, RingId, u64),
    /// It was replaced.
    Replaced,
    /// Nothing.
    None,
}

impl Executor {
    /// An executor with an empty history.
    pub fn new(padding: usize, serial: u64) -> Self {
        Executor { log: Log::new(padding), queue: VecDeque::new(), busy: false, serial }
    }

    /// A command comes, given in this component.
    pub fn push(&mut self, command: Command, component: RingId) {
        self.queue.push_back((command, component));
    }

    /// How long the next command takes, if one waits and none is under way. It begins now.
    pub fn begin(&mut self, longest: Duration, draw: &mut Draw) -> Option<Duration> {
        if self.busy || self.queue.is_empty() {
            return None;
        }
        self.busy = true;
        Some(draw.span(Duration::from_micros(1), longest))
    }

    /// Nothing waits and nothing is under way.
    pub fn is_idle(&self) -> bool {
        !self.busy && self.queue.is_empty()
    }

    /// The command under way ends.
    pub fn end(&mut self) -> Option<Done> {
        self.busy = false;
        let (command, component) = self.queue.pop_front()?;
        Some(match command {
            Command::Execute { ticket, method, body, now, seed, client, number, json: _ } => {
                let call = Call { client, number, now, seed, method, body: &body };
                let before = self.log.digest;
                let outcome = self.log.execute(&call);
                let effect = Effect::Executed(call.entry(), component, before);
                Done { answer: Some((ticket, Executed::Reply(outcome))), effect }
            }
            Command::Snapshot { ticket } => {
                let executed = Executed::Snapshot(Ok(self.log.snapshot()));
                Done { answer: Some((ticket, executed)), effect: Effect::None }
            }
            Command::Restore { ticket, state } => {
                let restored = self.log.restore(&state);
                assert!(restored.is_ok(), "a transfer brought a broken state: {restored:?}");
                let answer = Some((ticket, Executed::Restored(restored)));
                Done { answer, effect: Effect::Replaced }
            }
            Command::Reset => {
                self.log.reset();
                Done { answer: None, effect: Effect::Replaced }
            }
        })
    }
}
