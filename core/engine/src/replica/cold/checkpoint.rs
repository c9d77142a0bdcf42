//! How the primary takes a checkpoint and has it ordered, and what each replica does with it.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_LOG_ORDERED, MAX_STATE, UPDATE_CHUNK};
use wire::ordered::{About, Ordered, PrimaryChunk, ReplicaState, StateHead, Told};

use super::{Progress, Running};
use crate::api::{Command, Event};
use crate::bug::Bug;
use crate::replica::{Effect, Mode, Replica, Task, Waiting};

impl Replica {
    /// The primary takes a checkpoint now.
    pub(crate) fn checkpoint(&mut self, effects: &mut Vec<Effect>) {
        if !self.may_checkpoint() {
            return;
        }
        let running = self.cold.as_mut().expect("it may take one").running_mut();
        running.checkpoint = Progress::Asked(running.next - 1);
        let ticket = self.service.give(Task::Checkpoint);
        self.run(Command::Snapshot { ticket }, effects);
    }

    /// The service says what its state is: that and the sessions are ordered.
    pub(in crate::replica) fn checkpoint_taken(
        &mut self,
        result: Result<Bytes, String>,
        effects: &mut Vec<Effect>,
    ) {
        let (sessions, keys) = self.history.sessions.export();
        let head = StateHead {
            executed: self.history.executed,
            asks: 0,
            updates: self.updates.taken,
            clock: self.history.clock,
            sessions,
            poisoned: self.history.poisons.clone(),
            keys,
        };
        let state = result.map(|service| ReplicaState { head, service }.encode().whole()).and_then(
            |state| {
                let fits = state.len() <= MAX_STATE;
                fits.then_some(state).ok_or("the state is larger than MAX_STATE: keep less".into())
            },
        );
        let cold = self.cold.as_mut().expect("its group logs");
        let (logged, begins) = (cold.logged, cold.begins);
        let running = cold.running_mut();
        let asked = core::mem::replace(&mut running.checkpoint, Progress::None);
        let Progress::Asked(mut number) = asked else { unreachable!("it was asked for") };
        if begins {
            self.log_begun(state, effects);
            return self.run_log(effects);
        }
        match state {
            Ok(bytes) if running.since.is_some() => {
                if self.planted.is(Bug::CheckpointWithoutPlace) {
                    (number, running.next) = (logged, logged + 1);
                }
                running.checkpoint = Progress::Sent { number, bytes, next: 0 };
                self.is_well(About::Give, effects);
                self.order_checkpoint(effects);
            }
            Ok(_) => {} // another may be primary
            Err(reason) => {
                effects.push(Effect::CheckpointFailed);
                let group = self.group;
                effects.push(Effect::Noted(About::Give, Some(reason.clone())));
                effects.push(Effect::Event(Event::CheckpointFailed { group, reason }));
            }
        }
        self.run_log(effects);
    }

    fn order_checkpoint(&self, effects: &mut Vec<Effect>) {
        let running = self.cold.as_ref().and_then(|cold| cold.running.as_ref());
        let Some(Running { since: Some(since), checkpoint, .. }) = running else { return };
        let Progress::Sent { number, bytes, next } = checkpoint else { return };
        let start = *next as usize * UPDATE_CHUNK;
        let end = (start + UPDATE_CHUNK).min(bytes.len());
        effects.push(Effect::Order(Ordered::PrimaryChunk(PrimaryChunk {
            group: self.group,
            what: Told::Checkpoint,
            since: *since,
            number: *number,
            index: *next,
            last: end == bytes.len(),
            bytes: bytes.slice(start..end),
        })));
    }

    /// A piece of a checkpoint is delivered. `own`: this replica is the primary.
    pub(crate) fn checkpoint_chunk(
        &mut self,
        chunk: &PrimaryChunk,
        own: bool,
        effects: &mut Vec<Effect>,
    ) {
        if own
            && let Some(Running { checkpoint: progress @ Progress::Sent { .. }, .. }) =
                self.cold.as_mut().and_then(|cold| cold.running.as_mut())
            && let Progress::Sent { number, bytes, next } = progress
            && (chunk.number, chunk.index) == (*number, *next)
        {
            if !chunk.last {
                *next += 1;
                return self.order_checkpoint(effects);
            }
            let bytes = bytes.clone();
            *progress = Progress::None;
            return self.store(chunk.number, Some(bytes), effects);
        }
        let bytes = self.checkpoint_pieces.put_primary(chunk);
        if !chunk.last {
            return;
        }
        let number = chunk.number;
        match self.mode {
            Mode::Idle | Mode::Fallen => {}
            Mode::Live => self.store(number, bytes, effects),
            // It has still to get the state, or to go over to this style.
            Mode::Draining
            | Mode::Snapshotting
            | Mode::Joining { .. }
            | Mode::Restoring { .. }
            | Mode::Recalling { .. }
            | Mode::Launching { .. } => {
                let waiting = Waiting::Checkpoint { number, bytes };
                // If it is too much a joiner begins again, and a donor gives its transfer up.
                if let Some(Waiting::Checkpoint { number, bytes }) =
                    self.keep_back(waiting, effects)
                    && self.logs_now()
                {
                    self.store(number, bytes, effects);
                }
            }
        }
    }

    /// A checkpoint has its place in the order. `bytes`: what it is, if all of it came here.
    pub(in crate::replica) fn store(
        &mut self,
        number: u64,
        bytes: Option<Bytes>,
        effects: &mut Vec<Effect>,
    ) {
        let early = self.planted.is(Bug::CutTooEarly) && !self.runs();
        let group = self.group;
        let under_way = self.first_under_way().unwrap_or(u64::MAX);
        let cold = self.cold.as_mut().expect("its group logs");
        if number <= cold.cut || number > cold.logged {
            return; // the state that was transferred has it
        }
        // One that could not be read would be of no use later.
        let whole = bytes.filter(|bytes| ReplicaState::decode(bytes).is_ok());
        // It answers what was ordered before it was deposed, by requests that the new primary has
        // executed already.
        let behind =
            cold.running.as_ref().is_some_and(|running| running.next.min(under_way) <= number);
        let taken = whole.filter(|_| !behind);
        if taken.is_none() && cold.log.len() > MAX_LOG_ORDERED {
            return self.out_of_step("too many checkpoints are missing here".into(), effects);
        }
        cold.cut(number);
        if let Some(bytes) = taken {
            let size = bytes.len();
            let gone = (number - cold.covered()) as usize;
            cold.log.drain(..gone);
            cold.ends.cut(number);
            if early {
                cold.log.clear();
                (cold.logged, cold.bytes) = (number, 0);
            }
            (cold.checkpoint, cold.begins) = (bytes, false);
            effects.push(Effect::Checkpointed);
            effects.push(Effect::Event(Event::Checkpointed { group, number, bytes: size }));
        }
        self.run_log(effects);
    }
}
