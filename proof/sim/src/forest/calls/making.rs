//! Calls and questions are made, executed and checked.

use bytes::Bytes;
use cells::{Call, Command, End, Name, Reading, Scope};
use wire::{ClientId, Duration, MethodId, Time};

use super::super::happening::Happening;
use super::super::world::Forest;
use super::{BEARS, Made, PATIENCE};
use crate::celled::At;
use crate::check::licence::Gap;
use crate::check::{Verdict, Violation, demand};

impl Forest {
    /// Somebody calls, asks, or checks what he knows.
    pub(in super::super) fn load(&mut self) -> Verdict {
        if self.options.load_over || self.cells.len() < 2 {
            return Ok(());
        }
        let pause = self.options.load.as_micros() as u64;
        let next = self.now() + Duration::from_micros(self.draw.between(1, pause * 2));
        self.queue.push(next, Happening::Load);
        let last = self.cells.len() as u64 - 1;
        let from = self.draw.between(0, last) as usize;
        let to = self.draw.between(0, last) as usize;
        if self.draw.one_in(3) {
            self.ask(from, to)?;
        } else if from != to {
            self.make_call(from, to);
        }
        self.check_overdue()
    }

    fn make_call(&mut self, from: usize, to: usize) {
        let model = &self.cells[from];
        let linking = model.order.iter().take(cells::LINKING).copied();
        let acting: Vec<_> = linking.filter(|node| model.acts(*node)).collect();
        if acting.is_empty() || !model.has_quorum() {
            return;
        }
        let node = acting[self.draw.between(0, acting.len() as u64 - 1) as usize];
        self.calls.next += 1;
        let token = self.calls.next;
        let key = (ClientId(1), token);
        let call = Call {
            client: key.0,
            number: key.1,
            unanswered: token,
            group: format!("group-{to}"),
            method: MethodId(1),
            json: false,
            reading: Reading::No,
            priority: (token % 256) as u8,
            body: Bytes::from_static(b"arguments"),
        };
        let now = self.now();
        let path = self.cells[to].path.clone();
        let at = At { cell: from, node };
        let from = (at, self.cells[at.cell].life(node));
        self.calls.open.insert(token);
        self.calls.made.insert(token, Made { to, key, from, at: now, end: None });
        self.touch(at, |model, now, at| model.call(now, at.node, token, (path, call, PATIENCE)));
    }

    /// A cell executes a call that was carried to it.
    pub(in super::super) fn execute(
        &mut self,
        at: At,
        life: u64,
        call: u64,
        request: &Call,
        until: Time,
    ) -> Verdict {
        let (now, ordered) = (self.now(), self.draw_gap(Gap::Ordered));
        let model = &mut self.cells[at.cell];
        let stuck = model.stuck_until > now;
        if stuck || !model.has_quorum() {
            let again = if stuck { model.stuck_until } else { now + Duration::from_millis(20) };
            if again + ordered < until {
                let request = Box::new(request.clone());
                let happening = Happening::Execute { at, life, call, request, until };
                self.queue.push(again + ordered, happening);
                return Ok(());
            }
        }
        let end = if stuck || !model.has_quorum() { End::Lost } else { model.execute(request) };
        let times = model.executions((request.client, request.number));
        demand(times <= 1, "executed once", || {
            format!("{} was executed {times} times", request.number)
        })?;
        if self.cells[at.cell].life(at.node) == life {
            self.touch(at, |model, now, at| model.executed(now, at.node, call, end));
        }
        Ok(())
    }

    /// Somebody in a cell asks where a group of another one is.
    fn ask(&mut self, from: usize, to: usize) -> Verdict {
        let now = self.now();
        let group = format!("group-{to}");
        let name = match self.draw.between(0, 2) {
            0 => Name { scope: Scope::Cell(self.cells[to].path.clone()), group },
            1 => Name { scope: Scope::Nearest, group },
            _ => Name { scope: Scope::Upwards, group },
        };
        if let Some((Some(record), age)) = self.cells[from].book.known_well(now, &name, BEARS) {
            self.check_age(now, &record, age)?;
        }
        if let Some(seat) = self.cells[from].seat() {
            let (at, command) =
                (At { cell: from, node: seat }, Command::Want { name, bears: BEARS });
            let life = self.cells[from].life(seat);
            let command = Box::new(command);
            let happening = Happening::Order { at, life, ask: u64::MAX, command };
            let ordered = self.draw_gap(Gap::Ordered);
            self.queue.push(now + ordered, happening);
        }
        Ok(())
    }

    /// An answer was true at some moment since its age began.
    fn check_age(&self, now: Time, record: &cells::Record, age: Duration) -> Verdict {
        let Some(cell) = self.cell_of(&record.cell) else {
            let text = format!("an answer names {}, which is no cell", record.cell);
            return Err(Violation { property: "answers are true", text });
        };
        let view = usize::try_from(record.targets.view.0).unwrap_or(usize::MAX);
        let oldest = Time(now.0.saturating_sub(age.as_nanos() as u64));
        let ended = self.cells[cell].views.get(view);
        demand(ended.is_none_or(|ended| *ended >= oldest), "answers are as old as they say", || {
            format!(
                "view {view} of {} ended at {ended:?}; an answer of {now:?} has the age {age:?}",
                record.cell
            )
        })
    }

    /// Where nothing is broken, calls are answered.
    pub(in super::super) fn check_overdue(&mut self) -> Verdict {
        let Some(calm) = self.calm_since else { return Ok(()) };
        let (now, cells) = (self.queue.now(), &self.cells);
        let overdue = self.calls.overdue(now, calm, |at| cells[at.cell].life(at.node));
        demand(overdue.is_none(), "calls are answered where nothing is broken", || {
            let (token, made) = overdue.expect("there is one");
            format!("call {token} to {} was made at {:?} and has no end", made.to, made.at)
        })
    }
}
